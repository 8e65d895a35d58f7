//! The sender, the link and the receiver of the model.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use sutura_link::{Fate, Link};

use super::{PerfectDecoder, Schedule, Trace, Workload};

/// Acknowledged later packets after which a packet is lost (RFC 9002, section 6.1.1).
const PACKET_THRESHOLD: u32 = 3;
/// Round trips after which a packet is lost (RFC 9002, section 6.1.2).
const TIME_THRESHOLD: f64 = 9.0 / 8.0;
/// How often a clairvoyant sender looks whether a copy would pass.
const LOOK: Duration = Duration::from_millis(1);

/// The sender's treatment of losses, besides sending lost packets again once it knows of the losses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Plan {
    /// Repair symbols by a schedule.
    OpenLoop(Schedule),
    /// The sender knows all losses beforehand, and sends a copy of a lost packet at the first time when the
    /// link lets it pass.
    Clairvoyant {
        /// The most copies.
        copies: u64,
    },
}

/// How many bytes are late: for each of `slacks`, the bytes that take longer than the delay of the link and
/// this slack from when their message was made until they are handed out in order.
#[must_use]
pub fn late_bytes(workload: &Workload, trace: Trace, plan: Plan, slacks: &[Duration]) -> Vec<u64> {
    let mut run = Modelled::new(workload, trace, plan, slacks);
    run.schedule(trace.start, Happening::Message(0));
    while let Some(Reverse((now, _, event))) = run.events.pop() {
        run.handle(now, event);
    }
    run.late
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    /// A message is made.
    Message(u64),
    /// A repair symbol is due.
    Repair,
    /// The sender learns that a symbol was lost in the transmission with this number.
    Lost(u64, u32),
    /// A clairvoyant sender looks whether a copy of a symbol would pass.
    Copy(u64),
}

/// A transmission that was lost, and that the sender does not know of yet.
#[derive(Clone, Copy, Debug)]
struct Unnoticed {
    id: u64,
    transmission: u32,
    /// How many later packets arrived.
    later: u32,
}

struct Modelled<'a> {
    workload: &'a Workload,
    start: Duration,
    plan: Plan,
    slacks: &'a [Duration],
    link: Link,
    decoder: PerfectDecoder,
    /// The next events; events of one instant in the order in which they were scheduled.
    events: BinaryHeap<Reverse<(Duration, u64, Happening)>>,
    scheduled: u64,
    unnoticed: Vec<Unnoticed>,
    /// When each lost symbol became known to the receiver, ascending by symbol.
    known: Vec<(u64, Option<Duration>)>,
    /// How many copies a clairvoyant sender has sent.
    copies: u64,
    /// The first symbol that was not handed out.
    next: u64,
    late: Vec<u64>,
}

impl<'a> Modelled<'a> {
    fn new(workload: &'a Workload, trace: Trace, plan: Plan, slacks: &'a [Duration]) -> Self {
        Self {
            workload,
            start: trace.start,
            plan,
            slacks,
            link: Link::new(&workload.link, trace.seed),
            decoder: PerfectDecoder::default(),
            events: BinaryHeap::new(),
            scheduled: 0,
            unnoticed: Vec::new(),
            known: Vec::new(),
            copies: 0,
            next: 0,
            late: vec![0; slacks.len()],
        }
    }

    fn schedule(&mut self, at: Duration, event: Happening) {
        self.events.push(Reverse((at, self.scheduled, event)));
        self.scheduled += 1;
    }

    fn handle(&mut self, now: Duration, event: Happening) {
        match event {
            Happening::Message(index) => self.message(now, index),
            Happening::Repair => {
                let size = self.workload.cut.payload + self.workload.cut.overhead;
                if let Some(at) = self.send(now, size) {
                    let known = &mut self.known;
                    self.decoder.repair(|id| learn(known, id, at));
                    self.arrived(at);
                }
            }
            Happening::Lost(id, transmission) => self.resend(now, id, transmission),
            Happening::Copy(id) => self.copy(now, id),
        }
    }

