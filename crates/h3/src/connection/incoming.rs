//! The peer's unidirectional streams (RFC 9114 section 6.2, RFC 9204 section 4.2).

use sutura_proto::work;
use sutura_proto::{Dir, Side, StreamId};

use super::control::{ControlFrame, ControlReader, read_critical};
use crate::codec::VarintReader;
use crate::error::{Code, Error};
use crate::qpack::{Decoder, Encoder};
use crate::transport::{Read, ReadError, Transport};
use crate::webtransport::UNI_STREAM;

/// Most streams whose type has not arrived, or whose session if they belong to one. A further stream is accepted when
/// one of them has both.
pub const MAX_UNTYPED_STREAMS: usize = 32;

/// Bytes of a QPACK stream read at a time.
const SCRATCH: usize = 256;

/// Stream types.
pub(super) const CONTROL: u64 = 0x0;
const PUSH: u64 = 0x1;
pub(super) const ENCODER: u64 = 0x2;
pub(super) const DECODER: u64 = 0x3;

/// The kind of a stream.
#[derive(Debug)]
enum Kind {
    Untyped(VarintReader),
    /// A stream of a WebTransport session whose identifier has not arrived.
    Session(VarintReader),
    Control(Box<ControlReader>),
    Encoder,
    Decoder,
}

/// A stream of a WebTransport session, from where the application's bytes begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Arrival {
    pub(super) stream: StreamId,
    /// The session that the stream names.
    pub(super) session: u64,
}

/// A stream opened by the peer.
#[derive(Debug)]
struct Incoming {
    id: StreamId,
    kind: Kind,
    readable: bool,
}

/// The peer's streams that are in use.
#[derive(Debug)]
pub(super) struct IncomingStreams {
    side: Side,
    /// Whether there may be streams of WebTransport sessions.
    webtransport: bool,
    streams: Vec<Incoming>,
    /// Which of the three types have been seen; each may be opened once.
    seen: [bool; 3],
}

impl IncomingStreams {
    /// The streams that `side` receives.
    pub(super) const fn new(side: Side, webtransport: bool) -> Self {
        Self { side, webtransport, streams: Vec::new(), seen: [false; 3] }
    }

    /// Gives back the room for streams beyond those that there are.
    pub(super) fn rest(&mut self) {
        self.streams.shrink_to_fit();
    }

    /// Records that bytes arrived on a stream.
    pub(super) fn readable(&mut self, id: StreamId) {
        if let Some(stream) = self.streams.iter_mut().find(|stream| stream.id == id) {
            stream.readable = true;
        }
    }

    /// Accepts streams from the transport and reads their types. Those of WebTransport sessions are handed over.
    pub(super) fn accept<T: Transport>(
        &mut self,
        quic: &mut T,
        arrivals: &mut Vec<Arrival>,
    ) -> Result<(), Error> {
        self.type_streams(quic, arrivals)?;
        loop {
            let untyped =
                |stream: &&Incoming| matches!(stream.kind, Kind::Untyped(_) | Kind::Session(_));
            if self.streams.iter().filter(untyped).count() >= MAX_UNTYPED_STREAMS {
                return Ok(());
            }
            let Some(id) = quic.accept(Dir::Uni) else {
                return Ok(());
            };
            let kind = Kind::Untyped(VarintReader::default());
            self.streams.push(Incoming { id, kind, readable: true });
            self.type_streams(quic, arrivals)?;
        }
    }

