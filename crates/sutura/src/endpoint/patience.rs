//! How long the driver of an endpoint waits for the answers of applications.

use tokio::runtime::RuntimeFlavor;

/// How many turns tasks on the driver's thread are given to answer to datagrams before acknowledgements go alone.
/// One turn is enough for a task that waits for data, two for a task that is started for the stream.
const TURNS: u8 = 2;
/// Fewer answers at a time than this leave one by one: a wait may wake another thread, which costs more than the
/// system calls that it saves.
const SEVERAL: usize = 4;
/// Turns after which several answers at a time are not expected any more.
const MEMORY: u8 = 32;

/// Whether the driver lets the tasks of applications go first, so that their answers to datagrams leave in few
/// batches and together with the acknowledgements.
#[derive(Debug)]
pub(super) enum Patience {
    /// All tasks share the driver's thread: each has had its turn when the driver has the next.
    OneThread { left: u8 },
    /// Tasks run on the driver's thread and on others. A task that is woken runs before those that wait for longer,
    /// so that the driver would have a turn, and send, after each single answer.
    Threads {
        /// Turns for which several answers at a time are expected.
        expected: u8,
        /// Whether the turn before was left to the tasks.
        waited: bool,
    },
}

/// The driver lets other tasks go first: it wakes itself, and comes after those of its thread that are ready, or to
/// another thread that has nothing to do.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wait {
    /// Whether the first answer ends the wait: the peer then has something to do while the others follow.
    pub(super) until_answer: bool,
}

impl Patience {
    pub(super) fn new(runtime: &RuntimeFlavor) -> Self {
        match runtime {
            RuntimeFlavor::CurrentThread => Self::OneThread { left: 0 },
            _ => Self::Threads { expected: 0, waited: false },
        }
    }

    /// Whether to wait before connections send. `has_news` tells whether an application has changed a connection
    /// since the last turn. `announce` wakes the tasks that wait for what has happened, and returns how many answers
    /// may follow.
    pub(super) fn wait(
        &mut self,
        has_news: bool,
        announce: impl FnOnce() -> usize,
    ) -> Option<Wait> {
        match self {
            Self::OneThread { left } => {
                *left = match *left {
                    _ if has_news => 0,
                    0 if announce() > 0 => TURNS,
                    turns => turns.saturating_sub(1),
                };
                (*left > 0).then_some(Wait { until_answer: false })
            }
            Self::Threads { waited: waited @ true, .. } => {
                *waited = false;
                None
            }
            Self::Threads { expected, waited } => {
                let several = announce() >= SEVERAL;
                *expected = if several { MEMORY } else { expected.saturating_sub(1) };
                *waited = *expected > 0;
                waited.then_some(Wait { until_answer: !has_news })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNTIL_ANSWER: Option<Wait> = Some(Wait { until_answer: true });
    const UNTIL_IDLE: Option<Wait> = Some(Wait { until_answer: false });

    #[test]
    fn tasks_on_the_same_thread_have_two_turns_to_answer() {
        let mut patience = Patience::new(&RuntimeFlavor::CurrentThread);
        assert_eq!(patience.wait(false, || 0), None);
        assert_eq!(patience.wait(false, || 1), UNTIL_IDLE);
        assert_eq!(patience.wait(false, || unreachable!()), UNTIL_IDLE);
        assert_eq!(patience.wait(false, || unreachable!()), None);
        assert_eq!(patience.wait(false, || 1), UNTIL_IDLE);
        assert_eq!(patience.wait(true, || unreachable!()), None, "the answer is there");
    }

    #[test]
    fn few_answers_on_several_threads_leave_at_once() {
        let mut patience = Patience::new(&RuntimeFlavor::MultiThread);
        for answers in [1, 0, 3, 0, 2] {
            assert_eq!(patience.wait(false, || answers), None);
            assert_eq!(patience.wait(true, || 0), None);
        }
    }

    #[test]
    fn the_first_of_several_answers_leaves_at_once_and_the_others_together() {
        let mut patience = Patience::new(&RuntimeFlavor::MultiThread);
        assert_eq!(patience.wait(false, || SEVERAL), UNTIL_ANSWER);
        assert_eq!(patience.wait(true, || unreachable!()), None, "the first answer");
        assert_eq!(patience.wait(true, || 0), UNTIL_IDLE, "others follow it");
        assert_eq!(patience.wait(true, || unreachable!()), None);
    }

    #[test]
    fn several_answers_are_expected_until_long_after_the_last() {
        let mut patience = Patience::new(&RuntimeFlavor::MultiThread);
        assert_eq!(patience.wait(false, || SEVERAL), UNTIL_ANSWER);
        let waits =
            (0..u16::from(MEMORY) * 10).filter(|_| patience.wait(true, || 1) == UNTIL_IDLE).count();
        assert_eq!(waits, usize::from(MEMORY) - 1);
    }
}
