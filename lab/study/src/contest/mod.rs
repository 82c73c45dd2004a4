//! Repeats the allocations and frees of a recording on whole allocators: Linux's under several policies, and
//! this project's own.
//!
//! A [replay](pageset_replay::replay()) repeats a recording on page sets only, and a page set handles all
//! pages alike. In a whole allocator, pages differ: which pages are freed decides whether a pageblock becomes
//! whole. So a contest allocates each block that the recording allocates, and later frees this block. Each
//! operation runs on the recorded CPU, in the recorded order.
//!
//! `recording` holds the operations. `allocator_kind` builds an allocator for the recorded machine. `stage`
//! repeats the recorded operations on the allocator. `page_set_lines` counts changes of a page set that
//! another CPU changed last. `row` has the resulting counts.

mod allocator_kind;
mod page_set_lines;
mod recording;
mod row;
mod stage;

pub use allocator_kind::AllocatorKind;
pub(crate) use allocator_kind::Host;
pub use pageset_replay::operations::LeftOut;
pub use recording::Recording;
pub use row::ContestRow;

use pageset_core::ConfigError;
use pageset_trace::{Layout, TraceError};

/// The reason why a recording cannot be repeated on an allocator.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ContestError {
    /// The recording cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The layout does not describe a possible machine.
    #[error("the machine cannot be built: {0}; give another one with --layout")]
    Layout(String),
    /// The machine is so large that its tables would take gigabytes.
    #[error("the machine is too large: {0}; give a smaller one with --layout")]
    TooLarge(String),
    /// There is no memory for the blocks in use.
    #[error(
        "there is no memory for {mib} MiB of blocks in use; free some memory, or raise the limit (`ulimit -v`, the \
         control group)"
    )]
    Memory {
        /// How much, in MiB.
        mib: usize,
    },
    /// The file with the recording's allocations and frees cannot be read.
    #[error(
        "the file with the recording's allocations and frees, below $TMPDIR, cannot be read: {0}; try again"
    )]
    File(std::io::Error),
    /// An allocator cannot be built for the machine.
    #[error("no allocator for this machine: {0}; give another one with --layout")]
    Config(#[from] ConfigError),
}

/// Largest number of frames of a machine: 1 TiB in frames of 4 KiB. The tables for 2^28 free frames take
/// 1.3 GiB.
const MOST_FRAMES: u64 = 1 << 28;
/// Largest number of pairs of a zone and a CPU on a machine. For each pair, the tables take several KiB.
const MOST_CPU_ZONES: u64 = 1 << 17;

impl Recording {
    /// Repeats the recording on an allocator of the given kind, for the given machine. All memory of the
    /// machine is free before the first operation. The running time of `play` grows with the number of
    /// events, and its need for memory grows with the size of the machine.
    ///
    /// # Errors
    /// Returns a [`ContestError`] if the machine is impossible.
    pub fn play(&self, machine: &Layout, kind: &AllocatorKind) -> Result<ContestRow, ContestError> {
        machine.check().map_err(ContestError::Layout)?;
        check_size(machine)?;
        kind.play(machine, self)
    }
}

fn check_size(machine: &Layout) -> Result<(), ContestError> {
    let frames = machine.zones.iter().fold(0_u64, |sum, zone| sum.saturating_add(zone.managed));
    let cpu_zones = (machine.zones.len() as u64).saturating_mul(u64::from(machine.cpus));
    for (what, count, most) in
        [("frames", frames, MOST_FRAMES), ("pairs of a CPU and a zone", cpu_zones, MOST_CPU_ZONES)]
    {
        if count > most {
            return Err(ContestError::TooLarge(format!(
                "it has {count} {what}, and at most {most} are allowed"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use pageset_core::policy::LINUX_6_18;
    use pageset_core::{MigrateType, Order, ZoneKind};
    use pageset_replay::operations::{BlockName, Operation, What};
    use pageset_replay::recordings::bundled;

    use super::*;

    /// A machine with some tens of MiB of memory.
    fn small_layout() -> Layout {
        let mut machine = bundled().unwrap().info().machine.clone().unwrap();
        for zone in &mut machine.zones {
            for frames in [&mut zone.spanned, &mut zone.present, &mut zone.managed] {
                *frames = (*frames).min(8192);
            }
        }
        machine
    }

    fn kinds() -> impl Iterator<Item = AllocatorKind> {
        [AllocatorKind::Linux(Box::new(LINUX_6_18))].into_iter().chain(AllocatorKind::OURS)
    }

    /// A recording of two events. CPU 0 allocates a page at `allocated_ns`, and the CPU `cpu` frees the page
    /// at `freed_ns`.
    fn recording(allocated_ns: u64, freed_ns: u64, cpu: u16) -> Recording {
        let (block, order, migratetype) = (BlockName::Alone(0), Order::ZERO, MigrateType::Movable);
        let alloc = What::Alloc { block, order, migratetype, highest: ZoneKind::Normal };
        let operations = [
            Operation { ts_ns: allocated_ns, cpu: 0, what: alloc },
            Operation { ts_ns: freed_ns, cpu, what: What::Free { block } },
        ];
        Recording { operations: operations.into_iter().collect(), slots: 1, ..Recording::default() }
    }

    #[test]
    fn a_silence_of_centuries_ends_and_any_cpu_is_one_of_the_machines() {
        for (allocated_ns, freed_ns) in [(0, u64::MAX), (u64::MAX, u64::MAX), (u64::MAX, 0)] {
            for kind in kinds() {
                let played = recording(allocated_ns, freed_ns, u16::MAX).play(&small_layout(), &kind);
                let row = played.unwrap();
                assert_eq!((row.allocs, row.failures), (1, 0), "{kind:?}");
                assert!(row.whole_when_gone >= row.whole_at_end, "{kind:?}");
            }
        }
    }

    #[test]
    fn allocators_are_found_by_their_names() {
        for kind in kinds() {
            assert_eq!(AllocatorKind::named(kind.name()), Some(kind));
        }
        assert_eq!(AllocatorKind::named("doom"), None);
    }

    #[test]
    fn a_machine_that_is_too_large_is_an_error() {
        let mut machine = small_layout();
        let zone = machine.zones.last_mut().unwrap();
        (zone.spanned, zone.present, zone.managed) = (1 << 40, 1 << 40, 1 << 40);
        for kind in kinds() {
            let error = recording(0, 1, 1).play(&machine, &kind).unwrap_err().to_string();
            assert!(error.contains("too large") && error.contains("--layout"), "{error}");
        }
    }
}
