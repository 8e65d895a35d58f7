//! The functions that a fuzzer calls: each panics when a promise is broken.

use super::{
    ClientMessage, Cursor, Decoder, Login, PixelFormat, RfbError, Security, ServerEvent,
    ServerHandshake, ServerInit, ServerStep, Viewer, ViewerHandshake, ViewerStep,
};
use crate::framebuffer::Framebuffer;
use crate::rect::Rect;
use bytes::BytesMut;

/// Pixels of a screen above which an input is not followed: it would only cost time.
const MAX_AREA: usize = 1 << 20;

/// The events, screen, output and error of a client.
type Understood = (Vec<ServerEvent>, Framebuffer, Vec<u8>, Option<RfbError>);

/// A server sends `data`, behind two bytes that choose whether it starts with a handshake and how it is cut.
///
/// # Panics
/// It matters how it is cut.
pub fn server(data: &[u8]) {
    let Some((&[start, size], data)) = data.split_first_chunk() else { return };
    let run = |size| Client::new(start)?.run(data, size);
    let whole = run(data.len());
    let pieces = run(usize::from(size) + 1);
    if let (Some(whole), Some(pieces)) = (whole, pieces) {
        // The state at the time of an error does depend on the pieces.
        assert_eq!(whole.3.is_some(), pieces.3.is_some());
        assert!(whole.3.is_some() || whole == pieces);
    }
}

/// What a client has to log in with, and what it is careful about.
fn login(start: u8) -> Login {
    Login { user: start & 2 != 0, only_tls: start & 4 != 0, user_in_clear: start & 8 != 0 }
}

struct Client {
    handshake: Option<ServerHandshake>,
    decoder: Decoder,
    screen: Framebuffer,
    events: Vec<ServerEvent>,
    sent: Vec<u8>,
}

impl Client {
    fn new(start: u8) -> Option<Self> {
        let mut screen = Framebuffer::new(64, 48).ok()?;
        screen.fill(Rect::new(3, 3, 9, 9), 0x0012_3456);
        Some(Self {
            handshake: (start & 1 == 1)
                .then(|| ServerHandshake::new(true).with_login(login(start))),
            decoder: Decoder::new(),
            screen,
            events: Vec::new(),
            sent: Vec::new(),
        })
    }

    /// `None` if the screen is too large to go on.
    fn run(mut self, data: &[u8], size: usize) -> Option<Understood> {
        let mut input = BytesMut::new();
        for piece in data.chunks(size.max(1)) {
            input.extend_from_slice(piece);
            let error = self.receive(&mut input).err();
            if self.screen.bounds().area() > MAX_AREA {
                return None;
            }
            if error.is_some() {
                return Some((self.events, self.screen, self.sent, error));
            }
        }
        Some((self.events, self.screen, self.sent, None))
    }

    fn receive(&mut self, input: &mut BytesMut) -> Result<(), RfbError> {
        while let Some(handshake) = &mut self.handshake {
            match handshake.receive(input, &mut self.sent)? {
                ServerStep::More => return Ok(()),
                ServerStep::Challenge(challenge) => handshake.answer(challenge, &mut self.sent),
                // What is behind stands for what TLS decrypts.
                ServerStep::StartTls => handshake.tls_started(),
                ServerStep::User => handshake.log_in("user", b"password", &mut self.sent),
                ServerStep::Done(init) => {
                    self.screen.resize(init.width, init.height)?;
                    self.handshake = None;
                }
            }
        }
        while self.screen.bounds().area() <= MAX_AREA {
            match self.decoder.next(input, &mut self.screen)? {
                Some(event) => self.events.push(event),
                None => break,
            }
        }
        Ok(())
    }
}

/// A viewer sends `data`, behind a byte that chooses whether it starts with a handshake and with which. Keys
/// and the pointer draw on the screen.
///
/// # Panics
/// The output for the viewer cannot be decoded, or the viewer does not show the screen in the end.
pub fn viewer(data: &[u8]) {
    let Some((&start, data)) = data.split_first() else { return };
    let mut input = BytesMut::from(data);
    if start & 1 == 1 && !let_in(start, &mut input) {
        return;
    }
    let Some(mut bench) = Bench::new() else { return };
    while let Ok(Some(message)) = ClientMessage::parse(&mut input) {
        let mut copy = Vec::new();
        message.write(&mut copy);
        assert_eq!(ClientMessage::parse(&mut copy[..].into()), Ok(Some(message.clone())));
        if bench.act(&message).is_err() {
            return;
        }
        bench.update();
    }
    bench.finish();
}

