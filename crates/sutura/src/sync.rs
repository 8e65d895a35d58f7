//! How tasks share state: locks, and lists of waiting tasks.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};

/// Locks `mutex`. A panic in another task is no reason to fail here: every call leaves the state
/// consistent.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds `waker` to `list` unless it is already there.
pub(crate) fn enlist(list: &mut Vec<Waker>, cx: &Context<'_>) {
    if !list.iter().any(|w| w.will_wake(cx.waker())) {
        list.push(cx.waker().clone());
    }
}

/// Wakes all tasks of `list`.
pub(crate) fn wake(list: &mut Vec<Waker>) {
    list.drain(..).for_each(Waker::wake);
}
