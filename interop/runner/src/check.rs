//! Checks the conditions of each case, besides the arrival of all files.

use std::time::Duration;

use sutura_relay::Way;

use crate::case::Check;
use crate::evidence::Evidence;
use crate::header::{Kind, VERSION_2};
use crate::record::{Datagram, Record};

/// Factor between the bytes that a server has received from an unvalidated address and the bytes that it may
/// send there.
const AMPLIFICATION: usize = 3;

/// Congestion experienced, in the bits of an ECN mark.
const CE: u8 = 3;

/// The data of a run.
#[derive(Debug)]
pub struct Run<'a> {
    pub record: &'a Record,
    pub ours: &'a Evidence,
    pub we_serve: bool,
    /// The size of the server's certificates.
    pub certificates: usize,
    /// How long a datagram takes to the client, if there is no queue.
    pub delay: Duration,
    /// The port of the server's preferred address.
    pub preferred: u16,
    /// The length of all paths that the client asks for.
    pub requested: usize,
}

type Verdict = Result<(), String>;

fn ensure(holds: bool, problem: impl Into<String>) -> Verdict {
    if holds { Ok(()) } else { Err(problem.into()) }
}

impl Check {
    /// How many handshakes the case has.
    fn handshakes(self) -> usize {
        match self {
            Self::SeveralHandshakes(count) => count,
            Self::Resumption | Self::ZeroRtt => 2,
            Self::OneHandshake
            | Self::RepeatedInitials
            | Self::Multiplexing
            | Self::Retry
            | Self::Outage
            | Self::KeyUpdate
            | Self::Ecn
            | Self::Amplification
            | Self::Version2
            | Self::Rebinding
            | Self::Migration => 1,
        }
    }

    /// Checks the conditions of the case, and that there was no Retry or handshake beyond the case's own.
    pub fn verify(self, run: &Run<'_>) -> Verdict {
        run.unasked_retry(self)?;
        run.handshakes(self.handshakes())?;
        match self {
            Self::OneHandshake | Self::SeveralHandshakes(_) => Ok(()),
            Self::RepeatedInitials => run.repeated_initials(),
            Self::Multiplexing => run.multiplexing(),
            Self::Retry => run.retry(),
            Self::Resumption => run.resumption(),
            Self::ZeroRtt => run.zero_rtt(),
            Self::Outage => run.outage(),
            Self::KeyUpdate => run.key_update(),
            Self::Ecn => run.ecn(),
            Self::Amplification => run.amplification(),
            Self::Version2 => run.version_2(),
            Self::Rebinding => run.rebinding(),
            Self::Migration => run.migration(),
        }
    }
}

