//! A search for the value of one parameter.

use anyhow::{Context as _, Result};

/// Values tried. Each halves the range, on a logarithmic scale: of a range of 1 to 200, 2 % are left.
const STEPS: usize = 8;
/// A part of the wanted result that is near enough.
const NEAR: f64 = 0.005;
/// A part of the rounding that is near enough.
const PART: f64 = 0.2;

/// Halves the range until a value is found whose result comes near the wanted one, which is known to within `rounding`, and
/// returns what `result` returned beside the nearest one. `rises` says whether results rise with the value; else they fall.
pub(crate) fn nearest<T>(
    (mut low, mut high): (u64, u64),
    wanted: f64,
    rounding: f64,
    rises: bool,
    mut result: impl FnMut(u64) -> Result<(f64, T)>,
) -> Result<T> {
    let mut nearest: Option<(f64, T)> = None;
    for _ in 0..STEPS {
        // The geometric middle: parameters are times, of which a quotient counts.
        let middle = ((low.max(1) as f64) * (high.max(1) as f64)).sqrt().round() as u64;
        let (reached, found) = result(middle)?;
        let distance = (reached - wanted).abs();
        if nearest.as_ref().is_none_or(|(least, _)| distance < *least) {
            nearest = Some((distance, found));
        }
        if distance <= (NEAR * wanted.abs()).max(PART * rounding) || middle <= low || middle >= high {
            break;
        }
        *(if (reached < wanted) == rises { &mut low } else { &mut high }) = middle;
    }
    nearest.map(|(_, found)| found).context("at least one value was tried")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_value_is_found_in_both_directions() {
        let square = |value: u64| Ok(((value * value) as f64, value));
        let found = nearest((1, 1000), 10_000.0, 0.0, true, square).unwrap();
        assert!((95..=105).contains(&found), "{found}");
        let inverse = |value: u64| Ok((1000.0 / value as f64, value));
        let found = nearest((1, 1000), 10.0, 0.0, false, inverse).unwrap();
        assert!((95..=105).contains(&found), "{found}");
    }

    #[test]
    fn what_cannot_be_reached_comes_near_the_end_and_errors_are_passed_on() {
        let found = nearest((1, 1000), 1e9, 0.0, true, |value| Ok((value as f64, value))).unwrap();
        assert!(found > 950, "{found}");
        assert!(
            nearest((1, 9), 1.0, 0.0, true, |_| Result::<(f64, ())>::Err(anyhow::anyhow!("no"))).is_err()
        );
    }
}
