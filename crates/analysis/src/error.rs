//! Errors in reading a file, with their position.

use std::fmt;

use crate::limits::{
    MAX_DOCUMENT_BYTES, MAX_EVENTS, MAX_FILE_BYTES, MAX_FRAMES, MAX_RECORD_BYTES, MAX_STREAM_DATA,
    MAX_STREAMS, MAX_TRACES,
};

/// A position in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line, counted from 1.
    pub line: u64,
    /// The byte offset, counted from 0.
    pub offset: u64,
}

impl Position {
    /// The beginning of a file.
    pub const START: Self = Self { line: 1, offset: 0 };

    /// The position after `bytes`.
    pub(crate) fn after(self, bytes: &[u8]) -> Self {
        let lines = bytes.iter().filter(|b| **b == b'\n').count() as u64;
        Self { line: self.line + lines, offset: self.offset + bytes.len() as u64 }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, byte {}", self.line, self.offset)
    }
}

/// A file cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} ({position})")]
pub struct Error {
    /// The kind of the error.
    pub kind: ErrorKind,
    /// The place of the error.
    pub position: Position,
}

/// A fault in a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The file is empty.
    #[error("the file is empty")]
    Empty,
    /// The file is not JSON.
    #[error("not JSON: {0}")]
    Json(String),
    /// The file is JSON, but does not begin like qlog.
    #[error("not qlog: neither qlog_version nor file_schema is there")]
    NotQlog,
    /// A record or an event is longer than [`MAX_RECORD_BYTES`].
    #[error("a record is longer than {MAX_RECORD_BYTES} bytes")]
    RecordTooLong,
    /// A document is longer than [`MAX_DOCUMENT_BYTES`].
    #[error("a document is longer than {MAX_DOCUMENT_BYTES} bytes; use a sequence")]
    DocumentTooLong,
    /// A file is longer than [`MAX_FILE_BYTES`].
    #[error("a file is longer than {MAX_FILE_BYTES} bytes")]
    FileTooLong,
    /// The file has more than [`MAX_TRACES`] connections.
    #[error("more than {MAX_TRACES} connections in a file")]
    TooManyTraces,
    /// The file has more than [`MAX_EVENTS`] relevant events.
    #[error("more than {MAX_EVENTS} events of interest in a file")]
    TooManyEvents,
    /// The file has more than [`MAX_FRAMES`] STREAM frames and symbols.
    #[error("more than {MAX_FRAMES} STREAM frames and symbols in a file")]
    TooManyFrames,
    /// The file has more than [`MAX_STREAMS`] streams.
    #[error("more than {MAX_STREAMS} streams in a file")]
    TooManyStreams,
    /// The offsets of all streams together reach further than [`MAX_STREAM_DATA`].
    #[error("more than {MAX_STREAM_DATA} bytes of stream data in a file")]
    TooMuchData,
}

impl ErrorKind {
    pub(crate) fn at(self, position: Position) -> Error {
        Error { kind: self, position }
    }
}
