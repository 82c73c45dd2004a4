//! The zones of x86-64: the kinds of memory of a PC.

use core::ops::Range;

use pageset_core::{NodeId, ZoneConfig, ZoneKind};

use crate::pieces::{MAX_PIECES, Pieces};

// ANCHOR: bounds
/// The beginning of each kind of zone, in frames of 4 KiB. Devices on the ISA bus reach 16 MiB, other 32-bit
/// devices 4 GiB.
const BOUNDS: [(ZoneKind, Range<u64>); 3] =
    [(ZoneKind::Dma, 0..1 << 12), (ZoneKind::Dma32, 1 << 12..1 << 20), (ZoneKind::Normal, 1 << 20..u64::MAX)];
// ANCHOR_END: bounds

/// Zones of a machine.
pub(crate) struct Zones {
    zones: [(ZoneKind, Range<u64>); BOUNDS.len()],
    len: usize,
}

impl Zones {
    /// The zones for these pieces. A zone begins where its kind begins, not at its first piece, because OSTD
    /// frees its own frames at the beginning later.
    pub(crate) fn of(pieces: &Pieces) -> Self {
        let mut zones = Self { zones: BOUNDS, len: 0 };
        for (kind, bound) in BOUNDS {
            let last = pieces.iter().filter_map(|piece| clip(&piece, &bound)).last();
            if let Some(last) = last {
                zones.zones[zones.len] = (kind, bound.start..last.end);
                zones.len += 1;
            }
        }
        zones
    }

    pub(crate) fn spans(&self) -> impl DoubleEndedIterator<Item = Range<u64>> {
        self.zones[..self.len].iter().map(|(_, span)| span.clone())
    }

    /// Calls `with` with the zones and these pieces, in the form that the allocators need.
    pub(crate) fn with_config<T>(&self, pieces: &Pieces, with: impl FnOnce(&[ZoneConfig<'_>]) -> T) -> T {
        let mut regions = [const { [const { 0..0 }; MAX_PIECES] }; BOUNDS.len()];
        let mut counts = [0; BOUNDS.len()];
        for ((regions, count), span) in regions.iter_mut().zip(&mut counts).zip(self.spans()) {
            let inside = pieces.iter().filter_map(|piece| clip(&piece, &span));
            for (region, piece) in regions.iter_mut().zip(inside) {
                *region = piece;
                *count += 1;
            }
        }
        let config = core::array::from_fn::<_, { BOUNDS.len() }, _>(|at| {
            let (kind, span) = self.zones[at].clone();
            ZoneConfig { kind, node: NodeId(0), span, regions: &regions[at][..counts[at]] }
        });
        with(&config[..self.len])
    }
}

fn clip(piece: &Range<u64>, bound: &Range<u64>) -> Option<Range<u64>> {
    let inside = piece.start.max(bound.start)..piece.end.min(bound.end);
    (!inside.is_empty()).then_some(inside)
}
