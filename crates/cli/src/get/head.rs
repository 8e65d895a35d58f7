//! The heads of responses.

use sutura::http::Response;

/// The head of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    pub status: u16,
    fields: Vec<(String, Vec<u8>)>,
}

impl From<Response> for Head {
    fn from(response: Response) -> Self {
        Self { status: response.status, fields: response.fields }
    }
}

impl Head {
    /// The first value of a field.
    pub fn field(&self, name: &str) -> Option<&[u8]> {
        self.fields.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_slice())
    }

    /// The length of the body, as the head says.
    pub fn content_length(&self) -> Option<u64> {
        std::str::from_utf8(self.field("content-length")?).ok()?.trim().parse().ok()
    }

    /// The head as curl writes it: a line for the status and one for each field, and an empty one.
    pub fn as_text(&self) -> Vec<u8> {
        let mut text = format!("HTTP/3 {}\r\n", self.status).into_bytes();
        for (name, value) in &self.fields {
            text.extend([name.as_bytes(), b": ", value, b"\r\n"].concat());
        }
        text.extend(b"\r\n");
        text
    }

    /// For tests: a head with these fields.
    #[cfg(test)]
    pub fn of(status: u16, fields: &[(&str, &str)]) -> Self {
        let fields = fields.iter().map(|(n, v)| ((*n).to_owned(), v.as_bytes().to_vec()));
        Self { status, fields: fields.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_written_and_read() {
        let head = Head::of(200, &[("content-length", "12"), ("x", "a"), ("x", "b")]);
        assert_eq!(head.as_text(), b"HTTP/3 200\r\ncontent-length: 12\r\nx: a\r\nx: b\r\n\r\n");
        assert_eq!(head.field("x"), Some(&b"a"[..]));
        assert_eq!((head.field("y"), head.content_length()), (None, Some(12)));
        assert_eq!(Head::of(200, &[("content-length", "a")]).content_length(), None);
    }
}
