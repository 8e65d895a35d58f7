//! Results as SVG figures.

mod blocking;
mod canvas;
mod multiplexing;
mod waterfall;

pub use blocking::blocking;
pub use multiplexing::multiplexing;
pub use waterfall::waterfall;

/// The colour of the stream that is the `rank`-th of its figure. Neighbours differ a lot: each turns
/// the hue by the golden angle.
fn colour(rank: usize) -> String {
    let hue = (rank % 360) as f64 * 137.508 % 360.0;
    let light = if rank.is_multiple_of(2) { 48 } else { 62 };
    format!("hsl({hue:.0},65%,{light}%)")
}

/// A step of a scale of about `count` steps up to `length`: 1, 2 or 5 times a power of ten.
fn step(length: f64, count: f64) -> f64 {
    let rough = (length / count).max(1e-3);
    let power = 10f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|f| f * power >= rough * 0.999);
    factor.unwrap_or(10.0) * power
}

#[cfg(test)]
mod tests;
