//! The format of pieces; see the [module](super).

use super::tile::TileError;
use crate::rect::Rect;
use bytes::{Buf, BufMut};

/// Bytes of the largest piece, before and after compression.
pub const MAX_PIECE: usize = 256 * 1024;
/// Pieces that one may name as superseded.
pub const MAX_SUPERSEDED: usize = 64;

/// Why a piece cannot be painted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PieceError {
    /// The piece ends early.
    #[error("a piece of the screen ends early")]
    Short,
    /// The piece has a kind that does not exist.
    #[error("a piece of the screen of unknown kind {0}")]
    Kind(u8),
    /// The piece names more than [`MAX_SUPERSEDED`] pieces, or pieces before the first.
    #[error("a piece of the screen supersedes what does not exist")]
    Superseded,
    /// The piece cannot be decompressed to at most [`MAX_PIECE`] bytes.
    #[error("a piece of the screen cannot be decompressed")]
    Compression,
    /// The piece is not within the screen.
    #[error("a piece of the screen is outside it: {0}")]
    Outside(Rect),
    /// The piece gives the screen an absurd size.
    #[error(transparent)]
    TooLarge(#[from] crate::framebuffer::TooLarge),
    /// The piece paints more pixels than the screen has, though none needs to be painted twice.
    #[error("a piece of the screen paints more than all of it")]
    Overdraw,
    /// A tile of the piece is malformed.
    #[error(transparent)]
    Tile(#[from] TileError),
}

/// The effect of a piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PieceBody<'a> {
    /// Paints tiles, which are encoded one behind the other.
    Tiles(&'a [u8]),
    /// Paints tiles, compressed by zstd.
    Compressed(&'a [u8]),
    /// Copies a rectangle of the screen to another place.
    Copy {
        /// From where.
        from: Rect,
        /// To where.
        to: Rect,
    },
    /// Gives the screen another size.
    Size {
        /// Its columns.
        width: u16,
        /// Its rows.
        height: u16,
    },
}

/// A piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece<'a> {
    /// The update that it is part of.
    pub update: u32,
    /// Distances back from its number to the pieces that must not be painted any more.
    pub superseded: Vec<u16>,
    /// Its effect.
    pub body: PieceBody<'a>,
}

impl<'a> Piece<'a> {
    /// Reads a piece.
    ///
    /// # Errors
    /// It is malformed.
    pub fn decode(mut data: &'a [u8]) -> Result<Self, PieceError> {
        let short = |_| PieceError::Short;
        let update = data.try_get_u32().map_err(short)?;
        let kind = data.try_get_u8().map_err(short)?;
        let count = usize::from(data.try_get_u8().map_err(short)?);
        if count > MAX_SUPERSEDED {
            return Err(PieceError::Superseded);
        }
        let superseded =
            (0..count).map(|_| data.try_get_u16().map_err(short)).collect::<Result<_, _>>()?;
        let mut number = || data.try_get_u16().map_err(short);
        let body = match kind {
            0 => PieceBody::Tiles(data),
            1 => PieceBody::Compressed(data),
            2 => {
                let from = Rect::new(number()?, number()?, number()?, number()?);
                PieceBody::Copy { from, to: Rect { x: number()?, y: number()?, ..from } }
            }
            3 => PieceBody::Size { width: number()?, height: number()? },
            kind => return Err(PieceError::Kind(kind)),
        };
        Ok(Self { update, superseded, body })
    }

    /// Writes it.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.put_u32(self.update);
        out.put_u8(match self.body {
            PieceBody::Tiles(_) => 0,
            PieceBody::Compressed(_) => 1,
            PieceBody::Copy { .. } => 2,
            PieceBody::Size { .. } => 3,
        });
        out.put_u8(u8::try_from(self.superseded.len()).unwrap_or(u8::MAX));
        self.superseded.iter().for_each(|&back| out.put_u16(back));
        match self.body {
            PieceBody::Tiles(data) | PieceBody::Compressed(data) => out.put_slice(data),
            PieceBody::Copy { from, to } => {
                let numbers = [from.x, from.y, from.width, from.height, to.x, to.y];
                numbers.into_iter().for_each(|number| out.put_u16(number));
            }
            PieceBody::Size { width, height } => {
                out.put_u16(width);
                out.put_u16(height);
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces() -> Vec<Piece<'static>> {
        let from = Rect::new(1, 2, 3, 4);
        [
            PieceBody::Tiles(b"tiles"),
            PieceBody::Compressed(b"less"),
            PieceBody::Copy { from, to: Rect::new(500, 6, 3, 4) },
            PieceBody::Size { width: 1920, height: 1080 },
        ]
        .map(|body| Piece { update: 70_000, superseded: vec![1, 300], body })
        .into()
    }

    #[test]
    fn a_piece_is_read_as_it_was_written() {
        for piece in pieces() {
            assert_eq!(Piece::decode(&piece.encode()), Ok(piece));
        }
        let copy = pieces()[2].encode();
        assert_eq!(
            copy,
            *b"\0\x01\x11\x70\x02\x02\0\x01\x01\x2c\0\x01\0\x02\0\x03\0\x04\x01\xf4\0\x06"
        );
    }

    #[test]
    fn a_piece_that_is_cut_off_is_an_error() {
        for piece in pieces() {
            let whole = piece.encode();
            let fixed = if matches!(piece.body, PieceBody::Tiles(_) | PieceBody::Compressed(_)) {
                10
            } else {
                whole.len()
            };
            for end in 0..fixed {
                assert_eq!(Piece::decode(&whole[..end]), Err(PieceError::Short));
            }
        }
        assert_eq!(Piece::decode(b"\0\0\0\0\x09\0"), Err(PieceError::Kind(9)));
        assert_eq!(Piece::decode(b"\0\0\0\0\0\x41"), Err(PieceError::Superseded));
    }
}
