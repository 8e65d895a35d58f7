//! The messages of clients (RFC 6143, section 7.5, and the community's version of the protocol).

use super::wire::{self, Read, Reader, bounded, put_counted, put_rect};
use super::{ClipboardMessage, Fence, MAX_SCREENS, PixelFormat, RfbError, Screen};
use crate::rect::Rect;
use bytes::{BufMut as _, Bytes, BytesMut};

/// The number of encodings that a viewer may list.
pub const MAX_ENCODINGS: usize = 1024;
/// Bytes of the longest text of a clipboard.
pub const MAX_CUT_TEXT: usize = 1 << 20;

const SET_PIXEL_FORMAT: u8 = 0;
const SET_ENCODINGS: u8 = 2;
const FRAMEBUFFER_UPDATE_REQUEST: u8 = 3;
const KEY_EVENT: u8 = 4;
const POINTER_EVENT: u8 = 5;
const CLIENT_CUT_TEXT: u8 = 6;
const ENABLE_CONTINUOUS_UPDATES: u8 = 150;
const CLIENT_FENCE: u8 = 248;
const SET_DESKTOP_SIZE: u8 = 251;
/// The messages that QEMU has added, each of which has a number of its own.
const QEMU: u8 = 255;
const QEMU_KEY: u8 = 0;

/// A message of a client to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientMessage {
    /// The client wants pixels in this format (7.5.1).
    SetPixelFormat(PixelFormat),
    /// The client knows these encodings and likes the first best (7.5.2).
    SetEncodings(Vec<i32>),
    /// The client wants to be sent a part of the screen (7.5.3).
    UpdateRequest {
        /// Whether the client wants only the pixels that have changed.
        incremental: bool,
        /// The part.
        rect: Rect,
    },
    /// A key (7.5.4).
    Key {
        /// Whether it is pressed.
        down: bool,
        /// Which it is, in the numbers of the X Window System.
        keysym: u32,
    },
    /// A key with its place on the keyboard (QEMU's extended key event).
    ExtendedKey {
        /// Whether it is pressed.
        down: bool,
        /// Which it is, in the numbers of the X Window System; 0 if the client does not know.
        keysym: u32,
        /// Its scan code of the XT keyboard; codes behind the prefix 0xe0 have the bit 0x80 set.
        code: u32,
    },
    /// The pointer (7.5.5).
    Pointer {
        /// The buttons that are down; the lowest bit is the first one.
        buttons: u8,
        /// The column.
        x: u16,
        /// The row.
        y: u16,
    },
    /// The client's clipboard has a new text, in ISO 8859-1 (7.5.6).
    CutText(Bytes),
    /// A message about the client's clipboard (Extended Clipboard).
    Clipboard(ClipboardMessage),
    /// The client wants another size of the screen (ExtendedDesktopSize).
    SetDesktopSize {
        /// The width of the framebuffer.
        width: u16,
        /// The height of the framebuffer.
        height: u16,
        /// The screens.
        screens: Vec<Screen>,
    },
    /// The client wants updates without asking for each (ContinuousUpdates).
    EnableContinuousUpdates {
        /// Whether it wants them.
        enable: bool,
        /// The part of the screen that it wants.
        rect: Rect,
    },
    /// A fence or the answer to one (Fence).
    Fence(Fence),
}

impl ClientMessage {
    /// Takes the next message off `input`; `None` if it has not come entirely.
    ///
    /// Messages of the extended clipboard that have nothing to do with text are skipped.
    ///
    /// # Errors
    /// The type is unknown, a list is longer than [`MAX_ENCODINGS`], [`MAX_SCREENS`] or
    /// [`MAX_FENCE`](super::MAX_FENCE), a text is longer than [`MAX_CUT_TEXT`], or the pixel format is
    /// unusable.
    pub fn parse(input: &mut BytesMut) -> Result<Option<Self>, RfbError> {
        loop {
            match wire::take(input, Self::read)? {
                None => return Ok(None),
                Some(None) => {}
                Some(Some(message)) => return Ok(Some(message)),
            }
        }
    }

