//! A snapshot of the allocator's state, as `/proc` printed it.

use serde::{Deserialize, Serialize};

use crate::procfs::{Buddyinfo, Pagetypeinfo, ProcError, Vmstat, Zoneinfo};

/// The allocator's state before or after the recorded command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Snapshot {
    /// Zones, watermarks, per-CPU page sets.
    pub zoneinfo: Zoneinfo,
    /// Free blocks by zone and order.
    pub buddyinfo: Buddyinfo,
    /// Free blocks by zone, migratetype and order. `None` if the recorder was not root, because only root can
    /// read these counts.
    pub pagetypeinfo: Option<Pagetypeinfo>,
    /// Counters.
    pub vmstat: Vmstat,
}

impl Snapshot {
    /// Parses the four texts. An empty `pagetypeinfo` means "not readable", and is not an error.
    ///
    /// # Errors
    /// An error with the name of the `/proc` file and the first malformed line.
    pub fn parse(
        zoneinfo: &str,
        buddyinfo: &str,
        pagetypeinfo: &str,
        vmstat: &str,
    ) -> Result<Self, ProcError> {
        Ok(Self {
            zoneinfo: Zoneinfo::parse(zoneinfo)?,
            buddyinfo: Buddyinfo::parse(buddyinfo)?,
            pagetypeinfo: if pagetypeinfo.trim().is_empty() {
                None
            } else {
                Some(Pagetypeinfo::parse(pagetypeinfo)?)
            },
            vmstat: Vmstat::parse(vmstat)?,
        })
    }
}
