//! The operator's priorities: a file of rules for the priorities of responses.
//!
//! Each line is a rule: a pattern, blanks, and a priority field value. The first rule that matches
//! a response applies: the parameters that it sets override the parameters of the request (RFC 9218 section
//! 8), and the others stay as requested. Lines such as `u<3 => protect` name protections for priorities, and
//! lines such as `/img/hero.* => resource hero` describe resources. See `docs/priorities.md`.

use std::path::Path;

use sutura::http::PriorityParameters;
use sutura_research::marx::{Aspect, Resource};

use super::description::Description;
use super::pattern::{Candidate, Pattern};
use super::protect_rule::ProtectRule;
use crate::failure::Failure;

/// Most rules in a file.
const MAX_RULES: usize = 1000;
/// Largest file, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// The rules of a file, in order. Empty by default.
#[derive(Debug, Default)]
pub struct Rules {
    rules: Vec<Rule>,
    protect: Vec<ProtectRule>,
    descriptions: Vec<Description>,
}

#[derive(Debug)]
struct Rule {
    pattern: Pattern,
    parameters: PriorityParameters,
}

impl Rules {
    /// Reads a file of rules.
    ///
    /// # Errors
    /// The file cannot be read, or a line is not a rule: the error says which and why.
    pub fn load(path: &Path) -> Result<Self, Failure> {
        let unusable = |problem: &dyn std::fmt::Display| {
            Failure::local(format!("cannot read {}: {problem}", path.display()))
        };
        let size = std::fs::metadata(path).map_err(|e| unusable(&e))?.len();
        if size > MAX_FILE {
            return Err(unusable(&format_args!("it is larger than {MAX_FILE} bytes")));
        }
        let text = std::fs::read_to_string(path).map_err(|e| unusable(&e))?;
        Self::parse(&text)
            .map_err(|(line, what)| Failure::local(format!("{}:{line}: {what}", path.display())))
    }

    /// Parses rules. An error is the number of the invalid line and the problem.
    pub(super) fn parse(text: &str) -> Result<Self, (usize, String)> {
        let mut all = Self::default();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if all.rules.len() + all.protect.len() + all.descriptions.len() == MAX_RULES {
                return Err((number, format!("more than {MAX_RULES} rules")));
            }
            if ProtectRule::is_meant(line) {
                all.protect.push(line.parse().map_err(|what| (number, what))?);
            } else if Description::is_meant(line) {
                all.descriptions.push(line.parse().map_err(|what| (number, what))?);
            } else {
                all.rules.push(Rule::parse(line).map_err(|what| (number, what))?);
            }
        }
        Ok(all)
    }

    /// The protections that the file has for priorities, in order.
    pub fn protect(&self) -> &[ProtectRule] {
        &self.protect
    }

    /// The parameters of the first rule that matches a response of type `content_type` to a request
    /// for `target`.
    pub fn find(&self, target: &str, content_type: &str) -> Option<&PriorityParameters> {
        if self.rules.is_empty() {
            return None;
        }
        let candidate = Candidate::new(target, content_type);
        let found = self.rules.iter().find(|rule| rule.pattern.matches(&candidate));
        found.map(|rule| &rule.parameters)
    }

    /// Adds the file's description of a response to `resource`: the first line of each sort that matches. The
    /// response is of type `content_type` and answers a request for `target`.
    pub fn describe(&self, target: &str, content_type: &str, resource: &mut Resource) {
        if self.descriptions.is_empty() {
            return;
        }
        let candidate = Candidate::new(target, content_type);
        let of_response = self.descriptions.iter().filter(|line| line.is_about(&candidate));
        let mut known = Vec::new();
        for line in of_response {
            if !known.contains(&line.sort()) {
                known.push(line.sort());
                line.apply(resource);
            }
        }
    }

    /// Whether a line of the file describes resources as `aspect`.
    pub fn names(&self, aspect: &Aspect) -> bool {
        self.descriptions.iter().any(|line| line.names(aspect))
    }
}

