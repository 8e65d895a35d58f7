//! All that is allowed.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use super::name::Name;
use super::place::{Hosts, Place, Ports};
use super::rule::AllowRule;
use super::special::{Special, special};
use super::target::Transport;

/// What clients may use: what one of the rules allows. Nothing by default.
#[derive(Debug, Clone, Default)]
pub struct AllowList {
    rules: Vec<AllowRule>,
}

/// What no rule allows. As text it says which rule would.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Denied {
    /// The tunnel that was asked for.
    pub transport: Transport,
    /// The name that was asked for, if it was one.
    pub name: Option<Name>,
    /// The address that was asked for, or that the name was resolved to.
    pub address: SocketAddr,
}

impl AllowList {
    /// Whether a client may use this destination. `name` is what it asked for, unless that was an address, and
    /// `address` is what the connection is about to be made to: a name is resolved once, each address that is
    /// tried is checked, and the answer holds for that address only. Otherwise whoever owns the name could let
    /// it stand for another address by then (DNS rebinding).
    ///
    /// # Errors
    /// No rule allows it.
    pub fn check(
        &self,
        transport: Transport,
        name: Option<&Name>,
        address: SocketAddr,
    ) -> Result<(), Denied> {
        if self.rules.iter().any(|rule| rule.allows(transport, name, address)) {
            return Ok(());
        }
        Err(Denied { transport, name: name.cloned(), address })
    }

    /// Whether a rule may allow a port of a host of this name. Otherwise the name need not be resolved.
    #[must_use]
    pub fn may_allow(&self, transport: Transport, name: &Name, port: u16) -> bool {
        let mut rules = self.rules.iter().filter(|rule| rule.is_about(transport));
        rules.any(|rule| rule.place.ports.contains(port) && rule.place.hosts.may_have(name))
    }

    /// Whether a rule allows some port of the host at this address, for which the client said this name, if any.
    #[must_use]
    pub fn may_reach(&self, transport: Transport, name: Option<&Name>, ip: IpAddr) -> bool {
        let mut rules = self.rules.iter().filter(|rule| rule.is_about(transport));
        rules.any(|rule| rule.place.hosts.contains(name, ip))
    }

    /// Whether a rule may allow some port of a host of this name. Otherwise the name need not be resolved.
    #[must_use]
    pub fn may_reach_name(&self, transport: Transport, name: &Name) -> bool {
        let mut rules = self.rules.iter().filter(|rule| rule.is_about(transport));
        rules.any(|rule| rule.place.hosts.may_have(name))
    }

    /// The rules, in the order in which they were added.
    #[must_use]
    pub fn rules(&self) -> &[AllowRule] {
        &self.rules
    }
}

impl FromIterator<AllowRule> for AllowList {
    fn from_iter<I: IntoIterator<Item = AllowRule>>(rules: I) -> Self {
        Self { rules: rules.into_iter().collect() }
    }
}

impl Extend<AllowRule> for AllowList {
    fn extend<I: IntoIterator<Item = AllowRule>>(&mut self, rules: I) {
        self.rules.extend(rules);
    }
}

impl Denied {
    /// The narrowest rule that would allow it: by its name, unless its address is special.
    #[must_use]
    pub fn remedy(&self) -> AllowRule {
        let ip = self.address.ip().to_canonical();
        let hosts = match &self.name {
            Some(name) if special(ip).is_none() => Hosts::Name(name.clone()),
            Some(_) | None => Hosts::Network(ip.into()),
        };
        let ports = match self.address.port() {
            0 => Ports::ALL,
            port => Ports::one(port),
        };
        let transport = match self.transport {
            Transport::Tcp | Transport::Udp => None,
            Transport::Ip => Some(Transport::Ip),
        };
        AllowRule { transport, place: Place { hosts, ports } }
    }

    /// What is special about the address.
    #[must_use]
    pub fn special(&self) -> Option<Special> {
        special(self.address.ip()).map(|(_, what)| what)
    }
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { transport, name, address } = self;
        match name {
            Some(name) => write!(f, "{transport} to {name} at {address}")?,
            None => write!(f, "{transport} to {address}")?,
        }
        if let Some(what) = self.special() {
            write!(f, ", a {} address,", what.as_str())?;
        }
        write!(f, " is not allowed (--allow {} would allow it)", self.remedy())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::name::tests::any_name;
    use super::*;

