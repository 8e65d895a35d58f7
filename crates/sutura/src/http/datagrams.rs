//! Datagrams and capsules of an exchange (RFC 9297).

use super::exchange::{RequestStream, SharedExchange, with_http};
use super::state::Exchange;
use super::{Capsule, Code, Error, SendDatagramError};
use bytes::Bytes;
use std::future::poll_fn;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use sutura_h3::CapsuleReader;
use sutura_proto::DatagramOptions;

/// The datagrams of an exchange, for tasks of their own. They end with the exchange, which this does not keep.
///
/// One task at a time waits for datagrams to come; if several do, only the last is woken.
#[derive(Debug, Clone)]
pub struct Datagrams {
    shared: Weak<SharedExchange>,
}

impl Datagrams {
    pub(super) fn of(shared: &Arc<SharedExchange>) -> Self {
        Self { shared: Arc::downgrade(shared) }
    }

    /// As [`RequestStream::send_datagram_with`].
    ///
    /// # Errors
    /// As there, and if the exchange is over.
    pub fn send(&self, payload: &[u8], options: &DatagramOptions) -> Result<(), SendDatagramError> {
        self.shared.upgrade().ok_or(SendDatagramError::Closed)?.send_datagram(payload, options)
    }

    /// As [`RequestStream::send_datagram_wait`].
    ///
    /// # Errors
    /// As there, and if the exchange is over.
    pub async fn send_wait(
        &self,
        payload: &[u8],
        options: &DatagramOptions,
    ) -> Result<(), SendDatagramError> {
        poll_fn(|cx| match self.shared.upgrade() {
            Some(shared) => shared.poll_send_datagram(payload, options, cx),
            None => Poll::Ready(Err(SendDatagramError::Closed)),
        })
        .await
    }

    /// As [`RequestStream::max_datagram_size`].
    #[must_use]
    pub fn max_size(&self) -> Option<usize> {
        self.shared.upgrade()?.max_datagram_size()
    }

    /// As [`RequestStream::recv_datagram`]; `None` also once the exchange is over.
    ///
    /// # Errors
    /// As there.
    pub async fn recv(&self) -> Result<Option<Bytes>, Error> {
        poll_fn(|cx| match self.shared.upgrade() {
            Some(shared) => shared.poll_datagram(cx, Exchange::wait_datagram),
            None => Poll::Ready(Ok(None)),
        })
        .await
    }
}

impl SharedExchange {
    fn send_datagram(
        &self,
        payload: &[u8],
        options: &DatagramOptions,
    ) -> Result<(), SendDatagramError> {
        let Ok(mut state) = self.lock() else { return Err(SendDatagramError::Closed) };
        let outcome = with_http(&mut state, |http, quic| {
            http.h3.send_datagram(quic, self.id(), payload, options)
        });
        drop(state);
        self.connection().0.touch();
        outcome.unwrap_or(Err(SendDatagramError::Closed))
    }

    fn poll_send_datagram(
        &self,
        payload: &[u8],
        options: &DatagramOptions,
        cx: &Context<'_>,
    ) -> Poll<Result<(), SendDatagramError>> {
        let Ok(mut state) = self.lock() else { return Poll::Ready(Err(SendDatagramError::Closed)) };
        let must_wait = with_http(&mut state, |http, quic| {
            // What cannot be sent at all need not wait.
            let most = http.h3.max_datagram_size(quic, self.id());
            let is_sendable = most.is_some_and(|most| payload.len() <= most);
            is_sendable && !http.h3.want_datagram_room(quic, self.id(), payload.len())
        });
        if must_wait == Ok(true) {
            state.wait_datagram_room(cx);
            return Poll::Pending;
        }
        drop(state);
        Poll::Ready(self.send_datagram(payload, options))
    }

    fn max_datagram_size(&self) -> Option<usize> {
        let mut state = self.lock().ok()?;
        with_http(&mut state, |http, quic| http.h3.max_datagram_size(quic, self.id())).ok()?
    }

