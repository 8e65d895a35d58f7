//! Field sections: ordered lists of names and values.

use bytes::Bytes;

/// Bytes that RFC 9114 section 4.2.2 counts for a field besides its name and value.
pub const FIELD_OVERHEAD: u64 = 32;

/// The lines for which a request has room before more are added.
const USUAL_LINES: usize = 8;

/// One field line. Names of pseudo-header fields start with a colon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// The name, in lower case.
    pub name: Bytes,
    /// The value.
    pub value: Bytes,
    /// Whether it must never be added to a compression table, here or at an intermediary (the N bit
    /// of RFC 9204 section 4.5.4).
    pub sensitive: bool,
}

impl Field {
    /// A field that may be compressed.
    pub fn new(name: impl Into<Bytes>, value: impl Into<Bytes>) -> Self {
        Self { name: name.into(), value: value.into(), sensitive: false }
    }

    /// Its size in bytes, as SETTINGS_MAX_FIELD_SECTION_SIZE counts it.
    #[must_use]
    pub fn size(&self) -> u64 {
        (self.name.len() as u64 + self.value.len() as u64).saturating_add(FIELD_OVERHEAD)
    }
}

/// A field section in the order of its lines.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fields {
    lines: Vec<Field>,
}

impl Fields {
    /// A section without lines.
    #[must_use]
    pub const fn new() -> Self {
        Self { lines: Vec::new() }
    }

    /// A section without lines, and room for some.
    pub(crate) fn with_capacity(lines: usize) -> Self {
        Self { lines: Vec::with_capacity(lines) }
    }

    /// A section with the pseudo-header fields of a request (RFC 9114 section 4.3.1).
    pub fn request(
        method: impl Into<Bytes>,
        scheme: impl Into<Bytes>,
        authority: impl Into<Bytes>,
        path: impl Into<Bytes>,
    ) -> Self {
        Self::with_capacity(USUAL_LINES)
            .with(":method", method)
            .with(":scheme", scheme)
            .with(":authority", authority)
            .with(":path", path)
    }

    /// A section with the pseudo-header field of a response (RFC 9114 section 4.3.2).
    #[must_use]
    pub fn response(status: u16) -> Self {
        let digits = [100, 10, 1].map(|place| b'0' + (status / place % 10) as u8);
        if (100..1000).contains(&status) {
            Self::new().with(":status", Bytes::copy_from_slice(&digits))
        } else {
            Self::new().with(":status", status.to_string())
        }
    }

    /// Adds a line and returns the section.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<Bytes>) -> Self {
        self.push(Field::new(name, value));
        self
    }

    /// Adds a line at the end.
    pub fn push(&mut self, field: Field) {
        self.lines.push(field);
    }

    /// The value of the first line with this name.
    #[must_use]
    pub fn get(&self, name: impl AsRef<[u8]>) -> Option<&[u8]> {
        let name = name.as_ref();
        self.lines.iter().find(|field| field.name == name).map(|field| field.value.as_ref())
    }

    /// The values of all lines with this name, in order.
    pub fn get_all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.lines
            .iter()
            .filter(move |field| field.name == name.as_bytes())
            .map(|field| field.value.as_ref())
    }

    /// The status code, if this is the head of a response.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        parse_status(self.get(":status")?)
    }

    /// The lines in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Field> {
        self.lines.iter()
    }

    /// How many lines there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// The section's size in bytes, as SETTINGS_MAX_FIELD_SECTION_SIZE counts it (RFC 9114 section
    /// 4.2.2).
    #[must_use]
    pub fn size(&self) -> u64 {
        self.lines.iter().fold(0, |sum, field| sum.saturating_add(field.size()))
    }
}

impl<'a> IntoIterator for &'a Fields {
    type Item = &'a Field;
    type IntoIter = std::slice::Iter<'a, Field>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl IntoIterator for Fields {
    type Item = Field;
    type IntoIter = std::vec::IntoIter<Field>;

    fn into_iter(self) -> Self::IntoIter {
        self.lines.into_iter()
    }
}

impl FromIterator<Field> for Fields {
    fn from_iter<I: IntoIterator<Item = Field>>(lines: I) -> Self {
        Self { lines: lines.into_iter().collect() }
    }
}

/// Parses a status code of three digits.
pub(crate) fn parse_status(value: &[u8]) -> Option<u16> {
    (value.len() == 3).then(|| parse_number(value)).flatten()?.try_into().ok()
}

pub(crate) fn parse_number(digits: &[u8]) -> Option<u64> {
    let add = |value: u64, &byte: &u8| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        value.checked_mul(10)?.checked_add(digit)
    };
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0, add)
}
