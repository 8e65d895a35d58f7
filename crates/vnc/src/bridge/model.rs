//! Both ends of the bridge for tests, and an ordered group between them.
//!
//! As in a real group, the sender hears that a piece has arrived before it is painted: at the receiver it may
//! wait for other pieces. A piece that was cancelled or given up may arrive all the same, until the receiver
//! is told.

use super::{Outgoing, Painter, Source, UpdateOrder};
use crate::framebuffer::Framebuffer;
use crate::rect::Rect;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use sutura_random::Rng;

/// A piece that the receiver has not settled.
#[derive(Debug)]
pub struct Message {
    update: u32,
    data: Vec<u8>,
    after: Vec<u64>,
    /// All before this one come first.
    fence: u64,
    /// Whether the piece has come. It may wait for others.
    is_complete: bool,
}

/// How the group treats pieces.
#[derive(Debug, Clone, Copy)]
pub struct Habits {
    /// Pieces may be given up though nothing supersedes them.
    pub loses: bool,
    /// Superseded pieces are cancelled.
    pub cancels: bool,
}

impl Habits {
    /// As `sutura vnc` has it.
    pub const RELIABLE: Self = Self { loses: false, cancels: true };
}

/// Both ends, and what each knows.
#[derive(Debug)]
pub struct Bridge {
    random: Rng,
    pub screen: Framebuffer,
    pub source: Source,
    pub painter: Painter,
    /// A piece that could not be sent at once.
    pending: Option<Outgoing>,
    pub next: u64,
    fence: u64,
    on_its_way: BTreeMap<u64, Message>,
    /// The pieces to be painted next.
    ready: VecDeque<(u64, Message)>,
    /// Cancelled or given up by the sender, while the receiver does not know yet.
    untold: BTreeSet<u64>,
    /// Pieces of which the sender does not know whether they arrive, and whether they may be given up.
    open: BTreeMap<u64, bool>,
    /// Given up, while the source does not know yet.
    given_up: Vec<u64>,
    order: UpdateOrder,
    habits: Habits,
}

impl Bridge {
    pub fn new(seed: u64, quality: Option<u8>) -> Self {
        Self::with_order(seed, quality, UpdateOrder::Geometry)
    }

    pub fn with_order(seed: u64, quality: Option<u8>, order: UpdateOrder) -> Self {
        let screen = Framebuffer::new(200, 150).unwrap();
        let source = Source::new(&screen, quality).unwrap().with_order(order);
        let painter = Painter::new(Framebuffer::new(0, 0).unwrap());
        Self {
            random: Rng::new(seed),
            screen,
            source,
            painter,
            pending: None,
            next: 0,
            fence: 0,
            on_its_way: BTreeMap::new(),
            ready: VecDeque::new(),
            untold: BTreeSet::new(),
            open: BTreeMap::new(),
            given_up: Vec::new(),
            order,
            habits: Habits::RELIABLE,
        }
    }

    pub fn with_habits(self, habits: Habits) -> Self {
        Self { habits, ..self }
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.random.below(limit)
    }

    fn any_of(&mut self, numbers: &[u64]) -> Option<u64> {
        (!numbers.is_empty()).then(|| numbers[self.below(numbers.len() as u64) as usize])
    }

    fn any_rect(&mut self, largest: u64) -> Rect {
        let bounds = self.screen.bounds();
        let x = self.below(bounds.width.into()) as u16;
        let y = self.below(bounds.height.into()) as u16;
        let (width, height) = (1 + self.below(largest) as u16, 1 + self.below(largest) as u16);
        bounds.intersection(Rect::new(x, y, width, height)).unwrap()
    }

