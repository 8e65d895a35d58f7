//! One rule for flows.

use std::str::FromStr;
use std::time::Duration;

use sutura::Protection;

use super::class::Class;
use super::dscp::Dscp;
use super::info::FlowInfo;
use crate::access::{AllowRule, Hosts, Ports, Transport};

/// Longest rule, in bytes.
const MAX_RULE: usize = 1024;
/// The largest urgency (RFC 9218 section 4.1).
const MAX_URGENCY: u8 = 7;
/// The longest deadline.
const MAX_DEADLINE: Duration = Duration::from_secs(60);

/// A condition, and what is done with flows for which it holds: `udp:51820 bulk`, `dscp=ef real-time
/// deadline=100ms`, `*.example.org:443 u=1 protect none`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    terms: Vec<Term>,
    changes: Changes,
}

/// What a rule says of flows. What it does not say stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Changes {
    /// Their class.
    pub class: Option<Class>,
    /// How much longer than the path's own delay their datagrams may take; `Some(None)` is for ever.
    pub deadline: Option<Option<Duration>>,
    /// Their urgency, 0 to 7.
    pub urgency: Option<u8>,
    /// Their protection; `Some(None)` is none.
    pub protection: Option<Option<Protection>>,
}

/// A part of a condition. All of them must hold.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Term {
    /// `tcp`, `udp` or `ip`, with ports as in `udp:51820` or without.
    Transport(Transport, Ports),
    /// A destination: `10.0.0.0/8:22`, `udp/*.example.org:443`.
    To(AllowRule),
    /// `from=10.77.0.2`.
    From(Hosts),
    /// `dscp=ef`.
    Dscp(Dscp),
}

impl Rule {
    /// Whether the rule is about a flow.
    #[must_use]
    pub fn is_about(&self, flow: &FlowInfo) -> bool {
        self.terms.iter().all(|term| term.holds(flow))
    }

    /// What it says of flows that it is about.
    #[must_use]
    pub fn changes(&self) -> &Changes {
        &self.changes
    }
}

impl Term {
    fn holds(&self, flow: &FlowInfo) -> bool {
        match self {
            Self::Transport(transport, ports) => {
                *transport == flow.transport && ports.contains(flow.destination.port())
            }
            Self::To(AllowRule { transport, place }) => {
                transport.is_none_or(|transport| transport == flow.transport)
                    && place.covers(flow.name.as_ref(), flow.destination)
            }
            Self::From(hosts) => flow.source.is_some_and(|source| hosts.covers(None, source)),
            Self::Dscp(dscp) => *dscp == flow.dscp,
        }
    }
}

impl FromStr for Term {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(mark) = text.strip_prefix("dscp=") {
            return mark.parse().map(Self::Dscp).map_err(|e| format!("{mark:?}: {e}"));
        }
        if let Some(hosts) = text.strip_prefix("from=") {
            return match hosts.parse() {
                Ok(hosts @ Hosts::Network(_)) => Ok(Self::From(hosts)),
                Ok(Hosts::Public | Hosts::Name(_) | Hosts::Below(_)) | Err(_) => Err(format!(
                    "{hosts:?} is neither an address nor a network, such as from=10.77.0.2"
                )),
            };
        }
        let (head, ports) =
            text.split_once(':').map_or((text, None), |(head, ports)| (head, Some(ports)));
        if let Some(transport) = Transport::find(head) {
            let ports = ports.map_or(Ok(Ports::ALL), str::parse);
            let ports = ports.map_err(|e| format!("{text:?}: {e}"))?;
            return Ok(Self::Transport(transport, ports));
        }
        text.parse().map(Self::To).map_err(|e| e.to_string())
    }
}

impl FromStr for Rule {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        if line.len() > MAX_RULE {
            return Err(format!("a rule of more than {MAX_RULE} bytes"));
        }
        let mut words = line.split_whitespace();
        let condition = words.next().ok_or("no condition")?;
        let terms = condition.split(',').map(str::parse).collect::<Result<_, _>>()?;
        let mut changes = Changes::default();
        while let Some(word) = words.next() {
            changes.add(word, &mut words)?;
        }
        if changes.is_empty() {
            return Err(format!(
                "nothing after {condition:?}, such as interactive, real-time, bulk, deadline=100ms, \
                 u=1, protect none"
            ));
        }
        Ok(Self { terms, changes })
    }
}

impl Changes {
    /// Adds what a word says, of which the next one may be a part.
    fn add<'a>(
        &mut self,
        word: &str,
        next: &mut impl Iterator<Item = &'a str>,
    ) -> Result<(), String> {
        let again = if let Some(class) = Class::find(word) {
            self.class.replace(class).is_some()
        } else if let Some(deadline) = word.strip_prefix("deadline=") {
            self.deadline.replace(parsed_deadline(deadline)?).is_some()
        } else if let Some(urgency) = word.strip_prefix("u=") {
            let parsed = urgency.parse().ok().filter(|urgency| *urgency <= MAX_URGENCY);
            let parsed = parsed.ok_or_else(|| format!("{word:?}: an urgency is from 0 to 7"))?;
            self.urgency.replace(parsed).is_some()
        } else if word == "protect" {
            let policy = next.next().ok_or("protect what, such as protect auto or protect none")?;
            self.protection.replace(parsed_protection(policy)?).is_some()
        } else {
            return Err(format!(
                "{word:?} is none of interactive, real-time, bulk, deadline=, u= and protect"
            ));
        };
        if again { Err(format!("{word:?} says again what was said")) } else { Ok(()) }
    }

    /// Whether nothing is said.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// `100ms`, `1s` or `none`.
