//! Clipboards: texts in ISO 8859-1 (RFC 6143, sections 7.5.6 and 7.6.4), and the extended clipboard of the
//! community's version of the protocol, which has texts in UTF-8. Both sides send it in the same format.
//!
//! A side that has a new text sends it if the other takes it unasked (*provide*), or else says that there is
//! one (*notify*), which the other side asks for (*request*).

use super::client_message::MAX_CUT_TEXT;
use bytes::{BufMut as _, Bytes};
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use std::io::{Read as _, Write as _};

/// Bytes of the longest text that is unpacked: the line ends of the longest text may have twice the bytes.
pub const MAX_UNPACKED_TEXT: usize = 2 * MAX_CUT_TEXT + 1;

/// The format of plain text.
const TEXT: u32 = 1;
/// All formats.
const FORMATS: u32 = 0xffff;
// What a message is.
const CAPS: u32 = 1 << 24;
const REQUEST: u32 = 1 << 25;
const PEEK: u32 = 1 << 26;
const NOTIFY: u32 = 1 << 27;
const PROVIDE: u32 = 1 << 28;

/// A message of the extended clipboard, as far as it is about text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClipboardMessage {
    /// The sender takes texts of up to this many bytes unasked; 0 if it takes none, or none in this format.
    Caps {
        /// The number of bytes.
        unasked: u32,
    },
    /// The sender wants the text.
    Request,
    /// The sender wants to know whether there is a text.
    Peek,
    /// Whether the sender has a text.
    Notify {
        /// Whether it has.
        text: bool,
    },
    /// The text; `None` if there is none, or it is too long or malformed. Lines end with LF.
    Provide(Option<String>),
}

impl ClipboardMessage {
    /// Reads the content of a message, behind the length; `None` for a message that has nothing to do with text.
    pub(super) fn read(content: &[u8]) -> Option<Self> {
        let (flags, rest) = content.split_first_chunk()?;
        let flags = u32::from_be_bytes(*flags);
        let text = flags & TEXT != 0;
        if flags & CAPS != 0 {
            // A size for each format; that of text is the first.
            let unasked = rest.first_chunk().map_or(0, |&size| u32::from_be_bytes(size));
            return Some(Self::Caps { unasked: if text { unasked } else { 0 } });
        }
        match flags & !FORMATS {
            REQUEST => text.then_some(Self::Request),
            PEEK => Some(Self::Peek),
            NOTIFY => Some(Self::Notify { text }),
            PROVIDE => Some(Self::Provide(text.then(|| unpack(rest)).flatten())),
            _ => None,
        }
    }

    /// Adds the message behind the first bytes of either side's message about the clipboard. A text beyond
    /// [`MAX_CUT_TEXT`] bytes is cut.
    pub(super) fn write(&self, kind: u8, out: &mut Vec<u8>) {
        let mut content = Vec::new();
        match self {
            Self::Caps { unasked } => {
                content.put_u32(CAPS | REQUEST | PEEK | NOTIFY | PROVIDE | TEXT);
                content.put_u32(*unasked);
            }
            Self::Request => content.put_u32(REQUEST | TEXT),
            Self::Peek => content.put_u32(PEEK),
            Self::Notify { text } => content.put_u32(NOTIFY | u32::from(*text)),
            Self::Provide(None) => content.put_u32(PROVIDE),
            Self::Provide(Some(text)) => {
                content.put_u32(PROVIDE | TEXT);
                content.extend(pack(text));
            }
        }
        out.extend([kind, 0, 0, 0]);
        out.put_i32(-(content.len() as i32));
        out.extend(content);
    }
}

/// The text of a provide message, of which text is the first format.
fn unpack(packed: &[u8]) -> Option<String> {
    let mut unpacked = ZlibDecoder::new(packed);
    let mut length = [0; 4];
    unpacked.read_exact(&mut length).ok()?;
    let length = usize::try_from(u32::from_be_bytes(length)).ok()?;
    if length > MAX_UNPACKED_TEXT {
        return None;
    }
    let mut bytes = vec![0; length];
    unpacked.read_exact(&mut bytes).ok()?;
    // A NUL ends the text.
    let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    let text = String::from_utf8_lossy(text).replace("\r\n", "\n");
    Some(cut(&text).to_owned())
}

fn pack(text: &str) -> Vec<u8> {
    let text = cut(text).split('\0').next().unwrap_or_default().replace('\n', "\r\n");
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::default());
    // A vector takes all that is written to it.
    let _ = packed.write_all(&(text.len() as u32 + 1).to_be_bytes());
    let _ = packed.write_all(text.as_bytes()).and_then(|()| packed.write_all(&[0]));
    packed.finish().unwrap_or_default()
}

