//! The cases of the interop runner.

use std::time::Duration;

use sutura_relay::Change;

use crate::network::Network;

const KB: usize = 1 << 10;
const MB: usize = 1 << 20;

/// A case: the tasks of both ends, and the network between them. [`crate::check`] checks the results.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    pub name: &'static str,
    /// The test case of the client.
    pub client: &'static str,
    /// The test case of the server.
    pub server: &'static str,
    /// The sizes of the files.
    pub files: &'static [usize],
    pub network: Network,
    /// Whether the two ends talk over IPv6.
    pub ipv6: bool,
    /// How many certificates the server has.
    pub chain: usize,
    /// How long the names of the files are.
    pub names: usize,
    pub timeout: Duration,
    /// The number of runs. If there are several, their rates are a measurement.
    pub runs: usize,
    /// Whether a CUBIC flow goes over the same link.
    pub crossed: bool,
    pub check: Check,
}

/// The conditions of a case, besides the arrival of all files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    OneHandshake,
    SeveralHandshakes(usize),
    RepeatedInitials,
    Multiplexing,
    Retry,
    Resumption,
    ZeroRtt,
    Outage,
    KeyUpdate,
    Ecn,
    Amplification,
    Version2,
    Rebinding,
    Migration,
}

const USUAL: Case = Case {
    name: "",
    client: "transfer",
    server: "transfer",
    files: &[],
    network: Network::Plain,
    ipv6: false,
    chain: 1,
    names: 8,
    timeout: Duration::from_secs(60),
    runs: 1,
    crossed: false,
    check: Check::OneHandshake,
};

/// The interop runner has nine certificates in the chain, but rustls verifies at most six below the
/// authority.
const LONG_CHAIN: usize = 6;

const LONG: Duration = Duration::from_secs(300);

/// All cases, in the order of the interop runner.
pub const CASES: &[Case] = &[
    Case { client: "handshake", server: "handshake", files: &[KB], ..named("handshake") },
    Case { files: &[2 * MB, 3 * MB, 5 * MB], ..named("transfer") },
    Case {
        client: "handshake",
        server: "handshake",
        files: &[KB],
        network: Network::Slow,
        check: Check::RepeatedInitials,
        ..named("longrtt")
    },
    Case { client: "chacha20", server: "chacha20", files: &[3 * MB], ..named("chacha20") },
    Case {
        server: "multiplexing",
        files: &[32; 1999],
        check: Check::Multiplexing,
        ..named("multiplexing")
    },
    Case {
        client: "retry",
        server: "retry",
        files: &[10 * KB],
        check: Check::Retry,
        ..named("retry")
    },
    Case {
        client: "resumption",
        server: "resumption",
        files: &[5 * KB, 10 * KB],
        // With this many certificates, a full handshake is larger than a padded handshake without
        // certificates.
        chain: 3,
        check: Check::Resumption,
        ..named("resumption")
    },
    Case {
        client: "zerortt",
        server: "zerortt",
        files: &[32; 40],
        names: 250,
        check: Check::ZeroRtt,
        ..named("zerortt")
    },
    Case {
        client: "http3",
        server: "http3",
        files: &[5 * KB, 10 * KB, 500 * KB],
        ..named("http3")
    },
    Case {
        files: &[10 * MB],
        network: Network::Blackhole,
        check: Check::Outage,
        ..named("blackhole")
    },
    Case { client: "keyupdate", files: &[3 * MB], check: Check::KeyUpdate, ..named("keyupdate") },
    Case { client: "ecn", server: "ecn", files: &[100 * KB], check: Check::Ecn, ..named("ecn") },
    Case {
        files: &[5 * KB],
        network: Network::LosesSecondFlight,
        chain: LONG_CHAIN,
        check: Check::Amplification,
        ..named("amplificationlimit")
    },
    Case {
        client: "multiconnect",
        server: "multiconnect",
        files: &[KB; 50],
        network: Network::Lossy(0.3),
        timeout: LONG,
        check: Check::SeveralHandshakes(50),
        ..named("handshakeloss")
    },
    Case { files: &[2 * MB], network: Network::Lossy(0.02), ..named("transferloss") },
    Case {
        client: "multiconnect",
        server: "multiconnect",
        files: &[KB; 50],
        network: Network::Damaging(0.3),
        timeout: LONG,
        check: Check::SeveralHandshakes(50),
        ..named("handshakecorruption")
    },
    Case { files: &[2 * MB], network: Network::Damaging(0.02), ..named("transfercorruption") },
    Case { files: &[5 * KB, 10 * KB], ipv6: true, ..named("ipv6") },
    Case { client: "v2", server: "v2", files: &[KB], check: Check::Version2, ..named("v2") },
    Case {
        files: &[10 * MB],
        network: Network::Rebinds(Change::Port),
        check: Check::Rebinding,
        ..named("rebind-port")
    },
    Case {
        files: &[10 * MB],
        network: Network::Rebinds(Change::Address),
        check: Check::Rebinding,
        ..named("rebind-addr")
    },
    Case {
        server: "connectionmigration",
        files: &[2 * MB],
        check: Check::Migration,
        ..named("connectionmigration")
    },
    Case { files: &[10 * MB], runs: 5, ..named("goodput") },
    Case {
        files: &[25 * MB],
        timeout: Duration::from_secs(180),
        runs: 1,
        crossed: true,
        ..named("crosstraffic")
    },
];

const fn named(name: &'static str) -> Case {
    Case { name, ..USUAL }
}

impl Case {
    /// Whether a rate is measured.
    pub fn is_measurement(&self) -> bool {
        self.runs > 1 || self.crossed
    }
}
