//! Describes the kernel's settings: their values when a recording began, and when a setting changed.

use pageset_replay::report_data::ReportData;
use pageset_report::page::Change;
use pageset_trace::{SettingChange, Sysctls};

/// Returns one line with the values of all known settings that affect page sets.
pub(super) fn in_force(report_data: &ReportData) -> String {
    let known = report_data.settings.as_ref().map(named).unwrap_or_default();
    if known.is_empty() {
        return "unknown".to_owned();
    }
    let known: Vec<_> = known.into_iter().map(|(name, value)| format!("vm.{name}={value}")).collect();
    known.join(", ")
}

/// Returns the names and values of the settings whose values are known.
pub(super) fn named(settings: &Sysctls) -> Vec<(&'static str, String)> {
    let Sysctls {
        percpu_pagelist_high_fraction,
        min_free_kbytes,
        watermark_scale_factor,
        watermark_boost_factor,
        lowmem_reserve_ratio,
        stat_interval_s,
        numa_stat,
    } = settings;
    let text = |value: Option<u64>| value.map(|value| value.to_string());
    let ratio: Vec<_> = lowmem_reserve_ratio.iter().map(u32::to_string).collect();
    let all = [
        ("percpu_pagelist_high_fraction", text(percpu_pagelist_high_fraction.map(u64::from))),
        ("min_free_kbytes", text(*min_free_kbytes)),
        ("watermark_scale_factor", text(watermark_scale_factor.map(u64::from))),
        ("watermark_boost_factor", text(watermark_boost_factor.map(u64::from))),
        ("lowmem_reserve_ratio", Some(ratio.join(" ")).filter(|ratio| !ratio.is_empty())),
        ("stat_interval", text(stat_interval_s.map(u64::from))),
        ("numa_stat", text(numa_stat.map(u64::from))),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// Returns the changes of settings, with their times in seconds since the first event.
pub(super) fn changes(report_data: &ReportData) -> Vec<Change> {
    let first_ns = report_data.timeline.first_ns;
    let second = |ns: u64| ns.saturating_sub(first_ns) as f64 / 1e9;
    let change = |change: &SettingChange| {
        let (after, before) = (second(change.after_ns), second(change.before_ns));
        let SettingChange { name, from, to, .. } = change;
        let text = format!("vm.{name} changed from {from} to {to} between {after:.3} s and {before:.3} s");
        Change { after, before, text }
    };
    report_data.changes.iter().map(change).collect()
}
