//! The body of a response over TCP, which is logged when it has been sent.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use super::access::Access;
use super::message::{BodyError, Content};
use super::underway::Exchange;

/// A body with the record of its request.
#[derive(Debug)]
pub struct Logged {
    body: Content,
    access: Access,
    _exchange: Exchange,
}

impl Logged {
    /// The body of a response on a connection that has `exchange` under way until the body is dropped.
    pub fn new(body: Content, mut access: Access, exchange: Exchange) -> Self {
        // Bodies are dropped without a word when the client has gone.
        access.end = Some(Err("the connection ended".into()));
        let mut logged = Self { body, access, _exchange: exchange };
        logged.note_end();
        logged
    }

    /// Once all is read, nobody may ask for more.
    fn note_end(&mut self) {
        if self.body.is_end_stream() || self.body.size_hint().exact() == Some(0) {
            self.access.end = Some(Ok(()));
        }
    }
}

impl Body for Logged {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = self.get_mut();
        let frame = ready!(Pin::new(&mut this.body).poll_frame(cx));
        match &frame {
            Some(Ok(frame)) => {
                this.access.bytes += frame.data_ref().map_or(0, |data| data.len() as u64);
                this.note_end();
            }
            Some(Err(error)) => this.access.end = Some(Err(error.to_string())),
            None => this.access.end = Some(Ok(())),
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
