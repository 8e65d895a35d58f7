//! Redundancy shortly after each piece of data.

use super::each_symbol::EachSymbol;
use super::{
    Arrival, Decision, MAX_BURST, MAX_DELAY, Redundancy, RedundancyFactory, RepairPlan, View,
    parameters,
};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};
use sutura_schedule::registry::{Entry, UnknownPolicy};

pub(super) const ENTRY: Entry<dyn RedundancyFactory> = Entry::with_parameters(
    "incremental",
    "repair symbols after each piece, or each symbol (Holzinger 2025, II-D5)",
    "mode=pieces,burst=3,delay=0ms",
    |parameters| {
        parameters.first_is("mode");
        let make = match parameters.take("mode") {
            None | Some("pieces") => Incremental::new,
            Some("literal") => Incremental::literal,
            Some(mode) => {
                let text = format!("mode: `{mode}` is neither pieces nor literal");
                return Err(UnknownPolicy::new(text));
            }
        };
        let burst = parameters.number("burst", 3)?;
        let delay = parameters.millis("delay", Duration::ZERO)?;
        Ok(Arc::new(make(burst, delay)))
    },
);

/// A sender that is never idle sends at least this many source symbols per repair symbol. Repair
/// symbols take space from new data in the window, and a short window fills up quickly.
pub(super) const SOURCES_PER_REPAIR: u32 = 8;

/// A piece that is sent while another piece waits for its repair symbols gets at most this many repair
/// symbols for each source symbol. So a series of small pieces gets no more than a few times its own size.
const MOST_PER_SOURCE: u32 = 4;

/// Sends repair symbols shortly after each piece of data, unless the piece is acknowledged by then (Holzinger
/// 2025, II-D5).
///
/// - The paper has a timer for each source symbol, and `burst` repair symbols each time it expires, which
///   multiplies the data. Here a *piece* has one timer: all data that the application had written when the
///   sender had sent all of it. [`literal`](Self::literal) does as the paper says.
/// - Small pieces that overlap get at most four repair symbols for each source symbol.
/// - Repair symbols wait for a gap in the data, at most a quarter of a round trip. A sender without gaps
///   sends eight source symbols for each repair symbol. In the paper they are sent when the timer
///   expires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Incremental {
    burst: u32,
    delay: Duration,
    literal: bool,
}

impl Incremental {
    /// Sends `burst` repair symbols, at most [`MAX_BURST`], for each piece, `delay`, at most [`MAX_DELAY`],
    /// after it.
    #[must_use]
    pub fn new(burst: u32, delay: Duration) -> Self {
        Self { burst: burst.min(MAX_BURST), delay: delay.min(MAX_DELAY), literal: false }
    }

    /// Sends `burst` repair symbols, at most [`MAX_BURST`], for each source symbol that is not known to have
    /// arrived after `delay`, at most [`MAX_DELAY`]: as the paper has it. Where acknowledgements take longer
    /// than `delay`, the redundancy is `burst` times the data.
    #[must_use]
    pub fn literal(burst: u32, delay: Duration) -> Self {
        Self { literal: true, ..Self::new(burst, delay) }
    }
}

impl RedundancyFactory for Incremental {
    fn name(&self) -> &str {
        ENTRY.name
    }

    fn parameters(&self) -> String {
        let mode = if self.literal { "literal, " } else { "" };
        format!("{mode}{}", parameters(self.burst, self.delay))
    }

    fn stays_awake(&self) -> bool {
        true
    }

    fn build(&self) -> Box<dyn Redundancy> {
        if self.literal {
            return Box::new(EachSymbol::new(self.burst, self.delay));
        }
        Box::new(IncrementalPolicy {
            incremental: *self,
            sources: None,
            armed: VecDeque::new(),
            piece: 0,
            due: 0,
            due_since: None,
        })
    }
}

/// A source symbol that needs repair symbols.
#[derive(Debug, Clone, Copy)]
struct Armed {
    id: u64,
    /// When the symbol needs repair symbols.
    at: Instant,
    /// The piece of data to which the symbol belongs.
    piece: u64,
    /// Whether no other piece waited for its repair symbols when this piece began.
    alone: bool,
}

#[derive(Debug)]
struct IncrementalPolicy {
    incremental: Incremental,
    /// Number of source symbols since repair symbols last made new data wait; `None` if there was a
    /// moment without new data since.
    sources: Option<u32>,
    /// Symbols whose repair symbols are not due yet or not sent, oldest first. The coding window bounds their
    /// number.
    armed: VecDeque<Armed>,
    /// The number of the piece that is being sent. A piece ends when all that the application has
    /// written was sent.
    piece: u64,
    /// Number of repair symbols left to send of a burst that has begun.
    due: u32,
    /// When that burst fell due.
    due_since: Option<Instant>,
}

