//! Failures that are the peer's.

use crate::cell::Cell;

/// A failure, and why it is not ours.
#[derive(Debug)]
pub struct Known {
    /// The client; empty for any.
    client: &'static str,
    /// The server; empty for any.
    server: &'static str,
    case: &'static str,
    pub why: &'static str,
}

/// All of them.
const KNOWN: &[Known] = &[
    stays("quic-go"),
    stays("quiche"),
    stays("quinn"),
    stays("s2n-quic"),
    Known {
        client: "",
        server: "quic-go",
        case: "amplificationlimit",
        why: "quic-go sends while it has not yet sent three times what it received, so that its last \
              datagram exceeds that: 3840 bytes for 1200.",
    },
];

/// A client that stays where it connected to.
const fn stays(client: &'static str) -> Known {
    Known {
        client,
        server: "",
        case: "connectionmigration",
        why: "The client does not go over to a server's preferred address, which RFC 9000 section 9.6 leaves to it.",
    }
}

impl Known {
    /// Its number on the page: those with the same reason have the same.
    pub fn number(&self) -> usize {
        1 + KNOWN.iter().position(|known| known.why == self.why).unwrap_or(KNOWN.len())
    }
}

/// What is known of a cell that fails.
pub fn find(cell: &Cell) -> Option<&'static Known> {
    let is = |pattern: &str, name: &str| pattern.is_empty() || pattern == name;
    KNOWN.iter().find(|known| {
        known.case == cell.case.name
            && is(known.client, &cell.client)
            && is(known.server, &cell.server)
    })
}
