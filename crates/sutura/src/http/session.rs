//! WebTransport sessions (draft-ietf-webtrans-http3) over an exchange: their streams, and their end.

use super::exchange::{RequestStream, SharedExchange, send_error, with_http};
use super::{Code, Datagrams, Error, SendError, SessionClose};
use crate::connection::opening::Opening;
use crate::connection::{Connection, RecvStream, SendStream};
use crate::sync::{enlist, wake};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use sutura_proto::{Dir, StreamId};

/// How long a connection is kept at most for the peer to take note that a session was closed.
const LINGER: Duration = Duration::from_secs(1);

/// How a session has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionEnd {
    /// The peer has closed it.
    ClosedByPeer(SessionClose),
    /// This end has closed it.
    Closed(SessionClose),
    /// Its exchange or its connection has failed.
    Failed(Error),
}

impl SessionEnd {
    /// The end of a session that this end has not closed.
    pub(super) fn of_peer(close: Option<SessionClose>, failed: Option<Error>) -> Self {
        match close {
            Some(close) => Self::ClosedByPeer(close),
            None => Self::Failed(failed.unwrap_or(Error::Reset(Code::WT_SESSION_GONE))),
        }
    }
}

/// What tasks need to know of a session.
#[derive(Debug, Default)]
pub(super) struct SessionState {
    /// The tasks that wait for any event of the session.
    tasks: Vec<Waker>,
    draining: bool,
    end: Option<SessionEnd>,
    /// Whether it has ended, and the tasks that wait for its streams do not know yet.
    pub(super) has_ended: bool,
}

impl SessionState {
    pub(super) fn wake(&mut self) {
        wake(&mut self.tasks);
    }

    pub(super) fn drain(&mut self) {
        self.draining = true;
        self.wake();
    }

    pub(super) fn end(&mut self, end: SessionEnd) {
        if self.end.is_none() {
            self.end = Some(end);
            self.has_ended = true;
        }
        self.wake();
    }
}

/// A WebTransport session: streams and datagrams that belong to an exchange, which begins with an extended CONNECT
/// ([`RequestStream::into_session`]). Cheap to clone. If all handles are dropped, it is closed.
///
/// Its streams are streams of the connection like any other, with priorities and protection; their error codes on
/// the wire are [`Code::of_webtransport`]. When the session ends, they end with [`Code::WT_SESSION_GONE`].
#[derive(Debug, Clone)]
pub struct Session(Arc<Handle>);

/// Closes the session when it is dropped.
#[derive(Debug)]
struct Handle {
    shared: Arc<SharedExchange>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        close(&self.shared, &SessionClose::default());
    }
}

impl RequestStream {
    /// The WebTransport session that this exchange has begun: on a server after a
    /// [response](Self::send_response) of status 2xx, on a client after it has come. Both ends must have set
    /// [`Config::enable_webtransport`](super::Config::enable_webtransport).
    #[must_use]
    pub fn into_session(self) -> Session {
        Session(Arc::new(Handle { shared: Arc::clone(self.shared()) }))
    }
}

impl Session {
    /// The session's identifier: the stream of the exchange that began it.
    #[must_use]
    pub fn id(&self) -> StreamId {
        self.0.shared.id()
    }

    /// The connection that carries the session.
    #[must_use]
    pub fn connection(&self) -> &Connection {
        self.0.shared.connection()
    }

    /// The datagrams of the session.
    #[must_use]
    pub fn datagrams(&self) -> Datagrams {
        Datagrams::of(&self.0.shared)
    }

    /// How many bytes come before those of the application on a stream that this end opens. A stream that is reset
    /// before its end is to be [reset after these](SendStream::reset_at), so that the peer learns what it belongs to.
    #[must_use]
    pub fn header_size(&self, dir: Dir) -> u64 {
        sutura_h3::Connection::session_header_size(self.id(), dir) as u64
    }

    /// Opens a bidirectional stream, waiting until the peer allows one more.
    ///
    /// # Errors
    /// The session or the connection is over.
    pub async fn open_bi(&self) -> Result<(SendStream, RecvStream), Error> {
        let send = self.open(Dir::Bi).await?;
        let recv = RecvStream::new(self.connection().clone(), send.id(), false);
        Ok((send, recv))
    }

    /// Opens a unidirectional stream, waiting until the peer allows one more.
    ///
    /// # Errors
    /// The session or the connection is over.
    pub async fn open_uni(&self) -> Result<SendStream, Error> {
        self.open(Dir::Uni).await
    }

    async fn open(&self, dir: Dir) -> Result<SendStream, Error> {
        let connection = self.connection();
        let mut opening = Opening::new(&connection.0, dir);
        let opened = poll_fn(|cx| {
            let mut state = self.0.shared.lock()?;
            let result = with_http(&mut state, |http, quic| {
                http.h3.open_session_stream(quic, self.id(), dir)
            })?;
            if result == Err(SendError::StreamsBlocked) {
                opening.wait(&mut state, cx);
            } else {
                opening.done(&mut state);
            }
            drop(state);
            connection.0.touch();
            match result {
                Ok(opened) => Poll::Ready(Ok(opened)),
                Err(SendError::StreamsBlocked) => Poll::Pending,
                Err(SendError::UnknownStream) => Poll::Ready(Err(Error::SessionOver)),
                Err(error) => Poll::Ready(Err(send_error(error))),
            }
        })
        .await?;
        let mut send = SendStream::new(connection.clone(), opened.id, false);
        // The session may have ended meanwhile, which the first write of the application finds out.
        let _ = send.write_chunk(opened.unsent).await;
        Ok(send)
    }

