//! One zone of memory and random numbers, for a load of random requests.

use pageset_core::{Config, NodeId, ZoneConfig, ZoneKind};

/// Calls `run` with the configuration of one zone, whose every frame can be allocated, and one CPU.
pub(crate) fn with_zone(frames: u64, run: impl FnOnce(&Config<'_>)) {
    let regions = [0..frames];
    let zones = [ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span: 0..frames, regions: &regions }];
    let nodes = [NodeId(0)];
    let mut config = Config::new(&zones, &nodes);
    config.min_free_kbytes = Some(0);
    run(&config);
}

/// A generator of random numbers with this seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}
