//! Redundancy that sets itself.
//!
//! Data is sent in *pieces*: a piece is the data between two moments in which the sender has no data that it
//! may send, because the application has no more data for now or because the receiver's buffer is full. After
//! each piece, repair symbols delay no other data, and a loss among the piece's last packets is found out
//! late. A piece also ends at a [fence](https://docs.rs/sutura-groups), behind which the receiver holds all
//! data until the piece is complete: repair symbols at a fence delay the data behind it. So each piece is followed by as
//! many repair symbols as are worth sending, by the chances that the [`model`] works out from the [floor of
//! loss](crate::loss_floor::LossFloor): losses with a growing queue are left to congestion control. For
//! messages with fences, more repair symbols are worth sending.
//!
//! Repair symbols wait for as long as a burst of losses usually lasts, so that a burst that takes the data
//! does not take the repair symbols as well; with a target, they wait as long as it allows.
//!
//! No repair symbol is sent where no loss is known, except for a few at fences as an insurance against the
//! first loss; where a retransmission comes soon enough; where too few repair symbols would be of use; beyond
//! the budget; and for a while after repair symbols did not help.

mod help;
mod model;
mod outlook;
mod part;
#[cfg(test)]
mod tests;
mod waiting;

use super::{
    Arrival, Decision, MAX_DELAY, PathView, Reason, Redundancy, RedundancyFactory, RepairPlan,
    Stage, Terms, View,
};
use crate::loss_floor::LossFloor;
use help::Help;
use model::{MOST, Train};
use outlook::Outlook;
use part::Part;
use std::sync::Arc;
use std::time::{Duration, Instant};
use sutura_schedule::registry::{Entry, Parameters, UnknownPolicy};
use waiting::Waiting;

pub(super) const ENTRY: Entry<dyn RedundancyFactory> = Entry::with_parameters(
    "auto",
    "repair symbols where they save time, by the losses of the path",
    "budget=0.25,within=none,share=0.999,expect=0,without=none",
    |parameters| {
        let expect = parameters.number("expect", 0.0)?;
        let budget = parameters.number("budget", DEFAULT_BUDGET)?;
        let without = parameters.take("without").map_or(Ok(None), Part::named)?;
        let within = within(parameters)?;
        let share = parameters.number("share", DEFAULT_SHARE)?;
        let auto = Auto::new(budget).ok_or_else(|| {
            UnknownPolicy::new(format!("budget: {budget} is not a number from 0 to {MAX_BUDGET}"))
        })?;
        let auto = auto.expecting(expect).ok_or_else(|| {
            UnknownPolicy::new(format!("expect: {expect} is not a number from 0 to {MAX_EXPECTED}"))
        })?;
        let auto = Auto { without, ..auto };
        let Some(within) = within else { return Ok(Arc::new(auto)) };
        let auto = auto.within(within, share).ok_or_else(|| {
            UnknownPolicy::new(format!("share: {share} is not a number from 0 to 1"))
        })?;
        Ok(Arc::new(auto))
    },
);

fn within(parameters: &mut Parameters<'_>) -> Result<Option<Duration>, UnknownPolicy> {
    let Some(value) = parameters.take("within").filter(|value| *value != "none") else {
        return Ok(None);
    };
    let millis = value.strip_suffix("ms").unwrap_or(value).parse().ok().filter(|ms| *ms > 0);
    millis.map(Duration::from_millis).map(Some).ok_or_else(|| {
        UnknownPolicy::new(format!("within: `{value}` is not a number of milliseconds"))
    })
}

/// The most extra packets, as a share of the protected packets.
const DEFAULT_BUDGET: f64 = 0.25;
const MAX_BUDGET: f64 = 10.0;
const DEFAULT_SHARE: f64 = 0.999;
/// The largest share of packets that an application may expect to be lost.
const MAX_EXPECTED: f64 = 0.5;

