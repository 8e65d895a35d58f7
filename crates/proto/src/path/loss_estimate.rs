//! Estimates the loss rate.

/// A moving average of the share of lost packets.
#[derive(Debug, Clone, Copy, Default)]
pub struct LossEstimate(f64);

impl LossEstimate {
    const WEIGHT: f64 = 1.0 / 256.0;

    /// Counts a packet that was acknowledged or declared lost.
    pub fn on_packet(&mut self, lost: bool) {
        self.0 += Self::WEIGHT * (f64::from(u8::from(lost)) - self.0);
    }

    /// Share of lost packets, from 0 to 1.
    pub fn get(self) -> f64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimate_settles_at_the_share_lost() {
        let mut estimate = LossEstimate::default();
        for i in 0..10_000 {
            estimate.on_packet(i % 20 == 0);
        }
        assert!((estimate.get() - 0.05).abs() < 0.01, "{}", estimate.get());
    }
}
