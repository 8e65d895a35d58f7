//! The encoder of a connection: writes field sections (RFC 9204 section 4.5), decides which fields go into
//! the peer's table, and reads the peer's decoder stream (section 4.4).

use std::collections::VecDeque;

use bytes::Bytes;
use sutura_proto::StreamId;

use super::instruction::{DecoderInstruction, DecoderStreamReader};
use super::integer;
use super::outstanding::{Outstanding, Section};
use super::prefix::Prefix;
use super::static_table::{self, Match};
use super::string::put_literal;
use super::table::{DynamicTable, Entry, entry_size};
use crate::error::{Code, Error};
use crate::fields::Field;

/// Insert with name reference into the static table (section 4.3.2).
const INSERT_NAME_STATIC: u8 = 0b1100_0000;
const INSERT_NAME_DYNAMIC: u8 = 0b1000_0000;
/// Insert with literal name (section 4.3.3).
const INSERT_LITERAL: u8 = 0b0100_0000;
/// Set Dynamic Table Capacity (section 4.3.1).
const SET_CAPACITY: u8 = 0b0010_0000;
/// Duplicate (section 4.3.4).
const DUPLICATE: u8 = 0b0000_0000;

/// Indexed field line (section 4.5.2).
const INDEXED_STATIC: u8 = 0b1100_0000;
const INDEXED_DYNAMIC: u8 = 0b1000_0000;
/// Indexed field line with post-Base index (section 4.5.3).
const INDEXED_POST_BASE: u8 = 0b0001_0000;
/// Literal field line with name reference (section 4.5.4).
const NAME_STATIC: u8 = 0b0101_0000;
const NAME_DYNAMIC: u8 = 0b0100_0000;
const NAME_NEVER: u8 = 0b0010_0000;
/// Literal field line with literal name (section 4.5.6).
const LITERAL_NAME: u8 = 0b0010_0000;
const LITERAL_NAME_NEVER: u8 = 0b0001_0000;

/// Names whose values seldom repeat, or are so secret that the length of a compressed section must
/// not tell whether a guess was right (section 7.1.3). Their fields are not inserted.
const NOT_INSERTED: [&[u8]; 15] = [
    b":path",
    b"age",
    b"authorization",
    b"content-length",
    b"content-range",
    b"date",
    b"etag",
    b"expires",
    b"if-modified-since",
    b"if-none-match",
    b"last-modified",
    b"location",
    b"proxy-authorization",
    b"range",
    b"set-cookie",
];

/// Bytes of memory that are kept for the lines of the next section.
const MAX_KEPT: usize = 512;

/// Most cancelled streams that are remembered.
const MAX_CANCELLED: usize = 64;

/// How a line refers to the dynamic table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    /// The entry with this absolute index equals the line.
    Line(u64),
    /// The entry with this absolute index has the line's name.
    Name(u64),
    None,
}

/// Encodes the field sections of a connection. Without [`Self::configure`] it refers to the static
/// table only.
#[derive(Debug, Default)]
pub(crate) struct Encoder {
    table: DynamicTable,
    /// The capacity that the peer's decoder announced, in bytes.
    max_capacity: u64,
    /// How many streams the peer lets wait for its table.
    max_blocked: u64,
    /// The Known Received Count (section 2.1.4).
    known: u64,
    outstanding: Outstanding,
    /// The streams that the peer cancelled last, to which sections may still be under way.
    cancelled: VecDeque<StreamId>,
    decoder_stream: DecoderStreamReader,
    /// Instructions that are to be sent.
    pending: Vec<u8>,
    /// Memory for the lines of the next section.
    lines: Vec<u8>,
}

impl Encoder {
    /// Begins to use the peer's table: of the `max_capacity` bytes that it announced at most
    /// `wanted`, with at most `max_blocked` streams that wait for it.
    pub(crate) fn configure(&mut self, max_capacity: u64, wanted: u64, max_blocked: u64) {
        let capacity = wanted.min(max_capacity);
        (self.max_capacity, self.max_blocked) = (max_capacity, max_blocked);
        if capacity > 0 {
            self.table.set_capacity(capacity);
            integer::encode(&mut self.pending, SET_CAPACITY, 5, capacity);
        }
    }

    /// Gives back the memory that is kept for the next section.
    pub(crate) fn rest(&mut self) {
        self.table.rest();
        self.cancelled.shrink_to_fit();
        self.pending.shrink_to_fit();
        self.lines = Vec::new();
    }

    /// The instructions to send on this end's encoder stream, ahead of the section that was encoded. Whoever
    /// sends them takes them out.
    pub(crate) fn instructions(&mut self) -> &mut Vec<u8> {
        &mut self.pending
    }

