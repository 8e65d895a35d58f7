//! What is printed of a figure that was measured a few times.

use std::fmt;

/// Median, smallest and largest of some values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    pub median: f64,
    pub min: f64,
    pub max: f64,
}

impl Spread {
    /// `None` if there are no values.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let upper = *values.get(values.len() / 2)?;
        let lower = *values.get((values.len() - 1) / 2)?;
        Some(Self { median: (lower + upper) / 2.0, min, max })
    }
}

impl fmt::Display for Spread {
    /// Two digits behind the point, or as many as the format's precision.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(2);
        let Self { median, min, max } = self;
        write!(f, "{median:.digits$} [{min:.digits$} {max:.digits$}]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_between_the_two_in_the_middle() {
        assert_eq!(Spread::of([]), None);
        let odd = Spread::of([3.0, 1.0, 2.0]);
        assert_eq!(odd, Some(Spread { median: 2.0, min: 1.0, max: 3.0 }));
        let even = Spread::of([4.0, 1.0, 2.0, 3.0]);
        assert_eq!(even, Some(Spread { median: 2.5, min: 1.0, max: 4.0 }));
    }

    #[test]
    fn text_has_the_digits_asked_for() {
        let spread = Spread { median: 1.25, min: 1.0, max: 12.346 };
        assert_eq!(format!("{spread}"), "1.25 [1.00 12.35]");
        assert_eq!(format!("{spread:.0}"), "1 [1 12]");
    }
}
