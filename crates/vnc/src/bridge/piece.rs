//! The format of pieces; see the [module](super).

use super::tile::TileError;
use crate::rect::Rect;
use bytes::{Buf, BufMut};

/// Bytes of the largest piece, before and after compression.
pub const MAX_PIECE: usize = 256 * 1024;
/// Copies of a piece.
pub const MAX_COPIES: usize = 16;
/// Pieces that one may name as superseded.
pub const MAX_SUPERSEDED: usize = 64;

/// Why a piece cannot be painted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PieceError {
    /// The piece ends early.
    #[error("a piece of the screen ends early")]
    Short,
    /// The piece goes on behind its end.
    #[error("a piece of the screen goes on behind its end")]
    Long,
    /// The piece has a number that is too large.
    #[error("a piece of the screen with a number that is too large")]
    Number,
    /// The piece has fields that do not exist, or not together.
    #[error("a piece of the screen with unknown fields {0}")]
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
    /// A tile of the piece is malformed.
    #[error(transparent)]
    Tile(#[from] TileError),
}

/// The effect of a piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PieceBody<'a> {
    /// Changes pixels.
    Pixels(Pixels<'a>),
    /// Gives the screen another size.
    Size {
        /// Its columns.
        width: u16,
        /// Its rows.
        height: u16,
    },
}

/// The pixels that a piece changes: the copies come first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pixels<'a> {
    /// Rectangles of the screen that are copied from one place to another, one after the other.
    pub copies: Vec<(Rect, Rect)>,
    /// Rectangles of few colours; see [`drawing`](super::drawing).
    pub drawings: Option<&'a [u8]>,
    /// Any rectangles; see [`tile`](super::tile).
    pub tiles: Option<Tiles<'a>>,
}

/// Tiles, encoded one behind the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tiles<'a> {
    /// As they are.
    Plain(&'a [u8]),
    /// Compressed by zstd, without the four bytes with which its frames begin.
    Compressed(&'a [u8]),
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

/// What a piece has, as the bits of its second field.
mod has {
    pub const SUPERSEDED: u8 = 1;
    pub const SIZE: u8 = 1 << 1;
    pub const COPY: u8 = 1 << 2;
    pub const DRAWINGS: u8 = 1 << 3;
    pub const TILES: u8 = 1 << 4;
    pub const COMPRESSED: u8 = 1 << 5;
    /// More than one copy.
    pub const COPIES: u8 = 1 << 6;
    /// What comes with a new size.
    pub const WITH_SIZE: u8 = SUPERSEDED | SIZE;
    pub const ALL: u8 = (1 << 7) - 1;
}

/// Takes a number: seven bits in each byte, the lowest first; the highest bit says that more follow.
fn number(data: &mut &[u8]) -> Result<u32, PieceError> {
    let mut value = 0_u32;
    for shift in (0..32).step_by(7) {
        let byte = data.try_get_u8().map_err(|_| PieceError::Short)?;
        value |= u32::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(PieceError::Number)
}

fn small(data: &mut &[u8]) -> Result<u16, PieceError> {
    u16::try_from(number(data)?).map_err(|_| PieceError::Number)
}

fn put_number(out: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        out.put_u8(value as u8 | 0x80);
        value >>= 7;
    }
    out.put_u8(value as u8);
}

impl<'a> Piece<'a> {
    /// Reads a piece.
    ///
    /// # Errors
    /// It is malformed.
    pub fn decode(mut data: &'a [u8]) -> Result<Self, PieceError> {
        let update = number(&mut data)?;
        let fields = data.try_get_u8().map_err(|_| PieceError::Short)?;
        if fields & !has::ALL != 0
            || (fields & has::SIZE != 0 && fields & !has::WITH_SIZE != 0)
            || fields & (has::TILES | has::COMPRESSED) == has::COMPRESSED
            || fields & (has::COPY | has::COPIES) == has::COPIES
        {
            return Err(PieceError::Kind(fields));
        }
        let mut superseded = Vec::new();
        if fields & has::SUPERSEDED != 0 {
            let count = usize::from(small(&mut data)?);
            if count > MAX_SUPERSEDED {
                return Err(PieceError::Superseded);
            }
            superseded = (0..count).map(|_| small(&mut data)).collect::<Result<_, _>>()?;
        }
        let body = if fields & has::SIZE != 0 {
            PieceBody::Size { width: small(&mut data)?, height: small(&mut data)? }
        } else {
            PieceBody::Pixels(Pixels::decode(fields, data)?)
        };
        Ok(Self { update, superseded, body })
    }

    /// Writes it.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_number(&mut out, self.update);
        let names = if self.superseded.is_empty() { 0 } else { has::SUPERSEDED };
        out.put_u8(names | self.body.fields());
        if names != 0 {
            put_number(&mut out, self.superseded.len() as u32);
            self.superseded.iter().for_each(|&back| put_number(&mut out, back.into()));
        }
        match &self.body {
            PieceBody::Pixels(pixels) => pixels.encode(&mut out),
            &PieceBody::Size { width, height } => {
                put_number(&mut out, width.into());
                put_number(&mut out, height.into());
            }
        }
        out
    }
}

impl PieceBody<'_> {
    fn fields(&self) -> u8 {
        let Self::Pixels(pixels) = self else { return has::SIZE };
        let tiles = match pixels.tiles {
            None => 0,
            Some(Tiles::Plain(_)) => has::TILES,
            Some(Tiles::Compressed(_)) => has::TILES | has::COMPRESSED,
        };
        let copy = match pixels.copies.len() {
            0 => 0,
            1 => has::COPY,
            _ => has::COPY | has::COPIES,
        };
        let drawings = if pixels.drawings.is_some() { has::DRAWINGS } else { 0 };
        copy | drawings | tiles
    }
}

