//! Axes: the positions of values, and ticks.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use serde::Serialize;

use super::step;

/// How an axis places values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// Linearly.
    #[default]
    Linear,
    /// By their logarithms. Values at or below zero cannot be placed.
    Log,
}

/// An axis of a chart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Axis {
    /// The label: the meaning of the values, with their unit.
    pub label: String,
    /// How values are placed.
    pub scale: Scale,
}

impl Axis {
    /// A linear axis.
    pub fn linear(label: impl Into<String>) -> Self {
        Self { label: label.into(), scale: Scale::Linear }
    }

    /// A logarithmic axis.
    pub fn log(label: impl Into<String>) -> Self {
        Self { label: label.into(), scale: Scale::Log }
    }

    /// Whether a value can be placed on the axis.
    pub(super) fn has(&self, value: f64) -> bool {
        value.is_finite()
            && match self.scale {
                Scale::Linear => true,
                Scale::Log => value > 0.0,
            }
    }

    /// The extent of the axis that covers `values`.
    pub(super) fn over(&self, values: impl Iterator<Item = f64>) -> Extent {
        let values = values.filter(|value| self.has(*value));
        let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (value.min(low), value.max(high))
        });
        match self.scale {
            Scale::Linear => linear(low, high),
            Scale::Log => log(low, high),
        }
    }
}

/// The part of an axis that a chart shows.
#[derive(Clone, Debug)]
pub(super) struct Extent {
    scale: Scale,
    range: Range<f64>,
    ticks: Vec<f64>,
}

/// The approximate number of ticks.
const TICKS: f64 = 8.0;

/// From tick to tick, enclosing all values.
fn linear(low: f64, high: f64) -> Extent {
    let (low, high) = if low <= high { (low, high) } else { (0.0, 1.0) };
    let middle = low / 2.0 + high / 2.0;
    // If all values are the same, the axis is centred on them.
    let length = (high - low).min(f64::MAX / 4.0).max(middle.abs() * 1e-9);
    let unit = step(if length > 1e-9 { length } else { 1.0 }, TICKS);
    let first = (low / unit).floor();
    let count = ((high / unit).ceil() - first).clamp(1.0, 3.0 * TICKS);
    let ticks: Vec<f64> = (0..=count as u32).map(|n| (first + f64::from(n)) * unit).collect();
    Extent { scale: Scale::Linear, range: first * unit..(first + count) * unit, ticks }
}

/// Slightly more than the range of the values.
fn log(low: f64, high: f64) -> Extent {
    let (low, high) = if low <= high { (low * 0.9, high * 1.1) } else { (0.9, 1.1) };
    let decades = low.log10().floor() as i32..=high.log10().ceil() as i32;
    let ticks = |steps: &[f64], every: usize| -> Vec<f64> {
        let decades = decades.clone().step_by(every);
        let all = decades.flat_map(|e| steps.iter().map(move |step| step * 10f64.powi(e)));
        all.filter(|tick| (low..=high).contains(tick)).collect()
    };
    let sparse = decades.clone().count().div_ceil(TICKS as usize);
    let choices = [ticks(&[1.0, 2.0, 5.0], 1), ticks(&[1.0, 3.0], 1), ticks(&[1.0], sparse)];
    let fits = |ticks: &&Vec<f64>| ticks.len() as f64 <= TICKS;
    let chosen = choices.iter().find(fits).cloned().unwrap_or_default();
    // Within a fraction of a decade, the steps of a linear axis are more useful.
    let linear = || linear(low, high).ticks.into_iter().filter(|t| (low..=high).contains(t));
    let ticks = if chosen.len() > 1 { chosen } else { linear().collect() };
    Extent { scale: Scale::Log, range: low..high, ticks }
}

impl Extent {
    /// The position of a value, 0 to 1 within the extent.
    fn place(&self, value: f64) -> f64 {
        let Range { start, end } = self.range;
        match self.scale {
            Scale::Linear => (value - start) / (end - start),
            Scale::Log => (value / start).ln() / (end / start).ln(),
        }
    }
}

impl Ranged for Extent {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (from, to): (i32, i32)) -> i32 {
        from + (f64::from(to - from) * self.place(*value)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        // "Light points" are the lines between ticks.
        if hint.weight().allow_light_points() { Vec::new() } else { self.ticks.clone() }
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

impl ValueFormatter<f64> for Extent {
    fn format_ext(&self, value: &f64) -> String {
        if *value != 0.0 && !(1e-6..1e9).contains(&value.abs()) {
            return format!("{value:.0e}");
        }
        // As many digits as a step has, without rounding noise from summing steps.
        ((value * 1e9).round() / 1e9).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis, values: &[f64]) -> Vec<String> {
        let extent = axis.over(values.iter().copied());
        extent.ticks.iter().map(|tick| extent.format_ext(tick)).collect()
    }

    #[test]
    fn linear_axes_begin_and_end_at_ticks() {
        let axis = Axis::linear("");
        assert_eq!(labels(&axis, &[0.3, 0.0]), ["0", "0.05", "0.1", "0.15", "0.2", "0.25", "0.3"]);
        assert_eq!(labels(&axis, &[127.0, f64::NAN, 1512.0])[..2], ["0", "200"]);
        assert_eq!(axis.over([52.0, 401.0].into_iter()).range, 50.0..450.0);
    }

    #[test]
    fn an_axis_is_never_empty() {
        for values in [&[][..], &[3.0], &[0.0], &[1e300, -1e300], &[4.6e18], &[1e-300]] {
            for axis in [Axis::linear(""), Axis::log("")] {
                let Extent { range, ticks, .. } = axis.over(values.iter().copied());
                assert!(range.start < range.end && range.end.is_finite(), "{values:?} {range:?}");
                assert!(ticks.len() <= 25, "{values:?} {ticks:?}");
            }
        }
    }

    #[test]
    fn values_stand_where_their_logarithms_are() {
        let axis = Axis::log("");
        let extent = axis.over([10.0, 1000.0, -5.0, f64::NAN].into_iter());
        assert!(
            (extent.place(9.0) - 0.0).abs() < 1e-9 && (extent.place(1100.0) - 1.0).abs() < 1e-9
        );
        assert!((extent.place((9.0f64 * 1100.0).sqrt()) - 0.5).abs() < 1e-9);
        assert_eq!(extent.map(&9.0, (100, 0)), 100);
        assert_eq!(labels(&axis, &[10.0, 1000.0]), ["10", "20", "50", "100", "200", "500", "1000"]);
        assert_eq!(labels(&axis, &[1e-5, 1.0])[..2], ["0.00001", "0.0001"]);
        assert_eq!(labels(&axis, &[1.0, 1.2]), ["0.9", "1", "1.1", "1.2", "1.3"]);
    }
}
