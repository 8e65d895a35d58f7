//! The dependency tree.

use std::collections::BTreeMap;

use crate::{CHUNK, Item};

/// A common multiple of all weights, so that pseudo time is exact.
pub(crate) const UNIT: u128 = 256 * 3 * 5 * 7 * 7 * 11 * 61 * 67 * 101 * 127;

#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) parent: usize,
    pub(crate) children: Vec<usize>,
    pub(crate) weight: u128,
    pub(crate) time: u128,
    pub(crate) last: u128,
    pub(crate) queued: bool,
    /// `None` for placeholders.
    pub(crate) stream: Option<u64>,
    pub(crate) left: u64,
    pub(crate) chunk: u64,
}

#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) nodes: Vec<Node>,
    pub(crate) streams: BTreeMap<u64, usize>,
}

pub(crate) const ROOT: usize = 0;

impl Tree {
    pub(crate) fn new() -> Self {
        let mut tree = Self { nodes: Vec::new(), streams: BTreeMap::new() };
        tree.node(ROOT, 16, None, 0);
        tree
    }

    pub(crate) fn node(
        &mut self,
        parent: usize,
        weight: u128,
        stream: Option<u64>,
        left: u64,
    ) -> usize {
        let node = self.nodes.len();
        self.nodes.push(Node {
            parent,
            children: Vec::new(),
            weight,
            time: 0,
            last: 0,
            queued: false,
            stream,
            left,
            chunk: CHUNK,
        });
        if node != ROOT {
            self.nodes[parent].children.push(node);
        }
        node
    }

    pub(crate) fn placeholder(&mut self, parent: usize, weight: u128) -> usize {
        self.node(parent, weight, None, 0)
    }

    pub(crate) fn stream(&mut self, item: &Item, parent: usize, weight: u128) -> usize {
        let node = self.node(parent, weight, Some(item.stream), item.bytes);
        self.streams.insert(item.stream, node);
        self.activate(node);
        node
    }

    pub(crate) fn exclusive(&mut self, item: &Item, parent: usize, weight: u128) -> usize {
        let node = self.stream(item, parent, weight);
        for child in self.nodes[parent].children.clone() {
            if child != node {
                self.reparent(child, node);
            }
        }
        node
    }

    pub(crate) fn is_active(&self, node: usize) -> bool {
        let Node { left, children, .. } = &self.nodes[node];
        *left > 0 || children.iter().any(|&child| self.nodes[child].queued)
    }

    /// The bytes that count for a node: the bytes of its last chunk, or always a full chunk.
    pub(crate) fn cost(&self, node: usize) -> u128 {
        let Node { stream, chunk, weight, .. } = &self.nodes[node];
        let bytes = if stream.is_some() { *chunk } else { CHUNK };
        assert_eq!(UNIT % weight, 0);
        u128::from(bytes) * 256 * UNIT / weight
    }

    pub(crate) fn activate(&mut self, node: usize) {
        if node != ROOT && !self.nodes[node].queued {
            let parent = self.nodes[node].parent;
            self.nodes[node].time = self.nodes[parent].last + self.cost(node);
            self.nodes[node].queued = true;
            self.activate(parent);
        }
    }

    pub(crate) fn reparent(&mut self, node: usize, parent: usize) {
        let old = self.nodes[node].parent;
        self.nodes[old].children.retain(|&child| child != node);
        self.nodes[node].parent = parent;
        self.nodes[parent].children.push(node);
        if std::mem::take(&mut self.nodes[node].queued) {
            self.activate(node);
        }
    }

    pub(crate) fn remove(&mut self, stream: u64) {
        let node = self.streams.remove(&stream).unwrap();
        let parent = self.nodes[node].parent;
        for child in self.nodes[node].children.clone() {
            self.reparent(child, parent);
        }
        self.nodes[parent].children.retain(|&child| child != node);
    }

    pub(crate) fn schedule(&mut self, node: usize) -> (u64, u64) {
        if self.nodes[node].left > 0 {
            let bytes = self.nodes[node].left.min(CHUNK);
            self.nodes[node].left -= bytes;
            self.nodes[node].chunk = bytes;
            return (self.nodes[node].stream.unwrap(), bytes);
        }
        let queued = self.nodes[node].children.iter().copied();
        let queued = queued.filter(|&child| self.nodes[child].queued);
        // Ties: placeholders in order of creation, then streams by their ids.
        let key = |&child: &usize| {
            let Node { time, stream, .. } = self.nodes[child];
            (time, stream.is_some(), stream.unwrap_or(child as u64))
        };
        let child = queued.min_by_key(key).unwrap();
        self.nodes[child].queued = false;
        self.nodes[node].last = self.nodes[child].time;
        let sent = self.schedule(child);
        if self.is_active(child) {
            self.nodes[child].time = self.nodes[node].last + self.cost(child);
            self.nodes[child].queued = true;
        }
        sent
    }

    pub(crate) fn step(&mut self) -> Option<(u64, u64)> {
        self.is_active(ROOT).then(|| self.schedule(ROOT))
    }
}

/// The last stream of a chain.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tail(pub(crate) Option<u64>);

impl Tail {
    /// Adds a stream behind the last one, or below `top` if there is none.
    pub(crate) fn append(&mut self, tree: &mut Tree, item: &Item, top: usize, weight: u128) {
        let parent = self.0.map_or(top, |tail| tree.streams[&tail]);
        tree.stream(item, parent, weight);
        self.0 = Some(item.stream);
    }

    /// Called before a stream is removed; returns whether the chain is empty then.
    pub(crate) fn forget(&mut self, tree: &Tree, stream: u64) -> bool {
        if self.0 == Some(stream) {
            let parent = tree.nodes[tree.streams[&stream]].parent;
            self.0 = tree.nodes[parent].stream;
            return self.0.is_none();
        }
        false
    }
}
