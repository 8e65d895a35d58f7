//! The interpretation of HTTP/3's events by the ends of plain exchanges.

use sutura_h3::{Event, Fields};
use sutura_proto::StreamId;
use sutura_sim::AppError;

use super::unexpected;

/// News of an exchange.
pub(super) enum News {
    /// A header section, of a request or of a response.
    Head { stream: StreamId, fields: Fields },
    /// Body.
    Body { stream: StreamId },
    /// The end of the message.
    End { stream: StreamId },
    /// Nothing that matters.
    Nothing,
}

impl News {
    /// Reads an event.
    ///
    /// # Errors
    /// The event does not happen while an exchange of a head and a body goes well; the error names `what`.
    pub(super) fn of(event: Event, what: &str) -> Result<Self, AppError> {
        match event {
            Event::Headers { stream, fields } => Ok(Self::Head { stream, fields }),
            Event::Data { stream } => Ok(Self::Body { stream }),
            Event::Finished { stream } => Ok(Self::End { stream }),
            Event::Settings(_) | Event::Writable { .. } | Event::PriorityUpdate { .. } => {
                Ok(Self::Nothing)
            }
            Event::Interim { .. }
            | Event::Datagram { .. }
            | Event::Trailers { .. }
            | Event::Reset { .. }
            | Event::Stopped { .. }
            | Event::Failed { .. }
            | Event::Refused { .. }
            | Event::GoAway { .. }
            | Event::SessionStream { .. }
            | Event::SessionDraining { .. }
            | Event::SessionClosed { .. } => Err(unexpected(what, format_args!("{event:?}"))),
        }
    }
}
