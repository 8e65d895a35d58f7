//! Explicit congestion notification on a path: which datagrams are marked, and whether their marks
//! arrive (RFC 9000 section 13.4.2 and appendix A.4).
//!
//! Datagrams are marked once the handshake is confirmed, so a path that drops marked datagrams keeps nobody
//! from connecting, and all marked packets are in the Data space.

use crate::ecn::EcnState;
use crate::ecn::{EcnCodepoint, EcnCounts};

/// How many packets are marked before the peer has reported that marks arrive.
pub const TEST_PACKETS: u64 = 10;

/// Whether the path carries marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EcnProgress {
    /// Not known yet: test packets that may still be sent, that were sent, and that were lost.
    Testing { left: u64, sent: u64, lost: u64 },
    /// The path carries marks, as far as is known.
    Capable,
    /// The path does not carry marks, or the peer does not report marks, or this end cannot set them.
    Failed,
}

/// Finds out whether a path carries marks.
#[derive(Debug)]
pub struct EcnValidation(EcnProgress);

impl EcnValidation {
    /// A validation that has not begun; with `enabled` false it never does.
    pub fn new(enabled: bool) -> Self {
        Self(if enabled {
            EcnProgress::Testing { left: TEST_PACKETS, sent: 0, lost: 0 }
        } else {
            EcnProgress::Failed
        })
    }

    /// The mark of the next datagrams.
    pub fn mark(&self) -> Option<EcnCodepoint> {
        let marks = match self.0 {
            EcnProgress::Testing { left, .. } => left > 0,
            EcnProgress::Capable => true,
            EcnProgress::Failed => false,
        };
        marks.then_some(EcnCodepoint::Ect0)
    }

    /// The state of the test.
    pub fn state(&self) -> EcnState {
        match self.0 {
            EcnProgress::Testing { .. } => EcnState::Testing,
            EcnProgress::Capable => EcnState::Capable,
            EcnProgress::Failed => EcnState::Failed,
        }
    }

    /// Whether marks are known to arrive.
    pub fn is_capable(&self) -> bool {
        self.state() == EcnState::Capable
    }

    /// Handles a marked packet that is being sent.
    pub fn on_sent(&mut self) {
        if let EcnProgress::Testing { left, sent, .. } = &mut self.0 {
            *left = left.saturating_sub(1);
            *sent += 1;
        }
    }

    /// Handles the loss of `count` marked packets. If all test packets are lost, the path may drop marked
    /// packets.
    pub fn on_lost(&mut self, count: u64) {
        if let EcnProgress::Testing { left, sent, lost } = &mut self.0 {
            *lost += count;
            if *left == 0 && *lost >= *sent {
                self.0 = EcnProgress::Failed;
            }
        }
    }

    /// Handles a probe timeout. Probes are not marked before marks are known to arrive, so that they
    /// come through on a path that drops marked packets.
    pub fn on_probe_timeout(&mut self) {
        if let EcnProgress::Testing { left, sent: 1.., .. } = &mut self.0 {
            *left = 0;
        }
    }

    /// Handles persistent congestion: a path that carried marks before its outage is tested again.
    pub fn on_persistent_congestion(&mut self) {
        if self.0 == EcnProgress::Capable {
            *self = Self::new(true);
        }
    }

    fn conclude(&mut self, valid: bool) {
        match self.0 {
            EcnProgress::Testing { .. } | EcnProgress::Capable => {
                self.0 = if valid { EcnProgress::Capable } else { EcnProgress::Failed };
            }
            EcnProgress::Failed => {}
        }
    }
}

/// The marks of all packets of the Data space, on this path and earlier ones.
#[derive(Debug, Default)]
pub struct EcnMarks {
    /// How many packets were sent with ECT(0).
    sent: u64,
    /// The counts in the peer's newest ACK frame.
    reported: EcnCounts,
}

impl EcnMarks {
    /// Handles a marked packet that is being sent.
    pub fn on_sent(&mut self) {
        self.sent += 1;
    }