    /// A message; `None` for a message that is to be skipped.
    fn read(reader: &mut Reader<'_>) -> Read<Option<Self>> {
        Ok(Some(match reader.u8()? {
            SET_PIXEL_FORMAT => {
                reader.bytes(3)?;
                Self::SetPixelFormat(PixelFormat::parse(&reader.array()?)?)
            }
            SET_ENCODINGS => {
                reader.bytes(1)?;
                let count = bounded("a list of encodings", reader.u16()?.into(), MAX_ENCODINGS)?;
                let (encodings, _) = reader.bytes(4 * count)?.as_chunks();
                Self::SetEncodings(
                    encodings.iter().map(|&bytes| i32::from_be_bytes(bytes)).collect(),
                )
            }
            FRAMEBUFFER_UPDATE_REQUEST => {
                Self::UpdateRequest { incremental: reader.u8()? != 0, rect: reader.rect()? }
            }
            KEY_EVENT => {
                let [down, _, _] = reader.array()?;
                Self::Key { down: down != 0, keysym: reader.u32()? }
            }
            POINTER_EVENT => {
                Self::Pointer { buttons: reader.u8()?, x: reader.u16()?, y: reader.u16()? }
            }
            CLIENT_CUT_TEXT => match read_cut_text(reader)? {
                ReceivedText::Latin1(text) => Self::CutText(text),
                ReceivedText::Extended(message) => Self::Clipboard(message),
                ReceivedText::Other => return Ok(None),
                ReceivedText::TooLong(length) => {
                    let (what, max) = ("a text of the clipboard", MAX_CUT_TEXT as u64);
                    return Err(RfbError::TooLong { what, length: length.into(), max }.into());
                }
            },
            ENABLE_CONTINUOUS_UPDATES => {
                Self::EnableContinuousUpdates { enable: reader.u8()? != 0, rect: reader.rect()? }
            }
            CLIENT_FENCE => Self::Fence(Fence::read(reader)?),
            SET_DESKTOP_SIZE => {
                reader.bytes(1)?;
                let (width, height) = (reader.u16()?, reader.u16()?);
                Self::SetDesktopSize { width, height, screens: Screen::read_all(reader, 1)? }
            }
            QEMU => match reader.u8()? {
                QEMU_KEY => Self::ExtendedKey {
                    down: reader.u16()? != 0,
                    keysym: reader.u32()?,
                    code: reader.u32()?,
                },
                _ => return Err(RfbError::Message { peer: "viewer", kind: QEMU }.into()),
            },
            kind => return Err(RfbError::Message { peer: "viewer", kind }.into()),
        }))
    }

    /// Adds the message to `out`. Parts that are longer than [`Self::parse`] accepts are cut.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::SetPixelFormat(format) => {
                out.extend([SET_PIXEL_FORMAT, 0, 0, 0]);
                format.write(out);
            }
            Self::SetEncodings(encodings) => {
                let encodings = &encodings[..encodings.len().min(MAX_ENCODINGS)];
                out.extend([SET_ENCODINGS, 0]);
                out.put_u16(encodings.len() as u16);
                encodings.iter().for_each(|&encoding| out.put_i32(encoding));
            }
            &Self::UpdateRequest { incremental, rect } => {
                out.extend([FRAMEBUFFER_UPDATE_REQUEST, incremental.into()]);
                put_rect(out, rect);
            }
            &Self::Key { down, keysym } => {
                out.extend([KEY_EVENT, down.into(), 0, 0]);
                out.put_u32(keysym);
            }
            &Self::ExtendedKey { down, keysym, code } => {
                out.extend([QEMU, QEMU_KEY, 0, down.into()]);
                out.put_u32(keysym);
                out.put_u32(code);
            }
            &Self::Pointer { buttons, x, y } => {
                out.extend([POINTER_EVENT, buttons]);
                out.put_u16(x);
                out.put_u16(y);
            }
            Self::CutText(text) => {
                out.extend([CLIENT_CUT_TEXT, 0, 0, 0]);
                put_counted(out, text, MAX_CUT_TEXT);
            }
            Self::Clipboard(message) => message.write(CLIENT_CUT_TEXT, out),
            Self::SetDesktopSize { width, height, screens } => {
                write_set_desktop_size(*width, *height, screens, out);
            }
            &Self::EnableContinuousUpdates { enable, rect } => {
                out.extend([ENABLE_CONTINUOUS_UPDATES, enable.into()]);
                put_rect(out, rect);
            }
            Self::Fence(fence) => fence.write(CLIENT_FENCE, out),
        }
    }
}

fn write_set_desktop_size(width: u16, height: u16, screens: &[Screen], out: &mut Vec<u8>) {
    let screens = &screens[..screens.len().min(MAX_SCREENS)];
    out.extend([SET_DESKTOP_SIZE, 0]);
    out.put_u16(width);
    out.put_u16(height);
    out.extend([screens.len() as u8, 0]);
    screens.iter().for_each(|screen| screen.write(out));
}

