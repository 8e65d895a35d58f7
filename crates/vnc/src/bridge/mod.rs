//! The messages between the two ends of the bridge.
//!
//! Changes of the screen are *pieces*, each of which is a message of an ordered group (see the transport's
//! `groups`): some [tiles](tile) of pixels, a copy within the screen, or a new size. [`Source`] makes them
//! and determines which pieces must come before which others, by geometry, or by fences between updates
//! ([`UpdateOrder`]); [`Painter`] paints them. All other data is in [`ToServer`] and [`ToViewer`] messages on
//! one stream in each direction.
//!
//! # A piece
//!
//! Numbers are in network byte order.
//!
//! ```text
//! Piece {
//!   Update (32),              number of the update that it is part of
//!   Kind (8),                 0 tiles, 1 tiles compressed by zstd, 2 a copy, 3 a new size
//!   Count (8),                at most 64
//!   Superseded (16) ...       Count distances back to pieces that must not be painted any more
//!   ...                       0, 1: tiles to the end
//!                             2: x, y, width, height of the source, x, y of the target (16 bits each)
//!                             3: width, height (16 bits each)
//! }
//!
//! Tile { X (16), Y (16), Width - 1 (8), Height - 1 (8), Method (8), ... }
//! ```
//!
//! A tile is at most [`TILE`] pixels wide and high.

mod cells;
mod control;
pub(crate) mod fuzz;
mod order;
mod painter;
mod piece;
mod source;
pub mod tile;

pub use cells::TILE;
pub use control::{ControlError, End, MAX_CONTROL, MAX_REASON, ToServer, ToViewer, VERSION};
pub use order::{UpdateOrder, WINDOW};
pub use painter::{Change, Painted, Painter};
pub use piece::{MAX_PIECE, MAX_SUPERSEDED, PieceError};
pub use source::{MAX_COPIES, Outgoing, Source};

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
