//! The CRYPTO stream of one packet number space (RFC 9000 sections 7.5 and 19.6). It holds only a
//! few kilobytes, so it keeps everything in plain buffers.

use crate::error::{TransportError, TransportErrorCode};
use crate::wire::range_set::RangeSet;
use std::ops::Range;

/// How many handshake bytes may arrive ahead of the bytes that TLS has taken: at least 4096 (RFC 9000 section
/// 7.5).
pub const MAX_CRYPTO_BUFFER: u64 = 64 * 1024;

/// How many gaps these bytes may have: packets get lost and reordered, but not by the hundreds
/// during a handshake.
pub const MAX_CRYPTO_GAPS: usize = 128;

/// Both directions of a CRYPTO stream.
#[derive(Debug, Default)]
pub struct CryptoStream {
    /// The bytes written to this stream, from offset `base` on.
    out: Vec<u8>,
    /// Offset of the first byte that is kept: all bytes before it were acknowledged.
    base: u64,
    /// Offset of the first byte that was never sent.
    unsent: u64,
    /// Lost bytes that must be sent again.
    lost: RangeSet,
    acked: RangeSet,
    /// Received bytes from offset `taken` on; holes are zero.
    input: Vec<u8>,
    have: RangeSet,
    /// How many bytes TLS has taken.
    taken: u64,
}

impl CryptoStream {
    /// A stream on which nothing was sent or received.
    pub const fn new() -> Self {
        Self {
            out: Vec::new(),
            base: 0,
            unsent: 0,
            lost: RangeSet::new(),
            acked: RangeSet::new(),
            input: Vec::new(),
            have: RangeSet::new(),
            taken: 0,
        }
    }

