//! Tasks that take turns at something that comes in numbers, such as streams to open.

use std::collections::VecDeque;
use std::task::{Context, Waker};

/// The place of a task in [`Turns`], from its first call of [`Turns::wait`] on.
#[derive(Debug, Default)]
pub(crate) struct Ticket(Option<u64>);

impl Ticket {
    /// Whether the task has waited and not left.
    pub(crate) fn is_issued(&self) -> bool {
        self.0.is_some()
    }
}

/// Tasks that wait for their turn, first come, first served. Only as many are woken as can go on.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// In the order of their tickets.
    waiting: VecDeque<(u64, Waker)>,
    /// Number of tickets issued.
    issued: u64,
    /// Number of tasks that were woken and have neither come back nor left.
    called: u64,
}

impl Turns {
    /// Whether no task waits, apart from tasks that were woken.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Waits. A task that was woken in vain gets its place back.
    pub(crate) fn wait(&mut self, ticket: &mut Ticket, cx: &Context<'_>) {
        let is_new = ticket.0.is_none();
        self.issued += u64::from(is_new);
        let number = *ticket.0.get_or_insert(self.issued);
        match self.position(number) {
            Ok(at) => self.waiting[at].1.clone_from(cx.waker()),
            Err(at) => {
                self.called -= u64::from(!is_new);
                self.waiting.insert(at, (number, cx.waker().clone()));
            }
        }
    }

    /// Wakes the first tasks, until `count` are awake.
    pub(crate) fn call(&mut self, count: u64) {
        while self.called < count {
            let Some((_, waker)) = self.waiting.pop_front() else { return };
            self.called += 1;
            waker.wake();
        }
    }

    /// A task goes, with its turn or without. Returns whether it had been woken, so that its turn is free if
    /// it goes without.
    pub(crate) fn leave(&mut self, ticket: &mut Ticket) -> bool {
        let Some(number) = ticket.0.take() else { return false };
        let place = self.position(number);
        match place {
            Ok(at) => drop(self.waiting.remove(at)),
            Err(_) => self.called -= 1,
        }
        place.is_err()
    }

    /// The place of a ticket, or the place where it would be.
    fn position(&self, number: u64) -> Result<usize, usize> {
        self.waiting.binary_search_by_key(&number, |(number, _)| *number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::tests::Task;
    use std::sync::Arc;

    fn wait(turns: &mut Turns, task: &Arc<Task>, ticket: &mut Ticket) {
        turns.wait(ticket, &Context::from_waker(&task.clone().into()));
    }

    #[test]
    fn tasks_are_woken_in_the_order_in_which_they_came() {
        let mut turns = Turns::default();
        let tasks: [Arc<Task>; 3] = Default::default();
        let mut tickets: [Ticket; 3] = Default::default();
        for (task, ticket) in tasks.iter().zip(&mut tickets) {
            wait(&mut turns, task, ticket);
        }
        let woken = || tasks.each_ref().map(|task| task.woken());
        turns.call(2);
        assert_eq!(woken(), [1, 1, 0]);
        // Two tasks are on their way already.
        turns.call(2);
        assert_eq!(woken(), [1, 1, 0]);
        // The first was woken in vain and waits again, before the third.
        wait(&mut turns, &tasks[0], &mut tickets[0]);
        turns.call(2);
        assert_eq!(woken(), [2, 1, 0]);
        assert!(turns.leave(&mut tickets[1]));
        assert!(!turns.leave(&mut tickets[2]));
        assert!(turns.is_empty());
        turns.call(2);
        assert_eq!(woken(), [2, 1, 0]);
    }

    #[test]
    fn a_task_that_waits_again_has_one_place() {
        let mut turns = Turns::default();
        let (task, mut ticket) = (Arc::<Task>::default(), Ticket::default());
        wait(&mut turns, &task, &mut ticket);
        wait(&mut turns, &task, &mut ticket);
        turns.call(2);
        assert_eq!(task.woken(), 1);
        assert!(turns.leave(&mut ticket));
        assert!(!turns.leave(&mut ticket));
    }
}
