//! The messages of a server after the handshake (RFC 6143, section 7.6).

mod event;
mod hextile;
mod raw;
mod rre;
#[cfg(test)]
mod tests;

use super::client_message::{ReceivedText, read_cut_text};
use super::server_init::read_name;
use super::server_message::{
    BELL, END_OF_CONTINUOUS_UPDATES, FRAMEBUFFER_UPDATE, SERVER_CUT_TEXT, SERVER_FENCE,
    SET_COLOUR_MAP_ENTRIES,
};
use super::wire::{self, Read, Reader};
use super::{Cursor, Fence, RfbError, Screen, encoding};
use crate::framebuffer::Framebuffer;
use crate::rect::Rect;
use bytes::{Buf as _, BytesMut};
pub use event::ServerEvent;
use hextile::Hextile;
#[cfg(test)]
pub(super) use hextile::{ANY_SUBRECTS, FOREGROUND_SPECIFIED, RAW, SUBRECTS_COLOURED};
pub(super) use hextile::{BACKGROUND_SPECIFIED, TILE};
use raw::Raw;
pub use rre::MAX_RRE_OVERDRAW;
use rre::Rre;
use std::collections::VecDeque;

/// The number of rectangles of an update that goes on until a LastRect.
const UNTIL_LAST_RECT: u16 = u16::MAX;

/// The part of the input that comes next.
#[derive(Debug)]
enum State {
    /// A message.
    Message,
    /// A rectangle of an update.
    Rectangle,
    /// The data behind the header of a rectangle.
    Body(Rect, Body),
    /// The rest of a message that means nothing to us.
    Skip(usize),
}

/// The data of a rectangle.
#[derive(Debug)]
enum Body {
    Raw(Raw),
    CopyRect,
    Rre(Rre),
    Hextile(Hextile),
    Cursor,
    DesktopName,
    ExtendedDesktopSize,
}

/// Paints the updates of a server, if it was asked for [`PixelFormat::RGB32`](super::PixelFormat::RGB32) and
/// [`encoding::WANTED`], [`encoding::CONTINUOUS`] and [`encoding::INPUT`].
///
/// The decoder buffers no rectangle: pixels, tiles and subrectangles are painted as they come.
#[derive(Debug)]
pub struct Decoder {
    state: State,
    /// The rectangles that are left of the update; `None` if that is not known.
    left: Option<u16>,
    /// At most the three events of one rectangle.
    events: VecDeque<ServerEvent>,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Decoder {
    /// A decoder for the messages behind the ServerInit.
    #[must_use]
    pub fn new() -> Self {
        Self { state: State::Message, left: Some(0), events: VecDeque::new() }
    }

    /// Whether the decoder is within an update, of which the screen shows a part.
    #[must_use]
    pub fn is_in_update(&self) -> bool {
        matches!(self.state, State::Rectangle | State::Body(..))
    }

    /// Consumes `input`, paints into `screen` and resizes it, up to the next event; `None` if more bytes are
    /// needed.
    ///
    /// # Errors
    /// A message or an encoding is unknown, a rectangle is not within the screen, or a field is larger than
    /// its bound. The decoder is of no more use then.
    pub fn next(
        &mut self,
        input: &mut BytesMut,
        screen: &mut Framebuffer,
    ) -> Result<Option<ServerEvent>, RfbError> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(Some(event));
            }
            if !self.step(input, screen)? {
                return Ok(None);
            }
        }
    }

    /// Returns whether `input` had enough bytes to reach another state.
    fn step(&mut self, input: &mut BytesMut, screen: &mut Framebuffer) -> Result<bool, RfbError> {
        match &mut self.state {
            State::Message => self.message(input),
            State::Rectangle => self.rectangle(input, screen),
            State::Body(rect, body) => {
                let rect = *rect;
                let Some(events) = body.paint(rect, input, screen)? else { return Ok(false) };
                self.events.extend(events.into_iter().flatten());
                self.state = State::Rectangle;
                Ok(true)
            }
            State::Skip(left) => {
                let skipped = input.len().min(*left);
                input.advance(skipped);
                *left -= skipped;
                let done = *left == 0;
                if done {
                    self.state = State::Message;
                }
                Ok(done)
            }
        }
    }

    fn message(&mut self, input: &mut BytesMut) -> Result<bool, RfbError> {
        let message = wire::take(input, |reader| {
            Ok(match reader.u8()? {
                FRAMEBUFFER_UPDATE => {
                    reader.bytes(1)?;
                    let count = reader.u16()?;
                    self.left = (count != UNTIL_LAST_RECT).then_some(count);
                    (State::Rectangle, None)
                }
                SET_COLOUR_MAP_ENTRIES => {
                    reader.bytes(3)?;
                    (State::Skip(6 * usize::from(reader.u16()?)), None)
                }
                BELL => (State::Message, Some(ServerEvent::Bell)),
                SERVER_CUT_TEXT => match read_cut_text(reader)? {
                    ReceivedText::Latin1(text) => {
                        (State::Message, Some(ServerEvent::CutText(text)))
                    }
                    ReceivedText::Extended(message) => {
                        (State::Message, Some(ServerEvent::Clipboard(message)))
                    }
                    ReceivedText::Other => (State::Message, None),
                    ReceivedText::TooLong(length) => (State::Skip(length as usize), None),
                },
                END_OF_CONTINUOUS_UPDATES => {
                    (State::Message, Some(ServerEvent::EndOfContinuousUpdates))
                }
                SERVER_FENCE => (State::Message, Some(ServerEvent::Fence(Fence::read(reader)?))),
                kind => return Err(RfbError::Message { peer: "server", kind }.into()),
            })
        })?;
        let Some((state, event)) = message else { return Ok(false) };
        self.state = state;
        self.events.extend(event);
        Ok(true)
    }

    /// The header of a rectangle, or the end of the update.
    fn rectangle(
        &mut self,
        input: &mut BytesMut,
        screen: &mut Framebuffer,
    ) -> Result<bool, RfbError> {
        if self.left == Some(0) {
            self.end();
            return Ok(true);
        }
        let header = wire::take(input, |reader| Ok((reader.rect()?, reader.i32()?)))?;
        let Some((rect, number)) = header else { return Ok(false) };
        self.left = self.left.map(|left| left - 1);
        match number {
            encoding::LAST_RECT => self.end(),
            encoding::EXTENDED_KEYS => self.events.push_back(ServerEvent::ExtendedKeys),
            encoding::DESKTOP_SIZE => self.events.extend(resize(rect, screen)?),
            _ => self.state = State::Body(rect, Body::new(rect, number, screen)?),
        }
        Ok(true)
    }

    fn end(&mut self) {
        self.state = State::Message;
        self.events.push_back(ServerEvent::UpdateEnd);
    }
}

