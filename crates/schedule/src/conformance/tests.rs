use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::{Priority, SCHEDULERS, Urgency};

#[test]
fn every_scheduler_keeps_every_rule() {
    for entry in SCHEDULERS {
        scheduler(&*entry.make("").unwrap());
    }
    registry(&Registry::new("scheduler", SCHEDULERS), |factory| factory.name().to_owned());
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    DiffersFromBuildToBuild,
    MovesOnWhenAsked,
    CountsQuestions,
    GrantsIdleStreams,
    GrantsStrangers,
    GrantsTooMuch,
    GrantsWithoutRoom,
    IsIdleInPlaceOfLargeKeys,
    IgnoresControl,
    IsNeverEmpty,
    ForgetsNobody,
    InsertsWhomItActivates,
    MovesOnForStrangers,
    ActivatesTwice,
    MovesWhomItIsToldOfAgain,
    ChargesZeroBytes,
    StopsWhomItInsertsAgain,
    MovesWhomItInsertsAgain,
    GoesByClassesIfThereAreStreams,
    GoesByFramesIfThereAreStreams,
    CountsWithoutSaturating,
}

/// Serves streams in turns of one charge, except for an optional fault.
#[derive(Debug, Default)]
struct Line {
    fault: Option<Fault>,
    /// In order of service.
    streams: Vec<Waiting>,
    questions: Cell<usize>,
    builds: usize,
    charged: u32,
}

#[derive(Clone, Debug)]
struct Waiting {
    stream: StreamKey,
    priority: Priority,
    active: bool,
}

impl Line {
    fn is(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    fn find(&self, stream: StreamKey) -> Option<usize> {
        self.streams.iter().position(|waiting| waiting.stream == stream)
    }

    fn move_back(&mut self, index: usize) {
        let waiting = self.streams.remove(index);
        self.streams.push(waiting);
    }
}

impl Scheduler for Line {
    fn insert(&mut self, stream: StreamKey, priority: Priority) {
        match self.find(stream) {
            None => self.streams.push(Waiting { stream, priority, active: false }),
            Some(index) => {
                self.streams[index].active &= !self.is(Fault::StopsWhomItInsertsAgain);
                self.reprioritize(stream, priority);
                if self.is(Fault::MovesWhomItInsertsAgain) {
                    self.move_back(index);
                }
            }
        }
    }

    fn remove(&mut self, stream: StreamKey) {
        if !self.is(Fault::ForgetsNobody) {
            self.streams.retain(|waiting| waiting.stream != stream);
        }
    }

    fn reprioritize(&mut self, stream: StreamKey, priority: Priority) {
        if let Some(index) = self.find(stream) {
            self.streams[index].priority = priority;
            if self.is(Fault::MovesWhomItIsToldOfAgain) {
                self.move_back(index);
            }
        }
    }

    fn activate(&mut self, stream: StreamKey) {
        if self.find(stream).is_none() && self.is(Fault::InsertsWhomItActivates) {
            self.insert(stream, Priority::default());
        }
        let Some(index) = self.find(stream) else { return };
        let was_active = std::mem::replace(&mut self.streams[index].active, true);
        if !was_active || self.is(Fault::ActivatesTwice) {
            self.move_back(index);
        }
    }

    fn deactivate(&mut self, stream: StreamKey) {
        if let Some(index) = self.find(stream) {
            self.streams[index].active = false;
        }
    }

    fn next(&self, room: usize) -> Option<Grant> {
        let asked = self.questions.replace(self.questions.get() + 1);
        if room == 0 && !self.is(Fault::GrantsWithoutRoom) {
            return None;
        }
        let active = |waiting: &&Waiting| waiting.active || self.is(Fault::GrantsIdleStreams);
        let control = |waiting: &&Waiting| waiting.priority.urgency == Urgency::CONTROL;
        let all: Vec<&Waiting> = self.streams.iter().filter(active).collect();
        let first: Vec<&Waiting> = all.iter().copied().filter(control).collect();
        let ignored = first.is_empty() || self.is(Fault::IgnoresControl);
        let turns = if ignored { all } else { first };
        let turn = if self.is(Fault::MovesOnWhenAsked) { asked } else { 0 };
        let stream = turns.get(turn % turns.len().max(1))?.stream;
        if self.is(Fault::IsIdleInPlaceOfLargeKeys) && stream == StreamKey::MAX {
            return None;
        }
        let bytes = if self.is(Fault::GrantsTooMuch) { room.wrapping_add(1) } else { room };
        let stranger = self.is(Fault::GrantsStrangers);
        Some(Grant { stream: if stranger { stream ^ 1 << 40 } else { stream }, bytes })
    }