    /// The next datagram. `wait` has the task woken when one comes, or the exchange ends.
    fn poll_datagram(
        &self,
        cx: &Context<'_>,
        wait: fn(&mut Exchange, &Context<'_>),
    ) -> Poll<Result<Option<Bytes>, Error>> {
        self.receive(|http, id, _| {
            if let Some(payload) = http.h3.recv_datagram(id) {
                return Poll::Ready(Ok(Some(payload)));
            }
            let exchange = http.exchange(id);
            if exchange.finished {
                return Poll::Ready(Ok(None));
            }
            if let Some(error) = &exchange.failed {
                return Poll::Ready(Err(error.clone()));
            }
            wait(exchange, cx);
            Poll::Pending
        })
    }
}

impl RequestStream {
    /// Sends an unreliable datagram that belongs to this exchange. Both ends must have set
    /// [`Config::enable_datagrams`](super::Config::enable_datagrams), and the protocol of the exchange must
    /// give datagrams a meaning, as extended CONNECT does for some protocols. If too many are waiting to be sent, the
    /// oldest of the least urgent ones are dropped.
    ///
    /// # Errors
    /// Datagrams were not agreed on or the server's SETTINGS have not arrived, the datagram is too large, or
    /// this end's message or the connection is over.
    pub fn send_datagram(&self, payload: &[u8]) -> Result<(), SendDatagramError> {
        self.send_datagram_with(payload, &DatagramOptions::default())
    }

    /// Like [`send_datagram`](Self::send_datagram), with a deadline, an urgency or a protection of its own.
    ///
    /// # Errors
    /// As [`send_datagram`](Self::send_datagram).
    pub fn send_datagram_with(
        &self,
        payload: &[u8],
        options: &DatagramOptions,
    ) -> Result<(), SendDatagramError> {
        self.shared().send_datagram(payload, options)
    }

    /// Like [`send_datagram_with`](Self::send_datagram_with), but waits for room rather than to have datagrams dropped.
    /// Its deadline goes on while it waits.
    ///
    /// # Errors
    /// As [`send_datagram`](Self::send_datagram).
    pub async fn send_datagram_wait(
        &self,
        payload: &[u8],
        options: &DatagramOptions,
    ) -> Result<(), SendDatagramError> {
        poll_fn(|cx| self.shared().poll_send_datagram(payload, options, cx)).await
    }

    /// The largest payload of [`send_datagram`](Self::send_datagram), in bytes; `None` if no datagram can be
    /// sent. It changes with the path.
    #[must_use]
    pub fn max_datagram_size(&self) -> Option<usize> {
        self.shared().max_datagram_size()
    }

    /// Waits for the next datagram of this exchange; `None` once the peer's message is complete. Unread
    /// datagrams are dropped, oldest first.
    ///
    /// # Errors
    /// The peer abandons its message, or the connection is over.
    pub async fn recv_datagram(&mut self) -> Result<Option<Bytes>, Error> {
        poll_fn(|cx| self.shared().poll_datagram(cx, Exchange::wait_readable)).await
    }

    /// The datagrams of this exchange, for tasks of their own.
    #[must_use]
    pub fn datagrams(&self) -> Datagrams {
        Datagrams::of(self.shared())
    }

    /// Sends a capsule, waiting until earlier data has left the buffers.
    ///
    /// # Errors
    /// As for [`send_data`](Self::send_data).
    pub async fn send_capsule(&mut self, capsule: &Capsule) -> Result<(), Error> {
        self.send_data(capsule.encode()).await
    }

    /// Waits for the next capsule of a type in `wanted`, which must be the same in each call; other types are
    /// skipped. `None` at the end of the peer's data. The method reads all data of the exchange.
    ///
    /// # Errors
    /// A capsule is too large or cut short, which abandons the exchange; the peer abandons its
    /// message, or the connection is over.
    pub async fn recv_capsule(&mut self, wanted: &[u64]) -> Result<Option<Capsule>, Error> {
        loop {
            let reader = self.capsules.get_or_insert_with(|| CapsuleReader::new(wanted));
            let next = match reader.read() {
                Ok(Some(capsule)) => return Ok(Some(capsule)),
                Ok(None) => self.recv_data().await?,
                Err(error) => return Err(self.bad_capsule(error.into())),
            };
            let Some(reader) = &mut self.capsules else { return Ok(None) };
            match next {
                Some(data) => reader.push(&data),
                None => {
                    let outcome = reader.finish();
                    return outcome.map(|()| None).map_err(|error| self.bad_capsule(error.into()));
                }
            }
        }
    }

    fn bad_capsule(&mut self, error: Error) -> Error {
        self.reset(Code::DATAGRAM_ERROR);
        error
    }
}