fn parsed_deadline(text: &str) -> Result<Option<Duration>, String> {
    if text == "none" {
        return Ok(None);
    }
    let millis = match text.strip_suffix("ms") {
        Some(millis) => millis.parse().ok(),
        None => text.strip_suffix('s').and_then(|secs| secs.parse::<u64>().ok()?.checked_mul(1000)),
    };
    let deadline = millis.filter(|ms| *ms > 0).map(Duration::from_millis);
    deadline
        .filter(|deadline| *deadline <= MAX_DEADLINE)
        .map(Some)
        .ok_or_else(|| format!("deadline={text}: expected none, or a time to 60s, as in 100ms"))
}

/// A policy as `sutura policies` lists them, or `none`.
fn parsed_protection(text: &str) -> Result<Option<Protection>, String> {
    if text == "none" {
        return Ok(None);
    }
    let found = sutura::registry::redundancy().find(text).map_err(|error| error.to_string())?;
    Ok(Some(Protection::new(found)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(transport: Transport, destination: &str) -> FlowInfo {
        FlowInfo::to(transport, destination.parse().unwrap())
    }

    fn is_about(condition: &str, flow: &FlowInfo) -> bool {
        format!("{condition} bulk").parse::<Rule>().unwrap().is_about(flow)
    }

    #[test]
    fn all_parts_of_a_condition_must_hold() {
        let mut flow = flow(Transport::Udp, "10.1.2.3:51820");
        flow.name = Some("vpn.example.org".parse().unwrap());
        flow.source = Some("10.77.0.2".parse().unwrap());
        flow.dscp = Dscp::EF;
        for condition in [
            "*",
            "*:51820",
            "udp",
            "udp:51820",
            "udp:51000-52000",
            "udp:*",
            "udp/*:51820",
            "10.0.0.0/8:*",
            "0.0.0.0/0:51820",
            "udp/10.1.2.3:51820",
            "*.example.org:51820",
            "vpn.example.org",
            "from=10.77.0.0/16",
            "dscp=ef",
            "dscp=46",
            "udp:51820,dscp=ef,from=10.77.0.2,*.org",
        ] {
            assert!(is_about(condition, &flow), "{condition}");
        }
        for condition in [
            "tcp:51820",
            "tcp",
            "udp:51821",
            "tcp/*",
            "192.168.0.0/16:*",
            "*.example.com:51820",
            "from=10.77.0.3",
            "dscp=cs0",
            "udp:51820,dscp=af41",
        ] {
            assert!(!is_about(condition, &flow), "{condition}");
        }
        flow.source = None;
        assert!(!is_about("from=0.0.0.0/0", &flow));
    }

    #[test]
    fn a_rule_says_what_is_done() {
        let changes = |line: &str| line.parse::<Rule>().unwrap().changes().clone();
        let Changes { class, deadline, urgency, protection } =
            changes("dscp=ef real-time deadline=100ms u=1 protect tail:burst=1");
        assert_eq!((class, urgency), (Some(Class::RealTime), Some(1)));
        assert_eq!(deadline, Some(Some(Duration::from_millis(100))));
        assert!(protection.unwrap().unwrap().to_string().contains("burst=1"));
        assert_eq!(changes("udp deadline=2s").deadline, Some(Some(Duration::from_secs(2))));
        let changes = changes("udp\t deadline=none  protect none");
        assert_eq!((changes.class, changes.urgency), (None, None));
        assert_eq!((changes.deadline, changes.protection), (Some(None), Some(None)));
    }

    #[test]
    fn what_is_no_rule_is_named() {
        for (line, expected) in [
            ("", "no condition"),
            ("udp", "nothing after \"udp\""),
            ("udp:x bulk", "ports are"),
            ("udp:51820, bulk", "a name has 1 to 253 bytes"),
            ("dscp=64 bulk", "a mark is"),
            ("from=example.org bulk", "neither an address nor a network"),
            ("from=* bulk", "neither an address nor a network"),
            ("sctp/* bulk", "sctp/*"),
            ("udp fast", "\"fast\" is none of"),
            ("udp bulk bulk", "says again"),
            ("udp bulk interactive", "says again"),
            ("udp u=8", "from 0 to 7"),
            ("udp u=-1", "from 0 to 7"),
            ("udp deadline=0ms", "expected none, or a time to 60s"),
            ("udp deadline=1", "expected none, or a time to 60s"),
            ("udp deadline=61s", "expected none, or a time to 60s"),
            ("udp deadline=60001ms", "expected none, or a time to 60s"),
            ("udp protect", "protect what"),
            ("udp protect nothing", "nothing"),
            ("udp protect auto:within=soon", "within"),
            (&format!("udp {}", "u=1 ".repeat(300)), "more than 1024 bytes"),
        ] {
            let error = line.parse::<Rule>().unwrap_err();
            assert!(error.contains(expected), "{line}: {error}");
        }
    }
}
