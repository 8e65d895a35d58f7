//! What the loop of an endpoint and the application's tasks share.

use super::entry::Entry;
use super::state::State;
use crate::Error;
use quiche::{Config, ConnectionId};
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

/// An endpoint's state.
pub struct Shared {
    state: Mutex<State>,
}

impl Shared {
    pub fn new(config: Config, local: SocketAddr) -> Self {
        Self { state: Mutex::new(State::new(config, local)) }
    }

    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a task has something for the loop to do.
    pub async fn work(&self) {
        poll_fn(|cx| {
            let mut state = self.lock();
            if !state.touched.is_empty() {
                return Poll::Ready(());
            }
            state.idle = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// A new connection to a server.
    pub fn connect(shared: &Arc<Self>, server: SocketAddr) -> Result<Handle, Error> {
        let mut state = shared.lock();
        let (id, local) = (state.new_id()?, state.local);
        let (scid, config) = (ConnectionId::from_ref(&id), &mut state.config);
        let connect = quiche::connect_with_buffer_factory;
        let connection = connect(Some("localhost"), &scid, local, server, config)?;
        let index = state.insert(connection, vec![id.to_vec()]);
        drop(state);
        let handle = Handle { shared: shared.clone(), index };
        handle.with(|entry| {
            entry.touch();
            Ok(())
        })?;
        Ok(handle)
    }

    /// The next client.
    pub async fn incoming(self: &Arc<Self>) -> Option<Handle> {
        let index = poll_fn(|cx| {
            let mut state = self.lock();
            match state.incoming.pop_front() {
                Some(index) => Poll::Ready(index),
                None => {
                    state.acceptor = Some(cx.waker().clone());
                    Poll::Pending
                }
            }
        });
        Some(Handle { shared: self.clone(), index: index.await })
    }
}

/// The application's hold on a connection, which is closed with it.
pub struct Handle {
    shared: Arc<Shared>,
    index: usize,
}

impl Handle {
    /// Does something with the connection.
    pub fn with<T>(&self, act: impl FnOnce(&mut Entry) -> Result<T, Error>) -> Result<T, Error> {
        let mut state = self.shared.lock();
        let entry = state.get(self.index).ok_or("the connection is gone")?;
        let result = act(entry);
        state.list(self.index);
        let idle = if state.has_touched() { state.idle.take() } else { None };
        drop(state);
        if let Some(waker) = idle {
            waker.wake();
        }
        result
    }

    /// Waits until `act` is done, or the connection has ended.
    pub async fn poll<T>(
        &self,
        mut act: impl FnMut(&mut Entry, &Context<'_>) -> Poll<Result<T, Error>>,
    ) -> Result<T, Error> {
        poll_fn(|cx| {
            let mut result = Poll::Pending;
            let done = self.with(|entry| {
                result = act(entry, cx);
                let has_ended = result.is_pending() && entry.has_ended();
                if has_ended { Err("the connection has ended".into()) } else { Ok(()) }
            });
            match done {
                Ok(()) => result,
                Err(error) => Poll::Ready(Err(error)),
            }
        })
        .await
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // A connection that has ended already needs no end.
        let _ = self.with(|entry| {
            entry.has_handle = false;
            entry.touch();
            Ok(entry.connection.close(true, 0, &[])?)
        });
    }
}
