//! The remote framebuffer protocol, RFB (RFC 6143), from both sides.
//!
//! Towards an RFB server: [`ServerHandshake`] logs in, [`ClientMessage::write`] asks, [`Decoder`] paints the
//! updates. Towards a viewer: [`ViewerHandshake`] lets it in, [`ClientMessage::parse`] reads its messages,
//! and [`Viewer`] knows the changes that it was not sent yet.
//!
//! Some messages and encodings are of the community's version of the protocol,
//! <https://github.com/rfbproto/rfbproto>.

mod client_message;
mod clipboard;
mod cursor;
mod decoder;
pub mod encoding;
mod error;
mod fence;
pub(crate) mod fuzz;
mod pixel_format;
mod screen;
mod security;
mod server_handshake;
mod server_init;
mod server_message;
#[cfg(test)]
mod test_encoder;
mod vencrypt;
mod version;
mod viewer;
mod viewer_handshake;
mod wire;

pub use client_message::{ClientMessage, MAX_CUT_TEXT, MAX_ENCODINGS};
pub use clipboard::{
    Clipboard, ClipboardMessage, ClipboardOut, MAX_UNPACKED_TEXT, from_latin1, to_latin1,
};
pub use cursor::{Cursor, MAX_CURSOR};
pub use decoder::{Decoder, MAX_RRE_OVERDRAW, ServerEvent};
pub use error::RfbError;
pub use fence::{Fence, MAX_FENCE};
pub use pixel_format::PixelFormat;
pub use screen::{MAX_SCREENS, Screen};
pub use security::{Login, Security};
pub use server_handshake::{MAX_REASON, ServerHandshake, ServerStep};
pub use server_init::{MAX_NAME, ServerInit};
pub use server_message::{write_bell, write_clipboard, write_cut_text};
pub use viewer::{MAX_COPIES, MAX_DIRTY, MAX_UNDER_WAY, Viewer};
pub use viewer_handshake::{ViewerHandshake, ViewerStep};
