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
//! does not take the repair symbols as well, unless the number of packets ends bursts rather than the time. With a
//! target, they wait as long as it allows, so that as few as possible
//! cover as much as possible. Where the budget does not suffice for the target, each leaves as soon as it is
//! affordable: then they cover data again and again, and more of it comes in time than if the same number left at once.
//!
//! Data that is sent again in time needs no repair symbols, unless it is likely to be lost again; only the last packets of
//! a piece do where their loss is noticed too late.
//!
//! A lost datagram is mended after the loss if that is soon enough, by a repair symbol over it alone.
//!
//! No repair symbol is sent where no loss is known, except for a few at fences as an insurance against the
//! first loss; where a retransmission comes soon enough; where too few repair symbols would be of use; beyond
//! the budget; and for a while after repair symbols did not help.

mod aspect;
mod help;
mod lost_datagrams;
mod model;
mod outlook;
mod pace;
mod policy;
mod resending;
#[cfg(test)]
mod tests;
mod waiting;

use super::{MAX_DELAY, PathView, Reason, Redundancy, RedundancyFactory, Terms, View};
use crate::loss_floor::LossFloor;
use aspect::Aspect;
use model::Train;
use policy::AutoPolicy;
use resending::Endangered;
use std::sync::Arc;
use std::time::Duration;
use sutura_schedule::registry::{Entry, Parameters, UnknownPolicy};

pub(super) const ENTRY: Entry<dyn RedundancyFactory> = Entry::with_parameters(
    "auto",
    "repair symbols where they save time, by the losses of the path",
    "budget=0.25,within=none,beyond=none,share=0.999,expect=0,without=none",
    |parameters| {
        let expect = parameters.number("expect", 0.0)?;
        let budget = parameters.number("budget", DEFAULT_BUDGET)?;
        let without = parameters.take("without").map_or(Ok(None), Aspect::named)?;
        let (within, beyond) = (time(parameters, "within")?, time(parameters, "beyond")?);
        let share = parameters.number("share", DEFAULT_SHARE)?;
        let auto = Auto::new(budget).ok_or_else(|| {
            UnknownPolicy::new(format!("budget: {budget} is not a number from 0 to {MAX_BUDGET}"))
        })?;
        let auto = auto.expecting(expect).ok_or_else(|| {
            UnknownPolicy::new(format!("expect: {expect} is not a number from 0 to {MAX_EXPECTED}"))
        })?;
        let auto = Auto { without, ..auto };
        let auto = match (within, beyond) {
            (None, None) => return Ok(Arc::new(auto)),
            (Some(within), None) => auto.within(within, share),
            (None, Some(beyond)) => auto.beyond(beyond, share),
            (Some(_), Some(_)) => {
                return Err(UnknownPolicy::new("within and beyond: only one of both can hold"));
            }
        };
        let auto = auto.ok_or_else(|| {
            UnknownPolicy::new(format!("share: {share} is not a number from 0 to 1"))
        })?;
        Ok(Arc::new(auto))
    },
);

