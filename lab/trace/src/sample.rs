//! Samples of page sets. During a recording, each CPU's page sets are sampled about every 20 ms, by a thread
//! on this CPU.

use pageset_core::ZoneKind;
use serde::{Deserialize, Serialize};

/// A CPU's sample of its own page sets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sample {
    /// Time when reading began, in nanoseconds of the events' clock.
    pub t0_ns: u64,
    /// Time when reading ended.
    pub t1_ns: u64,
    /// The CPU that sampled itself.
    pub cpu: u32,
    /// The page set of this CPU in each populated zone.
    pub zones: Vec<ZoneSample>,
}

/// A zone's free frames, and the sampling CPU's page set in the zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ZoneSample {
    /// NUMA node.
    pub node: u16,
    /// Kind of the zone.
    #[serde(with = "crate::zone_name")]
    pub kind: ZoneKind,
    /// Number of free frames of the zone, as the kernel counts them. Changes that CPUs have not yet added to
    /// the zone's count are missing.
    pub free: u64,
    /// Number of frames in this CPU's page set.
    pub count: u32,
    /// The page set's current limit, in frames.
    pub high: u32,
    /// Number of frames that a plain refill or drain moves.
    pub batch: u32,
    /// Lower bound of `high`. Kernels 6.1 and 6.12 do not print this bound.
    pub high_min: Option<u32>,
    /// Upper bound of `high`. Kernels 6.1 and 6.12 do not print this bound.
    pub high_max: Option<u32>,
}
