//! Protection of some responses by their priority: `u<3 => protect 3,25` (Eghbal and Lu 2022), or by any
//! policy: `u<3, !i => protect block:code=rs` (Eghbal and Lu 2025).

use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use sutura::Protection;
use sutura::http::{DefaultProtection, DefaultProtections};

use crate::fec::Fec;

/// The largest urgency (RFC 9218 section 4.1).
const MAX_URGENCY: u8 = 7;
/// The protection if none is named.
const DEFAULT: Fec = Fec { burst: 3, delay: Duration::ZERO };
/// The sign between a condition and a protection.
const ARROW: &str = "=>";
const ACTION: &str = "protect";
const CONDITION: &str = "expected an urgency from 0 to 7, i or !i, or one of each, and a protection, \
                         such as u<3 => protect, u<=2, !i => protect 3,25 or i => protect tail:burst=2";

/// A protection for responses of some priorities.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtectRule {
    /// The urgencies; may be empty.
    urgencies: RangeInclusive<u8>,
    /// Whether responses must be incremental or must not.
    incremental: Option<bool>,
    protection: DefaultProtection,
}

impl ProtectRule {
    /// The rule for all responses.
    pub fn for_all(fec: Fec) -> Self {
        let protection = fec.default_protection();
        Self { urgencies: 0..=MAX_URGENCY, incremental: None, protection }
    }

    /// Whether a line of a file of rules is a rule for protection: it has an arrow behind a text that is like
    /// a condition, and no pattern and its priority begin with such a text.
    pub fn is_meant(line: &str) -> bool {
        let Some((condition, action)) = line.split_once(ARROW) else { return false };
        let mut terms = condition.split(',').map(str::trim);
        let is_flag = |term: &str| matches!(term, "i" | "!i");
        let is_comparison = |term: &str| {
            let rest = term.strip_prefix('u').unwrap_or_default().trim();
            let is_like_it = |c: char| "<=>-".contains(c) || c.is_ascii_digit() || c == ' ';
            rest.starts_with(['<', '=', '>']) && rest.chars().all(is_like_it)
        };
        let is_action = || action.trim_start().starts_with(ACTION);
        terms.clone().all(|term| is_flag(term) || is_comparison(term))
            // `i=>` alone may be the name of a file.
            && (terms.any(is_comparison) || is_action())
    }

    /// Adds the protection to the server's protections, behind the ones that it has.
    pub fn add_to(&self, all: &mut DefaultProtections) {
        all.add(self.urgencies.clone(), self.incremental, &self.protection);
    }
}

impl FromStr for ProtectRule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (condition, action) = text.split_once(ARROW).ok_or(CONDITION)?;
        let (mut urgencies, mut incremental) = (None, None);
        for term in condition.split(',').map(str::trim) {
            let again = match term {
                "i" | "!i" => incremental.replace(term == "i").is_some(),
                _ => urgencies.replace(compared(term).ok_or(CONDITION)?).is_some(),
            };
            if again {
                return Err(CONDITION.into());
            }
        }
        let protection = action.trim().strip_prefix(ACTION).ok_or(CONDITION)?;
        let protection = match protection.trim_start() {
            "" => DEFAULT.default_protection(),
            named if named.len() < protection.len() => named_protection(named)?,
            _ => return Err(CONDITION.into()),
        };
        let urgencies = urgencies.unwrap_or(0..=MAX_URGENCY);
        Ok(Self { urgencies, incremental, protection })
    }
}

/// The urgencies for which a comparison such as `u<3` holds.
fn compared(term: &str) -> Option<RangeInclusive<u8>> {
    let comparison = term.strip_prefix('u')?.trim_start();
    let value = comparison.trim_start_matches(['<', '=']);
    let urgency = value.trim().parse().ok().filter(|urgency| *urgency <= MAX_URGENCY)?;
    match comparison.strip_suffix(value)? {
        "<=" => Some(0..=urgency),
        "=" => Some(urgency..=urgency),
        // Nothing is below 0.
        "<" => Some(urgency.checked_sub(1).map_or(RangeInclusive::new(1, 0), |last| 0..=last)),
        _ => None,
    }
}