/// A repair symbol is worth sending if it completes a piece with at least this probability.
const WORTHWHILE: f64 = 0.01;
/// The same before a fence, where an incomplete piece also stops the data behind the fence.
const WORTHWHILE_AT_FENCES: f64 = 0.001;
/// Where no loss is known, fences are insured with one repair symbol for this many source symbols, until the
/// loss is certainly below the share [`INSURED`].
const INSURES: u64 = 100;
const INSURED: f64 = 0.001;
/// A retransmission that takes no longer than this is soon enough for every application without a deadline or
/// target.
const UNNOTICED: Duration = Duration::from_millis(10);
/// How long to wait for the application to write more before it counts as having no more for now: a
/// writer in another task needs a moment to refill its buffer.
const FLUSH_LINGER: Duration = Duration::from_millis(1);
/// Without a target, repair symbols wait no longer than a round trip divided by this number.
const MOST_WAIT_DIVISOR: u32 = 8;
/// The gap between repair symbols is the length of a burst divided by this number.
const SPACING_DIVISOR: u32 = 4;
/// The last repair symbol leaves earlier than a target demands, by the round-trip time divided by this
/// number: the path is not always equally fast.
const MARGIN_DIVISOR: u32 = 32;
/// Where no loss is known, data that takes at least this many packets at once is protected against the first.
const LONG: u64 = 16;
/// The size of a packet, to reckon the cost of one more packet while other data waits.
const PACKET: f64 = 1200.0;
/// The most that rounding may take from the budget.
const ROUNDING: f64 = 1e-6;
/// How many of the repair symbols that the budget allows are kept for mending lost datagrams.
const KEPT_FOR_MENDING: f64 = 2.0;

/// Chooses by itself how many repair symbols are sent, and when.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Auto {
    budget: f64,
    target: Option<LatencyTarget>,
    /// The assumed share of lost packets, until the losses of the path are known or certainly lower.
    expect: f64,
    /// The part that is switched off.
    without: Option<Part>,
}

/// The application's target: a piece of data is to be at the receiver `within` this time after it was
/// written, in this share of cases.
#[derive(Debug, Clone, Copy, PartialEq)]
struct LatencyTarget {
    within: Duration,
    share: f64,
}

impl Default for Auto {
    /// Completes data as soon as possible, for a quarter more packets at most.
    fn default() -> Self {
        Self { budget: DEFAULT_BUDGET, target: None, expect: 0.0, without: None }
    }
}

impl Auto {
    /// Completes data as soon as possible, with at most `budget` repair symbols per source symbol; `None` if
    /// `budget` is not from 0 to 10.
    #[must_use]
    pub fn new(budget: f64) -> Option<Self> {
        (0.0..=MAX_BUDGET).contains(&budget).then_some(Self { budget, ..Self::default() })
    }

    /// With the target that `share` of all pieces are at the receiver `within` this time, at most
    /// [`MAX_DELAY`], after they were written. No more repair symbols are sent than the target needs, or than
    /// the budget allows if it cannot be met. `None` if `share` is not from 0 to 1.
    #[must_use]
    pub fn within(self, within: Duration, share: f64) -> Option<Self> {
        let target = Some(LatencyTarget { within: within.min(MAX_DELAY), share });
        (0.0..=1.0).contains(&share).then_some(Self { target, ..self })
    }

    /// Protects as if this share of packets were lost until losses are known, or certainly lower. For
    /// applications that send so little that the losses of the path become known late. `None` if the share is
    /// not from 0 to 0.5.
    #[must_use]
    pub fn expecting(self, share: f64) -> Option<Self> {
        (0.0..=MAX_EXPECTED).contains(&share).then_some(Self { expect: share, ..self })
    }

    fn has(&self, part: Part) -> bool {
        self.without != Some(part)
    }

    /// The floor of loss to go by for data that may take `tolerance` (`None` without a target and a deadline):
    /// the known floor and what is late, or else the expected loss.
    fn floor(&self, path: &PathView, tolerance: Option<Duration>) -> LossFloor {
        let mut floor = path.floor;
        if floor.late > 0.0 && self.has(Part::Lateness) && is_late(path, tolerance) {
            let late = floor.late;
            let [rate, low, high] = [floor.rate, floor.low, floor.high].map(|rate| rate + late);
            floor = floor.with_rate(rate).with_low(low.min(rate)).with_high(high.min(1.0));
        }
        if !self.has(Part::Changes) {
            floor.other = None;
        }
        if !self.has(Part::Bounds) {
            floor = floor.with_low(floor.rate).with_high(floor.rate);
        }
        floor.crowded &= self.has(Part::Room);
        let known = floor.rate > 0.0 || floor.high < self.expect || self.expect <= 0.0;
        if known {
            return floor;
        }
        let expect = self.expect;
        floor.with_rate(expect).with_low(expect).with_high(expect).with_excess(0.0)
    }

