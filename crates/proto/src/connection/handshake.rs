//! The handshake: moves data between TLS and CRYPTO frames, installs and discards keys, and checks
//! the peer's transport parameters (RFC 9001 section 4, RFC 9000 section 7).

use super::announced::Announced;
use super::first_answer::RetryState;
use super::opening::NewToken;
use super::{Connection, EndpointEvent, Event, LifeStage};
use crate::config::TransportConfig;
use crate::crypto::{KeyChange, Keys, Session};
use crate::error::{TransportError, TransportErrorCode};
use crate::fec::{FecConfig, MAX_SYMBOL_SIZE};
use crate::ids::MAX_UDP_PAYLOAD;
use crate::ids::{ConnectionId, Side, SpaceId};
use crate::observe::Observation;
use crate::reset::ResetToken;
use crate::streams::StreamLimits;
use crate::wire::code_id::CodeSet;
use crate::wire::coding::VARINT_MAX;
use crate::wire::transport_parameters::{
    FecParameters, Grease, HandshakeIds, MAX_ACK_DELAY_BOUND, TransportParameters,
};
use rand::rngs::StdRng;
use std::time::{Duration, Instant};

/// The most bytes in a 1-RTT header besides the identifier: 1 of flags, 4 of packet number.
const ONE_RTT_OVERHEAD: usize = 1 + 4;

/// The state of the handshake.
pub struct Handshake {
    pub session: Box<dyn Session>,
    /// The transport parameters that this end announced.
    pub local: Announced,
    /// The source identifier of packets sent by this end.
    pub local_cid: ConnectionId,
    /// The destination identifier of the client's first Initial.
    pub original_dcid: ConnectionId,
    /// The source identifier of the peer's first Initial; all later long headers must repeat it.
    pub peer_scid: Option<ConnectionId>,
    /// State of the Retry that was followed, if any.
    pub retry: RetryState,
    /// The packet number space to which TLS currently writes.
    write_space: SpaceId,
    /// Whether the handshake is complete at this end, so that 1-RTT keys may be used to receive.
    pub complete: bool,
    /// Whether the handshake is confirmed: both ends know that it is complete (RFC 9001 section
    /// 4.1.2).
    pub confirmed: bool,
    pub peer_parameters_known: bool,
    /// Whether to send a HANDSHAKE_DONE.
    pub done_due: bool,
    /// On a server: the token for the client's next connection.
    pub new_token: NewToken,
}

impl Handshake {
    /// Starts a handshake.
    pub fn new(
        session: Box<dyn Session>,
        local: Announced,
        local_cid: ConnectionId,
        original_dcid: ConnectionId,
    ) -> Self {
        Self {
            session,
            local_cid,
            local,
            original_dcid,
            peer_scid: None,
            retry: RetryState::default(),
            write_space: SpaceId::Initial,
            complete: false,
            confirmed: false,
            peer_parameters_known: false,
            done_due: false,
            new_token: NewToken::default(),
        }
    }
}

