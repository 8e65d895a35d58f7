//! The contents of a screen.

use crate::rect::Rect;

/// Pixels of the largest screen, which take 64 MiB: 5120x2880 and 4096x4096 are below this.
pub const MAX_PIXELS: usize = 1 << 24;
/// Bytes of the largest framebuffer.
pub const MAX_FRAMEBUFFER: usize = 4 * MAX_PIXELS;

/// A screen has more than [`MAX_PIXELS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a screen of {width}x{height} pixels is larger than {MAX_PIXELS} pixels")]
pub struct TooLarge {
    width: u16,
    height: u16,
}

/// The pixels of a screen, row by row. A pixel is `0x00RRGGBB`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Framebuffer {
    width: u16,
    height: u16,
    pixels: Vec<u32>,
}

impl Framebuffer {
    /// A black screen.
    ///
    /// # Errors
    /// It is larger than [`MAX_PIXELS`].
    pub fn new(width: u16, height: u16) -> Result<Self, TooLarge> {
        let area = Rect::new(0, 0, width, height).area();
        if area > MAX_PIXELS {
            return Err(TooLarge { width, height });
        }
        Ok(Self { width, height, pixels: vec![0; area] })
    }

    /// Bytes that its pixels take.
    #[must_use]
    pub fn bytes(&self) -> usize {
        size_of_val(&self.pixels[..])
    }

    /// The number of columns.
    #[must_use]
    pub fn width(&self) -> u16 {
        self.width
    }

    /// The number of rows.
    #[must_use]
    pub fn height(&self) -> u16 {
        self.height
    }

    /// The rectangle of all pixels.
    #[must_use]
    pub fn bounds(&self) -> Rect {
        Rect::new(0, 0, self.width, self.height)
    }

    /// A pixel; `None` outside.
    #[must_use]
    pub fn pixel(&self, x: u16, y: u16) -> Option<u32> {
        self.row(y).get(usize::from(x)).copied()
    }

    /// Changes the size; pixels within both sizes stay, the rest is black.
    ///
    /// # Errors
    /// The new size is larger than [`MAX_PIXELS`].
    pub fn resize(&mut self, width: u16, height: u16) -> Result<(), TooLarge> {
        let mut new = Self::new(width, height)?;
        if let Some(common) = self.bounds().intersection(new.bounds()) {
            new.take(self, common);
        }
        *self = new;
        Ok(())
    }

    /// A row of the screen; empty below the last.
    fn row(&self, y: u16) -> &[u32] {
        let width = usize::from(self.width);
        let start = width * usize::from(y);
        self.pixels.get(start..start + width).unwrap_or_default()
    }

    /// The rows of a rectangle, from the top. The part outside the screen is left out.
    pub fn rows(&self, rect: Rect) -> impl Iterator<Item = &[u32]> {
        let rect = self.bounds().intersection(rect).unwrap_or_default();
        (0..rect.height).map(move |row| self.columns(rect.x, rect.y + row, rect.width))
    }

    /// `width` pixels of a row, which are within the screen.
    fn columns(&self, x: u16, y: u16, width: u16) -> &[u32] {
        &self.row(y)[usize::from(x)..][..usize::from(width)]
    }

    /// `width` pixels of a row that are to be changed, starting at a column. The part outside the screen is
    /// left out.
    pub fn columns_mut(&mut self, x: u16, y: u16, width: u16) -> &mut [u32] {
        let Some(inside) = self.bounds().intersection(Rect::new(x, y, width, 1)) else {
            return &mut [];
        };
        let start = usize::from(y) * usize::from(self.width) + usize::from(x);
        &mut self.pixels[start..start + usize::from(inside.width)]
    }

    /// Gives a rectangle one colour. The part outside the screen is left out.
    pub fn fill(&mut self, rect: Rect, pixel: u32) {
        for row in 0..rect.height {
            let Some(y) = rect.y.checked_add(row) else { return };
            self.columns_mut(rect.x, y, rect.width).fill(pixel);
        }
    }

