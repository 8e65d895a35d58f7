//! Messages and datagrams of a connection, and their outcomes.

use super::{Connection, State, Upper};
use crate::sync::enlist;
use bytes::Bytes;
use std::future::poll_fn;
use std::task::Poll;
use std::time::Instant;
use sutura_proto::{
    ConnectionError, DatagramOptions, MessageId, MessageOptions, MessageOutcome, Protection,
    SendDatagramError, SendMessageError,
};

/// Outcomes that the application has not fetched; the oldest are dropped first.
pub const MAX_OUTCOMES: usize = 4_096;

impl State {
    /// The outcome of the application's next message or datagram.
    fn poll_outcome(&mut self) -> Option<(MessageId, MessageOutcome)> {
        self.sort_outcomes();
        self.outcomes.pop_front().or_else(|| self.quic.poll_message_outcome())
    }

    /// Passes the outcomes of messages to the protocols that sent these.
    pub(super) fn sort_outcomes(&mut self) {
        if !self.uppers.iter().any(Upper::sends_messages) {
            return;
        }
        while let Some((id, outcome)) = self.quic.poll_message_outcome() {
            let quic = &mut self.quic;
            if !self.uppers.iter_mut().any(|upper| upper.on_outcome(quic, id, outcome)) {
                if self.outcomes.len() == MAX_OUTCOMES {
                    self.outcomes.pop_front();
                }
                self.outcomes.push_back((id, outcome));
            }
        }
    }
}

impl Connection {
    /// Sends a datagram, unreliably. If too many are waiting to be sent, the oldest are dropped.
    ///
    /// # Errors
    /// The peer does not accept datagrams, or none of this size; or the connection is over.
    pub fn send_datagram(&self, data: Bytes) -> Result<MessageId, SendDatagramError> {
        let id = self.0.lock().quic.datagrams().send(data)?;
        self.0.touch();
        Ok(id)
    }

    /// Sends a datagram that has a deadline, an urgency or a protection of its own. If too many are waiting to be sent,
    /// the oldest of the least urgent ones are dropped.
    ///
    /// # Errors
    /// As for [`send_datagram`](Self::send_datagram).
    pub fn send_datagram_with(
        &self,
        data: Bytes,
        options: &DatagramOptions,
    ) -> Result<MessageId, SendDatagramError> {
        let id = self.0.lock().quic.datagrams().send_with(data, options)?;
        self.0.touch();
        Ok(id)
    }

    /// Like [`send_datagram_with`](Self::send_datagram_with), but waits for room rather than to have datagrams dropped.
    /// Its deadline goes on while it waits.
    ///
    /// # Errors
    /// As for [`send_datagram`](Self::send_datagram).
    pub async fn send_datagram_wait(
        &self,
        data: Bytes,
        options: &DatagramOptions,
    ) -> Result<MessageId, SendDatagramError> {
        poll_fn(|cx| {
            let mut state = self.0.lock();
            let datagrams = state.quic.datagrams();
            // What cannot be sent at all need not wait.
            let is_sendable = datagrams.max_size().is_some_and(|max| data.len() <= max);
            if is_sendable && state.error.is_none() && !state.quic.datagrams().want_room(data.len())
            {
                state.wait_datagram_room(cx);
                return Poll::Pending;
            }
            let sent = state.quic.datagrams().send_with(data.clone(), options);
            drop(state);
            self.0.touch();
            Poll::Ready(sent)
        })
        .await
    }

    /// Protects datagrams that are sent from now on by erasure coding; `None` stops that. A protected
    /// datagram may be a little smaller: see [`max_datagram_size`](Self::max_datagram_size).
    pub fn protect_datagrams(&self, protection: Option<Protection>) {
        self.0.lock().quic.datagrams().protect(protection);
    }

