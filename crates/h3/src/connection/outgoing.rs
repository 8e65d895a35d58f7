//! This end's unidirectional streams: control, QPACK encoder and decoder, and a reserved stream that the peer
//! ignores.

use sutura_proto::{Dir, Side, StreamId};
use sutura_random::SplitMix64;
use sutura_schedule::Priority;

use super::incoming::{CONTROL, DECODER, ENCODER};
use crate::codec::put_varint;
use crate::config::Config;
use crate::error::{Code, Error};
use crate::frame::{self, FrameType};
use crate::transport::{Transport, WriteError};

/// Bytes of control frames that may be pending; beyond that, sending is `Blocked`.
pub const MAX_CONTROL_BACKLOG: usize = 64 << 10;

/// Bytes of memory that a stream keeps while nothing is pending.
const MAX_KEPT: usize = 64;

/// One of this end's streams and its pending bytes.
#[derive(Debug)]
struct Outgoing {
    id: StreamId,
    pending: Vec<u8>,
    at: usize,
}

impl Outgoing {
    fn flush<T: Transport>(&mut self, quic: &mut T) -> Result<(), Error> {
        while let Some(rest) = self.pending.get(self.at..).filter(|rest| !rest.is_empty()) {
            match quic.write(self.id, rest) {
                Ok(n) if n > 0 => self.at += n.min(rest.len()),
                Err(WriteError::Stopped(_)) => {
                    return Err(Error::new(
                        Code::CLOSED_CRITICAL_STREAM,
                        "critical stream stopped",
                    ));
                }
                Ok(_) | Err(WriteError::Blocked | WriteError::Closed) => return Ok(()),
            }
        }
        self.pending.clear();
        if self.pending.capacity() > MAX_KEPT {
            self.pending = Vec::new();
        }
        self.at = 0;
        Ok(())
    }
}

/// The streams that this end opens as soon as possible.
#[derive(Debug)]
pub(super) struct OutgoingStreams {
    /// The control stream comes first, as it carries SETTINGS.
    streams: Vec<Outgoing>,
    grease: Option<u64>,
}

/// The types of these streams, in the order in which they are opened.
const KINDS: [u64; 3] = [CONTROL, ENCODER, DECODER];

impl OutgoingStreams {
    pub(super) fn new(config: &Config) -> Self {
        Self { streams: Vec::with_capacity(KINDS.len()), grease: config.grease }
    }

    /// Gives back the room for pending bytes beyond those that there are.
    pub(super) fn rest(&mut self) {
        for stream in &mut self.streams {
            stream.pending.shrink_to_fit();
        }
    }

    /// Opens streams that are not open yet and sends pending bytes.
    pub(super) fn process<T: Transport>(
        &mut self,
        quic: &mut T,
        config: &Config,
        goaway: Option<u64>,
    ) -> Result<(), Error> {
        while let Some(&kind) = KINDS.get(self.streams.len()) {
            let Some(id) = quic.open(Dir::Uni) else { break };
            quic.set_priority(id, Priority::CONTROL);
            let mut pending = Vec::new();
            put_varint(&mut pending, kind);
            if kind == CONTROL {
                put_preface(&mut pending, config);
                if let Some(id) = goaway {
                    frame::put_integer_frame(&mut pending, FrameType::GOAWAY, id);
                }
            }
            self.streams.push(Outgoing { id, pending, at: 0 });
        }
        for stream in &mut self.streams {
            stream.flush(quic)?;
        }
        if self.streams.len() == KINDS.len()
            && let Some(seed) = self.grease.take()
            && let Some(id) = quic.open(Dir::Uni)
        {
            send_reserved_stream(quic, id, seed);
        }
        Ok(())
    }

