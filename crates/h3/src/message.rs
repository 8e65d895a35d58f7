//! Well-formed messages (RFC 9114 sections 4.1 to 4.3): which fields a request, a response and a
//! trailer section may and must have.

use crate::fields::{Field, Fields, parse_number, parse_status};

/// Why a message is malformed (RFC 9114 section 4.1.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// A name is empty or has invalid characters, such as upper case letters.
    #[error("invalid field name")]
    InvalidName,
    /// A value has control characters, or starts or ends with white space.
    #[error("invalid field value")]
    InvalidValue,
    /// A pseudo-header field follows a regular field, or is among trailers.
    #[error("misplaced pseudo-header field")]
    MisplacedPseudo,
    /// A pseudo-header field is not defined for this kind of message.
    #[error("unexpected pseudo-header field")]
    UnexpectedPseudo,
    /// A pseudo-header field occurs twice.
    #[error("repeated pseudo-header field")]
    RepeatedPseudo,
    /// A mandatory pseudo-header field is missing.
    #[error("missing {0}")]
    Missing(&'static str),
    /// A pseudo-header field has an invalid value.
    #[error("invalid {0}")]
    Invalid(&'static str),
    /// A field is specific to connections of HTTP/1.1.
    #[error("connection-specific field")]
    ConnectionSpecific,
    /// `:authority` and `Host` differ or are both missing.
    #[error(":authority and host missing or different")]
    Authority,
    /// `content-length` is not a number or has conflicting values.
    #[error("invalid content-length")]
    ContentLength,
    /// The body is longer or shorter than `content-length`, or present where none is permitted.
    #[error("body and content-length differ")]
    BodyLength,
}

impl MessageError {
    /// The error without details, for a reason phrase.
    pub(crate) const fn reason(self) -> &'static str {
        match self {
            Self::InvalidName => "invalid field name",
            Self::InvalidValue => "invalid field value",
            Self::MisplacedPseudo => "misplaced pseudo-header field",
            Self::UnexpectedPseudo => "unexpected pseudo-header field",
            Self::RepeatedPseudo => "repeated pseudo-header field",
            Self::Missing(_) => "missing pseudo-header field",
            Self::Invalid(_) => "invalid pseudo-header field",
            Self::ConnectionSpecific => "connection-specific field",
            Self::Authority => ":authority and host missing or different",
            Self::ContentLength => "invalid content-length",
            Self::BodyLength => "body and content-length differ",
        }
    }
}

/// How a request's method changes the rest of the exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Method {
    /// The response has no body.
    Head,
    /// The stream becomes a tunnel.
    Connect,
    #[default]
    Other,
}

/// Properties of a well-formed request's head that matter for the rest of the exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestHead {
    pub(crate) method: Method,
    pub(crate) content_length: Option<u64>,
    /// Whether it is an extended CONNECT (RFC 8441 section 4), which must have been agreed on.
    pub(crate) extended: bool,
}

/// Properties of a well-formed response's head that matter for its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ResponseHead {
    pub(crate) status: u16,
    pub(crate) content_length: Option<u64>,
}

impl ResponseHead {
    /// Whether a final response follows.
    pub(crate) const fn is_interim(&self) -> bool {
        self.status < 200
    }

    /// The length of the body in bytes, as far as known.
    pub(crate) const fn body_length(&self, request: Method) -> Option<u64> {
        match (request, self.status) {
            (Method::Head, _) | (_, 204 | 304) => Some(0),
            (Method::Connect, 200..=299) => None,
            _ => self.content_length,
        }
    }
}

/// The pseudo-header fields of a message.
#[derive(Default)]
struct Pseudo<'a> {
    method: Option<&'a [u8]>,
    scheme: Option<&'a [u8]>,
    authority: Option<&'a [u8]>,
    path: Option<&'a [u8]>,
    protocol: Option<&'a [u8]>,
    status: Option<&'a [u8]>,
}