    /// How many repair symbols the congestion window has room for after a piece with these symbols. Where other
    /// pieces are in flight, as many repair symbols for each of them must leave room for the data: repair symbols
    /// must not make the next piece wait.
    fn room(&self, sources: Train, view: &View) -> usize {
        let path = &view.path;
        let spare = path.window as f64 / path.in_flight.max(1) as f64 - 1.0;
        if view.unacked <= sources.symbols || spare >= self.budget || !self.has(Part::Window) {
            return MOST;
        }
        (spare.max(0.0) * f64::from(sources.symbols)) as usize
    }

    /// How long data on these terms may take, by the target and its deadline.
    fn tolerance(&self, of_data: Option<Duration>) -> Option<Duration> {
        self.target.map(|target| target.within).into_iter().chain(of_data).min()
    }

    /// Whether the retransmission of lost data arrives soon enough on this path: in time for the target and
    /// the deadline, or, without both, so soon that the delay goes unnoticed.
    fn retransmission_is_enough(&self, path: &PathView, terms: Terms) -> bool {
        terms.resends && self.is_soon_enough(path, terms.tolerance)
    }

    /// Whether data that is sent after its loss is known arrives soon enough, whoever sends it.
    fn is_soon_enough(&self, path: &PathView, of_data: Option<Duration>) -> bool {
        match self.tolerance(of_data) {
            Some(tolerance) => path.retransmission_is_in_time(tolerance),
            None => path.retransmission_is_enough(UNNOTICED),
        }
    }
}

impl RedundancyFactory for Auto {
    fn name(&self) -> &str {
        ENTRY.name
    }

    fn parameters(&self) -> String {
        let Self { budget, target, expect, without } = self;
        let mut text = format!("budget={budget}");
        if let Some(LatencyTarget { within, share }) = target {
            text += &format!(", within={within:?}, share={share}");
        }
        if *expect > 0.0 {
            text += &format!(", expect={expect}");
        }
        if let Some(part) = without {
            text += &format!(", without={}", part.name());
        }
        text
    }

    /// The policy calls this for each of its pieces, too.
    fn sleeps(&self, path: &PathView, terms: Terms) -> Option<Reason> {
        if let Some(reason) = self.losses_to_leave(path, terms) {
            return Some(reason);
        }
        if path.silent && self.has(Part::Silence) {
            return Some(Reason::Silent);
        }
        let is_enough = self.retransmission_is_enough(path, terms);
        is_enough.then_some(Reason::RetransmissionIsEnough)
    }

    fn build(&self) -> Box<dyn Redundancy> {
        Box::new(AutoPolicy {
            auto: *self,
            piece: None,
            waiting: Waiting::default(),
            plan: None,
            purse: 0.0,
            fenced: false,
            insured_until: 0,
            patience: None,
            help: Help::default(),
            reason: Reason::Unknown,
        })
    }
}

#[derive(Debug)]
struct AutoPolicy {
    auto: Auto,
    /// The data sent since repair symbols last covered all data.
    piece: Option<Piece>,
    /// When that data was sent.
    waiting: Waiting,
    /// The repair symbols for the piece.
    plan: Option<Plan>,
    /// How many repair symbols the budget allows.
    purse: f64,
    /// Whether messages of an ordered group were sent.
    fenced: bool,
    /// No further repair symbol is sent as an insurance before this source symbol.
    insured_until: u64,
    /// How long the newest data may take, by its deadline.
    patience: Option<Duration>,
    help: Help,
    reason: Reason,
}

