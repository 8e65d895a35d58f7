//! Playing a page load back through a scheduler (Marx 2020, section 5.1).
//!
//! A wire takes one packet every 10 ms. Each packet carries one stream, so the last one of a response
//! costs as much time as any other. What is asked for is asked for as in the recording; nothing is
//! lost, and a request takes no time. Between the scheduler and the wire is a buffer: what is in it
//! keeps its order, whatever comes later.

use std::collections::VecDeque;

use sutura_schedule::{Priority, Scheduler};

use super::corpus::{Page, Trigger};

/// Milliseconds from one packet to the next.
const TICK: f64 = 10.0;
/// Bytes of a packet.
pub const PACKET: usize = 1400;

/// How a page is played back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Playback {
    /// Bytes that the scheduler may be ahead of the wire.
    pub buffer: usize,
}

/// What came of a page load.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// When each resource was complete, in milliseconds.
    pub completed: Vec<f64>,
    /// When it was asked for.
    pub requested: Vec<f64>,
}

struct State<'a> {
    page: &'a Page,
    /// When each resource is asked for, once that is known.
    due: Vec<Option<f64>>,
    requested: Vec<Option<f64>>,
    /// Bytes that the scheduler has not given out.
    unscheduled: Vec<u64>,
    /// Bytes that the client has.
    arrived: Vec<u64>,
    completed: Vec<Option<f64>>,
    /// Chunks on their way to the wire: resource and bytes.
    buffer: VecDeque<(usize, usize)>,
    buffered: usize,
}

/// Plays a page back. `priority` says what the server knows of each resource.
pub fn play(
    page: &Page,
    scheduler: &mut dyn Scheduler,
    playback: Playback,
    priority: impl Fn(usize) -> Priority,
) -> Load {
    let mut state = State::new(page);
    let mut now = 0.0;
    while state.completed.iter().any(Option::is_none) {
        state.request_due(now, scheduler, &priority);
        if !state.send(now, playback, scheduler) {
            // The wire is idle until something is asked for, at the latest.
            match state.next_due(now) {
                Some(due) => {
                    now = now.max(due - due % TICK);
                }
                None => break,
            }
        }
        now += TICK;
    }
    let all = |times: &[Option<f64>]| times.iter().map(|t| t.unwrap_or(now)).collect();
    Load { completed: all(&state.completed), requested: all(&state.requested) }
}

impl<'a> State<'a> {
    fn new(page: &'a Page) -> Self {
        let count = page.resources.len();
        let due = page.resources.iter().map(|resource| match resource.trigger {
            Trigger::Start(at) => Some(at),
            Trigger::During(..) | Trigger::After(..) => None,
        });
        Self {
            page,
            due: due.collect(),
            requested: vec![None; count],
            unscheduled: page.resources.iter().map(|r| r.bytes).collect(),
            arrived: vec![0; count],
            completed: vec![None; count],
            buffer: VecDeque::new(),
            buffered: 0,
        }
    }

    /// Asks for everything whose time has come.
    fn request_due(
        &mut self,
        now: f64,
        scheduler: &mut dyn Scheduler,
        priority: &impl Fn(usize) -> Priority,
    ) {
        for index in 0..self.due.len() {
            if self.requested[index].is_none() && self.due[index].is_some_and(|due| due <= now) {
                self.requested[index] = Some(now);
                scheduler.insert(index as u64, priority(index));
                scheduler.activate(index as u64);
            }
        }
    }

    /// The next time at which something is asked for.
    fn next_due(&self, now: f64) -> Option<f64> {
        let open = self.due.iter().zip(&self.requested).filter(|(_, r)| r.is_none());
        open.filter_map(|(due, _)| *due).filter(|due| *due > now).min_by(f64::total_cmp)
    }

    /// Puts one packet on the wire. `false` if there is none.
    fn send(&mut self, now: f64, playback: Playback, scheduler: &mut dyn Scheduler) -> bool {
        while self.buffered == 0 || self.buffered + PACKET <= playback.buffer {
            let Some(grant) = scheduler.next(PACKET) else { break };
            let index = grant.stream as usize;
            let bytes = grant.bytes.min(self.unscheduled[index] as usize);
            self.unscheduled[index] -= bytes as u64;
            scheduler.charge(grant.stream, bytes);
            if self.unscheduled[index] == 0 {
                scheduler.remove(grant.stream);
            }
            self.buffer.push_back((index, bytes));
            self.buffered += bytes;
        }
        let Some((index, bytes)) = self.buffer.pop_front() else { return false };
        self.buffered -= bytes;
        self.arrive(index, bytes as u64, now + TICK);
        true
    }

    fn arrive(&mut self, index: usize, bytes: u64, now: f64) {
        self.arrived[index] += bytes;
        let total = self.page.resources[index].bytes;
        let complete = self.arrived[index] >= total;
        if complete {
            self.completed[index] = Some(now);
        }
        let share = self.arrived[index] as f64 / total as f64;
        for (child, resource) in self.page.resources.iter().enumerate().skip(index + 1) {
            match resource.trigger {
                Trigger::During(parent, at) if parent == index && share >= at => {
                    self.due[child].get_or_insert(now);
                }
                Trigger::After(parent, delay) if parent == index && complete => {
                    self.due[child].get_or_insert(now + delay);
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::corpus::PageResource;
    use sutura_schedule::{Resource, Scheme};

    fn resource(bytes: u64, trigger: Trigger) -> PageResource {
        PageResource { bytes, resource: Resource::default(), trigger }
    }

    fn load(scheme: Scheme, buffer: usize, resources: Vec<PageResource>) -> Load {
        let page = Page { id: "test".to_owned(), resources };
        play(&page, &mut *scheme.build(), Playback { buffer }, |_| Priority::default())
    }

    #[test]
    fn a_packet_takes_ten_milliseconds_however_short_it_is() {
        let resources =
            vec![resource(1401, Trigger::Start(0.0)), resource(10, Trigger::After(0, 25.0))];
        let load = load(Scheme::Fifo, 0, resources);
        assert_eq!(load.completed, [20.0, 60.0]);
        assert_eq!(load.requested, [0.0, 50.0]);
    }

    #[test]
    fn what_is_found_in_a_document_is_asked_for_when_that_part_has_arrived() {
        let resources =
            vec![resource(14_000, Trigger::Start(0.0)), resource(1400, Trigger::During(0, 0.5))];
        // Round robin: from the sixth packet on they take turns.
        let load = load(Scheme::Rr, 0, resources.clone());
        assert_eq!(load.requested[1], 50.0);
        assert!(load.completed[1] <= 70.0 && load.completed[0] == 110.0, "{load:?}");
    }

    #[test]
    fn a_buffer_makes_late_resources_wait() {
        let resources =
            vec![resource(140_000, Trigger::Start(0.0)), resource(1400, Trigger::During(0, 0.0))];
        let early = load(Scheme::Rr, 0, resources.clone()).completed[1];
        let late = load(Scheme::Rr, 70_000, resources.clone()).completed[1];
        let last = load(Scheme::Rr, 1_000_000, resources).completed[1];
        assert!(early < 50.0 && late > 400.0 && last == 1010.0, "{early} {late} {last}");
    }
}