impl Run<'_> {
    fn unasked_retry(&self, check: Check) -> Verdict {
        let retries = self.record.packets(Way::Down, Kind::Retry).count();
        ensure(check == Check::Retry || retries == 0, "the server sent a Retry")
    }

    fn handshakes(&self, count: usize) -> Verdict {
        let found = self.record.handshakes().len();
        ensure(found == count, format!("{found} handshakes instead of {count}"))
    }

    fn repeated_initials(&self) -> Verdict {
        let answer = self.record.way(Way::Down).next().map(|datagram| datagram.at + self.delay);
        let before = |datagram: &&Datagram| answer.is_none_or(|answer| datagram.at < answer);
        let count = self.record.way(Way::Up).take_while(before).count();
        ensure(count >= 2, "the client did not repeat its Initial")
    }

    fn multiplexing(&self) -> Verdict {
        let owner = if self.we_serve { "local" } else { "remote" };
        let limit = self.ours.parameter(owner, "initial_max_streams_bidi").unwrap_or(0);
        ensure((1..=1000).contains(&limit), format!("{limit} streams at first"))
    }

    fn retry(&self) -> Verdict {
        let sent = self.record.packets(Way::Down, Kind::Retry).count();
        let answered = self.record.packets(Way::Up, Kind::Initial).any(|packet| packet.token > 0);
        ensure(sent > 0, "the server sent no Retry")?;
        ensure(answered, "the client did not send the token")
    }

    /// A handshake with certificates is at least as large as the certificates.
    fn resumption(&self) -> Verdict {
        let Some(second) = self.record.handshakes().get(1).copied() else { return Ok(()) };
        let packets = self.record.packets(Way::Down, Kind::Handshake);
        let size: usize = packets.filter(|packet| packet.scid == second).map(|p| p.size).sum();
        ensure(size < self.certificates, format!("{size} bytes in the second handshake"))
    }

    fn zero_rtt(&self) -> Verdict {
        let early = self.record.bytes(Way::Up, Kind::ZeroRtt);
        ensure(early > self.requested / 2, format!("{early} bytes in 0-RTT packets"))?;
        let event =
            if self.we_serve { "transport:packet_received" } else { "transport:packet_sent" };
        let late = self.ours.stream_bytes(event, "1RTT");
        ensure(late <= self.requested / 2, format!("{late} bytes of requests in 1-RTT packets"))?;
        let accepted = self.ours.any("zero_rtt_accepted", |accepted| *accepted == true);
        ensure(accepted, "0-RTT was not accepted")
    }

    fn outage(&self) -> Verdict {
        let lost = self.record.0.iter().any(|datagram| datagram.dropped.is_some());
        ensure(lost, "the transfer was over before the outage")
    }

    fn key_update(&self) -> Verdict {
        let updated = self.ours.any("key_updates", |updates| updates.as_u64() > Some(0));
        ensure(updated, "the keys were not updated at both ends")
    }

    fn ecn(&self) -> Verdict {
        for (way, who) in [(Way::Up, "client"), (Way::Down, "server")] {
            let marked = self.record.way(way).any(|datagram| datagram.ecn != 0);
            ensure(marked, format!("the {who} sends no marks"))?;
            let congested = self.record.way(way).any(|datagram| datagram.ecn == CE);
            ensure(!congested, format!("the {who} sends CE"))?;
        }
        let reported = self.ours.any("ecn_capable", |capable| *capable == true);
        ensure(reported, "the peer does not report our marks")
    }

    /// Checks the limit that holds until the client proves with a Handshake packet that it receives at its
    /// address.
    fn amplification(&self) -> Verdict {
        let (mut received, mut sent, mut limit) = (0, 0, Ok(()));
        for datagram in &self.record.0 {
            match datagram.way {
                Way::Up if datagram.dropped.is_some() => {}
                Way::Up => {
                    let proves = |kind| kind == Kind::Handshake;
                    if datagram.packets.iter().any(|packet| proves(packet.kind)) {
                        break;
                    }
                    received += datagram.size;
                }
                Way::Down => {
                    sent += datagram.size;
                    let problem = format!("{sent} bytes for {received}");
                    limit = limit.and(ensure(sent <= AMPLIFICATION * received, problem));
                }
            }
        }
        limit
    }

    fn version_2(&self) -> Verdict {
        let first = self.record.packets(Way::Up, Kind::Initial).next();
        ensure(first.is_some_and(|packet| packet.version == 1), "the client began otherwise")?;
        for (way, who) in [(Way::Down, "server"), (Way::Up, "client")] {
            let mut packets = self.record.packets(way, Kind::Handshake);
            let agreed = packets.all(|packet| packet.version == VERSION_2);
            ensure(agreed, format!("the {who} has not gone over to version 2"))?;
        }
        Ok(())
    }

    fn rebinding(&self) -> Verdict {
        ensure(self.record.ports().len() > 1, "the transfer was over before")?;
        let event =
            if self.we_serve { "transport:packet_sent" } else { "transport:packet_received" };
        let challenges = self.ours.frames(event, "path_challenge");
        ensure(challenges > 0, "the server did not validate the path")
    }

    fn migration(&self) -> Verdict {
        let at = |door: usize| self.record.way(Way::Up).filter(move |seen| seen.door == door);
        let past_the_relay = self.ours.goes_to(self.preferred);
        ensure(past_the_relay || at(1).count() > 0, "the client did not go over")?;
        let long = |cid: &[u8]| cid.iter().copied().take(8).collect::<Vec<_>>();
        let ids = |door: usize| {
            let short = at(door).flat_map(|seen| &seen.packets).filter(|p| p.kind == Kind::Short);
            short.map(|packet| long(&packet.dcid)).collect::<Vec<_>>()
        };
        let (before, after) = (ids(0), ids(1));
        // Without connection identifiers, the first eight bytes are protected, and never the same.
        let same = after.iter().any(|id| before.contains(id));
        ensure(!same, "the client uses the same connection identifier there")
    }
}