    /// Reads the types of streams whose type is not known yet.
    fn type_streams<T: Transport>(
        &mut self,
        quic: &mut T,
        arrivals: &mut Vec<Arrival>,
    ) -> Result<(), Error> {
        let mut at = 0;
        while let Some(stream) = self.streams.get_mut(at) {
            at += 1;
            work::steps(1);
            let is_typed = matches!(stream.kind, Kind::Session(_));
            let (Kind::Untyped(reader) | Kind::Session(reader)) = &mut stream.kind else {
                continue;
            };
            if !std::mem::take(&mut stream.readable) {
                continue;
            }
            let id = stream.id;
            let kind = match read_type(quic, id, reader) {
                TypeRead::Blocked => continue,
                TypeRead::Gone => None,
                TypeRead::Type { kind: session, .. } if is_typed => {
                    arrivals.push(Arrival { stream: id, session });
                    None
                }
                TypeRead::Type { kind: UNI_STREAM, finished } if self.webtransport => {
                    (!finished).then(|| Kind::Session(VarintReader::default()))
                }
                TypeRead::Type { kind, finished } => {
                    let kind = self.admit(quic, id, kind)?;
                    if finished && kind.is_some() {
                        let reason = "critical stream closed";
                        return Err(Error::new(Code::CLOSED_CRITICAL_STREAM, reason));
                    }
                    kind
                }
            };
            at -= 1;
            match kind {
                Some(kind) => {
                    if let Some(stream) = self.streams.get_mut(at) {
                        (stream.kind, stream.readable) = (kind, true);
                    }
                }
                None => drop(self.streams.swap_remove(at)),
            }
        }
        Ok(())
    }

    /// The role of a stream of type `kind`; `None` if it is ignored.
    fn admit<T: Transport>(
        &mut self,
        quic: &mut T,
        id: StreamId,
        kind: u64,
    ) -> Result<Option<Kind>, Error> {
        let (slot, kind) = match kind {
            CONTROL => (0, Kind::Control(Box::new(ControlReader::new(self.side)))),
            ENCODER => (1, Kind::Encoder),
            DECODER => (2, Kind::Decoder),
            PUSH if self.side.is_server() => {
                return Err(Error::new(Code::STREAM_CREATION_ERROR, "push from a client"));
            }
            PUSH => return Err(Error::new(Code::ID_ERROR, "push beyond MAX_PUSH_ID")),
            _ => {
                quic.stop(id, Code::STREAM_CREATION_ERROR);
                return Ok(None);
            }
        };
        match self.seen.get_mut(slot) {
            Some(seen) if !*seen => {
                *seen = true;
                Ok(Some(kind))
            }
            _ => Err(Error::new(Code::STREAM_CREATION_ERROR, "second critical stream of a type")),
        }
    }

    /// Reads where data arrived, up to the next control frame.
    pub(super) fn next<T: Transport>(
        &mut self,
        quic: &mut T,
        encoder: &mut Encoder,
        decoder: &mut Decoder,
    ) -> Result<Option<ControlFrame>, Error> {
        for stream in self.streams.iter_mut().filter(|stream| stream.readable) {
            let id = stream.id;
            match &mut stream.kind {
                Kind::Untyped(_) | Kind::Session(_) => continue,
                Kind::Control(reader) => {
                    if let Some(frame) = reader.next(quic, id)? {
                        return Ok(Some(frame));
                    }
                }
                // The peer's encoder fills the table of our decoder, and its decoder acknowledges entries to
                // our encoder.
                Kind::Encoder => read_all(quic, id, |bytes| decoder.receive(bytes))?,
                Kind::Decoder => read_all(quic, id, |bytes| encoder.receive(bytes))?,
            }
            stream.readable = false;
        }
        Ok(None)
    }
}

enum TypeRead {
    Blocked,
    /// The stream ended or was reset before its type was complete, which is no error (RFC 9114
    /// section 6.2).
    Gone,
    Type {
        kind: u64,
        /// Whether nothing follows the type.
        finished: bool,
    },
}

fn read_type<T: Transport>(quic: &mut T, id: StreamId, reader: &mut VarintReader) -> TypeRead {
    loop {
        match quic.read(id, reader.spare()) {
            Ok(Read { bytes, finished }) => match reader.advance(bytes) {
                Some(kind) => return TypeRead::Type { kind, finished },
                None if finished => return TypeRead::Gone,
                None if bytes == 0 => return TypeRead::Blocked,
                None => {}
            },
            Err(ReadError::Blocked | ReadError::Closed) => return TypeRead::Blocked,
            Err(ReadError::Reset(_)) => return TypeRead::Gone,
        }
    }
}

fn read_all<T: Transport>(
    quic: &mut T,
    id: StreamId,
    mut receive: impl FnMut(&[u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut scratch = [0; SCRATCH];
    while let Some(n) = read_critical(quic, id, &mut scratch)? {
        receive(scratch.get(..n).unwrap_or_default())?;
    }
    Ok(())
}
