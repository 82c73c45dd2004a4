//! What the kernel counted, for recordings that keep no events.

use serde::{Deserialize, Serialize};

/// Hits of tracepoints on all CPUs that were recorded, and how they are known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counts {
    /// For how long was counted, in nanoseconds.
    pub elapsed_ns: u64,
    /// CPUs on which was counted.
    pub cpus: u32,
    /// One of each tracepoint that the kernel has.
    pub tracepoints: Vec<TracepointCount>,
}

/// Hits of one tracepoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TracepointCount {
    /// Group and name, as a path below tracefs' `events`.
    pub name: String,
    /// Hits that were counted.
    pub counted: u64,
    /// For how long it was switched on, in nanoseconds: the mean of the CPUs.
    pub counted_ns: u64,
    /// Hits in all the time; `None` if it was switched on too rarely to say.
    pub hits: Option<HitEstimate>,
}

/// How many hits there were in all the time, with 95 % confidence. All three are the same if all hits were counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HitEstimate {
    /// The lower end of the interval.
    pub low: u64,
    /// The estimate.
    pub hits: u64,
    /// The upper end of the interval.
    pub high: u64,
}

impl HitEstimate {
    /// Whether each hit was counted.
    #[must_use]
    pub const fn is_exact(self) -> bool {
        self.low == self.high
    }
}

impl Counts {
    /// Hits of this tracepoint; `None` if the kernel does not have it, or it was switched on too rarely.
    #[must_use]
    pub fn hits(&self, name: &str) -> Option<HitEstimate> {
        self.tracepoints.iter().find(|tracepoint| tracepoint.name == name)?.hits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_survive_json_and_are_found_by_name() {
        let estimate = HitEstimate { low: 1, hits: 2, high: 3 };
        let count = |name: &str, hits| TracepointCount { name: name.into(), counted: 1, counted_ns: 5, hits };
        let counts = Counts {
            elapsed_ns: 10,
            cpus: 2,
            tracepoints: vec![count("kmem/mm_page_free", Some(estimate)), count("kmem/mm_page_alloc", None)],
        };
        let json = serde_json::to_string(&counts).unwrap();
        assert_eq!(serde_json::from_str::<Counts>(&json).unwrap(), counts);
        assert_eq!(counts.hits("kmem/mm_page_free"), Some(estimate));
        // Too rarely switched on, and not there: both are unknown.
        assert_eq!(counts.hits("kmem/mm_page_alloc"), None);
        assert_eq!(counts.hits("kmem/mm_page_pcpu_refill"), None);
        assert!(!estimate.is_exact());
    }
}
