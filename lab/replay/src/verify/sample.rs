//! Compares a sample of a CPU's page sets, from `/proc/zoneinfo`, with the model.

use pageset_core::pcp::Limits;
use pageset_trace::Event;

use super::classes::Class;
use super::doubt::Doubt;
use super::engine::Engine;
use super::links::Chunk;
use super::mode::Mode;
use crate::limits::to_i32;

/// The recorder writes a mark before and after each sample. The `pfn` of a mark has `MARK_BEFORE` or
/// `MARK_AFTER` from bit 24 on, and the CPU's number in the low 12 bits.
const MARK_BEFORE: u64 = 0x5a;
const MARK_AFTER: u64 = 0x5b;
const MARK_SHIFT: u32 = 24;
const MARK_CPU: u64 = 0xfff;
/// Maximum time from a mark to the beginning of the mark's sample, in nanoseconds.
const NEAR_NS: u64 = 2_000_000;

/// The kernel's upper limit of `high` may be less than the model's `high_max`, by at most a twelfth. The
/// kernel may compute its limit before boot memory comes back to the zone. The limit is then less (in a zone
/// of 320 MiB: by a 24th). A tick lowers `high` by an eighth, so a `high` below the limit is not mistaken for
/// the limit.
const BOOT_SHARE: i32 = 12;

impl Engine {
    /// Sets the limits of page sets to the limits that samples print. Before that, the largest printed `high`
    /// of a zone may become the `high_max` of the zone's page sets. The largest printed `high` becomes
    /// `high_max` only if it equals the model's `high_max`, or is less by at most a twelfth (`BOOT_SHARE`).
    pub(super) fn learn_limits(&mut self) {
        for zone in 0..self.geometry.zones.len() {
            let description = &self.geometry.zones[zone].description;
            let at = (description.node, description.kind);
            let printed =
                self.samples.iter().flat_map(|sample| &sample.zones).filter(|z| (z.node, z.kind) == at);
            let described = description.pagesets.iter().map(|set| set.high);
            let highs: Vec<u32> = printed.map(|zone| zone.high).chain(described).collect();
            let Some(&top) = highs.iter().max() else { continue };
            // Accept the largest `high` as the upper limit only if this value occurs more than once.
            if highs.iter().filter(|high| **high == top).count() < 2 {
                continue;
            }
            let top = to_i32(u64::from(top));
            let cpus = self.cpus.len();
            for set in &mut self.sets[zone * cpus..(zone + 1) * cpus] {
                let limits = &mut set.limits;
                if (limits.high_max - limits.high_max / BOOT_SHARE..=limits.high_max).contains(&top)
                    && limits.high_min < limits.high_max
                {
                    limits.high_max = top.max(limits.high_min);
                }
            }
        }
        for sample in &self.samples {
            for printed in &sample.zones {
                let (Some(high_min), Some(high_max)) = (printed.high_min, printed.high_max) else { continue };
                let zone = self.geometry.zones.iter_mut().position(|zone| {
                    (zone.description.node, zone.description.kind) == (printed.node, printed.kind)
                });
                let Some(zone) = zone.filter(|_| high_max > 0) else { continue };
                let set = zone * self.cpus.len() + sample.cpu as usize;
                if let Some(set) = self.sets.get_mut(set).filter(|_| (sample.cpu as usize) < self.cpus.len())
                {
                    set.limits = Limits {
                        batch: to_i32(u64::from(printed.batch)).max(1),
                        high_min: to_i32(u64::from(high_min)),
                        high_max: to_i32(u64::from(high_max)),
                    };
                }
            }
        }
    }

    /// Handles a mark, an event that the recorder writes before and after each sample of `/proc/zoneinfo`. At
    /// both marks of a sample, compares the simulated page sets with the sample.
    pub(super) fn marker(&mut self, chunk: &Chunk, index: usize) {
        let event = chunk.events[index];
        let cpu = usize::from(event.cpu);
        if event.pfn & MARK_CPU != cpu as u64 & MARK_CPU {
            return;
        }
        match event.pfn >> MARK_SHIFT {
            MARK_BEFORE => {
                self.cpus[cpu].sampling = self.sample_at(&event);
                if let Some(sample) = self.cpus[cpu].sampling {
                    self.compare_sample(chunk, index, sample, Moment::Before);
                }
            }
            MARK_AFTER => {
                if let Some(sample) = self.cpus[cpu].sampling.take() {
                    self.compare_sample(chunk, index, sample, Moment::After);
                }
            }
            _ => {}
        }
    }

