//! PRIORITY messages, which may overtake each other on their way to the server.

use std::collections::BTreeMap;
use std::fmt;

use sutura_schedule::{Priority, Scheduler};

use super::Element;
use crate::h2::Dependency;

/// Most messages that are held back until earlier ones arrive.
pub const MAX_HELD_MESSAGES: usize = 1000;

/// A PRIORITY message: the place of an element in the tree, from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The element that gets a place.
    pub element: Element,
    /// The parent of the element; `None` for the root.
    pub parent: Option<Element>,
    /// 1 to 256.
    pub weight: u16,
    /// Whether the parent's other dependants become dependants of this element.
    pub exclusive: bool,
}

impl Message {
    /// The priority that it gives to its element.
    #[must_use]
    pub fn priority(&self) -> Priority {
        let Self { parent, weight, exclusive, .. } = *self;
        let parent = parent.map(Element::key);
        Priority::default().with_extension(Dependency { parent, weight, exclusive })
    }
}

/// The streams on which a client sends its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carriage {
    /// Each on a stream of its own, such as the stream of its request: QUIC delivers them in any order, and
    /// each counts when it arrives (Marx 2020, figures 7 and 8).
    OwnStreams,
    /// All on one control stream: they count in the order in which they were sent, and a message that
    /// was lost holds back all behind it (figure 9).
    ControlStream,
}

/// The server's end: puts messages into effect in the order that their [`Carriage`] makes of their arrival.
#[derive(Clone, Debug)]
pub struct DraftMessages {
    carriage: Carriage,
    /// The number of the next message of the control stream.
    next: u64,
    /// Messages that arrived before it, by number.
    held: BTreeMap<u64, Message>,
}

/// A message was dropped, because [`MAX_HELD_MESSAGES`] are held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyMessages;

impl fmt::Display for TooManyMessages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "more than {MAX_HELD_MESSAGES} messages wait for one that has not arrived")
    }
}

impl std::error::Error for TooManyMessages {}

impl DraftMessages {
    /// The end of a connection on which nothing has arrived.
    #[must_use]
    pub const fn new(carriage: Carriage) -> Self {
        Self { carriage, next: 0, held: BTreeMap::new() }
    }

    /// How many messages wait for earlier ones.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// Takes the message that the client sent as its `number`th, counted from 0, and tells `scheduler` of
    /// all that are in effect now. An element that the scheduler does not know is inserted, so messages
    /// about requests that are over must not be passed on. A message about an impossible placeholder changes
    /// nothing, and neither does a message that repeats the last one about its element.
    ///
    /// # Errors
    /// Too many messages are held back.
    pub fn arrive(
        &mut self,
        number: u64,
        message: Message,
        scheduler: &mut dyn Scheduler,
    ) -> Result<(), TooManyMessages> {
        if self.carriage == Carriage::OwnStreams {
            apply(&message, scheduler);
            return Ok(());
        }
        if number > self.next && self.held.len() >= MAX_HELD_MESSAGES {
            return Err(TooManyMessages);
        }
        if number >= self.next {
            self.held.insert(number, message);
        }
        while let Some(message) = self.held.remove(&self.next) {
            self.next += 1;
            apply(&message, scheduler);
        }
        Ok(())
    }
}

fn apply(message: &Message, scheduler: &mut dyn Scheduler) {
    if message.element.is_permitted() {
        scheduler.insert(message.element.key(), message.priority());
    }
}
