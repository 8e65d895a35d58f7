//! Where a proxy takes requests for UDP: a URI template, as RFC 9298 section 2 has it.

use std::fmt::Write;
use std::str::FromStr;

use percent_encoding::utf8_percent_encode;

use super::ask::{NOT_IN_SEGMENT, UDP_PATH};
use crate::access::Target;

/// How a template begins: HTTP/3 is spoken for this scheme only.
const SCHEME: &str = "https://";
/// What stands for the host of the target.
const HOST: &str = "target_host";
/// What stands for the port of the target.
const PORT: &str = "target_port";
/// Characters of URIs besides letters and digits (RFC 3986 section 2), without the one that begins a fragment, which is
/// not sent.
const PUNCTUATION: &[u8] = b"-._~:/?[]@!$&'()*+,;=%";

/// The path and query by which a proxy is asked for UDP to a target.
///
/// It is read from a template such as `https://proxy.example.org/masque{?target_host,target_port}` (RFC 6570 up to
/// level 3). By default it is the path that a proxy has of which only host and port are known:
/// `/.well-known/masque/udp/{target_host}/{target_port}/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UdpTemplate {
    parts: Vec<TemplatePart>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum TemplatePart {
    Literal(String),
    Expression(Operator, Vec<Variable>),
}

/// How an expression expands (RFC 6570 section 3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    /// `{a,b}`: the values, with commas between them.
    Simple,
    /// `{?a,b}`: a query of names and values.
    Query,
    /// `{&a,b}`: the rest of a query.
    Continuation,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Variable {
    Host,
    Port,
    /// One that has no value here, which expands to nothing.
    Undefined,
}

/// Why a text is no template of a proxy for UDP (RFC 9298 section 2).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidTemplate {
    /// The scheme is another one, or there is none.
    #[error("a template begins with {SCHEME}")]
    Scheme,
    /// There is no host, a variable in it, or no path behind it.
    #[error("a template has a host without variables, and a path behind it")]
    Path,
    /// A character that no URI has, or that begins a fragment.
    #[error("{0:?} cannot be in a template")]
    Character(char),
    /// A brace has no counterpart.
    #[error("a brace is not closed or not opened")]
    Brace,
    /// An expression is of a kind that is not permitted.
    #[error("{{{0}…}} is not permitted, only {{…}}, {{?…}} and {{&…}}")]
    Operator(char),
    /// An expression has something else in it than names of variables.
    #[error("{0:?} is no name of a variable")]
    Name(String),
    /// The target is not in it.
    #[error("a template has the variables {HOST} and {PORT}")]
    Missing,
}

impl Default for UdpTemplate {
    fn default() -> Self {
        let simple = |variable| TemplatePart::Expression(Operator::Simple, vec![variable]);
        let slash = || TemplatePart::Literal("/".into());
        let prefix = TemplatePart::Literal(UDP_PATH.into());
        let (host, port) = (simple(Variable::Host), simple(Variable::Port));
        Self { parts: vec![prefix, host, slash(), port, slash()] }
    }
}

impl UdpTemplate {
    /// Reads a template: the authority of the proxy, a host and perhaps a port, and the rest.
    ///
    /// # Errors
    /// It is none, or none that RFC 9298 permits.
    pub fn parse(text: &str) -> Result<(&str, Self), InvalidTemplate> {
        let rest = text.strip_prefix(SCHEME).ok_or(InvalidTemplate::Scheme)?;
        let (authority, path) = rest.split_at(rest.find('/').ok_or(InvalidTemplate::Path)?);
        if authority.is_empty() || authority.contains(['{', '}', '?', '#']) {
            return Err(InvalidTemplate::Path);
        }
        Ok((authority, path.parse()?))
    }

    /// The path and query of a request for a target.
    #[must_use]
    pub fn path(&self, target: &Target) -> String {
        let host = target.host.to_string();
        let host = utf8_percent_encode(&host, NOT_IN_SEGMENT).to_string();
        let mut out = String::new();
        for part in &self.parts {
            match part {
                TemplatePart::Literal(text) => out.push_str(text),
                TemplatePart::Expression(operator, variables) => {
                    expand(&mut out, *operator, variables, &host, target.port);
                }
            }
        }
        out
    }

    fn names(&self, wanted: Variable) -> bool {
        self.parts.iter().any(|part| match part {
            TemplatePart::Literal(_) => false,
            TemplatePart::Expression(_, variables) => variables.contains(&wanted),
        })
    }
}

/// Appends the values of an expression's variables.
fn expand(out: &mut String, operator: Operator, variables: &[Variable], host: &str, port: u16) {
    let (mut before, between) = match operator {
        Operator::Simple => ("", ","),
        Operator::Query => ("?", "&"),
        Operator::Continuation => ("&", "&"),
    };
    let port = port.to_string();
    for variable in variables {
        let (name, value) = match variable {
            Variable::Host => (HOST, host),
            Variable::Port => (PORT, port.as_str()),
            Variable::Undefined => continue,
        };
        // Writing to a string does not fail.
        let _ = match operator {
            Operator::Simple => write!(out, "{before}{value}"),
            Operator::Query | Operator::Continuation => write!(out, "{before}{name}={value}"),
        };
        before = between;
    }
}

/// Reads the path and query of a template.
impl FromStr for UdpTemplate {
    type Err = InvalidTemplate;

