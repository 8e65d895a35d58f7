//! The layout of screens (ExtendedDesktopSize of the community's version of the protocol).

use super::wire::{Read, Reader, bounded, put_rect};
use crate::rect::Rect;
use bytes::BufMut as _;

/// The number of screens that a framebuffer may be made of.
pub const MAX_SCREENS: usize = 64;

/// A screen, which shows a part of the framebuffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Screen {
    /// A number by which the server knows the screen.
    pub id: u32,
    /// The part of the framebuffer that it shows.
    pub rect: Rect,
    /// No flag is defined; flags from the other side are to be kept.
    pub flags: u32,
}

impl Screen {
    /// Reads a list of screens. The two sides' messages differ in the unused bytes behind the number.
    pub(super) fn read_all(reader: &mut Reader<'_>, padding: usize) -> Read<Vec<Self>> {
        let count = bounded("a list of screens", reader.u8()?.into(), MAX_SCREENS)?;
        reader.bytes(padding)?;
        (0..count).map(|_| Self::read(reader)).collect()
    }

    fn read(reader: &mut Reader<'_>) -> Read<Self> {
        Ok(Self { id: reader.u32()?, rect: reader.rect()?, flags: reader.u32()? })
    }

    pub(super) fn write(self, out: &mut Vec<u8>) {
        out.put_u32(self.id);
        put_rect(out, self.rect);
        out.put_u32(self.flags);
    }
}
