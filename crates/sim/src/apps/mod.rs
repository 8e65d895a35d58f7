//! Applications on plain QUIC streams, messages and datagrams.

pub mod bulk;
pub mod datagram;
pub mod echo;
pub mod messages;
pub mod observed;
mod stamp;
pub mod stream;
pub mod updates;

use crate::{AppError, Piece, Quic, Received};

/// How many bytes an application reads or writes at a time.
const CHUNK: usize = 16 * 1024;

/// A number at the beginning of a stream, 8 bytes in big-endian order, which may arrive in pieces.
#[derive(Debug, Default)]
struct Number {
    bytes: [u8; 8],
    have: usize,
}

impl Number {
    /// Takes the missing bytes from the front of `data`, and returns the rest.
    fn take<'a>(&mut self, data: &'a [u8]) -> &'a [u8] {
        let n = data.len().min(self.bytes.len() - self.have);
        let (mine, rest) = data.split_at(n);
        self.bytes[self.have..self.have + n].copy_from_slice(mine);
        self.have += n;
        rest
    }

    /// The number, once it is complete.
    fn get(&self) -> Option<u64> {
        (self.have == self.bytes.len()).then(|| u64::from_be_bytes(self.bytes))
    }
}

/// Reads a stream until there is nothing more for now. Returns whether it has ended.
fn read_all(
    quic: &mut impl Quic,
    stream: u64,
    mut visit: impl FnMut(&[u8]) -> Result<(), AppError>,
) -> Result<bool, AppError> {
    let mut buffer = [0; CHUNK];
    loop {
        match quic.read(stream, &mut buffer)? {
            Received::Data(n) => visit(&buffer[..n])?,
            Received::End => return Ok(true),
            Received::Nothing => return Ok(false),
        }
    }
}

/// Like [`read_all`], with the bytes in any order: `visit` is told where they belong.
fn read_pieces(
    quic: &mut impl Quic,
    stream: u64,
    mut visit: impl FnMut(u64, &[u8]) -> Result<(), AppError>,
) -> Result<bool, AppError> {
    loop {
        match quic.read_piece(stream)? {
            Piece::Data(offset, bytes) => visit(offset, &bytes)?,
            Piece::End => return Ok(true),
            Piece::Nothing => return Ok(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_may_come_in_pieces() {
        let message: Vec<u8> = 77u64.to_be_bytes().into_iter().chain(*b"rest").collect();
        for split in 0..message.len() {
            let mut number = Number::default();
            let rest = [number.take(&message[..split]), number.take(&message[split..])].concat();
            assert_eq!((number.get(), &rest[..]), (Some(77), &b"rest"[..]));
        }
        let mut number = Number::default();
        number.take(&message[..7]);
        assert_eq!(number.get(), None);
    }
}
