//! Compares recovery with a naive algorithm.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

#[derive(Debug, Clone)]
enum Op {
    Send {
        skip: u64,
        kind: Kind,
    },
    Wait(u32),
    /// Gaps and lengths of ranges, counted down from the largest packet sent.
    Ack(Vec<(u64, u64)>),
    Timer,
}

fn op() -> impl Strategy<Value = Op> {
    let kind = prop_oneof![4 => Just(Kind::Data), 1 => Just(Kind::Padding), 1 => Just(Kind::Ack)];
    prop_oneof![
        8 => (prop_oneof![8 => Just(0), 1 => 1..3_u64], kind)
            .prop_map(|(skip, kind)| Op::Send { skip, kind }),
        3 => (0..60_u32).prop_map(Op::Wait),
        3 => prop::collection::vec((0..5_u64, 0..6_u64), 1..5).prop_map(Op::Ack),
        1 => Just(Op::Timer),
    ]
}

#[derive(Debug, Default)]
struct Model {
    next: u64,
    live: BTreeMap<u64, (Instant, Kind)>,
    skipped: Vec<u64>,
    largest_acked: Option<u64>,
    /// When each packet was sent and declared lost.
    lost: BTreeMap<u64, (Instant, Instant)>,
    /// When each recovery began.
    recoveries: Vec<Instant>,
    /// The lateness of each packet that later packets overtook, and how many recoveries had begun by then.
    overtaken: Vec<(Duration, usize)>,
}

impl Model {
    /// Notes overtaken packets that were sent at `sent` and are acknowledged now.
    fn overtake(&mut self, now: Instant, sent: &[Instant], rtt: &RttEstimator) {
        let expected = rtt.latest().max(rtt.smoothed());
        let lateness = |sent: &Instant| (now - *sent).saturating_sub(expected);
        let recovery = self.recoveries.len();
        self.overtaken.extend(sent.iter().map(|sent| (lateness(sent), recovery)));
    }

    /// The largest lateness of the last recoveries.
    fn lateness(&self) -> Option<Duration> {
        let lately = |seen: usize| self.recoveries.len() - seen < RECOVERIES_REMEMBERED;
        let seen = self.overtaken.iter().filter(|(_, seen)| lately(*seen));
        seen.map(|(lateness, _)| *lateness).max()
    }

    fn threshold(&self) -> u64 {
        self.lateness().map_or(PACKET_THRESHOLD, |_| MAX_PACKET_THRESHOLD)
    }

    fn delay(&self, rtt: &RttEstimator) -> Duration {
        loss_delay(rtt) + self.lateness().unwrap_or_default().min(rtt.smoothed())
    }

    fn pto(&self, rtt: &RttEstimator) -> Duration {
        let wait = self.lateness().map_or(Duration::ZERO, |_| self.delay(rtt));
        rtt.pto_base().max(wait)
    }

    fn detect(&mut self, now: Instant, rtt: &RttEstimator) -> Vec<u64> {
        let Some(largest) = self.largest_acked else {
            return vec![];
        };
        let (threshold, delay) = (self.threshold(), self.delay(rtt));
        let is_lost = |pn: u64, time: Instant| {
            pn <= largest && (largest - pn >= threshold || time + delay <= now)
        };
        let found = self.live.iter().filter(|(pn, (time, _))| is_lost(**pn, *time));
        let found: Vec<_> = found.map(|(pn, _)| *pn).collect();
        for pn in &found {
            let Some((time, _)) = self.live.remove(pn) else { continue };
            self.lost.insert(*pn, (time, now));
            if self.recoveries.last().is_none_or(|start| time > *start) {
                self.recoveries.push(now);
            }
        }
        found
    }

    fn loss_time(&self, delay: Duration) -> Option<Instant> {
        let largest = self.largest_acked?;
        self.live.range(..=largest).map(|(_, (time, _))| *time + delay).min()
    }

    fn bytes_in_flight(&self) -> u64 {
        1_000 * self.live.values().filter(|(_, kind)| *kind != Kind::Ack).count() as u64
    }
}

