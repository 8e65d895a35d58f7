//! The traits of the crate `web-transport-trait`, version 0.4, over which Media over QUIC runs (crate `moq-net`, once
//! `moq-lite`).
//!
//! [`Session`], [`SendStream`] and [`RecvStream`] have the traits for async code; [`Polled`] and the streams have those
//! for state machines (`web_transport_trait::poll`), which `moq-net` takes.

use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use sutura::{DatagramOptions, Priority};
use web_transport_trait::{self as wt, Stats, poll};

use crate::error::Error;
use crate::recv_stream::RecvStream;
use crate::send_stream::SendStream;
use crate::session::Session;

impl wt::Error for Error {
    fn session_error(&self) -> Option<(u32, String)> {
        match self {
            Self::ClosedByPeer { code, reason } => Some((*code, reason.clone())),
            _ => None,
        }
    }

    fn stream_error(&self) -> Option<u32> {
        match self {
            Self::Reset(code) | Self::Stopped(code) => *code,
            _ => None,
        }
    }
}

/// Figures of the connection that carries a session.
#[derive(Debug)]
struct Figures(sutura::Connection);

impl Stats for Figures {
    fn bytes_sent(&self) -> Option<u64> {
        Some(self.0.stats().sent.bytes)
    }

    fn bytes_received(&self) -> Option<u64> {
        Some(self.0.stats().received.bytes)
    }

    fn bytes_lost(&self) -> Option<u64> {
        Some(self.0.stats().bytes_lost)
    }

    fn packets_sent(&self) -> Option<u64> {
        Some(self.0.stats().sent.packets)
    }

    fn packets_received(&self) -> Option<u64> {
        Some(self.0.stats().received.packets)
    }

    fn packets_lost(&self) -> Option<u64> {
        Some(self.0.stats().packets_lost)
    }

    fn rtt(&self) -> Option<Duration> {
        Some(self.0.stats().rtt)
    }
}

/// The urgency for a place in an order in which higher numbers go first. The first two places have an urgency each, the
/// next two share one, then four, and so on: `moq-net` numbers its groups from 255 down, and few are open at a time, so
/// that the newest goes before older ones.
fn priority(order: u8) -> Priority {
    let before = u8::MAX - order;
    let urgency = u8::BITS - before.leading_zeros();
    Priority::new(urgency.min(7) as u8, false).unwrap_or_default()
}

impl wt::Session for Session {
    type SendStream = SendStream;
    type RecvStream = RecvStream;
    type Error = Error;

    async fn accept_uni(&self) -> Result<RecvStream, Error> {
        Session::accept_uni(self).await
    }

    async fn accept_bi(&self) -> Result<(SendStream, RecvStream), Error> {
        Session::accept_bi(self).await
    }

    async fn open_bi(&self) -> Result<(SendStream, RecvStream), Error> {
        Session::open_bi(self).await
    }

    async fn open_uni(&self) -> Result<SendStream, Error> {
        Session::open_uni(self).await
    }

    fn send_datagram(&self, payload: Bytes) -> Result<(), Error> {
        Session::send_datagram(self, &payload)
    }

    async fn recv_datagram(&self) -> Result<Bytes, Error> {
        Session::recv_datagram(self).await
    }

    fn max_datagram_size(&self) -> usize {
        Session::max_datagram_size(self).unwrap_or(0)
    }

    fn protocol(&self) -> Option<&str> {
        Session::protocol(self)
    }

    fn close(&self, code: u32, reason: &str) {
        Session::close(self, code, reason);
    }

    async fn closed(&self) -> Error {
        Session::closed(self).await
    }

    fn stats(&self) -> impl Stats {
        Figures(self.connection().clone())
    }
}

impl wt::SendStream for SendStream {
    type Error = Error;

    async fn write(&mut self, data: &[u8]) -> Result<usize, Error> {
        SendStream::write(self, data).await
    }

    fn set_priority(&mut self, order: u8) {
        // Of a stream that is over, the priority is nothing.
        let _ = SendStream::set_priority(self, priority(order));
    }

    fn finish(&mut self) -> Result<(), Error> {
        SendStream::finish(self)
    }

    fn reset(&mut self, code: u32) {
        // It may be over already.
        let _ = SendStream::reset(self, code);
    }

    async fn closed(&mut self) -> Result<(), Error> {
        self.stopped().await
    }
}

impl wt::RecvStream for RecvStream {
    type Error = Error;

    async fn read(&mut self, out: &mut [u8]) -> Result<Option<usize>, Error> {
        RecvStream::read(self, out).await
    }

    async fn read_chunk(&mut self, max: usize) -> Result<Option<Bytes>, Error> {
        RecvStream::read_chunk(self, max).await
    }

    fn stop(&mut self, code: u32) {
        // It may be over already.
        let _ = RecvStream::stop(self, code);
    }