impl<'a> Pixels<'a> {
    fn decode(fields: u8, mut data: &'a [u8]) -> Result<Self, PieceError> {
        let mut pixels = Self::default();
        if fields & has::COPY != 0 {
            let mut number = || small(&mut data);
            let count = if fields & has::COPIES != 0 { number()? } else { 1 };
            if usize::from(count) > MAX_COPIES {
                return Err(PieceError::Number);
            }
            for _ in 0..count {
                let from = Rect::new(number()?, number()?, number()?, number()?);
                pixels.copies.push((from, Rect { x: number()?, y: number()?, ..from }));
            }
        }
        let has_tiles = fields & has::TILES != 0;
        if fields & has::DRAWINGS != 0 {
            let size = if has_tiles { number(&mut data)? as usize } else { data.len() };
            pixels.drawings = Some(data.split_off(..size).ok_or(PieceError::Short)?);
        }
        let compressed = fields & has::COMPRESSED != 0;
        let tiles = if compressed { Tiles::Compressed(data) } else { Tiles::Plain(data) };
        pixels.tiles = has_tiles.then_some(tiles);
        if !has_tiles && fields & has::DRAWINGS == 0 && !data.is_empty() {
            return Err(PieceError::Long);
        }
        Ok(pixels)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        if self.copies.len() > 1 {
            put_number(out, self.copies.len() as u32);
        }
        for (from, to) in &self.copies {
            let numbers = [from.x, from.y, from.width, from.height, to.x, to.y];
            numbers.into_iter().for_each(|number| put_number(out, number.into()));
        }
        if let Some(drawings) = self.drawings {
            if self.tiles.is_some() {
                put_number(out, drawings.len() as u32);
            }
            out.put_slice(drawings);
        }
        if let Some(Tiles::Plain(tiles) | Tiles::Compressed(tiles)) = self.tiles {
            out.put_slice(tiles);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_rect() -> impl Strategy<Value = Rect> {
        any::<[u16; 4]>().prop_map(|[x, y, w, h]| Rect::new(x, y, w, h))
    }

    fn any_pixels() -> impl Strategy<Value = PieceBody<'static>> {
        let bytes = || proptest::option::of(0..3_usize);
        let copy = (any_rect(), any::<[u16; 2]>());
        let copies = proptest::collection::vec(copy, 0..=MAX_COPIES);
        (copies, bytes(), bytes(), any::<bool>()).prop_map(
            |(copies, drawings, tiles, compressed)| {
                let bytes = |size: usize| &b"abc"[..size];
                let tiles = tiles.map(bytes);
                let tiles =
                    tiles.map(|t| if compressed { Tiles::Compressed(t) } else { Tiles::Plain(t) });
                let copies = copies
                    .into_iter()
                    .map(|(from, [x, y])| (from, Rect { x, y, ..from }))
                    .collect();
                PieceBody::Pixels(Pixels { copies, drawings: drawings.map(bytes), tiles })
            },
        )
    }

    fn any_piece() -> impl Strategy<Value = Piece<'static>> {
        let size = any::<[u16; 2]>().prop_map(|[width, height]| PieceBody::Size { width, height });
        let superseded = proptest::collection::vec(any::<u16>(), 0..=MAX_SUPERSEDED);
        (any::<u32>(), superseded, prop_oneof![size, any_pixels()])
            .prop_map(|(update, superseded, body)| Piece { update, superseded, body })
    }

    proptest! {
        #[test]
        fn a_piece_is_read_as_it_was_written(piece in any_piece()) {
            let whole = piece.encode();
            for end in 0..whole.len() {
                if let Ok(part) = Piece::decode(&whole[..end]) {
                    // Only what goes on to the end can be cut off unseen.
                    prop_assert!(part != piece && part.superseded == piece.superseded);
                }
            }
            prop_assert_eq!(Piece::decode(&whole), Ok(piece));
        }
    }

    #[test]
    fn a_copy_takes_few_bytes() {
        let from = Rect::new(1, 2, 3, 4);
        let pixels =
            Pixels { copies: vec![(from, Rect { x: 500, y: 6, ..from })], ..Pixels::default() };
        let body = PieceBody::Pixels(pixels);
        let piece = Piece { update: 300, superseded: vec![1, 300], body };
        assert_eq!(piece.encode(), *b"\xac\x02\x05\x02\x01\xac\x02\x01\x02\x03\x04\xf4\x03\x06");
    }

    #[test]
    fn what_is_no_piece_is_an_error() {
        assert_eq!(Piece::decode(b""), Err(PieceError::Short));
        assert_eq!(Piece::decode(b"\0\x80"), Err(PieceError::Kind(0x80)));
        assert_eq!(Piece::decode(b"\0\x06"), Err(PieceError::Kind(6)), "a size and a copy");
        assert_eq!(Piece::decode(b"\0\x20"), Err(PieceError::Kind(0x20)), "nothing is compressed");
        assert_eq!(Piece::decode(b"\0\x01\x41"), Err(PieceError::Superseded));
        assert_eq!(Piece::decode(b"\xff\xff\xff\xff\xff"), Err(PieceError::Number));
        assert_eq!(Piece::decode(b"\0\x02\xff\xff\x7f"), Err(PieceError::Number));
        assert_eq!(Piece::decode(b"\0\x40"), Err(PieceError::Kind(0x40)), "more than no copy");
        assert_eq!(Piece::decode(b"\0\x44\x11"), Err(PieceError::Number));
        assert_eq!(Piece::decode(b"\0\x18\x02a"), Err(PieceError::Short));
        assert_eq!(Piece::decode(b"\0\0\0"), Err(PieceError::Long));
    }
}