impl Body {
    /// The body for the number of an encoding.
    fn new(rect: Rect, number: i32, screen: &Framebuffer) -> Result<Self, RfbError> {
        let body = match number {
            encoding::CURSOR => return Ok(Self::Cursor),
            encoding::DESKTOP_NAME => return Ok(Self::DesktopName),
            encoding::EXTENDED_DESKTOP_SIZE => return Ok(Self::ExtendedDesktopSize),
            encoding::RAW => Self::Raw(Raw::new(rect)),
            encoding::COPY_RECT => Self::CopyRect,
            encoding::RRE => Self::Rre(Rre::new(rect)),
            encoding::HEXTILE => Self::Hextile(Hextile::new(rect)),
            unknown => return Err(RfbError::Encoding(unknown)),
        };
        check(rect, screen)?;
        Ok(body)
    }

    /// Paints the data that has come; `None` if that was not all.
    fn paint(
        &mut self,
        rect: Rect,
        input: &mut BytesMut,
        screen: &mut Framebuffer,
    ) -> Result<Option<[Option<ServerEvent>; 3]>, RfbError> {
        let painted = |done: bool| {
            done.then(|| [(!rect.is_empty()).then_some(ServerEvent::Painted(rect)), None, None])
        };
        match self {
            Self::Raw(raw) => Ok(painted(raw.paint(input, screen))),
            Self::Rre(rre) => rre.paint(input, screen).map(painted),
            Self::Hextile(hextile) => hextile.paint(input, screen).map(painted),
            Self::CopyRect => wire::take(input, |reader| {
                let from = Rect::new(reader.u16()?, reader.u16()?, rect.width, rect.height);
                check(from, screen)?;
                screen.copy(from, rect);
                let copied = ServerEvent::Copied { from, to: rect };
                Ok([(!rect.is_empty()).then_some(copied), None, None])
            }),
            Self::Cursor => wire::take(input, |reader| {
                Ok([Some(ServerEvent::Cursor(Cursor::read(rect, reader)?)), None, None])
            }),
            Self::DesktopName => wire::take(input, |reader| {
                Ok([Some(ServerEvent::Named(read_name(reader)?)), None, None])
            }),
            Self::ExtendedDesktopSize => {
                wire::take(input, |reader| extended_desktop_size(rect, reader, screen))
            }
        }
    }
}

/// Applies an ExtendedDesktopSize, where `x` is the reason and `y` the result.
fn extended_desktop_size(
    rect: Rect,
    reader: &mut Reader<'_>,
    screen: &mut Framebuffer,
) -> Read<[Option<ServerEvent>; 3]> {
    const ANSWER: u16 = 1;
    let screens = Screen::read_all(reader, 3)?;
    let result = (rect.x == ANSWER).then_some(ServerEvent::ResizeResult { status: rect.y });
    if rect.x == ANSWER && rect.y != 0 {
        // The size is not said to be the screen's.
        return Ok([result, None, None]);
    }
    Ok([resize(rect, screen)?, result, Some(ServerEvent::Screens(screens))])
}

fn resize(rect: Rect, screen: &mut Framebuffer) -> Result<Option<ServerEvent>, RfbError> {
    let Rect { width, height, .. } = rect;
    if (width, height) == (screen.width(), screen.height()) {
        return Ok(None);
    }
    screen.resize(width, height)?;
    Ok(Some(ServerEvent::Resized { width, height }))
}

fn check(rect: Rect, screen: &Framebuffer) -> Result<(), RfbError> {
    if screen.bounds().contains(rect) {
        return Ok(());
    }
    Err(RfbError::OutsideScreen { rect, width: screen.width(), height: screen.height() })
}
