//! Small rectangles of pixels as bytes.
//!
//! | method | then |
//! |---|---|
//! | 0 | one colour: red, green, blue |
//! | 1 | a palette: the number of colours - 1, the colours, and for each row the indices, from the highest bit: 1 bit each for 2 colours, 2 for 4, 4 for 16, otherwise 8; rows begin at a byte |
//! | 2 | all colours: three bytes a pixel, each less the same byte of the pixel to the left |
//! | 3 | length (16), and a JPEG image, which is lossy |

use super::cells::TILE;
use crate::framebuffer::Framebuffer;
use crate::rect::Rect;
use bytes::{Buf, BufMut};
use image::codecs::jpeg::{JpegDecoder, JpegEncoder};
use image::{ExtendedColorType, ImageDecoder, ImageEncoder};

/// Most colours of a palette.
const MAX_COLOURS: usize = 256;
/// A picture with at most this many colours is not made lossy: it is text or a drawing.
const FEW_COLOURS: usize = 64;

/// The bytes with which a frame of zstd begins (RFC 8878 section 3.1.1), which pieces leave out.
pub(super) const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Why a tile cannot be painted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TileError {
    /// The tile ends early.
    #[error("a tile ends early")]
    Short,
    /// The tile is larger than allowed, or not within the screen.
    #[error("a tile of {0} is too large or outside the screen")]
    Outside(Rect),
    /// The tile has a method that does not exist.
    #[error("a tile of unknown method {0}")]
    Method(u8),
    /// A pixel has a colour that is not in the palette.
    #[error("a tile with a colour that is not in its palette")]
    Palette,
    /// More pixels are painted than the screen has, though none needs to be painted twice.
    #[error("a piece of the screen paints more than all of it")]
    Overdraw,
    /// The tile is not a JPEG image, or one of another size.
    #[error("a tile whose JPEG image cannot be decoded")]
    Jpeg,
}

/// Writes a rectangle of at most [`TILE`] columns and rows that is within the screen; returns whether it is
/// exact. With a `quality` from 1 to 100, a picture with many colours is written as JPEG if that is smaller.
pub fn encode(screen: &Framebuffer, rect: Rect, quality: Option<u8>, out: &mut Vec<u8>) -> bool {
    debug_assert!(is_tile(rect) && screen.bounds().contains(rect));
    out.put_u16(rect.x);
    out.put_u16(rect.y);
    out.put_u8((rect.width - 1) as u8);
    out.put_u8((rect.height - 1) as u8);
    let pixels: Vec<u32> = screen.rows(rect).flatten().copied().collect();
    let palette = palette(&pixels);
    match palette.as_deref() {
        Some([colour]) => {
            out.put_u8(0);
            put_colour(out, *colour);
        }
        Some(palette) if indexed_size(rect, palette.len()) < 3 * rect.area() => {
            put_indexed(rect, &pixels, palette, out);
        }
        _ => {
            let picture = palette.is_none_or(|palette| palette.len() > FEW_COLOURS);
            let jpeg = quality.filter(|_| picture).and_then(|quality| jpeg(rect, &pixels, quality));
            if let Some(jpeg) = jpeg.filter(|jpeg| jpeg.len() < 3 * rect.area()) {
                out.put_u8(3);
                out.put_u16(jpeg.len() as u16);
                out.put_slice(&jpeg);
                return false;
            }
            put_full(rect, &pixels, out);
        }
    }
    true
}

fn is_tile(rect: Rect) -> bool {
    !rect.is_empty() && rect.width <= TILE && rect.height <= TILE
}

fn put_colour(out: &mut Vec<u8>, pixel: u32) {
    let [_, red, green, blue] = pixel.to_be_bytes();
    out.put_slice(&[red, green, blue]);
}

