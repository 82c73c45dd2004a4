//! Finds the ticks of a replay. If the recording has events of ticks, all ticks come from these events. If
//! the recording has no events of ticks, all ticks come from the clock.

use pageset_core::CpuId;
use pageset_trace::{Event, Layout, TraceError, TraceReader};

use super::act::Act;
use super::load::PageSetLoad;

/// Maximum number of ticks of each CPU that are played after a pause in the events. After this number of
/// ticks all page sets are idle, so further ticks would change nothing.
const MOST_INTERVALS: u32 = 100;

/// The periodic work of the CPUs.
#[derive(Debug)]
pub(super) enum Ticks {
    /// Ticks are the recorded starts of `vmstat_update`.
    Recorded,
    /// Ticks come from the clock: in each interval, every CPU has one tick.
    Interval {
        interval_s: u32,
        /// The time of the next tick; `None` before the first event.
        due_ns: Option<u64>,
    },
}

impl Ticks {
    /// Chooses recorded ticks if the recording has any, and ticks by the clock otherwise.
    /// `progress` is called from time to time.
    pub(super) fn find(
        reader: &mut dyn TraceReader,
        machine: &Layout,
        progress: &mut dyn FnMut(),
    ) -> Result<Self, TraceError> {
        Ok(if reader.has_ticks(progress)? { Self::Recorded } else { Self::by_the_clock(machine) })
    }

    pub(super) fn by_the_clock(machine: &Layout) -> Self {
        Self::Interval { interval_s: machine.sysctls.stat_interval_s.unwrap_or(1).max(1), due_ns: None }
    }

    /// Seconds between two ticks by the clock.
    pub(super) const fn interval_s(&self) -> Option<u32> {
        match self {
            Self::Recorded => None,
            Self::Interval { interval_s, .. } => Some(*interval_s),
        }
    }

    /// If `event` is a recorded tick, adds this tick. If ticks come from the clock, adds the ticks that were
    /// due since the last event.
    pub(super) fn bring(&mut self, event: &Event, cpus: u32, acts: &mut impl Extend<Act>) {
        let (interval_ns, due_ns) = match self {
            Self::Recorded => {
                if event.is_tick() && event.cpu_id().0 < cpus {
                    acts.extend([PageSetLoad::tick(event.cpu_id())]);
                }
                return;
            }
            Self::Interval { interval_s, due_ns } => (u64::from(*interval_s) * 1_000_000_000, due_ns),
        };
        let now_ns = event.ts_ns;
        let due_ns = due_ns.get_or_insert(now_ns.saturating_add(interval_ns));
        for _ in 0..MOST_INTERVALS {
            if *due_ns > now_ns {
                return;
            }
            acts.extend((0..cpus).map(|cpu| PageSetLoad::tick(CpuId(cpu))));
            *due_ns = due_ns.saturating_add(interval_ns);
        }
        *due_ns = (*due_ns).max(now_ns.saturating_add(interval_ns));
    }
}

#[cfg(test)]
mod tests {
    use pageset_trace::{
        BLOCK_EVENTS_MAX, EventKind, LostEvents, NativeWriter, OpenOptions, TraceInfo, WriteOptions,
    };

    use super::*;
    use crate::replay::tests::small_layout;

    const SECOND: u64 = 1_000_000_000;

    /// Returns the ticks of a recording of ten seconds. The recording has more frees than fit into a block of
    /// events, and then the events `last`.
    fn ticks(last: &[Event]) -> (Ticks, Vec<Act>) {
        let step_ns = 10 * SECOND / BLOCK_EVENTS_MAX as u64;
        let frees =
            (0..=BLOCK_EVENTS_MAX as u64).map(|at| Event::new(EventKind::MmPageFree, at * step_ns, 0));
        let events: Vec<Event> = frees.chain(last.iter().copied()).collect();
        let mut writer =
            NativeWriter::new(Vec::new(), &TraceInfo::default(), WriteOptions::new().level(1)).unwrap();
        writer.write(&events).unwrap();
        let bytes = writer.finish(LostEvents::default()).unwrap().0;
        let mut reader = OpenOptions::new().open_bytes("t.pgtrace".as_ref(), bytes).unwrap();
        let machine = small_layout();
        let mut ticks = Ticks::find(reader.as_mut(), &machine, &mut || {}).unwrap();
        let (mut block, mut acts) = (Vec::new(), Vec::new());
        while reader.read_block(&mut block).unwrap() > 0 {
            block.iter().for_each(|event| ticks.bring(event, machine.cpus, &mut acts));
        }
        (ticks, acts)
    }

    fn work(order: u8, ts_ns: u64, cpu: u16) -> Event {
        Event { order, ..Event::new(EventKind::WorkqueueExecuteStart, ts_ns, cpu) }
    }

    #[test]
    fn a_first_tick_in_a_later_block_silences_the_clock() {
        let (ticks, acts) = ticks(&[work(1, 10 * SECOND, 1), work(1, 10 * SECOND, 77)]);
        assert_eq!(ticks.interval_s(), None);
        assert_eq!(acts, [PageSetLoad::tick(CpuId(1))], "CPU 77 does not exist");
    }

    #[test]
    fn work_without_a_known_function_leaves_the_ticks_to_the_clock() {
        let (ticks, acts) = ticks(&[work(0, 10 * SECOND, 1), work(2, 10 * SECOND, 1)]);
        assert_eq!(ticks.interval_s(), Some(1));
        let both: Vec<Act> = (0..2).map(|cpu| PageSetLoad::tick(CpuId(cpu))).collect();
        assert_eq!(acts, both.repeat(10));
    }

    #[test]
    fn a_jump_in_time_is_bounded() {
        let machine = small_layout();
        let (mut ticks, mut acts) = (Ticks::by_the_clock(&machine), Vec::new());
        for ts_ns in [0, u64::MAX] {
            ticks.bring(&Event::new(EventKind::MmPageFree, ts_ns, 0), machine.cpus, &mut acts);
        }
        assert_eq!(acts.len(), (MOST_INTERVALS * machine.cpus) as usize);
    }
}