/// Source symbols that no repair symbol covers yet.
#[derive(Debug, Clone, Copy)]
struct Piece {
    /// The first source symbol of the piece.
    first: u64,
    /// The first source symbol since the last pause, and when it and the last source symbol were sent.
    fresh: u64,
    begun: Instant,
    last: Instant,
    /// Whether the application had no more data after the last source symbol.
    paused: bool,
    /// How long the least patient message of the piece may take.
    tolerance: Option<Duration>,
}

impl Piece {
    fn new(now: Instant, id: u64) -> Self {
        Self { first: id, fresh: id, begun: now, last: now, paused: false, tolerance: None }
    }

    /// The symbols of the piece that are not known to have arrived.
    fn train(&self, view: &View) -> Train {
        let symbols = view.next.saturating_sub(self.first.max(view.first));
        let symbols = u32::try_from(symbols).unwrap_or(u32::MAX).min(view.unacked);
        let gaps = u32::try_from(view.next - self.fresh).unwrap_or(u32::MAX).max(2) - 1;
        Train { symbols, gap: self.last.saturating_duration_since(self.begun) / gaps }
    }
}

/// Repair symbols that are to be sent.
#[derive(Debug, Clone, Copy)]
struct Plan {
    /// When the next repair symbol is sent.
    due: Instant,
    left: u32,
    /// The time from one repair symbol to the next.
    gap: Duration,
    /// By how much the repair symbols certainly raise the chance that the peer has the whole piece; 0 once
    /// the first is sent.
    gain: f64,
    /// Whether the repair symbols go before waiting data.
    at_fence: bool,
    /// The first source symbol after the plan was made, or behind the fence.
    end: u64,
}

/// The reason why repair symbols may be sent now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    /// The receiver accepts no more data for now.
    Blocked,
    /// The application has no more data for now.
    Paused,
    /// The application has no more data.
    Ended,
    /// A fence: the first symbol behind it was just sent.
    Fence,
}

/// Whether losses are known that do not depend on the rate: at present, or before the path last changed.
fn is_lossy(floor: &LossFloor, path: &PathView) -> bool {
    let returns = floor.other.map_or(0.0, |other| other.rate * other.probability(path.rtt));
    floor.rate > 0.0 || returns > INSURED
}

/// Whether packets that are late come too late for data that may take `tolerance`.
fn is_late(path: &PathView, tolerance: Option<Duration>) -> bool {
    tolerance.is_none_or(|tolerance| path.one_way() + path.floor.late_by > tolerance)
}

impl Auto {
    /// The reason why no repair symbol is worth sending against the losses of a path, if there is one.
    fn losses_to_leave(&self, path: &PathView, terms: Terms) -> Option<Reason> {
        let floor = self.floor(path, self.tolerance(terms.tolerance));
        if floor.crowded {
            return Some(Reason::Congestion);
        }
        if is_lossy(&floor, path) {
            return None;
        }
        let negligible = if terms.fenced { INSURED } else { WORTHWHILE };
        // A path of which little is known may lose packets.
        let is_long = terms.resends && terms.written >= LONG * PACKET as u64;
        let may_lose = self.has(Part::Insurance) && outlook::lossy(floor.known) >= WORTHWHILE;
        let insures = terms.fenced || is_long && may_lose;
        if floor.excess > 0.0 {
            Some(Reason::Congestion)
        } else if floor.high < negligible {
            Some(Reason::Lossless)
        } else if insures {
            None
        } else {
            Some(Reason::Unknown)
        }
    }
}

impl AutoPolicy {
    /// When the last repair symbol must leave to be in time, by the target and by the deadlines of messages;
    /// `None` if there is no deadline that can still be met.
    fn last_moment(&self, now: Instant, view: &View) -> Option<Instant> {
        let path = &view.path;
        let way = path.min_rtt / 2 + path.rtt / MARGIN_DIVISOR;
        let target = self.auto.target.and_then(|target| {
            let deadline = self.waiting.deadline(now + way, target.within);
            deadline.and_then(|at| at.checked_sub(way))
        });
        let message = view.deadline.and_then(|at| at.checked_sub(way));
        target.into_iter().chain(message).min()
    }

    /// Forgets the data that no repair symbol covers: it has arrived, or needs none.
    fn forget_piece(&mut self) {
        self.piece = None;
        self.waiting.clear();
    }

