//! Protection of urgent responses only: `u<3 => protect 3,25` (Eghbal and Lu 2022).

use std::str::FromStr;
use std::time::Duration;

use crate::fec::Fec;

/// The largest urgency (RFC 9218 section 4.1).
const MAX_URGENCY: u8 = 7;
/// The protection if none is named.
const DEFAULT: Fec = Fec { burst: 3, delay: Duration::ZERO };
const SYNTAX: &str = "expected an urgency from 0 to 7 and a protection, such as u<3 => protect, \
                      u<=2 => protect 3 or u=0 => protect 3,25";

/// A protection for responses of some urgencies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByUrgency {
    comparison: Comparison,
    urgency: u8,
    fec: Fec,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Less,
    AtMost,
    Equal,
}

impl ByUrgency {
    /// Whether a line of a file of rules is one about urgencies: an urgency and `=>`, which no
    /// pattern and its priority begin with.
    pub fn is_meant(line: &str) -> bool {
        let condition =
            line.split_once("=>").and_then(|(condition, _)| condition.strip_prefix('u'));
        condition.is_some_and(|rest| {
            let rest = rest.trim();
            rest.starts_with(['<', '=', '>'])
                && rest.chars().all(|c| "<=>-".contains(c) || c.is_ascii_digit() || c == ' ')
        })
    }

    /// The protection of a response with this urgency.
    pub fn protection(&self, urgency: u8) -> Option<Fec> {
        let holds = match self.comparison {
            Comparison::Less => urgency < self.urgency,
            Comparison::AtMost => urgency <= self.urgency,
            Comparison::Equal => urgency == self.urgency,
        };
        holds.then_some(self.fec)
    }
}

impl FromStr for ByUrgency {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = text.split_once("=>").and_then(|(condition, action)| {
            let condition = condition.trim().strip_prefix('u')?.trim_start();
            Some((condition, action.trim().strip_prefix("protect")?))
        });
        let (condition, fec) = parts.ok_or(SYNTAX)?;
        let (comparison, urgency) = if let Some(urgency) = condition.strip_prefix("<=") {
            (Comparison::AtMost, urgency)
        } else if let Some(urgency) = condition.strip_prefix('<') {
            (Comparison::Less, urgency)
        } else {
            (Comparison::Equal, condition.strip_prefix('=').ok_or(SYNTAX)?)
        };
        let urgency = urgency.trim().parse().ok().filter(|urgency| *urgency <= MAX_URGENCY);
        let urgency = urgency.ok_or(SYNTAX)?;
        let fec = match fec.trim_start() {
            "" => DEFAULT,
            named if named.len() < fec.len() => named.parse()?,
            _ => return Err(SYNTAX.into()),
        };
        Ok(Self { comparison, urgency, fec })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn protected(text: &str) -> Vec<(u8, String)> {
        let rule: ByUrgency = text.parse().unwrap();
        let of = |u| rule.protection(u).map(|fec| (u, fec.to_string()));
        (0..=MAX_URGENCY).filter_map(of).collect()
    }

    #[test]
    fn an_urgency_is_compared() {
        let all = |urgencies: std::ops::RangeInclusive<u8>, fec: &str| {
            urgencies.map(|u| (u, fec.to_owned())).collect::<Vec<_>>()
        };
        assert_eq!(protected("u<3 => protect"), all(0..=2, "3,0ms"));
        assert_eq!(protected("u<=3=>protect 3,25"), all(0..=3, "3,25ms"));
        assert_eq!(protected(" u = 7 =>  protect  0 "), all(7..=7, "0,0ms"));
        assert_eq!(protected("u<0 => protect"), []);
    }

    #[test]
    fn what_is_no_rule_is_refused() {
        for text in [
            "",
            "u<3",
            "=> protect",
            "u => protect",
            "u<8 => protect",
            "u<-1 => protect",
            "u>3 => protect",
            "u==3 => protect",
            "v<3 => protect",
            "u<3 => protect3",
            "u<3 => defend",
            "u<3 -> protect",
            "u<=>3 => protect",
            "u<3 => protect 3 => protect",
        ] {
            assert!(text.parse::<ByUrgency>().is_err(), "{text}");
        }
        let error = "u<3 => protect 256".parse::<ByUrgency>().unwrap_err();
        assert!(error.contains("BLT[,RDT]"), "{error}");
    }

    #[test]
    fn it_is_told_from_patterns() {
        for line in ["u<3 => protect", "u<=2=>", "u = 9 => x", "u>3 => protect", "u<-1=>protect"] {
            assert!(ByUrgency::is_meant(line), "{line}");
        }
        for line in ["u<3 u=1", "u=3 exp_p=(\"=>\")", "u=> u=1", "us => u=1", "/u=3=> u=1"] {
            assert!(!ByUrgency::is_meant(line), "{line}");
        }
    }
}
