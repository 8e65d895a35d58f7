//! The sans-IO parts of a bridge for remote desktops over lossy paths.
//!
//! A remote desktop stalls when a packet is lost, because its protocol, RFB (RFC 6143), needs every rectangle in
//! the order in which it was sent. Most rectangles do not need that: those of different places of the screen can be
//! painted in any order (Eghbal and Lu 2025). The bridge has a [`Framebuffer`] at either end. Beside the RFB
//! server, [`rfb::Decoder`] paints what the server sends in cheap encodings; [`bridge::Source`] finds what the other
//! end does not show yet and makes *pieces* of it that do not depend on each other's bytes, each with the
//! pieces that it must come after. Beside the viewer, [`bridge::Painter`] paints them in whatever order they come
//! in, and [`rfb::Viewer`] sends the viewer what it asks for.
//!
//! Few bytes may have much painted; an [`Allowance`] limits how much a peer may have painted in a time.
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
