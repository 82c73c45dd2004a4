//! Finds the longest part of a recording without a change of a setting. A kernel's decisions depend on its
//! settings, so a forecast or comparison must not include a change of a setting.

use pageset_trace::{
    Amount, Event, Layout, LostEvents, SettingChange, Sysctls, TraceError, TraceInfo, TraceReader,
};

use crate::replay::VmSettings;

/// The first words of a recorder's note that a setting changed at an unknown time.
const UNTIMED: &str = "when vm.";
/// Settings that do not affect page sets.
const IDLE: [&str; 1] = ["numa_stat"];

/// A recording, or its longest part without a change of a setting.
pub struct OneSetting<R> {
    reader: R,
    info: TraceInfo,
    /// The time when the part begins, and the time when it ends. The end does not belong to the part. `None`
    /// if the part is the whole recording.
    part: Option<(u64, u64)>,
    said: Option<String>,
}

/// Describes the change of a setting at an unknown time. `None` if there was no such change.
#[must_use]
pub fn untimed(info: &TraceInfo) -> Option<String> {
    let change = info.not_recorded.iter().find_map(|what| what.strip_prefix(UNTIMED))?;
    Some(format!("vm.{change}"))
}

impl<R: TraceReader> OneSetting<R> {
    /// Limits `reader` to the longest part of its recording without a change of a setting.
    ///
    /// # Errors
    /// An error if a setting changed and the recording does not say when.
    pub fn new(reader: R) -> Result<Self, TraceError> {
        let info = reader.info();
        if let Some(change) = untimed(info) {
            let problem =
                format!("This recording does not say when {change}, and forecasts are of one setting");
            let remedy = "record again while no setting changes".to_owned();
            return Err(TraceError::File { path: info.path.clone(), problem, remedy });
        }
        let decides = |change: &&SettingChange| !IDLE.contains(&change.name.as_str());
        let changes: Vec<SettingChange> = info.setting_changes.iter().filter(decides).cloned().collect();
        let mut info = info.clone();
        info.setting_changes.clear();
        if changes.is_empty() {
            return Ok(Self { reader, info, part: None, said: None });
        }
        let part @ (from_ns, to_ns) = longest(&info, &changes);
        let said = said(&info, &changes, part);
        narrow(&mut info, &changes, part);
        info.t_on_ns = info.t_on_ns.map(|on_ns| on_ns.max(from_ns));
        info.t_off_ns = info.t_off_ns.map(|off_ns| off_ns.min(to_ns));
        Ok(Self { reader, info, part: Some(part), said: Some(said) })
    }

    /// Returns the whole recording, even if its settings changed. Events can be counted under any setting.
    pub fn whole(reader: R) -> Self {
        let info = reader.info().clone();
        Self { reader, info, part: None, said: None }
    }

    /// A sentence with the part and the reason for choosing it. `None` if the part is the whole recording.
    #[must_use]
    pub fn said(&self) -> Option<&str> {
        self.said.as_deref()
    }
}

/// Finds the longest part under one setting. The part lasts from the first to the last time when its settings
/// were seen.
fn longest(info: &TraceInfo, changes: &[SettingChange]) -> (u64, u64) {
    let begin = info.t_on_ns.unwrap_or(0);
    // If the end of the recording is not known, use the time of the last sample, which is taken near the end.
    let last_sample = || info.samples.last().map_or(begin, |sample| sample.t1_ns);
    let end = info.t_off_ns.unwrap_or_else(last_sample);
    let starts = std::iter::once(begin).chain(changes.iter().map(|change| change.before_ns.max(begin)));
    let ends = changes.iter().map(|change| change.after_ns.min(end)).chain([end]);
    let parts = starts.zip(ends).map(|(from, to)| (from, to.max(from)));
    let (from, to) = parts.max_by_key(|(from, to)| to - from).unwrap_or((begin, end));
    // Events may lie before the beginning and after the end of the recording.
    let from = if from == begin && changes.iter().all(|change| change.before_ns > begin) { 0 } else { from };
    (from, if to == end { u64::MAX } else { to })
}

