//! The dynamic table (RFC 9204 section 3.2), as either end keeps it.

use std::collections::VecDeque;

use bytes::Bytes;
use sutura_proto::work;

use crate::fields::FIELD_OVERHEAD;

/// Bytes that an entry with this name and value takes (RFC 9204 section 3.2.1).
pub(super) fn entry_size(name: &[u8], value: &[u8]) -> u64 {
    (name.len() as u64 + value.len() as u64).saturating_add(FIELD_OVERHEAD)
}

/// An entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) name: Bytes,
    pub(super) value: Bytes,
}

impl Entry {
    pub(super) fn size(&self) -> u64 {
        entry_size(&self.name, &self.value)
    }
}

/// The entry is larger than the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EntryTooLarge;

/// An entry in its place.
#[derive(Debug)]
struct Place {
    entry: Entry,
    /// The bytes of all entries ever inserted up to this one.
    end: u64,
}

/// Entries in the order of their insertion. They are known by absolute indices, which count from 0
/// (RFC 9204 section 3.2.4).
#[derive(Debug, Default)]
pub(super) struct DynamicTable {
    /// Oldest first.
    places: VecDeque<Place>,
    /// How many entries were evicted.
    evicted: u64,
    /// Their bytes.
    evicted_bytes: u64,
    capacity: u64,
}

impl DynamicTable {
    /// How many entries were ever inserted: the absolute index of the next one.
    pub(super) fn inserted(&self) -> u64 {
        self.evicted + self.places.len() as u64
    }

    /// Gives back the room for further entries.
    pub(super) fn rest(&mut self) {
        self.places.shrink_to_fit();
    }

    /// The most bytes that entries may take.
    pub(super) const fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The entry with an absolute index, unless it was evicted or is still to come.
    pub(super) fn get(&self, index: u64) -> Option<&Entry> {
        let at = index.checked_sub(self.evicted)?;
        self.places.get(usize::try_from(at).ok()?).map(|place| &place.entry)
    }

    /// Changes the capacity, evicting entries that no longer fit.
    pub(super) fn set_capacity(&mut self, capacity: u64) {
        self.capacity = capacity;
        self.evict_to(capacity);
    }

    /// Inserts an entry, evicting the oldest ones as necessary.
    pub(super) fn insert(&mut self, entry: Entry) -> Result<(), EntryTooLarge> {
        let size = entry.size();
        let rest = self.capacity.checked_sub(size).ok_or(EntryTooLarge)?;
        self.evict_to(rest);
        let end = self.evicted_bytes + self.size() + size;
        self.places.push_back(Place { entry, end });
        Ok(())
    }

    fn evict_to(&mut self, size: u64) {
        while self.size() > size
            && let Some(Place { end, .. }) = self.places.pop_front()
        {
            self.evicted_bytes = end;
            self.evicted += 1;
        }
    }

    /// The bytes available for a new entry if only entries before `index` are evicted.
    pub(super) fn room_before(&self, index: u64) -> u64 {
        let evictable = index.saturating_sub(self.evicted).min(self.places.len() as u64);
        let last = evictable.checked_sub(1).and_then(|at| self.places.get(at as usize));
        let end = last.map_or(self.evicted_bytes, |place| place.end);
        self.capacity - self.size() + (end - self.evicted_bytes)
    }

    /// The bytes available for a new entry if none is evicted.
    pub(super) fn room(&self) -> u64 {
        self.capacity - self.size()
    }

    /// The entries with their absolute indices, newest first.
    pub(super) fn newest_first(&self) -> impl Iterator<Item = (u64, &Entry)> {
        let newest = self.inserted();
        self.places
            .iter()
            .rev()
            .inspect(|_| work::steps(1))
            .enumerate()
            .map(move |(age, place)| (newest - age as u64 - 1, &place.entry))
    }

    /// The bytes that the entries take.
    pub(super) fn size(&self) -> u64 {
        self.places.back().map_or(0, |place| place.end - self.evicted_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &'static str, value: &'static str) -> Entry {
        Entry { name: name.into(), value: value.into() }
    }

    #[test]
    fn the_oldest_go_first_and_keep_their_indices() {
        let mut table = DynamicTable::default();
        assert_eq!(table.insert(entry("", "")), Err(EntryTooLarge));
        table.set_capacity(100);
        for value in ["0", "1", "2"] {
            table.insert(entry("a", value)).unwrap();
        }
        assert_eq!((table.inserted(), table.size()), (3, 68));
        assert_eq!(table.get(0), None);
        assert_eq!(table.get(2), Some(&entry("a", "2")));
        assert_eq!(table.get(3), None);
        let indices: Vec<u64> = table.newest_first().map(|(index, _)| index).collect();
        assert_eq!(indices, [2, 1]);
        assert_eq!([0, 1, 2, 3, 9].map(|index| table.room_before(index)), [32, 32, 66, 100, 100]);
        table.set_capacity(40);
        assert_eq!((table.inserted(), table.get(1)), (3, None));
        table.set_capacity(0);
        assert_eq!((table.inserted(), table.size()), (3, 0));
    }

    #[test]
    fn an_entry_too_large_changes_nothing() {
        let mut table = DynamicTable::default();
        table.set_capacity(40);
        table.insert(entry("a", "b")).unwrap();
        assert_eq!(table.insert(entry("name", "value")), Err(EntryTooLarge));
        assert_eq!((table.inserted(), table.size()), (1, 34));
    }
}
