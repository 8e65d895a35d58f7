//! A small RFB server and a small viewer, each in threads of its own.

use std::collections::BTreeSet;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::BytesMut;
use sutura_vnc::rfb::{
    ClientMessage, Cursor, Decoder, PixelFormat, RfbError, Security, ServerEvent, ServerHandshake,
    ServerInit, ServerStep, Viewer, ViewerHandshake, ViewerStep, encoding, write_bell,
    write_cut_text,
};
use sutura_vnc::{Framebuffer, Rect};

use super::wait_until;

/// How often a thread looks whether there is work other than reading.
const TICK: Duration = Duration::from_millis(2);
/// The server's challenge. The right answer is the same backwards.
const CHALLENGE: [u8; 16] = *b"0123456789abcdef";

/// The answer to the server's challenge.
pub fn right_answer() -> [u8; 16] {
    let mut answer = CHALLENGE;
    answer.reverse();
    answer
}

/// A change of the server's screen.
#[derive(Debug, Clone)]
enum Happening {
    Painted(Rect),
    Copied(Rect, Rect),
    Resized(u16, u16),
    Cursor(Cursor),
    CutText(Vec<u8>),
    Bell,
}

#[derive(Debug)]
struct Desktop {
    screen: Framebuffer,
    happened: Vec<Happening>,
    heard: Vec<ClientMessage>,
    /// How often updates were asked for.
    asked: usize,
    connections: usize,
    /// Connections up to this number are closed.
    closed: usize,
}

/// An RFB server.
#[derive(Debug, Clone)]
pub struct Screen {
    pub address: String,
    desktop: Arc<Mutex<Desktop>>,
    password: bool,
}

impl Screen {
    /// A server with a screen of this size; with a password, it wants [`right_answer`].
    pub fn start(width: u16, height: u16, password: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let screen = Framebuffer::new(width, height).unwrap();
        let (happened, heard) = (Vec::new(), Vec::new());
        let desktop = Desktop { screen, happened, heard, asked: 0, connections: 0, closed: 0 };
        let server = Self { address, desktop: Arc::new(Mutex::new(desktop)), password };
        let accepting = server.clone();
        std::thread::spawn(move || {
            for tcp in listener.incoming() {
                let server = accepting.clone();
                // A client may go at any time.
                std::thread::spawn(move || drop(server.serve(tcp.unwrap())));
            }
        });
        server
    }