    /// Copies the rectangle `from` to the place `to` of the same size; they may overlap. Does nothing unless
    /// both are within the screen.
    pub fn copy(&mut self, from: Rect, to: Rect) {
        let bounds = self.bounds();
        // An empty rectangle is within the screen wherever it is.
        if from.is_empty()
            || !bounds.contains(from)
            || !bounds.contains(to)
            || (from.width, from.height) != (to.width, to.height)
        {
            return;
        }
        let width = usize::from(self.width);
        let mut copy_row = |row: u16| {
            let source = usize::from(from.y + row) * width + usize::from(from.x);
            let target = usize::from(to.y + row) * width + usize::from(to.x);
            self.pixels.copy_within(source..source + usize::from(from.width), target);
        };
        // A row must be read before it is overwritten.
        if to.y <= from.y {
            (0..from.height).for_each(&mut copy_row);
        } else {
            (0..from.height).rev().for_each(&mut copy_row);
        }
    }

    /// Takes a rectangle over from another screen. The part outside either screen is left out.
    pub fn take(&mut self, other: &Self, rect: Rect) {
        let Some(rect) =
            self.bounds().intersection(rect).and_then(|r| other.bounds().intersection(r))
        else {
            return;
        };
        for (y, row) in (rect.y..).zip(other.rows(rect)) {
            self.columns_mut(rect.x, y, rect.width).copy_from_slice(row);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn numbered(width: u16, height: u16) -> Framebuffer {
        let mut screen = Framebuffer::new(width, height).unwrap();
        (0..).zip(&mut screen.pixels).for_each(|(number, pixel)| *pixel = number);
        screen
    }

    #[test]
    fn a_screen_of_absurd_size_is_refused() {
        assert_eq!(Framebuffer::new(4096, 4096).map(|screen| screen.bytes()), Ok(MAX_FRAMEBUFFER));
        let error = Framebuffer::new(65535, 65535).unwrap_err();
        assert_eq!(
            error.to_string(),
            "a screen of 65535x65535 pixels is larger than 16777216 pixels"
        );
        let mut screen = numbered(3, 3);
        assert!(screen.resize(65535, 300).is_err());
        assert_eq!(screen, numbered(3, 3));
    }

    #[test]
    fn what_is_in_both_sizes_stays() {
        let mut screen = numbered(3, 2);
        screen.resize(2, 3).unwrap();
        assert_eq!(screen.pixels, [0, 1, 3, 4, 0, 0]);
        screen.resize(0, 5).unwrap();
        assert!(screen.bounds().is_empty());
    }

    #[test]
    fn nothing_outside_the_screen_is_touched() {
        let mut screen = numbered(4, 4);
        screen.fill(Rect::new(3, 3, 900, 900), 77);
        screen.fill(Rect::new(900, 65535, 9, 9), 77);
        assert_eq!(screen.pixels.iter().filter(|&&pixel| pixel == 77).count(), 1);
        assert_eq!(screen.rows(Rect::new(2, 3, 9, 9)).collect::<Vec<_>>(), [[14, 77]]);
        let before = screen.clone();
        screen.copy(Rect::new(2, 2, 3, 3), Rect::new(0, 0, 3, 3));
        screen.copy(Rect::new(0, 0, 1, 2), Rect::new(0, 0, 2, 1));
        screen.copy(Rect::new(9, 9, 0, 900), Rect::new(65535, 65535, 0, 900));
        assert_eq!(screen, before);
    }

    proptest! {
        #[test]
        fn copies_may_overlap(x in 0..6u16, y in 0..6u16, to_x in 0..6u16, to_y in 0..6u16, w in 1..5u16, h in 1..5u16) {
            let (from, to) = (Rect::new(x, y, w, h), Rect::new(to_x, to_y, w, h));
            let (before, mut screen) = (numbered(10, 10), numbered(10, 10));
            screen.copy(from, to);
            for (x, y) in (0..10).flat_map(|x| (0..10).map(move |y| (x, y))) {
                let inside = to.contains(Rect::new(x, y, 1, 1));
                let (old_x, old_y) = if inside { (x - to.x + from.x, y - to.y + from.y) } else { (x, y) };
                prop_assert_eq!(screen.pixel(x, y), before.pixel(old_x, old_y));
            }
        }
    }
}
