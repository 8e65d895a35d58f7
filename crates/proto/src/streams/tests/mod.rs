//! Tests of the whole stream layer, and of its parts against models.

mod delivery;
mod exchange;
mod floods;
mod flow_control;
mod ids;
mod read_ahead;
mod receiving;
mod reset_at;
mod retransmission;
mod send_buffer;
mod send_limits;
mod sending;

use super::resend_order::{ByLoss, First, FirstBy, InTurn, ResendOrderFactory};
use super::*;
use crate::egress::lost::{LossLedger, Unqueued};
use crate::error::{TransportError, TransportErrorCode};
use crate::recovery::token::{ControlToken, StreamToken, Token, Tokens};
use crate::wire::coding::Reader;
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use sutura_random::Rng;
use sutura_schedule::{Eps, Grant, Priority, Scheduler, Scheme, StreamKey};

const RTT: Duration = Duration::from_millis(50);
/// Frame types (RFC 9000 section 19), repeated here so that the tests do not depend on the
/// registry.
mod encode {
    pub(super) const STREAM: u64 = 0x08;
    pub(super) const STREAM_FIN: u64 = 0x01;
    pub(super) const STREAM_LEN: u64 = 0x02;
    pub(super) const STREAM_OFF: u64 = 0x04;
    pub(super) const RESET_STREAM: u64 = 0x04;
    pub(super) const RESET_STREAM_AT: u64 = 0x24;
    pub(super) const STOP_SENDING: u64 = 0x05;
    pub(super) const MAX_DATA: u64 = 0x10;
    pub(super) const MAX_STREAM_DATA: u64 = 0x11;
    pub(super) const MAX_STREAMS_BIDI: u64 = 0x12;
    pub(super) const MAX_STREAMS_UNI: u64 = 0x13;
    pub(super) const DATA_BLOCKED: u64 = 0x14;
    pub(super) const STREAM_DATA_BLOCKED: u64 = 0x15;
    pub(super) const STREAMS_BLOCKED_BIDI: u64 = 0x16;
    pub(super) const STREAMS_BLOCKED_UNI: u64 = 0x17;
}

/// Schedules like [`Eps`], and records how many bytes each stream is charged.
#[derive(Debug, Default)]
pub(crate) struct Accountant {
    eps: Eps,
    /// Replaces all priorities.
    uniform: Option<Priority>,
    pub(crate) ledger: Arc<Mutex<BTreeMap<StreamKey, u64>>>,
}

impl Scheduler for Accountant {
    fn insert(&mut self, stream: StreamKey, priority: Priority) {
        self.eps.insert(stream, self.uniform.clone().unwrap_or(priority));
    }
    fn remove(&mut self, stream: StreamKey) {
        self.eps.remove(stream);
    }
    fn reprioritize(&mut self, stream: StreamKey, priority: Priority) {
        self.eps.reprioritize(stream, self.uniform.clone().unwrap_or(priority));
    }
    fn activate(&mut self, stream: StreamKey) {
        self.eps.activate(stream);
    }
    fn deactivate(&mut self, stream: StreamKey) {
        self.eps.deactivate(stream);
    }
    fn next(&self, room: usize) -> Option<Grant> {
        self.eps.next(room)
    }
    fn charge(&mut self, stream: StreamKey, bytes: usize) {
        *self.ledger.lock().unwrap().entry(stream).or_default() += bytes as u64;
        self.eps.charge(stream, bytes);
    }
    fn is_empty(&self) -> bool {
        self.eps.is_empty()
    }
}

/// Space for frames in one packet.
const ROOM: usize = 1200;

/// The streams of an endpoint, and the ledger of their lost data.
struct Sender {
    streams: Streams,
    ledger: LossLedger,
}

impl Deref for Sender {
    type Target = Streams;

    fn deref(&self) -> &Streams {
        &self.streams
    }
}

impl DerefMut for Sender {
    fn deref_mut(&mut self) -> &mut Streams {
        &mut self.streams
    }
}

impl From<Streams> for Sender {
    fn from(streams: Streams) -> Self {
        Self { streams, ledger: LossLedger::default() }
    }
}

impl Sender {
    /// Selects the stream data that goes next into a packet with `room` bytes left.
    fn look(&self, room: usize) -> Option<Pending> {
        let new = || self.streams.look_new(room, |id| self.ledger.next(&self.streams, id));
        self.ledger.look(&self.streams).or_else(new)
    }

    fn has_data(&self) -> bool {
        self.look(usize::MAX).is_some()
    }

    fn write_stream(
        &mut self,
        pending: &Pending,
        out: &mut Vec<u8>,
        room: usize,
        length: Length,
    ) -> Option<Written> {
        let written = self.streams.write_stream(pending, out, room, length)?;
        if pending.is_retransmission() {
            let unqueued = self.ledger.sent(&mut self.streams, &written.token);
            assert!(unqueued.is_empty(), "{unqueued:?}");
        }
        Some(written)
    }