    fn desktop(&self) -> MutexGuard<'_, Desktop> {
        self.desktop.lock().unwrap()
    }

    pub fn picture(&self) -> Framebuffer {
        self.desktop().screen.clone()
    }

    pub fn fill(&self, rect: Rect, pixel: u32) {
        let mut desktop = self.desktop();
        desktop.screen.fill(rect, pixel);
        desktop.happened.push(Happening::Painted(rect));
    }

    /// Paints pixels of many colours.
    pub fn noise(&self, rect: Rect, seed: u32) {
        let mut desktop = self.desktop();
        let mut state = seed | 1;
        for row in 0..rect.height {
            for pixel in desktop.screen.columns_mut(rect.x, rect.y + row, rect.width) {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                *pixel = state >> 8;
            }
        }
        desktop.happened.push(Happening::Painted(rect));
    }

    /// Paints pixels of many colours, whose red is this mark.
    pub fn mark(&self, rect: Rect, mark: u8) {
        let mut desktop = self.desktop();
        let mut state = u32::from(mark);
        for row in 0..rect.height {
            for pixel in desktop.screen.columns_mut(rect.x, rect.y + row, rect.width) {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                *pixel = u32::from(mark) << 16 | state >> 16;
            }
        }
        desktop.happened.push(Happening::Painted(rect));
    }

    pub fn copy(&self, from: Rect, to: Rect) {
        let mut desktop = self.desktop();
        desktop.screen.copy(from, to);
        desktop.happened.push(Happening::Copied(from, to));
    }

    pub fn resize(&self, width: u16, height: u16) {
        let mut desktop = self.desktop();
        desktop.screen.resize(width, height).unwrap();
        desktop.happened.push(Happening::Resized(width, height));
    }

    pub fn cursor(&self, cursor: Cursor) {
        self.desktop().happened.push(Happening::Cursor(cursor));
    }

    pub fn say(&self, text: &[u8]) {
        self.desktop().happened.push(Happening::CutText(text.to_vec()));
    }

    pub fn ring(&self) {
        self.desktop().happened.push(Happening::Bell);
    }

    /// The messages of clients, apart from requests for updates and the like.
    pub fn heard(&self) -> Vec<ClientMessage> {
        self.desktop().heard.clone()
    }

    /// How often clients have asked for updates.
    pub fn asked(&self) -> usize {
        self.desktop().asked
    }

    /// How many connections were let in so far.
    pub fn connections(&self) -> usize {
        self.desktop().connections
    }

    /// Closes all connections.
    pub fn hang_up(&self) {
        let mut desktop = self.desktop();
        desktop.closed = desktop.connections;
    }

    fn serve(&self, mut tcp: TcpStream) -> Result<(), RfbError> {
        tcp.set_read_timeout(Some(TICK)).unwrap();
        let mut input = BytesMut::new();
        if !self.let_in(&mut tcp, &mut input)? {
            return Ok(());
        }
        let number = {
            let mut desktop = self.desktop();
            desktop.connections += 1;
            desktop.connections
        };
        let screen = self.picture();
        let mut viewer = Viewer::new(screen.width(), screen.height());
        let mut seen = 0;
        viewer.painted(screen.bounds());
        while self.desktop().closed < number && read(&mut tcp, &mut input) {
            let mut out = Vec::new();
            while let Some(message) = ClientMessage::parse(&mut input)? {
                viewer.on_message(&message, &mut out)?;
                match message {
                    ClientMessage::Key { .. }
                    | ClientMessage::Pointer { .. }
                    | ClientMessage::CutText(_) => self.desktop().heard.push(message),
                    ClientMessage::SetDesktopSize { width, height, .. } => {
                        self.resize(width, height);
                        viewer.resize_result(0);
                    }
                    ClientMessage::UpdateRequest { .. } => self.desktop().asked += 1,
                    _ => {}
                }
            }
            let desktop = self.desktop();
            for happening in &desktop.happened[seen..] {
                match happening {
                    Happening::Painted(rect) => viewer.painted(*rect),
                    Happening::Copied(from, to) => viewer.copied(*from, *to),
                    Happening::Resized(width, height) => viewer.resized(*width, *height)?,
                    Happening::Cursor(cursor) => viewer.cursor(Some(cursor.clone())),
                    Happening::CutText(text) => write_cut_text(text, &mut out),
                    Happening::Bell => write_bell(&mut out),
                }
            }
            seen = desktop.happened.len();
            if viewer.wants() {
                viewer.update(&desktop.screen, &mut out);
            }
            drop(desktop);
            if write(&mut tcp, &out).is_err() {
                break;
            }
        }
        Ok(())
    }

    fn let_in(&self, tcp: &mut TcpStream, input: &mut BytesMut) -> Result<bool, RfbError> {
        let mut handshake = ViewerHandshake::new();
        let mut out = Vec::new();
        handshake.start(&mut out);
        loop {
            let step = handshake.receive(input, &mut out)?;
            match step {
                ViewerStep::More if !read(tcp, input) => return Ok(false),
                ViewerStep::More => {}
                ViewerStep::Version if self.password => {
                    handshake.offer(Security::Password { challenge: CHALLENGE }, &mut out);
                }
                ViewerStep::Version => handshake.offer(Security::None, &mut out),
                ViewerStep::Response(answer) if answer == right_answer() => {
                    handshake.result(Ok(()), &mut out);
                }
                ViewerStep::Response(_) => handshake.result(Err("not this one"), &mut out),
                ViewerStep::Init { .. } => {
                    let screen = self.picture();
                    let (width, height, name) =
                        (screen.width(), screen.height(), "test desk".into());
                    let init = ServerInit { width, height, format: PixelFormat::RGB32, name };
                    handshake.init(&init, &mut out);
                    return Ok(write(tcp, &out).is_ok());
                }
            }
            if write(tcp, &out).is_err() {
                return Ok(false);
            }
            out.clear();
        }
    }
}

fn write(tcp: &mut TcpStream, out: &[u8]) -> std::io::Result<()> {
    tcp.write_all(out)
}

/// Reads the bytes that there are; returns whether the connection is open.
fn read(tcp: &mut TcpStream, input: &mut BytesMut) -> bool {
    let mut chunk = [0; 65536];
    match tcp.read(&mut chunk) {
        Ok(size) => {
            input.extend_from_slice(&chunk[..size]);
            size > 0
        }
        Err(error) => matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
    }
}

/// The screen and the messages that a viewer has seen.
#[derive(Debug, Default)]
struct Seen {
    screen: Option<Framebuffer>,
    name: String,
    cursor: Option<Cursor>,
    text: Vec<u8>,
    bells: usize,
    copies: usize,
    /// The most that it has seen of the marks of [`Screen::mark`] at once.
    marks: usize,
    /// Why it is over.
    end: Option<String>,
}

/// A viewer.
#[derive(Debug)]
pub struct Watcher {
    seen: Arc<Mutex<Seen>>,
    orders: Arc<Mutex<Vec<u8>>>,
    stop: Arc<AtomicBool>,
}

impl Watcher {
    /// A viewer that connects to an address, and answers a challenge with `answer`.
    pub fn start(address: &str, answer: [u8; 16]) -> Self {
        Self::new(address, Some(answer), false)
    }

    /// A viewer whose user never types the password.
    pub fn silent(address: &str) -> Self {
        Self::new(address, None, false)
    }

    /// A viewer that asks for no update, as it wants them continuously.
    pub fn continuous(address: &str) -> Self {
        Self::new(address, Some([0; 16]), true)
    }

