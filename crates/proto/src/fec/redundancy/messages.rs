//! Messages with deadlines: repair symbols at the last moment at which they are in time, so that each
//! covers as many messages as possible.

use super::flec::{Flec, Rules};
use super::foresight::burst;
use super::{PathView, Redundancy, RedundancyFactory, View};
use std::sync::Arc;
use std::time::{Duration, Instant};
use sutura_schedule::registry::Entry;

pub(super) const ENTRY: Entry<dyn RedundancyFactory> = Entry::new(
    "messages",
    "repair symbols just before the deadlines of messages (Michel 2022, Algorithm 4)",
    |_| Ok(Arc::new(Messages)),
);

/// How many mean deviations of the round-trip time a repair symbol is sent early: those of the probe
/// timeout (RFC 9002, section 6.2.1), halved, because it goes one way.
const MARGIN_DEVIATIONS: u32 = 2;
/// The least that it is sent early: the granularity of timers (RFC 9002, section 6.1.2).
const MIN_MARGIN: Duration = crate::recovery::rtt::GRANULARITY;
/// So much of the congestion window stays free for the next messages: in flight is at most the window
/// divided by this (`theta`).
const HEADROOM: f64 = 1.1;

/// Protects messages as late as possible (Michel 2022, Algorithm 4).
///
/// What no repair symbol covers yet waits for the next message, if the application said when that
/// comes and the earliest deadline can still be met then. Otherwise repair symbols are sent over the
/// whole window: as many as losses are expected among what was unprotected, and no fewer than a burst
/// of losses has packets. If the application does not say when its next message comes, every message is
/// protected at once (the paper's variant without API). What cannot be in time is not protected.
///
/// Four things differ from the paper and its implementation:
/// * The margin that the implementation sets to 25 ms follows the path: twice the mean deviation of
///   the round-trip time.
/// * Messages that a retransmission would bring in time, after 13/8 of a round trip, are not
///   protected. The paper's short paths need no repair symbols because acknowledgements come before
///   these are due, which does not hold for what was lost.
/// * What was lost while no repair symbol for it is in flight is sent again as it was, so that a
///   message is complete without the rest of the window.
/// * The implementation sends one repair symbol more than the paper says. The paper is followed, and
///   the mean length of bursts is rounded rather than raised to the next whole number: losses that
///   are next to each other by chance do not double the redundancy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Messages;

impl RedundancyFactory for Messages {
    fn name(&self) -> &str {
        ENTRY.name
    }

    fn parameters(&self) -> String {
        String::new()
    }

    fn build(&self) -> Box<dyn Redundancy> {
        Box::new(Flec(MessageRules::default()))
    }
}

#[derive(Debug, Default)]
struct MessageRules {
    /// How many symbols were unprotected when that last changed.
    unprotected: u32,
    /// How many repair symbols protect the newest symbol, and how many are to.
    triggered: u32,
    most: u32,
    /// How long the least patient of these may take; `None` if there is none with a deadline.
    tolerance: Option<Duration>,
    /// When what is unprotected can wait no longer.
    wake: Option<Instant>,
}

/// How long before the last moment a repair symbol is sent (`epsilon`).
fn margin(path: &PathView) -> Duration {
    (path.rtt_variation * MARGIN_DEVIATIONS).max(MIN_MARGIN)
}

/// How much sooner than necessary a retransmission must arrive to be relied on: the margin, but at least
/// a sixteenth of a round trip, because a loss is known only when later packets arrive. At most an eighth,
/// because the first estimates of the deviation are far too high.
fn reserve(path: &PathView) -> Duration {
    margin(path).max(path.rtt / 16).min(path.rtt / 8)
}

/// Whether what is lost of a message that may take this long is there in time if it is sent again.
pub(super) fn retransmission_is_in_time(tolerance: Duration, view: &View) -> bool {
    let tolerance = tolerance.checked_sub(reserve(&view.path));
    tolerance.is_some_and(|tolerance| view.retransmission_is_enough(tolerance))
}

impl MessageRules {
    /// Whether a message that is unprotected would be too late if this waited for the next one, and
    /// if it was sent again when its loss is known.
    fn is_urgent(&self, now: Instant, view: &View) -> bool {
        if self.tolerance.is_some_and(|time| retransmission_is_in_time(time, view)) {
            return false;
        }
        let (Some(deadline), Some(next)) = (view.deadline, view.next_message) else {
            return view.unprotected > 0;
        };
        let arrival = now.max(next).checked_add(view.path.one_way() + margin(&view.path));
        arrival.is_none_or(|arrival| arrival >= deadline)
    }

    /// What is unprotected has changed.
    fn plan(&mut self, view: &View) {
        self.unprotected = view.unprotected;
        if view.unprotected == 0 {
            self.tolerance = None;
        }
        let travel = view.path.one_way() + margin(&view.path);
        self.wake = view.deadline.and_then(|deadline| deadline.checked_sub(travel));
    }
}

