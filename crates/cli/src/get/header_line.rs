//! Fields of requests that the user sets or removes.

use std::str::FromStr;

/// Fields about connections of HTTP/1.1, which HTTP/3 forbids (RFC 9114 section 4.2).
const CONNECTION_SPECIFIC: [&str; 5] =
    ["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"];

/// A field of `--header`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderLine {
    /// In lower case.
    pub name: String,
    /// `None` removes the field that would be sent otherwise.
    pub value: Option<String>,
}

impl HeaderLine {
    const SYNTAX: &str =
        "expected 'Name: value', 'Name;' for an empty value, or 'Name:' to remove a field";
}

impl FromStr for HeaderLine {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.starts_with(':') {
            return Err(
                "pseudo-header fields are set by -X (:method), -H Host (:authority) and the \
                        URL (:scheme, :path)"
                    .into(),
            );
        }
        let (name, value) = match text.split_once(':') {
            Some((name, value)) => (name, Some(value.trim()).filter(|value| !value.is_empty())),
            None => (text.strip_suffix(';').ok_or(Self::SYNTAX)?, Some("")),
        };
        if !is_token(name) {
            return Err(format!("`{name}` is not the name of a field: {}", Self::SYNTAX));
        }
        let name = name.to_ascii_lowercase();
        check(&name, value.unwrap_or_default())?;
        Ok(Self { name, value: value.map(str::to_owned) })
    }
}

/// Refuses what cannot be sent, and what other options or HTTP/3 itself say.
fn check(name: &str, value: &str) -> Result<(), String> {
    if CONNECTION_SPECIFIC.contains(&name) {
        return Err(format!("HTTP/3 has no field {name}: leave it out"));
    }
    match name {
        "te" if !matches!(value, "" | "trailers") => {
            return Err("HTTP/3 permits no other te than trailers".into());
        }
        "content-length" => {
            return Err(
                "content-length is that of the body, which -d or -T gives: leave it out".into()
            );
        }
        "priority" => return Err("the priority is set by --priority".into()),
        _ => {}
    }
    if has_control(value) {
        return Err(format!(
            "the value of {name} has a control character, which no field may have"
        ));
    }
    Ok(())
}

/// Reads the value of a field.
///
/// # Errors
/// It has control characters.
pub fn field_value(text: &str) -> Result<String, &'static str> {
    if has_control(text) {
        return Err("a control character, which no field may have: leave it out");
    }
    Ok(text.trim().to_owned())
}

fn has_control(value: &str) -> bool {
    value.contains(|c: char| c.is_ascii_control() && c != '\t')
}

/// Whether a text is a token (RFC 9110 section 5.6.2), such as the name of a field or a method.
pub fn is_token(text: &str) -> bool {
    let is_in_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_in_token)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn fields_are_set_emptied_and_removed() {
        for (text, name, value) in [
            ("X-Test: a b", "x-test", Some("a b")),
            ("accept:text/html", "accept", Some("text/html")),
            (
                "If-Modified-Since:  Sun, 06 Nov 1994 08:49:37 GMT ",
                "if-modified-since",
                Some("Sun, 06 Nov 1994 08:49:37 GMT"),
            ),
            ("X-Empty;", "x-empty", Some("")),
            ("User-Agent:", "user-agent", None),
            ("Accept:  ", "accept", None),
            ("TE: trailers", "te", Some("trailers")),
            ("x: ä", "x", Some("ä")),
        ] {
            let line = HeaderLine { name: name.into(), value: value.map(str::to_owned) };
            assert_eq!(text.parse(), Ok(line), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_read_can_be_sent(text in "[A-Za-z:;_ -]{0,12}[ -~\t\u{0}\u{7f}\u{e4}]{0,20}") {
            if let Ok(HeaderLine { name, value }) = text.parse::<HeaderLine>() {
                prop_assert!(is_token(&name) && name == name.to_ascii_lowercase());
                let value = value.unwrap_or_default();
                prop_assert_eq!(value.trim(), &value);
                prop_assert!(!value.contains(|c: char| c != '\t' && c.is_ascii_control()));
            }
        }

        #[test]
        fn names_and_values_come_back(name in "[a-z][a-z0-9_-]{0,20}-x", value in "[!-~]([ -~]{0,20}[!-~])?") {
            let line = HeaderLine { name: name.clone(), value: Some(value.clone()) };
            prop_assert_eq!(format!("{name}: {value}").parse(), Ok(line));
        }
    }
}