/// The content of either side's message about its clipboard.
pub(super) enum ReceivedText {
    Latin1(Bytes),
    Extended(ClipboardMessage),
    /// A message of the extended clipboard that has nothing to do with text.
    Other,
    /// More than [`MAX_CUT_TEXT`] bytes, which are not read.
    TooLong(u32),
}

/// The content of a message about a clipboard, behind its type. A negative length belongs to the extended
/// clipboard.
pub(super) fn read_cut_text(reader: &mut Reader<'_>) -> Read<ReceivedText> {
    reader.bytes(3)?;
    let length = reader.i32()?;
    let bytes = length.unsigned_abs();
    if bytes as usize > MAX_CUT_TEXT {
        return Ok(ReceivedText::TooLong(bytes));
    }
    let content = reader.bytes(bytes as usize)?;
    if length >= 0 {
        return Ok(ReceivedText::Latin1(Bytes::copy_from_slice(content)));
    }
    Ok(ClipboardMessage::read(content).map_or(ReceivedText::Other, ReceivedText::Extended))
}

#[cfg(test)]
mod tests {
    use super::super::MAX_FENCE;
    use super::super::pixel_format::tests::COMMON;
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn parse(bytes: &[u8]) -> Result<Option<ClientMessage>, RfbError> {
        ClientMessage::parse(&mut bytes.into())
    }

    #[test]
    fn messages_are_those_of_the_rfc() {
        let rect = Rect::new(1, 2, 3, 0x104);
        let rgb = [&[0, 0, 0, 0], &COMMON[0][..]].concat();
        let screen = Screen { id: 7, rect, flags: 0 };
        for (message, bytes) in [
            (ClientMessage::SetPixelFormat(PixelFormat::RGB32), &rgb[..]),
            (ClientMessage::SetEncodings(vec![5, -239]), b"\x02\0\0\x02\0\0\0\x05\xff\xff\xff\x11"),
            (
                ClientMessage::UpdateRequest { incremental: true, rect },
                b"\x03\x01\0\x01\0\x02\0\x03\x01\x04",
            ),
            (ClientMessage::Key { down: true, keysym: 0xff0d }, b"\x04\x01\0\0\0\0\xff\x0d"),
            (
                ClientMessage::ExtendedKey { down: true, keysym: 0xff0d, code: 0x9c },
                b"\xff\0\0\x01\0\0\xff\x0d\0\0\0\x9c",
            ),
            (
                ClientMessage::Clipboard(ClipboardMessage::Request),
                b"\x06\0\0\0\xff\xff\xff\xfc\x02\0\0\x01",
            ),
            (ClientMessage::Pointer { buttons: 5, x: 256, y: 9 }, b"\x05\x05\x01\0\0\x09"),
            (ClientMessage::CutText("cut".into()), b"\x06\0\0\0\0\0\0\x03cut"),
            (
                ClientMessage::EnableContinuousUpdates { enable: true, rect },
                b"\x96\x01\0\x01\0\x02\0\x03\x01\x04",
            ),
            (
                ClientMessage::Fence(Fence { flags: 1 << 31, payload: "xy".into() }),
                b"\xf8\0\0\0\x80\0\0\0\x02xy",
            ),
            (
                ClientMessage::SetDesktopSize { width: 4, height: 5, screens: vec![screen] },
                b"\xfb\0\0\x04\0\x05\x01\0\0\0\0\x07\0\x01\0\x02\0\x03\x01\x04\0\0\0\0",
            ),
        ] {
            let mut out = Vec::new();
            message.write(&mut out);
            assert_eq!(out, bytes, "{message:?}");
            assert_eq!(parse(bytes), Ok(Some(message)));
        }
    }

    #[test]
    fn what_is_too_long_is_refused_before_it_comes() {
        let error = |bytes: &[u8]| parse(bytes).unwrap_err().to_string();
        let text = "a list of encodings of length 1025 is larger than 1024";
        assert_eq!(error(b"\x02\0\x04\x01"), text);
        let text = "a text of the clipboard of length 1048577 is larger than 1048576";
        assert_eq!(error(b"\x06\0\0\0\0\x10\0\x01"), text);
        assert_eq!(error(b"\x06\0\0\0\xff\xef\xff\xff"), text);
        let text = "a text of the clipboard of length 2147483648 is larger than 1048576";
        assert_eq!(error(b"\x06\0\0\0\x80\0\0\0"), text);
        let text = "the payload of a fence of length 65 is larger than 64";
        assert_eq!(error(b"\xf8\0\0\0\0\0\0\0\x41"), text);
        let text = "a list of screens of length 65 is larger than 64";
        assert_eq!(error(b"\xfb\0\0\x04\0\x05\x41"), text);
        assert_eq!(error(b"\xfe\0"), "unknown message type 254 from the viewer");
        assert_eq!(error(b"\xff\x01"), "unknown message type 255 from the viewer");
    }