impl Rules for MessageRules {
    fn threshold(&self, loss: f64) -> f64 {
        -loss
    }

    fn mends(&self) -> bool {
        false
    }

    fn pattern(&self, now: Instant, view: &View) -> bool {
        let due = if view.unprotected > 0 {
            self.is_urgent(now, view)
        } else {
            self.triggered < self.most
        };
        let room = view.path.window as f64 > HEADROOM * view.path.in_flight as f64;
        due && room && view.idle
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
            (self.triggered, self.most) = (0, expected.max(burst(view).round()) as u32);
        }
        self.triggered = self.triggered.saturating_add(1);
        self.plan(view);
    }

    fn on_arrived(&mut self, _now: Instant, view: &View) {
        self.plan(view);
    }

    fn timeout(&self) -> Option<Instant> {
        self.wake
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::LossFloor;
    use crate::{Message, policy::Decision};

    const MS: Duration = Duration::from_millis(1);

    /// A path of 100 ms one way, with a margin of 20 ms.
    fn path() -> PathView {
        let floor = LossFloor { burst: 1.4, ..LossFloor::default() };
        let (window, in_flight) = (12_000, 10_000);
        PathView {
            rtt: 200 * MS,
            rtt_variation: 10 * MS,
            loss: 0.01,
            floor,
            window,
            in_flight,
            ..PathView::default()
        }
    }

    /// `unprotected` symbols of messages that must be there by `deadline`.
    fn view(unprotected: u32, deadline: Option<Instant>, next: Option<Instant>) -> View {
        View {
            next: 10,
            unacked: 10,
            unprotected,
            deadline,
            message: Some(Message { deadline, size: 1_000, ..Message::default() }),
            next_message: next,
            path: path(),
            ..View::default()
        }
    }

    fn repairs(policy: &dyn Redundancy, now: Instant, view: &View) -> bool {
        policy.decide(now, view) != Decision::Source
    }

    #[test]
    fn repair_waits_for_the_next_message_as_long_as_deadlines_allow() {
        let now = Instant::now();
        let by = Some(now + 250 * MS);
        let mut policy = Messages.build();
        // 100 ms and the margin before the deadline is the last moment.
        let soon = view(2, by, Some(now + 129 * MS));
        policy.on_source_sent(now, 9, &soon);
        assert!(!repairs(&*policy, now, &soon));
        assert_eq!(policy.timeout(), Some(now + 130 * MS));
        assert!(repairs(&*policy, now, &view(2, by, Some(now + 130 * MS))));
        assert!(repairs(&*policy, now, &view(2, by, None)), "nobody knows whether one comes");
        // The next one is late.
        assert!(!repairs(&*policy, now + 129 * MS, &soon));
        assert!(repairs(&*policy, now + 130 * MS, &soon));
        // Everything is covered, by as many as are expected to be lost.
        policy.on_repair_sent(now + 130 * MS, &view(0, None, None));
        assert!(!repairs(&*policy, now + 130 * MS, &view(0, None, None)));
        assert_eq!(policy.timeout(), None);
    }

    #[test]
    fn no_repair_symbol_takes_room_from_messages() {
        let now = Instant::now();
        let mut policy = Messages.build();
        let urgent = view(2, Some(now + 250 * MS), None);
        policy.on_source_sent(now, 9, &urgent);
        assert!(repairs(&*policy, now, &urgent));
        assert!(!repairs(&*policy, now, &View { idle: false, ..urgent }));
        let full = PathView { in_flight: 11_000, ..path() };
        assert!(!repairs(&*policy, now, &View { path: full, ..urgent }));
    }

    #[test]
    fn as_many_are_sent_as_losses_are_expected_or_come_in_a_row() {
        let now = Instant::now();
        for (unprotected, loss, burst, expected) in
            [(100, 0.01, 1.4, 1), (101, 0.01, 1.0, 2), (2, 0.01, 2.6, 3), (50, 0.1, 1.0, 5)]
        {
            let mut policy = Messages.build();
            let floor = LossFloor { burst, ..LossFloor::default() };
            let path = PathView { loss, floor, ..path() };
            let of = |unprotected, deadline| View { path, ..view(unprotected, deadline, None) };
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
            let mut policy = Messages.build();
            policy.on_source_sent(now, 9, &by);
            assert_eq!(repairs(&*policy, now, &by), expected, "{tolerance}");
            let late = now + 300 * MS;
            assert_eq!(repairs(&*policy, late, &by), expected, "time does not change that");
            assert!(repairs(&*policy, now, &View { resends: false, ..by }), "datagrams are lost");
        }
    }

    #[test]
    fn messages_without_deadline_are_protected_at_once() {
        let now = Instant::now();
        let mut policy = Messages.build();
        let v = view(2, None, Some(now + MS));
        policy.on_source_sent(now, 9, &v);
        assert!(repairs(&*policy, now, &v));
    }
}
