//! Describes the recording that a result comes from: in lines about lost events below a table, and in the
//! `trace` object of JSON documents.

use std::io::{self, Write};

use pageset_report::printable;
use pageset_trace::{Layout, LostEvents, TraceInfo};
use serde::Serialize;

use crate::layouts::{LayoutOrigin, LayoutSummary};

/// The description of a recording in JSON documents.
#[derive(Debug, Serialize)]
pub(crate) struct TraceDocument {
    /// Path of the recording, as the user typed it.
    path: String,
    /// Name of the recording, from the header of its file.
    name: Option<String>,
    /// Format of the file that the recorder wrote. After a conversion to `.pgtrace`, `format` still names the
    /// format from before the conversion.
    format: &'static str,
    kernel: Option<String>,
    /// The recorded command and its arguments.
    command: Vec<String>,
    events: u64,
    /// Time from the first to the last event, in seconds.
    seconds: Option<f64>,
    /// Number of CPUs of the recorded machine.
    cpus: Option<u32>,
    /// Names of the zones of the recorded machine.
    zones: Vec<String>,
    /// Numbers of events that are missing or could not be used, by reason.
    lost: LostEvents,
    /// Assumptions about facts that the recording lacks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    assumed: Vec<String>,
    machine: Option<LayoutSummary>,
}

impl TraceDocument {
    pub(crate) fn new(
        info: &TraceInfo,
        events: u64,
        seconds: Option<f64>,
        lost: LostEvents,
        machine: Option<&(Layout, LayoutOrigin)>,
    ) -> Self {
        let machine = machine.map(|(machine, origin)| LayoutSummary::new(machine, *origin));
        Self {
            path: info.path.display().to_string(),
            name: info.name.clone(),
            format: info.source.name(),
            kernel: info.kernel.clone(),
            command: info.command.clone(),
            events,
            seconds,
            cpus: machine.as_ref().map(|machine| machine.cpus).or(info.cpus),
            zones: machine.as_ref().map(LayoutSummary::zone_names).unwrap_or_default(),
            lost,
            assumed: info.assumed.clone(),
            machine,
        }
    }
}

/// Sentences about missing events. If no event is missing, one sentence says so.
pub(crate) fn lost_notes(lost: &LostEvents) -> Vec<String> {
    let missing = reasons([
        (lost.overrun, "overwritten in the kernel's buffer"),
        (lost.dropped, "dropped by the full buffer"),
        (lost.lost_in_text, "reported as lost in the text"),
        (lost.gaps_of_unknown_size, "gaps of unknown size"),
        (lost.malformed_lines, "malformed lines"),
        (lost.oversized_lines, "oversized lines"),
        (lost.taken, "taken from the kernel's buffer by another program"),
    ]);
    let unused = reasons([
        (lost.unknown_events, "events of other kinds skipped"),
        (lost.unrecognised_lines, "unrecognised lines skipped"),
        (lost.unknown_gfp_names, "unknown allocation flags"),
        (lost.out_of_order, "events out of order, kept"),
    ]);
    let is_cut = lost.damaged_blocks > 0;
    let mut notes = match missing {
        _ if is_cut => {
            let others = missing.map_or_else(String::new, |missing| format!("; before it, {missing}"));
            vec![
                format!("Lost events: unknown (the file is damaged, and read up to the damage{others})."),
                "Events are missing: small differences mean nothing.".to_owned(),
            ]
        }
        None => vec!["Lost events: 0.".to_owned()],
        Some(missing) => vec![
            match lost.gaps_of_unknown_size {
                0 => format!("Lost events: {} ({missing}).", lost.missing()),
                // A gap of unknown size counts as one event.
                _ => format!("Lost events: at least {} ({missing}).", lost.missing()),
            },
            "Events are missing: small differences mean nothing.".to_owned(),
        ],
    };
    notes.extend(unused.map(|unused| format!("The trace also has: {unused}.")));
    notes
}

/// Lists the counts that are not 0. `None` if all counts are 0.
fn reasons<const N: usize>(counts: [(u64, &str); N]) -> Option<String> {
    let found = counts.iter().filter(|(count, _)| *count > 0);
    let list: Vec<_> = found.map(|(count, reason)| format!("{count} {reason}")).collect();
    (!list.is_empty()).then(|| list.join(", "))
}

/// Prints a line for each fact that could not be recorded, with the reason.
pub(crate) fn print_not_recorded(out: &mut dyn Write, not_recorded: &[String]) -> io::Result<()> {
    for what in not_recorded {
        writeln!(out, "Not recorded: {}.", printable(what))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_told_by_reason() {
        assert_eq!(lost_notes(&LostEvents::default()), ["Lost events: 0."]);
        let cut = LostEvents { damaged_blocks: 1, ..LostEvents::default() };
        assert_eq!(
            lost_notes(&cut)[0],
            "Lost events: unknown (the file is damaged, and read up to the damage)."
        );
        let unknown = LostEvents { gaps_of_unknown_size: 2, taken: 5, ..LostEvents::default() };
        assert_eq!(
            lost_notes(&unknown)[0],
            "Lost events: at least 7 (2 gaps of unknown size, 5 taken from the kernel's buffer by another \
             program)."
        );
        let lost = LostEvents { overrun: 3, out_of_order: 1, ..LostEvents::default() };
        assert_eq!(
            lost_notes(&lost),
            [
                "Lost events: 3 (3 overwritten in the kernel's buffer).",
                "Events are missing: small differences mean nothing.",
                "The trace also has: 1 events out of order, kept.",
            ]
        );
    }
}
