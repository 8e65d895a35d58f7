//! Paints pieces in any order of arrival.

use super::WINDOW;
use super::drawing;
use super::piece::{MAX_PIECE, Piece, PieceBody, PieceError, Pixels, Tiles};
use super::tile::{self, TileError};
use crate::framebuffer::Framebuffer;
use crate::rect::Rect;
use std::collections::BTreeSet;

/// A change to the screen by a piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A rectangle was painted.
    Painted(Rect),
    /// `from` was copied to `to`.
    Copied {
        /// From where.
        from: Rect,
        /// To where.
        to: Rect,
    },
    /// The screen has another size, the size of this rectangle, and is black.
    Resized(Rect),
}

/// A piece that was painted, or left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Painted {
    /// The update that it is part of.
    pub update: u32,
    /// The changes; none if the piece was left out because another piece supersedes it.
    pub changes: Vec<Change>,
    /// Pixels of drawings, which take longer than others.
    drawn: u64,
}

/// How many pixels of others take as long as one of a drawing.
const EFFORT: u64 = 32;

impl Painted {
    /// How many pixels it has written, which can be many for each byte of it. Those of drawings count 32 times,
    /// by the time that they take.
    #[must_use]
    pub fn pixels(&self) -> u64 {
        self.changes.iter().map(Change::pixels).sum::<u64>() + (EFFORT - 1) * self.drawn
    }
}

impl Change {
    fn pixels(&self) -> u64 {
        let rect = match *self {
            Self::Painted(rect) | Self::Copied { to: rect, .. } | Self::Resized(rect) => rect,
        };
        rect.area() as u64
    }
}

/// The receiving end.
#[derive(Debug)]
pub struct Painter {
    screen: Framebuffer,
    /// Pieces that must not be painted any more; all are less than [`WINDOW`] before the newest.
    superseded: BTreeSet<u64>,
    newest: u64,
}

impl Painter {
    /// A painter on a screen.
    #[must_use]
    pub fn new(screen: Framebuffer) -> Self {
        Self { screen, superseded: BTreeSet::new(), newest: 0 }
    }

    /// The contents of the screen.
    #[must_use]
    pub fn screen(&self) -> &Framebuffer {
        &self.screen
    }

    /// Begins again with a new connection after the last one was lost: pieces are numbered from 0 again.
    pub fn resume(&mut self) {
        self.superseded.clear();
        self.newest = 0;
    }

    /// Paints the piece with this number, unless it is superseded.
    ///
    /// # Errors
    /// The piece is malformed, or paints more than the whole screen. The other end does not keep the
    /// protocol, and nothing more can be painted.
    pub fn paint(&mut self, number: u64, data: &[u8]) -> Result<Painted, PieceError> {
        let piece = Piece::decode(data)?;
        self.supersede(number, &piece.superseded)?;
        let late = self.superseded.remove(&number) || number + WINDOW <= self.newest;
        let mut painted = Painted { update: piece.update, changes: Vec::new(), drawn: 0 };
        if !late {
            self.change(&piece.body, &mut painted)?;
        }
        Ok(painted)
    }

    fn supersede(&mut self, number: u64, distances: &[u16]) -> Result<(), PieceError> {
        for &distance in distances {
            let old = number.checked_sub(distance.into()).filter(|_| distance > 0);
            self.superseded.insert(old.ok_or(PieceError::Superseded)?);
        }
        self.newest = self.newest.max(number);
        let oldest = (self.newest + 1).saturating_sub(WINDOW);
        if self.superseded.first().is_some_and(|&first| first < oldest) {
            self.superseded = self.superseded.split_off(&oldest);
        }
        Ok(())
    }

    fn change(&mut self, body: &PieceBody<'_>, painted: &mut Painted) -> Result<(), PieceError> {
        match body {
            PieceBody::Pixels(pixels) => self.pixels(pixels, painted),
            &PieceBody::Size { width, height } => {
                self.screen = Framebuffer::new(width, height)?;
                painted.changes.push(Change::Resized(self.screen.bounds()));
                Ok(())
            }
        }
    }