    /// Sends a message as a whole, on a unidirectional stream of its own, or as a datagram if the
    /// options say so and it fits. The receiver accepts the stream and reads it to its end.
    ///
    /// The redundancy policy of the configuration and the scheduler learn the message's deadline;
    /// [`policy::Auto`](crate::policy::Auto) heeds it, and [`Scheme::DEADLINE`](crate::Scheme::DEADLINE)
    /// is made for messages. [`message_outcome`](Self::message_outcome) tells its outcome.
    ///
    /// Waits while too much data is waiting to be sent. For a message that is worthless after a wait, use
    /// [`try_send_message`](Self::try_send_message), which does not wait.
    ///
    /// ```no_run
    /// # async fn run(
    /// #     connection: sutura::Connection,
    /// #     frame: bytes::Bytes,
    /// # ) -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::{Duration, Instant};
    /// use sutura::MessageOptions;
    ///
    /// let now = Instant::now();
    /// let options = MessageOptions::by(now + Duration::from_millis(250));
    /// let sent = connection.send_message(frame, options).await?;
    /// connection.next_message_at(Some(now + Duration::from_millis(33)));
    /// let (id, outcome) = connection.message_outcome().await?;
    /// println!("{outcome:?}: {}", id == sent);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The message is too large, or the connection is over.
    pub async fn send_message(
        &self,
        data: Bytes,
        options: MessageOptions,
    ) -> Result<MessageId, SendMessageError> {
        poll_fn(|cx| {
            let mut state = self.0.lock();
            match state.quic.send_message(data.clone(), options.clone()) {
                Err(SendMessageError::Blocked) => {
                    enlist(&mut state.waiters.messages, cx);
                    Poll::Pending
                }
                sent => {
                    drop(state);
                    self.0.touch();
                    Poll::Ready(sent)
                }
            }
        })
        .await
    }

    /// Like [`send_message`](Self::send_message), but fails rather than to wait.
    ///
    /// # Errors
    /// Too much is waiting to be sent, the message is too large, or the connection is over.
    pub fn try_send_message(
        &self,
        data: Bytes,
        options: MessageOptions,
    ) -> Result<MessageId, SendMessageError> {
        let id = self.0.lock().quic.send_message(data, options)?;
        self.0.touch();
        Ok(id)
    }

    /// Tells when the application will send its next message, so that redundancy may wait for it
    /// and protect both at once. `None` if that is not known. Holds until it is told anew.
    pub fn next_message_at(&self, at: Option<Instant>) {
        self.0.lock().quic.next_message_at(at);
        self.0.touch();
    }

    /// Cancels a message or datagram: nothing more of it is sent. Its stream is reset with the
    /// application error `code`. Returns whether its fate was still open.
    pub fn cancel_message(&self, id: MessageId, code: u64) -> bool {
        let cancelled = self.0.lock().quic.cancel_message(id, code);
        self.0.touch();
        cancelled
    }

    /// Waits until the outcome of a message or datagram is known. Each outcome is reported once. Up to 4096
    /// are kept for an application that does not ask; then the oldest are dropped.
    ///
    /// # Errors
    /// The connection is over, and all known outcomes were reported.
    pub async fn message_outcome(&self) -> Result<(MessageId, MessageOutcome), ConnectionError> {
        poll_fn(|cx| {
            let mut state = self.0.lock();
            if let Some(outcome) = state.poll_outcome() {
                return Poll::Ready(Ok(outcome));
            }
            state.check()?;
            enlist(&mut state.waiters.outcomes, cx);
            Poll::Pending
        })
        .await
    }

    /// The largest datagram that can be sent; `None` if the peer does not accept datagrams. It changes with
    /// the packet size that the path is known to carry; a queued datagram that has become too large is
    /// dropped.
    #[must_use]
    pub fn max_datagram_size(&self) -> Option<usize> {
        self.0.lock().quic.datagrams().max_size()
    }

    /// Waits for the next received datagram.
    ///
    /// # Errors
    /// The connection is over.
    pub async fn read_datagram(&self) -> Result<Bytes, ConnectionError> {
        poll_fn(|cx| {
            let mut state = self.0.lock();
            if let Some(data) = state.quic.datagrams().recv() {
                return Poll::Ready(Ok(data));
            }
            state.check()?;
            enlist(&mut state.waiters.datagram, cx);
            Poll::Pending
        })
        .await
    }
}
