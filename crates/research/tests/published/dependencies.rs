//! The schemes that build a dependency tree.

use crate::tree::{ROOT, Tail, Tree};
use crate::{Item, Published};

/// `rr`, `wrr`, `fifo`: no placeholders.
pub(crate) struct Flat {
    pub(crate) tree: Tree,
    pub(crate) weight: fn(&Item) -> u128,
    pub(crate) chain: Option<Tail>,
}

impl Published for Flat {
    fn request(&mut self, item: &Item) {
        let weight = (self.weight)(item);
        match &mut self.chain {
            Some(tail) => tail.append(&mut self.tree, item, ROOT, weight),
            None => {
                self.tree.stream(item, ROOT, weight);
            }
        }
    }

    fn forget(&mut self, stream: u64) {
        if let Some(tail) = &mut self.chain {
            tail.forget(&self.tree, stream);
        }
        self.tree.remove(stream);
    }

    fn schedule(&mut self) -> Option<(u64, u64)> {
        self.tree.step()
    }
}

pub(crate) fn safari(item: &Item) -> u128 {
    match () {
        () if item.is_html() || item.is_css() => 256,
        () if item.is_js() => 24,
        () if item.has("font") => 16,
        () => 8,
    }
}

/// The level of Chrome, 0 for the highest.
pub(crate) fn chrome(item: &Item) -> usize {
    match () {
        () if item.is_js() && item.known.deferred => 3,
        () if item.is_js() && item.known.after_first_image => 2,
        () if item.is_js() => 1,
        () if item.is_html() || item.is_css() => 0,
        () if item.is_xhr() => 1,
        () if item.has("font") => 0,
        () if item.has("image") => 3,
        () => 4,
    }
}

pub(crate) struct DynamicFifo {
    pub(crate) tree: Tree,
    /// The streams of each level, the last one at the end.
    pub(crate) levels: [Vec<u64>; 5],
}

impl Published for DynamicFifo {
    fn request(&mut self, item: &Item) {
        let level = chrome(item);
        let tail = self.levels[..=level].iter().rev().find_map(|streams| streams.last());
        let parent = tail.map_or(ROOT, |tail| self.tree.streams[tail]);
        self.tree.exclusive(item, parent, [256, 220, 183, 147, 110][level]);
        self.levels[level].push(item.stream);
    }

    fn forget(&mut self, stream: u64) {
        self.levels.iter_mut().for_each(|streams| streams.retain(|&other| other != stream));
        self.tree.remove(stream);
    }

    fn schedule(&mut self) -> Option<(u64, u64)> {
        self.tree.step()
    }
}

pub(crate) struct Firefox {
    pub(crate) tree: Tree,
    /// Leaders, followers, unblocked, background, speculative.
    pub(crate) groups: [usize; 5],
    pub(crate) measured: bool,
}

pub(crate) fn firefox_groups(tree: &mut Tree, top: usize) -> [usize; 5] {
    let leaders = tree.placeholder(top, 201);
    let followers = tree.placeholder(leaders, 1);
    let unblocked = tree.placeholder(top, 101);
    let background = tree.placeholder(top, 1);
    [leaders, followers, unblocked, background, tree.placeholder(background, 1)]
}

impl Published for Firefox {
    fn request(&mut self, item: &Item) {
        let [leaders, followers, unblocked, background, speculative] = self.groups;
        let group = match () {
            () if item.is_js() && item.known.in_head => leaders,
            () if item.is_js() && item.known.deferred => unblocked,
            () if item.is_js() => leaders,
            () if item.known.preload => speculative,
            () if item.is_html() => followers,
            () if item.is_xhr() => unblocked,
            () if item.has("image") || item.has("font") => followers,
            () if item.is_css() => leaders,
            () => background,
        };
        let weight = match () {
            () if item.has("image") => 22,
            () if self.measured => 32,
            () if item.is_xhr() || item.is_js() || item.is_html() || item.is_css() => 32,
            () if item.has("font") => 42,
            () => 16,
        };
        self.tree.stream(item, group, weight);
    }

    fn forget(&mut self, stream: u64) {
        self.tree.remove(stream);
    }

    fn schedule(&mut self) -> Option<(u64, u64)> {
        self.tree.step()
    }
}

pub(crate) struct ParallelPlus {
    pub(crate) tree: Tree,
    pub(crate) high: usize,
    pub(crate) normal: usize,
    pub(crate) low: usize,
    pub(crate) chain: Tail,
}

impl Published for ParallelPlus {
    fn request(&mut self, item: &Item) {
        let high = item.is_html() || item.is_css() || item.has("font") || item.is_xhr();
        match () {
            () if item.is_js() && item.known.deferred => {
                self.tree.stream(item, self.low, 110);
            }
            () if item.is_js() && item.known.after_first_image => {
                self.tree.stream(item, self.normal, 183);
            }
            () if item.is_js() || high => {
                if self.chain.0.is_none() {
                    self.tree.nodes[self.normal].weight = 1;
                }
                self.chain.append(&mut self.tree, item, self.high, 256);
            }
            () => {
                self.tree.stream(item, self.low, 110);
            }
        }
    }

    fn forget(&mut self, stream: u64) {
        if self.chain.forget(&self.tree, stream) {
            self.tree.nodes[self.normal].weight = 256;
        }
        self.tree.remove(stream);
    }

    fn schedule(&mut self) -> Option<(u64, u64)> {
        self.tree.step()
    }
}

pub(crate) struct SerialPlus {
    pub(crate) tree: Tree,
    pub(crate) high: usize,
    pub(crate) medium: usize,
    /// The groups of Firefox.
    pub(crate) low: [usize; 5],
    pub(crate) chains: [Tail; 2],
}

impl SerialPlus {
    pub(crate) fn append_medium(&mut self, item: &Item) {
        self.chains[1].append(&mut self.tree, item, self.medium, 16);
    }

    pub(crate) fn append_high(&mut self, item: &Item) {
        if self.chains[0].0.is_none() {
            self.tree.nodes[self.medium].weight = 1;
        }
        self.chains[0].append(&mut self.tree, item, self.high, 16);
    }
}

impl Published for SerialPlus {
    fn request(&mut self, item: &Item) {
        let [_, followers, _, background, speculative] = self.low;
        let low = match () {
            () if item.is_js() && (item.known.deferred || !item.known.in_head) => {
                return self.append_medium(item);
            }
            () if item.is_js() => return self.append_high(item),
            () if item.known.preload => speculative,
            () if item.is_html() => followers,
            () if item.is_xhr() => return self.append_medium(item),
            () if item.has("image") || item.has("font") => followers,
            () if item.is_css() => return self.append_high(item),
            () => background,
        };
        self.tree.stream(item, low, 16);
    }

    fn forget(&mut self, stream: u64) {
        self.chains[1].forget(&self.tree, stream);
        if self.chains[0].forget(&self.tree, stream) {
            self.tree.nodes[self.medium].weight = 256;
        }
        self.tree.remove(stream);
    }

    fn schedule(&mut self) -> Option<(u64, u64)> {
        self.tree.step()
    }
}
