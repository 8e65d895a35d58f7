//! How many packets in a row a path loses, whatever the cause: `1 / G_r` of Michel 2022, Table I.
//!
//! The [loss floor](crate::loss_floor) leaves out the drops of a full queue, which may be many packets in a
//! row. Here all losses count, as in the loss monitor of Michel's paper.

/// A moving average over about this many losses; their plain mean as long as there are fewer.
const MEMORY: f64 = 100.0;
/// The longest mean that is told.
const MAX_BURST: f64 = 100.0;

/// The mean length of a run of lost packets.
#[derive(Debug, Clone, Copy, Default)]
pub struct LossRuns {
    /// The share of losses whose packet followed a lost one.
    joined: f64,
    losses: f64,
}

impl LossRuns {
    /// Counts a lost packet; `joined` if the packet before it was lost too.
    pub fn on_lost(&mut self, joined: bool) {
        self.losses = (self.losses + 1.0).min(MEMORY);
        self.joined += (f64::from(u8::from(joined)) - self.joined) / self.losses;
    }

    /// How many packets in a row are lost on average; 1 as long as nothing is known.
    pub fn burst(self) -> f64 {
        (1.0 - self.joined).max(MAX_BURST.recip()).recip()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_have_their_mean_length() {
        let mut runs = LossRuns::default();
        assert_eq!(runs.burst(), 1.0);
        runs.on_lost(false);
        assert_eq!(runs.burst(), 1.0);
        for n in 0..3_000 {
            runs.on_lost(n % 3 > 0);
        }
        assert!((runs.burst() - 3.0).abs() < 0.1, "{}", runs.burst());
        (0..10_000).for_each(|_| runs.on_lost(true));
        assert_eq!(runs.burst(), MAX_BURST);
        (0..2_000).for_each(|_| runs.on_lost(false));
        assert!(runs.burst() < 1.01, "{}", runs.burst());
    }
}
