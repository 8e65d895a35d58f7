//! Sections that refer to the dynamic table and that the peer's decoder has not acknowledged (RFC
//! 9204 section 2.1).

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, VecDeque};

use sutura_proto::StreamId;
use sutura_proto::work;
use sutura_schedule::KeyHash;

/// Most sections that are remembered until the peer acknowledges them. Further sections do not refer to the
/// dynamic table.
pub const MAX_UNACKNOWLEDGED_SECTIONS: usize = 512;

/// Room for this many streams is kept when there are no more sections.
const FEW: usize = 8;

/// The references of a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Section {
    /// Its Required Insert Count: one more than the largest index; 0 without references.
    pub(super) required: u64,
    /// The smallest index.
    pub(super) oldest: u64,
}

impl Default for Section {
    fn default() -> Self {
        Self { required: 0, oldest: u64::MAX }
    }
}

impl Section {
    /// Adds a reference to an entry, by its absolute index.
    pub(super) fn refer(&mut self, index: u64) {
        self.required = self.required.max(index + 1);
        self.oldest = self.oldest.min(index);
    }
}

/// The sections of a stream.
#[derive(Debug)]
struct OnStream {
    /// The largest Required Insert Count, of acknowledged sections too.
    required: u64,
    first: Section,
    /// Those sent after the first one. Most streams have one section at a time.
    further: VecDeque<Section>,
}

/// How many sections have each index as their smallest one.
#[derive(Debug, Default)]
struct Oldest {
    /// The smallest index.
    first: u64,
    /// From that index on. Their number is limited: the entries from the smallest index on are in the table.
    counts: VecDeque<usize>,
}

impl Oldest {
    fn add(&mut self, index: u64) {
        if self.counts.is_empty() {
            self.first = index;
        }
        while index < self.first {
            self.counts.push_front(0);
            self.first -= 1;
        }
        let at = (index - self.first) as usize;
        if at >= self.counts.len() {
            self.counts.resize(at + 1, 0);
        }
        if let Some(count) = self.counts.get_mut(at) {
            *count += 1;
        }
    }

    fn remove(&mut self, index: u64) {
        if let Some(count) = self.counts.get_mut((index - self.first) as usize) {
            *count -= 1;
        }
        while self.counts.pop_front_if(|count| *count == 0).is_some() {
            self.first += 1;
        }
    }
}

/// The sections that were sent and not acknowledged.
#[derive(Debug, Default)]
pub(super) struct Outstanding {
    streams: HashMap<StreamId, OnStream, KeyHash>,
    /// The streams that may wait for entries, by their largest Required Insert Count. Those that need not
    /// wait any more leave before the others are counted.
    waiting: BTreeSet<(u64, StreamId)>,
    oldest: Oldest,
    count: usize,
}

impl Outstanding {
    /// Whether a further section can be remembered.
    pub(super) const fn has_room(&self) -> bool {
        self.count < MAX_UNACKNOWLEDGED_SECTIONS
    }

    /// The smallest index to which any section refers.
    pub(super) fn oldest(&self) -> Option<u64> {
        (self.count > 0).then_some(self.oldest.first)
    }

    /// Whether a section on `stream` may refer to entries beyond the first `known` ones, when the
    /// peer lets `limit` streams wait (section 2.1.2). `known` never shrinks.
    pub(super) fn may_block(&mut self, stream: StreamId, known: u64, limit: u64) -> bool {
        while self.waiting.first().is_some_and(|(required, _)| *required <= known) {
            work::steps(1);
            self.waiting.pop_first();
        }
        if (self.waiting.len() as u64) < limit {
            return true;
        }
        let sections = self.streams.get(&stream).filter(|_| !self.waiting.is_empty());
        sections.is_some_and(|sections| sections.required > known)
    }

    /// Remembers a section, if it refers to the table. The peer has the first `known` entries.
    pub(super) fn insert(&mut self, stream: StreamId, section: Section, known: u64) {
        if section.required == 0 {
            return;
        }
        self.oldest.add(section.oldest);
        self.count += 1;
        let before = match self.streams.entry(stream) {
            Entry::Vacant(vacant) => {
                let (required, further) = (section.required, VecDeque::new());
                vacant.insert(OnStream { required, first: section, further });
                0
            }
            Entry::Occupied(mut occupied) => {
                let sections = occupied.get_mut();
                sections.further.push_back(section);
                let larger = section.required.max(sections.required);
                std::mem::replace(&mut sections.required, larger)
            }
        };
        if section.required > known.max(before) {
            self.waiting.remove(&(before, stream));
            self.waiting.insert((section.required, stream));
        }
    }

