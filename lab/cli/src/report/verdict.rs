//! The page's section with the verdict of `advise`, and with a summary of the recording.

use pageset_replay::report_data::ReportData;
use pageset_report::command_line;
use pageset_report::page::{Part, Section};

use crate::layouts::{LayoutOrigin, LayoutSummary};

/// The number of the verdict's sentences that stand before the facts about the recording. The further
/// sentences of the verdict follow the facts about the recording.
const LEAD: usize = 3;

pub(super) fn section(report_data: &ReportData, heading: String) -> Section {
    let advice = &report_data.examined.advice;
    let mut section = Section::new(heading);
    let (lead, rest) = advice.sentences.split_at(advice.sentences.len().min(LEAD));
    lead.iter().for_each(|sentence| section.push(Part::Lead(sentence.clone())));
    section.push(Part::Facts(facts(report_data)));
    rest.iter().for_each(|sentence| section.push(Part::Text(sentence.clone())));
    advice.warnings.iter().for_each(|warning| section.push(Part::Text(format!("Note: {warning}"))));
    section
}

fn facts(report_data: &ReportData) -> Vec<(String, String)> {
    let advice = &report_data.examined.advice;
    let findings = &advice.findings;
    let unknown = || "unknown".to_owned();
    let machine = report_data.examined.info.machine.as_ref();
    let machine = machine.map(|machine| LayoutSummary::new(machine, LayoutOrigin::Recorded).line());
    let command = command_line(&advice.command);
    let policy = advice.policy.as_ref().map_or_else(unknown, Clone::clone);
    [
        ("Machine", machine.unwrap_or_else(unknown)),
        ("Kernel", advice.kernel.clone().unwrap_or_else(unknown)),
        ("Its policy", policy),
        ("Command", if command.is_empty() { unknown() } else { command }),
        ("Length", format!("{:.3} s", findings.seconds)),
        ("Events", findings.events.to_string()),
        ("Events lost", findings.lost_events.to_string()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}
