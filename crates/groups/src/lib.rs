//! Ordered groups: messages that are delivered in a partial order.
//!
//! A stream delivers in total order, and streams among each other in none. Between the two are data such
//! as the rectangles of a screen update: the rectangles of one update may be painted in any order, but the
//! rectangles of the next update come after them. An *ordered group* is a series of messages with *fences*
//! between them (Eghbal and Lu 2025, section 2.1): all messages before a fence are delivered before any
//! behind it, and between two fences each message is delivered once it is complete. A message may also name
//! messages that it comes [after](GroupMessage::after), which is the more general form.
//!
//! [`SendGroups`] and [`ReceiveGroups`] are layers on a [`Connection`](sutura_proto::Connection), one for each
//! direction, and need no extension of the transport: each message is a unidirectional stream that begins
//! with a header of five bytes or so (`docs/groups.md`). A peer that does not decode gets the
//! same streams without source symbols. While a connection receives groups, all unidirectional streams that
//! the peer opens belong to them.
//!
//! # Limits
//!
//! A receiver reads no more from streams while it holds [`MAX_HELD_BYTES`] or [`MAX_HELD`] messages that wait
//! for other messages, except for those other messages, nor while [`MAX_READY_BYTES`] wait for the
//! application. Unread data stays in the streams, where flow control bounds it. The other bounds are errors
//! ([`GroupError`]): [`MAX_MESSAGE`], [`MAX_GROUPS`], [`MAX_GAPS`] and [`MAX_AFTER`].

#![forbid(unsafe_code)]

#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod fuzz;
mod header;
mod order;
mod receive;
mod runs;
mod send;

pub use receive::{Delivered, GroupError, ReceiveGroups};
pub use send::{GroupMessage, SendGroupError, SendGroups};

/// Groups that may be open at once in each direction.
pub const MAX_GROUPS: usize = 64;
/// Messages that one may name to come after.
pub const MAX_AFTER: usize = 32;
/// Bytes of the largest message, without its header.
pub const MAX_MESSAGE: usize = 4 << 20;
/// Bytes of messages of a connection that are incomplete, or complete and not yet delivered.
pub const MAX_HELD_BYTES: usize = 16 << 20;
/// Complete messages of a connection that wait for other messages.
pub const MAX_HELD: usize = 16_384;
/// Bytes of messages that the application has not taken, and after which no more is read.
pub const MAX_READY_BYTES: usize = 4 << 20;
/// Runs of missing messages between delivered messages, in each group. A peer has no more runs than open
/// streams.
pub const MAX_GAPS: usize = 16_384;
/// The application error code with which the stream of a cancelled message is reset.
pub const CANCELLED: u64 = 0x5301;
/// The application error code with which a stream is stopped that breaks the rules of groups.
pub const INVALID: u64 = 0x5302;

/// The number of a group: 0, 1, 2, ... in the order in which the sender opened them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub u64);

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
