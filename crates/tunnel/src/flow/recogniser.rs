//! What a flow carries, by the sizes and times of its packets.
//!
//! Two things are looked at. *Bulk* data fills packets: most are of one size, the largest that the path takes, in
//! bursts that do not end with a shorter one. Frames of a video also fill packets, but each ends with what is left of
//! it. *Real-time* flows hardly pause: in each 70 ms there is a packet, in one direction at least. Everything else is
//! interactive, and so is a flow of which little has been seen.

use std::time::{Duration, Instant};

use super::class::Class;

/// A packet shorter than this does not fill a path, in bytes: QUIC's packets have at least 1200, and tunnels in tunnels
/// take some of a path's 1500.
const LARGE: usize = 800;
/// Shorter packets are neither frames nor their ends: they may be acknowledgements of data that comes the other way.
const SMALL: usize = 200;
/// What comes later than this after the last packet begins a burst.
const BURST_GAP: Duration = Duration::from_millis(4);
/// A burst that lasts so long is none of a frame.
const LONG_BURST: Duration = Duration::from_millis(50);
/// A flow has become bulk when this many bytes of packets that fill the path came in excess of `LEAK`, and is no
/// longer when fewer than `LITTLE` are left.
const MUCH: f64 = 128.0 * 1024.0;
const LITTLE: f64 = 32.0 * 1024.0;
/// Most excess that is counted, so that the end of a long transfer is noticed: in `MOST / LEAK` seconds.
const MOST: f64 = 256.0 * 1024.0;
/// Bytes in a second that are forgotten of the excess.
const LEAK: f64 = 24.0 * 1024.0;
/// How many packets the share of those that fill the path is about. Frames of a video, whose packets have a size of
/// their own each, are shorter.
const PACKETS: u16 = 64;
/// How much the end of a burst counts in the share of bursts that end with a shorter packet.
const BURST_WEIGHT: f32 = 1.0 / 8.0;
/// Less than this share of packets have the largest size: it is not the largest any more.
const RARE: f32 = 0.3;
/// From this share of packets on, packets fill the path, and a flow is not real-time, however slow it is.
const MOSTLY: f32 = 0.5;
/// What no packet followed for so long says nothing of a flow any more.
const LATELY: Duration = Duration::from_secs(1);
/// Bursts become frames from this share of short ends on, and are none any more below the other.
const FRAMED: f32 = 0.6;
const UNFRAMED: f32 = 0.3;
/// How finely pauses are looked at: a video of 15 frames a second has one in each.
const SLOT: Duration = Duration::from_millis(70);
/// How much a slot counts in the share of slots that have a packet.
const SLOT_WEIGHT: f32 = 1.0 / 16.0;
/// A flow has become real-time when this share of slots have a packet, and is no longer when fewer than `SPARSE` do.
const STEADY: f32 = 0.85;
const SPARSE: f32 = 0.35;

/// Recognises what a flow carries. Little state: some numbers for each direction.
#[derive(Debug, Clone)]
pub struct Recogniser {
    /// The class before anything is recognised.
    base: Class,
    /// Whether pieces of a stream are told rather than packets.
    is_stream: bool,
    class: Class,
    own: Way,
    other: Way,
}

impl Recogniser {
    /// The recogniser of a flow of packets, which is taken for `hint` until it shows to be something else.
    #[must_use]
    pub fn for_packets(hint: Option<Class>) -> Self {
        let base = hint.unwrap_or(Class::Interactive);
        let (own, other) = Default::default();
        Self { base, is_stream: false, class: base, own, other }
    }

    /// The recogniser of a stream, of which the sizes of pieces say little and pauses nothing: it is bulk while there
    /// is much of it.
    #[must_use]
    pub fn for_stream(hint: Option<Class>) -> Self {
        Self { is_stream: true, ..Self::for_packets(hint) }
    }

    /// The class at present.
    #[must_use]
    pub fn class(&self) -> Class {
        self.class
    }

    /// A packet of this size is about to be sent.
    pub fn observe(&mut self, now: Instant, size: usize) -> Class {
        self.own.add(now, size, self.is_stream);
        self.other.leak(now);
        self.decide(now)
    }

    /// A packet of this size came from the other end. What that sends says something, too: acknowledgements of a
    /// download are as steady as a game, and who is silent in a call hears the other one.
    pub fn observe_other(&mut self, now: Instant, size: usize) -> Class {
        self.other.add(now, size, self.is_stream);
        self.own.leak(now);
        self.decide(now)
    }

    fn decide(&mut self, now: Instant) -> Class {
        let excess = self.own.excess.max(self.other.excess);
        let is_bulk = excess >= if self.class == Class::Bulk { LITTLE } else { MUCH };
        let share = self.own.pace.share(now).max(self.other.pace.share(now));
        let least = if self.class == Class::RealTime { SPARSE } else { STEADY };
        let is_steady = share >= least && !self.own.is_full(now) && !self.other.is_full(now);
        self.class = match self.base {
            Class::Bulk => Class::Bulk,
            Class::Interactive | Class::RealTime if is_bulk => Class::Bulk,
            Class::Interactive if is_steady && !self.is_stream => Class::RealTime,
            base @ (Class::Interactive | Class::RealTime) => base,
        };
        self.class
    }
}