    fn list(rules: &str) -> AllowList {
        rules.split_whitespace().map(|rule| rule.parse::<AllowRule>().unwrap()).collect()
    }

    fn allows(list: &AllowList, transport: Transport, name: &str, address: &str) -> bool {
        let name = (!name.is_empty()).then(|| name.parse().unwrap());
        list.check(transport, name.as_ref(), address.parse().unwrap()).is_ok()
    }

    #[test]
    fn what_a_rule_allows_is_allowed_and_nothing_else() {
        let list = list(
            "10.0.0.0/8:22 [fd00::/8]:443 udp/192.168.1.7:* *.example.org:443 db.example.org:5432-5440",
        );
        for (name, address, tcp, udp) in [
            ("", "10.9.8.7:22", true, true),
            ("whatever.test", "10.9.8.7:22", true, true),
            ("", "[::ffff:10.9.8.7]:22", true, true),
            ("", "[64:ff9b::10.9.8.7]:22", false, false),
            ("", "10.9.8.7:23", false, false),
            ("", "11.0.0.1:22", false, false),
            ("", "[fd12::1]:443", true, true),
            ("", "192.168.1.7:9", false, true),
            ("", "192.168.1.8:9", false, false),
            ("www.example.org", "1.1.1.1:443", true, true),
            ("www.example.org", "1.1.1.1:80", false, false),
            ("example.org", "1.1.1.1:443", false, false),
            ("db.example.org", "1.1.1.1:5440", true, true),
            ("db.example.org", "1.1.1.1:5441", false, false),
            ("db.example.com", "1.1.1.1:5440", false, false),
            ("", "1.1.1.1:443", false, false),
        ] {
            assert_eq!(allows(&list, Transport::Tcp, name, address), tcp, "{name} {address}");
            assert_eq!(allows(&list, Transport::Udp, name, address), udp, "{name} {address}");
        }
        assert!(!allows(&AllowList::default(), Transport::Tcp, "", "1.1.1.1:443"));
    }

    #[test]
    fn a_name_that_stands_for_a_special_address_is_not_allowed() {
        let list = list("*.example.org:* db.example.org:5432 10.1.0.0/16:5432");
        for address in ["127.0.0.1:5432", "169.254.169.254:80", "10.2.0.1:5432", "[::1]:5432"] {
            assert!(!allows(&list, Transport::Tcp, "db.example.org", address), "{address}");
        }
        assert!(allows(&list, Transport::Tcp, "db.example.org", "10.1.0.1:5432"));
        assert!(!allows(&list, Transport::Tcp, "db.example.org", "10.1.0.1:80"));
    }

    #[test]
    fn special_addresses_are_allowed_by_rules_that_name_them_only() {
        let all = list("* 0.0.0.0/0:* 8.0.0.0/5:* [::/0]:* [::/1]:* [fc00::/6]:* *:*");
        for address in [
            "127.0.0.1:1",
            "0.0.0.0:1",
            "10.0.0.1:1",
            "100.64.0.1:1",
            "169.254.169.254:1",
            "172.16.0.1:1",
            "192.168.0.1:1",
            "224.0.0.1:1",
            "255.255.255.255:1",
            "192.0.2.1:1",
            "[::1]:1",
            "[::]:1",
            "[::ffff:127.0.0.1]:1",
            "[64:ff9b::127.0.0.1]:1",
            "[64:ff9b:1::1]:1",
            "[2002:7f00:1::]:1",
            "[fd00::1]:1",
            "[fe80::1]:1",
            "[ff02::1]:1",
            "[2001:db8::1]:1",
        ] {
            assert!(!allows(&all, Transport::Tcp, "", address), "{address}");
            let address: SocketAddr = address.parse().unwrap();
            let named = AllowList::from_iter([AllowRule {
                transport: None,
                place: Place {
                    hosts: Hosts::Network(address.ip().to_canonical().into()),
                    ports: Ports::ALL,
                },
            }]);
            assert!(named.check(Transport::Udp, None, address).is_ok(), "{address}");
        }
        assert!(allows(&all, Transport::Tcp, "", "9.9.9.9:1"));
        assert!(allows(&all, Transport::Ip, "", "[2606:4700::1]:0"));
        assert!(allows(
            &list("[64:ff9b::a00:0/104]:*"),
            Transport::Tcp,
            "",
            "[64:ff9b::10.0.0.1]:1"
        ));
    }

