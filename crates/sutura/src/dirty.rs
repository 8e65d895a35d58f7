//! Which connections the driver of an endpoint has to visit.

use crate::sync::lock;
use std::sync::Mutex;
use std::task::{Context, Waker};
use sutura_proto::ConnectionHandle;

/// Connections that applications have changed.
#[derive(Debug, Default)]
pub(crate) struct Dirty(Mutex<DirtyState>);

#[derive(Debug, Default)]
struct DirtyState {
    handles: Vec<ConnectionHandle>,
    waker: Option<Waker>,
}

impl Dirty {
    /// Marks a connection as dirty and wakes the driver.
    pub(crate) fn push(&self, handle: ConnectionHandle) {
        let mut state = lock(&self.0);
        if state.handles.last() != Some(&handle) {
            state.handles.push(handle);
        }
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
    }

    /// Wakes the driver.
    pub(crate) fn wake(&self) {
        if let Some(waker) = lock(&self.0).waker.take() {
            waker.wake();
        }
    }

    pub(crate) fn take(&self, into: &mut Vec<ConnectionHandle>, cx: &Context<'_>) {
        let mut state = lock(&self.0);
        into.append(&mut state.handles);
        state.waker = Some(cx.waker().clone());
    }
}