    /// Processes the next bytes of the peer's decoder stream.
    ///
    /// # Errors
    /// `QPACK_DECODER_STREAM_ERROR`.
    pub(crate) fn receive(&mut self, bytes: &[u8]) -> Result<(), Error> {
        for &byte in bytes {
            if let Some(instruction) = self.decoder_stream.push(byte)? {
                self.follow(instruction)
                    .map_err(|reason| Error::new(Code::QPACK_DECODER_STREAM_ERROR, reason))?;
            }
        }
        Ok(())
    }

    fn follow(&mut self, instruction: DecoderInstruction) -> Result<(), &'static str> {
        match instruction {
            DecoderInstruction::Acknowledge(stream) => {
                let section = self.outstanding.acknowledge(StreamId(stream));
                let section = section.ok_or("Section Acknowledgment without a reference")?;
                self.known = self.known.max(section.required);
            }
            // The stream may hold no references; its receiver cannot know.
            DecoderInstruction::Cancel(stream) => self.cancel(StreamId(stream)),
            DecoderInstruction::Increment(0) => return Err("Insert Count Increment of zero"),
            DecoderInstruction::Increment(count) => {
                let known = self.known.checked_add(count);
                let known = known.filter(|known| *known <= self.table.inserted());
                self.known = known.ok_or("Insert Count Increment beyond what was inserted")?;
            }
        }
        Ok(())
    }

    /// Forgets the references of a stream and lets it make no more, as nobody would acknowledge them.
    fn cancel(&mut self, stream: StreamId) {
        self.outstanding.cancel(stream);
        if self.cancelled.len() == MAX_CANCELLED {
            self.cancelled.pop_front();
        }
        self.cancelled.push_back(stream);
    }

    /// Whether the peer has acknowledged all sections that refer to the table.
    #[cfg(feature = "testing")]
    pub(crate) fn is_settled(&self) -> bool {
        self.outstanding.oldest().is_none()
    }

    /// Appends an encoded section of the message on `stream`. `insert`: whether instructions for the
    /// peer's table can be sent now; the [instructions](Self::instructions) go first.
    pub(crate) fn section<'a>(
        &mut self,
        stream: StreamId,
        fields: impl IntoIterator<Item = &'a Field>,
        insert: bool,
        out: &mut Vec<u8>,
    ) {
        let refer = self.outstanding.has_room() && !self.cancelled.contains(&stream);
        let mut lines = std::mem::take(&mut self.lines);
        lines.clear();
        let mut writer = SectionWriter {
            insert,
            refer,
            may_block: self.outstanding.may_block(stream, self.known, self.max_blocked),
            base: self.table.inserted(),
            section: Section::default(),
            lines,
            encoder: self,
        };
        for field in fields {
            writer.line(field);
        }
        let SectionWriter { base, section, lines, .. } = writer;
        // Without references any Base is valid, and zero has the shortest encoding.
        let base = if section.required > 0 { base } else { 0 };
        Prefix { required: section.required, base }.encode(self.max_capacity, out);
        out.extend_from_slice(&lines);
        if lines.capacity() <= MAX_KEPT {
            self.lines = lines;
        }
        self.outstanding.insert(stream, section, self.known);
    }

    /// The best reference to an entry of the dynamic table that `usable` permits.
    fn find(&self, field: &Field, usable: impl Fn(u64) -> bool) -> Found {
        let mut found = Found::None;
        for (index, entry) in self.table.newest_first() {
            if entry.name == field.name && usable(index) {
                if entry.value == field.value {
                    return Found::Line(index);
                }
                if found == Found::None {
                    found = Found::Name(index);
                }
            }
        }
        found
    }

    /// Whether an entry will soon be in the way of new ones: it is within the oldest quarter of a full table.
    fn is_draining(&self, index: u64) -> bool {
        self.table.room_before(index + 1) <= self.table.capacity() / 4
    }

    /// Whether an entry of `size` bytes can be inserted without evicting an entry that the peer may still
    /// have to look up, or has not acknowledged (section 2.1.1). References to entries from `referenced` on
    /// are being written.
    fn has_room(&self, size: u64, referenced: u64) -> bool {
        if size <= self.table.room() {
            return true;
        }
        let oldest = self.outstanding.oldest().unwrap_or(u64::MAX).min(referenced);
        size <= self.table.room_before(oldest.min(self.known))
    }
}

/// Writes one section.
struct SectionWriter<'a> {
    encoder: &'a mut Encoder,
    /// Whether the table may be changed.
    insert: bool,
    /// Whether the section may use the table at all.
    refer: bool,
    /// Whether the section may refer to entries of which the peer's decoder may not know yet.
    may_block: bool,
    base: u64,
    section: Section,
    lines: Vec<u8>,
}

