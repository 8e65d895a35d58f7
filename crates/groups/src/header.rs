//! The header of a stream of an ordered group.
//!
//! ```text
//! Message {
//!   Group (i),         twice the number of the group
//!   Number (i),        of the message within its group, from 0
//!   Free (i),          how many messages directly before it need not come first
//!   Count (i),         at most 32
//!   Back (i) ...       Count distances to messages that come first all the same
//!   Data (..)          to the end of the stream
//! }
//!
//! Notice {
//!   Group (i),         twice the number of the group, plus 1
//!   End (i),           0, or one more than the number of messages that the group has in the end
//!   Cancelled { First (i), Length (i) } ...   to the end of the stream
//! }
//! ```
//!
//! Messages below Number - Free are before the last fence, so that fences themselves are not sent. With
//! less than 64 messages from one fence to the next and numbers below 16384, a header takes five bytes.

use super::MAX_AFTER;
use smallvec::SmallVec;
use std::ops::Range;
use sutura_proto::coding::{Reader, UnexpectedEnd, VARINT_MAX, put_varint};

/// Which messages come before one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Before {
    /// All messages below this number.
    pub fence: u64,
    /// Single messages, not below the fence.
    pub after: SmallVec<[u64; 2]>,
}

/// The header of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The number of the group.
    pub group: u64,
    /// The number of the message.
    pub number: u64,
    /// The messages that come before it.
    pub before: Before,
}

/// The sender's notice of messages that will not come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// The number of the group.
    pub group: u64,
    /// How many messages the group has in the end, once that is known.
    pub end: Option<u64>,
    /// The numbers of messages that were cancelled.
    pub cancelled: Vec<Range<u64>>,
}

/// The kind of a stream, according to its first bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamKind {
    /// A message; the rest of the stream is its data.
    Message(Header),
    /// A notice about a group. Its rest is read with [`Notice::decode`] once the stream is complete.
    Notice,
}

/// Why the beginning of a stream is not a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum GroupHeaderError {
    /// The bytes are the beginning of a header.
    Incomplete,
    /// The bytes break the rules.
    Invalid(&'static str),
}

impl From<UnexpectedEnd> for GroupHeaderError {
    fn from(_: UnexpectedEnd) -> Self {
        Self::Incomplete
    }
}

/// The most bytes that a header of a message takes.
pub const MAX_HEADER: usize = 8 * (4 + MAX_AFTER);
/// The most ranges in a notice.
pub const MAX_CANCELLED: usize = 64;
/// The most bytes that a notice takes.
pub const MAX_NOTICE: usize = 8 * (2 + 2 * MAX_CANCELLED);

/// Reads the first bytes of a stream. Returns its kind, and for a message the size of the header.
///
/// # Errors
/// The bytes are not enough, or do not begin a stream of a group.
pub fn decode(bytes: &[u8]) -> Result<(StreamKind, usize), GroupHeaderError> {
    let mut reader = Reader::new(bytes);
    let group = reader.varint()?;
    if group & 1 == 1 {
        return Ok((StreamKind::Notice, 0));
    }
    let (number, free, count) = (reader.varint()?, reader.varint()?, reader.varint()?);
    let fence = number.checked_sub(free).ok_or(GroupHeaderError::Invalid("a fence below 0"))?;
    if count > MAX_AFTER as u64 {
        return Err(GroupHeaderError::Invalid("too many messages to come after"));
    }
    let mut after = SmallVec::new();
    for _ in 0..count {
        let back = reader.varint()?;
        if back == 0 || back > free {
            return Err(GroupHeaderError::Invalid(
                "a message to come after is not behind the fence",
            ));
        }
        after.push(number - back);
    }
    let header = Header { group: group >> 1, number, before: Before { fence, after } };
    Ok((StreamKind::Message(header), bytes.len() - reader.remaining()))
}

impl Header {
    /// Appends the header to `out`. Leaves out messages of `after` that are below the fence, since they come
    /// first anyway.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let Self { group, number, before: Before { fence, after } } = self;
        let after = || after.iter().filter(|id| *id >= fence && *id < number);
        put_varint(out, group << 1);
        put_varint(out, *number);
        put_varint(out, number.saturating_sub(*fence));
        put_varint(out, after().count() as u64);
        after().for_each(|id| put_varint(out, number - id));
    }
}

