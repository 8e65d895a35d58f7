//! Reading qlog: JSON documents, JSON text sequences, and lines of JSON; draft-00 to 0.3, and the
//! current drafts' `file_schema`.

mod collect;
mod document;
mod event;
mod header;
mod json;
mod packet;
mod truncated;

#[cfg(test)]
mod tests;

use crate::error::{Error, ErrorKind, Position};
use crate::limits::{MAX_DOCUMENT_BYTES, MAX_FILE_BYTES, MAX_RECORD_BYTES};
use crate::trace::{Format, Trace};
use collect::Collector;
use header::Header;
use serde_json::Value;

/// Starts every record of a JSON text sequence (RFC 7464).
const RECORD_SEPARATOR: u8 = 0x1e;

/// Some editors and tools write this mark at the start of a file.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// The format of the file, as far as it is known.
#[derive(Debug)]
enum State {
    /// Not yet known.
    Start,
    /// A document; parsed once it is complete.
    Document,
    /// Records. The collector exists once the header has been read.
    Sequence { separator: u8, collector: Option<Box<Collector>> },
}

/// Reads a file incrementally. For a sequence, only the newest record is held in memory; a document
/// is held as a whole.
///
/// A malformed event does not make a file unreadable; [`Trace::malformed`] counts it. A truncated
/// file is read as far as it goes, and [`Trace::truncated`] is set. A file cannot be read if it is
/// not JSON, if it does not begin like qlog, or if it exceeds the [limits](crate::limits).
///
/// ```
/// let file = concat!(
///     "\u{1e}{\"qlog_version\":\"0.3\",\"qlog_format\":\"JSON-SEQ\",\"trace\":{}}\n",
///     "\u{1e}{\"time\":2,\"name\":\"recovery:packet_lost\",",
///     "\"data\":{\"header\":{\"packet_type\":\"1RTT\",\"packet_number\":7}}}\n",
/// );
/// let mut reader = sutura_analysis::Reader::new();
/// for part in file.as_bytes().chunks(10) {
///     reader.push(part)?;
/// }
/// assert_eq!(reader.finish()?[0].events.len(), 1);
/// # Ok::<(), sutura_analysis::Error>(())
/// ```
#[derive(Debug)]
pub struct Reader {
    state: State,
    /// Bytes not parsed yet.
    buffer: Vec<u8>,
    /// Bytes of the buffer already searched for a separator.
    searched: usize,
    /// The position of the buffer in the file.
    position: Position,
}

impl Default for Reader {
    fn default() -> Self {
        Self::new()
    }
}

impl Reader {
    /// A reader at the start of a file.
    pub const fn new() -> Self {
        Self { state: State::Start, buffer: Vec::new(), searched: 0, position: Position::START }
    }

