//! 0-RTT: data that a client sends along with its first flight, under a key of an earlier session (RFC 9001
//! section 4.6) and within the limits that the server announced then (RFC 9000 section 7.4.1).
//!
//! A client asks for 0-RTT with [`start_0rtt`](Connection::start_0rtt). 0-RTT packets share the packet number
//! space of 1-RTT packets. If the server does not accept them, all data that was sent and written until then
//! is dropped, as if it had never been, because the application's later data may depend on the data that the
//! server rejects.

use super::timer::Timer;
use super::{Connection, Event, LifeStage, mtu};
use crate::crypto::DirectionalKeys;
use crate::egress::PacketOutcome;
use crate::error::{TransportError, TransportErrorCode};
use crate::ids::{SpaceId, StreamId};
use crate::recovery::token::Token;
use crate::streams::PeerLimits;
use crate::wire::transport_parameters::TransportParameters;
use std::time::Instant;

/// How many probe timeouts a server keeps the key for late packets after the handshake (RFC 9001
/// section 4.9.3).
const KEY_PERIOD: u32 = 3;
/// The most bytes in the header of a 0-RTT packet besides the identifiers: flags, version, two lengths
/// of identifiers, Length and packet number.
const HEADER_SIZE: usize = 1 + 4 + 2 + 2 + 4;

/// The state of 0-RTT at one end.
#[derive(Debug, Default)]
pub struct ZeroRtt {
    /// The key with which a client seals until it has 1-RTT keys, and with which a server opens until shortly
    /// after the handshake.
    keys: Option<DirectionalKeys>,
    /// On a client: the limits to which it keeps. Boxed, because few connections have them.
    pub(super) remembered: Option<Box<TransportParameters>>,
    /// Whether 0-RTT is accepted, once that is known. On a client, only if it has sent any.
    accepted: Option<bool>,
}

impl ZeroRtt {
    /// The key that opens 0-RTT packets.
    pub fn opener(&self) -> Option<&DirectionalKeys> {
        self.keys.as_ref().filter(|_| self.remembered.is_none())
    }

    /// The key that seals 0-RTT packets.
    pub fn sealer(&self) -> Option<&DirectionalKeys> {
        self.keys.as_ref().filter(|_| self.remembered.is_some())
    }

    /// Forgets the key.
    pub fn forget_keys(&mut self) {
        self.keys = None;
    }
}

impl Connection {
    /// Sends the application's data from now on in 0-RTT packets until the handshake is complete, if the
    /// session that this client resumes permits it. Streams can be opened and datagrams sent at once, within
    /// the limits of that session. Returns whether that is so.
    ///
    /// If the server does not accept 0-RTT, [`Event::ZeroRttRejected`] follows. An attacker may send the data
    /// of 0-RTT packets to the server again on other connections, so it should change nothing there (RFC 9001
    /// section 9.2). Erasure coding never protects it.
    pub fn start_0rtt(&mut self, now: Instant) -> bool {
        if self.is_sending_0rtt() {
            return true;
        }
        let too_late = self.state != LifeStage::Handshaking || self.handshake.peer_parameters_known;
        if self.side.is_server() || too_late {
            return false;
        }
        let session = &self.handshake.session;
        let parameters = session.early_parameters();
        let parameters = parameters.map(|raw| TransportParameters::decode(raw, self.side.peer()));
        let (Some(keys), Some(Ok(parameters))) = (session.early_keys(), parameters) else {
            return false;
        };
        let remembered = parameters.remembered();
        self.zero_rtt = ZeroRtt {
            keys: Some(keys),
            remembered: Some(Box::new(remembered.clone())),
            accepted: None,
        };
        self.adopt_limits(&remembered);
        self.peer = remembered;
        self.reset_idle_timer(now);
        true
    }

    /// Whether this is a client that sends 0-RTT packets at present.
    #[must_use]
    pub fn is_sending_0rtt(&self) -> bool {
        self.zero_rtt.sealer().is_some()
    }

    /// Whether the server accepts 0-RTT packets. `None` while that is not known, and on a client that
    /// has not called [`start_0rtt`](Self::start_0rtt).
    #[must_use]
    pub fn zero_rtt_accepted(&self) -> Option<bool> {
        self.zero_rtt.accepted
    }

    /// How many bytes the header of a packet with stream data may have. It contains the identifier of the
    /// peer, and before 1-RTT also the identifier of this end.
    pub(super) fn data_header_size(&self, short: usize) -> usize {
        let dcid = self.path.remote_cids.active().len();
        if self.is_sending_0rtt() {
            HEADER_SIZE + dcid + self.handshake.local_cid.len()
        } else {
            short + dcid
        }
    }

