//! One direction of a path.

#[cfg(test)]
mod tests;

use std::time::Duration;

use sutura_random::Rng;

use crate::bottleneck::{Bottleneck, Passage};
use crate::line::Line;
use crate::loss::LossProcess;
use crate::outage::Outages;
use crate::step::Course;
use crate::text::nanos;
use crate::{Backlog, Jitter, LinkConfig, Probability, Reorder};

/// The fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fate {
    /// The packet does not arrive.
    Dropped(DropCause),
    /// The packet arrives, perhaps twice, perhaps damaged.
    Delivered(Deliveries),
}

/// Why a packet does not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropCause {
    /// The loss model dropped it.
    Loss,
    /// The packet was sent during an outage.
    Outage,
    /// The queue was full.
    Overflow,
    /// The packet is longer than the link carries.
    TooLong,
}

/// The arrivals of one sent packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Deliveries {
    /// The packet itself.
    pub original: Delivery,
    /// The duplicate. With reordering it may arrive before the original.
    pub copy: Option<Delivery>,
}

/// An arrival of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Delivery {
    /// The arrival time, since the link came up.
    pub at: Duration,
    /// How long it waits in the queue before it begins to be sent.
    pub queued: Duration,
    /// Whether the queue marks it, if it is ECN-capable ([`LinkConfig::mark`]).
    pub marked: bool,
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

/// Counters of a link. Every packet is counted when it is sent, even if it arrives later: `sent +
/// duplicated = lost + outage + overflow + too_long + delivered`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LinkStats {
    /// Packets sent over the link.
    pub sent: u64,
    /// Their bytes, without overhead.
    pub sent_bytes: u64,
    /// Copies that the link made.
    pub duplicated: u64,
    /// Packets dropped by the loss model.
    pub lost: u64,
    /// Packets sent during an outage.
    pub outage: u64,
    /// Packets and copies that found the queue full.
    pub overflow: u64,
    /// Packets that were too long.
    pub too_long: u64,
    /// Packets and copies that arrive.
    pub delivered: u64,
    /// Their bytes, without overhead.
    pub delivered_bytes: u64,
    /// Delivered packets that were held back so that later ones overtake them.
    pub held_back: u64,
    /// Delivered packets that found too many packets in the queue, and are marked if ECN-capable.
    pub marked: u64,
    /// Delivered packets that are damaged.
    pub corrupted: u64,
}

/// Numbers of the random streams. A feature that is off draws nothing, and a feature that is on draws a fixed
/// number of times per packet, lost or not. So no setting changes the effect of another on a packet.
const DUPLICATE: u64 = 0;
const STEPPED_LOSS: u64 = 1;
const ORIGINAL: u64 = 0x10;
const COPY: u64 = 0x20;

/// One direction of a path. The link is told of every packet that is sent, and returns its fate.
///
/// [`LinkConfig`] documents the order in which a packet passes the stages. A link remembers only
/// the sizes of the packets that wait in its queue, so the queue bounds its memory.
#[derive(Clone, Debug)]
pub struct Link {
    overhead: u64,
    mtu: Course<Option<u64>>,
    mark: Option<u64>,
    delay: Course<u64>,
    jitter: Jitter,
    reorder: Option<Reorder>,
    duplicate: Probability,
    loss: LossProcess,
    /// The probability of loss that the steps set.
    stepped_loss: Course<Probability>,
    outages: Outages,
    bottleneck: Bottleneck,
    duplicates: Rng,
    stepped_losses: Rng,
    original: Luck,
    copy: Luck,
    now: u64,
    /// The latest arrival of a packet that was not reordered.
    last_arrival: u64,
    stats: LinkStats,
}