/// One direction of a flow.
#[derive(Debug, Clone, Default)]
struct Way {
    pace: Pace,
    burst: Option<Burst>,
    /// The size of packets that fill the path, as it seems.
    full: usize,
    /// The share of packets, small ones apart, that have this size, and of how many, up to `PACKETS`.
    filled: f32,
    seen: u16,
    /// The share of bursts with a large packet that end with one that does not fill the path.
    short_ends: f32,
    is_framed: bool,
    /// Bytes in packets that fill the path, less what is forgotten with time, as of `counted`.
    excess: f64,
    counted: Option<Instant>,
}

/// The packets since the last gap.
#[derive(Debug, Clone)]
struct Burst {
    start: Instant,
    /// The last packet: when it came, and its size.
    last: Instant,
    size: usize,
    has_large: bool,
}

impl Way {
    fn add(&mut self, now: Instant, size: usize, is_stream: bool) {
        self.pace.add(now);
        self.leak(now);
        if size < SMALL {
            return;
        }
        self.split(now, size);
        let fills = size == self.full;
        self.seen = (self.seen + 1).min(PACKETS);
        self.filled += (f32::from(u8::from(fills)) - self.filled) / f32::from(self.seen);
        if size < LARGE {
            return;
        }
        if !fills && self.filled < RARE {
            self.full = size;
        }
        if is_stream || (fills && self.is_full(now)) {
            self.excess = (self.excess + size as f64).min(MOST);
        } else if self.is_framed {
            self.excess = 0.0;
        }
    }

    /// Divides packets into bursts, and looks how one ended that is over. One that lasts for long is no frame.
    fn split(&mut self, now: Instant, size: usize) {
        let is_large = size >= LARGE;
        if let Some(burst) = &mut self.burst {
            let is_over = now.saturating_duration_since(burst.last) >= BURST_GAP;
            let is_long = now.saturating_duration_since(burst.start) >= LONG_BURST;
            if !is_over && !is_long {
                burst.has_large |= is_large;
                (burst.last, burst.size) = (now, size);
                return;
            }
            if burst.has_large {
                let is_short = is_over && burst.size != self.full;
                self.short_ends += BURST_WEIGHT * (f32::from(u8::from(is_short)) - self.short_ends);
                let least = if self.is_framed { UNFRAMED } else { FRAMED };
                self.is_framed = self.short_ends >= least;
            }
        }
        self.burst = Some(Burst { start: now, last: now, size, has_large: is_large });
    }

    /// Forgets with time what came before.
    fn leak(&mut self, now: Instant) {
        let elapsed = self.counted.map(|since| now.saturating_duration_since(since));
        self.excess = (self.excess - elapsed.unwrap_or_default().as_secs_f64() * LEAK).max(0.0);
        self.counted = Some(self.counted.map_or(now, |since| since.max(now)));
    }

    /// Whether most packets of late fill the path, and are no frames.
    fn is_full(&self, now: Instant) -> bool {
        let since = self.burst.as_ref().map(|burst| now.saturating_duration_since(burst.last));
        self.filled >= MOSTLY && !self.is_framed && since.is_some_and(|since| since < LATELY)
    }
}

/// How steady a direction is.
#[derive(Debug, Clone, Default)]
struct Pace {
    start: Option<Instant>,
    /// The slot of the last packet.
    slot: u64,
    /// The share of slots to this one that have a packet.
    share: f32,
}

impl Pace {
    fn add(&mut self, now: Instant) {
        self.start.get_or_insert(now);
        let passed = self.passed(now);
        if passed > 0 {
            self.share = decayed(self.share, passed - 1);
            self.share += SLOT_WEIGHT * (1.0 - self.share);
            self.slot += passed;
        }
    }

    /// The share of slots that have a packet, the present one apart.
    fn share(&self, now: Instant) -> f32 {
        decayed(self.share, self.passed(now).saturating_sub(1))
    }

    /// How many slots have begun since the last packet.
    fn passed(&self, now: Instant) -> u64 {
        let Some(start) = self.start else { return 0 };
        let slot = now.saturating_duration_since(start).as_nanos() / SLOT.as_nanos();
        u64::try_from(slot).unwrap_or(u64::MAX).saturating_sub(self.slot)
    }
}

/// A share after so many empty slots.
fn decayed(share: f32, empty: u64) -> f32 {
    share * (1.0 - SLOT_WEIGHT).powi(i32::try_from(empty).unwrap_or(i32::MAX))
}

#[cfg(test)]
mod tests;
