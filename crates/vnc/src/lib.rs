//! The sans-IO parts of a bridge for remote desktops over lossy paths.
//!
//! A remote desktop stalls when a packet is lost, because its protocol, RFB (RFC 6143), needs every rectangle
//! in the order in which it was sent. Most rectangles do not need that: rectangles of different places of the
//! screen can be painted in any order (Eghbal and Lu 2025). The bridge has a [`Framebuffer`] at either end.
//! Beside the RFB server, [`rfb::Decoder`] paints the server's updates, which come in cheap encodings;
//! [`bridge::Source`] finds the parts of the screen that the other end does not show yet and makes *pieces*
//! of them that do not depend on each other's bytes, each with the pieces that it must come after. Beside the
//! viewer, [`bridge::Painter`] paints them in any order of arrival, and [`rfb::Viewer`] sends the viewer the
//! updates that it asks for.
//!
//! A few bytes may have many pixels painted; an [`Allowance`] limits how many pixels a peer may have painted
//! in a time.
//!
//! Nothing here opens sockets, starts threads or reads clocks.
#![forbid(unsafe_code)]

mod allowance;
pub mod bridge;
mod framebuffer;
#[doc(hidden)]
pub mod fuzz;
mod rect;
pub mod rfb;

pub use allowance::{Allowance, MAX_BURST, MAX_PIXELS_PER_SECOND};
pub use framebuffer::{Framebuffer, MAX_FRAMEBUFFER, MAX_PIXELS, TooLarge};
pub use rect::Rect;
