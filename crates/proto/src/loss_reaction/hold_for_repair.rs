//! Waits for repair symbols in flight.

use super::{LossReaction, LossReactionFactory, LostData, PATIENCE, Verdict};
use std::sync::Arc;
use std::time::Instant;
use sutura_schedule::registry::Entry;

pub(super) const ENTRY: Entry<dyn LossReactionFactory> = Entry::new(
    "hold-for-repair",
    "lost data waits while repair symbols in flight can mend all that waits",
    |_| Ok(Arc::new(HoldForRepair)),
);

/// Holds lost data that repair symbols in flight can repair, until their fate is known.
///
/// A repair symbol mends one source symbol. So a loss waits only if more repair symbols are in flight than
/// losses wait already; further losses are sent again at once, as without protection. Where the redundancy
/// policy sends repair symbols in place of lost data, the data waits for these. Data with a deadline is sent again at
/// once if it would come too late after it has waited, and is in time now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HoldForRepair;

impl LossReaction for HoldForRepair {
    fn on_lost(&mut self, now: Instant, lost: &LostData) -> Verdict {
        if lost.repair.is_some_and(|repair| repair.mends) {
            return Verdict::Hold { until: now + lost.pto * PATIENCE };
        }
        let left = lost.repair.filter(|repair| repair.held < repair.repairs);
        let newest = left.and_then(|repair| repair.newest_repair);
        match newest.map(|sent| sent + lost.pto.min(lost.rtt * 5 / 4)) {
            Some(until) if until > now && !is_last_moment(now, until, lost) => {
                Verdict::Hold { until }
            }
            _ => Verdict::Resend,
        }
    }
}

/// Whether data that is sent again now may be in time for its deadline, and once it has waited `until` then hardly is. The
/// way to the peer may be faster than the way back.
fn is_last_moment(now: Instant, until: Instant, lost: &LostData) -> bool {
    let in_time = |deadline| now + lost.rtt / 4 <= deadline && until + lost.rtt / 2 > deadline;
    lost.deadline.is_some_and(in_time)
}

impl LossReactionFactory for HoldForRepair {
    fn name(&self) -> &str {
        ENTRY.name
    }

    fn build(&self) -> Box<dyn LossReaction> {
        Box::new(*self)
    }
}

#[cfg(test)]
mod tests {
    use super::super::ResendAtOnce;
    use super::*;
    use crate::ids::StreamId;
    use std::time::Duration;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn holds_only_while_a_repair_may_still_report() {
        let sent = Instant::now();
        let bare = LostData::new(StreamId(0), 0..100, sent, 100 * MS, 300 * MS);
        let covered = bare.clone().protected(Some(sent), 1, 0);
        let uncovered = bare.clone().protected(None, 0, 0);
        let taken = bare.clone().protected(Some(sent), 2, 2);
        let left = bare.clone().protected(Some(sent), 2, 1);
        let mut policy = HoldForRepair;
        let until = sent + 125 * MS;
        assert_eq!(policy.on_lost(sent + 90 * MS, &covered), Verdict::Hold { until });
        assert_eq!(policy.on_lost(until, &covered), Verdict::Resend);
        assert_eq!(policy.on_lost(sent, &left), Verdict::Hold { until });
        assert_eq!(policy.on_lost(sent, &taken), Verdict::Resend);
        assert_eq!(policy.on_lost(sent, &uncovered), Verdict::Resend);
        assert_eq!(policy.on_lost(sent, &bare), Verdict::Resend);
        let due = |ms| LostData { deadline: Some(sent + ms * MS), ..covered.clone() };
        let now = sent + 90 * MS;
        assert_eq!(policy.on_lost(now, &due(114)), Verdict::Hold { until }, "late in any case");
        assert_eq!(policy.on_lost(now, &due(115)), Verdict::Resend);
        assert_eq!(policy.on_lost(now, &due(174)), Verdict::Resend);
        assert_eq!(
            policy.on_lost(now, &due(175)),
            Verdict::Hold { until },
            "there is time to wait"
        );
        let until = sent + 900 * MS;
        assert_eq!(policy.on_lost(sent, &taken.mended()), Verdict::Hold { until });
        assert_eq!(ResendAtOnce.on_lost(sent, &covered), Verdict::Resend);
    }
}
