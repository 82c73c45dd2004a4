//! The length of a measurement.

use std::time::Duration;

/// Windows and sizes of all jobs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// Whether `--quick` was given. A parent passes it to its children.
    pub(crate) is_quick: bool,
    /// Seed of a row whose value depends on chance. Each round has a different seed, which is the same for
    /// all targets.
    pub(crate) seed: u64,
    /// How long operations are repeated for one value.
    pub(crate) window: Duration,
    /// How long passes over many pages are repeated. The last pass is finished.
    pub(crate) budget: Duration,
    /// The most passes over many pages.
    pub(crate) passes: usize,
    /// Operations timed one by one.
    pub(crate) samples: usize,
    /// Bytes of the bursts whose resident memory is read later. Values are scaled to 1 GiB.
    pub(crate) burst: usize,
    /// How long after a burst resident memory is read; `None` skips a reading.
    pub(crate) waits: [Option<Duration>; 3],
}

impl Effort {
    /// The settings of the published table.
    pub(crate) const FULL: Self = Self {
        is_quick: false,
        seed: 0,
        window: Duration::from_millis(50),
        budget: Duration::from_millis(300),
        passes: 20,
        samples: 1_000_000,
        burst: 1 << 30,
        waits: [Some(Duration::ZERO), Some(Duration::from_secs(1)), Some(Duration::from_secs(10))],
    };

    /// At most a minute for everything.
    pub(crate) const QUICK: Self = Self {
        is_quick: true,
        seed: 0,
        window: Duration::from_millis(10),
        budget: Duration::from_millis(20),
        passes: 5,
        samples: 100_000,
        burst: 1 << 26,
        waits: [Some(Duration::ZERO), Some(Duration::from_secs(1)), None],
    };

    /// The least work that shows whether a job works at all.
    #[cfg(test)]
    pub(crate) const TINY: Self = Self {
        window: Duration::from_millis(1),
        budget: Duration::ZERO,
        passes: 1,
        samples: 1000,
        burst: 1 << 22,
        waits: [Some(Duration::ZERO), None, None],
        ..Self::QUICK
    };
}