    async fn closed(&mut self) -> Result<(), Error> {
        self.received_reset().await
    }
}

/// A stream that is being opened. Its turn among the tasks that open streams is kept between two polls.
type Opening<T> = Option<Pin<Box<dyn Future<Output = Result<T, Error>> + Send + Sync>>>;

/// A session for state machines. Each clone opens streams and waits on its own.
pub struct Polled {
    session: Session,
    opening_uni: Opening<SendStream>,
    opening_bi: Opening<(SendStream, RecvStream)>,
}

impl Polled {
    /// The session for async code.
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.session
    }
}

impl From<Session> for Polled {
    fn from(session: Session) -> Self {
        Self { session, opening_uni: None, opening_bi: None }
    }
}

impl Clone for Polled {
    fn clone(&self) -> Self {
        self.session.clone().into()
    }
}

impl fmt::Debug for Polled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Polled").field(&self.session).finish()
    }
}

// The futures of one step have no state of their own but for those that open streams, so that a new one may go on
// where another was dropped.
impl poll::Session for Polled {
    type SendStream = SendStream;
    type RecvStream = RecvStream;
    type Error = Error;

    fn poll_accept_uni(&mut self, cx: &mut Context<'_>) -> Poll<Result<RecvStream, Error>> {
        pin!(self.session.accept_uni()).poll(cx)
    }

    fn poll_accept_bi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(SendStream, RecvStream), Error>> {
        pin!(self.session.accept_bi()).poll(cx)
    }

    fn poll_open_uni(&mut self, cx: &mut Context<'_>) -> Poll<Result<SendStream, Error>> {
        let opening = self.opening_uni.get_or_insert_with(|| {
            let session = self.session.clone();
            Box::pin(async move { session.open_uni().await })
        });
        let opened = ready!(opening.as_mut().poll(cx));
        self.opening_uni = None;
        Poll::Ready(opened)
    }

    fn poll_open_bi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(SendStream, RecvStream), Error>> {
        let opening = self.opening_bi.get_or_insert_with(|| {
            let session = self.session.clone();
            Box::pin(async move { session.open_bi().await })
        });
        let opened = ready!(opening.as_mut().poll(cx));
        self.opening_bi = None;
        Poll::Ready(opened)
    }

    fn poll_send_datagram(
        &mut self,
        cx: &mut Context<'_>,
        payload: &[u8],
    ) -> Poll<Result<(), Error>> {
        let options = DatagramOptions::default();
        pin!(self.session.send_datagram_wait(payload, &options)).poll(cx)
    }

    fn poll_recv_datagram(&mut self, cx: &mut Context<'_>) -> Poll<Result<Bytes, Error>> {
        pin!(self.session.recv_datagram()).poll(cx)
    }

    fn max_datagram_size(&self) -> usize {
        self.session.max_datagram_size().unwrap_or(0)
    }

    fn protocol(&self) -> Option<&str> {
        self.session.protocol()
    }

    fn close(&mut self, code: u32, reason: &str) {
        self.session.close(code, reason);
    }

    fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<Error> {
        pin!(self.session.closed()).poll(cx)
    }

    fn stats(&self) -> impl Stats {
        Figures(self.session.connection().clone())
    }
}

impl poll::SendStream for SendStream {
    type Error = Error;

    fn poll_write(&mut self, cx: &mut Context<'_>, data: &[u8]) -> Poll<Result<usize, Error>> {
        if data.is_empty() {
            return Poll::Ready(Ok(0));
        }
        pin!(self.write(data)).poll(cx)
    }

    fn set_priority(&mut self, order: u8) {
        wt::SendStream::set_priority(self, order);
    }

    fn finish(&mut self) -> Result<(), Error> {
        SendStream::finish(self)
    }

    fn reset(&mut self, code: u32) {
        wt::SendStream::reset(self, code);
    }

    fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        pin!(self.stopped()).poll(cx)
    }
}

impl poll::RecvStream for RecvStream {
    type Error = Error;

    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut [u8],
    ) -> Poll<Result<Option<usize>, Error>> {
        pin!(self.read(out)).poll(cx)
    }

    fn poll_read_chunk(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
    ) -> Poll<Result<Option<Bytes>, Error>> {
        if max == 0 {
            return Poll::Ready(Ok(Some(Bytes::new())));
        }
        pin!(self.read_chunk(max)).poll(cx)
    }

    fn stop(&mut self, code: u32) {
        wt::RecvStream::stop(self, code);
    }

    fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        pin!(self.received_reset()).poll(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn higher_orders_go_first() {
        let urgency = |order| priority(order).urgency.value();
        let first = [255, 254, 253, 252, 251].map(urgency);
        assert_eq!(first, [0, 1, 2, 2, 3].map(Some));
        assert_eq!([224, 223, 191, 0].map(urgency), [5, 6, 7, 7].map(Some));
    }
}
