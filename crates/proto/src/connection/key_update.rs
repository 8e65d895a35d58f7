//! Key updates of 1-RTT packets (RFC 9001 section 6).

use super::Connection;
use super::timer::Timer;
use crate::crypto::{PacketKey, PacketKeys, Session};
use crate::error::{TransportError, TransportErrorCode};
use crate::ids::SpaceId;
use crate::wire::frame::AckFrame;
use std::time::Instant;

/// How many probe timeouts the previous keys are kept for late packets (section 6.5).
const OLD_KEYS_PERIOD: u32 = 3;

/// The keys of the next phase are derived ahead once a packet with this number has arrived. From then on a packet
/// takes equally long to open whatever its phase (RFC 9001 section 6.3). Most connections of a busy server end or
/// fall silent earlier, without the time and the memory for these keys.
pub(super) const KEYS_AHEAD: u64 = 16;

/// Which keys open a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpeningKeys {
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
    /// `None` until they are [derived](Self::derive_next).
    next: Option<PacketKeys>,
    previous: Option<Box<dyn PacketKey>>,
    /// The lowest packet number received in this phase, if any.
    first_received: Option<u64>,
    /// The highest packet number received in this phase, if any.
    last_received: Option<u64>,
    /// The highest packet number received in the previous phase, if any.
    previous_last: Option<u64>,
    /// The first packet number that this end sent in this phase.
    first_sent: u64,
    /// Whether this end has acknowledged a packet of this phase, so that the peer may update.
    acknowledged: bool,
    /// Packets sealed with the current keys.
    sealed: u64,
}

impl std::fmt::Debug for KeyPhases {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyPhases")
            .field("bit", &self.bit)
            .field("first_received", &self.first_received)
            .field("first_sent", &self.first_sent)
            .field("acknowledged", &self.acknowledged)
            .field("sealed", &self.sealed)
            .finish_non_exhaustive()
    }
}

impl KeyPhases {
    /// Begins the first phase. Unlike later phases it is valid before a packet is received in it, and
    /// the peer may end it before any of its packets is acknowledged.
    pub fn begin(&mut self) {
        self.first_received = Some(0);
        self.acknowledged = true;
    }

    /// The phase of a packet with this Key Phase bit and number (section 6.3).
    pub fn of(&self, bit: bool, pn: u64) -> OpeningKeys {
        match self.first_received {
            _ if bit == self.bit => OpeningKeys::Current,
            Some(first) if pn >= first => OpeningKeys::Next,
            _ => OpeningKeys::Previous,
        }
    }

    /// Derives the next keys, unless they are at hand. Forged packets can have them derived once, before
    /// [`KEYS_AHEAD`].
    pub fn derive_next(&mut self, session: &dyn Session) {
        if self.next.is_none() {
            self.next = session.next_1rtt_keys();
        }
    }

    /// The key with which to try to open packets of `phase`; `current` is the key currently in use. If
    /// `phase` has no key, this is another phase's, and packets that it opens do not count: an attempt takes
    /// equally long for either Key Phase bit (section 6.3).
    pub fn opener<'a>(
        &'a self,
        phase: OpeningKeys,
        current: &'a dyn PacketKey,
    ) -> &'a dyn PacketKey {
        let key = match phase {
            OpeningKeys::Current => None,
            OpeningKeys::Previous => self.previous.as_deref(),
            OpeningKeys::Next => self.next.as_ref().map(|keys| &*keys.remote),
        };
        key.unwrap_or(current)
    }

    /// Whether there is a key for packets of `phase`.
    pub fn opens(&self, phase: OpeningKeys) -> bool {
        match phase {
            OpeningKeys::Current => true,
            OpeningKeys::Previous => self.previous.is_some(),
            OpeningKeys::Next => self.next.is_some(),
        }
    }

    /// Notes a packet that was opened with the keys of `phase`; returns whether it is the first of a
    /// phase that this end began.
    ///
    /// # Errors
    /// The peer went back to older keys (section 6.4), or updated twice in a row (section 6.2).
    fn receive(&mut self, phase: OpeningKeys, pn: u64) -> Result<bool, TransportError> {
        match phase {
            OpeningKeys::Previous => {
                self.previous_last = self.previous_last.max(Some(pn));
                Ok(false)
            }
            OpeningKeys::Current if self.previous_last.is_some_and(|last| last > pn) => {
                Err(error("old keys after new ones"))
            }
            OpeningKeys::Current => {
                let began = self.first_received.is_none();
                self.first_received = Some(self.first_received.map_or(pn, |first| first.min(pn)));
                self.last_received = self.last_received.max(Some(pn));
                Ok(began)
            }
            OpeningKeys::Next if self.last_received.is_some_and(|last| last > pn) => {
                Err(error("old keys after new ones"))
            }
            OpeningKeys::Next if !self.acknowledged => Err(error("two updates in a row")),
            OpeningKeys::Next => Ok(false),
        }
    }

    /// Goes over to the next phase, in which `received` is the first packet, if any, and `first_sent`
    /// will be the first number that this end uses.
    fn advance(&mut self, received: Option<u64>, first_sent: u64) {
        self.bit = !self.bit;
        self.first_received = received;
        self.previous_last = std::mem::replace(&mut self.last_received, received);
        self.first_sent = first_sent;
        self.acknowledged = false;
        self.sealed = 0;
    }

    /// Checks an acknowledgement in a packet that was opened with the keys of `phase`. An end that has
    /// received packets under new keys must answer under new keys (section 6.2).
    ///
    /// # Errors
    /// The peer acknowledges packets of the present phase in one of the previous phase.
    pub fn check_ack(&self, phase: OpeningKeys, ack: &AckFrame<'_>) -> Result<(), TransportError> {
        match phase {
            OpeningKeys::Previous if ack.largest >= self.first_sent => {
                Err(error("new packets acknowledged under old keys"))
            }
            OpeningKeys::Previous | OpeningKeys::Current | OpeningKeys::Next => Ok(()),
        }
    }

    /// Notes that an acknowledgement of all that was received is being sent.
    pub fn on_ack_sent(&mut self) {
        self.acknowledged |= self.first_received.is_some();
    }

    /// Counts a packet that is being sealed.
    pub fn on_sealed(&mut self) {
        self.sealed = self.sealed.saturating_add(1);
    }

    /// How many packets the current keys have sealed.
    #[cfg(test)]
    pub fn sealed(&self) -> u64 {
        self.sealed
    }

    /// Drops the previous keys: late packets can no longer be opened.
    pub fn forget_previous(&mut self) {
        self.previous = None;
    }
}

