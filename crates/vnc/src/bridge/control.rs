//! Messages other than pieces of the screen: one stream in each direction.
//!
//! ```text
//! Message { Type (8), Length (32), Body (..) }
//! ```
//!
//! Types and bodies are below. Texts are UTF-8. A viewer's messages are in the encoding of RFB (RFC 6143
//! section 7.5).

use crate::rfb::{ClientMessage, Cursor, MAX_CUT_TEXT, RfbError};
use bytes::{Buf, BufMut, Bytes, BytesMut};

/// The version of the bridge's protocol; both ends must have the same.
pub const VERSION: u8 = 2;
/// Bytes of the largest body.
pub const MAX_CONTROL: usize = (1 << 20) + 64 * 1024;
/// Bytes of the longest name or reason; the rest is cut off.
pub const MAX_REASON: usize = 1024;
/// Bytes of the longest token.
const MAX_TOKEN: usize = 256;

/// Why a message cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ControlError {
    /// The message is larger than [`MAX_CONTROL`].
    #[error("a message of {0} bytes is too large")]
    TooLarge(u32),
    /// The message has a type that does not exist.
    #[error("a message of unknown type {0}")]
    Type(u8),
    /// The body of the message is malformed.
    #[error("a malformed message of type {0}")]
    Malformed(u8),
    /// The peer has another version of the bridge.
    #[error("the other end has version {0} of the bridge, this one {VERSION}")]
    Version(u8),
    /// The viewer's message is malformed.
    #[error(transparent)]
    Rfb(#[from] RfbError),
}

/// Messages of the viewer's end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToServer {
    /// The first message.
    Hello {
        /// The token that proves that the viewer may connect; at most 256 bytes.
        token: String,
        /// The session to go on with, if there was one.
        resume: Option<[u8; 16]>,
    },
    /// The viewer's answer to the server's challenge (RFC 6143 section 7.2.2).
    Response([u8; 16]),
    /// A message of the viewer to the server. These and [`Text`](Self::Text) are counted in each session.
    Input(ClientMessage),
    /// The viewer's clipboard has a new text, of at most [`MAX_CUT_TEXT`](crate::rfb::MAX_CUT_TEXT) bytes.
    Text(String),
    /// Pieces of an update were painted.
    Painted {
        /// The update.
        update: u32,
        /// The number of its pieces, including those that were left out.
        pieces: u16,
        /// Microseconds since the last of them was painted.
        age: u32,
    },
}

/// Messages of the server's end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToViewer {
    /// The session goes on, if it was to be resumed; or a new one begins.
    Welcome {
        /// With which it can be resumed.
        session: [u8; 16],
        /// Whether it is the session that was to be resumed.
        resumed: bool,
        /// How many inputs and texts of the viewer the session has taken.
        taken: u64,
    },
    /// The server wants the password (RFC 6143 section 7.2.2).
    Challenge([u8; 16]),
    /// The session is over, or does not begin.
    Ended {
        /// Why.
        why: End,
        /// In words.
        reason: String,
    },
    /// The screen: the server let the viewer in.
    Screen {
        /// Columns.
        width: u16,
        /// Rows.
        height: u16,
        /// The name of the desktop.
        name: String,
    },
    /// The pointer looks like this.
    Cursor(Cursor),
    /// The desktop has another name.
    Named(String),
    /// The answer to a viewer that wants another size.
    ResizeResult(u16),
    /// The server's clipboard has a new text, of at most [`MAX_CUT_TEXT`](crate::rfb::MAX_CUT_TEXT) bytes.
    Text(String),
    /// A bell.
    Bell,
    /// The server takes keys with their places on the keyboard.
    ExtendedKeys,
    /// As many inputs and texts of this session have been passed on to the server.
    Delivered(u64),
}

/// Why a session is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The token is wrong.
    Token,
    /// The password is wrong.
    Password,
    /// The server cannot be used, refuses, or is gone.
    Server,
    /// There are too many viewers.
    Busy,
}

impl End {
    const ALL: [Self; 4] = [Self::Token, Self::Password, Self::Server, Self::Busy];
}

/// The first bytes of a text that make whole characters.
fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_REASON)]
}