impl Notice {
    /// Appends the notice to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.group << 1 | 1);
        put_varint(out, self.end.map_or(0, |end| end + 1));
        for range in &self.cancelled {
            put_varint(out, range.start);
            put_varint(out, range.end - range.start);
        }
    }

    /// Reads a whole notice.
    ///
    /// # Errors
    /// The bytes are not a notice.
    pub fn decode(bytes: &[u8]) -> Result<Self, GroupHeaderError> {
        let mut reader = Reader::new(bytes);
        let (group, end) = (reader.varint()?, reader.varint()?);
        let mut cancelled = Vec::new();
        while !reader.is_empty() {
            let (first, length) = (reader.varint()?, reader.varint()?);
            let end = first.checked_add(length).filter(|end| *end <= VARINT_MAX);
            let end = end.ok_or(GroupHeaderError::Invalid("cancels beyond the last number"))?;
            if cancelled.len() == MAX_CANCELLED {
                return Err(GroupHeaderError::Invalid("cancels too many ranges"));
            }
            cancelled.push(first..end);
        }
        Ok(Self { group: group >> 1, end: end.checked_sub(1), cancelled })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(number: u64, fence: u64, after: &[u64]) -> Header {
        Header { group: 3, number, before: Before { fence, after: after.into() } }
    }

    #[test]
    fn headers_are_short_and_come_back() {
        for (header, size) in [
            (header(0, 0, &[]), 4),
            (header(16_383, 16_320, &[]), 5),
            (header(16_384, 0, &[]), 10),
            (header(90, 70, &[71, 89]), 7),
        ] {
            let mut out = Vec::new();
            header.encode(&mut out);
            assert_eq!(out.len(), size, "{header:?}");
            for end in 0..size {
                assert_eq!(decode(&out[..end]), Err(GroupHeaderError::Incomplete));
            }
            out.extend(b"data");
            assert_eq!(decode(&out), Ok((StreamKind::Message(header), size)));
        }
        let mut out = Vec::new();
        header(90, 70, &[3, 71]).encode(&mut out);
        assert_eq!(decode(&out), Ok((StreamKind::Message(header(90, 70, &[71])), 6)));
    }

    #[test]
    fn what_breaks_the_rules_is_refused() {
        let decode = |values: &[u64]| {
            let mut out = Vec::new();
            values.iter().for_each(|value| put_varint(&mut out, *value));
            decode(&out).map(|(kind, _)| kind)
        };
        assert!(matches!(decode(&[6, 5, 6, 0]), Err(GroupHeaderError::Invalid(_))));
        assert!(matches!(decode(&[6, 5, 2, 1, 0]), Err(GroupHeaderError::Invalid(_))));
        assert!(matches!(decode(&[6, 5, 2, 1, 3]), Err(GroupHeaderError::Invalid(_))));
        assert!(matches!(decode(&[6, 5, 5, 33]), Err(GroupHeaderError::Invalid(_))));
        assert_eq!(decode(&[6, 5, 2, 1, 2]), Ok(StreamKind::Message(header(5, 3, &[3]))));
        assert_eq!(decode(&[7]), Ok(StreamKind::Notice));
    }

    #[test]
    fn notices_come_back() {
        for (end, cancelled) in
            [(None, &[][..]), (Some(0), &[3..5, 7..8]), (Some(9), &[0..1, 4..8])]
        {
            let notice = Notice { group: 70, end, cancelled: cancelled.to_vec() };
            let mut out = Vec::new();
            notice.encode(&mut out);
            assert!(out.len() <= MAX_NOTICE);
            assert_eq!(Notice::decode(&out), Ok(notice));
        }
        let mut out = Vec::new();
        [141, 0, VARINT_MAX, 1].iter().for_each(|value| put_varint(&mut out, *value));
        assert!(matches!(Notice::decode(&out), Err(GroupHeaderError::Invalid(_))));
    }
}
