//! Both ends together: random changes, delivered in any order that an ordered group allows.

use super::{Outgoing, Painter, Source, UpdateOrder};
use crate::framebuffer::Framebuffer;
use crate::rect::Rect;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use sutura_random::Rng;

/// A piece on its way.
#[derive(Debug)]
struct Message {
    update: u32,
    data: Vec<u8>,
    after: Vec<u64>,
    /// All before this one come first.
    fence: u64,
}

/// An ordered group that delivers in random order, and what both ends know.
#[derive(Debug)]
struct Bridge {
    random: Rng,
    screen: Framebuffer,
    source: Source,
    painter: Painter,
    next: u64,
    fence: u64,
    on_its_way: BTreeMap<u64, Message>,
    /// Cancelled by the sender, while the receiver does not know yet.
    cancelled: BTreeSet<u64>,
    /// Painted, while the sender does not know yet.
    unreported: Vec<u64>,
    order: UpdateOrder,
}

impl Bridge {
    fn new(seed: u64, quality: Option<u8>) -> Self {
        Self::with_order(seed, quality, UpdateOrder::Geometry)
    }

    fn with_order(seed: u64, quality: Option<u8>, order: UpdateOrder) -> Self {
        let screen = Framebuffer::new(200, 150).unwrap();
        let source = Source::new(&screen, quality).unwrap().with_order(order);
        let painter = Painter::new(Framebuffer::new(0, 0).unwrap());
        Self {
            random: Rng::new(seed),
            screen,
            source,
            painter,
            next: 0,
            fence: 0,
            on_its_way: BTreeMap::new(),
            cancelled: BTreeSet::new(),
            unreported: Vec::new(),
            order,
        }
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.random.below(limit)
    }

    fn any_rect(&mut self, largest: u64) -> Rect {
        let bounds = self.screen.bounds();
        let x = self.below(bounds.width.into()) as u16;
        let y = self.below(bounds.height.into()) as u16;
        let (width, height) = (1 + self.below(largest) as u16, 1 + self.below(largest) as u16);
        bounds.intersection(Rect::new(x, y, width, height)).unwrap()
    }

    /// Something happens on the screen.
    fn change(&mut self) {
        match self.below(20) {
            0 => {
                let (width, height) = (1 + self.below(220) as u16, 1 + self.below(200) as u16);
                self.screen.resize(width, height).unwrap();
                self.source.resize(&self.screen).unwrap();
            }
            1..=7 => {
                let from = self.any_rect(150);
                let to = self.any_rect(150);
                let (width, height) = (from.width.min(to.width), from.height.min(to.height));
                let (from, to) = (Rect { width, height, ..from }, Rect { width, height, ..to });
                self.screen.copy(from, to);
                self.source.copied(from, to);
            }
            8..=12 => {
                let (rect, colour) = (self.any_rect(100), self.below(1 << 24) as u32);
                self.screen.fill(rect, colour);
                self.source.painted(rect);
            }
            _ => {
                let rect = self.any_rect(40);
                for row in 0..rect.height {
                    let colours: Vec<u32> =
                        (0..rect.width).map(|_| self.below(1 << 24) as u32).collect();
                    self.screen
                        .columns_mut(rect.x, rect.y + row, rect.width)
                        .copy_from_slice(&colours);
                }
                self.source.painted(rect);
            }
        }
    }

    fn send(&mut self) -> bool {
        let piece = self.source.next(&self.screen);
        let Some(piece) = piece.or_else(|| self.source.sharpen(&self.screen)) else { return false };
        if self.below(10) == 0 {
            self.source.unsent(piece);
        } else {
            self.transmit(piece);
        }
        true
    }

    fn transmit(&mut self, piece: Outgoing) {
        if piece.fence {
            self.fence = self.next;
        }
        let after = piece.after().to_vec();
        assert!(after.len() <= 32 && after.iter().all(|&number| number < self.next));
        let (update, data) = (piece.update, piece.data.clone());
        let message = Message { update, data, after, fence: self.fence };
        self.on_its_way.insert(self.next, message);
        self.next += 1;
        if piece.then_fence {
            self.fence = self.next;
        }
        for cancelled in self.source.sent(piece) {
            self.cancelled.insert(cancelled);
        }
    }