    /// Takes the oldest section of a stream.
    pub(super) fn acknowledge(&mut self, stream: StreamId) -> Option<Section> {
        let Entry::Occupied(mut occupied) = self.streams.entry(stream) else { return None };
        let sections = occupied.get_mut();
        let section = match sections.further.pop_front() {
            Some(next) => std::mem::replace(&mut sections.first, next),
            None => occupied.remove().first,
        };
        self.release(section);
        Some(section)
    }

    /// Forgets the sections of a stream.
    pub(super) fn cancel(&mut self, stream: StreamId) {
        let Some(OnStream { required, first, further }) = self.streams.remove(&stream) else {
            return;
        };
        self.waiting.remove(&(required, stream));
        self.release(first);
        further.into_iter().for_each(|section| self.release(section));
    }

    fn release(&mut self, section: Section) {
        self.count -= 1;
        self.oldest.remove(section.oldest);
        // The room that many sections at once have taken is given back.
        if self.count == 0 && self.streams.capacity() > FEW {
            self.streams.shrink_to_fit();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(indices: &[u64]) -> Section {
        let mut section = Section::default();
        indices.iter().for_each(|index| section.refer(*index));
        section
    }

    #[test]
    fn references_end_with_acknowledgement_and_cancellation() {
        let mut outstanding = Outstanding::default();
        let (a, b) = (StreamId(0), StreamId(4));
        outstanding.insert(a, section(&[3, 7]), 0);
        outstanding.insert(a, section(&[]), 0);
        outstanding.insert(a, section(&[5]), 0);
        outstanding.insert(b, section(&[4]), 0);
        assert_eq!((outstanding.count, outstanding.oldest()), (3, Some(3)));
        assert_eq!(outstanding.acknowledge(a), Some(Section { required: 8, oldest: 3 }));
        assert_eq!(outstanding.oldest(), Some(4));
        outstanding.cancel(b);
        outstanding.cancel(b);
        assert_eq!(outstanding.oldest(), Some(5));
        assert_eq!(outstanding.acknowledge(a).map(|section| section.required), Some(6));
        assert_eq!(outstanding.acknowledge(a), None);
        assert_eq!((outstanding.count, outstanding.oldest()), (0, None));
    }

    #[test]
    fn streams_that_may_wait_are_counted_once() {
        let mut outstanding = Outstanding::default();
        let (a, b, c) = (StreamId(0), StreamId(4), StreamId(8));
        outstanding.insert(a, section(&[3]), 0);
        outstanding.insert(a, section(&[4]), 0);
        outstanding.insert(b, section(&[1]), 0);
        assert!(!outstanding.may_block(a, 0, 0) || outstanding.may_block(a, 0, 2));
        assert!(outstanding.may_block(a, 2, 1), "it waits already");
        assert!(!outstanding.may_block(c, 2, 1));
        assert!(outstanding.may_block(c, 2, 2));
        assert!(outstanding.may_block(c, 5, 1));
        assert!(!outstanding.may_block(c, 5, 0));
    }

    #[test]
    fn a_stream_waits_no_more_once_its_entries_are_known_or_it_is_cancelled() {
        let mut outstanding = Outstanding::default();
        let [a, b, c] = [0, 4, 8].map(StreamId);
        outstanding.insert(a, section(&[5]), 2);
        outstanding.insert(a, section(&[9]), 2);
        outstanding.insert(b, section(&[6]), 2);
        outstanding.insert(b, section(&[1]), 2);
        assert!(!outstanding.may_block(c, 2, 2) && outstanding.may_block(c, 2, 3));
        // The sections whose entries are known wait for nothing, even before they are acknowledged.
        assert!(!outstanding.may_block(c, 7, 1) && outstanding.may_block(a, 7, 1));
        assert!(!outstanding.may_block(b, 7, 1));
        outstanding.cancel(a);
        assert!(outstanding.may_block(c, 7, 1) && !outstanding.may_block(a, 7, 0));
        assert_eq!((outstanding.count, outstanding.oldest()), (2, Some(1)));
        assert_eq!(outstanding.acknowledge(b).map(|section| section.oldest), Some(6));
        assert_eq!(outstanding.acknowledge(b).map(|section| section.oldest), Some(1));
        assert!(outstanding.streams.is_empty() && outstanding.oldest.counts.is_empty());
    }

    #[test]
    fn memory_for_many_sections_is_given_back() {
        let mut outstanding = Outstanding::default();
        for stream in 0..100 {
            outstanding.insert(StreamId(stream), section(&[stream]), 0);
        }
        assert!(outstanding.streams.capacity() >= 100);
        for stream in 0..100 {
            assert!(outstanding.acknowledge(StreamId(stream)).is_some());
        }
        assert!(outstanding.streams.capacity() <= FEW);
        assert_eq!(outstanding.oldest(), None);
    }
}
