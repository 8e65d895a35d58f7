//! A small viewer, in a thread of its own.

use std::collections::BTreeSet;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::BytesMut;
use sutura_vnc::Framebuffer;
use sutura_vnc::rfb::{
    ClientMessage, Clipboard, ClipboardMessage, ClipboardOut, Cursor, Decoder, PixelFormat,
    RfbError, ServerEvent, ServerHandshake, ServerStep, encoding,
};

use super::screen::Screen;
use super::wait_until;
use super::wire::{TICK, Wire, read, write};

/// The screen and the messages that a viewer has seen.
#[derive(Debug, Default)]
struct Seen {
    screen: Option<Framebuffer>,
    name: String,
    cursor: Option<Cursor>,
    text: Vec<u8>,
    /// The newest text that came over the extended clipboard.
    utf8: String,
    /// Whether keys may be sent with their places.
    takes_extended_keys: bool,
    bells: usize,
    copies: usize,
    /// The most that it has seen of the marks of [`Screen::mark`] at once.
    marks: usize,
    /// Why it is over.
    end: Option<String>,
}

/// What a viewer makes use of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    Plain,
    /// Updates that are not asked for.
    Continuous,
    /// The extended clipboard and extended keys.
    Rich,
}

/// A viewer.
#[derive(Debug)]
pub struct Watcher {
    seen: Arc<Mutex<Seen>>,
    orders: Arc<Mutex<Vec<u8>>>,
    clipboard: Arc<Mutex<Clipboard>>,
    stop: Arc<AtomicBool>,
}

impl Watcher {
    /// A viewer that connects to an address, and answers a challenge with `answer`.
    pub fn start(address: &str, answer: [u8; 16]) -> Self {
        Self::new(address, Some(answer), Manner::Plain)
    }

    /// A viewer whose user never types the password.
    pub fn silent(address: &str) -> Self {
        Self::new(address, None, Manner::Plain)
    }

    /// A viewer that asks for no update, as it wants them continuously.
    pub fn continuous(address: &str) -> Self {
        Self::new(address, Some([0; 16]), Manner::Continuous)
    }

    /// A viewer with the extended clipboard and extended keys.
    pub fn rich(address: &str) -> Self {
        Self::new(address, Some([0; 16]), Manner::Rich)
    }

