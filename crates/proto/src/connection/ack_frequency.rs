//! How often packets are acknowledged, as asked for by the end that sent them
//! (draft-ietf-quic-ack-frequency-11).

use super::Connection;
use crate::config::{AckFrequencyConfig, Extensions};
use crate::error::{TransportError, TransportErrorCode};
use crate::ids::SpaceId;
use crate::recovery::ack::AckRate;
use crate::recovery::token::Token;
use crate::wire::frame::{AckFrequency, Frame};
use crate::wire::transport_parameters::MAX_ACK_DELAY_BOUND;
use std::time::Duration;

/// The shortest delay of acknowledgements that a peer may ask this end for, in microseconds: the precision of
/// timers.
const MIN_ACK_DELAY: u64 = 1_000;
/// Unless a peer's acknowledgements are as frequent as usual, they are delayed by no more than this share
/// of the round-trip time, so that the last ones of a flight are not late.
const DELAY_SHARE: u32 = 4;
/// Another delay is asked for if it is this many times shorter or longer than the present one.
const DELAY_FACTOR: u32 = 2;

/// The value of our `min_ack_delay`, which must not exceed `max_ack_delay`, given in milliseconds.
pub(super) fn min_ack_delay(extensions: Extensions, max_ack_delay: u64) -> Option<u64> {
    extensions.ack_frequency.then_some(MIN_ACK_DELAY.min(max_ack_delay.saturating_mul(1_000)))
}

/// A request to the peer for a rate of acknowledgements.
#[derive(Debug, Clone, Copy)]
struct Request {
    sequence: u64,
    rate: AckRate,
    /// Whether it has to be sent, for the first time or again.
    due: bool,
    /// Whether the peer is known to have it.
    acked: bool,
}

/// The newest requests of both ends.
#[derive(Debug, Default)]
pub(super) struct AckFrequencyState {
    /// The sequence number of the peer's newest request.
    received: Option<u64>,
    /// Our newest request.
    request: Option<Request>,
}

impl AckFrequencyState {
    /// The rate that the peer was asked for.
    #[cfg(test)]
    pub(super) fn present(&self) -> Option<AckRate> {
        self.request.map(|request| request.rate)
    }

    /// Whether an ACK_FREQUENCY frame is to be sent.
    pub(super) fn is_due(&self) -> bool {
        self.request.is_some_and(|request| request.due)
    }
}

/// The rate to ask for on a path where `packets` packets fill the congestion window.
fn wanted(
    config: &AckFrequencyConfig,
    packets: u64,
    rtt: Duration,
    reordering: u64,
    usual: AckRate,
    min_delay: Duration,
) -> AckRate {
    let share = packets / u64::from(config.acks_per_window.max(1));
    // In steps, so that not every change of the window is a reason to ask.
    let step = 1 << share.max(1).ilog2();
    let tolerated = step.min(u64::from(config.max_packets)).max(usual.tolerated);
    if tolerated == usual.tolerated {
        return usual;
    }
    let max_delay = (rtt / DELAY_SHARE).min(usual.max_delay).max(min_delay);
    AckRate { tolerated, max_delay, reordering }
}

/// Whether `wanted` is so different from `present` that it is worth asking for.
fn differs(wanted: &AckRate, present: &AckRate) -> bool {
    wanted.tolerated != present.tolerated
        || wanted.reordering != present.reordering
        || wanted.max_delay > present.max_delay * DELAY_FACTOR
        || wanted.max_delay * DELAY_FACTOR < present.max_delay
}

impl Connection {
    fn is_ack_frequency_offered(&self) -> Result<(), TransportError> {
        if self.extensions.ack_frequency {
            return Ok(());
        }
        let code = TransportErrorCode::PROTOCOL_VIOLATION;
        Err(TransportError::new(code, "ACK frequency was not negotiated"))
    }

    /// Handles an ACK_FREQUENCY frame.
    pub(super) fn on_ack_frequency(&mut self, frame: &AckFrequency) -> Result<(), TransportError> {
        self.is_ack_frequency_offered()?;
        let own = self.handshake.local.get(self.side).min_ack_delay.unwrap_or(0);
        let allowed = own..MAX_ACK_DELAY_BOUND * 1_000;
        if !allowed.contains(&frame.max_ack_delay) {
            let code = TransportErrorCode::PROTOCOL_VIOLATION;
            return Err(TransportError::new(code, "delay of acknowledgements out of range"));
        }
        if self.ack_frequency.received.is_some_and(|newest| frame.sequence <= newest) {
            return Ok(());
        }
        self.ack_frequency.received = Some(frame.sequence);
        self.spaces[SpaceId::Data].acks.set_rate(AckRate {
            tolerated: frame.threshold,
            max_delay: Duration::from_micros(frame.max_ack_delay),
            reordering: frame.reordering_threshold,
        });
        Ok(())
    }

