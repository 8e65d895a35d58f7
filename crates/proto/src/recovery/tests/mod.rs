//! Recovery tests on a virtual clock.

mod acknowledgement;
mod loss;
mod model;
mod probe;
mod reordering;

use super::loss::{LOST_RETENTION, MAX_LOST_REMEMBERED, PACKET_THRESHOLD, loss_delay};
use super::pto::{PROBES, PtoContext, Timeout};
use super::reordering::{RECOVERIES_REMEMBERED, max_window};
use super::token::{Token, Tokens};
use super::*;
use crate::rtt::INITIAL_RTT;
use SpaceId::{Data, Handshake, Initial};

const MS: Duration = Duration::from_millis(1);
const FREE: PtoContext = PtoContext { handshake_keys: true, amplification_limited: false };
const EARLY: PtoContext = PtoContext { handshake_keys: false, amplification_limited: false };
const LIMITED: PtoContext = PtoContext { handshake_keys: true, amplification_limited: true };

/// A recovery with a clock and shorthands for the tests.
struct Rig {
    recovery: Recovery<u32>,
    now: Instant,
    acked: Vec<u64>,
    lost: Vec<u64>,
    late: Vec<LostPacket<u32>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Data,
    Padding,
    Ack,
}

impl Rig {
    fn new(side: Side) -> Self {
        let recovery = Recovery::new(side, INITIAL_RTT);
        Self { recovery, now: Instant::now(), acked: vec![], lost: vec![], late: vec![] }
    }

    /// A confirmed connection with a round-trip time of 100 ms.
    fn confirmed() -> Self {
        let mut rig = Self::new(Side::Client);
        rig.recovery.on_handshake_confirmed();
        rig.send(Data, 0);
        rig.wait(100);
        rig.ack(Data, &[0..=0]);
        assert_eq!(rig.recovery.rtt().smoothed(), 100 * MS);
        rig.wait(1);
        rig
    }

    fn wait(&mut self, ms: u32) {
        self.now += ms * MS;
    }

    fn send(&mut self, space: SpaceId, pn: u64) {
        self.send_as(space, pn, Kind::Data);
    }

    fn send_as(&mut self, space: SpaceId, pn: u64, kind: Kind) {
        let packet = SentPacket {
            pn,
            time: self.now,
            size: 1_000,
            ack_eliciting: kind == Kind::Data,
            in_flight: kind != Kind::Ack,
            ect0: false,
            cc: pn as u32,
            tokens: Tokens::from_slice(&[Token::Ack { largest: pn }]),
        };
        self.recovery.on_packet_sent(space, packet);
    }

    /// Sends these packets `interval` apart; the clock stops at the last one.
    fn send_all(&mut self, space: SpaceId, pns: impl IntoIterator<Item = u64>, interval: u32) {
        for (i, pn) in pns.into_iter().enumerate() {
            self.wait(if i == 0 { 0 } else { interval });
            self.send(space, pn);
        }
    }

    fn try_ack(
        &mut self,
        space: SpaceId,
        ranges: &[RangeInclusive<u64>],
        delay: Duration,
    ) -> Result<AckOutcome, TransportError> {
        let mut acked = Vec::new();
        self.late.clear();
        let ranges = ranges.iter().cloned();
        let late = &mut self.late;
        let result =
            self.recovery.on_ack_received(self.now, space, ranges, delay, &mut acked, late);
        self.acked = acked.iter().map(|packet| packet.pn).collect();
        assert!(acked.iter().all(|p| p.tokens[..] == [Token::Ack { largest: p.pn }]));
        result
    }

    fn ack(&mut self, space: SpaceId, ranges: &[RangeInclusive<u64>]) -> AckOutcome {
        self.try_ack(space, ranges, Duration::ZERO).unwrap()
    }

    fn detect(&mut self, space: SpaceId) -> bool {
        let mut lost = Vec::new();
        let persistent = self.recovery.detect_lost(self.now, space, &mut lost);
        self.lost = lost.iter().map(|packet| packet.pn).collect();
        persistent
    }

    fn ack_and_detect(&mut self, space: SpaceId, ranges: &[RangeInclusive<u64>]) -> bool {
        self.ack(space, ranges);
        self.detect(space)
    }

    /// Acknowledges, after which these packets are lost; returns whether congestion is persistent.
    fn loses<const N: usize>(
        &mut self,
        space: SpaceId,
        ranges: &[RangeInclusive<u64>],
        lost: [u64; N],
    ) -> bool {
        let persistent = self.ack_and_detect(space, ranges);
        assert_eq!(self.lost, lost);
        persistent
    }

    /// The timer expires, and this packet is lost without persistent congestion.
    fn expires_and_loses(&mut self, pn: u64) {
        let loss = Timeout::Loss { space: Data, persistent_congestion: false };
        assert_eq!(self.expire(FREE), loss);
        assert_eq!(self.lost, [pn]);
    }

    /// Milliseconds until the timer expires.
    fn timeout(&self, context: PtoContext) -> Option<u128> {
        let timeout = self.recovery.timeout(context)?;
        Some(timeout.saturating_duration_since(self.now).as_millis())
    }

    fn expire(&mut self, context: PtoContext) -> Timeout {
        if let Some(timeout) = self.recovery.timeout(context) {
            self.now = self.now.max(timeout);
        }
        let mut lost = Vec::new();
        let timeout = self.recovery.on_timeout(self.now, context, &mut lost);
        self.lost = lost.iter().map(|packet| packet.pn).collect();
        timeout
    }
}

/// Descending ranges from `next` down, each `gap + 1` numbers below the previous one.
pub(super) fn ranges_below(next: u64, steps: &[(u64, u64)]) -> Vec<RangeInclusive<u64>> {
    let mut below = next;
    let mut ranges = Vec::new();
    for (gap, len) in steps {
        let Some(end) = below.checked_sub(gap + 1) else { break };
        let start = end.saturating_sub(*len);
        ranges.push(start..=end);
        let Some(next) = start.checked_sub(1) else { break };
        below = next;
    }
    ranges
}

fn probe(space: SpaceId) -> Timeout {
    Timeout::Probe { space, count: PROBES }
}