    /// The screen changes at random.
    fn change(&mut self) {
        match self.below(20) {
            0 => {
                let (width, height) = (1 + self.below(220) as u16, 1 + self.below(200) as u16);
                self.resize(width, height);
            }
            1..=7 => {
                let from = self.any_rect(150);
                let to = self.any_rect(150);
                let (width, height) = (from.width.min(to.width), from.height.min(to.height));
                self.copy(Rect { width, height, ..from }, Rect { width, height, ..to });
            }
            8..=12 => {
                let (rect, colour) = (self.any_rect(100), self.below(1 << 24) as u32);
                self.fill(rect, colour);
            }
            _ => {
                let rect = self.any_rect(40);
                self.noise(rect);
            }
        }
    }

    pub fn resize(&mut self, width: u16, height: u16) {
        self.screen.resize(width, height).unwrap();
        self.source.resize(&self.screen).unwrap();
    }

    pub fn copy(&mut self, from: Rect, to: Rect) {
        self.screen.copy(from, to);
        self.source.copied(from, to);
    }

    pub fn fill(&mut self, rect: Rect, colour: u32) {
        self.screen.fill(rect, colour);
        self.source.painted(rect);
    }

    pub fn noise(&mut self, rect: Rect) {
        for row in 0..rect.height {
            let colours: Vec<u32> = (0..rect.width).map(|_| self.below(1 << 24) as u32).collect();
            self.screen.columns_mut(rect.x, rect.y + row, rect.width).copy_from_slice(&colours);
        }
        self.source.painted(rect);
    }

    pub fn send(&mut self) -> bool {
        let piece = self.pending.take().or_else(|| self.source.next(&self.screen));
        let Some(piece) = piece.or_else(|| self.source.sharpen(&self.screen)) else { return false };
        match self.below(20) {
            0..=1 => self.source.unsent(piece),
            2..=3 => self.pending = Some(piece),
            _ => {
                self.transmit(piece);
            }
        }
        true
    }

    /// Sends the next piece, and returns its number.
    pub fn send_next(&mut self) -> u64 {
        let piece = self.source.next(&self.screen).unwrap();
        self.transmit(piece)
    }

    pub fn transmit(&mut self, piece: Outgoing) -> u64 {
        let number = self.next;
        if piece.fence {
            self.fence = number;
        }
        let after = piece.after().to_vec();
        assert!(after.len() <= 32 && after.iter().all(|&before| before < number));
        let (update, data) = (piece.update, piece.data.clone());
        let message = Message { update, data, after, fence: self.fence, is_complete: false };
        self.on_its_way.insert(number, message);
        self.open.insert(number, !piece.then_fence);
        self.next += 1;
        if piece.then_fence {
            self.fence = self.next;
        }
        for superseded in self.source.sent(piece) {
            if self.habits.cancels && self.open.remove(&superseded).is_some() {
                self.untold.insert(superseded);
                self.given_up.push(superseded);
            }
        }
        number
    }

    /// The sender gives a piece up.
    pub fn lose(&mut self, number: u64) {
        assert_eq!(self.open.remove(&number), Some(true));
        self.untold.insert(number);
        self.given_up.push(number);
    }

    fn lose_any(&mut self) {
        let may_be_lost = self.open.iter().filter(|&(_, &may)| may).map(|(&number, _)| number);
        let numbers: Vec<u64> = may_be_lost.collect();
        if let Some(number) = self.any_of(&numbers) {
            self.lose(number);
        }
    }

    /// The receiver is told that a piece will not come.
    pub fn tell(&mut self, number: u64) {
        self.untold.remove(&number);
        self.on_its_way.remove(&number);
        self.release();
    }

    /// A piece comes to the receiver.
    pub fn receive(&mut self, number: u64) {
        self.on_its_way.get_mut(&number).unwrap().is_complete = true;
        self.release();
    }

    /// A piece comes to the receiver, or it is told that it was cancelled.
    pub fn tell_or_receive(&mut self, number: u64) {
        if self.untold.contains(&number) { self.tell(number) } else { self.receive(number) }
    }

    /// Releases the pieces for which no other piece is missing to be painted next.
    fn release(&mut self) {
        while let Some(number) = self.first_free() {
            let message = self.on_its_way.remove(&number).unwrap();
            self.ready.push_back((number, message));
        }
    }

