//! Searches for the value of one parameter.

use anyhow::{Context as _, Result};

/// Largest number of values that a search tries.
const STEPS: usize = 8;
/// The factor between the guess and the second value that the search tries. At each further step, the search
/// squares this factor.
const STRIDE: f64 = 1.15;
/// Accepted deviation of the result from the wanted result, as a fraction of the wanted result. The search
/// ends when the deviation is accepted.
const NEAR: f64 = 0.005;
/// Accepted deviation of the result from the wanted result, as a fraction of the rounding error. The search
/// also ends when this deviation is accepted.
const PART: f64 = 0.2;

/// The values that the search may try: all values from the first of the two `ends` to the second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    pub(crate) ends: (u64, u64),
    /// The value that the search tries first, for example the value of an earlier fit. Default: the geometric
    /// mean of the two ends.
    pub(crate) guess: Option<u64>,
    /// Whether the result rises when the parameter rises. If `rises` is false, the result falls.
    pub(crate) rises: bool,
}

/// Tries at most [`STEPS`] values, until a result is near `wanted`. The rounding error of `wanted` is
/// `rounding`. For a value of the parameter, `result` returns the result and any other data. `nearest`
/// returns the data of the result that is nearest to `wanted`. If `range` has a guess, the search moves away
/// from the guess in longer and longer strides, until `wanted` is between the results of two values. From
/// then on, the search bisects the range between these two values.
pub(crate) fn nearest<T>(
    range: Range,
    wanted: f64,
    rounding: f64,
    mut result: impl FnMut(u64) -> Result<(f64, T)>,
) -> Result<T> {
    let (mut low, mut high) = range.ends;
    let (mut tried_low, mut tried_high) = (range.guess.is_none(), range.guess.is_none());
    let mut stride = STRIDE;
    let mut value = range.guess.map_or_else(|| middle(low, high), |guess| guess.clamp(low, high));
    let mut nearest: Option<(f64, T)> = None;
    for _ in 0..STEPS {
        let (reached, found) = result(value)?;
        let distance = (reached - wanted).abs();
        if nearest.as_ref().is_none_or(|(least, _)| distance < *least) {
            nearest = Some((distance, found));
        }
        let is_low = (reached < wanted) == range.rises;
        let (end, tried) = if is_low { (&mut low, &mut tried_low) } else { (&mut high, &mut tried_high) };
        (*end, *tried) = (value, true);
        let next = match (tried_low, tried_high) {
            (true, true) => middle(low, high),
            (true, false) => ((value as f64 * stride).ceil() as u64).min(high),
            (false, _) => ((value as f64 / stride) as u64).max(low),
        };
        stride *= stride;
        if distance <= (NEAR * wanted.abs()).max(PART * rounding) || next == value {
            break;
        }
        value = next;
    }
    nearest.map(|(_, found)| found).context("the search tries at least one value")
}

/// Returns the geometric mean of two values. The search uses the geometric mean because parameters are times,
/// so ratios matter more than differences.
fn middle(low: u64, high: u64) -> u64 {
    ((low.max(1) as f64) * (high.max(1) as f64)).sqrt().round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(ends: (u64, u64), guess: Option<u64>, rises: bool) -> Range {
        Range { ends, guess, rises }
    }

    #[test]
    fn the_nearest_value_is_found_in_both_directions() {
        let square = |value: u64| Ok(((value * value) as f64, value));
        let inverse = |value: u64| Ok((1000.0 / value as f64, value));
        for guess in [None, Some(60), Some(101), Some(180)] {
            let found = nearest(search((1, 1000), guess, true), 10_000.0, 0.0, square).unwrap();
            assert!((95..=105).contains(&found), "{found} from {guess:?}");
            let found = nearest(search((1, 1000), guess, false), 10.0, 0.0, inverse).unwrap();
            assert!((95..=105).contains(&found), "{found} from {guess:?}");
        }
    }

    #[test]
    fn a_good_guess_is_found_soon() {
        let mut tries = 0;
        let found = nearest(search((1, 20_000), Some(950), true), 1000.0, 0.0, |value| {
            tries += 1;
            Ok((value as f64, value))
        });
        assert!((995..=1005).contains(&found.unwrap()) && tries <= 5, "{tries} tries");
    }

    #[test]
    fn what_cannot_be_reached_comes_near_the_end_and_errors_are_passed_on() {
        for guess in [None, Some(100), Some(1000)] {
            let identity = |value| Ok((value as f64, value));
            let found = nearest(search((1, 1000), guess, true), 1e9, 0.0, identity).unwrap();
            assert!(found > 950, "{found}");
        }
        let fails = |_| Result::<(f64, ())>::Err(anyhow::anyhow!("no"));
        assert!(nearest(search((1, 9), None, true), 1.0, 0.0, fails).is_err());
    }
}
