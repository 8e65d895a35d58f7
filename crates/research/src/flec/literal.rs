//! The patterns of Michel 2022 (FlEC) as they are written, beside those that deviate where
//! measurements say so: `bulk:literal`, `buffer:literal`, `messages:literal`, `ac-rlnc:literal`.
//!
//! All data becomes symbols, and a repair symbol always covers the whole window. The connection's own losses
//! count, whatever their cause; as long as few packets were sent, the losses of earlier connections to the
//! same peer. Values that the paper leaves open are as in the deviating policies: the factor `c`, and the
//! margin `epsilon` of Algorithm 4.

use super::last_moment::LastMoment;
use super::{Flec, FlecRules, LossFactor};
use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;
use sutura_proto::policy::{PathView, Redundancy, RedundancyFactory, View};
use sutura_proto::registry::{Parameters, UnknownPolicy};

/// The parameter that chooses between the paper's rules and ours.
const PARAMETER: &str = "rules";

/// Whether the parameters ask for the paper's rules: `literal`, or `rules=literal`.
///
/// # Errors
/// The rules are neither `literal` nor `tuned`.
pub(super) fn is_wanted(parameters: &mut Parameters<'_>) -> Result<bool, UnknownPolicy> {
    parameters.first_is(PARAMETER);
    match parameters.take(PARAMETER) {
        None | Some("tuned") => Ok(false),
        Some("literal") => Ok(true),
        Some(other) => {
            Err(UnknownPolicy::new(format!("rules: `{other}` is neither tuned nor literal")))
        }
    }
}

/// Builds policies of literal rules.
#[derive(Debug)]
struct Factory<R> {
    name: &'static str,
    parameters: String,
    /// The rules of a session that has sent nothing.
    rules: R,
}

impl<R: FlecRules + Clone + Sync + 'static> RedundancyFactory for Factory<R> {
    fn name(&self) -> &str {
        self.name
    }

    fn parameters(&self) -> String {
        self.parameters.clone()
    }

    fn build(&self) -> Box<dyn Redundancy> {
        Box::new(Flec::new(self.rules.clone()))
    }
}

/// `ds() = -l`; the pattern when all data is sent (section VI-A): as many repair symbols as losses are
/// expected in the window.
pub(super) fn bulk(name: &'static str) -> Arc<dyn RedundancyFactory> {
    let parameters = "rules=literal".to_owned();
    Arc::new(Factory { name, parameters, rules: LiteralBulkRules::default() })
}

/// `ds() = c l`; Algorithm 2.
pub(super) fn buffer(name: &'static str, c: LossFactor) -> Arc<dyn RedundancyFactory> {
    let rules = LiteralBufferRules { c, sequence: Sequence::default() };
    Arc::new(Factory { name, parameters: format!("rules=literal, c={}", c.get()), rules })
}

/// `ds() = -l`; Algorithm 4 with this `theta`.
pub(super) fn messages(name: &'static str, theta: f64) -> Arc<dyn RedundancyFactory> {
    let rules =
        LiteralMessageRules { sequence: Sequence::default(), moment: LastMoment::new(theta) };
    Arc::new(Factory { name, parameters: format!("rules=literal, theta={theta}"), rules })
}

/// After this many packets the losses of this connection count, and not the losses of earlier connections.
const KNOWN_PACKETS: u64 = 100;

/// `l`: the share of packets that are lost.
fn loss(path: &PathView) -> f64 {
    let remembered = path.outcomes < KNOWN_PACKETS && path.floor.high < 1.0;
    if remembered { path.floor.rate } else { path.loss }
}

/// How many are expected to be lost of `packets`.
fn expected(packets: impl Into<f64>, view: &View) -> f64 {
    packets.into() * loss(&view.path)
}

/// The repair symbols that protect the symbols in the window: the state of Algorithms 2 and 4.
#[derive(Debug, Clone, Copy, Default)]
struct Sequence {
    /// Symbols below this are protected (`last`).
    last: u64,
    /// How many repair symbols protect the newest protected symbol (`nTriggered`), and how many it is to have
    /// (`maxTrigger`).
    triggered: u32,
    most: u32,
}

impl Sequence {
    /// How many symbols of the window are not protected (`nUnprotected`).
    fn unprotected(&self, view: &View) -> u64 {
        view.next - self.last.clamp(view.first, view.next)
    }

    /// Whether the sequence goes on.
    fn is_open(&self) -> bool {
        self.triggered < self.most
    }