    fn first_free(&self) -> Option<u64> {
        let first = *self.on_its_way.keys().next()?;
        let settled = |before: &u64| !self.on_its_way.contains_key(before);
        let is_free = |message: &Message| {
            message.is_complete && message.fence <= first && message.after.iter().all(settled)
        };
        self.on_its_way.iter().find(|(_, message)| is_free(message)).map(|(&number, _)| number)
    }

    /// Paints the next piece.
    fn paint(&mut self) {
        let Some((number, message)) = self.ready.pop_front() else { return };
        let painted = self.painter.paint(number, &message.data).unwrap();
        if self.order == UpdateOrder::Fences {
            let mut others = self.on_its_way.values();
            assert!(others.all(|other| other.update >= message.update), "{number} is early");
            assert!(!painted.changes.is_empty(), "{number} is superseded");
        }
    }

    /// A random event at the receiver: a piece comes or is painted, or is known not to come.
    pub fn deliver(&mut self) {
        let untold = self.untold.iter().copied().filter(|n| self.on_its_way.contains_key(n));
        let untold: Vec<u64> = untold.collect();
        let missing = self.on_its_way.iter().filter(|(_, message)| !message.is_complete);
        let missing: Vec<u64> = missing.map(|(&number, _)| number).collect();
        match self.below(3) {
            0 if !self.ready.is_empty() => self.paint(),
            1 if !untold.is_empty() => {
                let number = self.any_of(&untold);
                number.into_iter().for_each(|number| self.tell(number));
            }
            _ => {
                let number = self.any_of(&missing);
                number.into_iter().for_each(|number| self.receive(number));
            }
        }
    }

    /// Whether all that was sent is painted or known not to come.
    pub fn is_settled(&self) -> bool {
        self.on_its_way.is_empty() && self.ready.is_empty()
    }

    /// Pieces that have come, but have not been acknowledged to the source.
    fn acknowledged(&self) -> Vec<u64> {
        let way = &self.on_its_way;
        let has_come = |number: &u64| way.get(number).is_none_or(|message| message.is_complete);
        self.open.keys().copied().filter(has_come).collect()
    }

    /// The source hears of the fate of a piece.
    fn report(&mut self) {
        if !self.given_up.is_empty() && self.below(2) == 0 {
            let place = self.below(self.given_up.len() as u64) as usize;
            let number = self.given_up.swap_remove(place);
            self.source.lost(number);
            return;
        }
        let numbers = self.acknowledged();
        if let Some(number) = self.any_of(&numbers) {
            self.open.remove(&number);
            self.source.arrived(number);
        }
    }

    /// The source hears the outcomes of all pieces that have come or were given up.
    pub fn report_all(&mut self) {
        for number in self.acknowledged() {
            self.open.remove(&number);
            self.source.arrived(number);
        }
        for number in std::mem::take(&mut self.given_up) {
            self.source.lost(number);
        }
    }

    /// The connection is replaced.
    pub fn reconnect(&mut self) {
        if let Some(piece) = self.pending.take() {
            self.source.unsent(piece);
        }
        // Pieces that the receiver's end of the group has released are painted.
        while !self.ready.is_empty() {
            self.paint();
        }
        self.on_its_way.clear();
        self.untold.clear();
        self.open.clear();
        self.given_up.clear();
        (self.next, self.fence) = (0, 0);
        self.source.resume();
        self.painter.resume();
    }

    pub fn step(&mut self) {
        match self.below(100) {
            0 => self.reconnect(),
            1..=5 if self.habits.loses => self.lose_any(),
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

    /// Sends and delivers until the source has nothing more to send.
    pub fn settle(&mut self) {
        let mut more = true;
        while more {
            more = false;
            while self.send() {
                more = true;
            }
            while !self.is_settled() {
                self.deliver();
            }
            more |= !self.given_up.is_empty();
            self.report_all();
        }
    }
}
