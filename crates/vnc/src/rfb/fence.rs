//! Fences (the *Fence* extension of the community's version of the protocol): messages that the other side
//! answers. Both sides send them in the same format.

use super::wire::{Read, Reader, bounded};
use bytes::{BufMut as _, Bytes};

/// Bytes of the longest payload of a fence.
pub const MAX_FENCE: usize = 64;

/// A fence, or the answer to one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fence {
    /// The condition that the fence waits for, and whether it is a request.
    pub flags: u32,
    /// The bytes that the answer repeats; at most [`MAX_FENCE`].
    pub payload: Bytes,
}

impl Fence {
    /// All messages before the fence have taken effect when it is answered.
    pub const BLOCK_BEFORE: u32 = 1;
    /// No message behind the fence is processed before it is answered.
    pub const BLOCK_AFTER: u32 = 1 << 1;
    /// The message behind the fence affects nothing before the answer, and all that is behind it.
    pub const SYNC_NEXT: u32 = 1 << 2;
    /// The fence is to be answered; otherwise it is an answer.
    pub const REQUEST: u32 = 1 << 31;
    /// The flags that an answer repeats.
    const UNDERSTOOD: u32 = Self::BLOCK_BEFORE | Self::BLOCK_AFTER | Self::SYNC_NEXT;

    /// The answer, if one is expected.
    #[must_use]
    pub fn answer(&self) -> Option<Self> {
        let answer = Self { flags: self.flags & Self::UNDERSTOOD, payload: self.payload.clone() };
        (self.flags & Self::REQUEST != 0).then_some(answer)
    }

    /// Reads a fence behind the type of the message.
    pub(super) fn read(reader: &mut Reader<'_>) -> Read<Self> {
        reader.bytes(3)?;
        let flags = reader.u32()?;
        let length = bounded("the payload of a fence", reader.u8()?.into(), MAX_FENCE)?;
        Ok(Self { flags, payload: Bytes::copy_from_slice(reader.bytes(length)?) })
    }

    /// Adds a message of this type. Bytes of the payload beyond [`MAX_FENCE`] are left out.
    pub(super) fn write(&self, kind: u8, out: &mut Vec<u8>) {
        let payload = &self.payload[..self.payload.len().min(MAX_FENCE)];
        out.extend([kind, 0, 0, 0]);
        out.put_u32(self.flags);
        out.push(payload.len() as u8);
        out.extend(payload);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_the_payload_and_the_flags_that_are_understood() {
        let payload = Bytes::from_static(b"this one");
        let request = Fence { flags: u32::MAX, payload: payload.clone() };
        let answer = request.answer().unwrap();
        assert_eq!(answer, Fence { flags: 7, payload });
        assert_eq!(answer.answer(), None);
    }
}
