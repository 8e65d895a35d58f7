//! A small RFB server, in threads of its own.

use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::BytesMut;
use sutura_vnc::rfb::{
    ClientMessage, Clipboard, ClipboardOut, Cursor, PixelFormat, RfbError, Security, ServerInit,
    Viewer, ViewerHandshake, ViewerStep, encoding, write_bell, write_clipboard, write_cut_text,
};
use sutura_vnc::{Framebuffer, Rect};

use super::tls_door::TlsDoor;
use super::wire::{TICK, Wire, read, write};

/// The server's challenge. The right answer is the same backwards.
pub const CHALLENGE: [u8; 16] = *b"0123456789abcdef";

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
    Text(String),
    Bell,
}

#[derive(Debug)]
struct Desktop {
    screen: Framebuffer,
    happened: Vec<Happening>,
    /// Each with the number of its connection.
    heard: Vec<(usize, ClientMessage)>,
    /// Texts that came over the extended clipboard.
    texts: Vec<String>,
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
    door: Door,
    /// Whether it has the extended clipboard and extended keys.
    rich: bool,
}

/// How clients get in.
#[derive(Debug, Clone)]
pub enum Door {
    /// At once.
    Open,
    /// With [`right_answer`].
    Password,
    /// By VeNCrypt.
    Tls(Arc<TlsDoor>),
}

impl Screen {
    /// A server with a screen of this size; with a password, it wants [`right_answer`].
    pub fn start(width: u16, height: u16, password: bool) -> Self {
        Self::with_door(width, height, if password { Door::Password } else { Door::Open })
    }

    /// A server that clients enter in some way.
    pub fn with_door(width: u16, height: u16, door: Door) -> Self {
        Self::new(width, height, door, false).listen()
    }

    /// A server with the extended clipboard and extended keys.
    pub fn rich(width: u16, height: u16) -> Self {
        Self::new(width, height, Door::Open, true).listen()
    }

    fn new(width: u16, height: u16, door: Door, rich: bool) -> Self {
        let screen = Framebuffer::new(width, height).unwrap();
        let (happened, heard, texts) = (Vec::new(), Vec::new(), Vec::new());
        let desktop =
            Desktop { screen, happened, heard, texts, asked: 0, connections: 0, closed: 0 };
        let desktop = Arc::new(Mutex::new(desktop));
        Self { address: String::new(), desktop, door, rich }
    }

