//! A loss reaction: lost data is sent again, unless it would come too late.

use crate::tally::Tally;
use std::time::Instant;
use sutura::policy::{LossReaction, LossReactionFactory, LostData, Verdict};

/// The application error code of streams of which data was given up.
pub const TOO_LATE: u64 = 0x1a7e;

/// Gives up data that cannot be at the receiver by its deadline, and sends all other lost data again at once.
#[derive(Debug, Clone, Default)]
pub struct DropLate {
    /// Losses after which the data was sent again.
    pub resent: Tally,
    /// Losses after which the data was given up.
    pub dropped: Tally,
}

impl LossReactionFactory for DropLate {
    fn name(&self) -> &str {
        "drop-late"
    }

    fn build(&self) -> Box<dyn LossReaction> {
        Box::new(self.clone())
    }
}

impl LossReaction for DropLate {
    fn on_lost(&mut self, now: Instant, lost: &LostData) -> Verdict {
        // A packet that is sent now arrives after half of a round trip.
        let is_late = |deadline: Instant| deadline.saturating_duration_since(now) < lost.rtt / 2;
        if lost.deadline.is_some_and(is_late) {
            self.dropped.add(1);
            return Verdict::Drop { code: TOO_LATE };
        }
        self.resent.add(1);
        Verdict::Resend
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use sutura::{Dir, Side, StreamId};

    #[test]
    fn keeps_the_contract() {
        sutura::conformance::loss_reaction(&DropLate::default());
    }

    #[test]
    fn only_what_can_be_in_time_is_sent_again() {
        let now = Instant::now();
        let ms = Duration::from_millis;
        let stream = StreamId::new(Side::Client, Dir::Uni, 0);
        let mut lost = LostData::new(stream, 0..1000, now, ms(100), ms(300));
        let mut verdict = |deadline| {
            lost.deadline = deadline;
            DropLate::default().on_lost(now, &lost)
        };
        assert_eq!(verdict(None), Verdict::Resend);
        assert_eq!(verdict(Some(now + ms(50))), Verdict::Resend);
        assert_eq!(verdict(Some(now + ms(49))), Verdict::Drop { code: TOO_LATE });
        assert_eq!(verdict(Some(now)), Verdict::Drop { code: TOO_LATE });
    }
}
