//! The retransmission seam: what becomes of data between "declared lost" and "queued to be sent
//! again".

use std::fmt::Debug;
use std::time::{Duration, Instant};

/// Lost stream data, as a policy sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LostData {
    /// When the newest repair symbol that covers the data was sent, if one is in flight.
    pub repair_sent: Option<Instant>,
    /// The smoothed round-trip time.
    pub rtt: Duration,
    /// The probe timeout, without backoff.
    pub pto: Duration,
}

/// What becomes of lost data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is sent again, in turn.
    Resend,
    /// It waits: if it is not reported as recovered by then, or the repair symbols in flight turn
    /// out to be of no use, it is sent again.
    Hold {
        /// When the waiting ends.
        until: Instant,
    },
}

/// Decides what becomes of lost data. Congestion control has heard of the loss by then: a policy
/// cannot hide it (RFC 9265).
pub trait RetransmissionPolicy: Debug + Send {
    /// `lost` was just declared lost.
    fn on_lost(&mut self, now: Instant, lost: &LostData) -> Verdict;
}

/// Every loss is sent again at once.
#[derive(Debug, Default)]
pub struct Immediate;

impl RetransmissionPolicy for Immediate {
    fn on_lost(&mut self, _now: Instant, _lost: &LostData) -> Verdict {
        Verdict::Resend
    }
}

/// A loss that a repair symbol in flight may mend waits for the news of that repair symbol.
#[derive(Debug, Default)]
pub struct HoldForRepair;

impl RetransmissionPolicy for HoldForRepair {
    fn on_lost(&mut self, now: Instant, lost: &LostData) -> Verdict {
        match lost.repair_sent.map(|sent| sent + lost.pto.min(lost.rtt * 5 / 4)) {
            Some(until) if until > now => Verdict::Hold { until },
            _ => Verdict::Resend,
        }
    }
}

/// The policies by name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Retransmission {
    /// [`Immediate`].
    Immediate,
    /// [`HoldForRepair`].
    #[default]
    HoldForRepair,
}

impl Retransmission {
    /// A fresh policy of this kind.
    #[must_use]
    pub fn build(self) -> Box<dyn RetransmissionPolicy> {
        match self {
            Self::Immediate => Box::new(Immediate),
            Self::HoldForRepair => Box::new(HoldForRepair),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn holds_only_while_a_repair_may_still_report() {
        let sent = Instant::now();
        let lost = |repair_sent| LostData { repair_sent, rtt: 100 * MS, pto: 300 * MS };
        let mut policy = HoldForRepair;
        let until = sent + 125 * MS;
        assert_eq!(policy.on_lost(sent + 90 * MS, &lost(Some(sent))), Verdict::Hold { until });
        assert_eq!(policy.on_lost(until, &lost(Some(sent))), Verdict::Resend);
        assert_eq!(policy.on_lost(sent, &lost(None)), Verdict::Resend);
        assert_eq!(Immediate.on_lost(sent, &lost(Some(sent))), Verdict::Resend);
    }
}