    /// Listens on a TCP port.
    fn listen(mut self) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        self.address = listener.local_addr().unwrap().to_string();
        let accepting = self.clone();
        std::thread::spawn(move || {
            for tcp in listener.incoming() {
                let tcp = tcp.unwrap();
                tcp.set_read_timeout(Some(TICK)).unwrap();
                accepting.welcome(Box::new(tcp));
            }
        });
        self
    }

    /// A server at a UNIX socket.
    pub fn at(path: &Path, width: u16, height: u16) -> Self {
        let mut screen = Self::new(width, height, Door::Open, false);
        screen.address = format!("unix:{}", path.display());
        let (listener, accepting) = (UnixListener::bind(path).unwrap(), screen.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let stream = stream.unwrap();
                stream.set_read_timeout(Some(TICK)).unwrap();
                accepting.welcome(Box::new(stream));
            }
        });
        screen
    }

    fn welcome(&self, wire: Box<dyn Wire>) {
        let server = self.clone();
        // A client may go at any time.
        std::thread::spawn(move || drop(server.serve(wire)));
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

    /// A text for clients with the extended clipboard.
    pub fn copy_text(&self, text: &str) {
        self.desktop().happened.push(Happening::Text(text.to_owned()));
    }

    pub fn ring(&self) {
        self.desktop().happened.push(Happening::Bell);
    }

    /// The messages of clients, apart from requests for updates and the like.
    pub fn heard(&self) -> Vec<ClientMessage> {
        self.desktop().heard.iter().map(|(_, message)| message.clone()).collect()
    }

    /// The same, each with the number of its connection, of which the first is 1.
    pub fn heard_by_connection(&self) -> Vec<(usize, ClientMessage)> {
        self.desktop().heard.clone()
    }

    /// The texts that came over the extended clipboard.
    pub fn texts(&self) -> Vec<String> {
        self.desktop().texts.clone()
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

    fn serve(&self, wire: Box<dyn Wire>) -> Result<(), RfbError> {
        let mut input = BytesMut::new();
        let Some(mut wire) = self.let_in(wire, &mut input)? else { return Ok(()) };
        let number = {
            let mut desktop = self.desktop();
            desktop.connections += 1;
            desktop.connections
        };
        let screen = self.picture();
        let mut client = Client {
            number,
            viewer: Viewer::new(screen.width(), screen.height()),
            clipboard: Clipboard::default(),
            seen: 0,
            out: Vec::new(),
        };
        client.viewer.painted(screen.bounds());
        if self.rich {
            client.viewer.take_extended_keys();
        }
        while self.desktop().closed < number && read(&mut wire, &mut input) {
            while let Some(message) = ClientMessage::parse(&mut input)? {
                client.viewer.on_message(&message, &mut client.out)?;
                self.hear(message, &mut client);
            }
            self.show(&mut client)?;
            if write(&mut wire, &std::mem::take(&mut client.out)).is_err() {
                break;
            }
        }
        Ok(())
    }

    fn hear(&self, message: ClientMessage, client: &mut Client) {
        match message {
            ClientMessage::Key { .. }
            | ClientMessage::ExtendedKey { .. }
            | ClientMessage::Pointer { .. }
            | ClientMessage::CutText(_) => self.desktop().heard.push((client.number, message)),
            ClientMessage::SetDesktopSize { width, height, .. } => {
                self.resize(width, height);
                client.viewer.resize_result(0);
            }
            ClientMessage::UpdateRequest { .. } => self.desktop().asked += 1,
            ClientMessage::SetEncodings(encodings) if self.rich => {
                let extended = encodings.contains(&encoding::EXTENDED_CLIPBOARD);
                let told = client.clipboard.set_extended(extended);
                client.tell(told);
            }
            ClientMessage::Clipboard(message) => {
                let (answer, text) = client.clipboard.on_message(message);
                client.tell(answer);
                self.desktop().texts.extend(text);
            }
            _ => {}
        }
    }

    /// Shows a client what has happened since.
    fn show(&self, client: &mut Client) -> Result<(), RfbError> {
        let desktop = self.desktop();
        for happening in &desktop.happened[client.seen..] {
            match happening {
                Happening::Painted(rect) => client.viewer.painted(*rect),
                Happening::Copied(from, to) => client.viewer.copied(*from, *to),
                Happening::Resized(width, height) => client.viewer.resized(*width, *height)?,
                Happening::Cursor(cursor) => client.viewer.cursor(Some(cursor.clone())),
                Happening::CutText(text) => write_cut_text(text, &mut client.out),
                Happening::Text(text) => {
                    let told = client.clipboard.offer(text);
                    client.tell(Some(told));
                }
                Happening::Bell => write_bell(&mut client.out),
            }
        }
        client.seen = desktop.happened.len();
        if client.viewer.wants() {
            client.viewer.update(&desktop.screen, &mut client.out);
        }
        Ok(())
    }

    /// Lets a client in. Returns how to speak to it.
    fn let_in(
        &self,
        mut wire: Box<dyn Wire>,
        input: &mut BytesMut,
    ) -> Result<Option<Box<dyn Wire>>, RfbError> {
        let mut handshake = ViewerHandshake::new();
        let mut out = Vec::new();
        if let Door::Tls(door) = &self.door {
            let Some(inside) = door.let_in(wire) else { return Ok(None) };
            wire = inside;
            // The rest is as if the client had been let in by the oldest version.
            input.extend_from_slice(b"RFB 003.003\n");
            handshake.receive(input, &mut out)?;
            handshake.offer(Security::None, &mut out);
            out.clear();
        } else {
            handshake.start(&mut out);
        }
        loop {
            let step = handshake.receive(input, &mut out)?;
            match step {
                ViewerStep::More if !read(&mut wire, input) => return Ok(None),
                ViewerStep::More => {}
                ViewerStep::Version if matches!(self.door, Door::Password) => {
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
                    return Ok(write(&mut wire, &out).is_ok().then_some(wire));
                }
            }
            if write(&mut wire, &std::mem::take(&mut out)).is_err() {
                return Ok(None);
            }
        }
    }
}

/// A client that was let in.
struct Client {
    number: usize,
    viewer: Viewer,
    clipboard: Clipboard,
    /// How much of what has happened it was told.
    seen: usize,
    out: Vec<u8>,
}

impl Client {
    fn tell(&mut self, told: Option<ClipboardOut>) {
        match told {
            None => {}
            Some(ClipboardOut::Latin1(text)) => write_cut_text(&text, &mut self.out),
            Some(ClipboardOut::Extended(message)) => write_clipboard(&message, &mut self.out),
        }
    }
}
