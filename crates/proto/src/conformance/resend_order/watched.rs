//! An order whose every answer is compared with a list of the waiting frames.

use super::Answer;
use super::history::{QueueStep, key};
use crate::streams::resend_order::{Precedence, ResendOrder, ResendOrderFactory};
use std::collections::BTreeMap;
use sutura_random::Rng;
use sutura_schedule::{Priority, SchedulerFactory, StreamKey};

/// Size of a frame that is sent again, in bytes.
const FRAME: usize = 1_200;

#[derive(Debug)]
pub(super) struct WatchedOrder {
    name: String,
    order: Box<dyn ResendOrder>,
    precedence: Precedence,
    /// The streams, and the number of waiting frames of each.
    waiting: BTreeMap<StreamKey, u64>,
    /// Number of streams opened so far.
    opened: u64,
    /// Selects the streams of each step.
    random: Rng,
}

impl WatchedOrder {
    pub(super) fn new(
        factory: &dyn ResendOrderFactory,
        scheduler: &dyn SchedulerFactory,
        seed: u64,
    ) -> Self {
        let order = factory.build(&|| scheduler.build());
        let watched = Self {
            name: factory.name().to_owned(),
            precedence: order.precedence(),
            order,
            waiting: BTreeMap::new(),
            opened: 0,
            random: Rng::new(seed),
        };
        watched.ask();
        watched
    }

    pub(super) fn play(&mut self, step: &QueueStep) -> Answer {
        if let QueueStep::Insert(priority) = step {
            let stream = key(self.opened);
            self.opened += 1;
            self.order.insert(stream, priority);
            self.waiting.insert(stream, 0);
        } else if let Some(stream) = self.draw() {
            self.play_for(stream, step);
        }
        self.ask()
    }

    /// A random stream.
    fn draw(&mut self) -> Option<StreamKey> {
        let index = self.random.below(self.waiting.len() as u64) as usize;
        self.waiting.keys().nth(index).copied()
    }

    fn play_for(&mut self, stream: StreamKey, step: &QueueStep) {
        match step {
            // An insertion needs no stream.
            QueueStep::Insert(_) => {}
            QueueStep::Remove { cleared } => {
                if *cleared {
                    self.dequeue(stream, u64::MAX);
                }
                self.order.remove(stream);
                self.waiting.remove(&stream);
            }
            QueueStep::Reprioritize(priority) => self.order.reprioritize(stream, priority),
            QueueStep::Lose(count) => {
                for _ in 0..*count {
                    self.order.queued(stream);
                    *self.waiting.entry(stream).or_default() += 1;
                }
            }
            QueueStep::Arrive(most) => self.dequeue(stream, *most),
            QueueStep::Send(count) => (0..*count).for_each(|_| self.send()),
            QueueStep::Charge(bytes) => self.order.charge(stream, *bytes),
        }
    }

    /// Dequeues up to `most` frames of a stream.
    fn dequeue(&mut self, stream: StreamKey, most: u64) {
        let waiting = self.waiting.entry(stream).or_default();
        *waiting = waiting.saturating_sub(most);
        self.order.dequeued(stream, *waiting as usize);
    }

    fn send(&mut self) {
        if let Some(stream) = self.ask() {
            self.order.charge(stream, FRAME);
            self.dequeue(stream, 1);
        }
    }

    /// Asks all queries and checks the answers.
    fn ask(&self) -> Answer {
        let (name, next) = (&self.name, self.order.next());
        assert_eq!(next, self.order.next(), "{name}: a question changed the answer to it, `next`");
        assert_eq!(
            self.order.precedence(),
            self.precedence,
            "{name}: the precedence of an order changed"
        );
        let waits = self.waiting.values().sum::<u64>();
        match next {
            Some(stream) => assert!(
                self.waiting.get(&stream).is_some_and(|frames| *frames > 0),
                "{name}: `next` names stream {stream}, of which nothing waits"
            ),
            None => assert_eq!(waits, 0, "{name}: `next` names no stream though something waits"),
        }
        next
    }

    /// Repeats the queries.
    pub(super) fn ask_again(&self) {
        for _ in 0..5 {
            self.ask();
        }
    }

    /// Makes calls for unknown streams: two that are over or never existed, and one that will
    /// exist.
    pub(super) fn name_unknown(&mut self, random: &mut Rng) {
        let any = key(random.below(self.opened + 4));
        let unknown = [any, 3, key(self.opened)];
        for stream in unknown.into_iter().filter(|stream| !self.waiting.contains_key(stream)) {
            match random.below(6) {
                0 => self.order.remove(stream),
                1 => self.order.reprioritize(stream, &Priority::CONTROL),
                2 | 3 => self.order.queued(stream),
                4 => self.order.dequeued(stream, random.below(3) as usize),
                _ => self.order.charge(stream, FRAME),
            }
            self.ask();
        }
    }
}
