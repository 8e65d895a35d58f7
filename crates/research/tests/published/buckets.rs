//! The schemes with strict buckets.

use std::collections::VecDeque;

use crate::{CHUNK, Item, Published};

#[derive(Clone, Debug, Default)]
pub(crate) struct Bucket {
    /// Streams and bytes left: concurrency 3, 2 and 1.
    pub(crate) exclusive: Vec<(u64, u64)>,
    pub(crate) sequential: Vec<(u64, u64)>,
    pub(crate) shared: VecDeque<(u64, u64)>,
    pub(crate) shared_next: bool,
}

pub(crate) fn take_chunk(entry: &mut (u64, u64)) -> Option<(u64, u64)> {
    let bytes = entry.1.min(CHUNK);
    entry.1 -= bytes;
    (bytes > 0).then_some((entry.0, bytes))
}

impl Bucket {
    pub(crate) fn send_sequential(&mut self) -> Option<(u64, u64)> {
        let sent = self.sequential.iter_mut().find_map(take_chunk);
        self.shared_next |= sent.is_some();
        sent
    }

    pub(crate) fn send_shared(&mut self) -> Option<(u64, u64)> {
        let at = self.shared.iter().position(|entry| entry.1 > 0)?;
        let mut entry = self.shared.remove(at)?;
        let sent = take_chunk(&mut entry);
        self.shared.push_back(entry);
        self.shared_next = false;
        sent
    }

    pub(crate) fn schedule(&mut self) -> Option<(u64, u64)> {
        if let Some(sent) = self.exclusive.iter_mut().find_map(take_chunk) {
            return Some(sent);
        }
        if self.shared_next {
            self.send_shared().or_else(|| self.send_sequential())
        } else {
            self.send_sequential().or_else(|| self.send_shared())
        }
    }
}

pub(crate) struct Buckets {
    pub(crate) buckets: Vec<Bucket>,
    /// The bucket, the highest first to be served, and the concurrency.
    pub(crate) place: fn(&Item) -> (usize, u8),
}

impl Published for Buckets {
    fn request(&mut self, item: &Item) {
        let (bucket, concurrency) = (self.place)(item);
        let entry = (item.stream, item.bytes);
        let bucket = &mut self.buckets[bucket];
        match concurrency {
            3 => bucket.exclusive.push(entry),
            2 => bucket.sequential.push(entry),
            _ => bucket.shared.push_back(entry),
        }
    }

    fn forget(&mut self, stream: u64) {
        for bucket in &mut self.buckets {
            bucket.exclusive.retain(|entry| entry.0 != stream);
            bucket.sequential.retain(|entry| entry.0 != stream);
            bucket.shared.retain(|entry| entry.0 != stream);
        }
    }

    fn schedule(&mut self) -> Option<(u64, u64)> {
        self.buckets.iter_mut().rev().find_map(Bucket::schedule)
    }
}

pub(crate) fn meenan(item: &Item) -> (usize, u8) {
    let needed = item.known.in_head || item.known.critical;
    match () {
        () if item.known.deferred => (31, 2),
        () if item.is_js() && needed => (63, 3),
        () if item.is_js() || item.is_xhr() => (31, 3),
        () if item.has("font") && item.known.preload => (31, 2),
        () if item.has("font") => (63, 2),
        () if item.is_html() => (31, 2),
        () if item.is_css() && needed => (63, 3),
        () if item.is_css() => (31, 3),
        () if item.has("image") && item.known.above_the_fold => (63, 1),
        () if item.has("image") || item.has("video") => (31, 1),
        () => (0, 2),
    }
}

pub(crate) fn meenan_html(item: &Item) -> (usize, u8) {
    if item.is_html() && !item.known.deferred { (63, 2) } else { meenan(item) }
}