    fn pixels(&mut self, pixels: &Pixels<'_>, painted: &mut Painted) -> Result<(), PieceError> {
        let mut copied = self.screen.bounds().area();
        for &(from, to) in &pixels.copies {
            for rect in [from, to] {
                if !self.screen.bounds().contains(rect) {
                    return Err(PieceError::Outside(rect));
                }
            }
            copied = copied.checked_sub(to.area()).ok_or(TileError::Overdraw)?;
            self.screen.copy(from, to);
            painted.changes.push(Change::Copied { from, to });
        }
        let mut left = self.screen.bounds().area();
        if let Some(drawings) = pixels.drawings {
            let places = drawing::paint(drawings, &mut self.screen, left)?;
            let area: usize = places.iter().map(|place| place.area()).sum();
            left = left.saturating_sub(area);
            painted.drawn = area as u64;
            painted.changes.extend(places.into_iter().map(Change::Painted));
        }
        match pixels.tiles {
            None => Ok(()),
            Some(Tiles::Plain(tiles)) => self.tiles(tiles, left, painted),
            Some(Tiles::Compressed(tiles)) => {
                let frame = [&tile::ZSTD_MAGIC[..], tiles].concat();
                let tiles = zstd::bulk::decompress(&frame, MAX_PIECE);
                self.tiles(&tiles.map_err(|_| PieceError::Compression)?, left, painted)
            }
        }
    }

    /// Paints tiles of at most `left` pixels.
    fn tiles(
        &mut self,
        mut tiles: &[u8],
        mut left: usize,
        painted: &mut Painted,
    ) -> Result<(), PieceError> {
        while !tiles.is_empty() {
            let rect = tile::paint(&mut tiles, &mut self.screen)?;
            left = left.checked_sub(rect.area()).ok_or(TileError::Overdraw)?;
            painted.changes.push(Change::Painted(rect));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::drawing::DrawingWriter;
    use super::*;

    fn painter() -> Painter {
        Painter::new(Framebuffer::new(64, 64).unwrap())
    }

    fn piece(superseded: &[u16], body: PieceBody<'_>) -> Vec<u8> {
        Piece { update: 5, superseded: superseded.to_vec(), body }.encode()
    }

    fn copy(from: Rect, to: Rect) -> PieceBody<'static> {
        PieceBody::Pixels(Pixels { copies: vec![(from, to)], ..Pixels::default() })
    }

    fn plain(tiles: &[u8]) -> PieceBody<'_> {
        PieceBody::Pixels(Pixels { tiles: Some(Tiles::Plain(tiles)), ..Pixels::default() })
    }

