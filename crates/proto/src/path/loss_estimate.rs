//! Estimates the share of packets that are lost, for whatever reason.
//!
//! This is the loss that an application sees: random losses and losses in full queues alike, of all packets
//! including the handshake's, at once and without a measure of certainty. To predict how many of the *next*
//! packets are lost at best, or to tell whether losses are congestion, use the [loss
//! floor](crate::loss_floor), which leaves out losses that the rate may have caused, and has bounds.

/// A moving average of the share of lost packets. As long as there are fewer of them than the
/// average looks back, it is their plain mean.
#[derive(Debug, Clone, Copy, Default)]
pub struct LossEstimate {
    share: f64,
    outcomes: u64,
}

impl LossEstimate {
    const WEIGHT: f64 = 1.0 / 256.0;

    /// The weight of a packet.
    fn weight(self) -> f64 {
        Self::WEIGHT.max(1.0 / self.outcomes.max(1) as f64)
    }

    /// Counts a packet that was acknowledged or declared lost.
    pub fn on_packet(&mut self, lost: bool) {
        self.outcomes = self.outcomes.saturating_add(1);
        self.share += self.weight() * (f64::from(u8::from(lost)) - self.share);
    }

    /// Takes back the loss of a packet that arrived after all. It was counted not long ago, so
    /// nearly all of it still is in the average.
    pub fn on_refuted(&mut self) {
        self.share = (self.share - self.weight()).max(0.0);
    }

    /// Share of lost packets, from 0 to 1.
    pub fn get(self) -> f64 {
        self.share
    }

    /// Number of packets that were counted.
    pub fn outcomes(self) -> u64 {
        self.outcomes
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

    #[test]
    fn refuted_losses_leave_the_estimate() {
        let mut estimate = LossEstimate::default();
        for i in 0..10_000 {
            estimate.on_packet(i % 3 == 0);
            if i % 3 == 2 {
                estimate.on_refuted();
            }
        }
        assert!(estimate.get() < 0.01, "{}", estimate.get());
    }
}