    fn charge(&mut self, stream: StreamKey, bytes: usize) {
        if self.is(Fault::CountsWithoutSaturating) {
            let bytes = u32::try_from(bytes).expect("a charge is small");
            self.charged = self.charged.checked_add(bytes).expect("few bytes");
        }
        let counted = bytes > 0 || self.is(Fault::ChargesZeroBytes);
        let skipped = self.is(Fault::CountsQuestions) && self.questions.get() % 5 == 4
            || self.is(Fault::DiffersFromBuildToBuild) && self.builds.is_multiple_of(2);
        let stranger = self.is(Fault::MovesOnForStrangers) && !self.streams.is_empty();
        if let Some(index) = self.find(stream).or(stranger.then_some(0))
            && counted
            && !skipped
        {
            self.move_back(index);
        }
    }

    fn goes_by_classes(&self) -> bool {
        self.is(Fault::GoesByClassesIfThereAreStreams) && !self.streams.is_empty()
    }

    fn goes_by_frames(&self) -> bool {
        self.is(Fault::GoesByFramesIfThereAreStreams) && !self.streams.is_empty()
    }

    fn is_empty(&self) -> bool {
        !self.is(Fault::IsNeverEmpty) && self.streams.iter().all(|waiting| !waiting.active)
    }
}

#[derive(Debug)]
struct Faulty(Fault, AtomicUsize);

impl SchedulerFactory for Faulty {
    fn name(&self) -> &str {
        "faulty"
    }

    fn build(&self) -> Box<dyn Scheduler> {
        let builds = self.1.fetch_add(1, Ordering::Relaxed);
        Box::new(Line { fault: Some(self.0), builds, ..Line::default() })
    }
}

/// The message of the kit, or an empty string if it finds no fault.
fn verdict(fault: Fault) -> String {
    let run = || scheduler(&Faulty(fault, AtomicUsize::new(0)));
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(()) => String::new(),
        Err(panic) => *panic.downcast().unwrap(),
    }
}

#[test]
fn a_scheduler_of_a_stranger_that_is_right_passes() {
    assert_eq!(verdict(Fault::None), "");
}

#[test]
fn each_fault_is_found_and_named() {
    for (fault, rule) in [
        (Fault::DiffersFromBuildToBuild, "equal calls to two schedulers"),
        (Fault::MovesOnWhenAsked, "asked twice says the same"),
        (Fault::CountsQuestions, "a question changes nothing"),
        (Fault::GrantsIdleStreams, "only active streams are granted room"),
        (Fault::GrantsStrangers, "only streams that are inserted"),
        (Fault::GrantsTooMuch, "from 1 byte to the room"),
        (Fault::GrantsWithoutRoom, "without room there is no grant"),
        (Fault::IsIdleInPlaceOfLargeKeys, "there is a grant if"),
        (Fault::IgnoresControl, "`Urgency::CONTROL` go before"),
        (Fault::IsNeverEmpty, "`is_empty`"),
        // The fault may show while the stream is not inserted, or not active after it was.
        (Fault::ForgetsNobody, "are granted room"),
        (Fault::InsertsWhomItActivates, "are granted room"),
        (Fault::MovesOnForStrangers, "streams that are not inserted change nothing"),
        (Fault::ActivatesTwice, "repeating a call"),
        (Fault::MovesWhomItIsToldOfAgain, "a priority equal to the present one"),
        (Fault::ChargesZeroBytes, "zero bytes"),
        // The stream that is left out may be the only one, or more urgent than the stream that gets the
        // grant.
        (Fault::StopsWhomItInsertsAgain, "there is a grant if|`Urgency::CONTROL` go before"),
        (Fault::MovesWhomItInsertsAgain, "`insert` of a stream that is there"),
        (Fault::GoesByClassesIfThereAreStreams, "what it goes by never changes"),
        (Fault::GoesByFramesIfThereAreStreams, "what it goes by never changes"),
        (Fault::CountsWithoutSaturating, "no call panics"),
    ] {
        let verdict = verdict(fault);
        let named = rule.split('|').any(|rule| verdict.contains(rule));
        assert!(named && verdict.contains("`faulty`"), "{fault:?}: {verdict:?}");
    }
}
