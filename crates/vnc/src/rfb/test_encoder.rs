//! Encoders for tests, which use everything that a decoder has to know. Their choices depend on the pixels
//! only.

use super::decoder::{
    ANY_SUBRECTS, BACKGROUND_SPECIFIED, FOREGROUND_SPECIFIED, RAW, SUBRECTS_COLOURED, TILE,
};
use super::wire::put_rect;
use super::{PixelFormat, encoding};
use crate::framebuffer::Framebuffer;
use crate::rect::Rect;
use bytes::BufMut as _;

fn put_pixel(out: &mut Vec<u8>, pixel: u32) {
    PixelFormat::RGB32.encode(pixel, out);
}

fn put_raw(out: &mut Vec<u8>, screen: &Framebuffer, rect: Rect) {
    screen.rows(rect).for_each(|row| PixelFormat::RGB32.encode_row(row, out));
}

/// The runs of one colour in the rows of a rectangle, relative to its corner, without runs of the background.
fn runs(screen: &Framebuffer, rect: Rect, background: u32) -> Vec<(u32, Rect)> {
    let mut runs = Vec::new();
    for (y, row) in (0..).zip(screen.rows(rect)) {
        let mut x = 0;
        for run in row.chunk_by(|a, b| a == b) {
            let width = run.len() as u16;
            if run[0] != background {
                runs.push((run[0], Rect::new(x, y, width, 1)));
            }
            x += width;
        }
    }
    runs
}

/// Adds a rectangle of the screen in an encoding.
pub(super) fn put(out: &mut Vec<u8>, screen: &Framebuffer, rect: Rect, encoding: i32) {
    put_rect(out, rect);
    out.put_i32(encoding);
    match encoding {
        encoding::RAW => put_raw(out, screen, rect),
        encoding::RRE => {
            let background = screen.pixel(rect.x, rect.y).unwrap_or_default();
            let runs = runs(screen, rect, background);
            out.put_u32(runs.len() as u32);
            put_pixel(out, background);
            for (pixel, run) in runs {
                put_pixel(out, pixel);
                put_rect(out, run);
            }
        }
        encoding::HEXTILE => put_hextile(out, screen, rect),
        other => panic!("no encoder for {other}"),
    }
}

fn put_hextile(out: &mut Vec<u8>, screen: &Framebuffer, rect: Rect) {
    let (mut background, mut foreground) = (None, None);
    for y in (rect.y..rect.y + rect.height).step_by(TILE.into()) {
        for x in (rect.x..rect.x + rect.width).step_by(TILE.into()) {
            let tile = Rect::new(x, y, TILE, TILE).intersection(rect).unwrap();
            put_tile(out, screen, tile, &mut background, &mut foreground);
        }
    }
}

fn put_tile(
    out: &mut Vec<u8>,
    screen: &Framebuffer,
    tile: Rect,
    old_background: &mut Option<u32>,
    old_foreground: &mut Option<u32>,
) {
    let background = screen.pixel(tile.x, tile.y);
    let runs = runs(screen, tile, background.unwrap());
    if runs.len() > 60 {
        out.push(RAW);
        return put_raw(out, screen, tile);
    }
    let coloured = runs.iter().any(|&(pixel, _)| pixel != runs[0].0);
    let foreground = runs.first().map(|&(pixel, _)| pixel).filter(|_| !coloured);
    let mut kind = 0;
    if background != *old_background {
        kind |= BACKGROUND_SPECIFIED;
    }
    if foreground.is_some() && foreground != *old_foreground {
        kind |= FOREGROUND_SPECIFIED;
    }
    if !runs.is_empty() {
        kind |= ANY_SUBRECTS;
    }
    if coloured {
        kind |= SUBRECTS_COLOURED;
    }
    out.push(kind);
    if kind & BACKGROUND_SPECIFIED != 0 {
        put_pixel(out, background.unwrap());
        *old_background = background;
    }
    if kind & FOREGROUND_SPECIFIED != 0 {
        put_pixel(out, foreground.unwrap());
        *old_foreground = foreground;
    }
    if !runs.is_empty() {
        out.push(runs.len() as u8);
    }
    for (pixel, run) in runs {
        if coloured {
            put_pixel(out, pixel);
        }
        out.push((run.x as u8) << 4 | run.y as u8);
        out.push((run.width as u8 - 1) << 4);
    }
}

/// The header of an update.
pub(super) fn update(rectangles: u16) -> Vec<u8> {
    let mut out = vec![0, 0];
    out.put_u16(rectangles);
    out
}

/// The header of a rectangle.
pub(super) fn rectangle(rect: Rect, encoding: i32) -> Vec<u8> {
    let mut out = Vec::new();
    put_rect(&mut out, rect);
    out.put_i32(encoding);
    out
}