/// Whether a viewer comes in.
fn let_in(start: u8, input: &mut BytesMut) -> bool {
    let (mut handshake, mut out) = (ViewerHandshake::new(), Vec::new());
    handshake.start(&mut out);
    loop {
        match handshake.receive(input, &mut out) {
            Ok(ViewerStep::More) | Err(_) => return false,
            Ok(ViewerStep::Version) => match start & 6 {
                0 => handshake.refuse("no", &mut out),
                2 => handshake.offer(Security::None, &mut out),
                _ => handshake.offer(Security::Password { challenge: [start; 16] }, &mut out),
            },
            Ok(ViewerStep::Response(response)) => {
                let right = response[0] < 128;
                handshake.result(if right { Ok(()) } else { Err("wrong") }, &mut out);
            }
            Ok(ViewerStep::Init { .. }) => {
                let format = PixelFormat::RGB32;
                let init = ServerInit { width: 64, height: 48, format, name: String::new() };
                handshake.init(&init, &mut out);
                return true;
            }
        }
    }
}

/// A screen and a viewer of it.
struct Bench {
    screen: Framebuffer,
    viewer: Viewer,
    shown: Framebuffer,
    /// Whether the viewer has always wanted the one format that the decoder reads.
    decodes: bool,
}

impl Bench {
    fn new() -> Option<Self> {
        let screen = Framebuffer::new(64, 48).ok()?;
        let (shown, viewer) = (screen.clone(), Viewer::new(64, 48));
        Some(Self { screen, viewer, shown, decodes: true })
    }

    fn act(&mut self, message: &ClientMessage) -> Result<(), RfbError> {
        let mut said = Vec::new();
        self.viewer.on_message(message, &mut said)?;
        self.decode(&said, |event| {
            matches!(event, ServerEvent::Fence(_) | ServerEvent::EndOfContinuousUpdates)
        });
        match *message {
            ClientMessage::SetPixelFormat(format) => self.decodes &= format == PixelFormat::RGB32,
            ClientMessage::Pointer { buttons, x, y } => {
                let [width, height] = [buttons & 15, buttons >> 4].map(u16::from);
                let rect = Rect { x: x & 63, y: y & 63, width, height };
                self.screen.fill(rect, u32::from(x >> 6));
                self.viewer.painted(rect);
            }
            ClientMessage::Key { down: true, keysym } => {
                let [x, y, to_x, to_y] = keysym.to_be_bytes().map(|byte| u16::from(byte & 63));
                let (from, to) = (Rect::new(x, y, 20, 9), Rect::new(to_x, to_y, 20, 9));
                if self.screen.bounds().contains(from) && self.screen.bounds().contains(to) {
                    self.screen.copy(from, to);
                    self.viewer.copied(from, to);
                }
            }
            ClientMessage::Key { down: false, keysym } => {
                let (pixels, mask) = (vec![keysym; 99], vec![keysym & 2 == 0; 99]);
                let cursor = Cursor { width: 9, height: 10, pixels, mask, ..Cursor::default() };
                self.viewer.cursor((keysym & 1 == 0).then_some(cursor));
                self.viewer.named(&keysym.to_string());
            }
            ClientMessage::SetDesktopSize { width, height, .. } => {
                let (width, height) = (width % 100, height % 100);
                self.screen.resize(width, height)?;
                self.viewer.resize_result(width / 50);
                self.viewer.resized(width, height)?;
            }
            ClientMessage::ExtendedKey { .. } => self.viewer.take_extended_keys(),
            ClientMessage::SetEncodings(_)
            | ClientMessage::Clipboard(_)
            | ClientMessage::UpdateRequest { .. }
            | ClientMessage::CutText(_)
            | ClientMessage::EnableContinuousUpdates { .. }
            | ClientMessage::Fence(_) => {}
        }
        Ok(())
    }

    fn update(&mut self) {
        let (wants, mut out) = (self.viewer.wants(), Vec::new());
        self.viewer.update(&self.screen, &mut out);
        assert_eq!(wants, !out.is_empty());
        if !self.decodes || !wants {
            return;
        }
        let mut ends = 0;
        self.decode(&out, |event| {
            let fence = matches!(event, ServerEvent::Fence(_));
            let end = matches!(event, ServerEvent::UpdateEnd);
            ends += u32::from(end);
            fence == (ends == 1 && !end)
        });
        assert_eq!(ends, 1);
    }

    /// Decodes the output for the viewer, all of which must be as expected.
    fn decode(&mut self, out: &[u8], mut is_expected: impl FnMut(&ServerEvent) -> bool) {
        let (mut decoder, mut input) = (Decoder::new(), BytesMut::from(out));
        while let Some(event) = decoder.next(&mut input, &mut self.shown).expect("one of ours") {
            assert!(is_expected(&event), "{event:?}");
        }
        assert!(input.is_empty());
    }

    /// Asks for the rest: the size and then the pixels.
    fn finish(mut self) {
        let rect = Rect::new(0, 0, 100, 100);
        let asked_only = ClientMessage::EnableContinuousUpdates { enable: false, rect };
        if self.act(&asked_only).is_err() {
            return;
        }
        for _ in 0..2 {
            let message = ClientMessage::UpdateRequest { incremental: true, rect };
            if self.act(&message).is_err() {
                return;
            }
            self.update();
        }
        assert!(!self.decodes || self.shown == self.screen);
    }
}
