//! An axis: its label, its range and its ticks.

/// The placement of values along an axis.
#[derive(Clone, Debug, PartialEq)]
pub enum Scale {
    /// The axis is linear, over the range of the values.
    Linear,
    /// The axis is linear, and includes 0.
    FromZero,
    /// The axis is logarithmic.
    Log,
    /// The axis shows names side by side. A value is the index of a name.
    Categories(Vec<String>),
}

/// One axis of a panel.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    pub(super) label: String,
    pub(super) unit: String,
    pub(super) scale: Scale,
}

impl Axis {
    /// Makes an axis with this label and unit. Label and unit may be empty.
    #[must_use]
    pub fn new(label: impl Into<String>, unit: impl Into<String>, scale: Scale) -> Self {
        Self { label: label.into(), unit: unit.into(), scale }
    }

    /// Makes a linear axis over the range of the values.
    #[must_use]
    pub fn linear(label: impl Into<String>, unit: impl Into<String>) -> Self {
        Self::new(label, unit, Scale::Linear)
    }

    /// Makes a linear axis that includes 0.
    #[must_use]
    pub fn from_zero(label: impl Into<String>, unit: impl Into<String>) -> Self {
        Self::new(label, unit, Scale::FromZero)
    }

    /// Makes a logarithmic axis.
    #[must_use]
    pub fn log(label: impl Into<String>, unit: impl Into<String>) -> Self {
        Self::new(label, unit, Scale::Log)
    }

    /// Makes an axis of names.
    #[must_use]
    pub fn categories<S: Into<String>>(label: impl Into<String>, names: impl IntoIterator<Item = S>) -> Self {
        let names = names.into_iter().map(Into::into).collect();
        Self::new(label, "", Scale::Categories(names))
    }

    /// The placement of values along the axis.
    #[must_use]
    pub fn scale(&self) -> &Scale {
        &self.scale
    }

    /// Label and unit, as printed beside the axis.
    pub(super) fn heading(&self) -> String {
        if self.unit.is_empty() { self.label.clone() } else { format!("{} ({})", self.label, self.unit) }
    }
}

/// Fraction of the range that stays free above and below the values of a linear axis.
const MARGIN: f64 = 0.05;

/// The limits of an axis, and its ticks.
#[derive(Clone, Debug)]
pub(super) struct Range {
    pub(super) low: f64,
    pub(super) high: f64,
    is_log: bool,
    pub(super) ticks: Vec<f64>,
    labels: Vec<String>,
}

impl Range {
    /// Finds the range of an axis with these values and about `ticks` ticks. The caller has passed the values
    /// to `check`.
    pub(super) fn of(axis: &Axis, values: impl Iterator<Item = f64>, ticks: usize) -> Self {
        let (low, high) = values
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        match &axis.scale {
            Scale::Categories(names) => {
                let ticks = (0..names.len()).map(|index| index as f64).collect();
                let high = names.len() as f64 - 0.5;
                Self { low: -0.5, high, is_log: false, ticks, labels: names.clone() }
            }
            Scale::Log => Self::log(low, high),
            Scale::FromZero => Self::linear(low.min(0.0), high.max(0.0), ticks),
            Scale::Linear => Self::linear(low, high, ticks),
        }
    }

    fn linear(low: f64, high: f64, ticks: usize) -> Self {
        let span = high - low;
        // A single value is placed in the middle of the axis.
        let flat = low.abs().max(1.0) * f64::EPSILON * 1024.0;
        let pad = if span <= flat { low.abs().max(high.abs()).max(1.0) * 0.5 } else { span * MARGIN };
        // An axis that begins at 0 has no margin below 0.
        let low = if low == 0.0 && span > flat { 0.0 } else { low - pad };
        let high = if high == 0.0 && span > flat { 0.0 } else { high + pad };
        let step = nice_step((high - low) / ticks.max(1) as f64);
        let first = (low / step).ceil();
        let count = ((high / step).floor() - first).clamp(0.0, 2.0 * ticks as f64 + 2.0) as usize;
        let ticks: Vec<_> = (0..=count).map(|index| (first + index as f64) * step).collect();
        let labels = ticks.iter().map(|tick| label(*tick, step)).collect();
        Self { low, high, is_log: false, ticks, labels }
    }

    fn log(low: f64, high: f64) -> Self {
        // Show a factor of two on both sides of a single value.
        let (low, high) = if low == high { (low / 2.0, high * 2.0) } else { (low / 1.15, high * 1.15) };
        let decades = high.log10() - low.log10();
        let every = (decades / 8.0).ceil().max(1.0);
        let within: &[f64] = if decades <= 1.5 {
            &[1.0, 2.0, 3.0, 5.0, 7.0]
        } else if decades <= 3.0 {
            &[1.0, 2.0, 5.0]
        } else {
            &[1.0]
        };
        let first = (low.log10().floor() / every).floor() as i32;
        let last = (high.log10().ceil() / every).ceil() as i32;
        let all = (first..=last).flat_map(|decade| {
            let power = 10_f64.powf(f64::from(decade) * every);
            within.iter().map(move |digit| digit * power)
        });
        let ticks: Vec<f64> = all.filter(|tick| (low..=high).contains(tick)).collect();
        let labels = ticks.iter().map(|tick| label(*tick, *tick)).collect();
        Self { low, high, is_log: true, ticks, labels }
    }