    /// Waits for the next bidirectional stream that the peer opens.
    ///
    /// # Errors
    /// The session or the connection is over.
    pub async fn accept_bi(&self) -> Result<(SendStream, RecvStream), Error> {
        let id = poll_fn(|cx| self.poll_accept(cx, Dir::Bi)).await?;
        let send = SendStream::new(self.connection().clone(), id, false);
        Ok((send, RecvStream::new(self.connection().clone(), id, false)))
    }

    /// Waits for the next unidirectional stream that the peer opens.
    ///
    /// # Errors
    /// The session or the connection is over.
    pub async fn accept_uni(&self) -> Result<RecvStream, Error> {
        let id = poll_fn(|cx| self.poll_accept(cx, Dir::Uni)).await?;
        Ok(RecvStream::new(self.connection().clone(), id, false))
    }

    fn poll_accept(&self, cx: &Context<'_>, dir: Dir) -> Poll<Result<StreamId, Error>> {
        let mut state = self.0.shared.lock()?;
        with_http(&mut state, |http, _| {
            if let Some(stream) = http.h3.accept_session_stream(self.id(), dir) {
                return Poll::Ready(Ok(stream));
            }
            let session = http.session(self.id());
            if session.end.is_some() {
                return Poll::Ready(Err(Error::SessionOver));
            }
            enlist(&mut session.tasks, cx);
            Poll::Pending
        })?
    }

    /// Closes the session with an error code of the application and a text for people, of which the first 1024 bytes
    /// are sent. All its streams end. Does nothing if the session is over.
    ///
    /// A task of the runtime keeps the connection until the peer has taken note, for at most a second.
    pub fn close(&self, code: u32, reason: &str) {
        close(&self.0.shared, &SessionClose { code, reason: reason.to_owned() });
    }

    /// Asks the peer to end the session soon. Both ends may go on using it.
    ///
    /// # Errors
    /// The session or the connection is over, or the request for the session is still being sent.
    pub fn drain(&self) -> Result<(), Error> {
        let mut state = self.0.shared.lock()?;
        let result = with_http(&mut state, |http, quic| http.h3.drain_session(quic, self.id()))?;
        drop(state);
        self.connection().0.touch();
        result.map_err(|error| match error {
            SendError::UnknownStream => Error::SessionOver,
            error => send_error(error),
        })
    }

    /// Waits until the peer has asked to end the session soon, or it is over.
    pub async fn draining(&self) {
        let is_over = |session: &SessionState| session.draining || session.end.is_some();
        // If its connection has ended, it is over, too.
        let _ = self.reached(|session| is_over(session).then_some(())).await;
    }

    /// How the session has ended, if it has.
    #[must_use]
    pub fn end(&self) -> Option<SessionEnd> {
        let mut state = match self.0.shared.lock() {
            Ok(state) => state,
            Err(error) => return Some(SessionEnd::Failed(error)),
        };
        match with_http(&mut state, |http, _| http.session(self.id()).end.clone()) {
            Ok(end) => end,
            Err(error) => Some(SessionEnd::Failed(error)),
        }
    }

    /// Waits until the session is over, and tells how it has ended.
    pub async fn closed(&self) -> SessionEnd {
        self.reached(|session| session.end.clone()).await.unwrap_or_else(SessionEnd::Failed)
    }

    /// Waits until the session is in a state; the cause if its connection ends before.
    async fn reached<T>(&self, reached: impl Fn(&SessionState) -> Option<T>) -> Result<T, Error> {
        poll_fn(|cx| {
            let mut state = self.0.shared.lock()?;
            with_http(&mut state, |http, _| {
                let session = http.session(self.id());
                if let Some(value) = reached(session) {
                    return Poll::Ready(Ok(value));
                }
                enlist(&mut session.tasks, cx);
                Poll::Pending
            })?
        })
        .await
    }
}

/// Closes a session, unless it is over.
fn close(shared: &Arc<SharedExchange>, close: &SessionClose) {
    let id = shared.id();
    let Ok(mut state) = shared.lock() else { return };
    let is_closed = with_http(&mut state, |http, quic| {
        if http.session(id).end.is_some() {
            return false;
        }
        if http.h3.close_session(quic, id, close).is_err() {
            // The head of the exchange is still being sent, and nothing can be said behind it.
            let _ = http.h3.cancel(quic, id, Code::REQUEST_CANCELLED);
        }
        http.session(id).end(SessionEnd::Closed(close.clone()));
        true
    });
    shared.leave();
    if is_closed != Ok(true) {
        return;
    }
    state.wake_streams();
    drop(state);
    shared.connection().0.touch();
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        let shared = Arc::clone(shared);
        runtime.spawn(async move {
            let _ = tokio::time::timeout(LINGER, finished(&shared)).await;
        });
    }
}

/// Waits until the peer has ended its message, too.
async fn finished(shared: &SharedExchange) {
    poll_fn(|cx| {
        let Ok(mut state) = shared.lock() else { return Poll::Ready(()) };
        let is_over = with_http(&mut state, |http, _| {
            let exchange = http.exchange(shared.id());
            let is_over = exchange.finished || exchange.failed.is_some();
            if !is_over {
                exchange.wait_readable(cx);
            }
            is_over
        });
        if is_over.unwrap_or(true) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}