    /// Why no repair symbol is sent for a piece: no repair symbol is worth its bytes, or earlier repair
    /// symbols did not help.
    fn obstacle(&self, piece: &Piece, view: &View) -> Option<Reason> {
        let kind = if view.resends { Terms::STREAM } else { Terms::DATAGRAM };
        // Whether the data is long was decided when it was marked.
        let kind = kind.of_stream(u64::MAX).within(piece.tolerance);
        let terms = Terms { fenced: self.fenced, ..kind };
        let pauses = self.help.pauses(view);
        self.auto.sleeps(&view.path, terms).or(pauses.then_some(Reason::NoUse))
    }

    /// Chooses the repair symbols for the data sent since the last repair symbols.
    fn plan(&mut self, now: Instant, moment: Moment, view: &View) {
        let before = self.plan.take();
        let Some(piece) = self.piece else { return };
        let sources = piece.train(view);
        if sources.symbols == 0 {
            return;
        }
        let mends = self.mends_losses(view);
        if mends && self.auto.is_soon_enough(&view.path, piece.tolerance) {
            self.reason = Reason::RetransmissionIsEnough;
            return self.forget_piece();
        }
        // What would come too late is not mended.
        let mends = mends && self.auto.tolerance(piece.tolerance).is_none();
        let kept = if mends { KEPT_FOR_MENDING } else { 0.0 };
        let most = ((self.purse - kept + ROUNDING).max(0.0) as usize).min(MOST);
        let broke = (most == 0).then_some(Reason::Budget);
        let room = self.auto.room(sources, view);
        let held_back = (room == 0).then_some(Reason::Window);
        if let Some(reason) = self.obstacle(&piece, view).or(broke).or(held_back) {
            self.reason = reason;
            if reason == Reason::RetransmissionIsEnough {
                self.forget_piece();
            }
            return;
        }
        let floor = self.auto.floor(&view.path, self.auto.tolerance(piece.tolerance));
        let is_lossy = is_lossy(&floor, &view.path);
        if self.fenced && !is_lossy {
            return self.insure(now, moment, view);
        }
        let outlook = Outlook::new(&floor, view.path.rtt);
        let last_moment = self.last_moment(now, view);
        let slack = last_moment.and_then(|at| at.checked_duration_since(now));
        let (wait, gap) = times(moment, slack, floor.burst_time, view);
        let chances = outlook.complete(sources, wait, gap, most.min(room));
        let share = self.share(&piece).filter(|_| is_lossy);
        let Choice { repairs, gain, .. } = self.choose(chances, share, view);
        if repairs == 0 {
            self.reason = if is_lossy { Reason::Lossless } else { Reason::Unknown };
            return;
        }
        // With a deadline, the last repair symbol leaves as late as the deadline allows.
        let lasts = gap * (repairs - 1);
        let wait = slack.map_or(wait, |slack| wait.max(slack.saturating_sub(lasts)));
        let due = before.map_or(now + wait, |plan| plan.due.min(now + wait));
        self.reason = Reason::Protects { repairs, wait: due.saturating_duration_since(now) };
        let at_fence = moment == Moment::Fence;
        let end = view.next - u64::from(at_fence);
        let gain = gain * certainty(self.fenced, &floor);
        self.plan = Some(Plan { due, left: repairs, gap, gain, at_fence, end });
    }

    /// Plans a repair symbol now and then against the first loss on a path without known losses: at a fence,
    /// a loss would stop all data behind it.
    fn insure(&mut self, now: Instant, moment: Moment, view: &View) {
        if view.next < self.insured_until {
            self.reason = Reason::Unknown;
            return;
        }
        self.insured_until = view.next.saturating_add(INSURES);
        self.reason = Reason::Protects { repairs: 1, wait: Duration::ZERO };
        let at_fence = moment == Moment::Fence;
        let (gap, gain, end) = (Duration::ZERO, 0.0, view.next - u64::from(at_fence));
        self.plan = Some(Plan { due: now, left: 1, gap, gain, at_fence, end });
    }