/// The colours of a tile in increasing order; `None` if there are more than [`MAX_COLOURS`].
fn palette(pixels: &[u32]) -> Option<Vec<u32>> {
    let mut colours: Vec<u32> = Vec::new();
    let mut last = None;
    for &pixel in pixels {
        // Most pixels are like the previous one.
        if last == Some(pixel) {
            continue;
        }
        last = Some(pixel);
        if let Err(place) = colours.binary_search(&pixel) {
            if colours.len() == MAX_COLOURS {
                return None;
            }
            colours.insert(place, pixel);
        }
    }
    Some(colours)
}

/// Bits of an index into a palette of this size.
fn index_bits(colours: usize) -> usize {
    match colours {
        0..=2 => 1,
        3..=4 => 2,
        5..=16 => 4,
        _ => 8,
    }
}

fn row_size(width: u16, bits: usize) -> usize {
    (usize::from(width) * bits).div_ceil(8)
}

fn indexed_size(rect: Rect, colours: usize) -> usize {
    1 + 3 * colours + usize::from(rect.height) * row_size(rect.width, index_bits(colours))
}

fn put_indexed(rect: Rect, pixels: &[u32], palette: &[u32], out: &mut Vec<u8>) {
    out.put_u8(1);
    out.put_u8((palette.len() - 1) as u8);
    palette.iter().for_each(|&colour| put_colour(out, colour));
    let bits = index_bits(palette.len());
    let mut known = (palette[0], 0);
    for row in pixels.chunks(rect.width.into()) {
        let (mut byte, mut free) = (0_u8, 8);
        for &pixel in row {
            if pixel != known.0 {
                known = (pixel, palette.binary_search(&pixel).unwrap_or_default());
            }
            free -= bits;
            byte |= (known.1 as u8) << free;
            if free == 0 {
                out.put_u8(std::mem::take(&mut byte));
                free = 8;
            }
        }
        if free < 8 {
            out.put_u8(byte);
        }
    }
}

fn put_full(rect: Rect, pixels: &[u32], out: &mut Vec<u8>) {
    out.put_u8(2);
    for row in pixels.chunks(rect.width.into()) {
        let mut left = [0; 4];
        for pixel in row {
            let pixel = pixel.to_be_bytes();
            (1..4).for_each(|channel| out.put_u8(pixel[channel].wrapping_sub(left[channel])));
            left = pixel;
        }
    }
}

fn jpeg(rect: Rect, pixels: &[u32], quality: u8) -> Option<Vec<u8>> {
    let mut rgb = Vec::with_capacity(3 * pixels.len());
    pixels.iter().for_each(|&pixel| put_colour(&mut rgb, pixel));
    let mut image = Vec::new();
    let encoder = JpegEncoder::new_with_quality(&mut image, quality);
    let (width, height) = (rect.width.into(), rect.height.into());
    encoder.write_image(&rgb, width, height, ExtendedColorType::Rgb8).ok()?;
    (image.len() <= usize::from(u16::MAX)).then_some(image)
}

/// Paints the tile at the beginning of `data`, moves on behind it, and returns its place.
///
/// # Errors
/// The tile is malformed or not within the screen. Pixels painted before the fault stay.
pub fn paint(data: &mut &[u8], screen: &mut Framebuffer) -> Result<Rect, TileError> {
    let short = |_| TileError::Short;
    let (x, y) = (data.try_get_u16().map_err(short)?, data.try_get_u16().map_err(short)?);
    let mut side = || data.try_get_u8().map(|side| u16::from(side) + 1).map_err(short);
    let rect = Rect::new(x, y, side()?, side()?);
    if !is_tile(rect) || !screen.bounds().contains(rect) {
        return Err(TileError::Outside(rect));
    }
    match data.try_get_u8().map_err(short)? {
        0 => screen.fill(rect, get_colour(data)?),
        1 => paint_indexed(data, rect, screen)?,
        2 => paint_full(data, rect, screen)?,
        3 => paint_jpeg(data, rect, screen)?,
        method => return Err(TileError::Method(method)),
    }
    Ok(rect)
}