fn said(info: &TraceInfo, changes: &[SettingChange], (from_ns, to_ns): (u64, u64)) -> String {
    let begin = info.t_on_ns.unwrap_or(0);
    let seconds = |ns: u64| ns.saturating_sub(begin) as f64 / 1e9;
    let named = changes.iter().take(3).map(|change| {
        let SettingChange { name, from, to, before_ns, .. } = change;
        format!("vm.{name} changed from {from} to {to} after {:.1} s", seconds(*before_ns))
    });
    let more = changes.len().saturating_sub(3);
    let more = if more > 0 { format!(", and settings changed {more} more times") } else { String::new() };
    let part = match (from_ns, to_ns) {
        (0, to) => format!("its first {:.1} s", seconds(to)),
        (from, u64::MAX) => format!("what comes after {:.1} s", seconds(from)),
        (from, to) => format!("{:.1} s to {:.1} s", seconds(from), seconds(to)),
    };
    format!(
        "{}{more}. The results are about the longest part of the recording without a change of settings: {part}.",
        named.collect::<Vec<_>>().join(", ")
    )
}

/// Mends the description of a part: removes the facts that hold only for the whole recording, and changes the
/// settings to those at the part's beginning.
fn narrow(info: &mut TraceInfo, changes: &[SettingChange], (from_ns, to_ns): (u64, u64)) {
    info.samples.retain(|sample| sample.t0_ns >= from_ns && sample.t1_ns < to_ns);
    (info.pgalloc_delta, info.pgfree_delta, info.events) = (None, None, None);
    if to_ns < u64::MAX {
        info.after = None;
    }
    if from_ns == 0 {
        return;
    }
    // The contents of page sets at the beginning of the part are not known.
    info.before = None;
    if let Some(machine) = &mut info.machine {
        let past = changes.iter().filter(|change| change.before_ns <= from_ns);
        *machine = under(machine, past);
        machine.zones.iter_mut().for_each(|zone| zone.pagesets.clear());
    }
}

/// Returns the machine with its settings after these changes.
fn under<'c>(machine: &Layout, changes: impl Iterator<Item = &'c SettingChange>) -> Layout {
    let mut settings = VmSettings::default();
    let mut machine = machine.clone();
    for SettingChange { name, to, .. } in changes {
        let sysctls: &mut Sysctls = &mut machine.sysctls;
        match name.as_str() {
            "watermark_boost_factor" => sysctls.watermark_boost_factor = to.parse().ok(),
            "lowmem_reserve_ratio" => {
                sysctls.lowmem_reserve_ratio =
                    to.split_ascii_whitespace().map_while(|ratio| ratio.parse().ok()).collect();
            }
            _ => {
                if let Ok(one) = format!("vm.{name}={to}").parse() {
                    settings = settings.and(one);
                }
            }
        }
    }
    settings.applied(&machine)
}

impl<R: TraceReader> TraceReader for OneSetting<R> {
    fn info(&self) -> &TraceInfo {
        &self.info
    }

    fn amount(&self) -> Amount {
        self.reader.amount().or_events(self.info.events)
    }

    fn read_block(&mut self, events: &mut Vec<Event>) -> Result<usize, TraceError> {
        let Some((from_ns, to_ns)) = self.part else { return self.reader.read_block(events) };
        while self.reader.read_block(events)? > 0 {
            events.retain(|event| (from_ns..to_ns).contains(&event.ts_ns));
            if !events.is_empty() {
                break;
            }
        }
        Ok(events.len())
    }

    fn has_ticks(&mut self, progress: &mut dyn FnMut()) -> Result<bool, TraceError> {
        self.reader.has_ticks(progress)
    }

    fn lost(&self) -> LostEvents {
        self.reader.lost()
    }
}