/// The first [`MAX_CUT_TEXT`] bytes of a text, as far as they make whole characters.
fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_CUT_TEXT)]
}

/// A text that came in ISO 8859-1, cut to [`MAX_CUT_TEXT`] bytes of UTF-8.
#[must_use]
pub fn from_latin1(bytes: &[u8]) -> String {
    let text: String = bytes.iter().map(|&byte| char::from(byte)).collect();
    cut(&text).to_owned()
}

/// A text in ISO 8859-1, with question marks for what it does not have.
#[must_use]
pub fn to_latin1(text: &str) -> Bytes {
    text.chars().map(|c| u8::try_from(c).unwrap_or(b'?')).collect()
}

/// What is to be sent about a clipboard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClipboardOut {
    /// A text in ISO 8859-1.
    Latin1(Bytes),
    /// A message of the extended clipboard.
    Extended(ClipboardMessage),
}

/// One side of a shared clipboard, of which both have texts.
#[derive(Debug, Default)]
pub struct Clipboard {
    /// The bytes that the peer takes unasked, if it has the extended clipboard.
    peer: Option<u32>,
    /// Our newest text, for a peer that asks for it.
    text: Option<String>,
}

impl Clipboard {
    /// The peer has the extended clipboard, or has it no more. Returns what it is to be told of ours, when that is
    /// new to it. Until it says what it takes, it is not sent a text unasked.
    pub fn set_extended(&mut self, extended: bool) -> Option<ClipboardOut> {
        if !extended {
            self.peer = None;
            return None;
        }
        if self.peer.is_some() {
            return None;
        }
        self.peer = Some(0);
        Some(ClipboardOut::Extended(ClipboardMessage::Caps { unasked: MAX_CUT_TEXT as u32 }))
    }

    /// We have a new text. Returns how to tell the peer.
    pub fn offer(&mut self, text: &str) -> ClipboardOut {
        let text = cut(text);
        self.text = Some(text.to_owned());
        let Some(unasked) = self.peer else { return ClipboardOut::Latin1(to_latin1(text)) };
        // The size counts the bytes that are unpacked.
        let size = text.len() + text.matches('\n').count() + 1;
        ClipboardOut::Extended(if size as u64 <= unasked.into() {
            ClipboardMessage::Provide(Some(text.to_owned()))
        } else {
            ClipboardMessage::Notify { text: true }
        })
    }

