//! Analyses qlog files: how a connection's streams shared it.
//!
//! [`Reader`] turns the bytes of a file, written by this project or by other stacks, into
//! [`Trace`]s. All other functions are pure functions of a trace: [`arrivals()`] classifies each STREAM frame
//! (new, future, duplicate, retransmitted, reordered, recovered), [`multiplexing()`] shows how streams took
//! turns, [`bundling()`] how their frames shared packets, [`stream_table()`] summarises each stream,
//! [`head_of_line_blocking()`] computes how much a single ordered byte stream would have held back,
//! [`byte_index()`] how early the bytes arrived. [`text`] and [`figure`] present the results.
//!
//! The crate also has the tools for any experiment or benchmark: [`statistics`], [`table`],
//! [`figure`](figure::Chart) and [`report`].
//!
//! Files are untrusted: nothing in them causes a panic, and [`limits`] bounds the memory that they
//! can take.
//!
//! ```
//! let file = concat!(
//!     "\u{1e}{\"qlog_version\":\"0.3\",\"qlog_format\":\"JSON-SEQ\",",
//!     "\"trace\":{\"vantage_point\":{\"type\":\"client\"}}}\n",
//!     "\u{1e}{\"time\":2,\"name\":\"transport:packet_received\",\"data\":{\"header\":",
//!     "{\"packet_type\":\"1RTT\",\"packet_number\":7},\"frames\":[{\"frame_type\":\"stream\",",
//!     "\"stream_id\":0,\"offset\":0,\"length\":1000,\"fin\":true}]}}\n",
//! );
//! let traces = sutura_analysis::parse(file.as_bytes())?;
//! let streams = sutura_analysis::stream_table(&traces[0], sutura_analysis::Direction::Received);
//! assert_eq!(streams[0].bytes, 1000);
//! # Ok::<(), sutura_analysis::Error>(())
//! ```
#![forbid(unsafe_code)]

mod arrivals;
mod blocking;
mod bundling;
mod byte_index;
mod coverage;
mod error;
pub mod figure;
pub mod fuzz;
pub mod interval;
pub mod limits;
mod millis;
mod multiplexing;
mod overview;
mod read;
mod recovered;
pub mod report;
pub mod statistics;
mod streams;
pub mod table;
pub mod text;
mod trace;

#[cfg(test)]
mod build;

pub use arrivals::{Arrival, Class, Direction, arrivals};
pub use blocking::{Blocking, Held, head_of_line_blocking, sent_frames};
pub use bundling::{Bundling, bundling};
pub use byte_index::{ByteIndex, Index, SAMPLING_INTERVAL, StreamIndex, byte_index, sampled_index};
pub use error::{Error, ErrorKind, Position};
pub use multiplexing::{Multiplexing, multiplexing};
pub use overview::{MAX_POLICIES, Overview, PacketCounts, SymbolCounts, overview};
pub use read::{Reader, parse};
pub use recovered::resolve_recovered;
pub use streams::{StreamSummary, stream_table};
pub use trace::{
    Event, EventKind, Format, LossEstimate, Packet, Redundancy, Space, StreamFrame, Symbol, Trace,
    Vantage,
};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
