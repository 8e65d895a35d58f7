//! How fast a cost grows.

/// The exponent b of the power a x^b that is nearest to points (x, y): the slope of the straight line with the
/// least squares through their logarithms. Points at or below zero are left out. `None` with fewer than two
/// values of x.
pub fn exponent(points: &[(f64, f64)]) -> Option<f64> {
    let placed = points.iter().filter(|(x, y)| *x > 0.0 && *y > 0.0);
    let logs: Vec<_> = placed.map(|(x, y)| (x.ln(), y.ln())).collect();
    let mean = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / logs.len() as f64;
    let x_mean = mean(&mut logs.iter().map(|log| log.0));
    let y_mean = mean(&mut logs.iter().map(|log| log.1));
    let spread: f64 = logs.iter().map(|(x, _)| (x - x_mean).powi(2)).sum();
    let common: f64 = logs.iter().map(|(x, y)| (x - x_mean) * (y - y_mean)).sum();
    (spread > 0.0).then(|| common / spread)
}

/// The points whose x is at least a tenth of the largest.
pub fn last_decade(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let largest = points.iter().fold(0.0_f64, |largest, (x, _)| largest.max(*x));
    // Tenths are not exact.
    points.iter().filter(|(x, _)| *x >= largest / 10.0 * 0.999).copied().collect()
}

/// What an exponent means.
pub fn word(exponent: f64) -> &'static str {
    match exponent {
        e if e < -0.05 => "falls",
        e if e <= 0.05 => "flat",
        e if e < 0.3 => "grows slowly",
        e if e < 0.9 => "grows, less than linearly",
        e if e <= 1.1 => "linear",
        _ => "more than linear",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn power(a: f64, b: f64) -> Vec<(f64, f64)> {
        [1.0, 10.0, 100.0, 1000.0].map(|x: f64| (x, a * x.powf(b))).to_vec()
    }

    #[test]
    fn the_exponent_of_a_power_is_found() {
        for (b, meaning) in [
            (0.0, "flat"),
            (0.5, "grows, less than linearly"),
            (1.0, "linear"),
            (2.0, "more than linear"),
            (-1.0, "falls"),
        ] {
            let found = exponent(&power(7000.0, b)).unwrap();
            assert!((found - b).abs() < 1e-9, "{found} instead of {b}");
            assert_eq!(word(found), meaning);
        }
    }

    #[test]
    fn a_cost_with_a_fixed_part_is_linear_only_at_the_end() {
        let points: Vec<_> =
            power(1.0, 1.0).into_iter().map(|(x, y)| (x, 10_000.0 + 100.0 * y)).collect();
        let (all, end) = (exponent(&points).unwrap(), exponent(&last_decade(&points)).unwrap());
        // log10(110,000 / 20,000)
        assert!((end - 0.740_36).abs() < 1e-4, "{end}");
        // The slopes from point to point are 0.0374, 0.2596 and 0.7404, and weigh 0.3, 0.4 and 0.3.
        assert!((all - 0.337_2).abs() < 1e-3, "{all}");
    }

    #[test]
    fn points_without_a_logarithm_are_left_out() {
        let mut points = power(3.0, 1.0);
        points.extend([(0.0, 5.0), (10_000.0, 0.0)]);
        assert!((exponent(&points).unwrap() - 1.0).abs() < 1e-9);
        assert_eq!(exponent(&[(0.0, 1.0), (5.0, 1.0)]), None);
        assert_eq!(exponent(&[]), None);
        assert_eq!(last_decade(&power(1.0, 0.0)), [(100.0, 1.0), (1000.0, 1.0)]);
    }
}
