//! The peer's body as a [`http_body::Body`].

use super::{Error, RecvHalf};
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// The part of the peer's message that is still to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rest {
    Data,
    Trailers,
    Nothing,
}

/// The peer's body and trailers. The data is read from the connection when it is polled, so that flow
/// control holds back a peer that is faster than the application.
#[derive(Debug)]
pub struct Body {
    half: RecvHalf,
    rest: Rest,
    /// Bytes still to come, if the head says how many.
    length: Option<u64>,
}

impl Body {
    pub(super) fn new(half: RecvHalf, length: Option<u64>) -> Self {
        Self { half, rest: Rest::Data, length }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        if self.rest == Rest::Data {
            match ready!(self.half.poll_data(cx)) {
                Ok(Some(data)) => {
                    let read = data.len() as u64;
                    self.length = self.length.map(|length| length.saturating_sub(read));
                    return Poll::Ready(Some(Ok(Frame::data(data))));
                }
                Ok(None) => self.rest = Rest::Trailers,
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
        if self.rest == Rest::Trailers {
            let trailers = ready!(self.half.poll_trailers(cx))?;
            self.rest = Rest::Nothing;
            return Poll::Ready(trailers.map(|trailers| Ok(Frame::trailers(trailers))));
        }
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        self.rest == Rest::Nothing || self.half.is_read()
    }

    fn size_hint(&self) -> SizeHint {
        match (self.rest, self.length) {
            (Rest::Data, Some(length)) => SizeHint::with_exact(length),
            (Rest::Data, None) if self.half.is_read() => SizeHint::with_exact(0),
            (Rest::Data, None) => SizeHint::default(),
            (Rest::Trailers | Rest::Nothing, _) => SizeHint::with_exact(0),
        }
    }
}
