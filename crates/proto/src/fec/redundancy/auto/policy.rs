//! Which repair symbols follow a piece of data, and when.

use super::super::{
    Arrival, Decision, PathView, Reason, Redundancy, RedundancyFactory, RepairPlan, Stage, Terms,
    View,
};
use super::aspect::Aspect;
use super::help::Help;
use super::lost_datagrams::LostDatagrams;
use super::model::{MOST, Train};
use super::outlook::Outlook;
use super::pace::Pace;
use super::resending::Endangered;
use super::waiting::Waiting;
use super::{Auto, LONG, PACKET, WORTHWHILE, is_lossy};
use crate::loss_floor::LossFloor;
use crate::recovery::loss::PACKET_THRESHOLD;
use std::time::{Duration, Instant};

/// The same as [`WORTHWHILE`] before a fence, where an incomplete piece also stops the data behind the fence.
const WORTHWHILE_AT_FENCES: f64 = 0.001;
/// Where no loss is known, fences are insured with one repair symbol for this many source symbols, until the
/// loss is certainly below the share [`INSURED`](super::INSURED).
pub(super) const INSURES: u64 = 100;
/// How long to wait for the application to write more before it counts as having no more for now: a
/// writer in another task needs a moment to refill its buffer.
pub(super) const FLUSH_LINGER: Duration = Duration::from_millis(1);
/// Without a target, repair symbols wait no longer than a round trip divided by this number.
const MOST_WAIT_DIVISOR: u32 = 8;
/// The gap between repair symbols is the length of a burst divided by this number.
const SPACING_DIVISOR: u32 = 4;
/// The last repair symbol leaves earlier than a target demands, by the round-trip time divided by this
/// number: the path is not always equally fast.
const MARGIN_DIVISOR: u32 = 32;
/// How many products of the path's rate and round-trip time a congestion window has, as BBR's has.
const WINDOW_PRODUCTS: f64 = 2.0;
/// The most that rounding may take from the budget.
const ROUNDING: f64 = 1e-6;
/// Where the path has less room than the budget allows, so many repair symbols are saved at most.
const MOST_WITHOUT_ROOM: f64 = KEPT_FOR_MENDING + 2.0;
/// How many of the repair symbols that the budget allows are kept for mending lost datagrams.
const KEPT_FOR_MENDING: f64 = 2.0;

#[derive(Debug)]
pub(super) struct AutoPolicy {
    auto: Auto,
    /// The data sent since repair symbols last covered all data.
    piece: Option<Piece>,
    /// When that data was sent.
    waiting: Waiting,
    /// The repair symbols for the piece.
    plan: Option<Plan>,
    /// The lost datagrams that are to be mended.
    lost: LostDatagrams,
    /// How fast data was sent lately.
    pace: Pace,
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
    /// How long the least patient message of the piece may take.
    tolerance: Option<Duration>,
    /// The latest deadline; `None` if some of the piece has none.
    latest: Option<Instant>,
}

impl Piece {
    fn new(now: Instant, id: u64, deadline: Option<Instant>) -> Self {
        Self { first: id, fresh: id, begun: now, last: now, tolerance: None, latest: deadline }
    }

    /// The symbols of the piece that are not known to have arrived.
    fn train(&self, view: &View) -> Train {
        let symbols = view.next.saturating_sub(self.first.max(view.span().start));
        let symbols = u32::try_from(symbols).unwrap_or(u32::MAX).min(view.unacked);
        let gaps = u32::try_from(view.next - self.fresh).unwrap_or(u32::MAX).max(2) - 1;
        Train { symbols, gap: self.last.saturating_duration_since(self.begun) / gaps }
    }
}

/// What repair symbols are to do for a piece, and how many are affordable.
#[derive(Debug, Clone, Copy)]
struct Demand {
    sources: Train,
    /// The floor of loss to go by.
    floor: LossFloor,
    /// In which share of cases the piece is to be in time; `None` if it has no deadline.
    share: Option<f64>,
    /// How many repair symbols the budget allows.
    most: usize,
    /// When the first leaves at the latest, because it was planned before.
    before: Option<Instant>,
}

/// Repair symbols that are to be sent.
#[derive(Debug, Clone, Copy)]
struct Plan {
    /// When the next repair symbol is sent.
    due: Instant,
    left: u32,
    /// Whether the data has a deadline.
    dated: bool,
    /// Whether the first of them was sent.
    begun: bool,
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

impl AutoPolicy {
    pub(super) fn new(auto: Auto) -> Self {
        Self {
            auto,
            piece: None,
            waiting: Waiting::default(),
            plan: None,
            lost: LostDatagrams::default(),
            pace: Pace::default(),
            purse: 0.0,
            fenced: false,
            insured_until: 0,
            patience: None,
            help: Help::default(),
            reason: Reason::Unknown,
        }
    }

