//! Datagrams and capsules of an exchange (RFC 9297).

use super::exchange::{RequestStream, wait_or_fail, with_http};
use super::{Capsule, Code, Error, SendDatagramError};
use bytes::Bytes;
use std::future::poll_fn;
use std::task::Poll;
use sutura_h3::CapsuleReader;

impl RequestStream {
    /// Sends an unreliable datagram that belongs to this exchange. Both ends must have set
    /// [`Config::enable_datagrams`](super::Config::enable_datagrams), and the protocol of the exchange must
    /// give datagrams a meaning, as extended CONNECT does for some protocols.
    ///
    /// # Errors
    /// Datagrams were not agreed on or the server's SETTINGS have not arrived, the datagram is too large, or
    /// this end's message or the connection is over.
    pub fn send_datagram(&self, payload: &[u8]) -> Result<(), SendDatagramError> {
        let mut state = self.connection().0.lock();
        let id = self.id();
        let outcome = with_http(&mut state, |http, quic| http.h3.send_datagram(quic, id, payload));
        drop(state);
        self.connection().0.touch();
        outcome.unwrap_or(Err(SendDatagramError::Closed))
    }

    /// The largest payload of [`send_datagram`](Self::send_datagram), in bytes; `None` if no datagram can be
    /// sent. It changes with the path.
    #[must_use]
    pub fn max_datagram_size(&self) -> Option<usize> {
        let mut state = self.connection().0.lock();
        let id = self.id();
        with_http(&mut state, |http, quic| http.h3.max_datagram_size(quic, id)).ok()?
    }

    /// Waits for the next datagram of this exchange; `None` once the peer's message is complete. Unread
    /// datagrams are dropped, oldest first.
    ///
    /// # Errors
    /// The peer abandons its message, or the connection is over.
    pub async fn recv_datagram(&mut self) -> Result<Option<Bytes>, Error> {
        poll_fn(|cx| {
            self.shared().receive(|http, id, _| {
                if let Some(payload) = http.h3.recv_datagram(id) {
                    return Poll::Ready(Ok(Some(payload)));
                }
                let exchange = http.exchange(id);
                if exchange.finished {
                    return Poll::Ready(Ok(None));
                }
                wait_or_fail(exchange, cx)
            })
        })
        .await
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
