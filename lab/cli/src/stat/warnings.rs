//! Warns readers about numbers of a recording that are unknown, or that changed settings affect.

use pageset_replay::Survey;
use pageset_replay::recorded::needs;
use pageset_trace::{SettingChange, TraceInfo};

/// Sentences on facts that the recording lacks, and on settings that changed while the recording was made.
pub(super) fn warnings(info: &TraceInfo, survey: &Survey) -> Vec<String> {
    // For a recording of counts, the tables themselves mark each unknown number.
    let unsaid = survey.recorded.unsaid_beside(needs::VISITS, needs::WAITS).filter(|_| info.counts.is_none());
    let unsaid = unsaid.map(|why| format!("`-` is unknown. {why}"));
    let changes = info.setting_changes.iter().map(|change| {
        let SettingChange { name, from, to, before_ns, .. } = change;
        let seconds = before_ns.saturating_sub(survey.time.map_or(0, |time| time.first_ns)) as f64 / 1e9;
        format!("vm.{name} changed from {from} to {to}, {seconds:.1} s after the first event.")
    });
    let astray = survey.time.and_then(|time| time.astray_sentence());
    unsaid.into_iter().chain(astray).chain(survey.extent.part(info)).chain(changes).collect()
}
