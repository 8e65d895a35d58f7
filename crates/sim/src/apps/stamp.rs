//! Messages and datagrams that tell who they are and when they were made: a number and the time in
//! nanoseconds since the start of the simulation, 8 bytes each, and then the pattern of the number.

use std::time::{Duration, Instant};

use crate::{AppError, Clock, Pattern};

/// Bytes of number and time.
const HEADER: usize = 16;

/// The header of a message or datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    pub number: u64,
    /// When the message was made, since the start.
    pub made: Duration,
}

impl Stamp {
    pub fn new(number: u64, made: Instant, clock: &Clock) -> Self {
        Self { number, made: clock.since_start(made) }
    }

    /// A message of `size` bytes, or of the stamp's size if that is larger.
    pub fn message(self, size: usize) -> Vec<u8> {
        let mut data = vec![0; size.max(HEADER)];
        let (header, body) = data.split_at_mut(HEADER);
        header[..8].copy_from_slice(&self.number.to_be_bytes());
        header[8..].copy_from_slice(&(self.made.as_nanos() as u64).to_be_bytes());
        Pattern::new(self.number).fill(0, body);
        data
    }

    /// The stamp of a whole message.
    ///
    /// # Errors
    /// The message is too short, or its bytes differ from the sent ones.
    pub fn of(message: &[u8]) -> Result<Self, AppError> {
        let Some((header, body)) = message.split_first_chunk::<HEADER>() else {
            return Err(AppError(format!("a message of {} bytes", message.len())));
        };
        let read = |bytes: &[u8]| bytes.iter().fold(0, |n, byte| n << 8 | u64::from(*byte));
        let (number, made) = (read(&header[..8]), Duration::from_nanos(read(&header[8..])));
        if Pattern::new(number).mismatch(0, body).is_some() {
            return Err(AppError(format!("message {number} is damaged")));
        }
        Ok(Self { number, made })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_tells_its_stamp_unless_it_is_damaged() {
        let stamp = Stamp { number: 7 << 40, made: Duration::from_nanos(1 << 50) };
        for size in [0, HEADER, 1000] {
            let mut message = stamp.message(size);
            assert_eq!(message.len(), size.max(HEADER));
            assert_eq!(Stamp::of(&message).unwrap(), stamp);
            assert!(Stamp::of(&message[..HEADER - 1]).is_err());
            if let Some(byte) = message.get_mut(HEADER + 500) {
                *byte ^= 1;
                assert!(Stamp::of(&message).is_err());
            }
        }
    }
}