impl IncrementalPolicy {
    /// When the pending repair symbols fell due, if any did.
    fn due_since(&self, now: Instant) -> Option<Instant> {
        let armed = self.armed.front().map(|armed| armed.at).filter(|at| *at <= now);
        self.due_since.or(armed)
    }

    /// The symbols of all pieces that are due.
    fn due_pieces(&self, now: Instant) -> impl Iterator<Item = &Armed> {
        let due = self.armed.iter().take_while(|armed| armed.at <= now).last();
        let last = due.map(|armed| armed.piece);
        self.armed.iter().take_while(move |armed| Some(armed.piece) <= last)
    }

    /// How many repair symbols the pieces that are due get together.
    fn occasion(&self, now: Instant) -> u32 {
        if self.due_pieces(now).any(|armed| armed.alone) {
            return self.incremental.burst;
        }
        let symbols = u32::try_from(self.due_pieces(now).count()).unwrap_or(u32::MAX);
        self.incremental.burst.min(symbols.saturating_mul(MOST_PER_SOURCE))
    }

    /// Ends the waiting of all pieces that are due: a repair symbol that is sent now covers them. A later
    /// piece is covered as well, but keeps its own time: repair symbols sent sooner might be lost in the same
    /// burst as the packets of the piece, which the delay is there to prevent.
    fn disarm(&mut self, now: Instant) {
        let due = self.due_pieces(now).count();
        self.armed.drain(..due);
    }

    /// Whether a repair symbol may precede new data of its session. Usually new data goes first, so that one
    /// repair symbol covers as much as possible. But then a sender that is never idle would never repair. So
    /// after a quarter of a round trip the repair symbol goes first, if enough data was sent since a repair
    /// symbol last went first.
    fn overrides_data(&self, now: Instant, since: Instant, view: &View) -> bool {
        let enough = SOURCES_PER_REPAIR * self.incremental.burst;
        now >= since + view.path.rtt / 4 && self.sources.is_none_or(|n| n >= enough)
    }
}

impl Redundancy for IncrementalPolicy {
    fn on_source_sent(&mut self, now: Instant, id: u64, view: &View) {
        self.sources = self.sources.map(|n| n.saturating_add(1));
        while self.armed.front().is_some_and(|armed| armed.id < view.first) {
            self.armed.pop_front();
        }
        let (at, piece) = (now + self.incremental.delay, self.piece);
        let alone = match self.armed.back() {
            Some(last) => last.piece == piece && last.alone,
            None => self.due == 0,
        };
        self.armed.push_back(Armed { id, at, piece, alone });
    }

    fn on_flushed(&mut self, _now: Instant, _ended: bool, _view: &View) {
        self.piece += 1;
    }

    fn on_repair_sent(&mut self, now: Instant, view: &View) {
        let due = if self.due > 0 { self.due } else { self.occasion(now) };
        self.due_since = self.due_since(now);
        self.due = due.saturating_sub(1);
        self.disarm(now);
        if self.due == 0 {
            self.due_since = None;
            self.sources = view.has_source.then_some(0);
        }
    }

    fn on_arrived(&mut self, _now: Instant, id: u64, _how: Arrival, view: &View) {
        if let Ok(index) = self.armed.binary_search_by_key(&id, |armed| armed.id) {
            self.armed.remove(index);
        }
        if view.unacked == 0 {
            // `sources` stays as it is: arrivals do not change how busy the sender is.
            self.armed.clear();
            (self.due, self.due_since) = (0, None);
        }
    }

    fn protects_all(&self) -> bool {
        true
    }

    fn decide(&self, now: Instant, view: &View) -> Decision {
        let Incremental { burst, delay, .. } = self.incremental;
        let since = self.due_since(now).filter(|_| burst > 0 && view.unacked > 0);
        let Some(since) = since.filter(|_| !view.retransmission_is_enough(delay)) else {
            return Decision::Source;
        };
        if view.has_source && !self.overrides_data(now, since, view) {
            return Decision::Source;
        }
        Decision::Repair(RepairPlan::over(view.span()))
    }

    fn timeout(&self) -> Option<Instant> {
        self.armed.front().map(|armed| armed.at)
    }
}