    fn new(address: &str, answer: Option<[u8; 16]>, manner: Manner) -> Self {
        let wire = dial(address);
        let watcher = Self {
            seen: Arc::default(),
            orders: Arc::default(),
            clipboard: Arc::default(),
            stop: Arc::default(),
        };
        let (seen, orders, clipboard, stop) = (
            watcher.seen.clone(),
            watcher.orders.clone(),
            watcher.clipboard.clone(),
            watcher.stop.clone(),
        );
        std::thread::spawn(move || {
            let watching = Watching { wire, answer, manner, seen: &seen, clipboard: &clipboard };
            let end = watching.watch(&orders, &stop);
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

    /// Copies a text, which the other side is told as it can take it.
    pub fn copy_text(&self, text: &str) {
        let told = self.clipboard.lock().unwrap().offer(text);
        tell(told, &mut self.orders.lock().unwrap());
    }

    pub fn wait_for_utf8(&self, text: &str) {
        wait_until("the clipboard", || self.seen().utf8 == text);
    }

    pub fn takes_extended_keys(&self) -> bool {
        self.seen().takes_extended_keys
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

fn dial(address: &str) -> Box<dyn Wire> {
    if let Some(path) = address.strip_prefix("unix:") {
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(TICK)).unwrap();
        return Box::new(stream);
    }
    let tcp = TcpStream::connect(address).unwrap();
    tcp.set_read_timeout(Some(TICK)).unwrap();
    Box::new(tcp)
}

fn tell(told: ClipboardOut, out: &mut Vec<u8>) {
    let message = match told {
        ClipboardOut::Latin1(text) => ClientMessage::CutText(text),
        ClipboardOut::Extended(message) => ClientMessage::Clipboard(message),
    };
    message.write(out);
}

/// The thread of a viewer.
struct Watching<'a> {
    wire: Box<dyn Wire>,
    answer: Option<[u8; 16]>,
    manner: Manner,
    seen: &'a Mutex<Seen>,
    clipboard: &'a Mutex<Clipboard>,
}

impl Watching<'_> {
    fn watch(mut self, orders: &Mutex<Vec<u8>>, stop: &AtomicBool) -> Result<(), RfbError> {
        let (mut input, mut out) = (BytesMut::new(), Vec::new());
        let Some(mut screen) = self.enter(&mut input, &mut out)? else { return Ok(()) };
        ClientMessage::SetPixelFormat(PixelFormat::RGB32).write(&mut out);
        let more: &[i32] = match self.manner {
            Manner::Plain => &[],
            Manner::Continuous => &encoding::CONTINUOUS,
            Manner::Rich => &encoding::INPUT,
        };
        ClientMessage::SetEncodings([&encoding::WANTED, more].concat()).write(&mut out);
        self.ask(false, &screen, &mut out);
        let mut decoder = Decoder::new();
        loop {
            out.append(&mut orders.lock().unwrap());
            let gone = stop.load(Ordering::Relaxed)
                || write(&mut self.wire, &std::mem::take(&mut out)).is_err()
                || !read(&mut self.wire, &mut input);
            if gone {
                return Ok(());
            }
            while let Some(event) = decoder.next(&mut input, &mut screen)? {
                self.see(event, &screen, &mut out);
            }
        }
    }

    /// Gets in; `None` if the server is gone before.
    fn enter(
        &mut self,
        input: &mut BytesMut,
        out: &mut Vec<u8>,
    ) -> Result<Option<Framebuffer>, RfbError> {
        let mut handshake = ServerHandshake::new(true);
        loop {
            let step = handshake.receive(input, out)?;
            if let (ServerStep::Challenge(_), Some(answer)) = (&step, self.answer) {
                handshake.answer(answer, out);
            }
            if let ServerStep::Done(init) = step {
                self.seen.lock().unwrap().name = init.name;
                return Ok(Some(Framebuffer::new(init.width, init.height).unwrap()));
            }
            if write(&mut self.wire, &std::mem::take(out)).is_err() || !read(&mut self.wire, input)
            {
                return Ok(None);
            }
        }
    }

    /// Asks for an update, unless they come without.
    fn ask(&self, incremental: bool, screen: &Framebuffer, out: &mut Vec<u8>) {
        if self.manner != Manner::Continuous {
            ClientMessage::UpdateRequest { incremental, rect: screen.bounds() }.write(out);
        }
    }

    fn see(&self, event: ServerEvent, screen: &Framebuffer, out: &mut Vec<u8>) {
        let mut seen = self.seen.lock().unwrap();
        match event {
            ServerEvent::UpdateEnd => {
                self.ask(true, screen, out);
                let marks: BTreeSet<u32> =
                    screen.rows(screen.bounds()).flatten().map(|pixel| pixel >> 16).collect();
                seen.marks = seen.marks.max(marks.len());
                seen.screen = Some(screen.clone());
            }
            ServerEvent::Copied { .. } => seen.copies += 1,
            ServerEvent::Cursor(cursor) => seen.cursor = Some(cursor),
            ServerEvent::CutText(text) => seen.text = text.to_vec(),
            ServerEvent::Clipboard(message) => {
                let mut clipboard = self.clipboard.lock().unwrap();
                if let ClipboardMessage::Caps { .. } = message {
                    clipboard.set_extended(true).into_iter().for_each(|told| tell(told, out));
                }
                let (answer, text) = clipboard.on_message(message);
                answer.into_iter().for_each(|answer| tell(answer, out));
                text.into_iter().for_each(|text| seen.utf8 = text);
            }
            ServerEvent::ExtendedKeys => seen.takes_extended_keys = true,
            ServerEvent::Bell => seen.bells += 1,
            ServerEvent::Named(name) => seen.name = name,
            ServerEvent::EndOfContinuousUpdates | ServerEvent::Resized { .. }
                if self.manner == Manner::Continuous =>
            {
                let rect = screen.bounds();
                ClientMessage::EnableContinuousUpdates { enable: true, rect }.write(out);
            }
            ServerEvent::Fence(fence) => {
                let answer = fence.answer().map(ClientMessage::Fence);
                answer.into_iter().for_each(|answer| answer.write(out));
            }
            ServerEvent::Painted(_)
            | ServerEvent::EndOfContinuousUpdates
            | ServerEvent::Resized { .. }
            | ServerEvent::Screens(_)
            | ServerEvent::ResizeResult { .. } => {}
        }
    }
}
