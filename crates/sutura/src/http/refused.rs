//! Requests that the application never sees, because their head is malformed or exceeds a limit.

use std::fmt;
use sutura_h3::Code;
use sutura_proto::StreamId;

/// Refused requests that are kept until the application listens.
const MAX_EARLY: usize = 16;

/// How a request was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RefusedAnswer {
    /// With a response of this status, such as 431.
    Status(u16),
    /// Its stream was reset with this code.
    Reset(Code),
}

/// A request that the application never sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refused {
    /// The stream of the request.
    pub stream: StreamId,
    /// How it was refused.
    pub answer: RefusedAnswer,
    /// The fault in the request.
    pub reason: &'static str,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { stream, answer, reason } = self;
        write!(f, "request on stream {stream} refused, ")?;
        match answer {
            RefusedAnswer::Status(status) => write!(f, "{status}: {reason}"),
            RefusedAnswer::Reset(code) => write!(f, "{code}: {reason}"),
        }
    }
}

type Listen = Box<dyn FnMut(Refused) + Send>;

/// The listener for refused requests.
#[derive(Default)]
pub(super) struct Listener {
    listen: Option<Listen>,
    early: Vec<Refused>,
}

impl Listener {
    pub(super) fn tell(&mut self, refused: Refused) {
        tracing::info!("{refused}");
        match &mut self.listen {
            Some(listen) => listen(refused),
            None if self.early.len() < MAX_EARLY => self.early.push(refused),
            None => {}
        }
    }

    pub(super) fn set(&mut self, mut listen: Listen) {
        self.early.drain(..).for_each(&mut listen);
        self.listen = Some(listen);
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener").field("early", &self.early).finish_non_exhaustive()
    }
}
