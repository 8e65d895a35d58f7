//! The RRE encoding (RFC 6143, section 7.7.3).

use super::super::{RfbError, wire};
use crate::framebuffer::Framebuffer;
use crate::rect::Rect;
use bytes::BytesMut;

/// How often the subrectangles of a rectangle may cover it. Encoders cover it less than once; without a
/// bound, each 12 bytes could have a whole screen painted.
pub const MAX_RRE_OVERDRAW: usize = 4;

/// A rectangle of which some subrectangles are painted.
#[derive(Debug)]
pub(super) struct Rre {
    rect: Rect,
    /// Subrectangles that have not come; `None` before the background.
    left: Option<u32>,
    /// Pixels that subrectangles may still have.
    budget: usize,
}

impl Rre {
    pub(super) fn new(rect: Rect) -> Self {
        Self { rect, left: None, budget: rect.area().saturating_mul(MAX_RRE_OVERDRAW) }
    }

    /// Paints the data that has come. Returns whether the rectangle is complete.
    pub(super) fn paint(
        &mut self,
        input: &mut BytesMut,
        screen: &mut Framebuffer,
    ) -> Result<bool, RfbError> {
        if self.left.is_none() {
            let header = wire::take(input, |reader| Ok((reader.u32()?, reader.pixel()?)))?;
            let Some((count, background)) = header else { return Ok(false) };
            screen.fill(self.rect, background);
            self.left = Some(count);
        }
        while let Some(left @ 1..) = self.left {
            let subrectangle = wire::take(input, |reader| Ok((reader.pixel()?, reader.rect()?)))?;
            let Some((pixel, part)) = subrectangle else { return Ok(false) };
            screen.fill(self.place(part)?, pixel);
            self.left = Some(left - 1);
        }
        Ok(true)
    }

    /// A subrectangle's place on the screen.
    fn place(&mut self, part: Rect) -> Result<Rect, RfbError> {
        let Rect { width, height, .. } = self.rect;
        if !Rect::new(0, 0, width, height).contains(part) {
            return Err(RfbError::OutsideRectangle { part, width, height });
        }
        let left = self.budget.checked_sub(part.area());
        self.budget = left.ok_or(RfbError::Overdraw(self.rect))?;
        if part.is_empty() {
            return Ok(Rect::default());
        }
        Ok(Rect { x: self.rect.x + part.x, y: self.rect.y + part.y, ..part })
    }
}