    /// The buffer to which TLS appends its output.
    pub fn output(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    /// Bytes of storage, in both directions.
    pub fn storage(&self) -> usize {
        self.out.capacity() + self.input.capacity()
    }

    /// The next bytes to send, at most `max`; lost bytes go first.
    pub fn next_range(&self, max: usize) -> Option<Range<u64>> {
        let range = match self.lost.iter().next() {
            Some(range) => range,
            None => self.unsent..self.end(),
        };
        let end = range.end.min(range.start.saturating_add(max as u64));
        (range.start < end).then_some(range.start..end)
    }

    /// Offset of the end of all bytes ever written.
    fn end(&self) -> u64 {
        self.base + self.out.len() as u64
    }

    /// Whether there is anything to send.
    pub fn has_output(&self) -> bool {
        self.next_range(1).is_some()
    }

    /// Marks the bytes at `range` as sent and returns them. [`next_range`](Self::next_range) must
    /// have returned that range.
    pub fn send(&mut self, range: Range<u64>) -> &[u8] {
        self.lost.remove(range.clone());
        self.unsent = self.unsent.max(range.end);
        let kept = |offset: u64| offset.checked_sub(self.base).map(|at| at as usize);
        kept(range.start)
            .zip(kept(range.end))
            .and_then(|(start, end)| self.out.get(start..end))
            .unwrap_or_default()
    }

    /// Handles the acknowledgement of the bytes at `range`. Once all bytes are acknowledged, their memory is
    /// given back.
    pub fn on_acked(&mut self, range: Range<u64>) {
        self.lost.remove(range.clone());
        self.acked.insert(range);
        let end = self.end();
        if !self.out.is_empty() && self.acked.contains_range(&(self.base..end)) {
            (self.base, self.out) = (end, Vec::new());
        }
    }

    /// Handles the loss of the packet that carried the bytes at `range`.
    pub fn on_lost(&mut self, range: Range<u64>) {
        self.lost.insert(range);
        for acked in self.acked.iter() {
            self.lost.remove(acked);
        }
    }

    /// Queues everything unacknowledged to be sent again, because a probe has nothing better to
    /// carry.
    pub fn resend_unacked(&mut self) {
        self.on_lost(0..self.unsent);
    }

    /// Stores received bytes.
    ///
    /// # Errors
    /// More than [`MAX_CRYPTO_BUFFER`] bytes are ahead of the bytes that TLS has taken, or they have more
    /// than [`MAX_CRYPTO_GAPS`] gaps.
    pub fn receive(&mut self, offset: u64, data: &[u8]) -> Result<(), TransportError> {
        let exceeded =
            |reason| Err(TransportError::new(TransportErrorCode::CRYPTO_BUFFER_EXCEEDED, reason));
        let end = offset.saturating_add(data.len() as u64);
        if end > self.taken + MAX_CRYPTO_BUFFER {
            return exceeded("too much handshake data out of order");
        }
        if end <= self.taken || data.is_empty() {
            return Ok(());
        }
        let start = offset.max(self.taken);
        let data = &data[(start - offset) as usize..];
        let at = (start - self.taken) as usize;
        if self.input.len() < at + data.len() {
            self.input.resize(at + data.len(), 0);
        }
        self.input[at..at + data.len()].copy_from_slice(data);
        self.have.insert(start..end);
        if self.have.len() > MAX_CRYPTO_GAPS {
            return exceeded("handshake data in too many pieces");
        }
        Ok(())
    }

    /// Takes the next contiguous bytes.
    pub fn take_input(&mut self) -> Option<Vec<u8>> {
        let first = self.have.iter().next().filter(|r| r.start == self.taken)?;
        let rest = self.input.split_off((first.end - first.start) as usize);
        self.taken = first.end;
        self.have.remove(first);
        Some(std::mem::replace(&mut self.input, rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_sent_once_and_again_when_lost() {
        let mut s = CryptoStream::default();
        s.output().extend_from_slice(&[7; 100]);
        assert_eq!(s.next_range(60), Some(0..60));
        assert_eq!(s.send(0..60).len(), 60);
        assert_eq!(s.next_range(60), Some(60..100));
        s.send(60..100);
        assert!(!s.has_output());
        s.on_lost(0..60);
        s.on_acked(10..20);
        assert_eq!(s.next_range(60), Some(0..10));
        s.send(0..10);
        assert_eq!(s.next_range(60), Some(20..60));
        s.on_acked(20..60);
        assert!(!s.has_output());
        s.resend_unacked();
        assert_eq!(s.next_range(60), Some(0..10));
    }

    #[test]
    fn what_has_arrived_takes_no_memory() {
        let mut s = CryptoStream::default();
        s.output().extend_from_slice(b"hello");
        s.send(0..5);
        s.on_acked(0..2);
        s.on_lost(2..5);
        assert_eq!(s.send(2..5), b"llo");
        s.on_acked(2..5);
        assert_eq!(s.storage(), 0);
        // A late report of the first copy changes nothing.
        s.on_lost(0..5);
        s.resend_unacked();
        assert!(!s.has_output());
        s.output().extend_from_slice(b"ticket");
        assert_eq!(s.next_range(100), Some(5..11));
        assert_eq!(s.send(5..11), b"ticket");
        s.on_lost(5..11);
        assert_eq!(s.next_range(100), Some(5..11));
    }

    #[test]
    fn input_is_taken_in_order_whatever_came_first() {
        let mut s = CryptoStream::default();
        s.receive(5, b"fghij").unwrap();
        assert_eq!(s.take_input(), None);
        s.receive(0, b"abcdefg").unwrap();
        assert_eq!(s.take_input().unwrap(), b"abcdefghij");
        s.receive(3, b"defghijkl").unwrap();
        assert_eq!(s.take_input().unwrap(), b"kl");
        s.receive(0, b"abc").unwrap();
        assert_eq!(s.take_input(), None);
    }

    #[test]
    fn input_is_bounded() {
        let mut s = CryptoStream::default();
        let error = s.receive(MAX_CRYPTO_BUFFER, b"x").unwrap_err();
        assert_eq!(error.code, TransportErrorCode::CRYPTO_BUFFER_EXCEEDED);
        s.receive(u64::MAX >> 2, b"x").unwrap_err();
        s.receive(MAX_CRYPTO_BUFFER - 1, b"x").unwrap();
        assert!(s.input.len() as u64 <= MAX_CRYPTO_BUFFER);
    }

    #[test]
    fn pieces_are_bounded() {
        let mut s = CryptoStream::default();
        let taken = (1..).step_by(2).take_while(|offset| s.receive(*offset, b"x").is_ok()).count();
        assert_eq!(taken, MAX_CRYPTO_GAPS);
        assert_eq!(s.have.len(), MAX_CRYPTO_GAPS + 1);
    }
}