    fn message(&mut self, now: Duration, index: u64) {
        for packet in 0..self.workload.packets() {
            let size = self.workload.payload(packet) + self.workload.cut.overhead;
            let at = self.send(now, size);
            let id = self.decoder.source(at.is_none());
            match at {
                Some(at) => self.arrived(at),
                None => {
                    self.known.push((id, None));
                    self.lost(now, id, 0);
                    self.foresee(now, id);
                }
            }
        }
        if let Plan::OpenLoop(schedule) = self.plan {
            for n in 0..schedule.after(index) {
                let after =
                    schedule.delay + schedule.spacing * u32::try_from(n).unwrap_or(u32::MAX);
                self.schedule(now + after, Happening::Repair);
            }
        }
        if index + 1 < self.workload.warm_up + self.workload.count {
            self.schedule(now + self.workload.interval, Happening::Message(index + 1));
        }
    }

    /// Sends a packet. Returns when it arrives.
    fn send(&mut self, now: Duration, size: usize) -> Option<Duration> {
        arrival(self.link.send(now, size))
    }

    /// A transmission of `id` was lost, which the sender notices in time.
    fn lost(&mut self, now: Duration, id: u64, transmission: u32) {
        let rtt = 2 * self.workload.link.delay;
        self.unnoticed.push(Unnoticed { id, transmission, later: 0 });
        self.schedule(now + rtt.mul_f64(TIME_THRESHOLD), Happening::Lost(id, transmission));
    }

    /// A packet arrived at `at`: some losses become apparent, and bytes may be handed out.
    fn arrived(&mut self, at: Duration) {
        let acked = at + self.workload.link.delay;
        for index in 0..self.unnoticed.len() {
            let Some(lost) = self.unnoticed.get_mut(index) else { break };
            lost.later += 1;
            if lost.later == PACKET_THRESHOLD {
                let event = Happening::Lost(lost.id, lost.transmission);
                self.schedule(acked, event);
            }
        }
        let until = self.decoder.in_order();
        while self.next < until {
            self.hand_out(at, self.next);
            self.next += 1;
        }
    }

    fn hand_out(&mut self, at: Duration, id: u64) {
        let packets = self.workload.packets();
        let message = id / packets;
        if message < self.workload.warm_up {
            return;
        }
        let made = self.start + self.workload.interval.mul_f64(message as f64);
        let over = at.saturating_sub(made).saturating_sub(self.workload.link.delay);
        let bytes = self.workload.payload(id % packets) as u64;
        for (late, slack) in self.late.iter_mut().zip(self.slacks) {
            *late += if over > *slack { bytes } else { 0 };
        }
    }

    /// The sender notices that a transmission of `id` was lost, and sends it again unless it can know
    /// that it was recovered.
    fn resend(&mut self, now: Duration, id: u64, transmission: u32) {
        let found = |u: &Unnoticed| (u.id, u.transmission) == (id, transmission);
        let Some(index) = self.unnoticed.iter().position(found) else { return };
        self.unnoticed.swap_remove(index);
        let told = match self.plan {
            Plan::OpenLoop(_) => now.saturating_sub(self.workload.link.delay),
            Plan::Clairvoyant { .. } => Duration::MAX,
        };
        if self.known_at(id).is_some_and(|at| at <= told) {
            return;
        }
        match self.transmit_again(now, id) {
            Some(at) => self.take_copy(at, id),
            None => self.lost(now, id, transmission + 1),
        }
    }

    fn transmit_again(&mut self, now: Duration, id: u64) -> Option<Duration> {
        let packet = id % self.workload.packets();
        self.send(now, self.workload.payload(packet) + self.workload.cut.overhead)
    }

    /// A clairvoyant sender makes up for a loss that it knows of before it happens.
    fn foresee(&mut self, now: Duration, id: u64) {
        match self.plan {
            Plan::Clairvoyant { copies } if self.copies < copies => {
                self.copies += 1;
                self.schedule(now, Happening::Copy(id));
            }
            Plan::Clairvoyant { .. } | Plan::OpenLoop(_) => {}
        }
    }

    /// Sends a copy if it passes; otherwise looks again a little later. A look moves a link on whose loss
    /// depends on sent packets, and otherwise costs nothing, which favours this sender.
    fn copy(&mut self, now: Duration, id: u64) {
        if self.known_at(id).is_some() {
            return;
        }
        match self.transmit_again(now, id) {
            Some(at) => self.take_copy(at, id),
            None => self.schedule(now + LOOK, Happening::Copy(id)),
        }
    }

