//! The changes that a viewer was not sent yet.

mod continuous;
mod region;
mod support;
#[cfg(test)]
mod tests;
mod update;

use super::{ClientMessage, Cursor, PixelFormat, RfbError};
use crate::framebuffer::Framebuffer;
use crate::rect::Rect;
use continuous::Continuous;
pub use continuous::MAX_UNDER_WAY;
pub use region::MAX_DIRTY;
use region::Region;
use support::Support;
use update::Update;

/// The number of copies that are kept for a viewer until it asks for an update; more are painted.
pub const MAX_COPIES: usize = 64;

/// The updates that a viewer has asked for and was not sent yet, after its handshake.
///
/// It starts with [`PixelFormat::RGB32`], and everything is to be sent.
#[derive(Debug)]
pub struct Viewer {
    format: PixelFormat,
    /// Whether the viewer has asked for a colour map that was not sent yet.
    colour_map_due: bool,
    /// `None` until the viewer lists its encodings.
    support: Option<Support>,
    /// The part of the screen that the viewer wants an update of.
    request: Option<Rect>,
    continuous: Continuous,
    /// The viewer's idea of the whole screen.
    known: Rect,
    /// The whole screen.
    bounds: Rect,
    /// Whether the viewer asked for the layout of the screens, by asking for pixels that it may have already.
    layout_due: bool,
    /// The answer to a SetDesktopSize.
    resize_result: Option<u16>,
    /// Copies: a viewer that has made them and painted `dirty` shows the screen.
    copies: Vec<Copy>,
    dirty: Region,
    cursor: Option<Cursor>,
    cursor_due: bool,
    name: Option<String>,
    /// Whether the viewer may send keys with their places on the keyboard.
    takes_extended_keys: bool,
    /// Whether it knows.
    told_of_extended_keys: bool,
}

#[derive(Debug, Clone, Copy)]
struct Copy {
    from: Rect,
    to: Rect,
}

impl Viewer {
    /// A viewer whose ServerInit had this size and [`PixelFormat::RGB32`].
    #[must_use]
    pub fn new(width: u16, height: u16) -> Self {
        let bounds = Rect::new(0, 0, width, height);
        let mut dirty = Region::default();
        dirty.add(bounds);
        Self {
            format: PixelFormat::RGB32,
            colour_map_due: false,
            support: None,
            request: None,
            continuous: Continuous::default(),
            known: bounds,
            bounds,
            layout_due: false,
            resize_result: None,
            copies: Vec::new(),
            dirty,
            cursor: None,
            cursor_due: false,
            name: None,
            takes_extended_keys: false,
            told_of_extended_keys: false,
        }
    }

    /// Takes note of the viewer's wishes, and adds the answers that come before anything else to `out`: for
    /// each message no more bytes than it had, and 10 bytes once. Pass all messages, though this does nothing
    /// about keys, the pointer, texts and sizes.
    ///
    /// # Errors
    /// The screen changed its size before the viewer said that it does not support that.
    pub fn on_message(
        &mut self,
        message: &ClientMessage,
        out: &mut Vec<u8>,
    ) -> Result<(), RfbError> {
        self.continuous.before_message(out);
        match message {
            ClientMessage::SetPixelFormat(format) => {
                self.format = *format;
                self.colour_map_due = !format.is_true_colour();
                Ok(())
            }
            ClientMessage::SetEncodings(encodings) => {
                self.set_support(Support::of(encodings))?;
                self.continuous.introduce(self.supports(), out);
                Ok(())
            }
            &ClientMessage::UpdateRequest { incremental, rect } => {
                self.on_request(incremental, rect)
            }
            &ClientMessage::EnableContinuousUpdates { enable, rect } => {
                // A viewer that did not list them was not told that they are supported.
                let enable = enable && self.supports().continuous_updates;
                self.continuous.enable(enable.then_some(rect), out);
                Ok(())
            }
            ClientMessage::Fence(fence) => {
                self.continuous.on_fence(fence, out);
                Ok(())
            }
            ClientMessage::Key { .. }
            | ClientMessage::ExtendedKey { .. }
            | ClientMessage::Pointer { .. }
            | ClientMessage::CutText(_)
            | ClientMessage::Clipboard(_)
            | ClientMessage::SetDesktopSize { .. } => Ok(()),
        }
    }

