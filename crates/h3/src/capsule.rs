//! The capsule protocol (RFC 9297 section 3): typed messages in the data of an exchange that agreed on
//! it.

use bytes::{Buf, Bytes, BytesMut};

use crate::codec::{VARINT_MAX, put_varint, take_varint};

/// Largest accepted value of a capsule, in bytes, unless its type is skipped.
pub const MAX_CAPSULE_SIZE: usize = 64 << 10;

/// A capsule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capsule {
    /// Its type, below 2^62.
    pub kind: u64,
    /// Its value.
    pub value: Bytes,
}

/// Why no capsule could be read. The exchange is to be abandoned with
/// [`Code::DATAGRAM_ERROR`](crate::Code::DATAGRAM_ERROR) (RFC 9297 section 3.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CapsuleError {
    /// The value of a capsule exceeds [`MAX_CAPSULE_SIZE`].
    #[error("capsule larger than the limit")]
    TooLarge,
    /// The data ends within a capsule.
    #[error("capsule cut short")]
    Incomplete,
}

impl Capsule {
    /// The type of DATAGRAM capsules, which carry HTTP datagrams reliably (RFC 9297 section 3.5).
    pub const DATAGRAM: u64 = 0x00;

    /// The bytes to send as body. A type of more than 62 bits is brought into range.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let mut out = Vec::with_capacity(self.value.len() + 16);
        put_varint(&mut out, self.kind.min(VARINT_MAX));
        put_varint(&mut out, self.value.len() as u64);
        out.extend_from_slice(&self.value);
        out.into()
    }
}

/// Reads capsules from the data of an exchange. It holds less than one capsule of a wanted type, and no bytes
/// of other capsules, which are skipped (RFC 9297 section 3.2).
#[derive(Debug)]
pub struct CapsuleReader {
    wanted: Vec<u64>,
    held: BytesMut,
    /// Bytes that are still to be skipped.
    skip: u64,
}

impl CapsuleReader {
    /// A reader of capsules of the types in `wanted`.
    #[must_use]
    pub fn new(wanted: &[u64]) -> Self {
        Self { wanted: wanted.to_vec(), held: BytesMut::new(), skip: 0 }
    }

    /// Adds the next data. Call [`Self::read`] until it returns `None` before adding more.
    pub fn push(&mut self, mut data: &[u8]) {
        let skipped = self.skip.min(data.len() as u64);
        self.skip -= skipped;
        data = data.get(skipped as usize..).unwrap_or_default();
        self.held.extend_from_slice(data);
    }

    /// The next capsule, once it is complete.
    ///
    /// # Errors
    /// It exceeds the limit.
    pub fn read(&mut self) -> Result<Option<Capsule>, CapsuleError> {
        loop {
            let mut rest = self.held.as_ref();
            let (Some(kind), Some(len)) = (take_varint(&mut rest), take_varint(&mut rest)) else {
                return Ok(None);
            };
            let header = self.held.len() - rest.len();
            if !self.wanted.contains(&kind) {
                self.held.advance(header);
                let here = len.min(self.held.len() as u64);
                self.held.advance(here as usize);
                self.skip = len - here;
                continue;
            }
            let len = usize::try_from(len).unwrap_or(usize::MAX);
            if len > MAX_CAPSULE_SIZE {
                return Err(CapsuleError::TooLarge);
            }
            if self.held.len() - header < len {
                return Ok(None);
            }
            self.held.advance(header);
            return Ok(Some(Capsule { kind, value: self.held.split_to(len).freeze() }));
        }
    }

    /// Checks that the data may end here (RFC 9297 section 3.3).
    ///
    /// # Errors
    /// It ends within a capsule.
    pub fn finish(&self) -> Result<(), CapsuleError> {
        if self.held.is_empty() && self.skip == 0 { Ok(()) } else { Err(CapsuleError::Incomplete) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn capsule(kind: u64, len: usize) -> Capsule {
        Capsule { kind, value: vec![kind as u8; len].into() }
    }

    /// The capsules in `bytes`, given to a reader in pieces.
    fn read(bytes: &[u8], step: usize) -> Result<Vec<Capsule>, CapsuleError> {
        let mut reader = CapsuleReader::new(&[Capsule::DATAGRAM, 0x40]);
        let mut capsules = Vec::new();
        for piece in bytes.chunks(step) {
            reader.push(piece);
            while let Some(capsule) = reader.read()? {
                capsules.push(capsule);
            }
            assert!(reader.held.len() <= MAX_CAPSULE_SIZE + 16);
        }
        reader.finish().map(|()| capsules)
    }

    #[test]
    fn what_is_too_large_or_cut_is_an_error() {
        let bytes = capsule(0, MAX_CAPSULE_SIZE + 1).encode();
        assert_eq!(read(&bytes[..5], 5), Err(CapsuleError::TooLarge));
        for cut in [1, 2, 4] {
            assert_eq!(read(&capsule(0, 3).encode()[..cut], 1), Err(CapsuleError::Incomplete));
            assert_eq!(read(&capsule(1, 3).encode()[..cut], 1), Err(CapsuleError::Incomplete));
        }
        assert_eq!(read(&[], 1), Ok(Vec::new()));
    }

    proptest! {
        #[test]
        fn capsules_survive_any_split_and_others_are_skipped(
            sent in prop::collection::vec((0u64..4, 0usize..300), 0..8), step in 1usize..400,
        ) {
            let sent: Vec<Capsule> =
                sent.iter().map(|(kind, len)| capsule(kind * 0x40, *len)).collect();
            let bytes: Vec<u8> = sent.iter().flat_map(Capsule::encode).collect();
            let expected: Vec<Capsule> =
                sent.into_iter().filter(|capsule| capsule.kind <= 0x40).collect();
            prop_assert_eq!(read(&bytes, step), Ok(expected));
        }
    }
}