    fn take_copy(&mut self, at: Duration, id: u64) {
        let known = &mut self.known;
        self.decoder.copy(id, |id| learn(known, id, at));
        self.arrived(at);
    }

    fn known_at(&self, id: u64) -> Option<Duration> {
        let index = self.known.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        self.known.get(index)?.1
    }
}

/// Symbol `id` became known to the receiver at `at`.
fn learn(known: &mut [(u64, Option<Duration>)], id: u64, at: Duration) {
    if let Ok(index) = known.binary_search_by_key(&id, |(id, _)| *id)
        && let Some((_, time)) = known.get_mut(index)
    {
        *time = Some(at);
    }
}

/// When a packet arrives undamaged.
pub(super) fn arrival(fate: Fate) -> Option<Duration> {
    match fate {
        Fate::Delivered(deliveries) => {
            let original = deliveries.original;
            original.corrupt.is_none().then_some(original.at)
        }
        Fate::Dropped(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Cut;
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Messages of four packets of 1000 bytes every 20 ms over 50 ms, with these losses.
    fn workload(loss: &str, count: u64) -> Workload {
        Workload {
            link: format!("rate=10mbit overhead=0 delay=50ms loss={loss}").parse().unwrap(),
            size: 4000,
            interval: 20 * MS,
            count,
            warm_up: 0,
            cut: Cut { payload: 1000, overhead: 0 },
        }
    }

    fn late(loss: &str, plan: Plan) -> Vec<u64> {
        let trace = Trace { seed: 1, start: 7 * MS };
        late_bytes(&workload(loss, 20), trace, plan, &[10 * MS, 25 * MS])
    }

    fn scheduled(repairs: f64, delay: u32, spacing: u32) -> Plan {
        let (delay, spacing) = (delay * MS, spacing * MS);
        Plan::OpenLoop(Schedule { repairs, delay, spacing })
    }

    #[test]
    fn nothing_is_late_without_loss() {
        for plan in [scheduled(0.0, 0, 0), scheduled(3.0, 4, 1), Plan::Clairvoyant { copies: 9 }] {
            assert_eq!(late("none", plan), [0, 0]);
        }
    }

    /// Only the second packet of the second message is lost.
    fn one_loss(repairs: usize) -> String {
        let mut trace = vec!['0'; 4 * 20 + 20 * repairs];
        trace[4 + repairs + 1] = '1';
        format!("trace:{}", trace.into_iter().collect::<String>())
    }

    #[test]
    fn a_retransmission_takes_as_long_as_loss_detection_and_half_a_round_trip() {
        // Two packets of the same message follow, and the third is the first of the next message, which
        // is made 20 ms later and sent in 0.8 ms. Its acknowledgement is later than 9/8 of a round trip, so
        // the time counts: the lost packet arrives after 112.5 + 50 + 0.8 ms, 113.3 ms later than the path.
        // Until then 3 packets of its own message and all of messages 20 to 100 ms later wait;
        // messages made 80 ms later wait for 33.3 ms, messages made 100 ms later for 13.3.
        assert_eq!(late(&one_loss(0), scheduled(0.0, 0, 0)), [23_000, 19_000]);
    }

    #[test]
    fn a_repair_symbol_mends_a_loss_when_it_arrives() {
        assert_eq!(late(&one_loss(1), scheduled(1.0, 0, 0)), [0, 0]);
        // The repair symbol is sent 20 ms later, after the next message; so the rest of its own message
        // waits.
        assert_eq!(late(&one_loss(1), scheduled(1.0, 19, 0)), [3_000, 0]);
    }

    #[test]
    fn a_clairvoyant_sender_repeats_only_what_is_lost() {
        let plan = |copies| Plan::Clairvoyant { copies };
        assert_eq!(late(&one_loss(0), plan(1)), [0, 0]);
        assert_eq!(late(&one_loss(0), plan(0)), late(&one_loss(0), scheduled(0.0, 0, 0)));
    }

    #[test]
    fn messages_of_the_warm_up_do_not_count() {
        let workload = Workload { warm_up: 8, count: 12, ..workload(&one_loss(0), 0) };
        let trace = Trace { seed: 1, start: Duration::ZERO };
        assert_eq!(late_bytes(&workload, trace, scheduled(0.0, 0, 0), &[10 * MS]), [0]);
    }
}
