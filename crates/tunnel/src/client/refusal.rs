//! Why there is no flow.

use std::fmt;

use sutura::http::Response;

use super::link::field;
use crate::masque::{Cause, PROXY_STATUS};

/// Why there is no flow, for programs and for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Refusal {
    cause: Option<Cause>,
    status: u16,
    details: String,
}

impl Refusal {
    /// A refusal of this end itself.
    #[must_use]
    pub fn new(cause: Cause, details: impl Into<String>) -> Self {
        Self { cause: Some(cause), status: cause.status(), details: details.into() }
    }

    /// The proxy lacks what a request needs, so that this end does not go on with it.
    pub(super) fn lacking(what: &str) -> Self {
        let details = format!("the proxy cannot carry this: {what}");
        Self { cause: None, status: 501, details }
    }

    /// What a response says about `what` was asked.
    pub(super) fn of(response: &Response, what: &str) -> Self {
        let status = response.status;
        let told = field(response, PROXY_STATUS).and_then(Cause::from_field);
        let (cause, details) = match (told, status) {
            (Some((cause, details)), _) => (cause, details),
            (None, 407) => (Some(Cause::Denied), "the proxy wants other credentials".into()),
            (None, _) => (None, format!("the proxy answers {what} with status {status}")),
        };
        Self { cause, status, details }
    }

    /// The cause, if it is one that is known here.
    #[must_use]
    pub const fn cause(&self) -> Option<Cause> {
        self.cause
    }

    /// The status of the proxy's response, or the one that it would have.
    #[must_use]
    pub const fn status(&self) -> u16 {
        self.status
    }

    /// Whether the flow that was to be resumed is not known any more.
    pub(super) fn is_unknown_flow(&self) -> bool {
        self.cause == Some(Cause::UnknownFlow)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.details)?;
        if let Some(cause) = self.cause {
            write!(f, " ({cause})")?;
        }
        match self.cause {
            Some(Cause::Denied) => f.write_str("; give the token by --token-file"),
            Some(_) | None => Ok(()),
        }
    }
}
