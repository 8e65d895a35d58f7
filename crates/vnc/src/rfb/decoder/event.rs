//! The effects of a server's messages.

use super::super::{ClipboardMessage, Cursor, Fence, Screen};
use crate::rect::Rect;
use bytes::Bytes;

/// An event at a server; the screen shows it already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerEvent {
    /// A rectangle of an update was painted (RFC 6143, sections 7.7.1, 7.7.3 and 7.7.4).
    Painted(Rect),
    /// A rectangle of the same size was copied (7.7.2). Source and target may overlap.
    Copied {
        /// The rectangle that was copied.
        from: Rect,
        /// Its place now.
        to: Rect,
    },
    /// The pointer has another shape (7.8.1).
    Cursor(Cursor),
    /// The screen has another size (DesktopSize, 7.8.2, or ExtendedDesktopSize). Pixels within both sizes
    /// stay.
    Resized {
        /// The new width.
        width: u16,
        /// The new height.
        height: u16,
    },
    /// The screens that the framebuffer is made of, which the client may ask the server to change
    /// (ExtendedDesktopSize).
    Screens(Vec<Screen>),
    /// The answer to a SetDesktopSize (ExtendedDesktopSize).
    ResizeResult {
        /// 0 if it was done.
        status: u16,
    },
    /// The desktop has another name (DesktopName).
    Named(String),
    /// The update is complete: it is time to ask for the next (7.6.1).
    UpdateEnd,
    /// The bell rings (7.6.3).
    Bell,
    /// The server's clipboard has a new text, in ISO 8859-1 (7.6.4).
    CutText(Bytes),
    /// A message about the server's clipboard (Extended Clipboard).
    Clipboard(ClipboardMessage),
    /// The server takes keys with their places on the keyboard (QEMU's extended key event).
    ExtendedKeys,
    /// A fence, which is to be answered if it is a request, or the answer to one (Fence).
    Fence(Fence),
    /// Updates are sent only when they are asked for, and continuous updates may be asked for
    /// (ContinuousUpdates).
    EndOfContinuousUpdates,
}
