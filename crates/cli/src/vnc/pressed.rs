//! The keys and buttons that are held down.

use std::collections::BTreeSet;

use sutura_vnc::rfb::ClientMessage;

/// Keys that may be held down at once; nobody has so many fingers.
const MAX_KEYS: usize = 64;

/// The keys and buttons that are held down, so that they can be released when the viewer's end is gone.
#[derive(Debug, Default)]
pub struct Pressed {
    /// Keysyms, and codes of the keys that have one.
    keys: BTreeSet<(u32, Option<u32>)>,
    pointer: Option<(u16, u16)>,
}

impl Pressed {
    /// Notes a message of a viewer.
    pub fn note(&mut self, message: &ClientMessage) {
        match *message {
            ClientMessage::Key { down, keysym } => self.note_key(down, (keysym, None)),
            ClientMessage::ExtendedKey { down, keysym, code } => {
                self.note_key(down, (keysym, Some(code)));
            }
            ClientMessage::Pointer { buttons, x, y } => {
                self.pointer = (buttons != 0).then_some((x, y));
            }
            _ => {}
        }
    }

    fn note_key(&mut self, down: bool, key: (u32, Option<u32>)) {
        if !down {
            self.keys.remove(&key);
        } else if self.keys.len() < MAX_KEYS {
            self.keys.insert(key);
        }
    }

    /// The messages that release all keys and buttons.
    pub fn release(&mut self) -> Vec<ClientMessage> {
        let keys = std::mem::take(&mut self.keys).into_iter();
        let keys = keys.map(|(keysym, code)| match code {
            None => ClientMessage::Key { down: false, keysym },
            Some(code) => ClientMessage::ExtendedKey { down: false, keysym, code },
        });
        let pointer = self.pointer.take();
        let pointer = pointer.map(|(x, y)| ClientMessage::Pointer { buttons: 0, x, y });
        keys.chain(pointer).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_down_is_released_once() {
        let mut pressed = Pressed::default();
        let key = |down, keysym| ClientMessage::Key { down, keysym };
        let pointer = |buttons| ClientMessage::Pointer { buttons, x: 3, y: 4 };
        let coded = |down| ClientMessage::ExtendedKey { down, keysym: 2, code: 3 };
        for message in [key(true, 1), key(true, 2), key(false, 1), pointer(1), coded(true)] {
            pressed.note(&message);
        }
        assert_eq!(pressed.release(), [key(false, 2), coded(false), pointer(0)]);
        assert_eq!(pressed.release(), []);
        pressed.note(&pointer(1));
        pressed.note(&pointer(0));
        (0..1000).for_each(|keysym| pressed.note(&key(true, keysym)));
        assert_eq!(pressed.release().len(), MAX_KEYS);
    }
}
