//! Writing the messages of an update.

use super::super::decoder::{BACKGROUND_SPECIFIED, TILE};
use super::super::server_message::{FRAMEBUFFER_UPDATE, SET_COLOUR_MAP_ENTRIES};
use super::super::wire::{put_rect, put_text};
use super::super::{Cursor, MAX_NAME, PixelFormat, Screen, encoding};
use super::support::Support;
use crate::framebuffer::Framebuffer;
use crate::rect::Rect;
use bytes::BufMut as _;

/// Writes one FramebufferUpdate (RFC 6143, section 7.6.1), whose number of rectangles is known at its end.
pub(super) struct Update<'a> {
    format: PixelFormat,
    out: &'a mut Vec<u8>,
    /// The position of the number of rectangles.
    count_at: usize,
    /// The number of rectangles: a viewer never has 65535 copies, dirty rectangles and news together.
    count: u16,
}

impl<'a> Update<'a> {
    pub(super) fn new(format: PixelFormat, out: &'a mut Vec<u8>) -> Self {
        out.extend([FRAMEBUFFER_UPDATE, 0, 0, 0]);
        let count_at = out.len() - 2;
        Self { format, out, count_at, count: 0 }
    }

    /// Writes the number of rectangles.
    pub(super) fn finish(self) {
        self.out[self.count_at..][..2].copy_from_slice(&self.count.to_be_bytes());
    }

    fn header(&mut self, rect: Rect, encoding: i32) {
        self.count += 1;
        put_rect(self.out, rect);
        self.out.put_i32(encoding);
    }

    /// A new size for viewers that know nothing else about it.
    pub(super) fn desktop_size(&mut self, bounds: Rect) {
        self.header(bounds, encoding::DESKTOP_SIZE);
    }

    /// The size and the only screen. The reason is 1 if the rectangle answers a viewer's request, whose
    /// result is `status`.
    pub(super) fn extended_desktop_size(&mut self, reason: u16, status: u16, bounds: Rect) {
        let rect = Rect { x: reason, y: status, ..bounds };
        self.header(rect, encoding::EXTENDED_DESKTOP_SIZE);
        self.out.extend([1, 0, 0, 0]);
        Screen { id: 0, rect: bounds, flags: 0 }.write(self.out);
    }

    pub(super) fn cursor(&mut self, cursor: &Cursor) {
        self.count += 1;
        cursor.write(self.format, self.out);
    }

    pub(super) fn desktop_name(&mut self, name: &str) {
        self.header(Rect::default(), encoding::DESKTOP_NAME);
        put_text(self.out, name, MAX_NAME);
    }

    /// Keys may be sent with their places on the keyboard.
    pub(super) fn extended_keys(&mut self) {
        self.header(Rect::default(), encoding::EXTENDED_KEYS);
    }

    pub(super) fn copy_rect(&mut self, from: Rect, to: Rect) {
        self.header(to, encoding::COPY_RECT);
        self.out.put_u16(from.x);
        self.out.put_u16(from.y);
    }

    /// A rectangle of the screen, which is within it.
    pub(super) fn pixels(&mut self, rect: Rect, screen: &Framebuffer, support: Support) {
        match single_colour(rect, screen) {
            Some(pixel) if support.rre => {
                self.header(rect, encoding::RRE);
                self.out.put_u32(0);
                self.format.encode(pixel, self.out);
            }
            Some(pixel) if support.hextile => {
                self.header(rect, encoding::HEXTILE);
                let tiles = [rect.width, rect.height].map(|edge| usize::from(edge.div_ceil(TILE)));
                self.out.push(BACKGROUND_SPECIFIED);
                self.format.encode(pixel, self.out);
                // A tile whose background is that of the previous tile needs no further data.
                self.out.put_bytes(0, tiles[0] * tiles[1] - 1);
            }
            _ => {
                self.header(rect, encoding::RAW);
                self.out.reserve(rect.area() * self.format.bytes_per_pixel());
                screen.rows(rect).for_each(|row| self.format.encode_row(row, self.out));
            }
        }
    }
}

/// The colour of a rectangle that has only one.
fn single_colour(rect: Rect, screen: &Framebuffer) -> Option<u32> {
    let first = screen.pixel(rect.x, rect.y)?;
    let mut rows = screen.rows(rect);
    rows.all(|row| row.iter().all(|&pixel| pixel == first)).then_some(first)
}

/// Writes a SetColourMapEntries (RFC 6143, section 7.6.2) with all entries.
pub(super) fn set_colour_map_entries(out: &mut Vec<u8>) {
    let map = PixelFormat::colour_map();
    out.extend([SET_COLOUR_MAP_ENTRIES, 0, 0, 0]);
    out.put_u16(map.len() as u16);
    map.flatten().for_each(|part| out.put_u16(part));
}
