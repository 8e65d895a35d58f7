//! Space-filling designs: points that cover a space of parameters evenly.
//!
//! An experiment over a grid of a few values of each parameter shows only those values, and an experiment
//! over random points leaves parts of the space out. A design has each parameter at many values and no two
//! points close to each other.

use sutura_random::Rng;

/// How many exchanges are tried for each point and dimension.
const TRIES: usize = 50;
/// The power to which distances are raised in the criterion: the higher, the more the shortest
/// distance alone decides.
const POWER: i32 = 20;

/// The values of a parameter from the lowest to the highest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// The lowest value.
    pub low: f64,
    /// The highest value.
    pub high: f64,
}

impl Range {
    /// The value at `share`, 0 to 1, of the range.
    #[must_use]
    pub fn at(self, share: f64) -> f64 {
        self.low + share * (self.high - self.low)
    }
}

/// A Latin hypercube of `points` points in `ranges`, with the shortest distance between two of them
/// made long (Morris and Mitchell 1995, with exchanges that are kept only if they help). Each
/// parameter takes every one of `points` equally spaced values once. The same arguments make the
/// same design.
#[must_use]
pub fn latin_hypercube<const N: usize>(
    points: usize,
    ranges: [Range; N],
    seed: u64,
) -> Vec<[f64; N]> {
    let mut rng = Rng::new(seed);
    let mut cells = random_cells::<N>(points, &mut rng);
    if points > 1 {
        for _ in 0..TRIES * points * N {
            let dimension = rng.index(N);
            let (a, b) = (rng.index(points), rng.index(points));
            exchange_if_better(&mut cells, dimension, a, b);
        }
    }
    let value = |cell: &[usize; N]| {
        std::array::from_fn(|d| ranges[d].at((cell[d] as f64 + 0.5) / points as f64))
    };
    cells.iter().map(value).collect()
}

/// A Latin hypercube at random: the cell of each point in each dimension.
fn random_cells<const N: usize>(points: usize, rng: &mut Rng) -> Vec<[usize; N]> {
    let mut cells = vec![[0; N]; points];
    for dimension in 0..N {
        let mut order: Vec<usize> = (0..points).collect();
        rng.shuffle(&mut order);
        cells.iter_mut().zip(order).for_each(|(cell, at)| cell[dimension] = at);
    }
    cells
}

/// Exchanges the cells of two points in a dimension if both then are farther from all other points.
fn exchange_if_better<const N: usize>(
    cells: &mut [[usize; N]],
    dimension: usize,
    a: usize,
    b: usize,
) {
    let before = crowding(cells, a, b);
    exchange(cells, dimension, a, b);
    if crowding(cells, a, b) > before {
        exchange(cells, dimension, a, b);
    }
}

fn exchange<const N: usize>(cells: &mut [[usize; N]], dimension: usize, a: usize, b: usize) {
    let (of_a, of_b) = (cells[a][dimension], cells[b][dimension]);
    (cells[a][dimension], cells[b][dimension]) = (of_b, of_a);
}

/// How close other points are to points `a` and `b`: small if they are far. The distance between the
/// two themselves is left out, because their exchange does not change it.
fn crowding<const N: usize>(cells: &[[usize; N]], a: usize, b: usize) -> f64 {
    let others = cells.iter().enumerate().filter(|(i, _)| *i != a && *i != b);
    let near = |other, point: usize| squared(other, &cells[point]).powi(-POWER / 2);
    others.map(|(_, other)| near(other, a) + near(other, b)).sum()
}

fn squared<const N: usize>(a: &[usize; N], b: &[usize; N]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a.abs_diff(*b).pow(2) as f64).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANGES: [Range; 4] = [
        Range { low: 1.0, high: 30.0 },
        Range { low: 5.0, high: 100.0 },
        Range { low: 0.1, high: 8.0 },
        Range { low: 0.0, high: 1.0 },
    ];

    fn shortest(points: &[[f64; 4]]) -> f64 {
        let share = |point: &[f64; 4], d: usize| {
            (point[d] - RANGES[d].low) / (RANGES[d].high - RANGES[d].low)
        };
        let distance = |a: &[f64; 4], b: &[f64; 4]| {
            (0..4).map(|d| (share(a, d) - share(b, d)).powi(2)).sum::<f64>().sqrt()
        };
        let pairs = points.iter().enumerate();
        let pairs = pairs.flat_map(|(i, a)| points[..i].iter().map(move |b| distance(a, b)));
        pairs.fold(f64::INFINITY, f64::min)
    }

    #[test]
    fn every_part_of_every_range_has_a_point() {
        let points = latin_hypercube(95, RANGES, 1);
        assert_eq!(points.len(), 95);
        for (d, range) in RANGES.iter().enumerate() {
            let mut parts: Vec<_> = points
                .iter()
                .map(|point| (point[d] - range.low) / (range.high - range.low) * 95.0)
                .map(|share| share.floor() as usize)
                .collect();
            parts.sort_unstable();
            assert_eq!(parts, (0..95).collect::<Vec<_>>(), "dimension {d}");
        }
    }

    #[test]
    fn points_are_farther_apart_than_at_random() {
        let mut rng = Rng::new(7);
        for seed in 0..3 {
            let design = shortest(&latin_hypercube(95, RANGES, seed));
            let random = (0..20).map(|_| {
                let point = |_| std::array::from_fn(|d| RANGES[d].at(rng.unit()));
                shortest(&(0..95).map(point).collect::<Vec<_>>())
            });
            let best = random.fold(0.0, f64::max);
            assert!(design > 1.5 * best, "{design} {best}");
        }
    }

    #[test]
    fn the_seed_makes_the_design() {
        assert_eq!(latin_hypercube(20, RANGES, 3), latin_hypercube(20, RANGES, 3));
        assert_ne!(latin_hypercube(20, RANGES, 3), latin_hypercube(20, RANGES, 4));
    }

    #[test]
    fn designs_of_few_points_work() {
        assert!(latin_hypercube(0, RANGES, 1).is_empty());
        assert_eq!(latin_hypercube(1, RANGES, 1), [[15.5, 52.5, 4.05, 0.5]]);
    }
}
