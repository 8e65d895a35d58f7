//! How long clients and proxies may keep responses: the option `--cache`.

use std::str::FromStr;

use hyper::header::HeaderValue;

use super::pattern::{Candidate, Pattern};

/// The sign between a pattern and a value.
const ARROW: &str = "=>";

/// A value of Cache-Control (RFC 9111 section 5.2), for the responses that a pattern is about, or for all.
#[derive(Debug, Clone)]
pub struct CacheRule {
    pattern: Option<Pattern>,
    value: HeaderValue,
}

impl FromStr for CacheRule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (pattern, value) = match text.split_once(ARROW) {
            Some((pattern, value)) => (Some(Pattern::parse(pattern.trim())?), value.trim()),
            None => (None, text.trim()),
        };
        let is_fine = value.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        if value.is_empty() || !is_fine {
            return Err("expected directives such as max-age=3600, or *.css => max-age=3600".into());
        }
        let value = HeaderValue::from_str(value).map_err(|error| error.to_string())?;
        Ok(Self { pattern, value })
    }
}

/// All rules, of which the first that is about a response counts.
#[derive(Debug, Clone, Default)]
pub struct CacheRules(pub Vec<CacheRule>);

impl CacheRules {
    /// The value for a response of type `content_type` to a request for `target`.
    pub fn find(&self, target: &str, content_type: &str) -> Option<&HeaderValue> {
        if self.0.is_empty() {
            return None;
        }
        let candidate = Candidate::new(target, content_type);
        let is_about =
            |rule: &&CacheRule| rule.pattern.as_ref().is_none_or(|all| all.matches(&candidate));
        self.0.iter().find(is_about).map(|rule| &rule.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rule_that_is_about_a_response_counts() {
        let rules = ["*.css => max-age=60, immutable", "type:image/* => no-store", "no-cache"];
        let rules = CacheRules(rules.iter().map(|rule| rule.parse().unwrap()).collect());
        for (target, kind, expected) in [
            ("/a.css?v=2", "text/css", "max-age=60, immutable"),
            ("/a", "image/png", "no-store"),
            ("/", "text/html", "no-cache"),
        ] {
            assert_eq!(rules.find(target, kind).unwrap(), expected, "{target}");
        }
        assert_eq!(CacheRules::default().find("/", "text/html"), None);
    }

    #[test]
    fn what_is_no_rule_is_an_error_that_shows_one() {
        for text in ["", "*.css =>", "*.css => \u{e4}", "a\u{1b}"] {
            let error = text.parse::<CacheRule>().unwrap_err();
            assert!(error.contains("*.css => max-age=3600"), "{text}: {error}");
        }
        assert!("img/* => no-store".parse::<CacheRule>().unwrap_err().contains("slash"));
    }
}