    /// A repair symbol was sent that the pattern asked for. If it is the first since symbols were added, a
    /// new sequence of `most` repair symbols begins.
    fn on_sent(&mut self, view: &View, most: impl FnOnce(f64) -> f64) {
        match self.unprotected(view) {
            0 => self.triggered = self.triggered.saturating_add(1),
            fresh => {
                let most = most(fresh as f64).ceil() as u32;
                *self = Self { last: view.next, triggered: 1, most };
            }
        }
    }
}

/// Line 10 of Algorithm 2 and line 7 of Algorithm 4: the expected losses, or a burst.
fn losses_or_a_burst(view: &View) -> impl FnOnce(f64) -> f64 {
    let (path, burst) = (view.path, view.path.burst);
    move |fresh| (fresh * loss(&path)).max(burst)
}

#[derive(Debug, Clone, Default)]
struct LiteralBulkRules {
    sequence: Sequence,
    /// Whether all data that the application has written was sent (`allStreamSent()`).
    all_sent: bool,
}

impl FlecRules for LiteralBulkRules {
    fn ds(&self, loss: f64) -> f64 {
        -loss
    }

    fn fec_pattern(&self, _now: Instant, view: &View) -> bool {
        let fresh = self.sequence.unprotected(view) > 0;
        let due = if fresh { expected(view.unacked, view) > 0.0 } else { self.sequence.is_open() };
        self.all_sent && view.left == 0 && due
    }

    fn mended_span(&self, _newest: u64, view: &View) -> Range<u64> {
        view.span()
    }

    fn on_source_sent(&mut self, _now: Instant, view: &View) {
        self.all_sent &= view.left == 0;
    }

    fn on_flushed(&mut self, _now: Instant, _ended: bool, _view: &View) {
        self.all_sent = true;
    }

    fn on_repair_sent(&mut self, now: Instant, view: &View) {
        // Repair symbols for known losses do not count.
        if self.fec_pattern(now, view) {
            self.sequence.on_sent(view, |_| expected(view.unacked, view));
        }
    }
}

#[derive(Debug, Clone)]
struct LiteralBufferRules {
    c: LossFactor,
    sequence: Sequence,
}

/// `1 / G_p`: how many packets arrive on average before some are lost.
fn gap(path: &PathView) -> f64 {
    let loss = loss(path);
    if loss > 0.0 { path.burst * (1.0 - loss) / loss } else { f64::INFINITY }
}

impl FlecRules for LiteralBufferRules {
    fn ds(&self, loss: f64) -> f64 {
        self.c.get() * loss
    }

    fn fec_pattern(&self, _now: Instant, view: &View) -> bool {
        // Lines 1 to 3: wait for feedback.
        if f64::from(view.added) >= 2.0 * expected(view.unacked, view).ceil() {
            return false;
        }
        match self.sequence.unprotected(view) {
            // Lines 11 to 16.
            0 => view.is_blocked() || self.sequence.is_open(),
            // Lines 4 to 10.
            fresh => {
                let full = fresh as f64 >= gap(&view.path).min(f64::from(view.unacked));
                full || view.is_blocked()
            }
        }
    }

    fn mended_span(&self, _newest: u64, view: &View) -> Range<u64> {
        view.span()
    }

    fn on_repair_sent(&mut self, now: Instant, view: &View) {
        // Repair symbols for known losses do not count. The pattern was asked before this repair symbol was
        // in flight.
        let mut before = *view;
        before.added = view.added.saturating_sub(1);
        if self.fec_pattern(now, &before) {
            self.sequence.on_sent(view, losses_or_a_burst(view));
        }
    }
}

#[derive(Debug, Clone)]
struct LiteralMessageRules {
    sequence: Sequence,
    moment: LastMoment,
}

impl FlecRules for LiteralMessageRules {
    fn ds(&self, loss: f64) -> f64 {
        -loss
    }

    fn fec_pattern(&self, now: Instant, view: &View) -> bool {
        // Lines 3 to 14.
        let due = self.sequence.unprotected(view) > 0 || self.sequence.is_open();
        due && LastMoment::is_near(now, view) && self.moment.has_room(view)
    }

    fn mended_span(&self, _newest: u64, view: &View) -> Range<u64> {
        view.span()
    }

    fn on_source_sent(&mut self, _now: Instant, view: &View) {
        self.moment.plan(view);
    }

