//! The pointer's shape (RFC 6143, section 7.8.1).

use super::wire::{Read, Reader, bounded, pixel, put_rect};
use super::{PixelFormat, encoding};
use crate::rect::Rect;
use bytes::BufMut as _;

/// The number of columns and of rows of the largest pointer.
pub const MAX_CURSOR: usize = 256;

/// The pointer's shape. `pixels` and `mask` go row by row and have one value for each pixel; pixels that they
/// do not have are transparent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cursor {
    /// The number of columns.
    pub width: u16,
    /// The number of rows.
    pub height: u16,
    /// The column that points.
    pub hotspot_x: u16,
    /// The row that points.
    pub hotspot_y: u16,
    /// The colours, `0x00RRGGBB`.
    pub pixels: Vec<u32>,
    /// Whether pixels are painted.
    pub mask: Vec<bool>,
}

impl Cursor {
    /// The cursor of a rectangle, whose corner is the hotspot.
    pub(super) fn read(rect: Rect, reader: &mut Reader<'_>) -> Read<Self> {
        let width = bounded("the width of a cursor", rect.width.into(), MAX_CURSOR)?;
        let height = bounded("the height of a cursor", rect.height.into(), MAX_CURSOR)?;
        let (pixels, _) = reader.bytes(4 * width * height)?.as_chunks();
        let rows = reader.bytes(width.div_ceil(8) * height)?.chunks_exact(width.div_ceil(8).max(1));
        let bit = |row: &[u8], at: usize| row[at / 8] << (at % 8) & 0x80 != 0;
        Ok(Self {
            width: rect.width,
            height: rect.height,
            // A pointer points with one of its pixels.
            hotspot_x: rect.x.min(rect.width.saturating_sub(1)),
            hotspot_y: rect.y.min(rect.height.saturating_sub(1)),
            pixels: pixels.iter().map(|&bytes| pixel(bytes)).collect(),
            mask: rows.flat_map(|row| (0..width).map(move |at| bit(row, at))).collect(),
        })
    }

    /// Writes the rectangle. A cursor that is larger than [`MAX_CURSOR`] is not shown.
    pub(super) fn write(&self, format: PixelFormat, out: &mut Vec<u8>) {
        let (width, height) = (usize::from(self.width), usize::from(self.height));
        if width > MAX_CURSOR || height > MAX_CURSOR {
            return Self::default().write(format, out);
        }
        put_rect(out, Rect::new(self.hotspot_x, self.hotspot_y, self.width, self.height));
        out.put_i32(encoding::CURSOR);
        let pixel = |at: usize| self.pixels.get(at).copied();
        for at in 0..width * height {
            format.encode(pixel(at).unwrap_or_default(), out);
        }
        let shown =
            |at: usize| pixel(at).is_some() && self.mask.get(at).copied().unwrap_or_default();
        for row in 0..height {
            for byte in 0..width.div_ceil(8) {
                let columns = 8 * byte..width.min(8 * byte + 8);
                let bit = |x: usize| u8::from(shown(row * width + x)) << (7 - x % 8);
                out.push(columns.map(bit).sum());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::wire;
    use super::*;
    use proptest::prelude::*;

    fn read(bytes: &[u8]) -> Cursor {
        let mut input = bytes.into();
        let cursor = wire::take(&mut input, |reader| {
            let rect = reader.rect()?;
            assert_eq!(reader.i32()?, encoding::CURSOR);
            Cursor::read(rect, reader)
        });
        assert!(input.is_empty());
        cursor.unwrap().unwrap()
    }

    fn written(cursor: &Cursor) -> Vec<u8> {
        let mut out = Vec::new();
        cursor.write(PixelFormat::RGB32, &mut out);
        out
    }

    #[test]
    fn what_a_cursor_does_not_have_is_transparent() {
        let bare = Cursor {
            width: 3,
            height: 1,
            pixels: vec![7],
            mask: vec![true; 3],
            ..Cursor::default()
        };
        let cursor = read(&written(&bare));
        assert_eq!((cursor.pixels, cursor.mask), (vec![7, 0, 0], vec![true, false, false]));
        let large = Cursor { width: 257, ..bare };
        assert_eq!(read(&written(&large)), Cursor::default());
    }

    proptest! {
        #[test]
        fn cursors_come_back(width in 0..20u16, height in 0..5u16, seed in any::<[u32; 4]>()) {
            let area = usize::from(width) * usize::from(height);
            let number = |at: usize| seed[at % 4].rotate_left(at as u32);
            let cursor = Cursor {
                width,
                height,
                hotspot_x: width / 2,
                hotspot_y: height / 2,
                pixels: (0..area).map(|at| number(at) & 0x00ff_ffff).collect(),
                mask: (0..area).map(|at| number(at) & 1 == 1).collect(),
            };
            prop_assert_eq!(read(&written(&cursor)), cursor);
        }
    }
}