fn error(reason: &'static str) -> TransportError {
    TransportError::new(TransportErrorCode::KEY_UPDATE_ERROR, reason)
}

impl Connection {
    /// Updates the keys that protect 1-RTT packets; the peer follows. Returns false if that is not
    /// possible yet: before the handshake is confirmed, before the peer has used the current keys and
    /// acknowledged a packet sealed with them (RFC 9001 section 6.1), and as long as late packets may need
    /// the previous keys, which is three probe timeouts (section 6.5).
    pub fn update_keys(&mut self) -> bool {
        let acked = self.path.recovery.largest_acked(SpaceId::Data);
        let phases = &self.key_phases;
        let may = self.handshake.confirmed
            && !self.is_closed()
            && phases.first_received.is_some()
            && phases.previous.is_none()
            && acked.is_some_and(|pn| pn >= phases.first_sent);
        may && self.rotate_keys(None)
    }

    /// Advances to the next phase. `received` is the packet that began it if the peer updated
    /// first.
    pub(super) fn rotate_keys(&mut self, received: Option<u64>) -> bool {
        let space = &mut self.spaces[SpaceId::Data];
        let phases = &mut self.key_phases;
        phases.derive_next(&*self.handshake.session);
        let (Some(keys), Some(next)) = (&mut space.keys, phases.next.take()) else { return false };
        keys.local.packet = next.local;
        phases.previous = Some(std::mem::replace(&mut keys.remote.packet, next.remote));
        self.handshake.session.enter_next_phase();
        phases.derive_next(&*self.handshake.session);
        phases.advance(received, space.peek_pn());
        self.timers.set(Timer::OldKeys, None);
        self.stats.key_updates += 1;
        true
    }

    /// Handles a 1-RTT packet that was opened with the keys of `phase`.
    ///
    /// # Errors
    /// KEY_UPDATE_ERROR if the peer must not use these keys at present.
    pub(super) fn on_opened(
        &mut self,
        now: Instant,
        phase: OpeningKeys,
        pn: u64,
    ) -> Result<(), TransportError> {
        let mut began = self.key_phases.receive(phase, pn)?;
        if pn >= KEYS_AHEAD {
            self.key_phases.derive_next(&*self.handshake.session);
        }
        if phase == OpeningKeys::Next {
            began = self.rotate_keys(Some(pn));
        }
        if began {
            self.timers.set(Timer::OldKeys, Some(now + OLD_KEYS_PERIOD * self.pto()));
        }
        Ok(())
    }

    /// Updates the keys before they have sealed too many packets, and closes the connection if that
    /// is impossible (RFC 9001 section 6.6).
    pub(super) fn spare_keys(&mut self, now: Instant) {
        let Some(keys) = &self.spaces[SpaceId::Data].keys else { return };
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
        let keys = self.spaces[space].keys.as_ref();
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
        assert_eq!(phases.of(false, 7), OpeningKeys::Current);
        assert_eq!(phases.of(true, 7), OpeningKeys::Next);
        phases.bit = true;
        phases.first_received = Some(100);
        assert_eq!(phases.of(true, 99), OpeningKeys::Current);
        assert_eq!(phases.of(false, 99), OpeningKeys::Previous);
        assert_eq!(phases.of(false, 100), OpeningKeys::Next);
        // This end updated first, and the peer has not followed yet.
        phases.first_received = None;
        assert_eq!(phases.of(false, 1000), OpeningKeys::Previous);
        assert_eq!(phases.of(true, 1000), OpeningKeys::Current);
    }
}
