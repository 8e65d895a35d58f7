//! Messages with deadlines: repair symbols at the last moment at which they are in time, so that each repair
//! symbol covers as many messages as possible.

use super::last_moment::LastMoment;
use super::{Flec, FlecRules, literal};
use std::sync::Arc;
use std::time::{Duration, Instant};
use sutura_proto::policy::{Redundancy, RedundancyFactory, View};
use sutura_proto::registry::{Entry, UnknownPolicy};

pub(super) const ENTRY: Entry<dyn RedundancyFactory> = Entry::with_parameters(
    "messages",
    "repair symbols just before the deadlines of messages (Michel 2022, Algorithm 4)",
    "rules=tuned,theta=1.1",
    |parameters| {
        let literal = literal::is_wanted(parameters)?;
        let theta = parameters.number("theta", HEADROOM)?;
        let tuned = Messages::new(theta).ok_or_else(|| {
            UnknownPolicy::new(format!("theta: {theta} is not a number from 1 to {MAX_HEADROOM}"))
        })?;
        Ok(if literal { literal::messages("messages", theta) } else { Arc::new(tuned) })
    },
);

/// A part of the congestion window stays free for the next messages: at most the window divided by this is in
/// flight. The paper names no value of its `theta`; this value is its implementation's.
const HEADROOM: f64 = 1.1;
/// With a larger divisor, no repair symbol would ever be sent.
const MAX_HEADROOM: f64 = 100.0;

/// Protects messages as late as possible (Michel 2022, Algorithm 4).
///
/// A message that no repair symbol covers yet waits for the next message, if the application said when that
/// comes and the earliest deadline can still be met then. Otherwise repair symbols are sent over the whole
/// window: as many as losses are expected among the unprotected symbols, and no fewer than a burst of losses
/// has packets. If the application does not say when its next message comes, every message is protected at
/// once (the paper's variant without API). A message that cannot be in time is not protected.
///
/// Four things differ from the paper and its implementation; `messages:literal` follows the paper, but for
/// the margin:
/// * The margin that the implementation sets to 25 ms follows the path: twice the mean deviation of
///   the round-trip time.
/// * Messages that a retransmission would bring in time, after 13/8 of a round trip, are not
///   protected. The paper's short paths need no repair symbols because acknowledgements come before repair
///   symbols are due, which does not hold for lost data.
/// * Data that was lost while no repair symbol for it is in flight is sent again as it was, so that a
///   message is complete without the rest of the window.
/// * The implementation sends one repair symbol more than the paper says. Here the paper is followed, and
///   the mean length of bursts is rounded rather than raised to the next whole number: losses that are next
///   to each other by chance do not double the redundancy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Messages {
    theta: f64,
}

impl Messages {
    /// Requires that the congestion window holds `theta` times the bytes in flight, so that the next messages
    /// have room; `None` if `theta` is not from 1 to 100.
    #[must_use]
    pub fn new(theta: f64) -> Option<Self> {
        (1.0..=MAX_HEADROOM).contains(&theta).then_some(Self { theta })
    }
}

impl Default for Messages {
    fn default() -> Self {
        Self { theta: HEADROOM }
    }
}

impl RedundancyFactory for Messages {
    fn name(&self) -> &str {
        ENTRY.name
    }

    fn parameters(&self) -> String {
        format!("theta={}", self.theta)
    }

    fn stays_awake(&self) -> bool {
        true
    }

    fn build(&self) -> Box<dyn Redundancy> {
        Box::new(Flec::new(MessageRules::new(self.theta)))
    }
}

#[derive(Debug)]
struct MessageRules {
    moment: LastMoment,
    /// The number of unprotected symbols when it last changed.
    unprotected: u32,
    /// How many repair symbols protect the newest symbol, and how many it is to have.
    triggered: u32,
    most: u32,
    /// How long the least patient unprotected message may take; `None` if none has a deadline.
    tolerance: Option<Duration>,
}

impl MessageRules {
    fn new(theta: f64) -> Self {
        let moment = LastMoment::new(theta);
        Self { moment, unprotected: 0, triggered: 0, most: 0, tolerance: None }
    }

    /// Whether an unprotected message would be too late if its repair symbols waited for the next message,
    /// and if it was sent again when its loss is known.
    fn is_urgent(&self, now: Instant, view: &View) -> bool {
        let patient = self.tolerance.is_some_and(|time| view.retransmission_is_in_time(time));
        !patient && LastMoment::is_near(now, view)
    }

    /// Handles a change of the unprotected symbols.
    fn plan(&mut self, view: &View) {
        self.unprotected = view.unprotected;
        if view.unprotected == 0 {
            self.tolerance = None;
        }
        self.moment.plan(view);
    }
}

impl FlecRules for MessageRules {
    fn ds(&self, loss: f64) -> f64 {
        -loss
    }

    fn mends(&self) -> bool {
        false
    }

    fn fec_pattern(&self, now: Instant, view: &View) -> bool {
        let due = if view.unprotected > 0 {
            self.is_urgent(now, view)
        } else {
            self.triggered < self.most
        };
        due && self.moment.has_room(view)
    }

    fn on_source_sent(&mut self, now: Instant, view: &View) {
        (self.triggered, self.most) = (0, 0);
        self.tolerance = self.tolerance.into_iter().chain(view.tolerance(now)).min();
        self.plan(view);
    }

