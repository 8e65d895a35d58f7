//! One direction of a path.

#[cfg(test)]
mod tests;

use std::time::Duration;

use sutura_random::Rng;

use crate::bottleneck::Bottleneck;
use crate::loss::LossProcess;
use crate::outage::Outages;
use crate::text::nanos;
use crate::{Backlog, Jitter, LinkConfig, Probability, Reorder};

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fate {
    /// It does not arrive.
    Dropped(DropCause),
    /// It arrives, perhaps twice, perhaps damaged.
    Delivered(Deliveries),
}

/// Why a packet does not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropCause {
    /// The loss model took it.
    Loss,
    /// It was sent during an outage.
    Outage,
    /// The queue was full.
    Overflow,
}

/// The arrivals of one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Deliveries {
    /// The packet itself.
    pub original: Delivery,
    /// Its duplicate. With reordering it may arrive before the original.
    pub copy: Option<Delivery>,
}

/// One arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Delivery {
    /// When it arrives, since the link came up.
    pub at: Duration,
    /// If the packet is damaged, the seed for [`corrupt`](crate::corrupt()).
    pub corrupt: Option<u64>,
}

impl IntoIterator for Deliveries {
    type Item = Delivery;
    type IntoIter = std::iter::Chain<std::iter::Once<Delivery>, std::option::IntoIter<Delivery>>;

    fn into_iter(self) -> Self::IntoIter {
        std::iter::once(self.original).chain(self.copy)
    }
}

/// Counters of a link. Every packet is counted when it is sent, even if it arrives later:
/// `sent + duplicated = lost + outage + overflow + delivered`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LinkStats {
    /// Packets given to the link.
    pub sent: u64,
    /// Their bytes, without overhead.
    pub sent_bytes: u64,
    /// Copies that the link made.
    pub duplicated: u64,
    /// Packets that the loss model took.
    pub lost: u64,
    /// Packets sent during an outage.
    pub outage: u64,
    /// Packets and copies that found the queue full.
    pub overflow: u64,
    /// Packets and copies that arrive.
    pub delivered: u64,
    /// Their bytes, without overhead.
    pub delivered_bytes: u64,
    /// Those of them that were held back so that others overtake them.
    pub held_back: u64,
    /// Those of them that are damaged.
    pub corrupted: u64,
}

/// Numbers of the streams of randomness. What is switched off draws nothing and what is switched on
/// draws a fixed number of times per packet, lost or not, so that no setting changes what another
/// one does to a packet.
const DUPLICATE: u64 = 0;
const ORIGINAL: u64 = 0x10;
const COPY: u64 = 0x20;

/// One direction of a path: told of every packet that is sent, it says what becomes of it.
///
/// [`LinkConfig`] says in which order a packet meets what is configured. A link remembers the size
/// of each packet that waits in its queue and nothing of others, so its memory is bounded by the
/// queue.
#[derive(Clone, Debug)]
pub struct Link {
    overhead: u64,
    delay: u64,
    jitter: Jitter,
    reorder: Option<Reorder>,
    duplicate: Probability,
    loss: LossProcess,
    outages: Outages,
    bottleneck: Bottleneck,
    duplicates: Rng,
    original: Luck,
    copy: Luck,
    now: u64,
    /// The latest arrival of a packet that keeps its place.
    last_arrival: u64,
    stats: LinkStats,
}

impl Link {
    /// A link that comes up at time zero.
    #[must_use]
    pub fn new(config: &LinkConfig, seed: u64) -> Self {
        Self {
            overhead: u64::from(config.overhead),
            delay: nanos(config.delay),
            jitter: config.jitter,
            reorder: config.reorder,
            duplicate: config.duplicate,
            loss: LossProcess::new(&config.loss, config.background, seed),
            outages: Outages::new(&config.outages),
            bottleneck: Bottleneck::new(config.rate, config.queue),
            duplicates: Rng::stream(seed, DUPLICATE),
            original: Luck::new(config, seed, ORIGINAL),
            copy: Luck::new(config, seed, COPY),
            now: 0,
            last_arrival: 0,
            stats: LinkStats::default(),
        }
    }