/// The first bytes of a clipboard that make whole characters.
fn clipped(text: &str) -> &[u8] {
    &text.as_bytes()[..text.floor_char_boundary(MAX_CUT_TEXT)]
}

fn framed(kind: u8, out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    out.put_u8(kind);
    let length = out.len();
    out.put_u32(0);
    body(out);
    let size = (out.len() - length - 4) as u32;
    out[length..length + 4].copy_from_slice(&size.to_be_bytes());
}

/// Takes a whole message from `input`: its type and its body.
fn unframed(input: &mut BytesMut) -> Result<Option<(u8, Bytes)>, ControlError> {
    let Some((&[kind, a, b, c, d], rest)) = input.split_first_chunk::<5>() else { return Ok(None) };
    let size = u32::from_be_bytes([a, b, c, d]);
    if size as usize > MAX_CONTROL {
        return Err(ControlError::TooLarge(size));
    }
    if rest.len() < size as usize {
        return Ok(None);
    }
    input.advance(5);
    Ok(Some((kind, input.split_to(size as usize).freeze())))
}

fn text(body: Bytes) -> Option<String> {
    String::from_utf8(body.into()).ok()
}

fn clipboard(body: Bytes) -> Option<String> {
    text(body).filter(|text| text.len() <= MAX_CUT_TEXT)
}

fn array(body: &mut Bytes) -> Option<[u8; 16]> {
    let mut array = [0; 16];
    body.try_copy_to_slice(&mut array).ok()?;
    Some(array)
}

impl ToServer {
    /// Writes it.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Hello { token, resume } => framed(0, out, |out| {
                out.put_u8(VERSION);
                out.put_u8(resume.is_some().into());
                out.put_slice(&resume.unwrap_or_default());
                out.put_slice(token.as_bytes());
            }),
            Self::Response(response) => framed(1, out, |out| out.put_slice(response)),
            Self::Input(message) => framed(2, out, |out| message.write(out)),
            Self::Painted { update, pieces, age } => framed(3, out, |out| {
                out.put_u32(*update);
                out.put_u16(*pieces);
                out.put_u32(*age);
            }),
            Self::Text(text) => framed(4, out, |out| out.put_slice(clipped(text))),
        }
    }

    /// Takes a whole message from the beginning of `input`; `None` if there is none yet.
    ///
    /// # Errors
    /// It is too large or malformed.
    pub fn decode(input: &mut BytesMut) -> Result<Option<Self>, ControlError> {
        let Some((kind, mut body)) = unframed(input)? else { return Ok(None) };
        if kind == 0 && body.first().is_some_and(|&version| version != VERSION) {
            return Err(ControlError::Version(body[0]));
        }
        let message = match kind {
            0 => Self::hello(body),
            1 => array(&mut body).filter(|_| body.is_empty()).map(Self::Response),
            2 => {
                let mut body = BytesMut::from(body);
                ClientMessage::parse(&mut body)?.filter(|_| body.is_empty()).map(Self::Input)
            }
            3 if body.len() == 10 => {
                let (update, pieces) = (body.get_u32(), body.get_u16());
                Some(Self::Painted { update, pieces, age: body.get_u32() })
            }
            3 => None,
            4 => clipboard(body).map(Self::Text),
            _ => return Err(ControlError::Type(kind)),
        };
        message.ok_or(ControlError::Malformed(kind)).map(Some)
    }

    fn hello(mut body: Bytes) -> Option<Self> {
        let (_version, resumes) = (body.try_get_u8().ok()?, body.try_get_u8().ok()? != 0);
        let session = array(&mut body)?;
        let token = text(body).filter(|token| token.len() <= MAX_TOKEN)?;
        Some(Self::Hello { token, resume: resumes.then_some(session) })
    }
}