    /// Handles an IMMEDIATE_ACK frame.
    pub(super) fn on_immediate_ack(&mut self) -> Result<(), TransportError> {
        self.is_ack_frequency_offered()?;
        self.spaces[SpaceId::Data].acks.set_immediate();
        Ok(())
    }

    /// Considers how often the peer should acknowledge packets, after it acknowledged some. Asks for
    /// nothing new before the peer has the last request.
    pub(super) fn update_ack_rate(&mut self) {
        let Some(config) = self.config.ack_frequency.filter(|_| self.extensions.ack_frequency)
        else {
            return;
        };
        let Some(min_delay) = self.peer.min_ack_delay.filter(|_| self.handshake.confirmed) else {
            return;
        };
        let request = self.ack_frequency.request;
        if request.is_some_and(|request| !request.acked) {
            return;
        }
        let recovery = &self.path.recovery;
        let usual = AckRate::usual(Duration::from_millis(self.peer.max_ack_delay));
        let wanted = wanted(
            &config,
            self.path.congestion.window() / u64::from(self.path.mtu.size()),
            recovery.rtt().smoothed(),
            recovery.packet_threshold(),
            usual,
            Duration::from_micros(min_delay),
        );
        let present = request.map_or(usual, |request| request.rate);
        if differs(&wanted, &present) {
            let sequence = request.map_or(0, |request| request.sequence + 1);
            let request = Request { sequence, rate: wanted, due: true, acked: false };
            self.ack_frequency.request = Some(request);
        }
    }

    /// Appends this end's request, if it is due and there is room.
    pub(super) fn write_ack_frequency(&mut self, room: usize, out: &mut Vec<u8>) -> Option<Token> {
        let request = self.ack_frequency.request.as_mut()?;
        if self.spaces[SpaceId::Data].probes > 0 && Frame::ImmediateAck.size() <= room {
            Frame::ImmediateAck.encode(out);
        }
        let AckRate { tolerated, max_delay, reordering } = request.rate;
        let frame = Frame::AckFrequency(AckFrequency {
            sequence: request.sequence,
            threshold: tolerated,
            max_ack_delay: u64::try_from(max_delay.as_micros()).unwrap_or(u64::MAX),
            reordering_threshold: reordering,
        });
        if !request.due || frame.size() + Frame::ImmediateAck.size() > room {
            return None;
        }
        frame.encode(out);
        request.due = false;
        // The peer may follow at once.
        let recovery = &mut self.path.recovery;
        recovery.set_max_ack_delay(recovery.max_ack_delay().max(max_delay));
        Some(Token::AckFrequency(request.sequence))
    }

    /// Handles the outcome of an ACK_FREQUENCY frame.
    pub(super) fn on_ack_request_settled(&mut self, sequence: u64, arrived: bool) {
        let request = self.ack_frequency.request.as_mut();
        let Some(request) = request.filter(|request| request.sequence == sequence) else { return };
        if arrived {
            (request.acked, request.due) = (true, false);
            self.path.recovery.set_max_ack_delay(request.rate.max_delay);
        } else if !request.acked {
            request.due = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn large_windows_want_fewer_acknowledgements() {
        let config = AckFrequencyConfig::default();
        let usual = AckRate::usual(25 * MS);
        let wanted = |packets, rtt| wanted(&config, packets, rtt, 3, usual, MS);
        for packets in [0, 1, 10, 15, 31] {
            assert_eq!(wanted(packets, 100 * MS), usual, "{packets}");
        }
        let tolerated: Vec<_> = [32, 63, 64, 200, 1 << 20].map(|n| wanted(n, MS).tolerated).into();
        assert_eq!(tolerated, [2, 2, 4, 8, 32]);
        let delays: Vec<_> = [1, 40, 80, 1_000].map(|rtt| wanted(100, rtt * MS).max_delay).into();
        assert_eq!(delays, [MS, 10 * MS, 20 * MS, 25 * MS]);
        assert_eq!(wanted(100, MS).reordering, 3);
    }

    #[test]
    fn small_changes_of_the_delay_are_no_reason_to_ask() {
        let rate = |delay| AckRate { tolerated: 4, max_delay: delay * MS, reordering: 3 };
        for (delay, expected) in [(4, true), (5, false), (10, false), (20, false), (21, true)] {
            assert_eq!(differs(&rate(delay), &rate(10)), expected, "{delay}");
        }
        assert!(differs(&rate(10), &AckRate { reordering: 0, ..rate(10) }));
    }
}