/// The transport parameters that this end announces.
pub fn local_parameters(
    config: &TransportConfig,
    side: Side,
    local_cid: ConnectionId,
    original_dcid: ConnectionId,
    retry_source: Option<ConnectionId>,
    rng: &mut StdRng,
) -> TransportParameters {
    let datagrams = config.datagram_receive_buffer.is_some();
    TransportParameters {
        original_destination_connection_id: side.is_server().then_some(original_dcid),
        retry_source_connection_id: retry_source,
        initial_source_connection_id: Some(local_cid),
        max_idle_timeout: millis(config.max_idle_timeout.unwrap_or_default()),
        max_udp_payload_size: MAX_UDP_PAYLOAD.into(),
        initial_max_data: config.receive_window,
        initial_max_stream_data_bidi_local: config.stream_receive_window,
        initial_max_stream_data_bidi_remote: config.stream_receive_window,
        initial_max_stream_data_uni: config.stream_receive_window,
        initial_max_streams_bidi: config.max_concurrent_bidi_streams,
        initial_max_streams_uni: config.max_concurrent_uni_streams,
        max_ack_delay: millis(config.max_ack_delay).min(MAX_ACK_DELAY_BOUND - 1),
        active_connection_id_limit: crate::path::cids::ACTIVE_CID_LIMIT,
        disable_active_migration: side.is_client() || !config.migration,
        max_datagram_frame_size: if datagrams { MAX_UDP_PAYLOAD.into() } else { 0 },
        grease: config.grease.then(|| Grease::new(rand::Rng::random(rng))),
        fec: config.fec.map(|fec| FecParameters {
            max_sessions: fec.max_sessions.into(),
            max_window_symbols: fec.max_window_symbols.into(),
            max_window_bytes: fec.max_window_bytes.into(),
            max_symbol_size: MAX_SYMBOL_SIZE as u64,
            codes: fec.codes.and(CodeSet::all()),
        }),
        ..TransportParameters::default()
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(VARINT_MAX).min(VARINT_MAX)
}

/// The part of the configuration that the stream layer needs.
pub fn stream_limits(config: &TransportConfig) -> StreamLimits {
    StreamLimits {
        bidi_streams: config.max_concurrent_bidi_streams,
        uni_streams: config.max_concurrent_uni_streams,
        stream_window: config.stream_receive_window,
        max_stream_window: config.max_stream_receive_window,
        connection_window: config.receive_window,
        max_connection_window: config.max_receive_window,
        send_buffer: config.send_buffer,
        connection_send_buffer: config.connection_send_buffer,
    }
}

impl Connection {
    /// Passes received bytes to TLS and sends its response.
    pub(super) fn on_crypto_data(
        &mut self,
        now: Instant,
        space: SpaceId,
    ) -> Result<(), TransportError> {
        while let Some(data) = self.spaces[space].crypto.take_input() {
            self.read_handshake(space, &data)?;
        }
        self.drive_handshake(now)
    }

    /// Moves messages of TLS into CRYPTO streams, installs keys, and detects completion.
    pub(super) fn drive_handshake(&mut self, now: Instant) -> Result<(), TransportError> {
        self.learn_peer_parameters(now)?;
        loop {
            let space = self.handshake.write_space;
            let out = self.spaces[space].crypto.output();
            let before = out.len();
            let change = self.handshake.session.write_handshake(out);
            let wrote = out.len() > before;
            match change {
                Some(KeyChange::Handshake(keys)) => self.install(SpaceId::Handshake, keys),
                Some(KeyChange::OneRtt(keys)) => {
                    self.install(SpaceId::Data, keys);
                    self.key_phases.begin();
                }
                None if !wrote => break,
                None => {}
            }
        }
        self.learn_0rtt_keys();
        if !self.handshake.complete && !self.handshake.session.is_handshaking() {
            self.complete_handshake(now)?;
        }
        Ok(())
    }

    fn install(&mut self, space: SpaceId, keys: Keys) {
        self.spaces[space].keys = Some(keys);
        self.handshake.write_space = space;
    }

    fn complete_handshake(&mut self, now: Instant) -> Result<(), TransportError> {
        if !self.handshake.peer_parameters_known {
            let code = TransportErrorCode::crypto(109);
            return Err(TransportError::new(code, "no transport parameters"));
        }
        self.handshake.complete = true;
        if self.state == LifeStage::Handshaking {
            self.state = LifeStage::Established;
        }
        self.events.push_back(Event::Connected);
        self.endpoint_events.push_back(EndpointEvent::HandshakeDone);
        self.issue_cids();
        if self.side.is_server() {
            // The client has proven that it received data that only this server could send.
            self.handshake.done_due = true;
            self.handshake.new_token.offer();
            self.retire_0rtt_keys(now);
            self.confirm_handshake(now);
            self.finish_session();
        }
        Ok(())
    }

    /// Lets TLS go on a server: its last messages, the tickets, are in the CRYPTO stream.
    fn finish_session(&mut self) {
        if let Some(finished) = self.handshake.session.finish() {
            self.handshake.session = finished;
        }
    }

    /// Handles confirmation of the handshake: its keys are no longer needed.
    pub(super) fn confirm_handshake(&mut self, now: Instant) {
        if self.handshake.confirmed {
            return;
        }
        self.handshake.confirmed = true;
        self.path.recovery.on_handshake_confirmed();
        self.set_rotation_timer(now);
        self.try_preferred_address(now);
        self.discard_space(now, SpaceId::Handshake);
    }

    /// Discards a space: its keys, its packets in flight and its unsent data (RFC 9001 section
    /// 4.9).
    pub(super) fn discard_space(&mut self, now: Instant, space: SpaceId) {
        if self.spaces[space].keys.is_none() {
            return;
        }
        if space == SpaceId::Initial {
            self.negotiation.forget_keys();
        }
        self.spaces.forget(space);
        self.path.discard_space(now, space);
        self.path.recovery.forget_space(space);
        self.update_loss_timer(now);
    }

    fn learn_peer_parameters(&mut self, now: Instant) -> Result<(), TransportError> {
        if self.handshake.peer_parameters_known {
            return Ok(());
        }
        let Some(raw) = self.handshake.session.transport_parameters() else { return Ok(()) };
        let peer = TransportParameters::decode(raw, self.side.peer())?;
        peer.authenticate(
            self.side.peer(),
            &HandshakeIds {
                peer_initial_source: self.handshake.peer_scid.unwrap_or_default(),
                original_destination: self.handshake.original_dcid,
                retry_source: self.handshake.retry.source,
            },
        )?;
        self.check_version(&peer)?;
        self.observe(now, &Observation::Parameters { local: false, parameters: &peer });
        self.conclude_0rtt(now, &peer)?;
        self.handshake.peer_parameters_known = true;
        let max_ack_delay = Duration::from_millis(peer.max_ack_delay);
        self.path.recovery.set_max_ack_delay(max_ack_delay);
        if let Some(token) = peer.stateless_reset_token {
            self.path.remote_cids.set_handshake_token(ResetToken(token));
        }
        if let Some(offer) = &peer.preferred_address {
            self.learn_preferred_address(offer)?;
        }
        self.adopt_limits(&peer);
        self.enable_fec(&peer);
        self.peer = peer;
        self.reset_idle_timer(now);
        Ok(())
    }

    /// Enables erasure coding if this end offered it and the peer can decode.
    fn enable_fec(&mut self, peer: &TransportParameters) {
        let (Some(own), Some(fec)) = (self.config.fec, &peer.fec) else { return };
        let within = |most: u64, own: u32| u32::try_from(most).unwrap_or(u32::MAX).min(own);
        let decoder = FecConfig {
            max_sessions: u16::try_from(fec.max_sessions).unwrap_or(u16::MAX),
            max_window_symbols: within(fec.max_window_symbols, own.max_window_symbols),
            max_window_bytes: within(fec.max_window_bytes, own.max_window_bytes),
            codes: fec.codes,
        };
        let symbol_size = usize::try_from(fec.max_symbol_size).unwrap_or(usize::MAX);
        let largest = self.capacity(self.path.mtu.limit());
        self.egress.enable_coding(&decoder, symbol_size, largest);
    }

    /// How many bytes of frames fit in a packet with stream data that fills a datagram of `size` bytes.
    fn capacity(&self, size: u16) -> usize {
        let overhead = self.data_header_size(ONE_RTT_OVERHEAD) + super::transmit::TAG_SIZE;
        usize::from(size).saturating_sub(overhead)
    }

    /// Updates the capacity of a full-size 1-RTT packet, which depends on the datagram size and the
    /// length of the peer's identifier.
    pub(super) fn update_capacity(&mut self) {
        self.egress.set_capacity(self.capacity(self.path.mtu.size()));
    }
}
