//! Requests: answers that are not read, heads that do not end, and requests that are cancelled at once.

use super::crew::Crew;
use super::{Attack, Pace, Tactic, attack, generous};
use crate::fleet::Fleet;
use crate::puppet::ROOM;
use crate::request::{bidi, control_stream, headers, whole};
use crate::target::{LARGE, SMALL};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use sutura_benches::Error;
use sutura_proto::wire_format::Frame;

/// Requests of each connection.
const REQUESTS: u64 = 100;
/// Time between two packets that keep a connection alive.
const KEEP_ALIVE: Duration = Duration::from_secs(5);
/// H3_REQUEST_CANCELLED (RFC 9114 section 8.1).
const CANCELLED: u64 = 0x10c;
const PING: u8 = 0x01;

pub fn slow() -> Vec<Attack> {
    vec![Attack {
        seconds: 20,
        parameters: || {
            let mut parameters = generous();
            parameters.initial_max_data = 1;
            parameters
        },
        ..attack(
            "slow-readers",
            "1,000 connections with 100 GETs each, all acknowledged, no credit granted",
            "connection",
            Pace::Events(200),
            || {
                Box::new(Holders::new(
                    1000,
                    |index| headers(LARGE, &format!("u={}", index % 8)),
                    true,
                ))
            },
        )
    }]
}

pub fn half() -> Vec<Attack> {
    vec![Attack {
        seconds: 20,
        ..attack(
            "half-headers",
            "200 connections with 100 HEADERS each that do not end",
            "connection",
            Pace::Events(100),
            // A frame of 1,000 bytes, of which only ten are sent.
            || Box::new(Holders::new(200, |_| [&[1, 0x43, 0xe8][..], &[0; 10]].concat(), false)),
        )
    }]
}

pub fn cancelled() -> Vec<Attack> {
    vec![
        attack(
            "cancels",
            "requests that are cancelled at once, on 8 connections",
            "request",
            Pace::Bits(50_000_000),
            || Box::new(Cancels { crew: Crew::new(8), reconnect: false }),
        ),
        attack(
            "cancels-reconnecting",
            "the same, with a new connection every 100 requests",
            "request",
            Pace::Bits(50_000_000),
            || Box::new(Cancels { crew: Crew::new(32), reconnect: true }),
        ),
    ]
}

/// Connections on which requests are begun, and held open.
struct Holders {
    size: u64,
    crew: Crew,
    request: fn(u64) -> Vec<u8>,
    fin: bool,
    /// When each connection last sent a packet.
    said: BTreeMap<usize, Instant>,
    checked: Option<Instant>,
}

impl Holders {
    fn new(size: u64, request: fn(u64) -> Vec<u8>, fin: bool) -> Self {
        let crew = Crew::new(0);
        Self { size, crew, request, fin, said: BTreeMap::new(), checked: None }
    }

    /// Sends all requests of a connection.
    fn ask(&self, fleet: &mut Fleet, now: Instant, at: usize) {
        let mut payload = control_stream();
        for index in 0..REQUESTS {
            whole(bidi(index), &(self.request)(index), self.fin, &mut payload);
            if payload.len() + 100 > ROOM {
                fleet.insist(now, at, std::mem::take(&mut payload));
            }
        }
        fleet.insist(now, at, payload);
        if let Some(puppet) = fleet.puppet(at) {
            puppet.streams = REQUESTS;
        }
    }
}

impl Tactic for Holders {
    fn step(&mut self, fleet: &mut Fleet, now: Instant, quota: u64) -> Result<(), Error> {
        let missing = self.size - self.crew.size() as u64;
        self.crew.grow(quota.min(missing) as usize);
        fleet.tally.events += quota.min(missing);
        if self.checked.is_some_and(|at| now - at < Duration::from_millis(10)) {
            return Ok(());
        }
        self.checked = Some(now);
        for at in self.crew.tend(fleet, now)? {
            let Some(puppet) = fleet.puppet(at) else { continue };
            if !puppet.is_established() {
                continue;
            }
            if puppet.streams == 0 {
                self.ask(fleet, now, at);
                self.said.insert(at, now);
            } else if self.said.get(&at).is_none_or(|said| now - *said > KEEP_ALIVE) {
                fleet.say(at, &[PING]);
                self.said.insert(at, now);
            }
        }
        Ok(())
    }
}

/// Requests that are cancelled in the same packet.
struct Cancels {
    crew: Crew,
    /// Whether a connection is left when it has used up the initial limit of streams.
    reconnect: bool,
}

impl Tactic for Cancels {
    fn step(&mut self, fleet: &mut Fleet, now: Instant, quota: u64) -> Result<(), Error> {
        let head = headers(SMALL, "");
        let mut left = quota;
        for at in self.crew.tend(fleet, now)? {
            let Some(puppet) = fleet.puppet(at) else { continue };
            if !puppet.is_established() {
                continue;
            }
            let mut payload = if puppet.streams == 0 { control_stream() } else { Vec::new() };
            let mut requests = 0;
            while puppet.streams < puppet.max_streams && payload.len() + 100 < ROOM {
                let id = bidi(puppet.streams);
                whole(id, &head, true, &mut payload);
                Frame::StopSending { id, code: CANCELLED }.encode(&mut payload);
                puppet.streams += 1;
                requests += 1;
            }
            let is_used_up = self.reconnect && puppet.streams >= REQUESTS;
            let size = payload.len() as u64;
            if requests > 0 && fleet.insist(now, at, payload) {
                fleet.tally.events += requests;
            }
            if is_used_up {
                self.crew.leave(fleet, at);
            }
            left = left.saturating_sub(size);
            if left == 0 {
                break;
            }
        }
        Ok(())
    }
}