    /// When the last repair symbol must leave to be in time, by the target and by the deadlines of messages;
    /// `None` if there is no deadline that can still be met.
    fn last_moment(&self, now: Instant, view: &View) -> Option<Instant> {
        let path = &view.path;
        let way = path.one_way() + path.rtt / MARGIN_DIVISOR;
        let target = self.auto.target.and_then(|target| {
            let deadline = self.waiting.deadline(now + way, target.within(path));
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
        let pauses = self.help.pauses(view);
        self.auto.sleeps(&view.path, self.terms(piece, view)).or(pauses.then_some(Reason::NoUse))
    }

    /// The terms of a piece.
    fn terms(&self, piece: &Piece, view: &View) -> Terms {
        let kind = if view.resends { Terms::STREAM } else { Terms::DATAGRAM };
        // Whether the data is long was decided when it was marked.
        let kind = kind.of_stream(u64::MAX).within(piece.tolerance);
        Terms { fenced: self.fenced, ..kind }
    }

    /// Those of all symbols of a piece that would come too late if they were lost and sent again.
    fn endangered(&self, moment: Moment, piece: &Piece, all: Train, view: &View) -> Train {
        let path = &view.path;
        let shown = match moment {
            // The data behind it follows at once.
            Moment::Fence => Some(path.rtt),
            Moment::Blocked | Moment::Paused | Moment::Ended => self.pace.shows_loss_after(path),
        };
        let noticed = shown.map_or(path.pto, |shown| shown.min(path.pto));
        let most = match self.auto.endangered(path, self.terms(piece, view), noticed) {
            Endangered::Nothing => 0,
            Endangered::End => PACKET_THRESHOLD as u32,
            Endangered::All => u32::MAX,
        };
        Train { symbols: all.symbols.min(most), ..all }
    }

    /// Chooses the repair symbols for the data sent since the last repair symbols.
    fn plan(&mut self, now: Instant, moment: Moment, view: &View) {
        if moment != Moment::Fence && self.plan.is_some_and(|plan| plan.dated && plan.begun) {
            // It is carried out first.
            return;
        }
        let before = self.plan.take();
        let Some(piece) = self.piece else { return };
        let all = piece.train(view);
        if all.symbols == 0 {
            return;
        }
        if piece.latest.is_some_and(|latest| latest < now + view.path.one_way()) {
            self.reason = Reason::Expired;
            return self.forget_piece();
        }
        let mends = self.mends_losses(view);
        if mends && self.auto.is_soon_enough(&view.path, piece.tolerance) {
            self.reason = Reason::RetransmissionIsEnough;
            return self.forget_piece();
        }
        // What would come too late is not mended.
        let mends = mends && self.auto.tolerance(&view.path, piece.tolerance).is_none();
        let kept = if mends { KEPT_FOR_MENDING } else { 0.0 };
        let most = ((self.purse - kept + ROUNDING).max(0.0) as usize).min(MOST);
        let broke = (most == 0).then_some(Reason::Budget);
        if let Some(reason) = self.obstacle(&piece, view).or(broke) {
            self.reason = reason;
            if reason == Reason::RetransmissionIsEnough {
                self.forget_piece();
            }
            return;
        }
        let sources = self.endangered(moment, &piece, all, view);
        if sources.symbols == 0 {
            self.reason = Reason::RetransmissionIsEnough;
            return self.forget_piece();
        }
        let floor = self.auto.floor(&view.path, self.auto.tolerance(&view.path, piece.tolerance));
        if self.fenced && !is_lossy(&floor, &view.path) {
            return self.insure(now, moment, view);
        }
        let (share, before) = (self.share(&piece, &floor, view), before.map(|plan| plan.due));
        self.plan_repairs(now, moment, &Demand { sources, floor, share, most, before }, view);
    }

    /// Plans the repair symbols for a piece.
    fn plan_repairs(&mut self, now: Instant, moment: Moment, demand: &Demand, view: &View) {
        let Demand { sources, floor, share, most, before } = *demand;
        let is_lossy = is_lossy(&floor, &view.path);
        let outlook = Outlook::new(&floor, view.path.rtt);
        let last_moment = self.last_moment(now, view);
        let slack = last_moment.and_then(|at| at.checked_duration_since(now));
        // Where the number of packets ends a burst, waiting does not.
        let end_of_burst = if floor.by_number { Duration::ZERO } else { floor.burst_time };
        let (wait, gap) = times(moment, slack, end_of_burst, view);
        let chances = |sources, most| outlook.complete(sources, wait, gap, most);
        let has_room = self.auto.has_room(sources, view);
        let share = share.filter(|_| is_lossy && has_room);
        let others_wait = self.auto.others_wait(view, has_room);
        let price = price(self.fenced, others_wait, &view.path);
        let Choice { repairs, gain, .. } = choose(chances(sources, most), share, price);
        if repairs == 0 {
            self.reason = match (is_lossy, has_room) {
                (true, true) if others_wait > 0.0 => Reason::Waiting,
                (true, true) => Reason::Lossless,
                (true, false) => Reason::Window,
                (false, _) => Reason::Unknown,
            };
            return;
        }
        // With a deadline, the last repair symbol leaves as late as the deadline allows, unless the budget is short.
        let lasts = gap * (repairs - 1);
        let suffices = |slack: &Duration| {
            let (symbols, most) = self.until(&view.path, *slack, sources.symbols, most);
            let chance = chances(Train { symbols, ..sources }, most).last();
            let enough = share.is_none_or(|share| chance.is_some_and(|chance| chance >= share));
            enough || !self.auto.has(Aspect::Shortage)
        };
        let latest = slack.filter(suffices).map(|slack| slack.saturating_sub(lasts));
        let wait = wait.max(latest.unwrap_or_default());
        let due = before.map_or(now + wait, |due| due.min(now + wait));
        self.reason = Reason::Protects { repairs, wait: due.saturating_duration_since(now) };
        let at_fence = moment == Moment::Fence;
        let end = view.next - u64::from(at_fence);
        let gain = gain * certainty(self.fenced, &floor);
        let (left, dated, begun) = (repairs, slack.is_some(), false);
        self.plan = Some(Plan { due, left, dated, begun, gap, gain, at_fence, end });
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
        self.plan =
            Some(Plan { due: now, left: 1, dated: false, begun: false, gap, gain, at_fence, end });
    }

    /// How many source symbols a piece has and how many repair symbols are affordable after `time`, if there are
    /// `symbols` and `most` now.
    fn until(&self, path: &PathView, time: Duration, symbols: u32, most: usize) -> (u32, usize) {
        let more = self.pace.within(time);
        let affordable = (f64::from(more) * self.auto.budget_within(path)) as usize;
        (symbols.saturating_add(more), most.saturating_add(affordable))
    }

    /// Whether the path is known to lose packets, or so much is sent at once that an unknown path may well lose
    /// some of it. Less is not marked there: streams that become symbols do not share packets.
    fn is_known_or_long(&self, view: &View) -> bool {
        let rest = (view.left as f64 / PACKET) as u64;
        let floor = self.auto.floor(&view.path, self.auto.tolerance(&view.path, None));
        is_lossy(&floor, &view.path) || rest.saturating_add(view.unacked.into()) >= LONG
    }

    /// Whether lost data is mended by repair symbols after the loss, because nobody sends it again.
    fn mends_losses(&self, view: &View) -> bool {
        !view.resends && self.auto.has(Aspect::Mending)
    }

    /// Mends a lost datagram, if that can still be in time.
    fn mend(&mut self, now: Instant, id: u64, view: &View) {
        let tolerance = self.auto.tolerance(&view.path, self.patience);
        let in_time = tolerance.is_none_or(|most| view.path.retransmission_is_in_time(most));
        let floor = self.auto.floor(&view.path, tolerance);
        self.lost.expire(view.span().start);
        if in_time && id >= view.span().start && !floor.crowded && !floor.withheld {
            self.lost.add(now, id);
            self.reason = Reason::Protects { repairs: 1, wait: Duration::ZERO };
        }
    }

    /// The lost datagram that the next repair symbol mends. It goes before new data, as data that is sent again does.
    fn next_lost(&self, view: &View) -> Option<u64> {
        self.lost.first(view.span().start).filter(|_| self.affords_one())
    }

    fn affords_one(&self) -> bool {
        self.purse + ROUNDING >= 1.0
    }

    /// Lets repair symbols wait longer if the data with the first deadline has arrived.
    fn postpone(&mut self, now: Instant, view: &View) {
        let last_moment = self.piece.and_then(|_| self.last_moment(now, view));
        if let (Some(plan), Some(at)) = (&mut self.plan, last_moment) {
            let first = at.checked_sub(plan.gap * (plan.left - 1));
            plan.due = first.map_or(plan.due, |first| plan.due.max(first));
        }
    }

    /// In which share of cases repair symbols are to mend the losses of a piece in time; `None` if it has no deadline.
    fn share(&self, piece: &Piece, floor: &LossFloor, view: &View) -> Option<f64> {
        self.auto.tolerance(&view.path, piece.tolerance)?;
        Some(1.0 - self.auto.may_fail(&view.path, floor, self.terms(piece, view)))
    }
}

/// How many repair symbols to send, by the chances that the peer has the whole piece after 0, 1, 2 and more
/// repair symbols, and the least gain of each.
fn choose(chances: impl Iterator<Item = f64>, share: Option<f64>, price: f64) -> Choice {
    let mut best = Choice::default();
    let mut without = None;
    for (repairs, chance) in (0u32..).zip(chances) {
        let gain = chance - *without.get_or_insert(chance);
        let value = gain - price * f64::from(repairs);
        let choice = Choice { repairs, gain, value };
        match share {
            Some(share) if chance >= share => return choice,
            // If the target is out of reach, more than this would be spent on bursts that take repair symbols, too.
            Some(share) if gain - best.gain > 1.0 - share => best = choice,
            None if value > best.value => best = choice,
            Some(_) | None => {}
        }
    }
    best
}

/// A number of repair symbols and their effect.
#[derive(Debug, Clone, Copy, Default)]
struct Choice {
    repairs: u32,
    /// By how much the repair symbols raise the chance that the peer has the whole piece.
    gain: f64,
    /// The gain minus the price of the repair symbols.
    value: f64,
}

/// The least gain of a repair symbol, as a probability to complete a piece. As far as other data waits meanwhile, with
/// this probability, the time to send one more packet counts against the time saved: half a round trip on average, or a
/// whole round trip for data right behind a fence.
fn price(fenced: bool, others_wait: f64, path: &PathView) -> f64 {
    let (least, round_trips) = if fenced { (WORTHWHILE_AT_FENCES, 1.0) } else { (WORTHWHILE, 0.5) };
    let packets = path.window as f64 / PACKET;
    least.max(others_wait / round_trips / packets.max(1.0))
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
    let path = &view.path;
    let (wait, packet) = match slack {
        // Each takes time, and the last must not be late.
        Some(slack) => {
            let windows = PACKET / (path.window as f64).max(PACKET);
            ((slack / 2).min(burst), path.rtt.mul_f64(WINDOW_PRODUCTS * windows))
        }
        None => (burst.min(path.rtt / MOST_WAIT_DIVISOR), Duration::ZERO),
    };
    (wait.max(least), (burst / SPACING_DIVISOR).max(packet))
}

impl Redundancy for AutoPolicy {
    fn on_source_sent(&mut self, now: Instant, id: u64, view: &View) {
        let budget = self.auto.budget_within(&view.path);
        // What was saved before there was less room is not spent at once.
        let most = if budget < self.auto.budget { MOST_WITHOUT_ROOM } else { MOST as f64 };
        self.purse = (self.purse + budget).min(most);
        let fresh = self.pace.on_sent(now);
        let stage = view.message.map(|message| message.stage);
        self.fenced |= stage.is_some_and(|stage| stage != Stage::Apart);
        if stage == Some(Stage::First) {
            self.plan(now, Moment::Fence, view);
            self.forget_piece();
        }
        let deadline = view.message.and_then(|message| message.deadline);
        let piece = self.piece.get_or_insert(Piece::new(now, id, deadline));
        piece.latest = piece.latest.zip(deadline).map(|(latest, deadline)| latest.max(deadline));
        if fresh {
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
        self.pace.on_paused();
        self.plan(now, if ended { Moment::Ended } else { Moment::Paused }, view);
    }

    fn on_repair_sent(&mut self, now: Instant, view: &View) {
        self.lost.expire(view.span().start);
        let lost = self.next_lost(view);
        self.purse = (self.purse - 1.0).max(0.0);
        if let Some(id) = lost {
            return self.lost.remove(id);
        }
        let Some(plan) = self.plan.take() else { return };
        self.piece = self.piece.filter(|piece| piece.first >= plan.end);
        self.waiting.settle(plan.end);
        self.help.expect(plan.gain, view);
        let left = plan.left - 1;
        if left > 0 {
            let due = now + plan.gap;
            self.plan = Some(Plan { due, left, begun: true, gain: 0.0, ..plan });
        } else if self.pace.is_paused() {
            self.plan(now, Moment::Paused, view);
        }
    }

    fn on_unmended(&mut self, now: Instant, id: u64, view: &View) {
        if self.mends_losses(view) {
            self.mend(now, id, view);
        }
    }

    fn on_arrived(&mut self, now: Instant, id: u64, how: Arrival, view: &View) {
        self.lost.remove(id);
        self.lost.expire(view.span().start);
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
        if view.unacked == 0 {
            return Decision::Source;
        }
        if let Some(id) = self.next_lost(view) {
            return Decision::Repair(RepairPlan::over(id..id + 1));
        }
        let in_turn = |plan: &Plan| plan.at_fence || !view.has_source;
        match self.plan.filter(|plan| plan.due <= now && in_turn(plan)) {
            Some(_) => Decision::Repair(RepairPlan::over(view.span())),
            None => Decision::Source,
        }
    }

    fn timeout(&self) -> Option<Instant> {
        let mending = self.lost.due().filter(|_| self.affords_one());
        self.plan.map(|plan| plan.due).into_iter().chain(mending).min()
    }

    fn reason(&self) -> Option<Reason> {
        Some(self.reason)
    }
}