    fn compressed(frame: &[u8]) -> PieceBody<'_> {
        let tiles = Tiles::Compressed(frame.strip_prefix(&tile::ZSTD_MAGIC).unwrap());
        PieceBody::Pixels(Pixels { tiles: Some(tiles), ..Pixels::default() })
    }

    /// A pixel at the corner, in this shade of blue.
    fn dot(blue: u8) -> [u8; 10] {
        [0, 0, 0, 0, 0, 0, 0, 0, 0, blue]
    }

    #[test]
    fn what_is_superseded_is_left_out_however_late_it_comes() {
        let mut painter = painter();
        painter.paint(8, &piece(&[1, 8], plain(&dot(8)))).unwrap();
        for number in [7, 0] {
            let late = painter.paint(number, &piece(&[], plain(&dot(1)))).unwrap();
            assert_eq!(late, Painted { update: 5, changes: vec![], drawn: 0 });
        }
        assert_eq!(painter.screen().pixel(0, 0), Some(8));
        painter.paint(6, &piece(&[], plain(&dot(6)))).unwrap();
        assert_eq!(painter.screen().pixel(0, 0), Some(6));
    }

    #[test]
    fn what_must_be_remembered_is_bounded() {
        let mut painter = painter();
        let back: Vec<u16> = (1..=64).map(|back| back * 500).collect();
        for number in (33_000..400_000).step_by(3) {
            painter.paint(number, &piece(&back, plain(&[]))).unwrap();
            assert!(painter.superseded.len() as u64 <= WINDOW);
        }
        // Older than the window.
        let late = painter.paint(400_000 - 3 - WINDOW, &piece(&[], plain(&dot(1)))).unwrap();
        assert_eq!(late.changes, []);
    }

    #[test]
    fn a_piece_that_expands_without_end_is_refused() {
        let bomb = zstd::bulk::compress(&vec![0; 64 << 20], 19).unwrap();
        assert!(bomb.len() < 8192);
        let result = painter().paint(0, &piece(&[], compressed(&bomb)));
        assert_eq!(result, Err(PieceError::Compression));
    }

    /// Whatever its bytes are, a piece copies no more pixels than the screen has, and paints no more than the screen and
    /// one tile have.
    #[test]
    fn the_work_of_a_piece_is_bounded_by_the_screen_and_counted() {
        let mut painter = painter();
        let whole = painter.screen().bounds();
        let copied = painter.paint(0, &piece(&[], copy(whole, whole))).unwrap();
        assert_eq!(copied.pixels(), 64 * 64);
        // Tiles of the whole screen in one colour: 10 bytes each, and almost none once compressed.
        let tile = [0, 0, 0, 0, 63, 63, 0, 1, 2, 3];
        let painted = painter.paint(1, &piece(&[], plain(&tile))).unwrap();
        assert_eq!(painted.pixels(), 64 * 64);
        let many = zstd::bulk::compress(&tile.repeat(26_000), 1).unwrap();
        assert!(many.len() < 200);
        for body in [compressed(&many), plain(&tile.repeat(2))] {
            let result = painter.paint(2, &piece(&[], body));
            assert_eq!(result, Err(TileError::Overdraw.into()));
        }
        let twice = Pixels { copies: vec![(whole, whole); 2], ..Pixels::default() };
        let result = painter.paint(2, &piece(&[], PieceBody::Pixels(twice)));
        assert_eq!(result, Err(TileError::Overdraw.into()));
        // A drawing takes longer.
        let mut drawings = DrawingWriter::new();
        drawings.push(&painter.screen, Rect::new(0, 0, 64, 32), &[0x01_0203]);
        let drawings = drawings.finish();
        let pixels = |tiles| {
            PieceBody::Pixels(Pixels {
                copies: vec![],
                drawings: Some(&drawings),
                tiles: Some(tiles),
            })
        };
        let half = [0, 0, 0, 32, 63, 31, 0, 1, 2, 3];
        let painted = painter.paint(2, &piece(&[], pixels(Tiles::Plain(&half)))).unwrap();
        assert_eq!(painted.pixels(), 64 * 32 * (32 + 1));
        let result = painter.paint(2, &piece(&[], pixels(Tiles::Plain(&tile))));
        assert_eq!(result, Err(TileError::Overdraw.into()));
        let size =
            painter.paint(3, &piece(&[], PieceBody::Size { width: 200, height: 100 })).unwrap();
        assert_eq!(size.pixels(), 20_000);
        // A piece that is left out costs nothing.
        painter.paint(5, &piece(&[1], plain(&[]))).unwrap();
        let late = painter.paint(4, &piece(&[], copy(whole, whole))).unwrap();
        assert_eq!(late.pixels(), 0);
    }

    #[test]
    fn what_is_outside_the_screen_is_refused() {
        let (inside, outside) = (Rect::new(0, 0, 9, 9), Rect::new(60, 0, 9, 9));
        for (from, to) in [(inside, outside), (outside, inside)] {
            let result = painter().paint(0, &piece(&[], copy(from, to)));
            assert_eq!(result, Err(PieceError::Outside(outside)));
        }
        let huge = piece(&[], PieceBody::Size { width: 65535, height: 65535 });
        assert!(matches!(painter().paint(0, &huge), Err(PieceError::TooLarge(_))));
        for (number, back) in [(3, 4), (3, 0)] {
            let result = painter().paint(number, &piece(&[back], plain(&[])));
            assert_eq!(result, Err(PieceError::Superseded));
        }
    }
}