    /// Returns the index of the sample that follows the mark `event`. Returns `None` for a mark after a
    /// sample.
    pub(super) fn sample_at(&mut self, event: &Event) -> Option<usize> {
        let state = self.cpus.get_mut(usize::from(event.cpu))?;
        if event.pfn >> MARK_SHIFT != MARK_BEFORE {
            return None;
        }
        while let Some(&next) = state.samples.last()
            && self.samples[next].t1_ns < event.ts_ns
        {
            state.samples.pop();
        }
        let next = *state.samples.last()?;
        (self.samples[next].t0_ns <= event.ts_ns.saturating_add(NEAR_NS)).then_some(next)
    }

    fn compare_sample(&mut self, chunk: &Chunk, index: usize, sample: usize, moment: Moment) {
        let cpu = self.samples[sample].cpu as usize;
        let zones = std::mem::take(&mut self.samples[sample].zones);
        for printed in &zones {
            let zone = self.geometry.zones.iter().position(|zone| {
                (zone.description.node, zone.description.kind) == (printed.node, printed.kind)
            });
            let Some(zone) = zone else { continue };
            let index_of_set = zone * self.cpus.len() + cpu;
            let (count, high) = (to_i32(u64::from(printed.count)), to_i32(u64::from(printed.high)));
            let set = &mut self.sets[index_of_set];
            let (count_equal, high_equal) = (set.pcp.count == count, set.pcp.high == high);
            match moment {
                // The kernel printed the sample's values at some moment between the two marks. A value of the
                // model counts as exact if it equals the printed value at one of the two marks.
                Moment::Before => {
                    set.sampled = (count_equal, high_equal, set.pcp.count);
                    continue;
                }
                Moment::After => {}
            }
            let (count_before, high_before, old) = set.sampled;
            let known = set.count_known;
            let is_late = known
                && !count_equal
                && !count_before
                && self.take_reported_late(chunk, index, index_of_set, old - count);
            let set = &mut self.sets[index_of_set];
            let old = if is_late { count } else { old };
            let (count_exact, high_exact) = (count_equal || count_before, high_equal || high_before);
            let is_possible = [old, set.pcp.count].into_iter().any(|model| {
                let (low, high) = set.doubt.bounds(model);
                (low..=high).contains(&count)
            });
            let undetermined = (!set.doubt.is_known() && is_possible || is_late) && high_exact;
            if known {
                self.out.samples.n += 1;
                self.out.undetermined.samples += u64::from(undetermined);
                self.out.samples.count_exact += u64::from(count_exact && !undetermined);
                self.out.samples.high_exact += u64::from(high_exact);
            }
            let (model_count, model_high) = (set.pcp.count, set.pcp.high);
            set.count_known = true;
            if self.mode == Mode::Step || !known && self.mode == Mode::Blind {
                // Correct the model's count by the error at the first mark. This keeps the changes that the
                // model made between the two marks.
                if !count_exact {
                    set.pcp.count += count - old;
                }
                (set.doubt, set.above_at_most) = (Doubt::default(), None);
                if !high_exact {
                    set.pcp.high = high;
                }
                self.geometry.zones[zone].pressure.set_visible(printed.free);
            }
            // If samples do not correct the model, a wrong value of the model stays wrong. So report a
            // difference between model and sample only if the last sample did not show the same difference.
            let error =
                if count_exact && high_exact { (0, 0) } else { (model_count - count, model_high - high) };
            let is_new = std::mem::replace(&mut self.sets[index_of_set].sample_error, error) != error;
            if known && !undetermined && !(count_exact && high_exact) && (is_new || self.mode == Mode::Step) {
                let class = self.class_of_sample(index_of_set);
                self.mismatch(chunk, index, class, index_of_set, || {
                    format!("sample: count {count}, high {high}; the model: {model_count}, {model_high}")
                });
            }
        }
        self.samples[sample].zones = zones;
    }

    fn class_of_sample(&self, set: usize) -> Class {
        if self.mode == Mode::Free { self.class_when_free(set) } else { self.count_class(set) }
    }
}

/// One of the two marks that the recorder writes around a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moment {
    Before,
    After,
}
