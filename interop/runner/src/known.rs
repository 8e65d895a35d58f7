//! Known failures that are the peer's fault.

use crate::cell::Cell;

/// A failure, and the reason why it is not our fault.
#[derive(Debug)]
pub struct Known {
    /// The client; empty for any.
    client: &'static str,
    /// The server; empty for any.
    server: &'static str,
    case: &'static str,
    pub why: &'static str,
}

/// All known failures.
const KNOWN: &[Known] = &[
    stays("quic-go"),
    stays("quiche"),
    stays("quinn"),
    stays("s2n-quic"),
    leaves_losses("rebind-addr"),
    leaves_losses("rebind-port"),
    Known {
        client: "",
        server: "quic-go",
        case: "amplificationlimit",
        why: "quic-go sends while it has not yet sent three times what it received, so that its last \
              datagram exceeds that: 3840 bytes for 1200.",
    },
];

/// A server that, in some runs, forgets the data that was in flight when its client moved.
const fn leaves_losses(case: &'static str) -> Known {
    Known {
        client: "",
        server: "quiche",
        case,
        why: "What the network loses of the last packets before its client moves, quiche does not always send again: its \
              qlog shows packets that were never acknowledged, whose data was sent only once, and a stream that waits.",
    }
}

/// A client that stays at the address to which it connected.
const fn stays(client: &'static str) -> Known {
    Known {
        client,
        server: "",
        case: "connectionmigration",
        why: "The client does not go over to a server's preferred address, which RFC 9000 section 9.6 leaves to it.",
    }
}

/// The known failure of a cell, if there is one.
pub fn find(cell: &Cell) -> Option<&'static Known> {
    let is = |pattern: &str, name: &str| pattern.is_empty() || pattern == name;
    KNOWN.iter().find(|known| {
        known.case == cell.case.name
            && is(known.client, &cell.client)
            && is(known.server, &cell.server)
    })
}