    fn delivered(&mut self, frame: &StreamToken) -> Unqueued {
        self.streams.delivered(frame);
        self.ledger.arrived(&mut self.streams, frame)
    }

    fn give_up(&mut self, frame: &StreamToken, code: u64) -> Unqueued {
        self.streams.give_up(frame, code);
        self.ledger.arrived(&mut self.streams, frame)
    }

    fn reset(&mut self, id: StreamId, code: u64) -> Result<Unqueued, ClosedStream> {
        self.reset_at(id, code, 0)
    }

    fn reset_at(
        &mut self,
        id: StreamId,
        code: u64,
        reliable: u64,
    ) -> Result<Unqueued, ClosedStream> {
        self.streams.reset_at(id, code, reliable)?;
        Ok(self.ledger.withdraw(&mut self.streams, id))
    }

    fn received_stop_sending(
        &mut self,
        id: StreamId,
        code: u64,
    ) -> Result<Unqueued, TransportError> {
        self.streams.received_stop_sending(id, code)?;
        Ok(self.ledger.withdraw(&mut self.streams, id))
    }

    /// A frame was lost and is sent again; returns whether any data was queued.
    fn retransmit(&mut self, frame: &StreamToken) -> bool {
        self.ledger.queue(&mut self.streams, frame)
    }

    /// The packets with these frames of streams were lost.
    fn lose(&mut self, frames: &[StreamToken]) {
        frames.iter().for_each(|frame| self.lost(&Token::Stream(*frame)));
    }

    fn check(&self) -> Result<(), String> {
        self.streams.check()?;
        self.ledger.check(&self.streams)
    }

    /// The packet with a frame was acknowledged.
    fn acked(&mut self, token: &Token) {
        match *token {
            Token::Stream(ref frame) => drop(self.delivered(frame)),
            Token::Control(control) => self.control_acked(control),
            ref other => panic!("{other:?} is not a stream's"),
        }
    }

    /// The packet with a frame was lost, and the frame is to be sent again.
    fn lost(&mut self, token: &Token) {
        match *token {
            Token::Stream(ref frame) => _ = self.retransmit(frame),
            Token::Control(control) => self.control_lost(control),
            ref other => panic!("{other:?} is not a stream's"),
        }
    }
}

/// Limits small enough for tests to reach.
fn small() -> StreamLimits {
    StreamLimits {
        bidi_streams: 8,
        uni_streams: 8,
        stream_window: 10_000,
        max_stream_window: 10_000,
        connection_window: 15_000,
        max_connection_window: 15_000,
        send_buffer: 20_000,
        connection_send_buffer: 1 << 20,
    }
}

/// The transport parameters of a peer with `limits`.
fn advertised(limits: &StreamLimits) -> PeerLimits {
    PeerLimits {
        max_data: limits.connection_window,
        max_stream_data_bidi_local: limits.stream_window,
        max_stream_data_bidi_remote: limits.stream_window,
        max_stream_data_uni: limits.stream_window,
        max_streams_bidi: limits.bidi_streams,
        max_streams_uni: limits.uni_streams,
    }
}

/// An endpoint with `limits`, whose peer has the same limits.
fn endpoint(side: Side, limits: &StreamLimits) -> Sender {
    endpoint_with(side, limits, &ByLoss)
}

/// An endpoint with `limits` that resends lost data according to `approach`.
fn endpoint_with(side: Side, limits: &StreamLimits, approach: &dyn ResendOrderFactory) -> Sender {
    let order = approach.build(&|| Scheme::EPS.build());
    let streams = Streams::new(side, limits.clone(), Scheme::EPS.build(), order);
    let mut streams = Sender::from(streams);
    streams.set_peer_limits(advertised(limits));
    streams
}

/// Every resend order.
fn approaches() -> [Arc<dyn ResendOrderFactory>; 4] {
    let first_by = FirstBy(Arc::new(Scheme::EPS));
    [Arc::new(ByLoss), Arc::new(InTurn), Arc::new(First), Arc::new(first_by)]
}

fn client() -> Sender {
    endpoint(Side::Client, &small())
}

fn server() -> Sender {
    endpoint(Side::Server, &small())
}

/// A stream that the client opens.
fn client_stream(dir: Dir, index: u64) -> StreamId {
    StreamId::new(Side::Client, dir, index)
}

/// The client's unidirectional stream with this index.
fn uni(index: u64) -> StreamId {
    client_stream(Dir::Uni, index)
}

/// The frames of a packet, with their tokens.
#[derive(Debug, Default)]
struct Packet {
    bytes: Vec<u8>,
    tokens: Tokens,
}