impl<'a> Pseudo<'a> {
    fn set(&mut self, field: &'a Field) -> Result<(), MessageError> {
        let slot = match field.name.as_ref() {
            b":method" => &mut self.method,
            b":scheme" => &mut self.scheme,
            b":authority" => &mut self.authority,
            b":path" => &mut self.path,
            b":protocol" => &mut self.protocol,
            b":status" => &mut self.status,
            _ => return Err(MessageError::UnexpectedPseudo),
        };
        match slot.replace(&field.value) {
            None => Ok(()),
            Some(_) => Err(MessageError::RepeatedPseudo),
        }
    }
}

/// What a section has that matters for the message, apart from its well-formed lines.
#[derive(Default)]
struct Lines<'a> {
    pseudo: Pseudo<'a>,
    /// The value of `host`.
    host: Option<&'a [u8]>,
    /// Whether there are different values of `host`.
    hosts_differ: bool,
    /// The value of `content-length`.
    length: Option<u64>,
    /// Whether it is no number or has conflicting values.
    bad_length: bool,
}

impl<'a> Lines<'a> {
    /// Checks every line and collects the pseudo-header fields, which must come first.
    fn check(fields: &'a Fields) -> Result<Self, MessageError> {
        let mut lines = Self::default();
        let mut regular = false;
        for field in fields {
            check_value(&field.value)?;
            if field.name.first() == Some(&b':') {
                if regular {
                    return Err(MessageError::MisplacedPseudo);
                }
                lines.pseudo.set(field)?;
            } else {
                regular = true;
                check_regular(field)?;
                lines.note(field);
            }
        }
        Ok(lines)
    }

    /// Takes note of a regular field. Repeated equal values count as one.
    fn note(&mut self, field: &'a Field) {
        match field.name.as_ref() {
            b"host" => {
                let host = field.value.as_ref();
                self.hosts_differ |= *self.host.get_or_insert(host) != host;
            }
            b"content-length" => {
                let length = parse_number(&field.value);
                self.bad_length |= length.is_none() || self.length.or(length) != length;
                self.length = length;
            }
            _ => {}
        }
    }

    /// The value of `content-length` (RFC 9110 section 8.6).
    fn content_length(&self) -> Result<Option<u64>, MessageError> {
        if self.bad_length { Err(MessageError::ContentLength) } else { Ok(self.length) }
    }
}

/// RFC 9110 section 5.5: visible characters, with spaces and tabs between.
fn check_value(value: &[u8]) -> Result<(), MessageError> {
    let is_space = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    let has_control = value.iter().fold(false, |any, &byte| any | CONTROL[usize::from(byte)]);
    if has_control || is_space(value.first()) || is_space(value.last()) {
        return Err(MessageError::InvalidValue);
    }
    Ok(())
}

/// RFC 9110 section 5.1 and RFC 9114 section 4.2: a token in lower case that is not specific to the
/// connection.
fn check_regular(field: &Field) -> Result<(), MessageError> {
    let name = field.name.as_ref();
    let is_token = name.iter().fold(true, |all, &byte| all & LOWER_TOKEN[usize::from(byte)]);
    if name.is_empty() || !is_token {
        return Err(MessageError::InvalidName);
    }
    match name {
        b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding" | b"upgrade" => {
            Err(MessageError::ConnectionSpecific)
        }
        b"te" if !field.value.eq_ignore_ascii_case(b"trailers") => {
            Err(MessageError::ConnectionSpecific)
        }
        _ => Ok(()),
    }
}

/// The bytes that no value has: control characters apart from the tab.
static CONTROL: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = (byte < 0x20 && byte != 0x09) || byte == 0x7f;
        byte += 1;
    }
    table
};

