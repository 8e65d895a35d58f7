//! Parts of responses (RFC 9110 section 14).

use std::str::FromStr;

/// The ranges of `--range`, such as `0-99`, `100-`, `-500` or `0-9,20-29`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ByteRanges(String);

impl ByteRanges {
    const SYNTAX: &str = "expected ranges of bytes such as 0-99, 100-, -500 or 0-9,20-29";

    /// The value of the `range` field.
    pub fn field(&self) -> String {
        format!("bytes={}", self.0)
    }
}

impl FromStr for ByteRanges {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        for range in text.split(',') {
            let (first, last) = range.trim().split_once('-').ok_or(Self::SYNTAX)?;
            match (first, last) {
                ("", last) => drop(number(last).ok_or(Self::SYNTAX)?),
                (first, "") => drop(number(first).ok_or(Self::SYNTAX)?),
                (first, last) => {
                    let (first, last) = number(first).zip(number(last)).ok_or(Self::SYNTAX)?;
                    if first > last {
                        return Err(format!("{first}-{last} ends before it begins"));
                    }
                }
            }
        }
        Ok(Self(text.replace(' ', "")))
    }
}

/// Where `--continue-at` goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContinueAt {
    /// Where the existing file ends.
    End,
    /// At this byte.
    Byte(u64),
}

impl FromStr for ContinueAt {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "-" => Ok(Self::End),
            _ => number(text)
                .map(Self::Byte)
                .ok_or("expected a number of bytes, or - for the size of the existing file"),
        }
    }
}

/// The value of a `content-range` field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentRange {
    /// These bytes of a representation, whose length may be known.
    Part { first: u64, last: u64, total: Option<u64> },
    /// The length of a representation that has no such bytes.
    Unsatisfied { total: u64 },
}

impl ContentRange {
    /// Reads a value; `None` if it is malformed, or about other units than bytes.
    pub fn parse(value: &[u8]) -> Option<Self> {
        let (unit, rest) = std::str::from_utf8(value).ok()?.trim().split_once(' ')?;
        if !unit.eq_ignore_ascii_case("bytes") {
            return None;
        }
        let (range, total) = rest.trim().split_once('/')?;
        let total = if total == "*" { None } else { Some(number(total)?) };
        if range == "*" {
            return Some(Self::Unsatisfied { total: total? });
        }
        let (first, last) = range.split_once('-')?;
        let (first, last) = (number(first)?, number(last)?);
        let is_sound = first <= last && total.is_none_or(|total| last < total);
        is_sound.then_some(Self::Part { first, last, total })
    }
}

/// A number without a sign.
fn number(text: &str) -> Option<u64> {
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// A strong validator: only with such a one, parts of two responses belong together (RFC 9110 section 8.8.3).
pub fn strong_etag(value: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(value).ok()?;
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    let is_opaque = |byte: u8| byte == 0x21 || (0x23..=0x7e).contains(&byte);
    inner.bytes().all(is_opaque).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ranges_are_read_and_checked() {
        for (text, field) in [
            ("0-99", "bytes=0-99"),
            ("100-", "bytes=100-"),
            ("-500", "bytes=-500"),
            ("0-0, 5-", "bytes=0-0,5-"),
        ] {
            assert_eq!(text.parse::<ByteRanges>().map(|ranges| ranges.field()), Ok(field.into()));
        }
        for text in ["", "-", "5", "9-1", "a-b", "0-1,", "+1-2", "0--1", "0-18446744073709551616"] {
            assert!(text.parse::<ByteRanges>().is_err(), "{text}");
        }
        assert_eq!("-".parse(), Ok(ContinueAt::End));
        assert_eq!("7".parse(), Ok(ContinueAt::Byte(7)));
        for text in ["", "+7", "-7", "x"] {
            assert!(text.parse::<ContinueAt>().is_err(), "{text}");
        }
    }

    #[test]
    fn content_ranges_are_read() {
        let part = |first, last, total| Some(ContentRange::Part { first, last, total });
        for (value, range) in [
            ("bytes 0-99/1234", part(0, 99, Some(1234))),
            ("Bytes 5-5/*", part(5, 5, None)),
            ("bytes */10", Some(ContentRange::Unsatisfied { total: 10 })),
            ("bytes */*", None),
            ("bytes 5-4/10", None),
            ("bytes 0-10/10", None),
            ("bytes=0-9/10", None),
            ("items 0-9/10", None),
            ("bytes +0-9/10", None),
            ("", None),
        ] {
            assert_eq!(ContentRange::parse(value.as_bytes()), range, "{value}");
        }
    }

    #[test]
    fn weak_and_malformed_validators_do_not_count() {
        assert_eq!(strong_etag(b"\"a-1\""), Some("\"a-1\"".into()));
        for etag in [&b"W/\"a\""[..], b"a", b"\"", b"\"a\"b\"", b"\"a b\"", b"\"\xff\""] {
            assert_eq!(strong_etag(etag), None);
        }
    }

    proptest! {
        #[test]
        fn parts_come_back(first: u64, length in 0_u64..1 << 40, rest in proptest::option::of(1_u64..1 << 40)) {
            let first = first >> 1;
            let last = first + length;
            let total = rest.map(|rest| last + rest);
            let shown = total.map_or("*".to_owned(), |total| total.to_string());
            let value = format!("bytes {first}-{last}/{shown}");
            prop_assert_eq!(ContentRange::parse(value.as_bytes()), Some(ContentRange::Part { first, last, total }));
        }

        #[test]
        fn no_value_panics(value in "(bytes )?[0-9*/ -]{0,30}", raw: Vec<u8>) {
            if let Some(ContentRange::Part { first, last, total }) = ContentRange::parse(value.as_bytes()) {
                prop_assert!(first <= last && total.is_none_or(|total| last < total));
            }
            let _ = (ContentRange::parse(&raw), strong_etag(&raw));
            if let Ok(ranges) = value.parse::<ByteRanges>() {
                prop_assert_eq!(ranges.field().strip_prefix("bytes=").unwrap().parse(), Ok(ranges));
            }
        }
    }
}
