//! The page's section of evidence: missing events, assumptions, the tables of `stat`, and the provenance of
//! the numbers.

use pageset_replay::report_data::ReportData;
use pageset_report::Provenance;
use pageset_report::page::{Part, Section};

use crate::{origin, stat};

/// Maximum rows of a table on the page. Only recordings of many CPUs have tables with more rows than this
/// number.
const ROWS_MAX: usize = 2000;

pub(super) fn section(report_data: &ReportData, provenance: &Provenance, heading: String) -> Section {
    let examined = &report_data.examined;
    let mut section = Section::new(heading);
    for lost in origin::lost_notes(&examined.survey.lost) {
        section.push(Part::Text(lost));
    }
    for assumed in examined.info.assumptions(examined.info.machine.as_ref()) {
        section.push(Part::Text(assumed));
    }
    for what in &examined.info.not_recorded {
        section.push(Part::Text(format!("Not recorded: {what}.")));
    }
    // The table of orders is in another section, beside its explanation.
    for each in
        stat::sections(&examined.info, &examined.survey).into_iter().filter(|each| each.key != "orders")
    {
        let rows = each.table.rows().len();
        section.push(if each.table.columns().is_empty() {
            Part::Text(format!("{}: {}", each.table.title(), each.table.notes().join(" ")))
        } else if rows > ROWS_MAX {
            Part::Text(format!("{}: {rows} rows; `pageset stat` prints all rows.", each.table.title()))
        } else {
            Part::Evidence(each.table)
        });
    }
    let facts = provenance.facts().into_iter().map(|(name, value)| (name.to_owned(), value));
    section.push(Part::Facts(facts.collect()));
    section
}
