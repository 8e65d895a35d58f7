//! The single timer of loss detection and the actions at its expiry (RFC 9002 section 6.2).

use super::Recovery;
use super::sent::SentPacket;
use crate::ids::SpaceId;
use std::time::{Duration, Instant};

/// The probe timeout is doubled until it is this long, but at least once.
///
/// This is how long a path that was gone stays unused once it is back, so it must be short compared
/// with an idle timeout: an outage may then last nearly as long as the idle timeout. Two packets of probes in
/// two seconds are a load that no path notices.
pub const MAX_PROBE_TIMEOUT: Duration = Duration::from_secs(2);
/// The probe timeout is doubled at least this many times, however long it is: a path whose round
/// trips take seconds, or have grown to that, must be probed more slowly, too.
pub const MIN_DOUBLINGS: u32 = 1;
/// Ack-eliciting packets sent per probe timeout (RFC 9002 section 6.2.4).
pub const PROBES: u8 = 2;

/// The state of the connection that determines whether and where a probe is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PtoContext {
    /// Whether Handshake packets can be sent.
    pub handshake_keys: bool,
    /// Whether the anti-amplification limit of RFC 9000 section 8.1 forbids sending now. The timer
    /// would then expire without effect (RFC 9002 section 6.2.2.1).
    pub amplification_limited: bool,
}

/// Why the loss detection timer expired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timeout {
    /// The timer has not expired yet.
    Early,
    /// Packets were lost by the time threshold. There may be no lost packet if the round-trip time has grown
    /// in the meantime; the timer was then set again.
    Loss {
        /// The space in which they were sent.
        space: SpaceId,
        /// Whether the losses establish persistent congestion.
        persistent_congestion: bool,
    },
    /// A probe timeout: ack-eliciting packets must be sent, regardless of the congestion window.
    Probe {
        /// The space in which to send them.
        space: SpaceId,
        /// The most packets to send; at least one must be sent.
        count: u8,
    },
}

/// When and where to probe.
struct Probe {
    time: Instant,
    space: SpaceId,
    count: u8,
}

impl<C: Copy + 'static> Recovery<C> {
    /// The probe timeout of `space` without backoff (RFC 9002 section 6.2.1). It includes the
    /// peer's acknowledgement delay only in the Data space.
    ///
    /// On a path that reorders it is no shorter than the time after which packets count as lost:
    /// the last packet of a flight may be as late as any other.
    pub fn pto(&self, space: SpaceId) -> Duration {
        let mut base = self.rtt.pto_base();
        if self.reordering.is_seen() {
            base = base.max(self.reordering.loss_delay(&self.rtt));
        }
        match space {
            SpaceId::Initial | SpaceId::Handshake => base,
            SpaceId::Data => base.saturating_add(self.max_ack_delay),
        }
    }

    /// [`pto`](Self::pto), doubled for each expiry since the last acknowledgement, up to a maximum.
    pub fn pto_with_backoff(&self, space: SpaceId) -> Duration {
        let pto = self.pto(space);
        let longest = pto.saturating_mul(1 << MIN_DOUBLINGS).max(MAX_PROBE_TIMEOUT);
        let doubled = 1u32.checked_shl(self.pto_count).map_or(longest, |n| pto.saturating_mul(n));
        doubled.min(longest)
    }

    /// How many times in a row the probe timeout has expired.
    pub fn pto_count(&self) -> u32 {
        self.pto_count
    }

    /// When to call [`Self::on_timeout`]. May be in the past.
    pub fn timeout(&self, context: PtoContext) -> Option<Instant> {
        match self.loss_time() {
            Some((time, _)) => Some(time),
            None => self.probe(context).map(|probe| probe.time),
        }
    }

    /// Handles the expiry of the timer; appends packets that are now lost to `lost`.
    ///
    /// After each call [`Self::timeout`] is later than `now`, unless the loss timer of another space is due
    /// too: that timer is next.
    pub fn on_timeout(
        &mut self,
        now: Instant,
        context: PtoContext,
        lost: &mut Vec<SentPacket<C>>,
    ) -> Timeout {
        if let Some((time, space)) = self.loss_time() {
            if time > now {
                return Timeout::Early;
            }
            let persistent_congestion = self.detect_lost(now, space, lost);
            return Timeout::Loss { space, persistent_congestion };
        }
        match self.probe(context) {
            Some(Probe { time, space, count }) if time <= now => {
                self.pto_count = self.pto_count.saturating_add(1);
                self.last_pto = Some(now);
                Timeout::Probe { space, count }
            }
            _ => Timeout::Early,
        }
    }

    /// The earliest loss timer of all spaces.
    fn loss_time(&self) -> Option<(Instant, SpaceId)> {
        let mut first: Option<(Instant, SpaceId)> = None;
        for &id in self.spaces.in_use() {
            if let Some(time) = self.spaces[id].loss_time
                && first.is_none_or(|(earliest, _)| time < earliest)
            {
                first = Some((time, id));
            }
        }
        first
    }

    fn probe(&self, context: PtoContext) -> Option<Probe> {
        if context.amplification_limited {
            return None;
        }
        let watched = self.spaces.in_use().iter().filter_map(|space| self.probe_in(*space));
        let first = watched.min_by_key(|probe| probe.time);
        if first.is_some() || self.peer_validated_address() {
            return first;
        }
        // RFC 9002 section 6.2.2.1: the server may have exhausted its limit, and only a datagram
        // from here lets it proceed. The datagram need not carry missing data.
        let space = if context.handshake_keys { SpaceId::Handshake } else { SpaceId::Initial };
        let time = self.probe_time(self.last_activity?, space)?;
        Some(Probe { time, space, count: 1 })
    }

    fn probe_in(&self, space: SpaceId) -> Option<Probe> {
        // The peer may not be able to open and acknowledge 1-RTT packets yet (section 6.2.1).
        if space == SpaceId::Data && !self.handshake_confirmed {
            return None;
        }
        let state = &self.spaces[space];
        let sent = state.last_ack_eliciting.filter(|_| state.probed > 0)?;
        Some(Probe { time: self.probe_time(sent, space)?, space, count: PROBES })
    }

    /// `since` is usually when the last packet was sent. A later timeout counts as well: the probe that it
    /// demanded may not have been sent, and the timer must not spin in the meantime.
    fn probe_time(&self, since: Instant, space: SpaceId) -> Option<Instant> {
        let since = self.last_pto.map_or(since, |last| last.max(since));
        since.checked_add(self.pto_with_backoff(space))
    }
}
