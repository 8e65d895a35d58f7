//! Limits on the memory that a file can take. Exceeding a limit is an error when reading; when
//! drawing, the excess is left out and the figure says so.

/// Bytes of one record of a sequence, of one event of a document, and of a header.
pub const MAX_RECORD_BYTES: usize = 1 << 20;

/// Bytes of a document that is not a sequence. It is held in memory while it is read.
pub const MAX_DOCUMENT_BYTES: usize = 512 << 20;

/// Bytes of a file, of any kind.
pub const MAX_FILE_BYTES: u64 = 16 << 30;

/// Connections in one file.
pub const MAX_TRACES: usize = 64;

/// Events kept of one file. Events that no analysis uses are not kept and do not count.
pub const MAX_EVENTS: usize = 2_000_000;

/// STREAM frames and symbols kept of one file.
pub const MAX_FRAMES: usize = 4_000_000;

/// Streams of all connections of one file together.
pub const MAX_STREAMS: usize = 1 << 18;

/// Bytes of stream data: the sum of the highest offsets of all streams of one file. It is the most
/// that flow control can allow a connection (RFC 9000, section 4.1).
pub const MAX_STREAM_DATA: u64 = 1 << 62;

/// Bytes of a STREAM frame: no UDP datagram is longer. Longer frames are ignored.
pub const MAX_FRAME_BYTES: u64 = 65_535;

/// Bytes of any text kept from a file, such as a path. Longer text is truncated.
pub const MAX_TEXT_BYTES: usize = 1024;

/// STREAM frames drawn in a multiplexing graph.
pub const MAX_DRAWN_FRAMES: usize = 30_000;

/// Streams with a row of their own in a multiplexing graph.
pub const MAX_DRAWN_LANES: usize = 64;

/// Streams drawn in a waterfall.
pub const MAX_DRAWN_BARS: usize = 500;
