//! Reading and writing the numbers of messages, which are big-endian.

use super::RfbError;
use crate::rect::Rect;
use bytes::{Buf as _, BufMut as _, BytesMut};

/// Why there is no value: more bytes are needed, or the received bytes are wrong.
pub(super) enum Stop {
    Short,
    Bad(RfbError),
}

impl From<RfbError> for Stop {
    fn from(error: RfbError) -> Self {
        Self::Bad(error)
    }
}

pub(super) type Read<T> = Result<T, Stop>;

/// Reads from the front of the received bytes.
pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn bytes(&mut self, len: usize) -> Read<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(len).ok_or(Stop::Short)?;
        self.0 = rest;
        Ok(bytes)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Read<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk().ok_or(Stop::Short)?;
        self.0 = rest;
        Ok(*array)
    }

    pub(super) fn u8(&mut self) -> Read<u8> {
        self.array().map(u8::from_be_bytes)
    }

    pub(super) fn u16(&mut self) -> Read<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Read<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(super) fn i32(&mut self) -> Read<i32> {
        self.array().map(i32::from_be_bytes)
    }

    /// A pixel of [`PixelFormat::RGB32`](super::PixelFormat::RGB32).
    pub(super) fn pixel(&mut self) -> Read<u32> {
        self.array().map(pixel)
    }

    pub(super) fn rect(&mut self) -> Read<Rect> {
        Ok(Rect::new(self.u16()?, self.u16()?, self.u16()?, self.u16()?))
    }

    /// Bytes behind a length of 32 bits, which is at most `max`.
    pub(super) fn counted(&mut self, what: &'static str, max: usize) -> Read<&'a [u8]> {
        let length = self.u32()?;
        let length = bounded(what, length.into(), max)?;
        self.bytes(length)
    }
}

/// A pixel of [`PixelFormat::RGB32`](super::PixelFormat::RGB32).
pub(super) fn pixel(bytes: [u8; 4]) -> u32 {
    u32::from_le_bytes(bytes) & 0x00ff_ffff
}

/// The length that a peer gave, if it is at most `max`.
pub(super) fn bounded(what: &'static str, length: u64, max: usize) -> Result<usize, RfbError> {
    match usize::try_from(length) {
        Ok(length) if length <= max => Ok(length),
        _ => Err(RfbError::TooLong { what, length, max: max as u64 }),
    }
}

/// Takes the value that `read` reads off the front of `input`; `None`, and no bytes, if the value is not
/// there entirely.
pub(super) fn take<T>(
    input: &mut BytesMut,
    read: impl FnOnce(&mut Reader<'_>) -> Read<T>,
) -> Result<Option<T>, RfbError> {
    let mut reader = Reader(input);
    match read(&mut reader) {
        Ok(value) => {
            let rest = reader.0.len();
            input.advance(input.len() - rest);
            Ok(Some(value))
        }
        Err(Stop::Short) => Ok(None),
        Err(Stop::Bad(error)) => Err(error),
    }
}

/// Text of a peer, without characters that would control a terminal.
pub(super) fn text(bytes: &[u8]) -> String {
    let clean = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
    String::from_utf8_lossy(bytes).chars().map(clean).collect()
}

/// Writes text behind its length. Text beyond `max` bytes is left out.
pub(super) fn put_text(out: &mut Vec<u8>, text: &str, max: usize) {
    put_counted(out, &text.as_bytes()[..text.floor_char_boundary(max)], max);
}

/// Writes bytes behind their length. Bytes beyond `max` are left out.
pub(super) fn put_counted(out: &mut Vec<u8>, bytes: &[u8], max: usize) {
    let bytes = &bytes[..bytes.len().min(max)];
    out.put_u32(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
    out.put_slice(bytes);
}

pub(super) fn put_rect(out: &mut Vec<u8>, rect: Rect) {
    let numbers = [rect.x, rect.y, rect.width, rect.height];
    numbers.into_iter().for_each(|number| out.put_u16(number));
}
