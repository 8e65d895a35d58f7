//! Which responses a rule is about.

use std::borrow::Cow;

use wildmatch::WildMatch;

use super::paths::percent_decode;

/// Longest pattern, in bytes.
pub const MAX_PATTERN: usize = 256;
/// Prefix of a pattern for media types.
const TYPE: &str = "type:";

/// A pattern of a rule, and the part of a response that it is compared with.
#[derive(Debug, Clone)]
pub struct Pattern {
    subject: Subject,
    /// `*` stands for any characters including slashes, and `?` for one character.
    pattern: WildMatch,
}

/// The part of a response that a pattern is matched against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    /// The whole path of the request.
    Path,
    /// The part after its last slash.
    Name,
    /// The media type of the response.
    Type,
}

/// A response, as patterns are compared with it.
#[derive(Debug)]
pub struct Candidate<'a> {
    /// The path of the request, decoded and without its query.
    path: Cow<'a, str>,
    /// The media type in lower case, without parameters.
    kind: String,
}

impl<'a> Candidate<'a> {
    /// The response of type `content_type` to a request for `target`.
    pub fn new(target: &'a str, content_type: &str) -> Self {
        let path = target.split('?').next().unwrap_or_default();
        let path = percent_decode(path).map_or(Cow::Borrowed(path), Cow::Owned);
        let kind = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        Self { path, kind }
    }

    fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }
}

impl Pattern {
    /// Parses a pattern. The error describes the fault.
    pub fn parse(pattern: &str) -> Result<Self, String> {
        if pattern.len() > MAX_PATTERN {
            return Err(format!("a pattern of more than {MAX_PATTERN} bytes"));
        }
        let (subject, pattern) = match pattern.strip_prefix(TYPE) {
            Some("") => return Err("no media type after type:, such as type:image/*".into()),
            Some(kind) => (Subject::Type, kind.to_ascii_lowercase()),
            None if pattern.contains('/') => (Subject::Path, pattern.to_owned()),
            None => (Subject::Name, pattern.to_owned()),
        };
        if subject == Subject::Path && !pattern.starts_with(['/', '*']) {
            return Err(format!("no path is like {pattern:?}: they begin with a slash"));
        }
        Ok(Self { subject, pattern: WildMatch::new(&pattern) })
    }

    /// Whether the pattern matches a response.
    pub fn matches(&self, candidate: &Candidate<'_>) -> bool {
        self.pattern.matches(match self.subject {
            Subject::Path => &candidate.path,
            Subject::Name => candidate.name(),
            Subject::Type => &candidate.kind,
        })
    }
}