    /// Handles the limits of the peer, announced or remembered.
    pub(super) fn adopt_limits(&mut self, peer: &TransportParameters) {
        self.streams.set_peer_limits(PeerLimits {
            max_data: peer.initial_max_data,
            max_stream_data_bidi_local: peer.initial_max_stream_data_bidi_local,
            max_stream_data_bidi_remote: peer.initial_max_stream_data_bidi_remote,
            max_stream_data_uni: peer.initial_max_stream_data_uni,
            max_streams_bidi: peer.initial_max_streams_bidi,
            max_streams_uni: peer.initial_max_streams_uni,
        });
        self.path.mtu.set_peer_limit(mtu::peer_limit(peer));
        self.update_capacity();
    }

    /// Learns, on a server, whether 0-RTT packets can be opened. The ClientHello decides that, upon which a
    /// server has Handshake keys.
    pub(super) fn learn_0rtt_keys(&mut self) {
        let has_hello = self.spaces[SpaceId::Handshake].keys.is_some();
        if self.side.is_client() || self.zero_rtt.accepted.is_some() || !has_hello {
            return;
        }
        self.zero_rtt.keys = self.handshake.session.early_keys();
        self.zero_rtt.accepted = Some(self.zero_rtt.keys.is_some());
    }

    /// Whether 0-RTT packets may become readable.
    pub(super) fn awaits_0rtt_keys(&self) -> bool {
        self.side.is_server() && self.zero_rtt.accepted.is_none()
    }

    /// Learns, on a client that knows the server's parameters by now, the outcome of its 0-RTT packets.
    pub(super) fn conclude_0rtt(
        &mut self,
        now: Instant,
        peer: &TransportParameters,
    ) -> Result<(), TransportError> {
        let Some(remembered) = self.zero_rtt.remembered.take() else { return Ok(()) };
        self.zero_rtt.forget_keys();
        let accepted = self.handshake.session.is_early_data_accepted();
        self.zero_rtt.accepted = Some(accepted);
        if !accepted {
            self.drop_0rtt(now);
        } else if !peer.covers(&remembered) {
            let code = TransportErrorCode::PROTOCOL_VIOLATION;
            return Err(TransportError::new(code, "0-RTT accepted, but limits reduced"));
        }
        Ok(())
    }

    /// Drops all that was sent in 0-RTT packets.
    fn drop_0rtt(&mut self, now: Instant) {
        self.path.discard_space(now, SpaceId::Data);
        self.streams = super::new_streams(&self.config, self.side);
        self.egress.start_over();
        self.events.push_back(Event::ZeroRttRejected);
    }

    /// Gives up 0-RTT on a client that begins another handshake, of another version: its keys belong to the
    /// previous version.
    pub(super) fn abandon_0rtt(&mut self, now: Instant) {
        if self.zero_rtt.remembered.take().is_some() {
            self.zero_rtt.forget_keys();
            self.zero_rtt.accepted = Some(false);
            self.peer = TransportParameters::default();
            self.drop_0rtt(now);
        }
    }

    /// Keeps the key, on a server whose handshake is complete, a while longer for late packets.
    pub(super) fn retire_0rtt_keys(&mut self, now: Instant) {
        if self.zero_rtt.keys.is_some() {
            self.timers.set(Timer::ZeroRttKeys, Some(now + KEY_PERIOD * self.pto()));
        }
    }

    /// Sends the data of 0-RTT packets again, because a Retry shows that the server has dropped it (RFC 9000
    /// section 17.2.5.3). The drop is no sign of congestion. Datagrams are given up, like lost ones.
    pub(super) fn resend_0rtt(&mut self, now: Instant) {
        let path = self.path.view(now);
        for packet in self.path.withdraw_space(now, SpaceId::Data) {
            for token in packet.tokens {
                match token {
                    Token::Stream(frame) => self.egress.probe(&mut self.streams, &frame),
                    other => {
                        let outcome = PacketOutcome::Lost(packet.time);
                        self.on_token(now, SpaceId::Data, &other, outcome, &path);
                    }
                }
            }
        }
    }

    /// Whether some of the stream's data came in a 0-RTT packet and the handshake is not complete: it
    /// may be a copy that an attacker has sent again.
    pub(super) fn is_early_stream(&self, id: StreamId) -> bool {
        !self.handshake.complete && self.streams.is_early(id)
    }
}
