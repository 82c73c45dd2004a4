//! Checks of the parsers of plans, rows, studies and fitted parameters, for fuzz targets and for ordinary
//! tests. The assertions of each check must hold for any input.

use std::collections::HashSet;

use pageset_study::simulate::RunSpec;

use crate::sweep::{Ending, Extent, Plan, Rows, runs};
use crate::{Fitted, StudyFile};

/// Largest number of runs of a plan that [`sweep_plan`] checks. Checks of plans with more runs take longer
/// and find no further bugs.
const RUNS_MAX: usize = 10_000;

/// Checks the parser of plans. In a plan that the parser accepts, no run occurs twice, and the plan has at
/// most as many runs as `Plan::runs` says. The text of each run parses to the same run.
pub fn sweep_plan(text: &str) {
    let Ok(plan) = Plan::parse(text) else { return };
    if plan.runs() > RUNS_MAX {
        return;
    }
    let runs = runs(&plan);
    assert!((1..=plan.runs()).contains(&runs.len()), "{} of {}", runs.len(), plan.runs());
    let mut seen = HashSet::new();
    for run in runs {
        let written = serde_json::to_string(&run).expect("a run has only text and numbers");
        assert_eq!(serde_json::from_str::<RunSpec>(&written).expect("a run is read"), run);
        assert!(seen.insert(written), "a plan has each run only once");
    }
}

/// Checks the parser of rows. If the file parses, the parser ignores only an incomplete last line, and the
/// other lines parse again to the same rows. The text of each row parses to the same row.
pub fn sweep_rows(bytes: &[u8]) {
    let mut rows = Rows::default();
    let Ok(Extent { rows: kept, ending }) = rows.read_from(&mut &bytes[..]) else { return };
    let kept = usize::try_from(kept).expect("the kept part is no longer than the input");
    let whole_lines = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    match ending {
        Ending::Line => assert_eq!(kept, bytes.len()),
        Ending::Row => assert_eq!(kept, bytes.len()),
        Ending::Half => assert_eq!(kept, whole_lines),
    }
    let mut file = bytes[..kept].to_vec();
    if ending == Ending::Row {
        file.push(b'\n');
    }
    assert_eq!(read(&file), rows);
    let written: Vec<_> = rows.all().flat_map(|run| run.line().expect("a row is written")).collect();
    assert_eq!(read(&written), rows);
}

/// Reads rows from bytes that contain only complete rows.
fn read(bytes: &[u8]) -> Rows {
    let mut rows = Rows::default();
    let extent = rows.read_from(&mut &bytes[..]).expect("these are rows");
    assert_eq!(extent, Extent { rows: bytes.len() as u64, ending: Ending::Line });
    rows
}

/// Checks the parser of study files. If the parser accepts a study file, all tables of the study can be made.
/// The published values are a small example.
pub fn study(text: &str) {
    let Ok(study) = StudyFile::fuzzed(text) else { return };
    study.check().expect("`read` accepted the study, so its tables can be made");
}

/// The first lines of a file of fitted parameters.
pub const FITTED_HEADING: &str = Fitted::HEADING;

/// Checks the parser of fitted parameters. If the parser accepts a file, the parser also accepts the text
/// that `Fitted::text` writes from the parameters. The parameters of the written text give the same text
/// again.
pub fn fitted(text: &str) {
    let Ok(fitted) = Fitted::parse(text) else { return };
    let written = fitted.text().expect("parameters are written");
    let again = Fitted::parse(&written).expect("written parameters can be read again");
    assert_eq!(again.text().expect("parameters are written"), written);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls `parse` with damaged copies of a text. Some copies end after a part of the text, and some copies
    /// have one changed byte.
    fn damaged(text: &str, mut parse: impl FnMut(&[u8])) {
        for at in 0..=text.len() {
            parse(&text.as_bytes()[..at]);
            let mut bytes = text.as_bytes().to_vec();
            for byte in [0, b'\n', b'"', b'9', 0xff] {
                bytes.iter_mut().skip(at).take(1).for_each(|place| *place = byte);
                parse(&bytes);
            }
        }
    }

    fn text(bytes: &[u8]) -> String {
        String::from_utf8_lossy(bytes).into_owned()
    }

    #[test]
    fn no_damaged_plan_is_a_panic() {
        let plan = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies/batch-sizes.toml"));
        damaged(plan, |bytes| sweep_plan(&text(bytes)));
    }

    #[test]
    fn no_damaged_file_of_rows_is_a_panic() {
        let spec = serde_json::to_string(&RunSpec::new("epyc-2", "page_fault1", "linux-6.12")).unwrap();
        let row =
            |digit| format!("{{\"key\":\"{digit:032x}\",\"spec\":{spec},\"result\":{{\"score\":0.1}}}}\n");
        damaged(&(row(1) + &row(2)), sweep_rows);
    }

    #[test]
    fn no_damaged_study_is_a_panic() {
        let own = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies/my-study.toml"));
        damaged(own, |bytes| study(&text(bytes)));
        assert!(StudyFile::fuzzed(own).is_ok());
    }

    #[test]
    fn no_damaged_parameters_are_a_panic() {
        let bundled = Fitted::bundled().unwrap().text().unwrap();
        damaged(&bundled[..600], |bytes| fitted(&text(bytes)));
        fitted(&bundled);
    }
}
