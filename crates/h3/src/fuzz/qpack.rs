//! QPACK: bytes from a hostile peer, and an encoder and a decoder whose streams arrive in any order.

use std::collections::VecDeque;

use bytes::Bytes;
use sutura_proto::StreamId;

use crate::qpack::{Decoder, Encoder, FieldLimits, SectionError};
use crate::{Field, Fields};

const LIMITS: FieldLimits = FieldLimits { size: 4096, lines: 64 };

/// Gives a decoder the first part of `data` as encoder stream and the rest as a section, and an
/// encoder all of it as decoder stream. A decoded section survives a round trip.
///
/// The first byte chooses the capacity of the table, the second splits the rest.
pub fn qpack(data: &[u8]) {
    let [capacity, split, rest @ ..] = data else { return };
    let (instructions, section) = rest.split_at(usize::from(*split).min(rest.len()));
    let mut decoder = Decoder::new(u64::from(*capacity) * 16, 1);
    let valid = decoder.receive(instructions).is_ok();
    assert!(decoder.is_within_bounds());
    let section = Bytes::copy_from_slice(section);
    if valid && let Ok(fields) = decoder.section(StreamId(0), &section, LIMITS) {
        assert!(fields.size() <= LIMITS.size && fields.len() <= LIMITS.lines);
        let mut block = Vec::new();
        Encoder::default().section(StreamId(0), &fields, false, &mut block);
        let again = Decoder::new(0, 0).section(StreamId(0), &block.into(), LIMITS);
        assert_eq!(again, Ok(fields));
    }
    let mut encoder = Encoder::default();
    encoder.configure(u64::from(*capacity) * 16, 4096, 1);
    let mut block = Vec::new();
    encoder.section(StreamId(0), &Fields::new().with("a", "b"), true, &mut block);
    let _ = encoder.receive(rest);
}

/// A section that was sent and not decoded.
struct Sent {
    stream: StreamId,
    block: Bytes,
    fields: Fields,
}

/// An encoder, a decoder, and the bytes on their way between them.
struct Pair {
    encoder: Encoder,
    decoder: Decoder,
    instructions: VecDeque<u8>,
    feedback: VecDeque<u8>,
    sent: Vec<Sent>,
    /// The number of the stream in use; earlier streams were cancelled.
    next: u64,
}

/// Lets an encoder and a decoder work on sections, as `data` says, while their streams proceed at any pace
/// and streams are cancelled. Every section that arrives is decoded to the fields that were sent, and in the
/// end no reference is left.
pub fn qpack_pair(data: &[u8]) {
    let [capacity, blocked, operations @ ..] = data else { return };
    let (capacity, blocked) = (u64::from(*capacity) * 4, u64::from(*blocked % 4));
    let mut pair = Pair::new(capacity, blocked);
    for operation in operations.chunks_exact(2) {
        let [kind, choice] = *operation else { return };
        pair.step(kind, choice);
    }
    pair.finish();
}

impl Pair {
    fn new(capacity: u64, blocked: u64) -> Self {
        let mut encoder = Encoder::default();
        encoder.configure(capacity, 600, blocked);
        Self {
            encoder,
            decoder: Decoder::new(capacity, blocked),
            instructions: VecDeque::new(),
            feedback: VecDeque::new(),
            sent: Vec::new(),
            next: 0,
        }
    }

    fn step(&mut self, kind: u8, choice: u8) {
        match kind % 8 {
            0..=2 => self.send(choice),
            3 => self.deliver_instructions(usize::from(choice)),
            4 => self.deliver_section(usize::from(choice)),
            5 => self.deliver_feedback(usize::from(choice)),
            6 if choice < 64 => self.cancel(choice),
            _ => self.collect_feedback(),
        }
    }

    /// Sends a section of one to four lines.
    fn send(&mut self, choice: u8) {
        let stream = StreamId((self.next + u64::from(choice % 3)) * 4);
        let fields: Fields = (0..=choice >> 6).map(|n| field(choice.wrapping_mul(n + 1))).collect();
        let mut block = Vec::new();
        self.encoder.section(stream, &fields, !choice.is_multiple_of(5), &mut block);
        self.instructions.extend(self.encoder.instructions().drain(..));
        self.sent.push(Sent { stream, block: block.into(), fields });
    }

    fn deliver_instructions(&mut self, count: usize) {
        let count = count.min(self.instructions.len());
        let bytes: Vec<u8> = self.instructions.drain(..count).collect();
        assert_eq!(self.decoder.receive(&bytes), Ok(()));
        while let Some(stream) = self.decoder.unblocked() {
            let at = self.sent.iter().position(|sent| sent.stream == stream);
            assert!(at.is_some_and(|at| self.decode(at)), "unblocked in vain");
        }
    }

    /// Delivers one of the oldest sections of all streams.
    fn deliver_section(&mut self, choice: usize) {
        if self.sent.is_empty() {
            return;
        }
        let at = choice % self.sent.len();
        let stream = self.sent.get(at).map(|sent| sent.stream);
        let first = self.sent.iter().position(|sent| Some(sent.stream) == stream);
        self.decode(first.unwrap_or(at));
    }

    /// Whether the section could be decoded.
    fn decode(&mut self, at: usize) -> bool {
        let Some(Sent { stream, block, fields }) = self.sent.get(at) else { return false };
        match self.decoder.section(*stream, block, LIMITS) {
            Ok(decoded) => {
                assert_eq!(&decoded, fields);
                self.sent.remove(at);
                true
            }
            Err(error) => {
                assert_eq!(error, SectionError::Blocked);
                false
            }
        }
    }

    fn collect_feedback(&mut self) {
        self.feedback.extend(self.decoder.instructions().drain(..));
    }

    fn deliver_feedback(&mut self, count: usize) {
        let count = count.min(self.feedback.len());
        let bytes: Vec<u8> = self.feedback.drain(..count).collect();
        assert_eq!(self.encoder.receive(&bytes), Ok(()));
    }

    /// Cancels the stream in use, on which the encoder sends one more section.
    fn cancel(&mut self, choice: u8) {
        let stream = StreamId(self.next * 4);
        self.decoder.cancel(stream);
        self.collect_feedback();
        if choice.is_multiple_of(2) {
            self.deliver_feedback(usize::MAX);
        }
        self.send(choice / 3 * 3);
        self.sent.retain(|sent| sent.stream != stream);
        self.next += 1;
    }

    /// Delivers everything.
    fn finish(&mut self) {
        self.deliver_instructions(usize::MAX);
        while !self.sent.is_empty() {
            assert!(self.decode(0), "blocked though everything was inserted");
        }
        self.collect_feedback();
        self.deliver_feedback(usize::MAX);
        assert!(self.encoder.is_settled());
    }
}

/// One of 256 fields: few names, some of them in the static table, and values of several lengths.
fn field(choice: u8) -> Field {
    let names = ["x-a", "user-agent", "x-long-name-of-a-field", ":authority", ":path", "accept"];
    let name = names[usize::from(choice) % names.len()];
    let value = "v".repeat(usize::from(choice % 7) * usize::from(choice % 16));
    Field {
        sensitive: choice.is_multiple_of(11),
        ..Field::new(name, format!("{value}{}", choice % 4))
    }
}
