//! Paints pieces in any order of arrival.

use super::WINDOW;
use super::piece::{MAX_PIECE, Piece, PieceBody, PieceError};
use super::tile;
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
}

impl Painted {
    /// How many pixels it has written, which can be many for each byte of it.
    #[must_use]
    pub fn pixels(&self) -> u64 {
        self.changes.iter().map(Change::pixels).sum()
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
        let changes = if late { Vec::new() } else { self.change(&piece.body)? };
        Ok(Painted { update: piece.update, changes })
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

    fn change(&mut self, body: &PieceBody<'_>) -> Result<Vec<Change>, PieceError> {
        match *body {
            PieceBody::Tiles(tiles) => self.tiles(tiles),
            PieceBody::Compressed(tiles) => {
                let tiles = zstd::bulk::decompress(tiles, MAX_PIECE);
                self.tiles(&tiles.map_err(|_| PieceError::Compression)?)
            }
            PieceBody::Copy { from, to } => {
                for rect in [from, to] {
                    if !self.screen.bounds().contains(rect) {
                        return Err(PieceError::Outside(rect));
                    }
                }
                self.screen.copy(from, to);
                Ok(vec![Change::Copied { from, to }])
            }
            PieceBody::Size { width, height } => {
                self.screen = Framebuffer::new(width, height)?;
                Ok(vec![Change::Resized(self.screen.bounds())])
            }
        }
    }

    fn tiles(&mut self, mut tiles: &[u8]) -> Result<Vec<Change>, PieceError> {
        let (mut changes, mut left) = (Vec::new(), self.screen.bounds().area());
        while !tiles.is_empty() {
            let painted = tile::paint(&mut tiles, &mut self.screen)?;
            left = left.checked_sub(painted.area()).ok_or(PieceError::Overdraw)?;
            changes.push(Change::Painted(painted));
        }
        Ok(changes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn painter() -> Painter {
        Painter::new(Framebuffer::new(64, 64).unwrap())
    }

    fn piece(superseded: &[u16], body: PieceBody<'_>) -> Vec<u8> {
        Piece { update: 5, superseded: superseded.to_vec(), body }.encode()
    }

    /// A pixel at the corner, in this shade of blue.
    fn dot(blue: u8) -> [u8; 10] {
        [0, 0, 0, 0, 0, 0, 0, 0, 0, blue]
    }

    #[test]
    fn what_is_superseded_is_left_out_however_late_it_comes() {
        let mut painter = painter();
        painter.paint(8, &piece(&[1, 8], PieceBody::Tiles(&dot(8)))).unwrap();
        for number in [7, 0] {
            let late = painter.paint(number, &piece(&[], PieceBody::Tiles(&dot(1)))).unwrap();
            assert_eq!(late, Painted { update: 5, changes: vec![] });
        }
        assert_eq!(painter.screen().pixel(0, 0), Some(8));
        painter.paint(6, &piece(&[], PieceBody::Tiles(&dot(6)))).unwrap();
        assert_eq!(painter.screen().pixel(0, 0), Some(6));
    }

    #[test]
    fn what_must_be_remembered_is_bounded() {
        let mut painter = painter();
        let back: Vec<u16> = (1..=64).map(|back| back * 500).collect();
        for number in (33_000..400_000).step_by(3) {
            painter.paint(number, &piece(&back, PieceBody::Tiles(&[]))).unwrap();
            assert!(painter.superseded.len() as u64 <= WINDOW);
        }
        // Older than the window.
        let late =
            painter.paint(400_000 - 3 - WINDOW, &piece(&[], PieceBody::Tiles(&dot(1)))).unwrap();
        assert_eq!(late.changes, []);
    }

    #[test]
    fn a_piece_that_expands_without_end_is_refused() {
        let bomb = zstd::bulk::compress(&vec![0; 64 << 20], 19).unwrap();
        assert!(bomb.len() < 8192);
        let result = painter().paint(0, &piece(&[], PieceBody::Compressed(&bomb)));
        assert_eq!(result, Err(PieceError::Compression));
    }

    /// Whatever its bytes are, a piece writes no more pixels than the screen and one tile have.
    #[test]
    fn the_work_of_a_piece_is_bounded_by_the_screen_and_counted() {
        let mut painter = painter();
        let whole = painter.screen().bounds();
        let copied =
            painter.paint(0, &piece(&[], PieceBody::Copy { from: whole, to: whole })).unwrap();
        assert_eq!(copied.pixels(), 64 * 64);
        // Tiles of the whole screen in one colour: 10 bytes each, and almost none once compressed.
        let tile = [0, 0, 0, 0, 63, 63, 0, 1, 2, 3];
        let painted = painter.paint(1, &piece(&[], PieceBody::Tiles(&tile))).unwrap();
        assert_eq!(painted.pixels(), 64 * 64);
        let many = zstd::bulk::compress(&tile.repeat(26_000), 1).unwrap();
        assert!(many.len() < 200);
        for body in [PieceBody::Compressed(&many), PieceBody::Tiles(&tile.repeat(2))] {
            let result = painter.paint(2, &piece(&[], body));
            assert_eq!(result, Err(PieceError::Overdraw));
        }
        let size =
            painter.paint(3, &piece(&[], PieceBody::Size { width: 200, height: 100 })).unwrap();
        assert_eq!(size.pixels(), 20_000);
        // A piece that is left out costs nothing.
        painter.paint(5, &piece(&[1], PieceBody::Tiles(&[]))).unwrap();
        let late =
            painter.paint(4, &piece(&[], PieceBody::Copy { from: whole, to: whole })).unwrap();
        assert_eq!(late.pixels(), 0);
    }

    #[test]
    fn what_is_outside_the_screen_is_refused() {
        let (inside, outside) = (Rect::new(0, 0, 9, 9), Rect::new(60, 0, 9, 9));
        for (from, to) in [(inside, outside), (outside, inside)] {
            let result = painter().paint(0, &piece(&[], PieceBody::Copy { from, to }));
            assert_eq!(result, Err(PieceError::Outside(outside)));
        }
        let huge = piece(&[], PieceBody::Size { width: 65535, height: 65535 });
        assert!(matches!(painter().paint(0, &huge), Err(PieceError::TooLarge(_))));
        for (number, back) in [(3, 4), (3, 0)] {
            let result = painter().paint(number, &piece(&[back], PieceBody::Tiles(&[])));
            assert_eq!(result, Err(PieceError::Superseded));
        }
    }
}
