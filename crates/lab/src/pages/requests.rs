//! What a client asks for while a page arrives.

use std::collections::BTreeSet;
use std::time::Duration;

use super::corpus::{Page, Trigger};

/// What came of a page load. Times are since its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Load {
    /// When each resource was asked for.
    pub requested: Vec<Duration>,
    /// When each was complete.
    pub completed: Vec<Duration>,
}

/// The state of a page load at its client.
#[derive(Clone, Debug)]
pub struct Requests {
    resources: Vec<State>,
    /// What is to be asked for and when, the earliest first.
    due: BTreeSet<(Duration, usize)>,
    incomplete: usize,
}

#[derive(Clone, Debug)]
struct State {
    bytes: u64,
    arrived: u64,
    requested: Option<Duration>,
    completed: Option<Duration>,
    /// What is asked for at a share of this resource.
    during: Vec<(f64, usize)>,
    /// What is asked for a time after its end.
    after: Vec<(Duration, usize)>,
}

impl Requests {
    /// At the beginning of a load.
    #[must_use]
    pub fn new(page: &Page) -> Self {
        let state = |bytes| State {
            bytes,
            arrived: 0,
            requested: None,
            completed: None,
            during: Vec::new(),
            after: Vec::new(),
        };
        let mut resources: Vec<State> = page.resources.iter().map(|r| state(r.bytes)).collect();
        let mut due = BTreeSet::new();
        for (index, resource) in page.resources.iter().enumerate() {
            match resource.trigger {
                Trigger::Start(at) => {
                    due.insert((at, index));
                }
                Trigger::During(parent, share) => resources[parent].during.push((share, index)),
                Trigger::After(parent, wait) => resources[parent].after.push((wait, index)),
            }
        }
        Self { incomplete: resources.len(), resources, due }
    }

    /// When the next resource is to be asked for, as far as is known.
    #[must_use]
    pub fn next_due(&self) -> Option<Duration> {
        self.due.first().map(|(at, _)| *at)
    }

    /// The next resource to ask for at `now`, by its index. It counts as asked for.
    pub fn next(&mut self, now: Duration) -> Option<usize> {
        let (at, index) = *self.due.first()?;
        if at > now {
            return None;
        }
        self.due.pop_first();
        self.resources[index].requested = Some(now);
        Some(index)
    }

    /// `bytes` more of a resource have arrived.
    pub fn arrive(&mut self, index: usize, bytes: u64, now: Duration) {
        let resource = &mut self.resources[index];
        resource.arrived += bytes;
        let share = resource.arrived as f64 / resource.bytes as f64;
        let found = resource.during.extract_if(.., |(at, _)| *at <= share);
        self.due.extend(found.map(|(_, child)| (now, child)));
        if resource.arrived >= resource.bytes && resource.completed.is_none() {
            resource.completed = Some(now);
            self.incomplete -= 1;
            self.due.extend(resource.after.drain(..).map(|(wait, child)| (now + wait, child)));
        }
    }

    /// Bytes of a resource that have not arrived.
    #[must_use]
    pub fn missing(&self, index: usize) -> u64 {
        let resource = &self.resources[index];
        resource.bytes.saturating_sub(resource.arrived)
    }

    /// Whether all is complete.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        self.incomplete == 0
    }

    /// The times, once all is complete.
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
    use super::super::corpus::PageResource;
    use super::*;
    use sutura_research::marx::Resource;

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
        let resource = |trigger| PageResource { bytes: 10, resource: Resource::default(), trigger };
        let page = Page { id: String::new(), resources: triggers.map(resource).to_vec() };
        let mut requests = Requests::new(&page);
        let all = |requests: &mut Requests, now| -> Vec<usize> {
            std::iter::from_fn(|| requests.next(ms(now))).collect()
        };
        assert!(all(&mut requests, 4).is_empty());
        assert_eq!(requests.next_due(), Some(ms(5)));
        assert_eq!(all(&mut requests, 6), [0]);
        assert_eq!((requests.next_due(), requests.missing(0)), (None, 10));
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
}
