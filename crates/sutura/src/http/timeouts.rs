//! How long a server waits for clients that do not go on.
//!
//! A value that changes with each step of progress describes the awaited step, so that a look now and then
//! shows whether there was progress. No step is awaited while the application has not answered, and in
//! tunnels.

use std::time::{Duration, Instant};

/// The longest time between two looks.
const MAX_INTERVAL: Duration = Duration::from_secs(4);

/// How long a server waits for a client that makes no progress. `None` waits for as long as the connection
/// lasts. The defaults are the same as nginx's, and longer than an outage of the path may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timeouts {
    /// From the begin of a request to the end of its head. The request is then rejected
    /// (H3_REQUEST_REJECTED). 60 s.
    pub head: Option<Duration>,
    /// Between two pieces of a request's body, while the application waits for them and has not begun to
    /// answer. The request is then cancelled (H3_REQUEST_CANCELLED). 60 s.
    pub body: Option<Duration>,
    /// Between two steps of the client's taking a response: it acknowledges more of it, or grants credit
    /// for more. The response is then cancelled (H3_REQUEST_CANCELLED). 60 s.
    pub response: Option<Duration>,
}

impl Default for Timeouts {
    fn default() -> Self {
        let usual = Some(Duration::from_secs(60));
        Self { head: usual, body: usual, response: usual }
    }
}

impl Timeouts {
    sutura_proto::setters! {
        with_head: head = Option<Duration>,
        with_body: body = Option<Duration>,
        with_response: response = Option<Duration>,
    }

    /// No timeouts.
    #[must_use]
    pub const fn none() -> Self {
        Self { head: None, body: None, response: None }
    }

    /// How often to check progress: so often that no wait exceeds its timeout by more than a quarter, and that a
    /// connection without requests soon gives back what they have needed.
    pub(super) fn interval(&self) -> Option<Duration> {
        let least = [self.head, self.body, self.response].into_iter().flatten().min();
        least.map(|least| (least / 4).min(MAX_INTERVAL))
    }
}

/// The step that a server waits for in an exchange. Two equal values mean that there was no progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Awaited {
    /// No step of the client.
    Nothing,
    /// The head of the request. Its beginning is no progress.
    Head,
    /// The next piece of the body, after this many.
    Body(u64),
    /// Credit of the stream, of which the client has taken the first number of bytes and granted the second.
    Credit(u64, u64),
    /// That the client takes more data of any stream: the bytes that it has taken and granted on the
    /// connection.
    Uptake(u64, u64),
}

impl Awaited {
    const fn timeout(self, timeouts: &Timeouts) -> Option<Duration> {
        match self {
            Self::Nothing => None,
            Self::Head => timeouts.head,
            Self::Body(_) => timeouts.body,
            Self::Credit(..) | Self::Uptake(..) => timeouts.response,
        }
    }
}

/// An exchange that is watched.
#[derive(Debug)]
pub(super) struct Watch {
    awaited: Awaited,
    since: Instant,
}

impl Watch {
    pub(super) const fn new(now: Instant) -> Self {
        Self { awaited: Awaited::Nothing, since: now }
    }

    /// Notes the awaited step at `now`. Returns whether that has taken too long.
    pub(super) fn look(&mut self, now: Instant, awaited: Awaited, timeouts: &Timeouts) -> bool {
        if awaited != self.awaited {
            *self = Self { awaited, since: now };
        }
        let timeout = awaited.timeout(timeouts);
        timeout.is_some_and(|timeout| now.saturating_duration_since(self.since) >= timeout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUTS: Timeouts = Timeouts {
        head: Some(Duration::from_secs(10)),
        body: Some(Duration::from_secs(20)),
        response: Some(Duration::from_secs(30)),
    };

    /// For how many seconds a client may be in this state.
    fn patience(awaited: Awaited) -> Option<u64> {
        let start = Instant::now();
        let mut watch = Watch::new(start);
        (0..1000).find(|s| watch.look(start + Duration::from_secs(*s), awaited, &TIMEOUTS))
    }

    #[test]
    fn each_kind_of_waiting_has_its_end_and_an_application_may_take_its_time() {
        assert_eq!(patience(Awaited::Nothing), None);
        assert_eq!(patience(Awaited::Head), Some(10));
        assert_eq!(patience(Awaited::Body(3)), Some(20));
        assert_eq!(patience(Awaited::Credit(0, 1)), Some(30));
        assert_eq!(patience(Awaited::Uptake(0, 1)), Some(30));
    }

    #[test]
    fn progress_begins_the_wait_anew() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut watch = Watch::new(start);
        for step in 0..10 {
            assert!(!watch.look(at(19 * step), Awaited::Body(step), &TIMEOUTS));
        }
        // An outage of 25 seconds is no reason to cancel a response.
        assert!(!watch.look(at(200), Awaited::Uptake(5, 5), &TIMEOUTS));
        assert!(!watch.look(at(225), Awaited::Uptake(5, 5), &TIMEOUTS));
        assert!(!watch.look(at(226), Awaited::Uptake(6, 5), &TIMEOUTS));
        assert!(!watch.look(at(255), Awaited::Uptake(6, 5), &TIMEOUTS));
        assert!(watch.look(at(256), Awaited::Uptake(6, 5), &TIMEOUTS));
    }

    #[test]
    fn the_defaults_outlast_an_outage() {
        let defaults = Timeouts::default();
        for timeout in [defaults.head, defaults.body, defaults.response] {
            assert!(timeout > Some(Duration::from_secs(2 * 25)));
        }
        assert_eq!(defaults.interval(), Some(MAX_INTERVAL));
        assert_eq!(Timeouts::none().interval(), None);
    }
}