    fn from_str(text: &str) -> Result<Self, InvalidTemplate> {
        let (mut parts, mut rest) = (Vec::new(), text);
        if !rest.starts_with('/') {
            return Err(InvalidTemplate::Path);
        }
        while let Some(open) = rest.find('{') {
            parts.push(literal(&rest[..open])?);
            let (expression, behind) =
                rest[open + 1..].split_once('}').ok_or(InvalidTemplate::Brace)?;
            parts.push(read_expression(expression)?);
            rest = behind;
        }
        parts.push(literal(rest)?);
        let template = Self { parts };
        if template.names(Variable::Host) && template.names(Variable::Port) {
            Ok(template)
        } else {
            Err(InvalidTemplate::Missing)
        }
    }
}

fn literal(text: &str) -> Result<TemplatePart, InvalidTemplate> {
    let is_permitted = |c: char| {
        u8::try_from(c).is_ok_and(|b| b.is_ascii_alphanumeric() || PUNCTUATION.contains(&b))
    };
    match text.chars().find(|c| !is_permitted(*c)) {
        Some('}') => Err(InvalidTemplate::Brace),
        Some(c) => Err(InvalidTemplate::Character(c)),
        None => Ok(TemplatePart::Literal(text.into())),
    }
}

fn read_expression(text: &str) -> Result<TemplatePart, InvalidTemplate> {
    let (operator, names) = match text.chars().next() {
        Some('?') => (Operator::Query, &text[1..]),
        Some('&') => (Operator::Continuation, &text[1..]),
        Some(c) if "+#./;=,!@|".contains(c) => return Err(InvalidTemplate::Operator(c)),
        _ => (Operator::Simple, text),
    };
    let variables: Result<Vec<Variable>, _> = names.split(',').map(variable).collect();
    Ok(TemplatePart::Expression(operator, variables?))
}

fn variable(name: &str) -> Result<Variable, InvalidTemplate> {
    match name {
        HOST => Ok(Variable::Host),
        PORT => Ok(Variable::Port),
        _ if is_name(name) => Ok(Variable::Undefined),
        _ => Err(InvalidTemplate::Name(name.into())),
    }
}

/// Whether a text can be the name of a variable (RFC 6570 section 2.3), which modifiers of level 4 (`:3`, `*`) are not
/// part of.
fn is_name(text: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'%'))
    };
    text.split('.').all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(template: &str, target: &str) -> Result<(String, String), InvalidTemplate> {
        let (authority, template) = UdpTemplate::parse(template)?;
        Ok((authority.to_owned(), template.path(&target.parse().unwrap())))
    }

    /// The first three are the examples of RFC 9298 section 2, with its targets.
    #[test]
    fn templates_become_paths() {
        for (template, authority, path) in [
            (
                "https://example.org/.well-known/masque/udp/{target_host}/{target_port}/",
                "example.org",
                "/.well-known/masque/udp/192.0.2.6/443/",
            ),
            (
                "https://proxy.example.org:4443/masque?h={target_host}&p={target_port}",
                "proxy.example.org:4443",
                "/masque?h=192.0.2.6&p=443",
            ),
            (
                "https://proxy.example.org:4443/masque{?target_host,target_port}",
                "proxy.example.org:4443",
                "/masque?target_host=192.0.2.6&target_port=443",
            ),
            (
                "https://a/x?k=1{&other,target_port,target_host}",
                "a",
                "/x?k=1&target_port=443&target_host=192.0.2.6",
            ),
            ("https://a/{target_host,v.x,target_port}{?other}", "a", "/192.0.2.6,443"),
        ] {
            let expected = (authority.to_owned(), path.to_owned());
            assert_eq!(expanded(template, "192.0.2.6:443"), Ok(expected), "{template}");
        }
        let address = expanded("https://a/{target_host}/{target_port}", "[2001:db8::42]:443");
        assert_eq!(address.unwrap().1, "/2001%3Adb8%3A%3A42/443");
    }

    #[test]
    fn the_default_is_the_well_known_path() {
        let text = format!("{UDP_PATH}{{target_host}}/{{target_port}}/");
        let target = "example.org:53".parse().unwrap();
        let read: UdpTemplate = text.parse().unwrap();
        assert_eq!(read.path(&target), UdpTemplate::default().path(&target));
        assert_eq!(read.path(&target), "/.well-known/masque/udp/example.org/53/");
    }

    #[test]
    fn what_the_rfc_forbids_is_refused() {
        use InvalidTemplate::*;
        const BOTH: &str = "{target_host}{target_port}";
        for (template, why) in [
            (format!("http://a/{BOTH}"), Scheme),
            (format!("/{BOTH}"), Scheme),
            (format!("https:///{BOTH}"), Path),
            ("https://a{?target_host,target_port}".into(), Path),
            (format!("https://{{target_host}}/{BOTH}"), Path),
            (format!("https://a?x=/{BOTH}"), Path),
            (format!("https://a/ {BOTH}"), Character(' ')),
            (format!("https://a/é{BOTH}"), Character('é')),
            (format!("https://a/{BOTH}#x"), Character('#')),
            (format!("https://a/}}{BOTH}"), Brace),
            (format!("https://a/{BOTH}{{x"), Brace),
            (format!("https://a/{BOTH}{{+x}}"), Operator('+')),
            ("https://a{/target_host,target_port}".into(), Path),
            ("https://a/x{/target_host,target_port}".into(), Operator('/')),
            (format!("https://a/{BOTH}{{x:3}}"), Name("x:3".into())),
            (format!("https://a/{BOTH}{{x*}}"), Name("x*".into())),
            (format!("https://a/{BOTH}{{}}"), Name(String::new())),
            (format!("https://a/{BOTH}{{é}}"), Name("é".into())),
            ("https://a/{target_host}/53/".into(), Missing),
            ("https://a/{target_port}".into(), Missing),
        ] {
            assert_eq!(expanded(&template, "a:1"), Err(why), "{template}");
        }
    }
}
