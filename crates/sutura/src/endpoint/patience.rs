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
/// The packets of the first batch where several answers leave. The peer handles them while the others are
/// written; if all left in one batch, either end would wait for the other.
const FIRST_OF_SEVERAL: usize = 4;

/// Whether the driver lets the tasks of applications go first, so that their answers to datagrams leave in few
/// batches and together with the acknowledgements. A driver that wakes itself comes after the tasks of its thread that
/// are ready, or to another thread that has nothing to do.
#[derive(Debug)]
pub(super) enum Patience {
    /// All tasks share the driver's thread: each has had its turn when the driver has the next.
    OneThread {
        /// Turns that are left to the tasks.
        left: u8,
        /// Whether several answers are expected to what came last.
        several: bool,
    },
    /// Tasks run on the driver's thread and on others. A task that is woken runs before those that wait for longer,
    /// so that the driver would have a turn, and send, after each single answer.
    Threads {
        /// Turns for which several answers at a time are expected.
        expected: u8,
        /// Whether the turn before was left to the tasks.
        waited: bool,
    },
}

impl Patience {
    pub(super) fn new(runtime: &RuntimeFlavor) -> Self {
        match runtime {
            RuntimeFlavor::CurrentThread => Self::OneThread { left: 0, several: false },
            _ => Self::Threads { expected: 0, waited: false },
        }
    }

    /// Whether to wait before connections send. `has_news` tells whether an application has changed a connection
    /// since the last turn. `announce` wakes the tasks that wait for what has happened, and returns how many answers
    /// may follow.
    pub(super) fn wait(&mut self, has_news: bool, announce: impl FnOnce() -> usize) -> bool {
        match self {
            Self::OneThread { left, .. } if has_news || *left > 0 => {
                *left = if has_news { 0 } else { *left - 1 };
                *left > 0
            }
            Self::OneThread { left, several } => {
                let answers = announce();
                *several = answers >= SEVERAL;
                *left = if answers > 0 { TURNS } else { 0 };
                answers > 0
            }
            Self::Threads { waited: waited @ true, .. } => {
                *waited = false;
                false
            }
            Self::Threads { expected, waited } => {
                let several = announce() >= SEVERAL;
                *expected = if several { MEMORY } else { expected.saturating_sub(1) };
                *waited = *expected > 0;
                *waited
            }
        }
    }

    /// How many packets of a connection leave in the first batch of a turn, if there are more.
    pub(super) fn first_batch(&self) -> usize {
        let several = match self {
            Self::OneThread { several, .. } => *several,
            Self::Threads { expected, .. } => *expected > 0,
        };
        if several { FIRST_OF_SEVERAL } else { usize::MAX }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_on_the_same_thread_have_two_turns_to_answer() {
        let mut patience = Patience::new(&RuntimeFlavor::CurrentThread);
        assert!(!patience.wait(false, || 0));
        assert!(patience.wait(false, || 1));
        assert!(patience.wait(false, || unreachable!()));
        assert!(!patience.wait(false, || unreachable!()));
        assert!(patience.wait(false, || 1));
        assert!(!patience.wait(true, || unreachable!()), "the answer is there");
    }

    #[test]
    fn the_first_of_several_answers_leave_early() {
        for runtime in [RuntimeFlavor::CurrentThread, RuntimeFlavor::MultiThread] {
            let mut patience = Patience::new(&runtime);
            assert_eq!(patience.first_batch(), usize::MAX);
            patience.wait(false, || SEVERAL);
            patience.wait(true, || unreachable!());
            assert_eq!(patience.first_batch(), FIRST_OF_SEVERAL);
            // Data in one stream follows, as in a download.
            for _ in 0..2 * MEMORY {
                patience.wait(false, || 1);
            }
            assert_eq!(patience.first_batch(), usize::MAX);
        }
    }

    #[test]
    fn few_answers_on_several_threads_leave_at_once() {
        let mut patience = Patience::new(&RuntimeFlavor::MultiThread);
        for answers in [1, 0, 3, 0, 2] {
            assert!(!patience.wait(false, || answers));
            assert!(!patience.wait(true, || 0));
        }
    }

    #[test]
    fn several_answers_leave_together() {
        let mut patience = Patience::new(&RuntimeFlavor::MultiThread);
        assert!(patience.wait(false, || SEVERAL));
        assert!(!patience.wait(true, || unreachable!()), "they are there");
        assert!(patience.wait(true, || 0), "others follow them");
        assert!(!patience.wait(true, || unreachable!()));
    }

    #[test]
    fn several_answers_are_expected_until_long_after_the_last() {
        let mut patience = Patience::new(&RuntimeFlavor::MultiThread);
        assert!(patience.wait(false, || SEVERAL));
        let waits = (0..u16::from(MEMORY) * 10).filter(|_| patience.wait(true, || 1)).count();
        assert_eq!(waits, usize::from(MEMORY) - 1);
    }
}
