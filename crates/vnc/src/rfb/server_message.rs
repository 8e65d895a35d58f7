//! The messages of a server that need nothing of the viewer's state.

use super::client_message::MAX_CUT_TEXT;
use super::wire::put_counted;
use super::{ClipboardMessage, Fence};

pub(super) const FRAMEBUFFER_UPDATE: u8 = 0;
pub(super) const SET_COLOUR_MAP_ENTRIES: u8 = 1;
pub(super) const BELL: u8 = 2;
pub(super) const SERVER_CUT_TEXT: u8 = 3;
pub(super) const END_OF_CONTINUOUS_UPDATES: u8 = 150;
pub(super) const SERVER_FENCE: u8 = 248;

/// Writes a Bell to a viewer (RFC 6143, section 7.6.3).
pub fn write_bell(out: &mut Vec<u8>) {
    out.push(BELL);
}

/// Writes a ServerCutText to a viewer (RFC 6143, section 7.6.4). Bytes beyond [`MAX_CUT_TEXT`] are left out.
pub fn write_cut_text(text: &[u8], out: &mut Vec<u8>) {
    out.extend([SERVER_CUT_TEXT, 0, 0, 0]);
    put_counted(out, text, MAX_CUT_TEXT);
}

/// Writes a message about the clipboard to a viewer (Extended Clipboard of the community's version of the
/// protocol). A text beyond [`MAX_CUT_TEXT`] bytes is cut.
pub fn write_clipboard(message: &ClipboardMessage, out: &mut Vec<u8>) {
    message.write(SERVER_CUT_TEXT, out);
}

/// Writes an EndOfContinuousUpdates (ContinuousUpdates of the community's version of the protocol).
pub(super) fn write_end_of_continuous_updates(out: &mut Vec<u8>) {
    out.push(END_OF_CONTINUOUS_UPDATES);
}

/// Writes a ServerFence (Fence of the community's version of the protocol).
pub(super) fn write_fence(fence: &Fence, out: &mut Vec<u8>) {
    fence.write(SERVER_FENCE, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_those_of_the_rfc() {
        let mut out = Vec::new();
        write_bell(&mut out);
        write_cut_text(b"hi", &mut out);
        assert_eq!(out, [2, 3, 0, 0, 0, 0, 0, 0, 2, b'h', b'i']);
    }

    #[test]
    fn text_beyond_the_bound_is_left_out() {
        let mut out = Vec::new();
        write_cut_text(&vec![b'x'; MAX_CUT_TEXT + 9], &mut out);
        assert_eq!(out.len(), 8 + MAX_CUT_TEXT);
    }
}
