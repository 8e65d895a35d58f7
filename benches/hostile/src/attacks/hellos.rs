//! Many handshakes that are begun, some of which the server has to refuse.

use super::{Attack, Pace, Tactic, attack};
use crate::fleet::Fleet;
use crate::target::Needs;
use std::time::Instant;
use sutura_benches::Error;

/// An application protocol that no server knows.
const UNKNOWN: &[u8] = b"sutura-hostile";

/// Connections whose answers are awaited at a time: enough for a round trip.
const LISTENING: usize = 500;

pub fn all() -> Vec<Attack> {
    let hellos = |name, about, rate, alpn, retry| Attack {
        alpn,
        needs: Needs { retry },
        seconds: 5,
        ..attack(name, about, "ClientHello", Pace::Events(rate), || Box::new(Hellos))
    };
    vec![
        hellos("refused-hellos", "ClientHellos with an unknown ALPN", 12_000, UNKNOWN, false),
        hellos("refused-hellos-slower", "the same, fewer", 5_000, UNKNOWN, false),
        hellos("hellos", "ClientHellos that nobody continues", 12_000, b"h3", false),
        hellos("hellos-slower", "the same, fewer", 5_000, b"h3", false),
        hellos("hellos-retry", "ClientHellos, answered by Retry", 12_000, b"h3", true),
        Attack {
            alpn: UNKNOWN,
            ..attack(
                "refused-handshakes",
                "handshakes with an unknown ALPN by clients that answer a Retry",
                "connection",
                Pace::Events(2_000),
                || Box::new(Handshakes::default()),
            )
        },
    ]
}

/// Sends first flights, each from another apparent client.
struct Hellos;

impl Tactic for Hellos {
    fn step(&mut self, fleet: &mut Fleet, _now: Instant, quota: u64) -> Result<(), Error> {
        for _ in 0..quota {
            let from = fleet.rng.index(usize::MAX);
            let datagram = fleet.first_flight()?;
            fleet.send(from, &datagram);
            fleet.tally.events += 1;
        }
        Ok(())
    }
}

/// Opens connections and leaves each connection when it has ended or takes long.
#[derive(Default)]
struct Handshakes {
    begun: Vec<usize>,
}

impl Tactic for Handshakes {
    fn step(&mut self, fleet: &mut Fleet, now: Instant, quota: u64) -> Result<(), Error> {
        for _ in 0..quota {
            self.begun.push(fleet.open(now)?);
            fleet.tally.events += 1;
        }
        let oldest = self.begun.len().saturating_sub(LISTENING);
        for at in self.begun.drain(..oldest) {
            fleet.forget(at);
        }
        Ok(())
    }
}