    /// The position of a value: 0 is the low end of the axis, and 1 the high end. A position far outside the
    /// axis, such as the edge of a bar, is limited to one axis length outside.
    pub(super) fn fraction(&self, value: f64) -> f64 {
        let fraction = if self.is_log {
            (value.ln() - self.low.ln()) / (self.high.ln() - self.low.ln())
        } else {
            (value - self.low) / (self.high - self.low)
        };
        fraction.clamp(-1.0, 2.0)
    }

    /// The label of a tick.
    pub(super) fn label_of(&self, tick: f64) -> String {
        let index = self.ticks.iter().position(|known| *known == tick);
        index.map(|index| self.labels[index].clone()).unwrap_or_default()
    }

    /// Number of characters of the longest label.
    pub(super) fn label_length_max(&self) -> usize {
        self.labels.iter().map(|label| label.chars().count()).max().unwrap_or(0)
    }

    /// Number of characters of all labels together.
    pub(super) fn label_length_sum(&self) -> usize {
        self.labels.iter().map(|label| label.chars().count() + 2).sum()
    }
}

/// Returns a number of the series 1, 2, 5, 10, … that is about as large as `step`.
fn nice_step(step: f64) -> f64 {
    let power = 10_f64.powf(step.log10().floor());
    let nice = [1.0, 2.0, 5.0].into_iter().find(|digit| digit * power >= step * 0.75);
    nice.unwrap_or(10.0) * power
}

/// Writes a tick with the decimals that the distance between ticks needs. Large numbers are written in powers
/// of 1000.
fn label(tick: f64, step: f64) -> String {
    let magnitude = tick.abs().max(step);
    if !(1e-4..1e15).contains(&magnitude) {
        return format!("{tick:.1e}");
    }
    let (divisor, suffix) = match magnitude {
        m if m >= 1e12 => (1e12, "T"),
        m if m >= 1e9 => (1e9, "G"),
        m if m >= 1e6 => (1e6, "M"),
        m if m >= 1e4 => (1e3, "k"),
        _ => (1.0, ""),
    };
    let (tick, step) = (tick / divisor, step / divisor);
    let decimals = (-step.log10().floor()).clamp(0.0, 6.0) as usize;
    let text = format!("{tick:.decimals$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    if text == "0" || text == "-0" { "0".to_owned() } else { format!("{text}{suffix}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn labels(axis: &Axis, values: &[f64], expected: &[&str]) {
        let range = Range::of(axis, values.iter().copied(), 5);
        assert_eq!(range.labels, expected);
        for value in values.iter().chain(&range.ticks) {
            assert!((0.0..=1.0).contains(&range.fraction(*value)), "{value} of {range:?}");
        }
    }

    #[test]
    fn linear_ticks_are_round() {
        labels(&Axis::linear("", ""), &[31.0, 511.0], &["100", "200", "300", "400", "500"]);
        labels(&Axis::from_zero("", ""), &[43.6, 9.4], &["0", "10", "20", "30", "40"]);
        labels(&Axis::from_zero("", ""), &[-3.0, 2.0], &["-3", "-2", "-1", "0", "1", "2"]);
        labels(&Axis::linear("", ""), &[0.01, 0.03], &["0.01", "0.015", "0.02", "0.025", "0.03"]);
        labels(&Axis::from_zero("", ""), &[18_160_468.0], &["0", "5M", "10M", "15M"]);
    }

    #[test]
    fn logarithmic_ticks_are_decades_or_parts_of_them() {
        labels(&Axis::log("", ""), &[1.0, 1e6], &["1", "10", "100", "1000", "10k", "100k", "1M"]);
        labels(&Axis::log("", ""), &[3.0, 40.0], &["3", "5", "7", "10", "20", "30"]);
        labels(&Axis::log("", ""), &[5.0, 5.0], &["3", "5", "7", "10"]);
    }

    #[test]
    fn a_single_value_stands_in_the_middle() {
        let range = Range::of(&Axis::linear("", ""), [7.0].into_iter(), 5);
        assert!((range.fraction(7.0) - 0.5).abs() < 1e-12);
        labels(&Axis::linear("", ""), &[0.0], &["-0.4", "-0.2", "0", "0.2", "0.4"]);
    }

    #[test]
    fn categories_stand_at_their_indices() {
        let axis = Axis::categories("policy", ["base", "patch1"]);
        labels(&axis, &[0.0, 1.0], &["base", "patch1"]);
        assert_eq!(axis.heading(), "policy");
    }

    #[test]
    fn the_heading_has_the_unit() {
        assert_eq!(Axis::linear("zone lock", "% of CPU time").heading(), "zone lock (% of CPU time)");
    }
}