    fn set_support(&mut self, support: Support) -> Result<(), RfbError> {
        if self.known != self.bounds && !support.can_resize() {
            return Err(RfbError::CannotResize);
        }
        if !support.copy_rect {
            self.forget_copies(0);
        }
        if !support.extended_desktop_size {
            (self.layout_due, self.resize_result) = (false, None);
        }
        if support.cursor && !self.draws_cursor() {
            self.cursor_due = self.cursor.is_some();
        }
        self.support = Some(support);
        Ok(())
    }

    fn on_request(&mut self, incremental: bool, rect: Rect) -> Result<(), RfbError> {
        if self.known != self.bounds && self.support.is_none() {
            return Err(RfbError::CannotResize);
        }
        // Incremental updates come unasked, so requests for them are ignored.
        if incremental && self.continuous.is_on() {
            return Ok(());
        }
        self.request = Some(self.request.unwrap_or_default().around(rect));
        if !incremental {
            // The viewer may have lost the pixels to be copied.
            self.forget_copies(0);
            self.painted(rect);
            self.layout_due = self.supports().extended_desktop_size;
        }
        Ok(())
    }

    fn supports(&self) -> Support {
        self.support.unwrap_or_default()
    }

    /// Has the copies from a number on painted.
    fn forget_copies(&mut self, start: usize) {
        for copy in self.copies.drain(start..) {
            self.dirty.add(copy.to);
        }
    }

    /// A rectangle of the screen has changed.
    pub fn painted(&mut self, rect: Rect) {
        self.dirty.add(rect.intersection(self.bounds).unwrap_or_default());
    }

    /// A rectangle of the screen was copied to another place.
    pub fn copied(&mut self, from: Rect, to: Rect) {
        let possible = self.bounds.contains(from)
            && self.bounds.contains(to)
            && (from.width, from.height) == (to.width, to.height);
        // The viewer makes copies before it paints: it must have the pixels to be copied.
        let cheap = self.supports().copy_rect
            && self.copies.len() < MAX_COPIES
            && !self.dirty.overlaps(from);
        if !possible || !cheap {
            self.painted(to);
        } else if !to.is_empty() {
            self.copies.push(Copy { from, to });
        }
    }

    /// The pointer has another shape; `None` if it is not to be seen.
    pub fn cursor(&mut self, cursor: Option<Cursor>) {
        let cursor = Some(cursor.unwrap_or_default());
        if self.cursor != cursor {
            self.cursor = cursor;
            self.cursor_due = true;
        }
    }

    /// Whether the viewer draws the pointer itself. Otherwise nobody does.
    #[must_use]
    pub fn draws_cursor(&self) -> bool {
        self.supports().cursor
    }

    /// The screen has another size; all of it is to be sent.
    ///
    /// # Errors
    /// The viewer does not support that. Disconnect the viewer; it gets the new size when it comes again.
    pub fn resized(&mut self, width: u16, height: u16) -> Result<(), RfbError> {
        let bounds = Rect::new(0, 0, width, height);
        if bounds == self.bounds {
            return Ok(());
        }
        // A viewer that has not asked for an update may still say that it supports new sizes.
        if !self.support.map_or(self.request.is_none(), Support::can_resize) {
            return Err(RfbError::CannotResize);
        }
        self.bounds = bounds;
        self.copies.clear();
        self.dirty.set(bounds);
        Ok(())
    }

    /// The answer to the viewer's SetDesktopSize: 0 if it was done.
    pub fn resize_result(&mut self, status: u16) {
        if self.supports().extended_desktop_size {
            self.resize_result = Some(status);
        }
    }

    /// The desktop has another name.
    pub fn named(&mut self, name: &str) {
        self.name = Some(name.into());
    }

