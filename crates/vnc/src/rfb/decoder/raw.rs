//! The Raw encoding (RFC 6143, section 7.7.1).

use super::super::wire::pixel;
use crate::framebuffer::Framebuffer;
use crate::rect::Rect;
use bytes::{Buf as _, BytesMut};

/// A rectangle of which some pixels are painted.
#[derive(Debug)]
pub(super) struct Raw {
    rect: Rect,
    painted: usize,
}

impl Raw {
    pub(super) fn new(rect: Rect) -> Self {
        Self { rect, painted: 0 }
    }

    /// Paints the data that has come. Returns whether the rectangle is complete.
    pub(super) fn paint(&mut self, input: &mut BytesMut, screen: &mut Framebuffer) -> bool {
        let width = usize::from(self.rect.width);
        while self.painted < self.rect.area() {
            let (row, column) = (self.painted / width, self.painted % width);
            let count = (input.len() / 4).min(width - column);
            if count == 0 {
                return false;
            }
            // All three numbers are within the rectangle and therefore within 16 bits.
            let (x, y) = (self.rect.x + column as u16, self.rect.y + row as u16);
            let (pixels, _) = input[..4 * count].as_chunks();
            for (target, &bytes) in screen.columns_mut(x, y, count as u16).iter_mut().zip(pixels) {
                *target = pixel(bytes);
            }
            input.advance(4 * count);
            self.painted += count;
        }
        true
    }
}