    /// Takes the next bytes of the file, however many.
    ///
    /// # Errors
    /// The file cannot be read. The reader is of no further use.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), Error> {
        for part in bytes.chunks(MAX_RECORD_BYTES) {
            self.buffer.extend_from_slice(part);
            self.advance(false)?;
        }
        Ok(())
    }

    /// Ends the file and returns its traces.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn finish(mut self) -> Result<Vec<Trace>, Error> {
        self.advance(true)?;
        match self.state {
            State::Start => Err(ErrorKind::Empty.at(self.position)),
            State::Document => document::read(&self.buffer, self.position),
            State::Sequence { collector: None, .. } => Err(ErrorKind::NotQlog.at(self.position)),
            State::Sequence { collector: Some(collector), .. } => Ok(collector.finish()),
        }
    }

    fn advance(&mut self, end: bool) -> Result<(), Error> {
        if self.position.offset.saturating_add(self.buffer.len() as u64) > MAX_FILE_BYTES {
            return Err(ErrorKind::FileTooLong.at(self.position));
        }
        if matches!(self.state, State::Start) {
            self.recognize(end)?;
        }
        match self.state {
            State::Document if self.buffer.len() > MAX_DOCUMENT_BYTES => {
                Err(ErrorKind::DocumentTooLong.at(self.position))
            }
            State::Start | State::Document => Ok(()),
            State::Sequence { .. } => self.read_records(end),
        }
    }

    /// Detects the format of the file.
    fn recognize(&mut self, end: bool) -> Result<(), Error> {
        let mark = BYTE_ORDER_MARK;
        let at_start = self.position.offset == 0;
        if at_start && !end && self.buffer.len() < mark.len() && mark.starts_with(&self.buffer) {
            return Ok(());
        }
        let skipped = if at_start && self.buffer.starts_with(mark) { mark.len() } else { 0 };
        let blank = self.buffer.iter().skip(skipped).take_while(|b| b.is_ascii_whitespace());
        self.discard(skipped + blank.count());
        let Some(first) = self.buffer.first() else { return Ok(()) };
        if *first == RECORD_SEPARATOR {
            self.discard(1);
            self.state = State::Sequence { separator: RECORD_SEPARATOR, collector: None };
            return Ok(());
        }
        let line = self.buffer.iter().skip(self.searched).position(|b| *b == b'\n');
        let Some(line) = line.map(|n| self.searched + n) else {
            self.searched = self.buffer.len();
            if end || self.buffer.len() > MAX_RECORD_BYTES {
                self.state = State::Document;
            }
            return Ok(());
        };
        self.searched = 0;
        let whole = serde_json::from_slice::<Value>(self.buffer.get(..line).unwrap_or_default());
        self.state = match whole {
            // A single line with all traces is a document; a line with a header is not.
            Ok(value) if value.get("traces").is_none() => {
                State::Sequence { separator: b'\n', collector: None }
            }
            _ => State::Document,
        };
        Ok(())
    }

    fn read_records(&mut self, end: bool) -> Result<(), Error> {
        let State::Sequence { separator, collector } = &mut self.state else { return Ok(()) };
        let mut start = 0;
        let mut searched = self.searched;
        let mut position = self.position;
        loop {
            let rest = self.buffer.get(searched..).unwrap_or_default();
            let Some(found) = rest.iter().position(|b| b == separator) else { break };
            let record = self.buffer.get(start..searched + found).unwrap_or_default();
            read_record(record, position, *separator, collector, false)?;
            let next = searched + found + 1;
            position = position.after(self.buffer.get(start..next).unwrap_or_default());
            (start, searched) = (next, next);
        }
        if end {
            let record = self.buffer.get(start..).unwrap_or_default();
            read_record(record, position, *separator, collector, true)?;
        }
        self.discard(start);
        self.searched = self.buffer.len();
        if self.buffer.len() > MAX_RECORD_BYTES {
            return Err(ErrorKind::RecordTooLong.at(self.position));
        }
        Ok(())
    }

    fn discard(&mut self, count: usize) {
        self.position = self.position.after(self.buffer.get(..count).unwrap_or_default());
        self.buffer.drain(..count.min(self.buffer.len()));
        self.searched = self.searched.saturating_sub(count);
    }
}

/// Reads the header or an event.
fn read_record(
    record: &[u8],
    start: Position,
    separator: u8,
    collector: &mut Option<Box<Collector>>,
    last: bool,
) -> Result<(), Error> {
    let blank = record.iter().take_while(|b| b.is_ascii_whitespace()).count();
    let position = start.after(record.get(..blank).unwrap_or_default());
    let record = record.trim_ascii();
    if record.is_empty() {
        return Ok(());
    }
    if record.len() > MAX_RECORD_BYTES {
        return Err(ErrorKind::RecordTooLong.at(position));
    }
    let value = serde_json::from_slice::<Value>(record);
    match (value, collector) {
        (Ok(value), Some(collector)) => collector.event(value, position),
        (Ok(value), none) => {
            let format = match separator {
                RECORD_SEPARATOR => Format::JsonSeq,
                _ => Format::Lines,
            };
            let mut header = Header::of_file(&value).map_err(|kind| kind.at(position))?;
            header.format = format;
            if let Some(trace) = value.get("trace") {
                header.read_trace(trace);
            }
            *none = Some(Box::new(Collector::new(header)));
            Ok(())
        }
        (Err(error), Some(collector)) => {
            collector.broken(position, last && error.is_eof());
            Ok(())
        }
        (Err(error), None) => Err(json::error(&error, position)),
    }
}

/// Reads a whole file.
///
/// # Errors
/// The file cannot be read; see [`Reader`].
pub fn parse(file: &[u8]) -> Result<Vec<Trace>, Error> {
    let mut reader = Reader::new();
    reader.push(file)?;
    reader.finish()
}