    /// Whether the path is known to lose packets, or so much is sent at once that an unknown path may well lose
    /// some of it. Less is not marked there: streams that become symbols do not share packets.
    fn is_known_or_long(&self, view: &View) -> bool {
        let rest = (view.left as f64 / PACKET) as u64;
        let floor = self.auto.floor(&view.path, self.auto.tolerance(None));
        is_lossy(&floor, &view.path) || rest.saturating_add(view.unacked.into()) >= LONG
    }

    /// Whether lost data is mended by repair symbols after the loss, because nobody sends it again.
    fn mends_losses(&self, view: &View) -> bool {
        !view.resends && self.auto.has(Part::Mending)
    }

    /// Plans the repair symbols that mend datagrams which are known to be lost, if they can still be in time.
    fn mend(&mut self, now: Instant, view: &View) {
        let path = &view.path;
        let tolerance = self.auto.tolerance(self.patience);
        let in_time = tolerance.is_none_or(|most| path.retransmission_is_in_time(most));
        // The one that was just lost does not count as missing yet.
        let missing = (view.missing + 1).saturating_sub(view.added);
        let affordable = (self.purse + ROUNDING) as u32;
        let repairs = missing.min(affordable).min(MOST as u32);
        if repairs == 0 || !in_time || path.floor.crowded && self.auto.has(Part::Room) {
            return;
        }
        let left = self.plan.map_or(repairs, |plan| plan.left.max(repairs));
        self.reason = Reason::Protects { repairs: left, wait: Duration::ZERO };
        let (gap, gain) = (Duration::ZERO, 0.0);
        self.plan = Some(Plan { due: now, left, gap, gain, at_fence: false, end: view.next });
    }

    /// Lets repair symbols wait longer if the data with the first deadline has arrived.
    fn postpone(&mut self, now: Instant, view: &View) {
        let last_moment = self.piece.and_then(|_| self.last_moment(now, view));
        if let (Some(plan), Some(at)) = (&mut self.plan, last_moment) {
            let first = at.checked_sub(plan.gap * (plan.left - 1));
            plan.due = first.map_or(plan.due, |first| plan.due.max(first));
        }
    }

    /// In which share of cases a piece is to be in time; `None` if it has no deadline.
    fn share(&self, piece: &Piece) -> Option<f64> {
        match self.auto.target {
            Some(target) => Some(target.share),
            None => piece.tolerance.map(|_| DEFAULT_SHARE),
        }
    }

    /// How many repair symbols to send, by the chances that the peer has the whole piece after 0, 1, 2 and
    /// more repair symbols.
    fn choose(
        &self,
        chances: impl Iterator<Item = f64>,
        share: Option<f64>,
        view: &View,
    ) -> Choice {
        let price = price(self.fenced, view);
        let mut best = Choice { repairs: 0, gain: 0.0, value: 0.0 };
        let mut without = None;
        for (repairs, chance) in (0u32..).zip(chances) {
            let gain = chance - *without.get_or_insert(chance);
            let value = gain - price * f64::from(repairs);
            match share {
                // As many repair symbols as the target needs, or as the budget allows.
                Some(share) => {
                    best = Choice { repairs, gain, value };
                    if chance >= share {
                        break;
                    }
                }
                None if value > best.value => best = Choice { repairs, gain, value },
                None => {}
            }
        }
        best
    }
}

/// A number of repair symbols and their effect.
#[derive(Debug, Clone, Copy)]
struct Choice {
    repairs: u32,
    /// By how much the repair symbols raise the chance that the peer has the whole piece.
    gain: f64,
    /// The gain minus the price of the repair symbols.
    value: f64,
}

/// The least gain of a repair symbol, as a probability to complete a piece. While other data waits, the time
/// to send one more packet counts against the time saved: half a round trip on average, or a whole round trip
/// for data right behind a fence.
fn price(fenced: bool, view: &View) -> f64 {
    let (least, round_trips) = if fenced { (WORTHWHILE_AT_FENCES, 1.0) } else { (WORTHWHILE, 0.5) };
    if view.idle {
        return least;
    }
    let packets = view.path.window as f64 / PACKET;
    least.max(1.0 / round_trips / packets.max(1.0))
}

