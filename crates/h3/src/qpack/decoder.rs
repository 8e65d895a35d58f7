//! The decoder of a connection: the table that the peer's encoder fills, the sections that wait for
//! it, and this end's decoder stream (RFC 9204 sections 2.2 and 4.4).

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use sutura_proto::StreamId;

use super::instruction::{EncoderInstruction, InstructionReader};
use super::integer;
use super::section::{FieldLimits, SectionError, SectionReader};
use super::table::{DynamicTable, Entry};
use crate::error::{Code, Error};
use crate::fields::Fields;

/// Section Acknowledgment (section 4.4.1).
const SECTION_ACKNOWLEDGMENT: u8 = 0b1000_0000;
/// Stream Cancellation (section 4.4.2).
const STREAM_CANCELLATION: u8 = 0b0100_0000;
/// Insert Count Increment (section 4.4.3).
const INSERT_COUNT_INCREMENT: u8 = 0b0000_0000;

/// The streams whose section waits for the table.
#[derive(Debug, Default)]
struct Blocked {
    /// The insert count that each needs.
    streams: BTreeMap<StreamId, u64>,
    /// The same, by insert count.
    required: BTreeSet<(u64, StreamId)>,
}

impl Blocked {
    fn insert(&mut self, stream: StreamId, required: u64) {
        self.remove(stream);
        self.streams.insert(stream, required);
        self.required.insert((required, stream));
    }

    fn remove(&mut self, stream: StreamId) {
        if let Some(required) = self.streams.remove(&stream) {
            self.required.remove(&(required, stream));
        }
    }

    /// A stream for which `inserted` entries suffice.
    fn first(&self, inserted: u64) -> Option<StreamId> {
        let first = self.required.first().filter(|(required, _)| *required <= inserted);
        first.map(|(_, stream)| *stream)
    }

    fn len(&self) -> u64 {
        self.streams.len() as u64
    }
}

/// Decodes the field sections of a connection.
#[derive(Debug)]
pub(crate) struct Decoder {
    table: DynamicTable,
    /// The capacity that was announced, in bytes.
    max_capacity: u64,
    /// How many streams may wait for the table.
    max_blocked: u64,
    /// Only once there are any.
    blocked: Option<Box<Blocked>>,
    encoder_stream: InstructionReader,
    /// The insert count of which the peer's encoder has been told.
    known: u64,
    /// Instructions that are to be sent.
    pending: Vec<u8>,
    /// Memory for decoding strings.
    scratch: Vec<u8>,
}

impl Decoder {
    /// A decoder that announces a table of `max_capacity` bytes and lets `max_blocked` streams wait
    /// for it.
    pub(crate) fn new(max_capacity: u64, max_blocked: u64) -> Self {
        Self {
            table: DynamicTable::default(),
            max_capacity,
            max_blocked,
            blocked: None,
            encoder_stream: InstructionReader::new(max_capacity),
            known: 0,
            pending: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// Gives back the memory that is kept for the next section.
    pub(crate) fn rest(&mut self) {
        self.table.rest();
        self.pending.shrink_to_fit();
        self.scratch = Vec::new();
    }

    /// Processes the next bytes of the peer's encoder stream.
    ///
    /// # Errors
    /// `QPACK_ENCODER_STREAM_ERROR`.
    pub(crate) fn receive(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.encoder_stream.push(bytes);
        while let Some(instruction) = self.encoder_stream.next(&mut self.scratch)? {
            self.follow(instruction)
                .map_err(|reason| Error::new(Code::QPACK_ENCODER_STREAM_ERROR, reason))?;
        }
        Ok(())
    }

    /// Carries out an instruction (section 4.3).
    fn follow(&mut self, instruction: EncoderInstruction) -> Result<(), &'static str> {
        const MISSING: &str = "no such entry in the dynamic table";
        let entry = match instruction {
            EncoderInstruction::SetCapacity(capacity) if capacity > self.max_capacity => {
                return Err("dynamic table capacity above the limit");
            }
            EncoderInstruction::SetCapacity(capacity) => {
                self.table.set_capacity(capacity);
                return Ok(());
            }
            EncoderInstruction::Duplicate(index) => self.newest(index).ok_or(MISSING)?.clone(),
            EncoderInstruction::InsertNamed { index, value } => {
                let name = self.newest(index).ok_or(MISSING)?.name.clone();
                Entry { name, value }
            }
            EncoderInstruction::Insert { name, value } => Entry { name, value },
        };
        self.table.insert(entry).map_err(|_| "entry larger than the dynamic table")
    }

    /// The entry with an index relative to the newest one (section 3.2.5).
    fn newest(&self, index: u64) -> Option<&Entry> {
        self.table.get(self.table.inserted().checked_sub(index)?.checked_sub(1)?)
    }

    /// Decodes a section of the message on `stream`. A section that is `Blocked` is to be offered again when
    /// [`Self::unblocked`] names the stream.
    pub(crate) fn section(
        &mut self,
        stream: StreamId,
        block: &Bytes,
        limits: FieldLimits,
    ) -> Result<Fields, SectionError> {
        let scratch = &mut self.scratch;
        let reader = SectionReader::new(block, &self.table, self.max_capacity, scratch)?;
        let required = reader.required();
        if required > self.table.inserted() {
            let blocked = self.blocked.get_or_insert_default();
            blocked.insert(stream, required);
            if blocked.len() > self.max_blocked {
                return Err(SectionError::Malformed("too many blocked streams"));
            }
            return Err(SectionError::Blocked);
        }
        if let Some(blocked) = &mut self.blocked {
            blocked.remove(stream);
        }
        let fields = reader.lines(limits)?;
        if required > 0 {
            integer::encode(&mut self.pending, SECTION_ACKNOWLEDGMENT, 7, stream.0);
            self.known = self.known.max(required);
        }
        Ok(fields)
    }

    /// A stream whose section need not wait any more. Each is named once.
    pub(crate) fn unblocked(&mut self) -> Option<StreamId> {
        let inserted = self.table.inserted();
        let blocked = self.blocked.as_mut()?;
        let stream = blocked.first(inserted)?;
        blocked.remove(stream);
        Some(stream)
    }

    /// The rest of the message on `stream` will not be read (section 2.2.2.2).
    pub(crate) fn cancel(&mut self, stream: StreamId) {
        if let Some(blocked) = &mut self.blocked {
            blocked.remove(stream);
        }
        // Without a table there are no references to release.
        if self.max_capacity > 0 {
            integer::encode(&mut self.pending, STREAM_CANCELLATION, 6, stream.0);
        }
    }

    /// Whether it holds no more than it announced.
    #[cfg(feature = "testing")]
    pub(crate) fn is_within_bounds(&self) -> bool {
        let blocked = self.blocked.as_ref().map_or(0, |blocked| blocked.len());
        self.table.size() <= self.max_capacity && blocked <= self.max_blocked
    }

    /// Bytes that [`Self::instructions`] has at least.
    pub(crate) fn backlog(&self) -> usize {
        self.pending.len()
    }

    /// The instructions to send on this end's decoder stream. Whoever sends them takes them out.
    pub(crate) fn instructions(&mut self) -> &mut Vec<u8> {
        let news = self.table.inserted() - self.known;
        if news > 0 {
            integer::encode(&mut self.pending, INSERT_COUNT_INCREMENT, 6, news);
            self.known = self.table.inserted();
        }
        &mut self.pending
    }
}
