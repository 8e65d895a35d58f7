//! The schemes with a weight of zero.

use std::collections::BTreeMap;

use crate::tree::{ROOT, Tree};
use crate::{CHUNK, Item, Published};

pub(crate) struct ZeroWeight {
    /// Weights 255 and 0: bytes left by stream.
    pub(crate) extremes: [BTreeMap<u64, u64>; 2],
    pub(crate) middle: Tree,
    pub(crate) weight: fn(&Item) -> u128,
}

impl Published for ZeroWeight {
    fn request(&mut self, item: &Item) {
        match (self.weight)(item) {
            255 => {
                self.extremes[0].insert(item.stream, item.bytes);
            }
            0 => {
                self.extremes[1].insert(item.stream, item.bytes);
            }
            weight => {
                self.middle.stream(item, ROOT, weight);
            }
        }
    }

    fn forget(&mut self, stream: u64) {
        let [first, last] = &mut self.extremes;
        if first.remove(&stream).or_else(|| last.remove(&stream)).is_none() {
            self.middle.remove(stream);
        }
    }

    fn schedule(&mut self) -> Option<(u64, u64)> {
        fn send(streams: &mut BTreeMap<u64, u64>) -> Option<(u64, u64)> {
            let (&stream, left) = streams.iter_mut().find(|(_, left)| **left > 0)?;
            let bytes = (*left).min(CHUNK);
            *left -= bytes;
            Some((stream, bytes))
        }
        let [first, last] = &mut self.extremes;
        send(first).or_else(|| self.middle.step()).or_else(|| send(last))
    }
}

pub(crate) fn zero_weight(item: &Item) -> u128 {
    match () {
        () if item.known.main => 255,
        () if item.is_html() || item.is_css() => 254,
        () if item.is_js() => 24,
        () if item.has("font") => 16,
        () if item.has("image") && item.known.above_the_fold => 8,
        () if item.has("image") => 1,
        () => 0,
    }
}

pub(crate) fn zero_weight_atf(item: &Item) -> u128 {
    let style_or_script = item.is_css() || item.is_js();
    match () {
        () if item.known.main || item.has("font") => 255,
        () if item.known.critical && style_or_script => 255,
        () if item.known.above_the_fold && item.has("image") => 255,
        () if item.is_html() || item.is_css() => 254,
        () if item.is_js() && item.known.deferred => 0,
        () if item.is_js() => 24,
        () if item.has("image") => 0,
        () if item.is_xhr() => 24,
        () => 0,
    }
}
