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
    /// Whether the driver is to look at what else applications want.
    called: bool,
    /// The driver, if it watches.
    waker: Option<Waker>,
}

impl DirtyState {
    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

impl Dirty {
    /// Marks a connection as dirty and wakes the driver.
    pub(crate) fn push(&self, handle: ConnectionHandle) {
        let mut state = lock(&self.0);
        if state.handles.last() != Some(&handle) {
            state.handles.push(handle);
        }
        state.wake();
    }

    /// Wakes the driver.
    pub(crate) fn wake(&self) {
        let mut state = lock(&self.0);
        state.called = true;
        state.wake();
    }

    /// Takes the connections that were marked. The driver is not woken any more until it watches again.
    pub(crate) fn take(&self, into: &mut Vec<ConnectionHandle>) {
        let mut state = lock(&self.0);
        (state.called, state.waker) = (false, None);
        into.append(&mut state.handles);
    }

    /// Wakes the task at the next mark, and at once if there is one already.
    pub(crate) fn watch(&self, cx: &Context<'_>) {
        let mut state = lock(&self.0);
        if state.handles.is_empty() && !state.called {
            state.waker = Some(cx.waker().clone());
        } else {
            cx.waker().wake_by_ref();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::tests::Task;
    use std::sync::Arc;

    #[test]
    fn the_driver_is_woken_for_each_mark_that_it_has_not_taken() {
        let (dirty, driver) = (Dirty::default(), Arc::<Task>::default());
        let waker = driver.clone().into();
        let cx = Context::from_waker(&waker);
        let mut taken = Vec::new();
        dirty.watch(&cx);
        dirty.push(ConnectionHandle(1));
        dirty.push(ConnectionHandle(2));
        assert_eq!(driver.woken(), 1, "once for all marks");
        dirty.take(&mut taken);
        assert_eq!(taken, [1, 2].map(ConnectionHandle));

        dirty.push(ConnectionHandle(1));
        dirty.watch(&cx);
        assert_eq!(driver.woken(), 2, "for a mark that came before it watches");
        dirty.take(&mut taken);
        dirty.wake();
        dirty.watch(&cx);
        assert_eq!(driver.woken(), 3, "for another wish that came before it watches");

        dirty.take(&mut taken);
        dirty.watch(&cx);
        dirty.take(&mut taken);
        dirty.push(ConnectionHandle(1));
        dirty.wake();
        assert_eq!(driver.woken(), 3, "not while it is at work");
    }
}