    fn on_repair_sent(&mut self, _now: Instant, view: &View) {
        // A repair symbol for a known loss covers the window as well.
        self.sequence.on_sent(view, losses_or_a_burst(view));
        self.moment.plan(view);
    }

    fn on_arrived(&mut self, _now: Instant, view: &View) {
        self.moment.plan(view);
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
    use sutura_proto::policy::{Decision, RepairPlan};

    const MS: Duration = Duration::from_millis(1);

    /// A window of `unacked` symbols on a path of 100 ms that loses 5 % of packets, two in a row.
    fn view(unacked: u32) -> View {
        let mut view = View::default();
        (view.next, view.unacked, view.unprotected) = (unacked.into(), unacked, unacked);
        (view.path.rtt, view.path.rtt_variation) = (100 * MS, MS);
        (view.path.loss, view.path.burst, view.path.outcomes) = (0.05, 2.0, 1_000);
        (view.path.window, view.path.in_flight) = (100_000, 50_000);
        view
    }

    fn repairs(policy: &dyn Redundancy, now: Instant, view: &View) -> bool {
        let decision = policy.decide(now, view);
        let all = Decision::Repair(RepairPlan::over(view.span()));
        assert!(decision == Decision::Source || decision == all, "{decision:?}");
        decision == all
    }

    /// How many repair symbols go before data does.
    fn sent(policy: &mut dyn Redundancy, now: Instant, mut view: View) -> u32 {
        let before = view.added;
        while repairs(policy, now, &view) {
            view.added += 1;
            (view.unprotected, view.deadline) = (0, None);
            policy.on_repair_sent(now, &view);
            assert!(view.added < 1_000, "they come to an end");
        }
        view.added - before
    }

    #[test]
    fn the_rules_are_chosen_by_name() {
        let made = |text| crate::redundancy().find(text).map(|made| made.parameters());
        for (text, parameters) in [
            ("bulk", ""),
            ("bulk:literal", "rules=literal"),
            ("bulk:rules=literal", "rules=literal"),
            ("buffer:literal,c=2", "rules=literal, c=2"),
            ("ac-rlnc:literal", "rules=literal, c=1"),
            ("messages", "theta=1.1"),
            ("messages:literal,theta=1.5", "rules=literal, theta=1.5"),
        ] {
            assert_eq!(made(text).as_deref(), Ok(parameters), "{text}");
        }
        for text in ["bulk:exact", "messages:literal,theta=0.9", "buffer:literal,c=-1"] {
            assert!(made(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_bulk_transfer_is_symbols_all_the_time_and_ends_with_the_expected_losses() {
        let (now, mut policy) = (Instant::now(), bulk("bulk").build());
        let more = with(view(60), |view| (view.left, view.has_source) = (1 << 30, true));
        assert!(policy.protects(&more) && policy.mends());
        policy.on_source_sent(now, 59, &more);
        assert_eq!(sent(&mut *policy, now, more), 0);
        let lost = with(more, |view| (view.missing, view.newest_missing) = (1, Some(3)));
        let Decision::Repair(plan) = policy.decide(now, &lost) else { panic!("it is mended") };
        assert_eq!(plan.span, lost.span(), "by a repair symbol over the window");
        policy.on_repair_sent(now, &with(lost, |view| view.added = 1));
        policy.on_flushed(now, false, &view(60));
        assert_eq!(sent(&mut *policy, now, view(60)), 3, "5 % of 60, and no silence before");
        assert_eq!(sent(&mut *policy, now, view(60)), 0);
        // Too few packets were sent on a path of which earlier connections know.
        let mut policy = bulk("bulk").build();
        policy.on_flushed(now, true, &view(60));
        let new = with(view(60), |view| {
            (view.path.loss, view.path.outcomes) = (0.0, 10);
            (view.path.floor.rate, view.path.floor.high) = (0.1, 0.2);
        });
        assert_eq!(sent(&mut *policy, now, new), 6);
    }

    /// A sender whose window is full of `unacked` symbols, the last of them `next`.
    fn limited(next: u64, unacked: u32, added: u32) -> View {
        with(view(unacked), |view| {
            (view.first, view.next, view.added) = (next - u64::from(unacked), next, added);
            (view.left, view.has_source) = (1 << 30, true);
        })
    }

    #[test]
    fn algorithm_2_protects_every_gap_on_every_path() {
        let (now, mut policy) = (Instant::now(), buffer("buffer", LossFactor::default()).build());
        // 1 / G_p is 38.
        assert_eq!(sent(&mut *policy, now, limited(1_000, 500, 0)), 25, "l n is more than a burst");
        assert!(!repairs(&*policy, now, &limited(1_037, 500, 10)));
        assert_eq!(sent(&mut *policy, now, limited(1_038, 500, 10)), 2, "1 / G_r is more than l n");
        // Lines 1 to 3, and a window that is smaller than the gap.
        assert!(!repairs(&*policy, now, &limited(1_200, 100, 10)));
        assert!(repairs(&*policy, now, &limited(1_200, 100, 9)));
        assert!(repairs(&*policy, now, &limited(1_058, 20, 1)));
        let lossless = with(limited(1_200, 100, 0), |view| view.path.loss = 0.0);
        assert!(!repairs(&*policy, now, &lossless), "nothing is expected to be lost");
    }

    #[test]
    fn algorithm_2_goes_on_while_flow_control_blocks() {
        let (now, mut policy) = (Instant::now(), buffer("buffer", LossFactor::default()).build());
        let blocked = with(limited(100, 100, 0), |view| view.has_source = false);
        assert_eq!(sent(&mut *policy, now, blocked), 10, "twice the expected losses");
        let one_more = with(blocked, |view| view.next = 101);
        assert_eq!(sent(&mut *policy, now, one_more), 10, "whatever the gap");
    }

    /// `unprotected` symbols of messages that must be there by `deadline`.
    fn waiting(unprotected: u32, deadline: Option<Instant>, next: Option<Instant>) -> View {
        with(view(unprotected), |view| (view.deadline, view.next_message) = (deadline, next))
    }

    #[test]
    fn algorithm_4_waits_for_the_next_message_whatever_a_retransmission_takes() {
        let (now, mut policy) = (Instant::now(), messages("messages", 1.1).build());
        let by = Some(now + 250 * MS);
        // Half a round trip and the margin before the deadline is the last moment.
        let soon = waiting(2, by, Some(now + 197 * MS));
        policy.on_source_sent(now, 1, &soon);
        assert!(!repairs(&*policy, now, &soon));
        assert_eq!(policy.timeout(), Some(now + 198 * MS));
        assert!(repairs(&*policy, now, &waiting(2, by, Some(now + 198 * MS))));
        // A retransmission would be in time.
        assert!(repairs(&*policy, now, &waiting(2, by, None)));
    }

    #[test]
    fn algorithm_4_without_api_protects_every_message() {
        let (now, mut policy) = (Instant::now(), messages("messages", 1.1).build());
        assert_eq!(sent(&mut *policy, now, waiting(1, None, None)), 2, "1 / G_r");
        let long = with(waiting(99, None, None), |view| view.path.burst = 2.2);
        assert_eq!(sent(&mut *policy, now, long), 5, "98 new ones, rounded up");
        let burst = with(waiting(100, None, None), |view| view.path.burst = 2.2);
        assert_eq!(sent(&mut *policy, now, burst), 3, "a burst, rounded up");
    }

    #[test]
    fn algorithm_4_leaves_room_for_messages() {
        let now = Instant::now();
        let full = |in_flight| with(waiting(2, None, None), |view| view.path.in_flight = in_flight);
        for (theta, last) in [(1.1, 90_900), (2.0, 49_999)] {
            let policy = messages("messages", theta).build();
            assert!(repairs(&*policy, now, &full(last)), "{theta}");
            assert!(!repairs(&*policy, now, &full(last + 20)), "{theta}");
            assert!(!repairs(&*policy, now, &with(full(0), |view| view.idle = false)), "{theta}");
        }
    }

    #[test]
    fn causal_coding_sends_one_in_each_round_trip() {
        let policy = crate::redundancy().find("ac-rlnc:literal").unwrap();
        let (now, mut policy) = (Instant::now(), policy.build());
        policy.on_source_sent(now, 49, &view(50));
        assert_eq!(sent(&mut *policy, now, view(50)), 0);
        for round in 1..4 {
            assert_eq!(sent(&mut *policy, now + round * 100 * MS, view(50)), 1, "{round}");
        }
    }

    #[test]
    fn they_keep_the_contract() {
        crate::flec::conformance(LiteralBulkRules::default);
        for theta in [1.0, 1.1, 100.0] {
            sutura_proto::conformance::redundancy(&*messages("messages", theta));
        }
        for c in [0.0, 1.0, 100.0] {
            let c = LossFactor::new(c).unwrap();
            sutura_proto::conformance::redundancy(&*buffer("buffer", c));
        }
    }
}
