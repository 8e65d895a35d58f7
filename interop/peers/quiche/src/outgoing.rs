//! Bytes on their way into a stream.

use quiche::Connection;

/// The bytes to send on a stream, which may take only a part of them at a time.
pub struct Outgoing {
    bytes: Vec<u8>,
    sent: usize,
    ended: bool,
}

impl Outgoing {
    pub fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, sent: 0, ended: false }
    }

    /// Whether the stream has taken all bytes and its end.
    pub fn is_ended(&self) -> bool {
        self.ended
    }

    /// Gives the stream as many bytes as it takes. `write` gets the remaining bytes, and returns how many the
    /// stream took.
    pub fn send_with<E>(
        &mut self,
        mut write: impl FnMut(&[u8]) -> Result<usize, E>,
    ) -> Result<(), E> {
        while !self.ended {
            let taken = write(&self.bytes[self.sent..])?;
            self.sent += taken;
            self.ended = self.sent == self.bytes.len();
            if taken == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Gives the stream of a connection as many bytes as it takes.
    pub fn send(&mut self, connection: &mut Connection, stream: u64) -> Result<(), quiche::Error> {
        match self.send_with(|rest| connection.stream_send(stream, rest, true)) {
            Err(quiche::Error::Done) => Ok(()),
            result => result,
        }
    }
}