/// The bytes of tokens (RFC 9110 section 5.6.2) apart from upper case letters.
static LOWER_TOKEN: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = matches!(
            byte as u8,
            b'a'..=b'z' | b'0'..=b'9'
            | b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_' | b'`'
            | b'|' | b'~'
        );
        byte += 1;
    }
    table
};

fn is_token(value: &[u8]) -> bool {
    let is_in_token = |byte: &u8| LOWER_TOKEN[usize::from(byte.to_ascii_lowercase())];
    !value.is_empty() && value.iter().all(is_in_token)
}

/// Checks the head of a request (RFC 9114 sections 4.3.1 and 4.4, RFC 9220 section 3).
pub(crate) fn check_request(fields: &Fields) -> Result<RequestHead, MessageError> {
    let lines = Lines::check(fields)?;
    let pseudo = &lines.pseudo;
    if pseudo.status.is_some() {
        return Err(MessageError::UnexpectedPseudo);
    }
    let method = pseudo.method.ok_or(MessageError::Missing(":method"))?;
    if !is_token(method) {
        return Err(MessageError::Invalid(":method"));
    }
    let content_length = lines.content_length()?;
    match (method == b"CONNECT", pseudo.protocol) {
        (true, None) => {
            check_connect(pseudo)?;
            return Ok(RequestHead {
                method: Method::Connect,
                content_length: None,
                extended: false,
            });
        }
        (true, Some(protocol)) if is_token(protocol) => {
            check_target(&lines, method)?;
            return Ok(RequestHead {
                method: Method::Connect,
                content_length: None,
                extended: true,
            });
        }
        (true, Some(_)) => return Err(MessageError::Invalid(":protocol")),
        (false, Some(_)) => return Err(MessageError::UnexpectedPseudo),
        (false, None) => check_target(&lines, method)?,
    }
    let method = if method == b"HEAD" { Method::Head } else { Method::Other };
    Ok(RequestHead { method, content_length, extended: false })
}

/// Checks where a request goes: scheme, authority and path.
fn check_target(lines: &Lines<'_>, method: &[u8]) -> Result<(), MessageError> {
    let pseudo = &lines.pseudo;
    let scheme = pseudo.scheme.ok_or(MessageError::Missing(":scheme"))?;
    if !is_scheme(scheme) {
        return Err(MessageError::Invalid(":scheme"));
    }
    let path = pseudo.path.ok_or(MessageError::Missing(":path"))?;
    if scheme.eq_ignore_ascii_case(b"http") || scheme.eq_ignore_ascii_case(b"https") {
        check_authority(lines)?;
        let asterisk = method == b"OPTIONS" && path == b"*";
        if path.first() != Some(&b'/') && !asterisk {
            return Err(MessageError::Invalid(":path"));
        }
    }
    if path.iter().any(|byte| matches!(byte, b' ' | b'\t')) {
        return Err(MessageError::Invalid(":path"));
    }
    Ok(())
}

/// RFC 9114 section 4.4: CONNECT has host and port and nothing else.
fn check_connect(pseudo: &Pseudo<'_>) -> Result<(), MessageError> {
    if pseudo.scheme.is_some() || pseudo.path.is_some() {
        return Err(MessageError::UnexpectedPseudo);
    }
    match pseudo.authority {
        None => Err(MessageError::Missing(":authority")),
        Some(b"") => Err(MessageError::Invalid(":authority")),
        Some(_) => Ok(()),
    }
}

/// RFC 3986 section 3.1.
fn is_scheme(scheme: &[u8]) -> bool {
    scheme.first().is_some_and(u8::is_ascii_alphabetic)
        && scheme.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte))
}

/// RFC 9114 section 4.3.1: a request for http or https has an authority, without user information,
/// in `:authority` or `Host`. If both are present, they must be equal.
fn check_authority(lines: &Lines<'_>) -> Result<(), MessageError> {
    let authority = lines.pseudo.authority.or(lines.host);
    if lines.hosts_differ || lines.host.is_some_and(|host| authority != Some(host)) {
        return Err(MessageError::Authority);
    }
    match authority {
        None | Some(b"") => Err(MessageError::Authority),
        Some(authority) if authority.contains(&b'@') => Err(MessageError::Invalid(":authority")),
        Some(_) => Ok(()),
    }
}

/// Checks the head of a response (RFC 9114 section 4.3.2).
pub(crate) fn check_response(fields: &Fields) -> Result<ResponseHead, MessageError> {
    let lines = Lines::check(fields)?;
    let Pseudo { method, scheme, authority, path, protocol, status } = lines.pseudo;
    let others = [method, scheme, authority, path, protocol];
    if others.iter().any(Option::is_some) {
        return Err(MessageError::UnexpectedPseudo);
    }
    let status = status.ok_or(MessageError::Missing(":status"))?;
    // RFC 9114 section 4.5: there is no protocol to switch to, hence no 101.
    let status = parse_status(status)
        .filter(|&status| status >= 100 && status != 101)
        .ok_or(MessageError::Invalid(":status"))?;
    Ok(ResponseHead { status, content_length: lines.content_length()? })
}

/// Checks a trailer section (RFC 9114 section 4.1): no pseudo-header fields.
pub(crate) fn check_trailers(fields: &Fields) -> Result<(), MessageError> {
    for field in fields {
        if field.name.first() == Some(&b':') {
            return Err(MessageError::MisplacedPseudo);
        }
        check_value(&field.value)?;
        check_regular(field)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> Fields {
        Fields::request("GET", "https", "example.com", "/")
    }

    /// A section of `name: value` pairs.
    fn section(lines: &[(&str, &str)]) -> Fields {
        lines.iter().map(|(n, v)| Field::new(n.to_string(), v.to_string())).collect()
    }

    #[test]
    fn good_requests() {
        for fields in [
            request(),
            request().with("te", "trailers").with("host", "example.com"),
            request().with("x-empty", "").with("x", "a\tb c\u{e9}"),
            request().with("content-length", "5").with("content-length", "5"),
            section(&[(":method", "CONNECT"), (":authority", "example.com:443")]),
            Fields::request("CONNECT", "https", "example.com", "/chat")
                .with(":protocol", "websocket"),
            section(&[(":path", "/"), (":scheme", "http"), (":method", "GET"), ("host", "a")]),
            Fields::request("OPTIONS", "https", "example.com", "*"),
            section(&[(":method", "GET"), (":scheme", "data"), (":path", "x")]),
        ] {
            assert!(check_request(&fields).is_ok(), "{fields:?}");
        }
        let head = check_request(&request().with("content-length", "7")).unwrap();
        assert_eq!(
            head,
            RequestHead { method: Method::Other, content_length: Some(7), extended: false }
        );
    }

    #[test]
    fn bad_requests() {
        use MessageError::*;
        let connect = Fields::new().with(":method", "CONNECT");
        for (fields, error) in [
            (Fields::new(), Missing(":method")),
            (section(&[(":method", "GET"), (":path", "/")]), Missing(":scheme")),
            (section(&[(":method", "GET"), (":scheme", "https")]), Missing(":path")),
            (section(&[(":method", "GET"), (":scheme", "https"), (":path", "/")]), Authority),
            (Fields::request("GET", "https", "", "/"), Authority),
            (Fields::request("GET", "https", "u@example.com", "/"), Invalid(":authority")),
            (Fields::request("G T", "https", "a", "/"), Invalid(":method")),
            (Fields::request("", "https", "a", "/"), Invalid(":method")),
            (Fields::request("GET", "1https", "a", "/"), Invalid(":scheme")),
            (Fields::request("GET", "https", "a", ""), Invalid(":path")),
            (Fields::request("GET", "https", "a", "*"), Invalid(":path")),
            (Fields::request("GET", "https", "a", "/ x"), Invalid(":path")),
            (request().with("host", "other"), Authority),
            (request().with(":path", "/"), RepeatedPseudo),
            (request().with(":status", "200"), UnexpectedPseudo),
            (request().with(":protocol", "websocket"), UnexpectedPseudo),
            (Fields::new().with("a", "b").with(":method", "GET"), MisplacedPseudo),
            (request().with("Accept", "x"), InvalidName),
            (request().with("", "x"), InvalidName),
            (request().with("a b", "x"), InvalidName),
            (request().with("a:", "x"), InvalidName),
            (request().with("a", "x\r\ny"), InvalidValue),
            (request().with("a", "x\0"), InvalidValue),
            (request().with("a", "\x7f"), InvalidValue),
            (request().with("a", " x"), InvalidValue),
            (request().with("a", "x\t"), InvalidValue),
            (request().with("connection", "close"), ConnectionSpecific),
            (request().with("keep-alive", "1"), ConnectionSpecific),
            (request().with("proxy-connection", "1"), ConnectionSpecific),
            (request().with("transfer-encoding", "chunked"), ConnectionSpecific),
            (request().with("upgrade", "h2c"), ConnectionSpecific),
            (request().with("te", "gzip"), ConnectionSpecific),
            (request().with("content-length", ""), ContentLength),
            (request().with("content-length", "+1"), ContentLength),
            (request().with("content-length", "99999999999999999999"), ContentLength),
            (request().with("content-length", "1").with("content-length", "2"), ContentLength),
            (connect.clone().with(":protocol", "a"), Missing(":scheme")),
            (
                Fields::request("CONNECT", "https", "a", "/").with(":protocol", ""),
                Invalid(":protocol"),
            ),
            (Fields::request("CONNECT", "https", "", "/").with(":protocol", "a"), Authority),
            (connect.clone(), Missing(":authority")),
            (connect.clone().with(":authority", ""), Invalid(":authority")),
            (connect.with(":authority", "a:1").with(":path", "/"), UnexpectedPseudo),
        ] {
            assert_eq!(check_request(&fields), Err(error), "{fields:?}");
        }
    }

    #[test]
    fn responses() {
        let head = check_response(&Fields::response(200).with("content-length", "3")).unwrap();
        assert_eq!(head, ResponseHead { status: 200, content_length: Some(3) });
        assert_eq!(head.body_length(Method::Other), Some(3));
        assert_eq!(head.body_length(Method::Head), Some(0));
        assert_eq!(head.body_length(Method::Connect), None);
        let status = |status| ResponseHead { status, content_length: Some(3) };
        assert_eq!(status(304).body_length(Method::Other), Some(0));
        assert_eq!(status(204).body_length(Method::Other), Some(0));
        assert!(check_response(&Fields::response(103)).unwrap().is_interim());
        for value in ["", "20", "2000", "099", "101", "2x0", "-20"] {
            let fields = Fields::new().with(":status", value);
            assert_eq!(check_response(&fields), Err(MessageError::Invalid(":status")), "{value}");
        }
        assert_eq!(check_response(&Fields::new()), Err(MessageError::Missing(":status")));
        assert_eq!(check_response(&request()), Err(MessageError::UnexpectedPseudo));
        let fields = Fields::response(200).with(":protocol", "websocket");
        assert_eq!(check_response(&fields), Err(MessageError::UnexpectedPseudo));
    }

    #[test]
    fn trailers() {
        assert_eq!(check_trailers(&Fields::new().with("grpc-status", "0")), Ok(()));
        for (fields, error) in [
            (Fields::response(200), MessageError::MisplacedPseudo),
            (Fields::new().with("A", "b"), MessageError::InvalidName),
            (Fields::new().with("a", "\n"), MessageError::InvalidValue),
            (Fields::new().with("upgrade", "x"), MessageError::ConnectionSpecific),
        ] {
            assert_eq!(check_trailers(&fields), Err(error));
        }
    }
}
