//! What a viewer has said, until the server's end has passed it on to the RFB server.
//!
//! Keys that were read from a viewer are in nobody else's hands: they are kept here until they have reached the
//! RFB server, and are sent again when the server's end was started anew.

use std::collections::VecDeque;

use sutura_vnc::bridge::ToServer;
use sutura_vnc::rfb::ClientMessage;

use super::control::Control;
use super::socket::MAX_WAITING;

/// Messages of a viewer that have not reached the RFB server yet; further ones stay unread.
pub const MAX_INPUT: usize = 4096;
/// Bytes of the texts among them above which further messages stay unread.
pub const MAX_TEXTS: usize = 2 << 20;

/// The messages of a viewer that have not reached the RFB server, oldest first.
#[derive(Debug, Default)]
pub struct Inputs {
    queue: VecDeque<ToServer>,
    /// Bytes of the texts in `queue`.
    texts: usize,
    /// How many of `queue` were told over the present connection, or have arrived in the session before.
    told: usize,
    /// How many messages of the session have left `queue`.
    delivered: u64,
}

impl Inputs {
    /// Whether further messages may be read.
    pub fn has_room(&self) -> bool {
        self.queue.len() < MAX_INPUT && self.texts < MAX_TEXTS
    }

    /// Whether all messages have reached the RFB server.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Adds a message of the viewer about which the RFB server is to hear.
    pub fn push(&mut self, message: ClientMessage) {
        if let ClientMessage::Pointer { buttons, .. } = message
            && self.told < self.queue.len()
        {
            // Of waiting pointer movements with the same buttons, only the last matters.
            let same = |old: &mut ToServer| matches!(old, ToServer::Input(ClientMessage::Pointer { buttons: before, .. }) if *before == buttons);
            self.queue.pop_back_if(same);
        }
        self.queue.push_back(ToServer::Input(message));
    }

    /// Adds a text of the viewer's clipboard.
    pub fn push_text(&mut self, text: String) {
        self.texts += text.len();
        self.queue.push_back(ToServer::Text(text));
    }

    /// The oldest message that was not told yet; it counts as told then.
    pub fn next(&mut self) -> Option<&ToServer> {
        let next = self.queue.get(self.told)?;
        self.told += 1;
        Some(next)
    }

    /// Tells the server's end as much as it takes now.
    pub fn tell(&mut self, control: &mut Control) {
        while control.waiting() < MAX_WAITING
            && let Some(message) = self.next()
        {
            control.tell_server(message);
        }
    }

    /// So many messages of the session have reached the RFB server.
    pub fn delivered(&mut self, count: u64) {
        let new = usize::try_from(count.saturating_sub(self.delivered)).unwrap_or(usize::MAX);
        for message in self.queue.drain(..new.min(self.told)) {
            if let ToServer::Text(text) = message {
                self.texts -= text.len();
            }
            self.told -= 1;
            self.delivered += 1;
        }
    }

    /// The session goes on over another connection, and has taken so many messages.
    pub fn resume(&mut self, taken: u64) {
        let new = usize::try_from(taken.saturating_sub(self.delivered)).unwrap_or(usize::MAX);
        self.told = new.min(self.queue.len());
    }

    /// Another session begins: all messages are told it. Returns how many were told before, of which nobody knows
    /// whether they have reached the RFB server.
    pub fn start_over(&mut self) -> usize {
        self.delivered = 0;
        std::mem::take(&mut self.told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(keysym: u32) -> ClientMessage {
        ClientMessage::Key { down: true, keysym }
    }

    fn pointer(buttons: u8, x: u16) -> ClientMessage {
        ClientMessage::Pointer { buttons, x, y: 0 }
    }

    /// All that would be told now.
    fn told(inputs: &mut Inputs) -> Vec<ToServer> {
        std::iter::from_fn(|| inputs.next().cloned()).collect()
    }

    fn keys(range: std::ops::Range<u32>) -> Vec<ToServer> {
        range.map(|keysym| ToServer::Input(key(keysym))).collect()
    }

    #[test]
    fn what_has_not_arrived_is_told_again_and_the_rest_is_not() {
        let mut inputs = Inputs::default();
        (0..10).for_each(|keysym| inputs.push(key(keysym)));
        assert_eq!(told(&mut inputs), keys(0..10));
        inputs.delivered(4);
        // The connection is lost: the session has taken seven.
        inputs.resume(7);
        assert_eq!(told(&mut inputs), keys(7..10));
        // The server's end is started anew: nobody knows what became of the six that were not delivered.
        inputs.push(key(10));
        assert_eq!(inputs.start_over(), 6);
        assert_eq!(told(&mut inputs), keys(4..11));
        inputs.delivered(7);
        assert!(inputs.is_empty());
        assert_eq!(inputs.start_over(), 0);
    }

    #[test]
    fn movements_are_joined_until_they_are_told() {
        let mut inputs = Inputs::default();
        (0..5).for_each(|x| inputs.push(pointer(0, x)));
        assert_eq!(told(&mut inputs), [ToServer::Input(pointer(0, 4))]);
        [(0, 5), (1, 6), (1, 7)]
            .into_iter()
            .for_each(|(buttons, x)| inputs.push(pointer(buttons, x)));
        assert_eq!(
            told(&mut inputs),
            [(0, 5), (1, 7)].map(|(b, x)| ToServer::Input(pointer(b, x)))
        );
    }

    #[test]
    fn a_flood_is_bounded_and_lies_about_its_end_do_no_harm() {
        let mut inputs = Inputs::default();
        while inputs.has_room() {
            inputs.push(key(1));
        }
        assert_eq!(inputs.queue.len(), MAX_INPUT);
        // None was told, so none can have arrived.
        inputs.delivered(u64::MAX);
        assert!(!inputs.has_room());
        inputs.resume(u64::MAX);
        inputs.delivered(u64::MAX);
        assert!(inputs.is_empty() && inputs.has_room());
        inputs.delivered(0);
        while inputs.has_room() {
            inputs.push_text("x".repeat(1 << 20));
        }
        assert_eq!(inputs.texts, MAX_TEXTS);
        inputs.start_over();
        told(&mut inputs);
        inputs.delivered(1);
        assert!(inputs.has_room());
    }
}
