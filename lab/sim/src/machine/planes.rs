//! Planes: networks side by side that connect the nodes of a large machine.

use serde::{Deserialize, Serialize};

use super::Cost;

/// The planes between the bricks of a machine. The address of a line decides which plane carries it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Planes {
    /// Number of planes.
    pub count: u32,
    /// Nodes of one brick. Lines inside a brick use no plane.
    pub brick_nodes: u32,
    /// Time that a line occupies a plane when it moves.
    pub line: Cost,
    /// Time that a request of a CPU that waits for a line occupies a plane. Each such CPU has one
    /// request under way while the line moves. Default: CPUs wait without requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Cost>,
}

/// Most planes, and most nodes of a brick.
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
