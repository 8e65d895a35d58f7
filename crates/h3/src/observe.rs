//! Reports of HTTP/3 to an observer of the connection.

use crate::fields::Fields;
use bytes::Bytes;
use sutura_proto::StreamId;

/// A frame that was written or read. An observer of the connection receives it as
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
    /// The direction of the frame.
    pub action: FrameAction,
    /// The stream that carries it.
    pub stream: StreamId,
    /// The content of the frame.
    pub content: FrameContent,
}

/// The direction of a frame at this end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameAction {
    /// This end writes the frame for sending.
    Created,
    /// This end reads a frame that the peer sent.
    Parsed,
}

/// The content of a frame. Frames of other types are not reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FrameContent {
    /// A header or trailer section (RFC 9114 section 7.2.2): its pseudo-header fields and
    /// `priority` only, as other fields may be secret.
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
    /// The part of `fields` that may be reported.
    pub(crate) fn headers<'a>(fields: impl IntoIterator<Item = &'a crate::Field>) -> Self {
        let told = |name: &[u8]| name.starts_with(b":") || name == b"priority";
        Self::Headers(fields.into_iter().filter(|field| told(&field.name)).cloned().collect())
    }
}