/// Fills a packet; `None` if there is nothing to send.
fn packet(streams: &mut Sender, now: Instant) -> Option<Packet> {
    let mut packet = Packet::default();
    streams.write_control(now, RTT, &mut packet.bytes, ROOM, &mut packet.tokens);
    while let Some(pending) = streams.look(ROOM - packet.bytes.len()) {
        let room = ROOM - packet.bytes.len();
        let written = streams.write_stream(&pending, &mut packet.bytes, room, Length::Explicit);
        let Some(written) = written else { break };
        packet.tokens.push(Token::Stream(written.token));
    }
    assert!(packet.bytes.len() <= ROOM);
    assert_eq!(packet.bytes.is_empty(), packet.tokens.is_empty());
    (!packet.bytes.is_empty()).then_some(packet)
}

/// Fills a packet with control frames only and decodes them into their integers.
fn control(streams: &mut Sender) -> Vec<Vec<u64>> {
    control_tokens(streams).0
}

fn control_tokens(streams: &mut Sender) -> (Vec<Vec<u64>>, Tokens) {
    let (mut bytes, mut tokens) = (Vec::new(), Tokens::new());
    streams.write_control(Instant::now(), RTT, &mut bytes, ROOM, &mut tokens);
    assert!(!streams.wants_control());
    let mut reader = Reader::new(&bytes);
    let mut frames = Vec::new();
    while !reader.is_empty() {
        let kind = reader.varint().unwrap();
        let fields = match kind {
            encode::RESET_STREAM_AT => 4,
            encode::RESET_STREAM => 3,
            encode::STOP_SENDING | encode::MAX_STREAM_DATA | encode::STREAM_DATA_BLOCKED => 2,
            _ => 1,
        };
        let fields = (0..fields).map(|_| reader.varint().unwrap());
        frames.push(std::iter::once(kind).chain(fields).collect());
    }
    assert_eq!(frames.len(), tokens.len());
    (frames, tokens)
}

/// Writes one STREAM frame, if any data waits, and discards the bytes of the frame.
fn send_frame(streams: &mut Sender) -> Option<StreamToken> {
    let pending = streams.look(ROOM)?;
    let written = streams.write_stream(&pending, &mut Vec::new(), ROOM, Length::Explicit)?;
    Some(written.token)
}

/// Writes STREAM frames as long as any data can be sent, and discards their bytes.
fn send_frames(streams: &mut Sender) -> Vec<StreamToken> {
    std::iter::from_fn(|| send_frame(streams)).collect()
}

/// Writes a STREAM frame with this offset, length and end.
fn sends(streams: &mut Sender, expected: (u64, u32, bool)) -> StreamToken {
    let token = send_frame(streams).unwrap();
    assert_eq!((token.offset, token.len, token.fin), expected);
    token
}

/// Passes the frames of a packet to an endpoint.
fn deliver(streams: &mut Sender, bytes: &[u8]) -> Result<(), TransportError> {
    let mut reader = Reader::new(bytes);
    while !reader.is_empty() {
        let mut next = || reader.varint().unwrap();
        match next() {
            encode::RESET_STREAM => streams.received_reset(StreamId(next()), next(), next())?,
            encode::RESET_STREAM_AT => {
                streams.received_reset_at(StreamId(next()), next(), next(), next())?;
            }
            encode::STOP_SENDING => {
                streams.received_stop_sending(StreamId(next()), next())?;
            }
            encode::MAX_DATA => streams.received_max_data(next()),
            encode::MAX_STREAM_DATA => {
                streams.received_max_stream_data(StreamId(next()), next())?;
            }
            encode::MAX_STREAMS_BIDI => streams.received_max_streams(Dir::Bi, next())?,
            encode::MAX_STREAMS_UNI => streams.received_max_streams(Dir::Uni, next())?,
            encode::DATA_BLOCKED => drop(next()),
            encode::STREAM_DATA_BLOCKED => {
                streams.received_stream_data_blocked(StreamId(next()))?;
                next();
            }
            encode::STREAMS_BLOCKED_BIDI => streams.received_streams_blocked(Dir::Bi, next())?,
            encode::STREAMS_BLOCKED_UNI => streams.received_streams_blocked(Dir::Uni, next())?,
            kind => {
                assert_eq!(kind & !7, encode::STREAM, "unknown frame type {kind:#x}");
                let id = StreamId(next());
                let offset = if kind & encode::STREAM_OFF != 0 { next() } else { 0 };
                let data = if kind & encode::STREAM_LEN != 0 {
                    reader.varint_bytes().unwrap()
                } else {
                    reader.rest()
                };
                let fin = kind & encode::STREAM_FIN != 0;
                assert!(fin || !data.is_empty(), "an empty frame says nothing");
                streams.received(id, offset, data, fin)?;
            }
        }
    }
    Ok(())
}

/// All pending events.
fn events(streams: &mut Sender) -> Vec<StreamEvent> {
    std::iter::from_fn(|| streams.poll_event()).collect()
}

/// The code of the error that a frame caused.
fn code(result: Result<(), TransportError>) -> TransportErrorCode {
    result.unwrap_err().code
}