impl ToViewer {
    /// Writes it.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Welcome { session, resumed, taken } => framed(0, out, |out| {
                out.put_u8(u8::from(*resumed));
                out.put_slice(session);
                out.put_u64(*taken);
            }),
            Self::Challenge(challenge) => framed(1, out, |out| out.put_slice(challenge)),
            Self::Ended { why, reason } => framed(2, out, |out| {
                let code = End::ALL.iter().position(|end| end == why).unwrap_or_default();
                out.put_u8(code as u8);
                out.put_slice(cut(reason).as_bytes());
            }),
            Self::Screen { width, height, name } => framed(3, out, |out| {
                out.put_u16(*width);
                out.put_u16(*height);
                out.put_slice(cut(name).as_bytes());
            }),
            Self::Cursor(cursor) => framed(4, out, |out| put_cursor(cursor, out)),
            Self::Named(name) => framed(5, out, |out| out.put_slice(cut(name).as_bytes())),
            Self::ResizeResult(status) => framed(6, out, |out| out.put_u16(*status)),
            Self::Text(text) => framed(7, out, |out| out.put_slice(clipped(text))),
            Self::Bell => framed(8, out, |_| {}),
            Self::ExtendedKeys => framed(9, out, |_| {}),
            Self::Delivered(count) => framed(10, out, |out| out.put_u64(*count)),
        }
    }

    /// Takes a whole message from the beginning of `input`; `None` if there is none yet.
    ///
    /// # Errors
    /// It is too large or malformed.
    pub fn decode(input: &mut BytesMut) -> Result<Option<Self>, ControlError> {
        let Some((kind, body)) = unframed(input)? else { return Ok(None) };
        if kind > 10 {
            return Err(ControlError::Type(kind));
        }
        Self::body(kind, body).ok_or(ControlError::Malformed(kind)).map(Some)
    }

    fn body(kind: u8, mut body: Bytes) -> Option<Self> {
        let message = match kind {
            0 => {
                let resumed = body.try_get_u8().ok()? != 0;
                let session = array(&mut body)?;
                Self::Welcome { session, resumed, taken: body.try_get_u64().ok()? }
            }
            1 => Self::Challenge(array(&mut body)?),
            2 => {
                let why = *End::ALL.get(usize::from(body.try_get_u8().ok()?))?;
                Self::Ended { why, reason: text(body.split_off(0))? }
            }
            3 => {
                let (width, height) = (body.try_get_u16().ok()?, body.try_get_u16().ok()?);
                Self::Screen { width, height, name: text(body.split_off(0))? }
            }
            4 => Self::Cursor(get_cursor(&mut body)?),
            5 => Self::Named(text(body.split_off(0))?),
            6 => Self::ResizeResult(body.try_get_u16().ok()?),
            7 => Self::Text(clipboard(body.split_off(0))?),
            8 => Self::Bell,
            9 => Self::ExtendedKeys,
            10 => Self::Delivered(body.try_get_u64().ok()?),
            _ => return None,
        };
        // `split_off` leaves nothing behind.
        body.is_empty().then_some(message)
    }
}

fn put_cursor(cursor: &Cursor, out: &mut Vec<u8>) {
    let numbers = [cursor.width, cursor.height, cursor.hotspot_x, cursor.hotspot_y];
    numbers.into_iter().for_each(|number| out.put_u16(number));
    cursor.pixels.iter().for_each(|&pixel| out.put_u32(pixel));
    cursor.mask.iter().for_each(|&opaque| out.put_u8(opaque.into()));
}

