//! The messages between the two ends of the bridge.
//!
//! Changes of the screen are *pieces*, each of which is a message of an ordered group (see the transport's
//! `groups`): a copy within the screen, drawings and [tiles](tile) of pixels, or a new size. [`Source`] makes them
//! and determines which pieces must come before which others, by geometry, or by fences between updates
//! ([`UpdateOrder`]); [`Painter`] paints them. All other data is in [`ToServer`] and [`ToViewer`] messages on
//! one stream in each direction.
//!
//! # A piece
//!
//! Numbers have seven bits in each byte, the lowest first; the highest bit says that more follow.
//!
//! ```text
//! Piece {
//!   Update (n),               number of the update that it is part of
//!   Fields (8),               what it has, from the lowest bit: superseded pieces, a size, a copy, drawings,
//!                             tiles; whether these are compressed; and whether there are several copies
//!   [Count (n),               at most 64
//!    Superseded (n) ...]      Count distances back to pieces that must not be painted any more
//!   [Size { Width (n), Height (n) }]          alone
//!   [Count (n)]               of copies, if there are several; at most 16
//!   [Copy { X (n), Y (n), Width (n), Height (n), To X (n), To Y (n) } ...]
//!   [Length (n)]              of the drawings, if there are tiles, too
//!   [Drawings (..)]           see the module `drawing`
//!   [Tiles (..)]              to the end; compressed by zstd without the magic number of its frames
//! }
//!
//! Tile { X (16), Y (16), Width - 1 (8), Height - 1 (8), Method (8), ... }    in network byte order
//! ```
//!
//! First the copies are made, then drawings and tiles are painted, which together have no more pixels than the screen.
//!
//! A tile is at most [`TILE`] pixels wide and high.

mod cells;
mod code;
mod control;
mod drawing;
pub(crate) mod fuzz;
mod order;
mod painter;
mod parts;
mod piece;
mod scroll;
mod source;
pub mod tile;

pub use cells::TILE;
pub use control::{ControlError, End, MAX_CONTROL, MAX_REASON, ToServer, ToViewer, VERSION};
pub use order::{UpdateOrder, WINDOW};
pub use painter::{Change, Painted, Painter};
pub use piece::{MAX_COPIES, MAX_PIECE, MAX_SUPERSEDED, PieceError};
pub use source::{Outgoing, Source};

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
