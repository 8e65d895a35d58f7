//! Sections that refer to the dynamic table and that the peer's decoder has not acknowledged (RFC
//! 9204 section 2.1).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use sutura_proto::StreamId;
use sutura_proto::work;

/// Most sections that are remembered until the peer acknowledges them. Further sections do not refer to the
/// dynamic table.
pub const MAX_UNACKNOWLEDGED_SECTIONS: usize = 512;

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

/// The sections that were sent and not acknowledged.
#[derive(Debug, Default)]
pub(super) struct Outstanding {
    /// In the order in which they were sent on each stream.
    sections: BTreeMap<StreamId, VecDeque<Section>>,
    /// The largest Required Insert Count of each stream with sections.
    required: BTreeSet<(u64, StreamId)>,
    /// How many sections have each index as their smallest one.
    oldest: BTreeMap<u64, usize>,
    count: usize,
}

impl Outstanding {
    /// Whether a further section can be remembered.
    pub(super) const fn has_room(&self) -> bool {
        self.count < MAX_UNACKNOWLEDGED_SECTIONS
    }

    /// The smallest index to which any section refers.
    pub(super) fn oldest(&self) -> Option<u64> {
        self.oldest.first_key_value().map(|(index, _)| *index)
    }

    /// Whether a section on `stream` may refer to entries beyond the first `known` ones, when the
    /// peer lets `limit` streams wait (section 2.1.2).
    pub(super) fn may_block(&self, stream: StreamId, known: u64, limit: u64) -> bool {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let blocked = self.required.range((known + 1, StreamId(0))..).take(limit);
        let blocked = blocked.inspect(|_| work::steps(1));
        blocked.count() < limit || self.required_by(stream) > known
    }

    /// The largest Required Insert Count of a stream's sections.
    fn required_by(&self, stream: StreamId) -> u64 {
        let sections = self.sections.get(&stream).into_iter().flatten();
        sections.map(|section| section.required).max().unwrap_or(0)
    }

    /// Changes the sections of a stream.
    fn change<R>(
        &mut self,
        stream: StreamId,
        change: impl FnOnce(&mut BTreeMap<StreamId, VecDeque<Section>>) -> R,
    ) -> R {
        self.required.remove(&(self.required_by(stream), stream));
        let result = change(&mut self.sections);
        let required = self.required_by(stream);
        if required > 0 {
            self.required.insert((required, stream));
        }
        result
    }

    /// Remembers a section, if it refers to the table.
    pub(super) fn insert(&mut self, stream: StreamId, section: Section) {
        if section.required > 0 {
            self.change(stream, |all| all.entry(stream).or_default().push_back(section));
            *self.oldest.entry(section.oldest).or_default() += 1;
            self.count += 1;
        }
    }

    /// Takes the oldest section of a stream.
    pub(super) fn acknowledge(&mut self, stream: StreamId) -> Option<Section> {
        let section = self.change(stream, |all| {
            let sections = all.get_mut(&stream)?;
            let section = sections.pop_front();
            if sections.is_empty() {
                all.remove(&stream);
            }
            section
        });
        section.inspect(|section| self.release(*section))
    }

    /// Forgets the sections of a stream.
    pub(super) fn cancel(&mut self, stream: StreamId) {
        for section in self.change(stream, |all| all.remove(&stream)).into_iter().flatten() {
            self.release(section);
        }
    }

    fn release(&mut self, section: Section) {
        self.count -= 1;
        if let Some(count) = self.oldest.get_mut(&section.oldest) {
            *count -= 1;
            if *count == 0 {
                self.oldest.remove(&section.oldest);
            }
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
        outstanding.insert(a, section(&[3, 7]));
        outstanding.insert(a, section(&[]));
        outstanding.insert(a, section(&[5]));
        outstanding.insert(b, section(&[4]));
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
        outstanding.insert(a, section(&[3]));
        outstanding.insert(a, section(&[4]));
        outstanding.insert(b, section(&[1]));
        assert!(!outstanding.may_block(a, 0, 0) || outstanding.may_block(a, 0, 2));
        assert!(outstanding.may_block(a, 2, 1), "it waits already");
        assert!(!outstanding.may_block(c, 2, 1));
        assert!(outstanding.may_block(c, 2, 2));
        assert!(outstanding.may_block(c, 5, 1));
        assert!(!outstanding.may_block(c, 5, 0));
    }
}
