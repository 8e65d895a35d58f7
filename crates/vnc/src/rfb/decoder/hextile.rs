//! The Hextile encoding (RFC 6143, section 7.7.4).

use super::super::RfbError;
use super::super::wire::{self, Read, Reader, pixel};
use crate::framebuffer::Framebuffer;
use crate::rect::Rect;
use bytes::BytesMut;

/// Columns and rows of a tile, unless it is at the right or lower edge.
pub(in crate::rfb) const TILE: u16 = 16;

// The bits of the first byte of a tile.
pub(in crate::rfb) const RAW: u8 = 1;
pub(in crate::rfb) const BACKGROUND_SPECIFIED: u8 = 2;
pub(in crate::rfb) const FOREGROUND_SPECIFIED: u8 = 4;
pub(in crate::rfb) const ANY_SUBRECTS: u8 = 8;
pub(in crate::rfb) const SUBRECTS_COLOURED: u8 = 16;

/// A rectangle of which some tiles are painted.
#[derive(Debug)]
pub(super) struct Hextile {
    rect: Rect,
    /// The next tile, from the corner of the rectangle.
    column: u32,
    row: u32,
    background: u32,
    foreground: u32,
}

impl Hextile {
    pub(super) fn new(rect: Rect) -> Self {
        Self { rect, column: 0, row: 0, background: 0, foreground: 0 }
    }

    /// Paints the data that has come. Returns whether the rectangle is complete.
    pub(super) fn paint(
        &mut self,
        input: &mut BytesMut,
        screen: &mut Framebuffer,
    ) -> Result<bool, RfbError> {
        while let Some(tile) = self.tile() {
            if wire::take(input, |reader| self.paint_tile(tile, reader, screen))?.is_none() {
                return Ok(false);
            }
            self.column += u32::from(TILE);
            if self.column >= self.rect.width.into() {
                (self.column, self.row) = (0, self.row + u32::from(TILE));
            }
        }
        Ok(true)
    }

    /// Where the next tile is on the screen; `None` if there is none.
    fn tile(&self) -> Option<Rect> {
        let x = u16::try_from(u32::from(self.rect.x) + self.column).ok()?;
        let y = u16::try_from(u32::from(self.rect.y) + self.row).ok()?;
        Rect::new(x, y, TILE, TILE).intersection(self.rect)
    }

    /// Paints one tile, when it is there entirely.
    fn paint_tile(
        &mut self,
        tile: Rect,
        reader: &mut Reader<'_>,
        screen: &mut Framebuffer,
    ) -> Read<()> {
        let kind = reader.u8()?;
        if kind > 2 * SUBRECTS_COLOURED - 1 {
            return Err(RfbError::Tile(kind).into());
        }
        let has = |bit: u8| kind & bit != 0;
        if has(RAW) {
            let (pixels, _) = reader.bytes(4 * tile.area())?.as_chunks();
            paint_pixels(tile, pixels, screen);
            return Ok(());
        }
        let background = if has(BACKGROUND_SPECIFIED) { reader.pixel()? } else { self.background };
        let foreground = if has(FOREGROUND_SPECIFIED) { reader.pixel()? } else { self.foreground };
        let count = if has(ANY_SUBRECTS) { reader.u8()? } else { 0 };
        let size = if has(SUBRECTS_COLOURED) { 6 } else { 2 };
        let subrectangles = reader.bytes(size * usize::from(count))?;
        (self.background, self.foreground) = (background, foreground);
        screen.fill(tile, background);
        for subrectangle in subrectangles.chunks_exact(size) {
            let (pixel, place) = match *subrectangle {
                [b0, b1, b2, b3, xy, wh] => (pixel([b0, b1, b2, b3]), [xy, wh]),
                [xy, wh] => (foreground, [xy, wh]),
                _ => continue,
            };
            screen.fill(locate(tile, place)?, pixel);
        }
        Ok(())
    }
}

fn paint_pixels(tile: Rect, pixels: &[[u8; 4]], screen: &mut Framebuffer) {
    for (y, row) in (tile.y..).zip(pixels.chunks(tile.width.into())) {
        for (target, &bytes) in screen.columns_mut(tile.x, y, tile.width).iter_mut().zip(row) {
            *target = pixel(bytes);
        }
    }
}

/// Where a subrectangle of a tile is on the screen. Each of the four numbers has four bits.
fn locate(tile: Rect, [xy, wh]: [u8; 2]) -> Result<Rect, RfbError> {
    let [x, y] = [xy >> 4, xy & 15].map(u16::from);
    let [width, height] = [wh >> 4, wh & 15].map(|less| u16::from(less) + 1);
    let part = Rect::new(x, y, width, height);
    if !Rect::new(0, 0, tile.width, tile.height).contains(part) {
        return Err(RfbError::OutsideRectangle { part, width: tile.width, height: tile.height });
    }
    Ok(Rect { x: tile.x + x, y: tile.y + y, ..part })
}