    /// A packet of `size` bytes is sent. Time never goes back: a `now` before that of an earlier
    /// call counts as that one.
    pub fn send(&mut self, now: Duration, size: usize) -> Fate {
        self.send_within(now, size, usize::MAX)
    }

    /// [`send`](Self::send) while there is room for no more than `room` deliveries; what goes
    /// beyond counts as overflow.
    pub(crate) fn send_within(&mut self, now: Duration, size: usize, room: usize) -> Fate {
        self.now = self.now.max(nanos(now));
        let size = size as u64;
        self.stats.sent += 1;
        self.stats.sent_bytes = self.stats.sent_bytes.saturating_add(size);

        let event = self.original.draw();
        let duplicate = !self.duplicate.is_zero() && self.duplicates.chance(self.duplicate.value());
        let lost = self.loss.is_lost(self.now);
        if self.outages.covers(self.now) {
            self.stats.outage += 1;
            return Fate::Dropped(DropCause::Outage);
        }
        if lost {
            self.stats.lost += 1;
            return Fate::Dropped(DropCause::Loss);
        }
        let Some(original) = self.carry(size, event, room) else {
            return Fate::Dropped(DropCause::Overflow);
        };
        let copy = if duplicate {
            let event = self.copy.draw();
            self.stats.duplicated += 1;
            self.carry(size, event, room.saturating_sub(1))
        } else {
            None
        };
        Fate::Delivered(Deliveries { original, copy })
    }

    /// What waits in the queue at `now`, the packet that is being sent not included.
    pub fn backlog(&mut self, now: Duration) -> Backlog {
        self.now = self.now.max(nanos(now));
        self.bottleneck.backlog(self.now)
    }

    /// The counters so far.
    #[must_use]
    pub const fn stats(&self) -> &LinkStats {
        &self.stats
    }

    /// Takes a packet through the queue and to the other end.
    fn carry(&mut self, size: u64, event: Event, room: usize) -> Option<Delivery> {
        let on_the_link = size.saturating_add(self.overhead);
        let accepted = (room > 0).then(|| self.bottleneck.accept(self.now, on_the_link));
        let Some(sent_at) = accepted.flatten() else {
            self.stats.overflow += 1;
            return None;
        };
        let mut at = sent_at.saturating_add(self.delay).saturating_add(event.jitter);
        if !self.jitter.reorders {
            at = at.max(self.last_arrival);
        }
        match self.reorder {
            Some(reorder) if event.held_back => {
                at = at.saturating_add(nanos(reorder.delay));
                self.stats.held_back += 1;
            }
            _ => self.last_arrival = self.last_arrival.max(at),
        }
        self.stats.delivered += 1;
        self.stats.delivered_bytes = self.stats.delivered_bytes.saturating_add(size);
        self.stats.corrupted += u64::from(event.corrupt.is_some());
        Some(Delivery { at: Duration::from_nanos(at), corrupt: event.corrupt })
    }
}

/// What chance does to one packet on its way.
#[derive(Clone, Copy, Debug)]
struct Event {
    jitter: u64,
    held_back: bool,
    corrupt: Option<u64>,
}

/// The chances on the way, with a stream of randomness for each.
#[derive(Clone, Debug)]
struct Luck {
    max_jitter: u64,
    hold: f64,
    damage: f64,
    jitter: Rng,
    holds: Rng,
    damages: Rng,
    seeds: Rng,
}

impl Luck {
    fn new(config: &LinkConfig, seed: u64, stream: u64) -> Self {
        Self {
            max_jitter: nanos(config.jitter.max),
            hold: config.reorder.map_or(0.0, |reorder| reorder.probability.value()),
            damage: config.corrupt.value(),
            jitter: Rng::stream(seed, stream),
            holds: Rng::stream(seed, stream + 1),
            damages: Rng::stream(seed, stream + 2),
            seeds: Rng::stream(seed, stream + 3),
        }
    }

    fn draw(&mut self) -> Event {
        let on = |p: f64| p > 0.0;
        let jitter = match self.max_jitter {
            0 => 0,
            max => self.jitter.below(max.saturating_add(1)),
        };
        let held_back = on(self.hold) && self.holds.chance(self.hold);
        let damaged = on(self.damage) && self.damages.chance(self.damage);
        Event { jitter, held_back, corrupt: damaged.then(|| self.seeds.next_u64()) }
    }
}