fn get_colour(data: &mut &[u8]) -> Result<u32, TileError> {
    let [red, green, blue] = *data.split_off(..3).ok_or(TileError::Short)? else {
        return Err(TileError::Short);
    };
    Ok(u32::from_be_bytes([0, red, green, blue]))
}

fn paint_indexed(data: &mut &[u8], rect: Rect, screen: &mut Framebuffer) -> Result<(), TileError> {
    let colours = usize::from(data.try_get_u8().map_err(|_| TileError::Short)?) + 1;
    let palette = (0..colours).map(|_| get_colour(data)).collect::<Result<Vec<_>, _>>()?;
    let bits = index_bits(colours);
    let mask = ((1_u16 << bits) - 1) as u8;
    for row in 0..rect.height {
        let indices = data.split_off(..row_size(rect.width, bits)).ok_or(TileError::Short)?;
        for (column, pixel) in
            screen.columns_mut(rect.x, rect.y + row, rect.width).iter_mut().enumerate()
        {
            let (byte, bit) = (column * bits / 8, column * bits % 8);
            let index = indices[byte] >> (8 - bits - bit) & mask;
            *pixel = *palette.get(usize::from(index)).ok_or(TileError::Palette)?;
        }
    }
    Ok(())
}

fn paint_full(data: &mut &[u8], rect: Rect, screen: &mut Framebuffer) -> Result<(), TileError> {
    for row in 0..rect.height {
        let bytes = data.split_off(..3 * usize::from(rect.width)).ok_or(TileError::Short)?;
        let mut left = [0_u8; 3];
        let pixels = screen.columns_mut(rect.x, rect.y + row, rect.width);
        for (pixel, bytes) in pixels.iter_mut().zip(bytes.chunks_exact(3)) {
            (0..3).for_each(|channel| left[channel] = left[channel].wrapping_add(bytes[channel]));
            let [red, green, blue] = left;
            *pixel = u32::from_be_bytes([0, red, green, blue]);
        }
    }
    Ok(())
}