proptest! {
    #[test]
    fn behaves_like_the_naive_algorithm(ops in prop::collection::vec(op(), 1..250)) {
        let mut rig = Rig::new(Side::Server);
        let mut model = Model::default();
        for op in ops {
            match op {
                Op::Send { skip, kind } => {
                    let pn = model.next + skip;
                    model.skipped.extend(model.next..pn);
                    model.next = pn + 1;
                    model.live.insert(pn, (rig.now, kind));
                    rig.send_as(Data, pn, kind);
                }
                Op::Wait(ms) => rig.wait(ms),
                Op::Ack(steps) => {
                    let ranges = ranges_below(model.next, &steps);
                    let Some(largest) = ranges.first().map(|range| *range.end()) else { continue };
                    let covered = |pn: u64| ranges.iter().any(|range| range.contains(&pn));
                    let rtt = rig.recovery.rtt().clone();
                    let retention = LOST_RETENTION * model.pto(&rtt);
                    let result = rig.try_ack(Data, &ranges, Duration::ZERO);
                    if model.skipped.iter().rev().take(16).any(|pn| covered(*pn)) {
                        prop_assert!(result.is_err());
                        continue;
                    }
                    let Ok(outcome) = result else {
                        prop_assert!(model.skipped.iter().any(|pn| covered(*pn)));
                        continue;
                    };
                    let acked: Vec<_> = model.live.keys().copied().filter(|pn| covered(*pn)).collect();
                    let before = model.largest_acked;
                    let overtaken = acked.iter().filter(|pn| Some(**pn) < before);
                    let mut overtaken: Vec<_> = overtaken.map(|pn| model.live[pn].0).collect();
                    let kinds: Vec<_> = acked.iter().filter_map(|pn| model.live.remove(pn)).collect();
                    prop_assert_eq!(&rig.acked, &acked);
                    let eliciting = kinds.iter().any(|(_, kind)| *kind == Kind::Data);
                    prop_assert_eq!(outcome.newly_acked, !acked.is_empty());
                    prop_assert_eq!(outcome.ack_eliciting, eliciting);
                    prop_assert_eq!(outcome.largest_raised, model.largest_acked < Some(largest));
                    let sampled = eliciting && acked.last() == Some(&largest);
                    let sample = kinds.last().filter(|_| sampled).map(|(time, _)| rig.now - *time);
                    prop_assert_eq!(outcome.rtt_sample, sample);
                    model.lost.retain(|_, (_, declared)| rig.now - *declared <= retention);
                    let mut late: Vec<_> = rig.late.iter().map(|lost| lost.pn).collect();
                    late.sort_unstable();
                    let expected = model.lost.keys().copied().filter(|pn| covered(*pn));
                    prop_assert!(late.into_iter().eq(expected));
                    let late = model.lost.extract_if(.., |pn, _| covered(*pn));
                    overtaken.extend(late.map(|(_, (sent, _))| sent));
                    model.overtake(rig.now, &overtaken, &rtt);
                    model.largest_acked = model.largest_acked.max(Some(largest));
                    let rtt = rig.recovery.rtt().clone();
                    let delay = model.delay(&rtt);
                    rig.detect(Data);
                    prop_assert_eq!(&rig.lost, &model.detect(rig.now, &rtt));
                    prop_assert_eq!(rig.recovery.timeout(FREE), model.loss_time(delay));
                    prop_assert_eq!(rig.recovery.pto(Data), model.pto(&rtt));
                }
                Op::Timer => {
                    let due = rig.recovery.timeout(FREE).is_some_and(|timeout| timeout <= rig.now);
                    let timeout = rig.recovery.on_timeout(rig.now, FREE, &mut Vec::new());
                    prop_assert_eq!(timeout != Timeout::Early, due);
                    if due {
                        model.detect(rig.now, rig.recovery.rtt());
                    }
                }
            }
            prop_assert!(rig.recovery.sent(Data).map(|p| p.pn).eq(model.live.keys().copied()));
            prop_assert_eq!(rig.recovery.bytes_in_flight(), model.bytes_in_flight());
            prop_assert_eq!(
                rig.recovery.has_ack_eliciting_in_flight(Data),
                model.live.values().any(|(_, kind)| *kind == Kind::Data)
            );
        }
    }
}