/// A parameter that is a number of milliseconds, if there is one.
fn time(parameters: &mut Parameters<'_>, name: &str) -> Result<Option<Duration>, UnknownPolicy> {
    let Some(value) = parameters.take(name).filter(|value| *value != "none") else {
        return Ok(None);
    };
    let millis = value.strip_suffix("ms").unwrap_or(value).parse().ok().filter(|ms| *ms > 0);
    millis.map(Duration::from_millis).map(Some).ok_or_else(|| {
        UnknownPolicy::new(format!("{name}: `{value}` is not a number of milliseconds"))
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
/// Where no loss is known, fences are insured until the loss is certainly below this share.
const INSURED: f64 = 0.001;
/// Where no loss is known, data that takes at least this many packets at once is protected against the first.
const LONG: u64 = 16;
/// While acknowledgements are overdue, repair symbols are sent if the window is so many times what is in flight. If
/// all of it is lost, the window is halved, and must hold it once more beside as much new data.
const ROOM_FOR_ALL: u64 = 4;
/// The size of a packet, to reckon the cost of one more packet while other data waits.
const PACKET: f64 = 1200.0;

/// Chooses by itself how many repair symbols are sent, and when.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Auto {
    budget: f64,
    target: Option<LatencyTarget>,
    /// The assumed share of lost packets, until the losses of the path are known or certainly lower.
    expect: f64,
    /// What is left out of account.
    without: Option<Aspect>,
}

/// The application's target: a piece of data is to be at the receiver `within` this time after it was
/// written, in this share of cases.
#[derive(Debug, Clone, Copy, PartialEq)]
struct LatencyTarget {
    within: Duration,
    /// Whether the path's own delay is to be added.
    beyond_path: bool,
    share: f64,
}

impl LatencyTarget {
    /// How long a piece may take over a path.
    fn within(&self, path: &PathView) -> Duration {
        let way = if self.beyond_path { path.one_way() } else { Duration::ZERO };
        self.within.saturating_add(way)
    }
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
    /// [`MAX_DELAY`], after they were written. No more repair symbols are sent than the target needs. If it
    /// cannot be met, as many are sent as bring it nearer by more than `1 - share`, within the budget. `None` if
    /// `share` is not from 0 to 1.
    #[must_use]
    pub fn within(self, within: Duration, share: f64) -> Option<Self> {
        self.with_target(within, false, share)
    }

    /// The same with a time that counts beyond the path's own delay (half a round trip), so that the target can be
    /// met on a path of any length.
    #[must_use]
    pub fn beyond(self, beyond: Duration, share: f64) -> Option<Self> {
        self.with_target(beyond, true, share)
    }

    fn with_target(self, time: Duration, beyond_path: bool, share: f64) -> Option<Self> {
        let target = Some(LatencyTarget { within: time.min(MAX_DELAY), beyond_path, share });
        (0.0..=1.0).contains(&share).then_some(Self { target, ..self })
    }

    /// Protects as if this share of packets were lost until losses are known, or certainly lower, and takes as much
    /// loss for chance even if it comes with a queue. For applications that send so little that the losses of the
    /// path become known late, or in bursts that queue behind themselves. `None` if the share is not from 0 to 0.5.
    #[must_use]
    pub fn expecting(self, share: f64) -> Option<Self> {
        (0.0..=MAX_EXPECTED).contains(&share).then_some(Self { expect: share, ..self })
    }

    fn has(&self, aspect: Aspect) -> bool {
        self.without != Some(aspect)
    }

    /// The floor of loss to go by for data that may take `tolerance` (`None` without a target and a deadline):
    /// the known floor and what is late, or else the expected loss.
    fn floor(&self, path: &PathView, tolerance: Option<Duration>) -> LossFloor {
        let mut floor = path.floor;
        if floor.late > 0.0 && self.has(Aspect::Lateness) && is_late(path, tolerance) {
            let late = floor.late;
            let [rate, low, high] = [floor.rate, floor.low, floor.high].map(|rate| rate + late);
            floor = floor.with_rate(rate).with_low(low.min(rate)).with_high(high.min(1.0));
        }
        if !self.has(Aspect::Changes) {
            floor.other = None;
        }
        if !self.has(Aspect::Bounds) {
            floor = floor.with_low(floor.rate).with_high(floor.rate);
        }
        floor.by_number &= self.has(Aspect::Number);
        floor.crowded &= self.has(Aspect::Room);
        floor.withheld &= self.has(Aspect::Experiments);
        self.with_expected(floor)
    }

    /// A floor of which little is known gives way to the expected loss. Of a known one, losses that met a queue count
    /// up to the expected share: what is sent in bursts queues behind itself, so that chance losses meet a queue too.
    fn with_expected(&self, floor: LossFloor) -> LossFloor {
        let expect = self.expect;
        let is_unknown = floor.rate <= 0.0 && floor.high >= expect;
        let with_queue = floor.rate + floor.excess;
        let rate = if is_unknown { expect } else { with_queue.min(expect) };
        if rate <= floor.rate {
            return floor;
        }
        let (low, high) = if is_unknown { (rate, rate) } else { (floor.low, floor.high.max(rate)) };
        floor.with_rate(rate).with_low(low).with_high(high).with_excess(0.0)
    }

    /// How many repair symbols per source symbol may be sent on a path.
    fn budget_within(&self, path: &PathView) -> f64 {
        if self.has(Aspect::Room) { self.budget.min(path.floor.room) } else { self.budget }
    }

    /// Whether the congestion window has room for repair symbols after a piece with these symbols. Where other
    /// pieces are in flight, there must be room for as many as the budget allows for each of them: otherwise they
    /// make the next piece wait.
    fn has_room(&self, sources: Train, view: &View) -> bool {
        let path = &view.path;
        let needed = path.in_flight as f64 * (1.0 + self.budget);
        view.unacked <= sources.symbols || needed <= path.window as f64 || !self.has(Aspect::Window)
    }

    /// The chance that other data waits because of a repair symbol: it waits at present, there is no room for both, or
    /// as often as packets waited lately.
    fn others_wait(&self, view: &View, has_room: bool) -> f64 {
        if !view.idle || !has_room {
            1.0
        } else if self.has(Aspect::Waiting) {
            view.path.wait_probability()
        } else {
            0.0
        }
    }

    /// Whether acknowledgements are overdue and repair symbols may do harm. Nobody knows why none come. Either the path
    /// carries nothing for a while: then repair symbols are lost too, and only add to what is in flight. Or a burst
    /// lasts until some more packets are sent: then repair symbols end it. So they are sent as long as there is
    /// room even if all in flight is lost; see [`ROOM_FOR_ALL`].
    fn is_silent(&self, path: &PathView) -> bool {
        let has_room = path.in_flight.saturating_mul(ROOM_FOR_ALL) <= path.window;
        path.silent && self.has(Aspect::Silence) && !has_room
    }

    /// How long data on these terms may take over a path, by the target and its deadline.
    fn tolerance(&self, path: &PathView, of_data: Option<Duration>) -> Option<Duration> {
        self.target.map(|target| target.within(path)).into_iter().chain(of_data).min()
    }

    /// The reason why no repair symbol is worth sending against the losses of a path, if there is one.
    fn losses_to_leave(&self, path: &PathView, terms: Terms) -> Option<Reason> {
        let floor = self.floor(path, self.tolerance(path, terms.tolerance));
        if floor.crowded {
            return Some(Reason::Congestion);
        }
        if floor.withheld {
            return Some(Reason::Experiment);
        }
        if is_lossy(&floor, path) {
            return None;
        }
        let negligible = if terms.fenced { INSURED } else { WORTHWHILE };
        // A path of which little is known may lose packets.
        let is_long = terms.resends && terms.written >= LONG * PACKET as u64;
        let may_lose = floor.known <= outlook::UNCERTAIN_FOR;
        let insures = terms.fenced || is_long && may_lose && self.has(Aspect::Insurance);
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

impl RedundancyFactory for Auto {
    fn name(&self) -> &str {
        ENTRY.name
    }

    fn parameters(&self) -> String {
        let Self { budget, target, expect, without } = self;
        let mut text = format!("budget={budget}");
        if let Some(LatencyTarget { within, beyond_path, share }) = target {
            let name = if *beyond_path { "beyond" } else { "within" };
            text += &format!(", {name}={within:?}, share={share}");
        }
        if *expect > 0.0 {
            text += &format!(", expect={expect}");
        }
        if let Some(aspect) = without {
            text += &format!(", without={}", aspect.name());
        }
        text
    }

    /// The policy calls this for each of its pieces, too.
    fn sleeps(&self, path: &PathView, terms: Terms) -> Option<Reason> {
        if let Some(reason) = self.losses_to_leave(path, terms) {
            return Some(reason);
        }
        if self.is_silent(path) {
            return Some(Reason::Silent);
        }
        match self.endangered(path, terms, path.pto) {
            Endangered::Nothing => Some(Reason::RetransmissionIsEnough),
            Endangered::End | Endangered::All => None,
        }
    }

    fn build(&self) -> Box<dyn Redundancy> {
        Box::new(AutoPolicy::new(*self))
    }
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