    #[test]
    fn packets_without_ports_need_a_rule_for_all_ports() {
        let list = list("10.0.0.0/8:22 ip/192.168.0.0/16 tcp/172.16.0.0/12");
        for (address, ip) in [
            ("10.0.0.1:22", true),
            ("10.0.0.1:0", false),
            ("192.168.0.1:0", true),
            ("192.168.0.1:5", true),
            ("172.16.0.1:5", false),
        ] {
            assert_eq!(allows(&list, Transport::Ip, "", address), ip, "{address}");
        }
        assert!(!allows(&list, Transport::Tcp, "", "192.168.0.1:5"));
    }

    #[test]
    fn a_refusal_says_what_would_help() {
        for (name, address, expected) in [
            (
                None,
                "10.1.2.3:22",
                "tcp to 10.1.2.3:22, a private address, is not allowed (--allow 10.1.2.3:22 would allow it)",
            ),
            (
                Some("db.example.org"),
                "1.1.1.1:5432",
                "tcp to db.example.org at 1.1.1.1:5432 is not allowed (--allow db.example.org:5432 would allow it)",
            ),
            (
                Some("db.example.org"),
                "127.0.0.1:5432",
                "tcp to db.example.org at 127.0.0.1:5432, a loopback address, is not allowed \
                 (--allow 127.0.0.1:5432 would allow it)",
            ),
        ] {
            let name = name.map(|name| name.parse().unwrap());
            let address = address.parse().unwrap();
            let denied =
                AllowList::default().check(Transport::Tcp, name.as_ref(), address).unwrap_err();
            assert_eq!(denied.to_string(), expected);
        }
    }

    fn any_transport() -> impl Strategy<Value = Transport> {
        (0..3_usize).prop_map(|at| Transport::ALL[at])
    }

    /// Any address, special ones more often than they are.
    fn any_ip() -> impl Strategy<Value = IpAddr> {
        let special = ["10.1.2.3", "127.0.0.1", "::1", "::ffff:10.0.0.1", "64:ff9b::1", "fd00::1"];
        prop_oneof![
            any::<IpAddr>(),
            (0..special.len()).prop_map(move |at| special[at].parse().unwrap())
        ]
    }

    proptest! {
        #[test]
        fn the_remedy_of_a_refusal_is_a_rule_that_helps(
            transport in any_transport(),
            name in proptest::option::of(any_name()),
            ip in any_ip(),
            port: u16,
        ) {
            let address = SocketAddr::new(ip, port);
            let denied = AllowList::default().check(transport, name.as_ref(), address).unwrap_err();
            let rule: AllowRule = denied.remedy().to_string().parse().unwrap();
            prop_assert_eq!(&rule, &denied.remedy());
            let list = AllowList::from_iter([rule]);
            prop_assert_eq!(list.check(transport, name.as_ref(), address), Ok(()));
            if let Some(name) = &name {
                prop_assert!(list.may_allow(transport, name, port));
            }
        }

        #[test]
        fn names_that_may_not_be_allowed_are_not(
            rules in prop::collection::vec(r"(tcp/|udp/)?(\*|1\.0\.0\.0/8|(\*\.)?[ab]\.[ab]):(\*|[1-3])", 0..4),
            transport in any_transport(),
            name in r"([ab]\.){1,3}[ab]",
            port in 0..4_u16,
        ) {
            let list = list(&rules.join(" "));
            let name: Name = name.parse().unwrap();
            let allowed = ["1.1.1.1", "2.2.2.2", "10.0.0.1"].into_iter().any(|ip| {
                let address = SocketAddr::new(ip.parse().unwrap(), port);
                list.check(transport, Some(&name), address).is_ok()
            });
            prop_assert!(!allowed || list.may_allow(transport, &name, port));
        }
    }
}