/// `BLT[,RDT]`, `none`, or a policy as `sutura policies` lists them.
fn named_protection(text: &str) -> Result<DefaultProtection, String> {
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        return Ok(text.parse::<Fec>()?.default_protection());
    }
    if text == "none" {
        return Ok(DefaultProtection::NONE);
    }
    let policy = sutura_research::redundancy().find(text).map_err(|error| error.to_string())?;
    Ok(DefaultProtection::Policy(Protection::new(policy)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The priorities that a rule protects, by `u` and `i`.
    fn protected(text: &str) -> Vec<(String, String)> {
        let mut all = DefaultProtections::default();
        text.parse::<ProtectRule>().unwrap().add_to(&mut all);
        let each = (0..=MAX_URGENCY).flat_map(|u| ["", ", i"].map(|i| format!("u={u}{i}")));
        each.filter_map(|priority| {
            let protection = all.get(&priority.parse().unwrap())?.to_string();
            Some((priority, protection))
        })
        .collect()
    }

    #[test]
    fn an_urgency_is_compared() {
        let all = |urgencies: RangeInclusive<u8>, protection: &str| {
            let of = |u| ["", ", i"].map(|i| (format!("u={u}{i}"), protection.to_owned()));
            urgencies.flat_map(of).collect::<Vec<_>>()
        };
        assert_eq!(protected("u<3 => protect"), all(0..=2, "exp_b=3"));
        assert_eq!(protected("u<=3=>protect 3,25"), all(0..=3, "exp_b=3, exp_d=25"));
        assert_eq!(protected(" u = 7 =>  protect  0 "), all(7..=7, "exp_b=0"));
        assert_eq!(protected("u<0 => protect"), []);
        assert_eq!(protected("u<=7 => protect none"), all(0..=7, "exp_b=0"));
    }

    #[test]
    fn whether_a_response_is_incremental_is_compared() {
        let of = |priorities: &[&str]| -> Vec<_> {
            priorities.iter().map(|p| ((*p).to_owned(), "exp_b=3".to_owned())).collect()
        };
        assert_eq!(protected("u<2, !i => protect"), of(&["u=0", "u=1"]));
        assert_eq!(protected("i,u<=1=>protect"), of(&["u=0, i", "u=1, i"]));
        assert_eq!(protected("!i => protect").len(), 8);
        assert_eq!(protected("i => protect").len(), 8);
    }

    #[test]
    fn any_policy_protects() {
        for (policy, shown) in [
            ("block:code=rs,source=20,parity=1", "source=20"),
            ("tail:burst=2", "burst=2"),
            ("auto", "auto"),
        ] {
            let all = protected(&format!("u=2, i => protect {policy}"));
            let [(priority, protection)] = &all[..] else { panic!("{all:?}") };
            assert_eq!(priority, "u=2, i");
            assert!(protection.contains(shown), "{protection}");
        }
        let error = "u<3 => protect blocks".parse::<ProtectRule>().unwrap_err();
        assert!(error.contains("blocks"), "{error}");
        assert!("u<3 => protect block:code=none".parse::<ProtectRule>().is_err());
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
            "u<3, => protect",
            "u<3, u=1 => protect",
            "i, !i => protect",
            "u<3 i => protect",
            "!u<3 => protect",
            "u<3, j => protect",
        ] {
            assert!(text.parse::<ProtectRule>().is_err(), "{text}");
        }
        let error = "u<3 => protect 256".parse::<ProtectRule>().unwrap_err();
        assert!(error.contains("BLT[,RDT]"), "{error}");
    }

    #[test]
    fn it_is_told_from_patterns() {
        for line in [
            "u<3 => protect",
            "u<=2=>",
            "u = 9 => x",
            "u>3 => protect",
            "u<-1=>protect",
            "i => protect 3",
            "!i=>protect",
            "u<3, !i => x",
        ] {
            assert!(ProtectRule::is_meant(line), "{line}");
        }
        for line in [
            "u<3 u=1",
            "u=3 exp_p=(\"=>\")",
            "u=> u=1",
            "us => u=1",
            "/u=3=> u=1",
            "i=> u=1",
            "ii => protect",
        ] {
            assert!(!ProtectRule::is_meant(line), "{line}");
        }
    }
}