    /// The viewer may send keys with their places on the keyboard (QEMU's extended key event).
    pub fn take_extended_keys(&mut self) {
        self.takes_extended_keys = true;
    }

    fn is_news_of_keys_due(&self) -> bool {
        self.takes_extended_keys && !self.told_of_extended_keys && self.supports().extended_keys
    }

    /// The part of the screen for which an update may be sent now: the part that the viewer has asked for,
    /// and the part that it wants unasked.
    fn wanted(&self) -> Option<Rect> {
        let unasked = self.continuous.area(self.supports());
        self.request.into_iter().chain(unasked).reduce(Rect::around)
    }

    /// Whether the viewer waits for an update and there is news for it.
    #[must_use]
    pub fn wants(&self) -> bool {
        let support = self.supports();
        self.wanted().is_some_and(|request| {
            self.is_resize_due()
                || self.cursor_due && support.cursor
                || self.name.is_some() && support.desktop_name
                || self.is_news_of_keys_due()
                || self.dirty.overlaps(request)
                || self.copies.iter().any(|copy| copy.to.overlaps(request))
        })
    }

    /// Whether there is news of the size or the layout of the screen.
    fn is_resize_due(&self) -> bool {
        self.known != self.bounds || self.layout_due || self.resize_result.is_some()
    }

    /// Writes an update with the changes in the part of the screen that the viewer wants, if there are any
    /// ([`Self::wants`]). The size of the screen goes into an update of its own, because viewers ask for the
    /// new size only then. Behind an update that comes unasked is a fence, if the viewer answers fences: at
    /// most [`MAX_UNDER_WAY`] updates are sent without an answer.
    pub fn update(&mut self, screen: &Framebuffer, out: &mut Vec<u8>) {
        if !self.wants() {
            return;
        }
        let Some(wanted) = self.wanted() else { return };
        self.request = None;
        if std::mem::take(&mut self.colour_map_due) {
            update::set_colour_map_entries(out);
        }
        let mut update = Update::new(self.format, out);
        if self.is_resize_due() {
            self.write_size(&mut update);
        } else {
            self.write_news(&mut update);
            self.write_pixels(wanted, screen, &mut update);
        }
        update.finish();
        if self.continuous.is_on() {
            self.continuous.update_sent(self.supports(), out);
        }
    }

    fn write_size(&mut self, update: &mut Update<'_>) {
        let new_size = self.known != self.bounds;
        self.known = self.bounds;
        let layout = std::mem::take(&mut self.layout_due);
        let result = self.resize_result.take();
        if !self.supports().extended_desktop_size {
            return update.desktop_size(self.bounds);
        }
        match result {
            None => update.extended_desktop_size(0, 0, self.bounds),
            Some(0) => update.extended_desktop_size(1, 0, self.bounds),
            Some(status) => {
                update.extended_desktop_size(1, status, self.bounds);
                if new_size || layout {
                    update.extended_desktop_size(0, 0, self.bounds);
                }
            }
        }
    }

    fn write_news(&mut self, update: &mut Update<'_>) {
        let support = self.supports();
        if let Some(cursor) = self.cursor.as_ref().filter(|_| support.cursor && self.cursor_due) {
            update.cursor(cursor);
            self.cursor_due = false;
        }
        if self.is_news_of_keys_due() {
            update.extended_keys();
            self.told_of_extended_keys = true;
        }
        if let Some(name) = self.name.take_if(|_| support.desktop_name) {
            update.desktop_name(&name);
        }
    }

    fn write_pixels(&mut self, request: Rect, screen: &Framebuffer, update: &mut Update<'_>) {
        // A copy can read the target of the copy before it: without a copy, the copies behind it cannot be
        // made.
        let asked_for = self.copies.iter().take_while(|copy| request.contains(copy.to)).count();
        self.forget_copies(asked_for);
        for copy in self.copies.drain(..) {
            update.copy_rect(copy.from, copy.to);
        }
        let support = self.supports();
        for rect in self.dirty.take(request) {
            if let Some(rect) = rect.intersection(screen.bounds()) {
                update.pixels(rect, screen, support);
            }
        }
    }
}