fn get_cursor(body: &mut Bytes) -> Option<Cursor> {
    let mut number = || body.try_get_u16().ok();
    let (width, height, hotspot_x, hotspot_y) = (number()?, number()?, number()?, number()?);
    let area = usize::from(width) * usize::from(height);
    if usize::from(width.max(height)) > crate::rfb::MAX_CURSOR || body.len() != 5 * area {
        return None;
    }
    let pixels = (0..area).map(|_| body.get_u32()).collect();
    let mask = body.split_off(0).iter().map(|&opaque| opaque != 0).collect();
    Some(Cursor { width, height, hotspot_x, hotspot_y, pixels, mask })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rect::Rect;

    fn to_server() -> Vec<ToServer> {
        let token = "secret".to_owned();
        let input = |message| ToServer::Input(message);
        vec![
            ToServer::Hello { token: token.clone(), resume: None },
            ToServer::Hello { token, resume: Some([7; 16]) },
            ToServer::Response([1; 16]),
            input(ClientMessage::Key { down: true, keysym: 0xff0d }),
            input(ClientMessage::Pointer { buttons: 1, x: 300, y: 4 }),
            input(ClientMessage::ExtendedKey { down: true, keysym: 0xff0d, code: 0x1c }),
            ToServer::Text("café ✓".into()),
            input(ClientMessage::UpdateRequest { incremental: true, rect: Rect::new(1, 2, 3, 4) }),
            ToServer::Painted { update: 3, pieces: 9, age: 1500 },
        ]
    }

    fn to_viewer() -> Vec<ToViewer> {
        let reason = "it is gone ✓".to_owned();
        let (pixels, mask) = (vec![1, 0xff_ffff], vec![true, false]);
        let mut all = vec![
            ToViewer::Welcome { session: [9; 16], resumed: true, taken: 7 },
            ToViewer::Challenge([3; 16]),
            ToViewer::Screen { width: 800, height: 600, name: "desk".into() },
            ToViewer::Cursor(Cursor {
                width: 2,
                height: 1,
                hotspot_x: 1,
                hotspot_y: 0,
                pixels,
                mask,
            }),
            ToViewer::Named("new".into()),
            ToViewer::ResizeResult(1),
            ToViewer::Text("text ✓".into()),
            ToViewer::Bell,
            ToViewer::ExtendedKeys,
            ToViewer::Delivered(1 << 40),
        ];
        all.extend(End::ALL.map(|why| ToViewer::Ended { why, reason: reason.clone() }));
        all
    }

    #[test]
    fn messages_are_read_as_they_were_written_however_they_are_cut() {
        let (mut server, mut viewer) = (Vec::new(), Vec::new());
        to_server().iter().for_each(|message| message.encode(&mut server));
        to_viewer().iter().for_each(|message| message.encode(&mut viewer));
        let (mut input, mut read) = (BytesMut::new(), Vec::new());
        for byte in server {
            input.put_u8(byte);
            read.extend(ToServer::decode(&mut input).unwrap());
        }
        assert_eq!(read, to_server());
        let (mut input, mut read) = (BytesMut::new(), Vec::new());
        for byte in viewer {
            input.put_u8(byte);
            read.extend(ToViewer::decode(&mut input).unwrap());
        }
        assert_eq!(read, to_viewer());
    }

    #[test]
    fn a_body_that_is_shorter_or_longer_is_malformed() {
        for message in to_viewer() {
            let mut whole = Vec::new();
            message.encode(&mut whole);
            let open = matches!(whole[0], 2 | 3 | 5 | 7);
            for change in [-1, 1] {
                let mut bytes = whole.clone();
                let size = (bytes.len() as i64 - 5 + change).max(0) as u32;
                bytes[1..5].copy_from_slice(&size.to_be_bytes());
                bytes.push(0);
                let read = ToViewer::decode(&mut BytesMut::from(&bytes[..]));
                assert!(open || whole.len() == 5 && change < 0 || read.is_err(), "{message:?}");
            }
        }
    }

    #[test]
    fn what_is_no_message_is_an_error() {
        let decode = |bytes: &[u8]| ToServer::decode(&mut BytesMut::from(bytes));
        assert_eq!(decode(&[0, 0, 0, 1, 0]), Ok(None));
        assert_eq!(decode(&[0, 1, 0xff, 0, 0]), Err(ControlError::TooLarge(0x01ff_0000)));
        assert_eq!(decode(&[9, 0, 0, 0, 0]), Err(ControlError::Type(9)));
        assert_eq!(decode(&[0, 0, 0, 0, 1, 1]), Err(ControlError::Version(1)));
        assert_eq!(decode(&[1, 0, 0, 0, 1, 2]), Err(ControlError::Malformed(1)));
        let error = decode(&[2, 0, 0, 0, 1, 99]).unwrap_err();
        assert!(matches!(error, ControlError::Rfb(_)), "{error}");
        let huge = [&[4, 0, 0, 0, 8][..], &[0xff; 8]].concat();
        let read = ToViewer::decode(&mut BytesMut::from(&huge[..]));
        assert_eq!(read, Err(ControlError::Malformed(4)));
    }

    #[test]
    fn long_reasons_are_cut() {
        let mut out = Vec::new();
        ToViewer::Ended { why: End::Server, reason: "é".repeat(5000) }.encode(&mut out);
        let read = ToViewer::decode(&mut BytesMut::from(&out[..])).unwrap().unwrap();
        assert_eq!(read, ToViewer::Ended { why: End::Server, reason: "é".repeat(MAX_REASON / 2) });
    }
}