    #[test]
    fn what_is_too_long_is_cut_when_it_is_written() {
        let screen = Screen { id: 0, rect: Rect::default(), flags: 0 };
        for message in [
            ClientMessage::SetEncodings(vec![0; MAX_ENCODINGS + 1]),
            ClientMessage::CutText(vec![0; MAX_CUT_TEXT + 1].into()),
            ClientMessage::Fence(Fence { flags: 0, payload: vec![0; MAX_FENCE + 1].into() }),
            ClientMessage::SetDesktopSize {
                width: 1,
                height: 1,
                screens: vec![screen; MAX_SCREENS + 1],
            },
        ] {
            let mut out = Vec::new();
            message.write(&mut out);
            let mut input = out[..].into();
            assert!(ClientMessage::parse(&mut input).unwrap().is_some());
            assert!(input.is_empty());
        }
    }

    #[test]
    fn other_formats_than_text_are_skipped() {
        let rtf = b"\x02\0\0\x02";
        let message = [b"\x06\0\0\0\xff\xff\xff\xfc", &rtf[..], b"\x05\0\0\0\0\0"].concat();
        let mut input = BytesMut::from(&message[..]);
        let pointer = ClientMessage::Pointer { buttons: 0, x: 0, y: 0 };
        assert_eq!(ClientMessage::parse(&mut input), Ok(Some(pointer)));
        assert!(input.is_empty());
    }

    fn any_rect() -> impl Strategy<Value = Rect> {
        any::<[u16; 4]>().prop_map(|[x, y, width, height]| Rect::new(x, y, width, height))
    }

    fn any_message() -> impl Strategy<Value = ClientMessage> {
        let screen = (any::<u32>(), any_rect(), any::<u32>());
        let screen = screen.prop_map(|(id, rect, flags)| Screen { id, rect, flags });
        prop_oneof![
            (0..COMMON.len()).prop_map(|at| ClientMessage::SetPixelFormat(
                PixelFormat::parse(&COMMON[at]).unwrap()
            )),
            vec(any::<i32>(), 0..40).prop_map(ClientMessage::SetEncodings),
            (any::<bool>(), any_rect())
                .prop_map(|(incremental, rect)| ClientMessage::UpdateRequest { incremental, rect }),
            (any::<bool>(), any::<u32>())
                .prop_map(|(down, keysym)| ClientMessage::Key { down, keysym }),
            any::<(bool, u32, u32)>().prop_map(|(down, keysym, code)| {
                ClientMessage::ExtendedKey { down, keysym, code }
            }),
            "[a\u{20ac}\n]{0,99}".prop_map(|text| {
                ClientMessage::Clipboard(ClipboardMessage::Provide(Some(text)))
            }),
            any::<(u8, u16, u16)>().prop_map(|(buttons, x, y)| ClientMessage::Pointer {
                buttons,
                x,
                y
            }),
            vec(any::<u8>(), 0..99).prop_map(|text| ClientMessage::CutText(text.into())),
            (any::<[u16; 2]>(), vec(screen, 0..5)).prop_map(|([width, height], screens)| {
                ClientMessage::SetDesktopSize { width, height, screens }
            }),
            (any::<bool>(), any_rect())
                .prop_map(|(enable, rect)| ClientMessage::EnableContinuousUpdates { enable, rect }),
            (any::<u32>(), vec(any::<u8>(), 0..=MAX_FENCE)).prop_map(|(flags, payload)| {
                ClientMessage::Fence(Fence { flags, payload: payload.into() })
            }),
        ]
    }

    proptest! {
        #[test]
        fn messages_come_back_however_they_are_cut(messages in vec(any_message(), 1..9), size in 1..60usize) {
            let mut bytes = Vec::new();
            messages.iter().for_each(|message| message.write(&mut bytes));
            let (mut input, mut parsed) = (BytesMut::new(), Vec::new());
            for piece in bytes.chunks(size) {
                input.extend_from_slice(piece);
                while let Some(message) = ClientMessage::parse(&mut input).unwrap() {
                    parsed.push(message);
                }
            }
            prop_assert!(input.is_empty());
            prop_assert_eq!(parsed, messages);
        }
    }
}