fn paint_jpeg(data: &mut &[u8], rect: Rect, screen: &mut Framebuffer) -> Result<(), TileError> {
    let size = data.try_get_u16().map_err(|_| TileError::Short)?;
    let image = data.split_off(..usize::from(size)).ok_or(TileError::Short)?;
    let decoder = JpegDecoder::new(std::io::Cursor::new(image)).map_err(|_| TileError::Jpeg)?;
    // The size is known before anything is decoded.
    let (width, height) = decoder.dimensions();
    let expected = (u32::from(rect.width), u32::from(rect.height));
    if (width, height) != expected || decoder.color_type() != image::ColorType::Rgb8 {
        return Err(TileError::Jpeg);
    }
    let mut rgb = vec![0; 3 * rect.area()];
    decoder.read_image(&mut rgb).map_err(|_| TileError::Jpeg)?;
    for (row, bytes) in (0..rect.height).zip(rgb.chunks_exact(3 * usize::from(rect.width))) {
        let pixels = screen.columns_mut(rect.x, rect.y + row, rect.width);
        for (pixel, colour) in pixels.iter_mut().zip(bytes.chunks_exact(3)) {
            *pixel = u32::from_be_bytes([0, colour[0], colour[1], colour[2]]);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A screen of which `rect` has `colours` colours, in a pattern.
    fn picture(rect: Rect, colours: u32, seed: u32) -> Framebuffer {
        let mut screen = Framebuffer::new(100, 90).unwrap();
        for (row, y) in (rect.y..).take(rect.height.into()).enumerate() {
            for (column, pixel) in screen.columns_mut(rect.x, y, rect.width).iter_mut().enumerate()
            {
                let number = (row * 7 + column * 3) as u32 + seed;
                *pixel = (number * number % colours).wrapping_mul(0x0005_0b17) & 0x00ff_ffff;
            }
        }
        screen
    }

    fn any_tile() -> impl Strategy<Value = Rect> {
        (0..36u16, 0..26u16, 1..=64u16, 1..=64u16).prop_map(|(x, y, w, h)| Rect::new(x, y, w, h))
    }

    proptest! {
        #[test]
        fn a_tile_is_painted_as_it_was(rect in any_tile(), colours in 1..600u32, seed in 0..1000u32) {
            let screen = picture(rect, colours, seed);
            let mut bytes = Vec::new();
            prop_assert!(encode(&screen, rect, None, &mut bytes));
            bytes.push(0xee);
            let mut copy = Framebuffer::new(100, 90).unwrap();
            let mut rest = &bytes[..];
            prop_assert_eq!(paint(&mut rest, &mut copy), Ok(rect));
            prop_assert_eq!(rest, &[0xee]);
            prop_assert!(copy == screen, "the pictures differ");
            let whole = bytes.len() - 1;
            for end in [0, 4, 6, 7, whole / 2, whole - 1] {
                let result = paint(&mut &bytes[..end.min(whole - 1)], &mut copy);
                prop_assert_eq!(result, Err(TileError::Short));
            }
        }

        #[test]
        fn a_lossy_tile_looks_alike(seed in 0..50u32) {
            let rect = Rect::new(3, 4, 64, 48);
            let mut screen = Framebuffer::new(100, 90).unwrap();
            for row in 0..rect.height {
                for (x, pixel) in (0..).zip(screen.columns_mut(rect.x, rect.y + row, rect.width)) {
                    let (red, green, blue) = (x * 3 + seed, u32::from(row) * 4, x + u32::from(row));
                    *pixel = (red << 16) | (green << 8) | blue;
                }
            }
            let mut bytes = Vec::new();
            prop_assert!(!encode(&screen, rect, Some(80), &mut bytes));
            prop_assert!(bytes.len() < 3 * rect.area() / 3);
            let mut copy = Framebuffer::new(100, 90).unwrap();
            prop_assert_eq!(paint(&mut &bytes[..], &mut copy), Ok(rect));
            for (old, new) in screen.rows(rect).flatten().zip(copy.rows(rect).flatten()) {
                let (old, new) = (old.to_be_bytes(), new.to_be_bytes());
                prop_assert!((0..4).all(|i| old[i].abs_diff(new[i]) < 40), "{old:?} {new:?}");
            }
        }
    }

    #[test]
    fn text_and_drawings_stay_exact_whatever_the_quality() {
        let rect = Rect::new(0, 0, 64, 64);
        let mut bytes = Vec::new();
        assert!(encode(&picture(rect, 40, 1), rect, Some(1), &mut bytes));
    }

    #[test]
    fn what_is_no_tile_is_an_error() {
        let mut screen = Framebuffer::new(100, 90).unwrap();
        let mut result = |bytes: &[u8]| paint(&mut &bytes[..], &mut screen);
        assert_eq!(result(&[0, 0, 0, 0, 64, 0]), Err(TileError::Outside(Rect::new(0, 0, 65, 1))));
        assert_eq!(result(&[0, 99, 0, 0, 1, 0]), Err(TileError::Outside(Rect::new(99, 0, 2, 1))));
        assert_eq!(result(&[0, 0, 0, 0, 0, 0, 4]), Err(TileError::Method(4)));
        let three = [0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 1, 0, 0, 2, 0xc0];
        assert_eq!(result(&three), Err(TileError::Palette));
        assert_eq!(result(&[0, 0, 0, 0, 0, 0, 3, 0, 2, 0xff, 0xd8]), Err(TileError::Jpeg));
        // An image of another size than the tile.
        let rect = Rect::new(0, 0, 64, 64);
        let image = jpeg(rect, &vec![0x12_3456; rect.area()], 50).unwrap();
        let mut bytes = vec![0, 0, 0, 0, 62, 63, 3];
        bytes.put_u16(image.len() as u16);
        bytes.extend(image);
        assert_eq!(result(&bytes), Err(TileError::Jpeg));
    }
}