/// The share of the expected gain that is certain. Before fences, repair symbols go by an estimate that is
/// still coarse, and follow each other faster than the estimate improves.
fn certainty(fenced: bool, floor: &LossFloor) -> f64 {
    if fenced && floor.rate > 0.0 { floor.low / floor.rate } else { 1.0 }
}

/// How long to wait before the first repair symbol, and between them.
fn times(
    moment: Moment,
    slack: Option<Duration>,
    burst: Duration,
    view: &View,
) -> (Duration, Duration) {
    let least = match moment {
        Moment::Paused => FLUSH_LINGER,
        Moment::Blocked | Moment::Ended | Moment::Fence => Duration::ZERO,
    };
    let wait = match slack {
        Some(slack) => (slack / 2).min(burst),
        None => burst.min(view.path.rtt / MOST_WAIT_DIVISOR),
    };
    (wait.max(least), burst / SPACING_DIVISOR)
}

impl Redundancy for AutoPolicy {
    fn on_source_sent(&mut self, now: Instant, id: u64, view: &View) {
        self.purse = (self.purse + self.auto.budget).min(MOST as f64);
        let stage = view.message.map(|message| message.stage);
        self.fenced |= stage.is_some_and(|stage| stage != Stage::Apart);
        if stage == Some(Stage::First) {
            self.plan(now, Moment::Fence, view);
            self.forget_piece();
        }
        let piece = self.piece.get_or_insert(Piece::new(now, id));
        if std::mem::take(&mut piece.paused) {
            (piece.fresh, piece.begun) = (id, now);
        }
        if self.auto.target.is_some() {
            self.waiting.on_sent(now, id, piece.fresh == id);
        }
        piece.last = now;
        self.patience = view.tolerance(now);
        piece.tolerance = piece.tolerance.into_iter().chain(self.patience).min();
        if view.is_blocked() {
            self.plan(now, Moment::Blocked, view);
        }
    }

    fn on_flushed(&mut self, now: Instant, ended: bool, view: &View) {
        if view.has_source {
            // Another stream or message of the session goes on with the piece.
            return;
        }
        self.piece.iter_mut().for_each(|piece| piece.paused = true);
        self.plan(now, if ended { Moment::Ended } else { Moment::Paused }, view);
    }

    fn on_repair_sent(&mut self, now: Instant, view: &View) {
        self.purse = (self.purse - 1.0).max(0.0);
        let Some(plan) = self.plan.take() else { return };
        self.piece = self.piece.filter(|piece| piece.first >= plan.end);
        self.waiting.settle(plan.end);
        self.help.expect(plan.gain, view);
        let left = plan.left - 1;
        self.plan = (left > 0).then_some(Plan { due: now + plan.gap, left, gain: 0.0, ..plan });
    }

    fn on_lost(&mut self, now: Instant, _id: u64, view: &View) {
        if self.mends_losses(view) {
            self.mend(now, view);
        }
    }

    fn on_arrived(&mut self, now: Instant, _id: u64, how: Arrival, view: &View) {
        match how {
            Arrival::Recovered => self.help.on_mended(),
            Arrival::Acked | Arrival::Late => {}
        }
        self.waiting.settle(view.first);
        if view.unacked == 0 {
            self.plan = None;
            self.forget_piece();
        }
        self.help.settle(view);
        self.postpone(now, view);
    }

    fn protects(&self, view: &View) -> bool {
        // In the middle of a transfer, data is known to have arrived, or is sent again, long before repair
        // symbols may be sent.
        let fenced =
            self.fenced || view.message.is_some_and(|message| message.stage != Stage::Apart);
        fenced || view.pause_comes_near() && self.is_known_or_long(view)
    }

    fn decide(&self, now: Instant, view: &View) -> Decision {
        let in_turn = |plan: &Plan| plan.at_fence || !view.has_source;
        let due = self.plan.is_some_and(|plan| plan.due <= now && in_turn(&plan));
        if due && view.unacked > 0 {
            Decision::Repair(RepairPlan::over(view.span()))
        } else {
            Decision::Source
        }
    }

    fn timeout(&self) -> Option<Instant> {
        self.plan.map(|plan| plan.due)
    }

    fn reason(&self) -> Option<Reason> {
        Some(self.reason)
    }
}
