//! Parses times and sizes that people type with a unit, and writes sizes with a unit.

use std::time::Duration;

/// Parses a time with its unit, such as `5m`.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    const UNITS: [(&str, f64); 4] = [("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
    let seconds = with_unit(text, &UNITS).and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let time = seconds.filter(|time| !time.is_zero());
    time.ok_or_else(|| "write a time like 500ms, 10s, 5m or 1h".to_owned())
}

/// Parses a number without a sign and its unit, and returns their product.
fn with_unit(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let end = text.find(|character: char| !character.is_ascii_digit() && character != '.')?;
    let (number, unit) = text.split_at(end);
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    Some(number.parse::<f64>().ok()? * factor)
}

/// Parses bytes with their unit, such as `64M`.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 3] = [("K", 1 << 10), ("M", 1 << 20), ("G", 1 << 30)];
    let parsed = || {
        let end = text.find(|character: char| !character.is_ascii_digit())?;
        let (number, unit) = text.split_at(end);
        let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit)?;
        number.parse::<u64>().ok()?.checked_mul(*factor).filter(|bytes| *bytes > 0)
    };
    parsed().ok_or_else(|| "write a size like 512K, 64M or 1G".to_owned())
}

/// Returns a number of bytes as text, in the unit that suits its size.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} B"),
        10_000..10_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_have_units() {
        let times = [("10s", 10_000), ("500ms", 500), ("1.5s", 1500), ("60m", 3_600_000), ("1h", 3_600_000)];
        for (typed, ms) in times {
            assert_eq!(time(typed), Ok(Duration::from_millis(ms)), "{typed}");
        }
        assert_eq!(bytes("64M"), Ok(64 << 20));
        for wrong in ["", "10", "s", "0s", "-1s", "1..5s", "10 s", "nans", "infs", "1e9s", "é"] {
            assert!(time(wrong).is_err() && bytes(wrong).is_err(), "{wrong:?}");
        }
        assert!(time("99999999999999999999h").is_err() && bytes("1.5K").is_err());
    }

    #[test]
    fn sizes_keep_three_digits_or_more() {
        assert_eq!([9999, 52_456, 25_000_000].map(size), ["9999 B", "52.5 kB", "25.0 MB"]);
    }
}
