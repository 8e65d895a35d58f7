//! The ServerInit message (RFC 6143, section 7.3.2).

use super::PixelFormat;
use super::wire::{Read, Reader, put_text, text};
use bytes::BufMut as _;

/// Bytes of the longest name of a desktop.
pub const MAX_NAME: usize = 4096;

/// A server's description of its desktop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerInit {
    /// The width of the framebuffer.
    pub width: u16,
    /// The height of the framebuffer.
    pub height: u16,
    /// The format of pixels until the client sets another one.
    pub format: PixelFormat,
    /// The name of the desktop.
    pub name: String,
}

impl ServerInit {
    pub(super) fn read(reader: &mut Reader<'_>) -> Read<Self> {
        Ok(Self {
            width: reader.u16()?,
            height: reader.u16()?,
            format: PixelFormat::parse(&reader.array()?)?,
            name: read_name(reader)?,
        })
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.put_u16(self.width);
        out.put_u16(self.height);
        self.format.write(out);
        put_text(out, &self.name, MAX_NAME);
    }
}

/// The name of a desktop behind its length.
pub(super) fn read_name(reader: &mut Reader<'_>) -> Read<String> {
    Ok(text(reader.counted("the name of the desktop", MAX_NAME)?))
}