    /// Handles the counts of an ACK frame whose largest packet number exceeds all earlier ones, and that
    /// newly acknowledges `acked` marked packets of this path. Returns how many more packets have met
    /// congestion, if the counts are credible.
    pub fn on_ack(
        &mut self,
        acked: u64,
        counts: Option<EcnCounts>,
        validation: &mut EcnValidation,
    ) -> u64 {
        let Some(counts) = counts else {
            if acked > 0 {
                validation.conclude(false);
            }
            return 0;
        };
        let before = std::mem::replace(&mut self.reported, counts);
        let increase = |of: fn(&EcnCounts) -> u64| of(&counts).checked_sub(of(&before));
        let (ect0, ce) = (increase(|counts| counts.ect0), increase(|counts| counts.ce));
        let valid = match (ect0, ce) {
            (Some(ect0), Some(ce)) => ect0.saturating_add(ce) >= acked,
            _ => false,
        };
        let valid = valid && counts.ect1 == 0 && counts.ect0 <= self.sent;
        if !valid || acked > 0 {
            validation.conclude(valid);
        }
        ce.filter(|_| validation.is_capable()).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(ect0: u64, ect1: u64, ce: u64) -> Option<EcnCounts> {
        Some(EcnCounts { ect0, ect1, ce })
    }

    /// Marks with `sent` packets sent, and their validation.
    fn sent(sent: u64) -> (EcnMarks, EcnValidation) {
        let (mut marks, mut validation) = (EcnMarks::default(), EcnValidation::new(true));
        for _ in 0..sent {
            marks.on_sent();
            validation.on_sent();
        }
        (marks, validation)
    }

    #[test]
    fn few_packets_are_marked_until_marks_are_known_to_arrive() {
        let (mut marks, mut validation) = sent(TEST_PACKETS - 1);
        assert!(validation.mark().is_some());
        marks.on_sent();
        validation.on_sent();
        assert_eq!(validation.mark(), None);
        assert_eq!(marks.on_ack(3, counts(3, 0, 0), &mut validation), 0);
        assert_eq!(validation.mark(), Some(EcnCodepoint::Ect0));
        assert_eq!(marks.on_ack(7, counts(8, 0, 2), &mut validation), 2);
        assert_eq!(marks.on_ack(0, counts(8, 0, 2), &mut validation), 0);
        assert!(validation.is_capable());
    }

    #[test]
    fn counts_that_cannot_be_right_end_it() {
        let wrong = [
            ("none", None),
            ("too few", counts(3, 0, 0)),
            ("more than were sent", counts(11, 0, 0)),
            ("others than were sent", counts(10, 1, 0)),
        ];
        for (what, counts) in wrong {
            let (mut marks, mut validation) = sent(10);
            assert_eq!(marks.on_ack(4, counts, &mut validation), 0);
            assert_eq!(validation.mark(), None, "{what}");
        }
        for fewer in [counts(9, 0, 1), counts(10, 0, 0)] {
            let (mut marks, mut validation) = sent(20);
            assert_eq!(marks.on_ack(9, counts(10, 0, 1), &mut validation), 1);
            assert_eq!(marks.on_ack(0, fewer, &mut validation), 0);
            assert_eq!(validation.mark(), None);
        }
    }

    #[test]
    fn a_path_that_drops_marked_packets_gets_none() {
        let (_, mut validation) = sent(TEST_PACKETS);
        validation.on_lost(TEST_PACKETS - 1);
        assert_ne!(validation.0, EcnProgress::Failed);
        validation.on_lost(1);
        assert_eq!(validation.0, EcnProgress::Failed);
        validation.on_persistent_congestion();
        assert_eq!(validation.mark(), None);
    }

    #[test]
    fn probes_are_not_marked_before_marks_are_known_to_arrive() {
        let (mut marks, mut validation) = sent(2);
        validation.on_probe_timeout();
        assert_eq!(validation.mark(), None);
        validation.on_lost(1);
        assert_eq!(marks.on_ack(1, counts(1, 0, 0), &mut validation), 0);
        validation.on_probe_timeout();
        assert!(validation.mark().is_some());
    }

    #[test]
    fn persistent_congestion_begins_anew() {
        let (mut marks, mut validation) = sent(10);
        assert_eq!(marks.on_ack(10, counts(10, 0, 0), &mut validation), 0);
        validation.on_persistent_congestion();
        assert!(!validation.is_capable() && validation.mark().is_some());
    }

    #[test]
    fn an_end_that_cannot_mark_never_does() {
        let (mut marks, mut validation) = (EcnMarks::default(), EcnValidation::new(false));
        assert_eq!(validation.mark(), None);
        assert_eq!(marks.on_ack(0, counts(0, 0, 5), &mut validation), 0);
    }
}