    fn new(address: &str, answer: Option<[u8; 16]>, continuous: bool) -> Self {
        let mut tcp = TcpStream::connect(address).unwrap();
        tcp.set_read_timeout(Some(TICK)).unwrap();
        let watcher = Self { seen: Arc::default(), orders: Arc::default(), stop: Arc::default() };
        let (seen, orders, stop) =
            (watcher.seen.clone(), watcher.orders.clone(), watcher.stop.clone());
        std::thread::spawn(move || {
            let end = watch(&mut tcp, answer, continuous, &seen, &orders, &stop);
            let reason = end.err().map_or("closed".into(), |error| error.to_string());
            seen.lock().unwrap().end = Some(reason);
        });
        watcher
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap()
    }

    /// Sends a message to the server.
    pub fn say(&self, message: &ClientMessage) {
        message.write(&mut self.orders.lock().unwrap());
    }

    /// Waits until it shows the same as the server.
    pub fn wait_for(&self, server: &Screen) {
        wait_until("the picture", || {
            assert_eq!(self.end(), None);
            self.seen().screen.as_ref().is_some_and(|screen| *screen == server.picture())
        });
    }

    pub fn wait_for_text(&self, text: &[u8]) {
        wait_until("the clipboard", || self.seen().text == text);
    }

    pub fn wait_for_bells(&self, bells: usize) {
        wait_until("the bell", || self.seen().bells == bells);
    }

    pub fn wait_for_cursor(&self, cursor: &Cursor) {
        wait_until("the cursor", || self.seen().cursor.as_ref() == Some(cursor));
    }

    pub fn name(&self) -> String {
        self.seen().name.clone()
    }

    /// How often a part of the screen was copied.
    pub fn copies(&self) -> usize {
        self.seen().copies
    }

    /// The most marks of [`Screen::mark`] that it has seen at once.
    pub fn marks(&self) -> usize {
        self.seen().marks
    }

    /// Why it is over, if it is.
    pub fn end(&self) -> Option<String> {
        self.seen().end.clone()
    }

    pub fn wait_for_end(&self) -> String {
        wait_until("the end", || self.end().is_some());
        self.end().unwrap()
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn watch(
    tcp: &mut TcpStream,
    answer: Option<[u8; 16]>,
    continuous: bool,
    seen: &Mutex<Seen>,
    orders: &Mutex<Vec<u8>>,
    stop: &AtomicBool,
) -> Result<(), RfbError> {
    let (mut input, mut out) = (BytesMut::new(), Vec::new());
    let mut handshake = ServerHandshake::new(true);
    let init = loop {
        let step = handshake.receive(&mut input, &mut out)?;
        if let (ServerStep::Challenge(_), Some(answer)) = (&step, answer) {
            handshake.answer(answer, &mut out);
        }
        if let ServerStep::Done(init) = step {
            break init;
        }
        if write(tcp, &out).is_err() || !read(tcp, &mut input) {
            return Ok(());
        }
        out.clear();
    };
    let mut screen = Framebuffer::new(init.width, init.height).unwrap();
    seen.lock().unwrap().name = init.name;
    ClientMessage::SetPixelFormat(PixelFormat::RGB32).write(&mut out);
    let mut encodings = encoding::WANTED.to_vec();
    if continuous {
        encodings.extend(encoding::CONTINUOUS);
    }
    ClientMessage::SetEncodings(encodings).write(&mut out);
    let ask = |incremental, screen: &Framebuffer, out: &mut Vec<u8>| {
        ClientMessage::UpdateRequest { incremental, rect: screen.bounds() }.write(out);
    };
    if !continuous {
        ask(false, &screen, &mut out);
    }
    let mut decoder = Decoder::new();
    loop {
        out.append(&mut orders.lock().unwrap());
        if stop.load(Ordering::Relaxed) || write(tcp, &out).is_err() || !read(tcp, &mut input) {
            return Ok(());
        }
        out.clear();
        while let Some(event) = decoder.next(&mut input, &mut screen)? {
            let mut seen = seen.lock().unwrap();
            match event {
                ServerEvent::UpdateEnd => {
                    if !continuous {
                        ask(true, &screen, &mut out);
                    }
                    let marks: BTreeSet<u32> =
                        screen.rows(screen.bounds()).flatten().map(|pixel| pixel >> 16).collect();
                    seen.marks = seen.marks.max(marks.len());
                    seen.screen = Some(screen.clone());
                }
                ServerEvent::Copied { .. } => seen.copies += 1,
                ServerEvent::Cursor(cursor) => seen.cursor = Some(cursor),
                ServerEvent::CutText(text) => seen.text = text.to_vec(),
                ServerEvent::Bell => seen.bells += 1,
                ServerEvent::Named(name) => seen.name = name,
                ServerEvent::EndOfContinuousUpdates | ServerEvent::Resized { .. } if continuous => {
                    let rect = screen.bounds();
                    ClientMessage::EnableContinuousUpdates { enable: true, rect }.write(&mut out);
                }
                ServerEvent::Fence(fence) => {
                    let answer = fence.answer().map(ClientMessage::Fence);
                    answer.into_iter().for_each(|answer| answer.write(&mut out));
                }
                ServerEvent::Painted(_)
                | ServerEvent::EndOfContinuousUpdates
                | ServerEvent::Resized { .. }
                | ServerEvent::Screens(_)
                | ServerEvent::ResizeResult { .. } => {}
            }
        }
    }
}
