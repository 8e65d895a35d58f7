//! How long the connection may be silent: the idle timeout, and PINGs that keep it alive (RFC 9000 section
//! 10.1).

use super::timer::Timer;
use super::{Connection, LifeStage};
use std::time::{Duration, Instant};

/// A connection that is kept alive sends a PING after this share of the idle timeout. The rest of the timeout
/// is how long the path may be gone at the worst moment, just before the PING.
const KEEP_ALIVE_SHARE: u32 = 4;
/// The same for an interval of PINGs that was configured without knowing the peer's idle timeout: a PING that comes after
/// the timeout keeps nothing alive (RFC 9000 section 10.1.2).
const LONGEST_INTERVAL_SHARE: u32 = 2;
/// But the first PING is sent after a silence of this length, and each further one after twice as long:
/// an end that waits may be out of reach because a NAT forgot its address, and must speak first.
const FIRST_SILENCE: Duration = Duration::from_secs(1);

/// The silence since the last packet that was received.
#[derive(Debug, Default)]
pub(super) struct Silence {
    /// Whether an ack-eliciting packet was sent since then.
    sent: bool,
    /// Whether the application wants the connection to outlast silences.
    kept_alive: bool,
    /// How many times in a row a PING was all that broke the silence.
    pings: u32,
}

impl Silence {
    /// A packet was received.
    pub(super) fn on_received(&mut self) {
        self.sent = false;
    }

    /// An ack-eliciting packet was sent. Returns whether it is the first one since a packet was received,
    /// so that the idle timer starts again.
    pub(super) fn on_sent(&mut self) -> bool {
        !std::mem::replace(&mut self.sent, true)
    }

    /// A PING is sent to keep the connection alive.
    pub(super) fn on_ping(&mut self) {
        self.pings = self.pings.saturating_add(1);
    }

    /// The peer has sent more than acknowledgements. Returns whether PINGs had broken the silence before.
    pub(super) fn end(&mut self) -> bool {
        std::mem::take(&mut self.pings) > 0
    }

    /// Sets whether the application wants the connection to outlast silences. Returns whether that is new.
    pub(super) fn keep_alive(&mut self, kept_alive: bool) -> bool {
        std::mem::replace(&mut self.kept_alive, kept_alive) != kept_alive
    }

    /// How long the connection stays silent at most, where it is closed after `idle` and its probe timeout
    /// is `pto`. `None` if the application does not mind silences.
    fn limit(&self, idle: Option<Duration>, pto: Duration) -> Option<Duration> {
        let share = idle.unwrap_or(Duration::MAX) / KEEP_ALIVE_SHARE;
        let silence = FIRST_SILENCE.max(3 * pto).saturating_mul(1 << self.pings.min(16));
        self.kept_alive.then(|| share.min(silence))
    }
}

impl Connection {
    /// Sets the idle timer anew, and with it the timer that keeps the connection alive.
    pub(super) fn reset_idle_timer(&mut self, now: Instant) {
        if self.is_closed() {
            return;
        }
        let at = self.idle_timeout().map(|t| now + t);
        self.timers.set(Timer::Idle, at);
        self.reset_keep_alive(now);
    }

    /// The shorter of both ends' idle timeouts, and three probe timeouts at least (RFC 9000 section 10.1).
    fn idle_timeout(&self) -> Option<Duration> {
        let peer = Duration::from_millis(self.peer.max_idle_timeout);
        let timeouts = [self.config.max_idle_timeout.unwrap_or_default(), peer];
        let timeouts = timeouts.into_iter().filter(|t| !t.is_zero());
        timeouts.chain(self.unvalidated_timeout()).min().map(|t| t.max(3 * self.pto()))
    }

    /// Sets the timer that keeps the connection alive anew.
    pub(super) fn reset_keep_alive(&mut self, now: Instant) {
        let idle = self.idle_timeout();
        let awaited = self.silence.limit(idle, self.pto());
        let longest = idle.map_or(Duration::MAX, |idle| idle / LONGEST_INTERVAL_SHARE);
        let configured = self.config.keep_alive.map(|interval| interval.min(longest));
        let interval = [configured, awaited].into_iter().flatten().min();
        let interval = interval.filter(|_| self.state == LifeStage::Established);
        self.timers.set(Timer::KeepAlive, interval.map(|t| now + t));
    }
}
