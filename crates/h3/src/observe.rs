//! What HTTP/3 tells an observer of the connection.

use crate::fields::Fields;
use bytes::Bytes;
use sutura_proto::StreamId;

/// A frame that was written or read. An observer of the connection gets it as
/// [`Observation::Application`](sutura_proto::Observation::Application).
///
/// ```
/// use sutura_h3::{FrameContent, FrameEvent};
/// use sutura_proto::Observation;
///
/// /// The path of the request that the observation is of, if it is of one.
/// fn path(observation: &Observation<'_>) -> Option<String> {
///     let Observation::Application(event) = observation else { return None };
///     let FrameEvent { content: FrameContent::Headers(fields), .. } = event.downcast_ref()? else {
///         return None;
///     };
///     Some(String::from_utf8_lossy(fields.get(":path")?).into_owned())
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameEvent {
    /// What this end did with it.
    pub action: FrameAction,
    /// The stream that carries it.
    pub stream: StreamId,
    /// What it says.
    pub content: FrameContent,
}

/// What an end does with a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameAction {
    /// It writes the frame, to be sent.
    Created,
    /// It reads the frame, which the peer sent.
    Parsed,
}

/// What a frame says. Frames of other types are not told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FrameContent {
    /// A header or trailer section (RFC 9114 section 7.2.2): its pseudo-header fields and
    /// `priority`. Other fields may be secrets.
    Headers(Fields),
    /// A PRIORITY_UPDATE frame for a request (RFC 9218 section 7.2).
    PriorityUpdate {
        /// The stream of the request.
        element: StreamId,
        /// The priority field value.
        value: Bytes,
    },
}

impl FrameContent {
    /// What may be told of `fields`.
    pub(crate) fn headers<'a>(fields: impl IntoIterator<Item = &'a crate::Field>) -> Self {
        let told = |name: &[u8]| name.starts_with(b":") || name == b"priority";
        Self::Headers(fields.into_iter().filter(|field| told(&field.name)).cloned().collect())
    }
}
