//! Random draws of paths and applications, rounded so that they can be written in a line.

use std::time::Duration;

use sutura_random::Rng;

/// A number from `low` to `high`, of which each ratio is equally likely; both are above 0.
pub fn log_uniform(rng: &mut Rng, low: f64, high: f64) -> f64 {
    low * (high / low).powf(rng.unit())
}

/// A number from `low` to `high`.
pub fn uniform(rng: &mut Rng, low: f64, high: f64) -> f64 {
    low + (high - low) * rng.unit()
}

/// The number with three significant digits.
pub fn rounded(value: f64) -> f64 {
    format!("{value:.2e}").parse().unwrap_or(value)
}

/// A share, 0 to 1, with three significant digits, as text of a link.
pub fn share(value: f64) -> String {
    format!("{}", rounded(value.clamp(0.0, 1.0)))
}

/// Milliseconds; below 100, to the tenth.
pub fn millis(value: f64) -> Duration {
    if value < 100.0 {
        Duration::from_micros(100 * (10.0 * value).round() as u64)
    } else {
        Duration::from_millis(value.round() as u64)
    }
}

/// One of `kinds`, with its weight.
pub fn pick<T: Copy>(rng: &mut Rng, kinds: &[(T, u64)]) -> Option<T> {
    let mut place = rng.below(kinds.iter().map(|(_, weight)| weight).sum());
    let chosen = kinds.iter().find(|(_, weight)| {
        let here = place < *weight;
        place = place.saturating_sub(*weight);
        here
    });
    chosen.map(|(kind, _)| *kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_stay_in_their_ranges() {
        let mut rng = Rng::new(1);
        let values: Vec<f64> = (0..1000).map(|_| log_uniform(&mut rng, 1.0, 100.0)).collect();
        assert!(values.iter().all(|value| (1.0..=100.0).contains(value)));
        let below = values.iter().filter(|value| **value < 10.0).count();
        assert!((450..550).contains(&below), "{below}");
        let mut picked = [0; 2];
        (0..1000).for_each(|_| picked[pick(&mut rng, &[(0, 1), (1, 3)]).unwrap()] += 1);
        assert!((200..300).contains(&picked[0]), "{picked:?}");
        assert_eq!(
            (rounded(12_345.0), share(0.012_345), millis(1.23)),
            (12_300.0, "0.0123".to_owned(), Duration::from_micros(1200))
        );
    }
}
