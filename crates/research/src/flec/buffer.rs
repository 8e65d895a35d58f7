//! Transfers to a receiver with a small buffer: repair symbols among the data, so that a loss does not
//! fill the buffer and stop the sender.

use super::{Flec, FlecRules, LastFlight, LossFactor, foresight, literal};
use std::sync::Arc;
use std::time::Instant;
use sutura_proto::policy::{Redundancy, RedundancyFactory, View};
use sutura_proto::registry::Entry;

pub(super) const ENTRY: Entry<dyn RedundancyFactory> = Entry::with_parameters(
    "buffer",
    "repair symbols for receivers with small buffers (Michel 2022, Algorithm 2)",
    "rules=tuned,c=1",
    |parameters| {
        let (literal, c) = (literal::is_wanted(parameters)?, LossFactor::take(parameters)?);
        Ok(if literal { literal::buffer("buffer", c) } else { Arc::new(Buffer { c }) })
    },
);

/// At most this many times as many repair symbols are in flight as losses are expected.
const MOST_IN_FLIGHT: f64 = 2.0;
/// A buffer of fewer round trips than this, in quarters, fills up before a retransmission repairs a loss: the
/// loss is detected after one round trip, and the retransmission and its acknowledgement take another.
const STALL_QUARTERS: u64 = 9;
/// Bytes of a source symbol on the smallest path that QUIC allows.
const MAX_SYMBOL_BYTES: u64 = 1200;

/// Protects data before the receiver's buffer is full (Algorithm 2).
///
/// A loss holds up everything behind it in the receiver's buffer. If the buffer fills up before the
/// retransmission arrives, the sender stops for about a round trip. The policy `buffer:literal` follows the
/// paper; this one differs:
///
/// - The paper sends a repair symbol for every `1 / G_p` source symbols, its implementation one more for
///   each, both on any path. Here a repair symbol for every `1 / G_p` is sent only while a retransmission
///   would come too late: when the buffer holds less than the data of two round trips. Otherwise repair
///   symbols would only take room from data.
/// - While flow control holds back data the window is free, and enough repair symbols go to make up for all
///   losses but one time in fifty. The paper goes on up to twice the expected losses. The implementation
///   takes a sender that has nothing to send for a blocked sender.
/// - The last flight is protected as by [`Bulk`](super::Bulk).
/// - As long as no packet was ever lost, only the last flight becomes source symbols.
/// - FlEC's receiver takes 5 % off its window, at least 10 kB, for repair symbols, which costs more
///   than it gains at 70 kB. Here the decoder has memory of its own, which it announces
///   ([`FecConfig`](sutura_proto::FecConfig)), and nothing is taken off.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Buffer {
    c: LossFactor,
}

impl Buffer {
    /// With a threshold of `c` times the loss rate; `None` if `c` is not from 0 to 100.
    #[must_use]
    pub fn new(c: f64) -> Option<Self> {
        LossFactor::new(c).map(|c| Self { c })
    }
}

impl RedundancyFactory for Buffer {
    fn name(&self) -> &str {
        ENTRY.name
    }

    fn parameters(&self) -> String {
        format!("c={}", self.c.get())
    }

    fn stays_awake(&self) -> bool {
        true
    }

    fn build(&self) -> Box<dyn Redundancy> {
        Box::new(Flec::new(BufferRules { c: self.c, ..BufferRules::default() }))
    }
}

#[derive(Debug, Default)]
struct BufferRules {
    c: LossFactor,
    end: LastFlight,
    /// Symbols below this are protected.
    protected: u64,
    /// How many repair symbols protect the newest protected symbol, and how many it is to have.
    triggered: u32,
    most: u32,
}

impl BufferRules {
    fn unprotected(&self, view: &View) -> u64 {
        view.next - self.protected.clamp(view.first, view.next)
    }

    /// Whether a repair symbol is due among the data.
    fn is_gap_full(&self, view: &View) -> bool {
        let expected = (f64::from(view.unacked) * foresight::expected_loss(&view.path)).ceil();
        if f64::from(view.added) >= MOST_IN_FLIGHT * expected {
            return false;
        }
        match self.unprotected(view) {
            0 => self.triggered < self.most,
            unprotected => unprotected as f64 >= gap(view).min(f64::from(view.unacked)),
        }
    }
}

/// Whether a loss that a retransmission repairs would stop the sender: two round trips pass until the
/// acknowledgement of the retransmission is back.
fn would_stall(view: &View) -> bool {
    view.is_blocked() || view.buffer <= view.path.in_flight.saturating_mul(STALL_QUARTERS) / 4
}

/// How many packets are sent for each that is lost, bursts counting as one loss.
fn gap(view: &View) -> f64 {
    let loss = foresight::expected_loss(&view.path);
    if loss > 0.0 { view.path.floor.burst * (1.0 - loss) / loss } else { f64::INFINITY }
}

impl FlecRules for BufferRules {
    fn ds(&self, loss: f64) -> f64 {
        self.c.get() * loss
    }

    fn protects(&self, view: &View) -> bool {
        let packets = (view.buffer / MAX_SYMBOL_BYTES) as f64;
        let would_repair =
            || view.path.loss > 0.0 && foresight::most_lost(&view.path, packets) > 0.0;
        view.end_comes_near() || would_stall(view) && would_repair()
    }

    fn fec_pattern(&self, now: Instant, view: &View) -> bool {
        if self.end.is_unprotected(now, view) {
            return true;
        }
        if view.left == 0 || view.path.loss == 0.0 {
            return false;
        }
        if view.is_blocked() {
            foresight::lacks_repairs(view)
        } else {
            would_stall(view) && self.is_gap_full(view)
        }
    }

    fn on_source_sent(&mut self, _now: Instant, view: &View) {
        self.end.on_source_sent(view);
    }

    fn on_flushed(&mut self, now: Instant, ended: bool, view: &View) {
        self.end.on_flushed(now, ended, view);
    }

    fn on_repair_sent(&mut self, now: Instant, view: &View) {
        self.end.on_repair_sent(now);
        let unprotected = self.unprotected(view);
        if unprotected == 0 {
            self.triggered = self.triggered.saturating_add(1);
            return;
        }
        self.triggered = 1;
        self.protected = view.next;
        self.most = (foresight::expected_loss(&view.path) * unprotected as f64)
            .max(view.path.floor.burst)
            .ceil() as u32;
    }

    fn timeout(&self) -> Option<Instant> {
        self.end.timeout()
    }
}
