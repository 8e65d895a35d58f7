//! How tasks share state: locks, and lists of waiting tasks.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};

/// Locks `mutex`. A panic in another task is no reason to fail here: every call leaves the state
/// consistent.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How many of the newest entries of a list are looked at before a task is added.
const RECENT: usize = 8;

/// Adds the task to `list`, in which tasks that come again stand at most twice on average. The cost
/// grows with the logarithm of the number of tasks.
pub(crate) fn enlist(list: &mut Vec<Waker>, cx: &Context<'_>) {
    let waker = cx.waker();
    if list.iter().rev().take(RECENT).any(|entry| entry.will_wake(waker)) {
        return;
    }
    if list.len() == list.capacity() {
        list.sort_unstable_by_key(|entry| (entry.data(), std::ptr::from_ref(entry.vtable())));
        list.dedup_by(|a, b| a.will_wake(b));
        // As many tasks again can come before the next sorting.
        list.reserve_exact(list.len().max(1));
    }
    list.push(waker.clone());
}

/// Wakes all tasks of `list`.
pub(crate) fn wake(list: &mut Vec<Waker>) {
    list.drain(..).for_each(Waker::wake);
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use std::task::Wake;

    /// Counts how often it is woken.
    #[derive(Default)]
    pub(crate) struct Task(AtomicUsize);

    impl Task {
        pub(crate) fn woken(&self) -> usize {
            self.0.load(Relaxed)
        }
    }

    impl Wake for Task {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    #[test]
    fn all_tasks_are_woken_and_tasks_that_wait_again_do_not_fill_the_list() {
        let tasks: Vec<Arc<Task>> = std::iter::repeat_with(Arc::default).take(1000).collect();
        let mut list = Vec::new();
        for turn in 0..20 {
            // From both ends in turn, so that the newest entries are others than those that come.
            for i in 0..tasks.len() {
                let i = if turn % 2 == 0 { i } else { tasks.len() - 1 - i };
                enlist(&mut list, &Context::from_waker(&tasks[i].clone().into()));
            }
        }
        assert!(list.len() <= 2 * tasks.len(), "{}", list.len());
        wake(&mut list);
        assert!(tasks.iter().all(|task| task.woken() > 0));
    }
}