    fn on_repair_sent(&mut self, _now: Instant, view: &View) {
        let fresh = std::mem::take(&mut self.unprotected);
        if fresh > 0 {
            let expected = (view.path.loss * f64::from(fresh)).ceil();
            (self.triggered, self.most) = (0, expected.max(view.path.floor.burst.round()) as u32);
        }
        self.triggered = self.triggered.saturating_add(1);
        self.plan(view);
    }

    fn on_arrived(&mut self, _now: Instant, view: &View) {
        self.plan(view);
    }

    fn timeout(&self) -> Option<Instant> {
        self.moment.timeout()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::with;
    use std::time::Duration;
    use sutura_proto::Message;
    use sutura_proto::policy::{Decision, PathView};

    const MS: Duration = Duration::from_millis(1);

    /// A path of 100 ms one way, with a margin of 20 ms.
    fn path() -> PathView {
        with(PathView::default(), |path| {
            path.rtt = 200 * MS;
            path.rtt_variation = 10 * MS;
            path.loss = 0.01;
            path.floor.burst = 1.4;
            (path.window, path.in_flight) = (12_000, 10_000);
        })
    }

    /// `unprotected` symbols of messages that must be there by `deadline`.
    fn view(unprotected: u32, deadline: Option<Instant>, next: Option<Instant>) -> View {
        with(View::default(), |view| {
            (view.next, view.unacked, view.unprotected) = (10, 10, unprotected);
            view.deadline = deadline;
            view.message = Some(Message::default().with_deadline(deadline).with_size(1_000));
            view.next_message = next;
            view.path = path();
        })
    }

    fn repairs(policy: &dyn Redundancy, now: Instant, view: &View) -> bool {
        policy.decide(now, view) != Decision::Source
    }

    #[test]
    fn repair_waits_for_the_next_message_as_long_as_deadlines_allow() {
        let now = Instant::now();
        let by = Some(now + 250 * MS);
        let mut policy = Messages::default().build();
        // 100 ms and the margin before the deadline is the last moment.
        let soon = view(2, by, Some(now + 129 * MS));
        policy.on_source_sent(now, 9, &soon);
        assert!(!repairs(&*policy, now, &soon));
        assert_eq!(policy.timeout(), Some(now + 130 * MS));
        assert!(repairs(&*policy, now, &view(2, by, Some(now + 130 * MS))));
        assert!(repairs(&*policy, now, &view(2, by, None)), "nobody knows whether one comes");
        // The next message is late.
        assert!(!repairs(&*policy, now + 129 * MS, &soon));
        assert!(repairs(&*policy, now + 130 * MS, &soon));
        // Every symbol is covered, by as many repair symbols as losses are expected.
        policy.on_repair_sent(now + 130 * MS, &view(0, None, None));
        assert!(!repairs(&*policy, now + 130 * MS, &view(0, None, None)));
        assert_eq!(policy.timeout(), None);
    }

    #[test]
    fn no_repair_symbol_takes_room_from_messages() {
        let now = Instant::now();
        let mut policy = Messages::default().build();
        let urgent = view(2, Some(now + 250 * MS), None);
        policy.on_source_sent(now, 9, &urgent);
        assert!(repairs(&*policy, now, &urgent));
        assert!(!repairs(&*policy, now, &with(urgent, |view| view.idle = false)));
        let full = with(urgent, |view| view.path.in_flight = 11_000);
        assert!(!repairs(&*policy, now, &full));
    }

    #[test]
    fn as_many_are_sent_as_losses_are_expected_or_come_in_a_row() {
        let now = Instant::now();
        for (unprotected, loss, burst, expected) in
            [(100, 0.01, 1.4, 1), (101, 0.01, 1.0, 2), (2, 0.01, 2.6, 3), (50, 0.1, 1.0, 5)]
        {
            let mut policy = Messages::default().build();
            let of = |unprotected, deadline| {
                with(view(unprotected, deadline, None), |view| {
                    (view.path.loss, view.path.floor.burst) = (loss, burst);
                })
            };
            let before = of(unprotected, Some(now + 250 * MS));
            policy.on_source_sent(now, 9, &before);
            let (mut sent, mut view) = (0, before);
            while repairs(&*policy, now, &view) {
                view = of(0, None);
                policy.on_repair_sent(now, &view);
                sent += 1;
                assert!(sent < 100);
            }
            assert_eq!(sent, expected, "{unprotected} {loss} {burst}");
        }
    }

    #[test]
    fn what_a_retransmission_brings_in_time_is_not_protected() {
        let now = Instant::now();
        // 13/8 of a round trip and the margin.
        for (tolerance, expected) in [(345, true), (346, false)] {
            let by = view(2, Some(now + tolerance * MS), None);
            let mut policy = Messages::default().build();
            policy.on_source_sent(now, 9, &by);
            assert_eq!(repairs(&*policy, now, &by), expected, "{tolerance}");
            let late = now + 300 * MS;
            assert_eq!(repairs(&*policy, late, &by), expected, "time does not change that");
            let datagrams = with(by, |view| view.resends = false);
            assert!(repairs(&*policy, now, &datagrams), "datagrams are lost");
        }
    }

    #[test]
    fn messages_without_deadline_are_protected_at_once() {
        let now = Instant::now();
        let mut policy = Messages::default().build();
        let v = view(2, None, Some(now + MS));
        policy.on_source_sent(now, 9, &v);
        assert!(repairs(&*policy, now, &v));
    }
}
