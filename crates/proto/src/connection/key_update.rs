//! Key updates of 1-RTT packets (RFC 9001 section 6).

use super::Connection;
use super::timer::Timer;
use crate::crypto::{PacketKey, PacketKeys};
use crate::error::{TransportError, TransportErrorCode};
use crate::ids::SpaceId;
use std::time::Instant;

/// How many probe timeouts the previous keys are kept for late packets (section 6.5).
const OLD_KEYS_PERIOD: u32 = 3;

/// Which keys open a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The current keys.
    Current,
    /// The previous keys.
    Previous,
    /// The next keys: if they open the packet, the peer has updated.
    Next,
}

/// The key phases other than the current keys.
#[derive(Default)]
pub struct KeyPhases {
    /// The Key Phase bit of packets sent by this end.
    pub bit: bool,
    next: Option<PacketKeys>,
    previous: Option<Box<dyn PacketKey>>,
    /// The lowest packet number received in this phase, if any.
    first_received: Option<u64>,
    /// The first packet number that this end sent in this phase.
    first_sent: u64,
    /// Packets sealed with the current keys.
    sealed: u64,
}

impl std::fmt::Debug for KeyPhases {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyPhases")
            .field("bit", &self.bit)
            .field("first_received", &self.first_received)
            .field("first_sent", &self.first_sent)
            .field("sealed", &self.sealed)
            .finish_non_exhaustive()
    }
}

impl KeyPhases {
    /// Begins the first phase. Unlike later phases it is valid before a packet is received in it.
    pub fn begin(&mut self, next: PacketKeys) {
        self.next = Some(next);
        self.first_received = Some(0);
    }

    /// The phase of a packet with this Key Phase bit and number (section 6.3).
    pub fn of(&self, bit: bool, pn: u64) -> Phase {
        match self.first_received {
            _ if bit == self.bit => Phase::Current,
            Some(first) if pn >= first => Phase::Next,
            _ => Phase::Previous,
        }
    }

    /// The key that opens packets of `phase`; `current` is the key currently in use.
    pub fn opener<'a>(
        &'a self,
        phase: Phase,
        current: &'a dyn PacketKey,
    ) -> Option<&'a dyn PacketKey> {
        match phase {
            Phase::Current => Some(current),
            Phase::Previous => self.previous.as_deref(),
            Phase::Next => self.next.as_ref().map(|keys| &*keys.remote),
        }
    }

    /// Counts a packet that is being sealed.
    pub fn on_sealed(&mut self) {
        self.sealed = self.sealed.saturating_add(1);
    }

    /// Drops the previous keys: late packets can no longer be opened.
    pub fn forget_previous(&mut self) {
        self.previous = None;
    }
}

impl Connection {
    /// Updates the keys that protect 1-RTT packets; the peer follows. Returns false if that is not
    /// possible yet: before the handshake is confirmed, or before the peer has used the current
    /// keys and acknowledged a packet sealed with them (RFC 9001 section 6.1).
    pub fn update_keys(&mut self) -> bool {
        let acked = self.path.recovery.largest_acked(SpaceId::Data);
        let phases = &self.key_phases;
        let may = self.handshake.confirmed
            && !self.is_closed()
            && phases.first_received.is_some()
            && acked.is_some_and(|pn| pn >= phases.first_sent);
        may && self.rotate_keys(None)
    }

    /// Advances to the next phase. `received` is the packet that began it if the peer updated
    /// first.
    fn rotate_keys(&mut self, received: Option<u64>) -> bool {
        let space = &mut self.spaces[SpaceId::Data as usize];
        let phases = &mut self.key_phases;
        let (Some(keys), Some(next)) = (&mut space.keys, phases.next.take()) else { return false };
        keys.local.packet = next.local;
        phases.previous = Some(std::mem::replace(&mut keys.remote.packet, next.remote));
        phases.next = self.handshake.session.next_1rtt_keys();
        phases.bit = !phases.bit;
        phases.first_received = received;
        phases.first_sent = space.peek_pn();
        phases.sealed = 0;
        self.timers.set(Timer::OldKeys, None);
        self.stats.key_updates += 1;
        true
    }

    /// Handles a 1-RTT packet that was opened with the keys of `phase`.
    pub(super) fn on_opened(&mut self, now: Instant, phase: Phase, pn: u64) {
        let began = match phase {
            Phase::Previous => false,
            Phase::Next => self.rotate_keys(Some(pn)),
            Phase::Current => {
                let first = &mut self.key_phases.first_received;
                let began = first.is_none();
                *first = Some(first.map_or(pn, |first| first.min(pn)));
                began
            }
        };
        if began {
            self.timers.set(Timer::OldKeys, Some(now + OLD_KEYS_PERIOD * self.pto()));
        }
    }

    /// Updates the keys before they have sealed too many packets, and closes the connection if that
    /// is impossible (RFC 9001 section 6.6).
    pub(super) fn spare_keys(&mut self, now: Instant) {
        let Some(keys) = &self.spaces[SpaceId::Data as usize].keys else { return };
        let limit = keys.local.packet.confidentiality_limit();
        let sealed = self.key_phases.sealed;
        if sealed < limit / 2 || self.update_keys() || sealed < limit - limit / 8 {
            return;
        }
        let code = TransportErrorCode::AEAD_LIMIT_REACHED;
        self.fail(now, TransportError::new(code, "keys are used up"));
    }

    /// Counts a packet that could not be opened. The number of attempts is limited, because with
    /// enough of them an attacker eventually forges a packet (RFC 9001 section 6.6).
    pub(super) fn on_undecryptable(&mut self, now: Instant, space: SpaceId) {
        self.stats.undecryptable += 1;
        let keys = self.spaces[space as usize].keys.as_ref();
        let limit = keys.map_or(u64::MAX, |keys| keys.remote.packet.integrity_limit());
        if self.stats.undecryptable > limit {
            let code = TransportErrorCode::AEAD_LIMIT_REACHED;
            self.fail(now, TransportError::new(code, "too many packets failed to open"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_tells_late_packets_from_early_ones() {
        let mut phases = KeyPhases { first_received: Some(0), ..KeyPhases::default() };
        assert_eq!(phases.of(false, 7), Phase::Current);
        assert_eq!(phases.of(true, 7), Phase::Next);
        phases.bit = true;
        phases.first_received = Some(100);
        assert_eq!(phases.of(true, 99), Phase::Current);
        assert_eq!(phases.of(false, 99), Phase::Previous);
        assert_eq!(phases.of(false, 100), Phase::Next);
        // This end updated first, and the peer has not followed yet.
        phases.first_received = None;
        assert_eq!(phases.of(false, 1000), Phase::Previous);
        assert_eq!(phases.of(true, 1000), Phase::Current);
    }
}
