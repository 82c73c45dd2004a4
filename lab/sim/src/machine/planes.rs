//! Planes: parallel networks that connect the nodes of a large machine. A brick is a group of nodes that are
//! connected without a plane.

use serde::{Deserialize, Serialize};

use super::Cost;

/// The planes between the bricks of a machine. The address of a line decides which plane carries the line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Planes {
    /// Number of planes.
    pub count: u32,
    /// Number of nodes of one brick. Lines that move inside a brick use no plane.
    pub brick_nodes: u32,
    /// Time that one moving cache line occupies a plane.
    pub line: Cost,
    /// Time that one request for a cache line occupies a plane. Each CPU that waits for a moving line sends
    /// requests for the line, one at a time. Default: waiting CPUs send no requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Cost>,
}

/// Largest number of planes, and largest number of nodes in a brick.
const COUNT_MAX: u32 = 256;

impl Planes {
    pub(super) fn check(&self) -> Result<(), String> {
        for (key, value) in [("count", self.count), ("brick_nodes", self.brick_nodes)] {
            if !(1..=COUNT_MAX).contains(&value) {
                return Err(format!("planes.{key}: {value} is out of range; use 1 to {COUNT_MAX}"));
            }
        }
        self.line.check("planes.line")?;
        self.request.as_ref().map_or(Ok(()), |request| request.check("planes.request"))
    }
}