    /// Delivers a message whose turn it may be, or tells the receiver of a cancelled one.
    fn deliver(&mut self) {
        let way = &self.on_its_way;
        let settled = |number: &u64| !way.contains_key(number);
        let ready = way.iter().filter(|(_, message)| {
            message.after.iter().all(settled) && way.range(..message.fence).next().is_none()
        });
        let ready: Vec<u64> = ready.map(|(&number, _)| number).collect();
        let known: Vec<u64> =
            self.cancelled.iter().copied().filter(|n| way.contains_key(n)).collect();
        if !known.is_empty() && self.below(3) == 0 {
            let number = known[self.below(known.len() as u64) as usize];
            self.on_its_way.remove(&number);
        } else if !ready.is_empty() {
            let number = ready[self.below(ready.len() as u64) as usize];
            let message = self.on_its_way.remove(&number).unwrap();
            let painted = self.painter.paint(number, &message.data).unwrap();
            if self.order == UpdateOrder::Fences {
                let mut others = self.on_its_way.values();
                assert!(others.all(|other| other.update >= message.update), "{number} is early");
                assert!(!painted.changes.is_empty(), "{number} is superseded");
            }
            self.unreported.push(number);
        }
    }

    fn report(&mut self) {
        if !self.unreported.is_empty() {
            let place = self.below(self.unreported.len() as u64) as usize;
            let number = self.unreported.swap_remove(place);
            self.source.arrived(number);
        }
    }

    /// The connection is replaced.
    fn reconnect(&mut self) {
        self.on_its_way.clear();
        self.cancelled.clear();
        self.unreported.clear();
        (self.next, self.fence) = (0, 0);
        self.source.resume();
        self.painter.resume();
    }

    fn step(&mut self) {
        match self.below(100) {
            0 => self.reconnect(),
            1..=30 => {
                self.change();
                self.source.begin_update();
            }
            31..=60 => {
                self.send();
            }
            61..=85 => self.deliver(),
            _ => self.report(),
        }
    }

    fn settle(&mut self) {
        while self.send() {}
        while !self.on_its_way.is_empty() {
            self.deliver();
        }
    }
}