impl Link {
    /// A link that comes up at time zero.
    #[must_use]
    pub fn new(config: &LinkConfig, seed: u64) -> Self {
        let rate = Course::new(config.rate, &config.steps, |step| step.rate.map(Some));
        let line = Line::new(config.trace.clone(), rate);
        Self {
            overhead: u64::from(config.overhead),
            mtu: Course::new(config.mtu, &config.steps, |step| step.mtu.map(Some)),
            mark: config.mark,
            delay: Course::new(nanos(config.delay), &config.steps, |s| s.delay.map(nanos)),
            jitter: config.jitter,
            reorder: config.reorder,
            duplicate: config.duplicate,
            loss: LossProcess::new(&config.loss, config.background, seed),
            stepped_loss: Course::new(Probability::ZERO, &config.steps, |step| step.loss),
            outages: Outages::new(&config.outages),
            bottleneck: Bottleneck::new(line, config.queue, seed),
            duplicates: Rng::stream(seed, DUPLICATE),
            stepped_losses: Rng::stream(seed, STEPPED_LOSS),
            original: Luck::new(config, seed, ORIGINAL),
            copy: Luck::new(config, seed, COPY),
            now: 0,
            last_arrival: 0,
            stats: LinkStats::default(),
        }
    }

    /// Sends a packet of `size` bytes. Time never goes back: a `now` before an earlier call's counts as the
    /// earlier call's.
    pub fn send(&mut self, now: Duration, size: usize) -> Fate {
        self.send_within(now, size, usize::MAX)
    }

    /// [`send`](Self::send) with room for at most `room` deliveries; further deliveries count as overflow.
    pub(crate) fn send_within(&mut self, now: Duration, size: usize, room: usize) -> Fate {
        self.now = self.now.max(nanos(now));
        let size = size as u64;
        self.stats.sent += 1;
        self.stats.sent_bytes = self.stats.sent_bytes.saturating_add(size);

        let event = self.original.draw();
        let duplicate = !self.duplicate.is_zero() && self.duplicates.chance(self.duplicate.value());
        let lost = self.loss.is_lost(self.now);
        let stepped = self.stepped_loss.at(self.now);
        let lost = lost | self.stepped_losses.chance(stepped.value());
        let longest = self.mtu.at(self.now).unwrap_or(u64::MAX);
        if size.saturating_add(self.overhead) > longest {
            self.stats.too_long += 1;
            return Fate::Dropped(DropCause::TooLong);
        }
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

    /// The packets that wait in the queue at `now`, without the one that is being sent.
    pub fn backlog(&mut self, now: Duration) -> Backlog {
        self.now = self.now.max(nanos(now));
        self.bottleneck.backlog(self.now)
    }

    /// The current counters.
    #[must_use]
    pub const fn stats(&self) -> &LinkStats {
        &self.stats
    }

    /// Passes a packet through the queue and to the other end.
    fn carry(&mut self, size: u64, event: Event, room: usize) -> Option<Delivery> {
        let on_the_link = size.saturating_add(self.overhead);
        let waiting = |bottleneck: &mut Bottleneck| bottleneck.backlog(self.now).bytes;
        let marked = self.mark.is_some_and(|mark| waiting(&mut self.bottleneck) >= mark);
        let accepted = (room > 0).then(|| self.bottleneck.accept(self.now, on_the_link));
        let Some(Passage { queued, sent_at }) = accepted.flatten() else {
            self.stats.overflow += 1;
            return None;
        };
        let mut at = sent_at.saturating_add(self.delay.at(sent_at)).saturating_add(event.jitter);
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
        self.stats.marked += u64::from(marked);
        self.stats.corrupted += u64::from(event.corrupt.is_some());
        let [at, queued] = [at, queued].map(Duration::from_nanos);
        Some(Delivery { at, queued, marked, corrupt: event.corrupt })
    }
}

/// The random events of one packet on its way.
#[derive(Clone, Copy, Debug)]
struct Event {
    jitter: u64,
    held_back: bool,
    corrupt: Option<u64>,
}

/// The random events of packets on their way, with a random stream for each kind.
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
