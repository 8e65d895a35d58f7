//! The operator's rules for flows: a file.
//!
//! Each line is a [`Rule`]. The first one that is about a flow applies: it overrides what would be done otherwise, and
//! what it does not say stays. Empty lines and lines that begin with `#` mean nothing.

use std::fmt;
use std::io::Read;
use std::path::Path;

use sutura::MAX_DATAGRAM_PROTECTIONS;

use super::info::FlowInfo;
use super::rule::{Changes, Rule};
use super::treatment::OWN_PROTECTIONS;

/// Most rules in a file.
pub const MAX_RULES: usize = 1000;
/// Largest file, in bytes.
pub const MAX_FILE: u64 = 1 << 20;
/// Most different protections that rules name. A connection has few, and classes have some of their own.
const MAX_PROTECTIONS: usize = MAX_DATAGRAM_PROTECTIONS - OWN_PROTECTIONS;

/// The rules of a file, in order. None by default.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    rules: Vec<Rule>,
}

/// Why a file has no rules that can be used: what is wrong, and in which line if it is one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct InvalidRules {
    /// The line, from 1.
    pub line: Option<usize>,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for InvalidRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.what),
            None => f.write_str(&self.what),
        }
    }
}

impl Rules {
    /// Reads a file of rules, of at most [`MAX_FILE`] bytes.
    ///
    /// # Errors
    /// The file cannot be read or is larger, or a line is no rule.
    pub fn load(path: &Path) -> Result<Self, InvalidRules> {
        let unreadable = |e: std::io::Error| InvalidRules { line: None, what: e.to_string() };
        let file = std::fs::File::open(path).map_err(unreadable)?;
        let mut text = String::new();
        file.take(MAX_FILE + 1).read_to_string(&mut text).map_err(unreadable)?;
        Self::parse(&text)
    }

    /// Parses rules.
    ///
    /// # Errors
    /// The text is longer than [`MAX_FILE`], has more than [`MAX_RULES`] rules or too many different protections, or a
    /// line is no rule.
    pub fn parse(text: &str) -> Result<Self, InvalidRules> {
        if text.len() as u64 > MAX_FILE {
            let what = format!("larger than {MAX_FILE} bytes");
            return Err(InvalidRules { line: None, what });
        }
        let (mut rules, mut protections) = (Vec::new(), Vec::new());
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let invalid = |what| InvalidRules { line: Some(number), what };
            if rules.len() == MAX_RULES {
                return Err(invalid(format!("more than {MAX_RULES} rules")));
            }
            let rule: Rule = line.parse().map_err(invalid)?;
            if let Some(Some(protection)) = &rule.changes().protection
                && !protections.contains(protection)
            {
                protections.push(protection.clone());
            }
            if protections.len() > MAX_PROTECTIONS {
                return Err(invalid(format!("more than {MAX_PROTECTIONS} different protections")));
            }
            rules.push(rule);
        }
        Ok(Self { rules })
    }

    /// What the first rule about a flow says of it.
    #[must_use]
    pub fn find(&self, flow: &FlowInfo) -> Option<&Changes> {
        self.rules.iter().find(|rule| rule.is_about(flow)).map(Rule::changes)
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Class;
    use super::*;
    use crate::access::Transport;

    const EXAMPLE: &str = "
# Backups may wait, whatever is in them.
*.backup.example.org:443  bulk
udp:51820\tbulk
tcp:22    interactive u=0
  dscp=ef   real-time deadline=80ms
* protect none
";

    #[test]
    fn the_first_rule_about_a_flow_decides() {
        let rules = Rules::parse(EXAMPLE).unwrap();
        assert_eq!(rules.len(), 5);
        for (transport, address, dscp, class) in [
            (Transport::Udp, "192.0.2.1:51820", "ef", Some(Class::Bulk)),
            (Transport::Tcp, "192.0.2.1:22", "cs0", Some(Class::Interactive)),
            (Transport::Udp, "192.0.2.1:22", "ef", Some(Class::RealTime)),
            (Transport::Udp, "192.0.2.1:22", "cs0", None),
        ] {
            let mut flow = FlowInfo::to(transport, address.parse().unwrap());
            flow.dscp = dscp.parse().unwrap();
            assert_eq!(rules.find(&flow).unwrap().class, class, "{transport} {address}");
        }
        let flow = FlowInfo::to(Transport::Udp, "192.0.2.1:22".parse().unwrap());
        assert_eq!(rules.find(&flow).unwrap().protection, Some(None));
        assert!(Rules::default().find(&flow).is_none());
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let error = Rules::parse("# one\n\nudp fast\nudp bulk").unwrap_err();
        assert!(error.to_string().starts_with("line 3: \"fast\""), "{error}");
        let error = Rules::parse(&"udp bulk\n".repeat(MAX_RULES + 1)).unwrap_err();
        assert_eq!(error.to_string(), "line 1001: more than 1000 rules");
        let error = Rules::parse(&"#".repeat(MAX_FILE as usize + 1)).unwrap_err();
        assert_eq!(error.line, None);
    }

    #[test]
    fn rules_name_no_more_protections_than_a_connection_has() {
        let lines = |count: usize| -> String {
            (1..=count).map(|n| format!("udp:{n} protect tail:burst={n}\n")).collect()
        };
        let same = lines(MAX_PROTECTIONS) + &lines(MAX_PROTECTIONS) + "tcp protect none";
        Rules::parse(&same).unwrap();
        let error = Rules::parse(&lines(MAX_PROTECTIONS + 1)).unwrap_err();
        assert_eq!(error.line, Some(MAX_PROTECTIONS + 1));
    }

    #[test]
    fn a_file_is_read_within_its_bound() {
        let path = std::env::temp_dir().join(format!("sutura-flow-rules-{}", std::process::id()));
        std::fs::write(&path, EXAMPLE).unwrap();
        assert_eq!(Rules::load(&path).unwrap().len(), 5);
        std::fs::write(&path, vec![b'#'; MAX_FILE as usize + 1]).unwrap();
        assert!(Rules::load(&path).unwrap_err().what.contains("larger than"));
        std::fs::remove_file(&path).unwrap();
        assert!(Rules::load(&path).is_err());
    }

    proptest! {
        #[test]
        fn no_file_panics(
            text in "((udp|tcp|ip)?[:/]?[*0-9a-f.,=-]{0,9}[ \t]{0,2}(bulk|u=|protect|deadline=)?[0-9 a-z]{0,5}\n){0,6}",
        ) {
            let flow = FlowInfo::to(Transport::Udp, "192.0.2.1:22".parse().unwrap());
            let _ = Rules::parse(&text).map(|rules| rules.find(&flow).cloned());
        }
    }
}
