//! The requests of a client while a page arrives.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::page::Trigger;

/// The times of a page load, since its start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// When each resource was requested.
    pub requested: Vec<Duration>,
    /// When each was complete.
    pub completed: Vec<Duration>,
}

/// The state of a page load at its client.
#[derive(Clone, Debug)]
pub struct Requests {
    resources: Vec<Loading>,
    /// The requests that are due, and when, the earliest first.
    due: BTreeSet<(Duration, usize)>,
    incomplete: usize,
}

#[derive(Clone, Debug, Default)]
struct Loading {
    bytes: u64,
    arrived: u64,
    requested: Option<Duration>,
    completed: Option<Duration>,
    /// The resources that are requested when a share of this one has arrived.
    during: Vec<(f64, usize)>,
    /// The resources that are requested a time after the end of this one.
    after: Vec<(Duration, usize)>,
}

impl Requests {
    /// The beginning of a page load. Each resource has a size in bytes and a trigger, which may only
    /// name resources before it.
    #[must_use]
    pub fn new(page: impl IntoIterator<Item = (u64, Trigger)>) -> Self {
        let mut resources: Vec<Loading> = Vec::new();
        let mut due = BTreeSet::new();
        for (index, (bytes, trigger)) in page.into_iter().enumerate() {
            resources.push(Loading { bytes, ..Loading::default() });
            match trigger {
                Trigger::Start(at) => {
                    due.insert((at, index));
                }
                Trigger::During(parent, share) => resources[parent].during.push((share, index)),
                Trigger::After(parent, wait) => resources[parent].after.push((wait, index)),
            }
        }
        Self { incomplete: resources.len(), resources, due }
    }

    /// When the next request is due, as far as is known.
    #[must_use]
    pub fn next_due(&self) -> Option<Duration> {
        self.due.first().map(|(at, _)| *at)
    }

    /// The index of the next resource to request at `now`. It counts as requested from then on.
    pub fn next(&mut self, now: Duration) -> Option<usize> {
        let (at, index) = *self.due.first()?;
        if at > now {
            return None;
        }
        self.due.pop_first();
        self.resources[index].requested = Some(now);
        Some(index)
    }

    /// Records that `bytes` more of a resource have arrived. It is complete when all of them have;
    /// for an empty resource this takes a call with zero bytes.
    pub fn arrive(&mut self, index: usize, bytes: u64, now: Duration) {
        let resource = &mut self.resources[index];
        resource.arrived += bytes;
        let share = match resource.bytes {
            0 => 1.0,
            bytes => resource.arrived as f64 / bytes as f64,
        };
        let found = resource.during.extract_if(.., |(at, _)| *at <= share);
        self.due.extend(found.map(|(_, child)| (now, child)));
        if resource.arrived >= resource.bytes && resource.completed.is_none() {
            resource.completed = Some(now);
            self.incomplete -= 1;
            self.due.extend(resource.after.drain(..).map(|(wait, child)| (now + wait, child)));
        }
    }

    /// Bytes of a resource that have arrived.
    #[must_use]
    pub fn arrived(&self, index: usize) -> u64 {
        self.resources[index].arrived
    }

    /// Whether a resource was requested.
    #[must_use]
    pub fn is_requested(&self, index: usize) -> bool {
        self.resources.get(index).is_some_and(|resource| resource.requested.is_some())
    }

    /// Whether a resource was requested and is not complete.
    #[must_use]
    pub fn are_under_way(&self) -> bool {
        self.resources.iter().any(|r| r.requested.is_some() && r.completed.is_none())
    }

    /// Whether all resources are complete.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        self.incomplete == 0
    }

    /// The times, once all resources are complete.
    #[must_use]
    pub fn load(&self) -> Option<Load> {
        Some(Load {
            requested: self.resources.iter().map(|r| r.requested).collect::<Option<_>>()?,
            completed: self.resources.iter().map(|r| r.completed).collect::<Option<_>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_arrived_decides_what_is_asked_for() {
        let ms = Duration::from_millis;
        let triggers = [
            Trigger::Start(ms(5)),
            Trigger::After(0, ms(7)),
            Trigger::During(0, 0.5),
            Trigger::During(0, 0.0),
            Trigger::During(0, 1.0),
        ];
        let mut requests = Requests::new(triggers.map(|trigger| (10, trigger)));
        let all = |requests: &mut Requests, now| -> Vec<usize> {
            std::iter::from_fn(|| requests.next(ms(now))).collect()
        };
        assert!(all(&mut requests, 4).is_empty() && !requests.are_under_way());
        assert_eq!(requests.next_due(), Some(ms(5)));
        assert_eq!(all(&mut requests, 6), [0]);
        assert_eq!((requests.next_due(), requests.arrived(0)), (None, 0));
        assert!(requests.are_under_way() && requests.is_requested(0) && !requests.is_requested(1));
        requests.arrive(0, 4, ms(10));
        assert_eq!(all(&mut requests, 10), [3]);
        requests.arrive(0, 1, ms(20));
        assert_eq!(all(&mut requests, 20), [2]);
        requests.arrive(0, 5, ms(30));
        assert_eq!(all(&mut requests, 30), [4]);
        assert!(all(&mut requests, 36).is_empty());
        assert_eq!(all(&mut requests, 37), [1]);
        for index in 1..5 {
            assert!(!requests.is_done() && requests.load().is_none());
            requests.arrive(index, 10, ms(40));
        }
        assert!(requests.is_done());
        let expected = Load {
            requested: [6, 37, 20, 10, 30].map(ms).to_vec(),
            completed: [30, 40, 40, 40, 40].map(ms).to_vec(),
        };
        assert_eq!(requests.load(), Some(expected));
    }

    #[test]
    fn an_empty_resource_is_complete_and_names_others() {
        let triggers = [Trigger::Start(Duration::ZERO), Trigger::During(0, 0.5)];
        let mut requests = Requests::new(triggers.map(|trigger| (0, trigger)));
        for index in 0..2 {
            assert_eq!(requests.next(Duration::ZERO), Some(index));
            assert!(!requests.is_done());
            requests.arrive(index, 0, Duration::ZERO);
        }
        assert!(requests.is_done());
    }
}
