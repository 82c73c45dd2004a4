//! Extra work of page_fault2 for each fault beside page_fault1, chosen on the rows of batch 31.
//!
//! Both benchmarks print their scores in faults, on the same machines, so their ratio needs no translation.
//! Our machines are faster than the published ones under contention, so absolute scores would not do.

use std::path::Path;

use anyhow::{Context as _, Result};
use pageset_replay::file::Existing;
use pageset_report::Progress;

use super::phase_two::{COPY_PARAMETER, COPY_RANGE, COPYING};
use super::{phase_one, phase_two};
use crate::jobs::{self, Stage};
use crate::reproduce::simulated::{Case, Fitted, FittedValue, Range, nearest, set};
use crate::simulate::{RunSpec, simulate};

/// Chooses the values for all machines, and writes each one when it is found.
pub(super) fn fit(fitted: &mut Fitted, file: &Path, jobs: usize, progress: &mut dyn Progress) -> Result<()> {
    let ones = phase_one::experiments(true)?;
    let twos = phase_two::experiments(true)?;
    let two = twos.iter().find(|experiment| experiment.id == COPYING).context("page_fault2 is missing")?;
    let two = fitted.applied(two);
    let mut pairs = Vec::new();
    for case in two.cases.iter().filter(|case| case.base.is_none()) {
        let id = phase_one::id(&case.run.machine);
        let one = ones.iter().find(|one| one.id == id).with_context(|| format!("no table {id}"))?;
        let first = fitted.applied(one).cases.into_iter().next();
        pairs.push((case.clone(), first.with_context(|| format!("{id} is empty"))?));
    }
    let mut stage = Stage::begin(progress, "fitting", "base rows", pairs.len());
    jobs::each(
        &pairs,
        jobs,
        |(two, one)| search(two, one),
        |_, value| {
            fitted.insert(value?);
            fitted.write(file, Existing::Replace)?;
            Ok(stage.step()?)
        },
    )
}

/// Searches the value that comes nearest to the published ratio. More work makes the score lower.
fn search(two: &Case, one: &Case) -> Result<FittedValue> {
    let printed = |case: &Case| case.published.first().copied().flatten();
    let (upper, lower) = printed(two).zip(printed(one)).context("a row of batch 31 is not printed")?;
    let wanted = 100.0 * upper / lower;
    let of_one = simulate(&one.run)?.score_per_s;
    let guess = two.run.settings.get(COPY_PARAMETER).copied();
    let range = Range { ends: COPY_RANGE, guess, rises: false };
    let (value, reached) = nearest(range, wanted, 0.0, |value| {
        let reached = 100.0 * score(&two.run, value)? / of_one;
        Ok((reached, (value, reached)))
    })?;
    let in_tenths = |percent: f64| (10.0 * percent).round() / 10.0;
    Ok(FittedValue {
        table: COPYING.to_owned(),
        row: two.name.clone(),
        parameter: COPY_PARAMETER.to_owned(),
        value,
        column: "value in percent of page_fault1's".to_owned(),
        published: in_tenths(wanted),
        reached: in_tenths(reached),
    })
}

fn score(run: &RunSpec, value: u64) -> Result<f64> {
    let mut run = run.clone();
    set(&mut run, COPY_PARAMETER, value);
    Ok(simulate(&run)?.score_per_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_machine_has_a_value_and_all_its_rows_use_it() {
        let fitted = Fitted::bundled().unwrap();
        let twos = phase_two::experiments(false).unwrap();
        let copying = twos.iter().filter(|two| two.id.contains("page_fault2"));
        for case in copying.flat_map(|two| fitted.applied(two).cases) {
            let machine = case.name.split(' ').next().unwrap();
            let value = fitted.get(COPYING, &format!("{machine} 31"), COPY_PARAMETER);
            assert!(value.is_some(), "{machine}");
            assert_eq!(case.run.settings.get(COPY_PARAMETER).copied(), value, "{}", case.name);
        }
        // Each value is set in one place only: where it was chosen, or where it is borrowed.
        let sets = twos.iter().map(|two| {
            let fits = two.fits.iter().map(|fit| fit.parameter);
            let borrowed = two.borrowed.iter().map(|borrowed| borrowed.parameter);
            (
                fits.filter(|of| *of == COPY_PARAMETER).count(),
                borrowed.filter(|of| *of == COPY_PARAMETER).count(),
            )
        });
        assert!(sets.into_iter().all(|(fits, borrowed)| fits == 0 || borrowed == 0));
        let fits = twos.iter().find(|two| two.id == COPYING).map(|two| two.fits.len());
        assert_eq!(fits, Some(9));
    }
}