    /// Queues a frame on the control stream and returns that stream; `None` if there is no room, or
    /// the stream is not open yet.
    pub(super) fn push_control(&mut self, kind: FrameType, payload: &[u8]) -> Option<StreamId> {
        let control = self.streams.first_mut()?;
        let backlog = control.pending.len() - control.at;
        if backlog + payload.len() + frame::MAX_HEADER_SIZE > MAX_CONTROL_BACKLOG {
            return None;
        }
        frame::put_frame(&mut control.pending, kind, payload);
        Some(control.id)
    }

    /// The stream of a type, if it is open.
    fn of_kind(&mut self, kind: u64) -> Option<&mut Outgoing> {
        let place = match kind {
            CONTROL => 0,
            ENCODER => 1,
            _ => 2,
        };
        debug_assert_eq!(KINDS[place], kind);
        self.streams.get_mut(place)
    }

    /// Bytes that wait to be handed to the transport on the stream of a type; `None` if it is not
    /// open yet.
    pub(super) fn backlog(&mut self, kind: u64) -> Option<usize> {
        self.of_kind(kind).map(|stream| stream.pending.len() - stream.at)
    }

    /// Takes all of `bytes` and sends them on the stream of a type. If it is not open yet, they stay.
    pub(super) fn send<T: Transport>(
        &mut self,
        quic: &mut T,
        kind: u64,
        bytes: &mut Vec<u8>,
    ) -> Result<(), Error> {
        if bytes.is_empty() {
            return Ok(());
        }
        let Some(stream) = self.of_kind(kind) else { return Ok(()) };
        stream.pending.extend_from_slice(bytes);
        bytes.clear();
        if bytes.capacity() > MAX_KEPT {
            *bytes = Vec::new();
        }
        stream.flush(quic)
    }

    /// Whether the control stream is open.
    pub(super) fn is_open(&self) -> bool {
        !self.streams.is_empty()
    }

    /// Whether `id` is one of the streams that must stay open.
    pub(super) fn is_critical(&self, id: StreamId) -> bool {
        self.streams.iter().any(|stream| stream.id == id)
    }
}

/// Writes the beginning of the control stream.
fn put_preface(out: &mut Vec<u8>, config: &Config) {
    let setting = config.grease.map(|seed| (reserved(seed, 0), SplitMix64::nth(seed, 1) & 0x3fff));
    let mut payload = Vec::new();
    config.settings().encode(setting, &mut payload);
    frame::put_frame(out, FrameType::SETTINGS, &payload);
    if let Some(seed) = config.grease {
        let payload = SplitMix64::nth(seed, 2).to_be_bytes();
        frame::put_frame(out, FrameType(reserved(seed, 3)), &payload[..(seed % 8) as usize]);
    }
}

/// Sends a stream of a reserved type with arbitrary bytes, which need not arrive.
fn send_reserved_stream<T: Transport>(quic: &mut T, id: StreamId, seed: u64) {
    let mut bytes = Vec::new();
    put_varint(&mut bytes, reserved(seed, 4));
    bytes.extend_from_slice(&SplitMix64::nth(seed, 5).to_be_bytes());
    let _ = quic.write(id, &bytes);
    let _ = quic.finish(id);
}

/// A reserved code point, 0x1f * N + 0x21 (RFC 9114 section 7.2.8), of at most four bytes.
fn reserved(seed: u64, use_case: u64) -> u64 {
    0x1f * (SplitMix64::nth(seed, use_case) & 0xf_ffff) + 0x21
}

/// The identifier in a final GOAWAY of `side`: the first request not accepted, or at a client, no
/// push (RFC 9114 section 5.2).
pub(super) const fn final_goaway(side: Side, next_request: u64) -> u64 {
    match side {
        Side::Server => StreamId::new(Side::Client, Dir::Bi, next_request).0,
        Side::Client => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_code_points_are_reserved_and_short() {
        for seed in 0..1000 {
            for use_case in [0, 3, 4] {
                let code = reserved(seed, use_case);
                assert_eq!((code - 0x21) % 0x1f, 0);
                assert!(code < 1 << 30);
            }
        }
        assert_ne!(reserved(1, 0), reserved(2, 0));
    }
}