impl Rule {
    fn parse(line: &str) -> Result<Self, String> {
        let Some((pattern, value)) = line.split_once(char::is_whitespace) else {
            return Err(format!("no priority after {line:?}, such as u=1, i"));
        };
        let pattern = Pattern::parse(pattern)?;
        let value = value.trim();
        let parameters: PriorityParameters =
            value.parse().map_err(|e| format!("invalid priority {value:?}: {e}"))?;
        Ok(Self { pattern, parameters })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::pattern::MAX_PATTERN;
    use super::*;

    fn rules(text: &str) -> Rules {
        Rules::parse(text).unwrap()
    }

    const EXAMPLE: &str = "
# The page itself, then what it cannot be shown without.
type:text/html  u=0
/fonts/*\tu=1, exp_p=(\"page\";exp_w=4)
*.css           u=1
/img/hero.*     u=2, i, exp_b=3
  type:image/*  u=5, i
a?b             exp_w=0.5
/?.js           u=6
*               u=4
";

    #[test]
    fn the_first_rule_that_matches_decides() {
        let rules = rules(EXAMPLE);
        for (target, kind, expected) in [
            ("/", "text/html; charset=utf-8", "u=0"),
            ("/img/hero.html", "TEXT/HTML", "u=0"),
            ("/fonts/a/b.css", "text/css", r#"u=1, exp_p=("page";exp_w=4.0)"#),
            ("/deep/a.css?v=2", "text/css", "u=1"),
            ("/img/hero.png", "image/png", "u=2, i, exp_b=3"),
            ("/x/img/hero.png", "image/png", "u=5, i"),
            ("/x/a%20b", "x/y", "exp_w=0.5"),
            ("/x/ab", "x/y", "u=4"),
            ("/%C3%A4.js", "text/javascript", "u=6"),
            ("/aa.js", "text/javascript", "u=4"),
            ("/%zz", "", "u=4"),
            ("", "", "u=4"),
        ] {
            let found = rules.find(target, kind).map(ToString::to_string);
            assert_eq!(found.as_deref(), Some(expected), "{target}");
        }
        assert_eq!(self::rules("*.css u=1").find("/a.css/b", "text/css"), None);
        assert_eq!(Rules::default().find("/", "text/html"), None);
    }

    #[test]
    fn lines_about_urgencies_match_nothing_else() {
        let rules = rules("u<2 => protect 2\n*.css u=1\nu<=5, i => protect auto\n");
        assert_eq!(rules.find("/u<2", "x/y"), None);
        assert_eq!(rules.find("/a.css", "x/y").unwrap().to_string(), "u=1");
        let expected = ["u<2 => protect 2", "u<=5, i => protect auto"];
        assert_eq!(rules.protect(), expected.map(|rule| rule.parse().unwrap()));
    }

    #[test]
    fn lines_about_resources_describe_them_and_match_nothing_else() {
        let rules = rules(
            "/img/hero.* => resource hero\ntype:text/html => weight 255\n* => bucket 31/2\n\
             /a.bin  =>  resource image late\n/a.bin => bucket 1/1\n*.html u=1\n",
        );
        for (target, kind, expected) in [
            ("/img/hero.png?x", "image/png", "image hero bucket 31/2"),
            ("/p.html", "text/html; charset=utf-8", "html bucket 31/2 weight 255"),
            ("/a.bin", "application/octet-stream", "image late bucket 31/2"),
        ] {
            let mut resource = Resource::from_mime(kind);
            rules.describe(target, kind, &mut resource);
            assert_eq!(resource.to_string(), expected);
        }
        assert_eq!(rules.find("/img/hero.png", "image/png"), None);
        assert!(rules.find("/p.html", "text/html").is_some());
        let named: Vec<_> = Aspect::ALL.iter().filter(|aspect| rules.names(aspect)).collect();
        assert_eq!(named.iter().map(|aspect| aspect.name).collect::<Vec<_>>(), ["late", "hero"]);
    }

    #[test]
    fn a_line_that_is_no_rule_is_named() {
        for (line, expected) in [
            ("*.css", "no priority after \"*.css\""),
            ("*.css u=8", "u: expected an integer from 0 to 7"),
            ("*.css u=1, i, exp_v=3", "exp_v: unknown parameter"),
            ("*.css exp_p=(\"a\"", "not a list of parameters"),
            ("*.css -> u=1", "not a list of parameters"),
            ("type: u=1", "no media type"),
            ("img/*.png u=1", "begin with a slash"),
            ("u<9 => protect", "an urgency from 0 to 7"),
            ("u<3 => protect 300", "expected BLT"),
            ("*.css => resource big", "\"big\" is no word for a resource"),
            ("*.css => resource", "expected resource and words"),
            ("*.css => bucket 63", "from 0 to 63"),
            ("*.css => weight 256", "from 0 to 255"),
            ("*.css => ", "expected resource and words"),
            ("type: => weight 1", "no media type"),
            (&format!("{} u=1", "x".repeat(MAX_PATTERN + 1)), "more than 256 bytes"),
        ] {
            let (number, what) = Rules::parse(&format!("# one\n\n{line}\n* u=2")).unwrap_err();
            assert_eq!(number, 3, "{line}");
            assert!(what.contains(expected), "{line}: {what}");
        }
        let (number, what) = Rules::parse(&"* u=1\n".repeat(MAX_RULES + 1)).unwrap_err();
        assert_eq!((number, what.as_str()), (MAX_RULES + 1, "more than 1000 rules"));
    }

    proptest! {
        #[test]
        fn no_file_panics(text in "([*/?a-z:.]{0,9}[ \t]{0,2}[a-z_]{0,5}=?[0-9]?(\n|, )){0,6}") {
            let _ = Rules::parse(&text).map(|rules| rules.find("/a", "b/c").cloned());
        }
    }
}