    /// Deals with a message of the extended clipboard: the answer, if it has one, and the peer's new text.
    pub fn on_message(
        &mut self,
        message: ClipboardMessage,
    ) -> (Option<ClipboardOut>, Option<String>) {
        let answer = match message {
            ClipboardMessage::Caps { unasked } => {
                self.peer = Some(unasked);
                None
            }
            ClipboardMessage::Request => Some(ClipboardMessage::Provide(self.text.clone())),
            ClipboardMessage::Peek => Some(ClipboardMessage::Notify { text: self.text.is_some() }),
            ClipboardMessage::Notify { text } => text.then_some(ClipboardMessage::Request),
            ClipboardMessage::Provide(text) => return (None, text),
        };
        (answer.map(ClipboardOut::Extended), None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn write(message: &ClipboardMessage) -> Vec<u8> {
        let mut out = Vec::new();
        message.write(6, &mut out);
        assert_eq!(i32::from_be_bytes(*out[4..].first_chunk().unwrap()), 8 - out.len() as i32);
        out.split_off(8)
    }

    fn read(content: &[u8]) -> Option<ClipboardMessage> {
        ClipboardMessage::read(content)
    }

    /// A provide message with a text that says that it has this length.
    fn provide(length: u32, text: &[u8]) -> Vec<u8> {
        let mut packed =
            ZlibEncoder::new((PROVIDE | TEXT).to_be_bytes().to_vec(), Compression::best());
        packed.write_all(&length.to_be_bytes()).unwrap();
        packed.write_all(text).unwrap();
        packed.finish().unwrap()
    }

    #[test]
    fn messages_are_those_of_the_extended_clipboard() {
        let caps = ClipboardMessage::Caps { unasked: 0x0010_0000 };
        assert_eq!(write(&caps), b"\x1f\0\0\x01\0\x10\0\0");
        assert_eq!(write(&ClipboardMessage::Request), b"\x02\0\0\x01");
        assert_eq!(write(&ClipboardMessage::Peek), b"\x04\0\0\0");
        assert_eq!(write(&ClipboardMessage::Notify { text: true }), b"\x08\0\0\x01");
        assert_eq!(
            read(&provide(5, b"a\r\nb\0")),
            Some(ClipboardMessage::Provide(Some("a\nb".into())))
        );
        // Other formats, and combinations that mean nothing.
        assert_eq!(read(b"\x02\0\0\x02"), None);
        assert_eq!(read(b"\x08\0\0\x02"), Some(ClipboardMessage::Notify { text: false }));
        assert_eq!(
            read(b"\x1f\0\0\x06\0\0\0\x09\0\0\0\x09"),
            Some(ClipboardMessage::Caps { unasked: 0 })
        );
        assert_eq!(read(b"\x06\0\0\x01"), None);
        assert_eq!(read(b"\x01"), None);
    }

    #[test]
    fn what_unpacks_to_more_than_a_text_may_have_is_no_text() {
        let longest = vec![b'x'; MAX_UNPACKED_TEXT];
        let Some(ClipboardMessage::Provide(Some(text))) =
            read(&provide(longest.len() as u32, &longest))
        else {
            panic!("not read");
        };
        assert_eq!(text.len(), MAX_CUT_TEXT);
        let none = Some(ClipboardMessage::Provide(None));
        assert_eq!(read(&provide(MAX_UNPACKED_TEXT as u32 + 1, &longest)), none);
        assert_eq!(read(&provide(u32::MAX, &longest)), none);
        // Less than announced, and what is not packed at all.
        assert_eq!(read(&provide(9, b"short")), none);
        assert_eq!(read(b"\x10\0\0\x01nonsense"), none);
        // The longest text comes back whole, though its line ends have two bytes on the way.
        let lines = ClipboardMessage::Provide(Some("\n".repeat(MAX_CUT_TEXT)));
        assert_eq!(read(&write(&lines)), Some(lines));
        let long = ClipboardMessage::Provide(Some("ä".repeat(MAX_CUT_TEXT)));
        let cut = ClipboardMessage::Provide(Some("ä".repeat(MAX_CUT_TEXT / 2)));
        assert_eq!(read(&write(&long)), Some(cut));
    }

    #[test]
    fn texts_are_told_as_the_peer_can_take_them() {
        let mut clipboard = Clipboard::default();
        assert_eq!(clipboard.offer("é€"), ClipboardOut::Latin1((&b"\xe9?"[..]).into()));
        let extended = |message| ClipboardOut::Extended(message);
        let caps = ClipboardMessage::Caps { unasked: MAX_CUT_TEXT as u32 };
        assert_eq!(clipboard.set_extended(true), Some(extended(caps)));
        // A peer that has not said what it takes, or takes less, is told that there is a text.
        assert_eq!(clipboard.offer("€"), extended(ClipboardMessage::Notify { text: true }));
        clipboard.on_message(ClipboardMessage::Caps { unasked: 5 });
        assert_eq!(clipboard.offer("€\n"), extended(ClipboardMessage::Notify { text: true }));
        assert_eq!(clipboard.offer("€"), extended(ClipboardMessage::Provide(Some("€".into()))));
        let answer = |clipboard: &mut Clipboard, message| clipboard.on_message(message);
        let provided = extended(ClipboardMessage::Provide(Some("€".into())));
        assert_eq!(answer(&mut clipboard, ClipboardMessage::Request), (Some(provided), None));
        let notified = extended(ClipboardMessage::Notify { text: true });
        assert_eq!(answer(&mut clipboard, ClipboardMessage::Peek), (Some(notified), None));
        let there = ClipboardMessage::Notify { text: true };
        let wanted = extended(ClipboardMessage::Request);
        assert_eq!(answer(&mut clipboard, there), (Some(wanted), None));
        let gone = ClipboardMessage::Notify { text: false };
        assert_eq!(answer(&mut clipboard, gone), (None, None));
        let text = ClipboardMessage::Provide(Some("ž".into()));
        assert_eq!(answer(&mut clipboard, text), (None, Some("ž".into())));
        assert_eq!(clipboard.set_extended(false), None);
        assert_eq!(clipboard.offer("a"), ClipboardOut::Latin1((&b"a"[..]).into()));
    }

    proptest! {
        #[test]
        fn texts_come_back_and_nonsense_does_no_harm(text in "[a\u{e9}\u{20ac}\r\n]{0,99}", noise in vec(any::<u8>(), 0..99)) {
            let message = ClipboardMessage::Provide(Some(text.clone()));
            prop_assert_eq!(read(&write(&message)), Some(message));
            let latin = to_latin1(&text);
            prop_assert_eq!(latin.len(), text.chars().count());
            prop_assert_eq!(to_latin1(&from_latin1(&noise)), noise.clone());
            if let Some(message) = read(&noise) {
                prop_assert_eq!(read(&write(&message)), Some(message));
            }
        }
    }
}