impl SectionWriter<'_> {
    fn line(&mut self, field: &Field) {
        let in_static = static_table::find(&field.name, &field.value);
        if let (Match::Line(index), false) = (in_static, field.sensitive) {
            return integer::encode(&mut self.lines, INDEXED_STATIC, 6, index);
        }
        let found = if self.refer { self.find(field, in_static) } else { Found::None };
        match found {
            Found::Line(index) => self.indexed(index),
            Found::Name(_) | Found::None => match (in_static, found) {
                (Match::Line(index) | Match::Name(index), _) => {
                    let never = if field.sensitive { NAME_NEVER } else { 0 };
                    integer::encode(&mut self.lines, NAME_STATIC | never, 4, index);
                    put_literal(&mut self.lines, 0, 7, &field.value);
                }
                (Match::None, Found::Name(index)) if index < self.base => {
                    self.section.refer(index);
                    integer::encode(&mut self.lines, NAME_DYNAMIC, 4, self.base - index - 1);
                    put_literal(&mut self.lines, 0, 7, &field.value);
                }
                (Match::None, _) => {
                    let never = if field.sensitive { LITERAL_NAME_NEVER } else { 0 };
                    put_literal(&mut self.lines, LITERAL_NAME | never, 3, &field.name);
                    put_literal(&mut self.lines, 0, 7, &field.value);
                }
            },
        }
    }

    fn indexed(&mut self, index: u64) {
        self.section.refer(index);
        match index.checked_sub(self.base) {
            None => {
                integer::encode(&mut self.lines, INDEXED_DYNAMIC, 6, self.base - index - 1);
            }
            Some(index) => integer::encode(&mut self.lines, INDEXED_POST_BASE, 4, index),
        }
    }

    /// Searches the table for a line, and inserts the line if that is worth it.
    fn find(&mut self, field: &Field, in_static: Match) -> Found {
        // No entry of the table has a name of the second kind.
        if field.sensitive || NOT_INSERTED.contains(&field.name.as_ref()) {
            return Found::None;
        }
        match self.encoder.find(field, |_| true) {
            Found::Line(index) if self.encoder.is_draining(index) => {
                if let Some(duplicate) = self.duplicate(index) {
                    return self.usable(field, Found::Line(duplicate));
                }
                self.usable(field, Found::Line(index))
            }
            Found::Line(index) => self.usable(field, Found::Line(index)),
            found @ (Found::Name(_) | Found::None) => {
                let found = self.add(field, in_static, found).map_or(found, Found::Line);
                self.usable(field, found)
            }
        }
    }

    /// `found`, or a reference that the section may use instead of it.
    fn usable(&self, field: &Field, found: Found) -> Found {
        let known = self.encoder.known;
        match found {
            Found::Line(index) | Found::Name(index) if !self.may_block && index >= known => {
                self.encoder.find(field, |index| index < known)
            }
            Found::Line(_) | Found::Name(_) | Found::None => found,
        }
    }

    fn has_room(&self, size: u64) -> bool {
        self.insert && self.encoder.has_room(size, self.section.oldest)
    }

    /// Inserts a copy of an entry, so that the old one can be evicted. Returns its index.
    fn duplicate(&mut self, index: u64) -> Option<u64> {
        let entry = self.encoder.table.get(index).filter(|entry| self.has_room(entry.size()))?;
        let entry = entry.clone();
        let relative = self.encoder.table.inserted() - index - 1;
        self.encoder.table.insert(entry).ok()?;
        integer::encode(&mut self.encoder.pending, DUPLICATE, 5, relative);
        Some(self.encoder.table.inserted() - 1)
    }

    /// Inserts a line, if other sections may use it too. Returns its index.
    fn add(&mut self, field: &Field, in_static: Match, found: Found) -> Option<u64> {
        let size = entry_size(&field.name, &field.value);
        if size > self.encoder.table.capacity() / 2 || !self.has_room(size) {
            return None;
        }
        let Encoder { table, pending, .. } = &mut *self.encoder;
        // Copies, so that a small value does not keep a large buffer alive.
        let name = match (in_static, found) {
            (Match::Line(index) | Match::Name(index), _) => {
                integer::encode(pending, INSERT_NAME_STATIC, 6, index);
                Bytes::from_static(static_table::get(index)?.0.as_bytes())
            }
            (Match::None, Found::Line(index) | Found::Name(index)) => {
                integer::encode(pending, INSERT_NAME_DYNAMIC, 6, table.inserted() - index - 1);
                table.get(index)?.name.clone()
            }
            (Match::None, Found::None) => {
                put_literal(pending, INSERT_LITERAL, 5, &field.name);
                Bytes::copy_from_slice(&field.name)
            }
        };
        put_literal(pending, 0, 7, &field.value);
        let value = Bytes::copy_from_slice(&field.value);
        table.insert(Entry { name, value }).ok()?;
        Some(table.inserted() - 1)
    }
}