/// Three rounds of random steps, after each of which both ends must show the same.
fn both_ends_agree(seed: u64, quality: Option<u8>, order: UpdateOrder) {
    let mut bridge = Bridge::with_order(seed, quality, order);
    for round in 0..3 {
        (0..200).for_each(|_| bridge.step());
        bridge.settle();
        assert!(bridge.painter.screen() == &bridge.screen, "round {round} differs");
        assert!(!bridge.source.has_changes() && !bridge.source.is_blurred());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn both_ends_show_the_same_in_the_end(seed: u64, lossy: bool, fences: bool) {
        let order = if fences { UpdateOrder::Fences } else { UpdateOrder::Geometry };
        both_ends_agree(seed, lossy.then_some(30), order);
    }
}

/// In this one, a copy is taken back while another waits that reads from what it wrote.
#[test]
fn both_ends_show_the_same_though_a_copy_of_a_copy_is_taken_back() {
    both_ends_agree(94_571_108_726_167_770, None, UpdateOrder::Geometry);
}

/// Of two copies, the second of which reads what the first one writes, the first has this fate while the second waits.
fn copies_of_a_copy(fate: impl FnOnce(&mut Bridge, Outgoing)) {
    let mut bridge = Bridge::new(4, None);
    let places = [0, 50, 100].map(|x| Rect::new(x, 0, 40, 40));
    for row in 0..40 {
        bridge.screen.fill(Rect::new(0, row, 40, 1), u32::from(row) * 77_777);
    }
    bridge.source.painted(places[0]);
    bridge.settle();
    for number in 0..bridge.next {
        bridge.source.arrived(number);
    }
    for ends in [[0, 1], [1, 2]] {
        let [from, to] = ends.map(|end| places[end]);
        bridge.screen.copy(from, to);
        bridge.source.copied(from, to);
    }
    let first = bridge.source.next(&bridge.screen).unwrap();
    assert_eq!(first.reads(), Some(places[0]));
    fate(&mut bridge, first);
    let rest = bridge.source.next(&bridge.screen).unwrap();
    assert_eq!(rest.reads(), None, "its source is unknown");
    bridge.transmit(rest);
    bridge.settle();
    assert!(bridge.painter.screen() == &bridge.screen);
}

#[test]
fn a_copy_of_what_was_taken_back_is_sent_as_pixels() {
    copies_of_a_copy(|bridge, first| bridge.source.unsent(first));
}

#[test]
fn a_copy_of_what_is_lost_is_sent_as_pixels() {
    copies_of_a_copy(|bridge, first| {
        let number = bridge.next;
        bridge.transmit(first);
        bridge.on_its_way.remove(&number);
        bridge.source.lost(number);
    });
}

#[test]
fn a_copy_of_what_a_lost_connection_carried_is_sent_as_pixels() {
    copies_of_a_copy(|bridge, first| {
        bridge.transmit(first);
        bridge.reconnect();
    });
}

#[test]
fn what_did_not_change_is_not_sent() {
    let mut bridge = Bridge::new(1, None);
    bridge.settle();
    bridge.source.painted(Rect::new(0, 0, 200, 150));
    assert!(!bridge.send());
    // One pixel of a screen that was reported as a whole.
    bridge.screen.fill(Rect::new(70, 80, 1, 1), 0x00ff_0000);
    bridge.source.painted(Rect::new(0, 0, 200, 150));
    let piece = bridge.source.next(&bridge.screen).unwrap();
    assert!(piece.data.len() < 30, "{} bytes", piece.data.len());
    assert!(bridge.source.next(&bridge.screen).is_none());
}

#[test]
fn scrolling_is_sent_as_a_copy() {
    let mut bridge = Bridge::new(2, None);
    for row in 0..150 {
        bridge.screen.fill(Rect::new(0, row, 200, 1), u32::from(row) * 77_777);
    }
    bridge.source.painted(bridge.screen.bounds());
    bridge.settle();
    let (from, to) = (Rect::new(0, 10, 200, 140), Rect::new(0, 0, 200, 140));
    bridge.screen.copy(from, to);
    bridge.source.copied(from, to);
    let piece = bridge.source.next(&bridge.screen).unwrap();
    assert!(piece.data.len() < 30, "{} bytes", piece.data.len());
    bridge.transmit(piece);
    assert!(!bridge.send());
    bridge.settle();
    assert!(bridge.painter.screen() == &bridge.screen);
}

#[test]
fn a_part_that_changes_all_the_time_does_not_hold_up_the_rest() {
    let mut bridge = Bridge::new(3, None);
    bridge.settle();
    let rest = Rect::new(128, 128, 1, 1);
    bridge.screen.fill(rest, 5);
    bridge.source.painted(rest);
    for round in 0..20 {
        // More than a piece of noise, in four cells, each time.
        for row in 0..100 {
            let noise: Vec<u32> = (0..100).map(|_| bridge.below(1 << 24) as u32).collect();
            bridge.screen.columns_mut(0, row, 100).copy_from_slice(&noise);
        }
        bridge.source.painted(Rect::new(0, 0, 100, 100));
        bridge.send();
        while !bridge.on_its_way.is_empty() {
            bridge.deliver();
        }
        if bridge.painter.screen().pixel(128, 128) == Some(5) {
            assert!(round < 10);
            return;
        }
    }
    panic!("the rest is never sent");
}

/// The colours that a viewer sees at once while five updates of the whole screen are on their way, each of pieces in
/// four places.
fn colours_at_once(order: UpdateOrder, seed: u64) -> BTreeSet<Vec<u32>> {
    const PLACES: [(u16, u16); 4] = [(0, 0), (64, 0), (0, 64), (64, 64)];
    let mut bridge = Bridge::with_order(seed, None, order);
    bridge.settle();
    for update in 1..=5 {
        bridge.source.begin_update();
        for (x, y) in PLACES {
            let rect = Rect::new(x, y, 64, 64);
            bridge.screen.fill(rect, update);
            bridge.source.painted(rect);
            let piece = bridge.source.next(&bridge.screen).unwrap();
            bridge.transmit(piece);
        }
    }
    let mut seen = BTreeSet::new();
    while !bridge.on_its_way.is_empty() {
        bridge.deliver();
        let colours = PLACES.map(|(x, y)| bridge.painter.screen().pixel(x, y).unwrap());
        seen.insert(BTreeSet::from(colours).into_iter().collect());
    }
    seen
}

#[test]
fn fences_let_nobody_see_a_part_of_an_update_before_all_of_the_former() {
    let mut torn = 0;
    for seed in 0..50 {
        for colours in colours_at_once(UpdateOrder::Fences, seed) {
            let [first, .., last] = colours[..] else { continue };
            assert_eq!((colours.len(), last - first), (2, 1), "{colours:?}");
        }
        let torn_by = |colours: &Vec<u32>| colours[colours.len() - 1] - colours[0] > 1;
        torn += colours_at_once(UpdateOrder::Geometry, seed).iter().filter(|c| torn_by(c)).count();
    }
    assert!(torn > 0, "geometry alone tears too");
}
