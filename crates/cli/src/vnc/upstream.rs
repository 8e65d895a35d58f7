//! The RFB server and its screen.

use std::time::Duration;

use sutura_vnc::rfb::{
    ClientMessage, Cursor, Decoder, PixelFormat, RfbError, ServerEvent, ServerHandshake,
    ServerStep, encoding,
};
use sutura_vnc::{Allowance, Framebuffer};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

use super::pressed::Pressed;
use super::socket::{MAX_WAITING, Socket};
use super::{HANDSHAKE_TIMEOUT, SILENCE_TIMEOUT};
use crate::url::Authority;

/// The shortest time from one request for changes to the next: 60 a second.
const ASK_INTERVAL: Duration = Duration::from_micros(16_667);

/// The RFB server before it has let anybody in.
#[derive(Debug)]
pub struct Knocking {
    socket: Socket,
    handshake: ServerHandshake,
    unasked: Unasked,
}

/// The answer that an RFB server wants.
#[derive(Debug)]
pub enum Wants {
    /// The answer to this challenge.
    Password([u8; 16]),
    /// Nothing: it shows its screen.
    Nothing(Box<Upstream>),
}

/// The RFB server, and its screen.
#[derive(Debug)]
pub struct Upstream {
    socket: Socket,
    decoder: Decoder,
    pub screen: Framebuffer,
    pub name: String,
    /// How the pointer looks, for viewers that come back.
    pub cursor: Option<Cursor>,
    pressed: Pressed,
    /// When the server was last asked for changes.
    asked: Option<Instant>,
    /// Whether the server has answered.
    answered: bool,
    /// Whether the server must be asked for the whole screen.
    everything: bool,
    unasked: Unasked,
    /// How much the server may have painted.
    allowance: Allowance,
}

/// Whether a server sends updates unasked (ContinuousUpdates).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unasked {
    /// The server does not, and is not to.
    No,
    /// The server is to, if it says that it can.
    Wanted,
    /// The server does.
    Yes,
}

/// Why a server cannot be used.
#[derive(Debug)]
pub enum Unusable {
    /// The password is wrong.
    Password(String),
    /// Any other reason.
    Other(String),
}

impl From<RfbError> for Unusable {
    fn from(error: RfbError) -> Self {
        match error {
            RfbError::Password(_) => Self::Password(error.to_string()),
            _ => Self::Other(error.to_string()),
        }
    }
}

impl Knocking {
    /// Connects.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub async fn connect(to: &Authority) -> Result<Self, Unusable> {
        let failed = |why: &dyn std::fmt::Display| {
            Unusable::Other(format!("cannot connect to the RFB server at {to}: {why}"))
        };
        let tcp = timeout(HANDSHAKE_TIMEOUT, TcpStream::connect((to.host.as_str(), to.port)));
        let tcp = tcp.await.map_err(|_| failed(&"no answer"))?.map_err(|e| failed(&e))?;
        // Other viewers of the server stay.
        let handshake = ServerHandshake::new(true);
        Ok(Self { socket: Socket::new(tcp), handshake, unasked: Unasked::No })
    }

    /// Has the server send updates without being asked for each, if it can.
    pub fn want_unasked(&mut self) {
        self.unasked = Unasked::Wanted;
    }

    /// Answers the challenge.
    pub fn answer(&mut self, response: [u8; 16]) {
        self.handshake.answer(response, &mut self.socket.output);
    }

    /// Waits until the server lets us in or wants a password. In the second case, call it again after
    /// [`answer`](Self::answer).
    ///
    /// # Errors
    /// The server refuses, does not answer, or is no RFB server.
    pub async fn knock(mut self) -> Result<(Option<Self>, Wants), Unusable> {
        let gone = |e: std::io::Error| Unusable::Other(gone(&e));
        loop {
            let Socket { input, output, .. } = &mut self.socket;
            match self.handshake.receive(input, output)? {
                ServerStep::More => {}
                ServerStep::Challenge(challenge) => {
                    return Ok((Some(self), Wants::Password(challenge)));
                }
                ServerStep::Done(init) => {
                    let screen = Framebuffer::new(init.width, init.height);
                    let screen = screen.map_err(|e| Unusable::Other(e.to_string()))?;
                    let upstream = Upstream::new(self.socket, screen, init.name, self.unasked);
                    return Ok((None, Wants::Nothing(Box::new(upstream))));
                }
            }
            let step = timeout(HANDSHAKE_TIMEOUT, self.socket.exchange(true));
            let step =
                step.await.map_err(|_| Unusable::Other("the RFB server is silent".into()))?;
            step.map_err(gone)?;
        }
    }
}

/// Looks whether there is an RFB server, and goes away again before that has let anybody in.
///
/// # Errors
/// The server cannot be reached, or says nothing that an RFB server says first.
pub async fn try_out(to: &Authority) -> Result<(), Unusable> {
    let mut knocking = Knocking::connect(to).await?;
    let said = async {
        loop {
            let Socket { input, output, .. } = &mut knocking.socket;
            knocking.handshake.receive(input, output)?;
            // The server's first message is its version; now our answer is in `output`.
            if !output.is_empty() {
                return Ok(());
            }
            knocking.socket.exchange(true).await.map_err(|e| Unusable::Other(gone(&e)))?;
        }
    };
    let silent = || Err(Unusable::Other(format!("the RFB server at {to} is silent")));
    timeout(SILENCE_TIMEOUT, said).await.unwrap_or_else(|_| silent())
}

/// The failure for a server whose connection broke.
pub fn gone(error: &std::io::Error) -> String {
    if error.kind() == std::io::ErrorKind::UnexpectedEof {
        return "the RFB server has closed the connection".into();
    }
    format!("the connection to the RFB server broke: {error}")
}

impl Upstream {
    fn new(mut socket: Socket, screen: Framebuffer, name: String, unasked: Unasked) -> Self {
        ClientMessage::SetPixelFormat(PixelFormat::RGB32).write(&mut socket.output);
        let mut encodings = encoding::WANTED.to_vec();
        if unasked != Unasked::No {
            encodings.extend(encoding::CONTINUOUS);
        }
        ClientMessage::SetEncodings(encodings).write(&mut socket.output);
        Self {
            socket,
            decoder: Decoder::new(),
            screen,
            name,
            cursor: None,
            pressed: Pressed::default(),
            asked: None,
            answered: true,
            everything: true,
            unasked,
            allowance: Allowance::default(),
        }
    }

    /// Reads or writes some. May be cancelled and called again.
    ///
    /// # Errors
    /// The server is gone.
    pub async fn exchange(&mut self, read: bool) -> Result<(), String> {
        self.socket
            .exchange(read && self.socket.output.len() < MAX_WAITING)
            .await
            .map_err(|e| gone(&e))
    }

    /// When the server may paint again, if it has used up its allowance of pixels.
    pub fn wait_until(&self, now: Instant) -> Option<Instant> {
        self.allowance.wait_until(now.into_std()).map(Into::into)
    }

    /// The next event of the server; nothing while it must wait.
    ///
    /// # Errors
    /// The server does not keep to RFB.
    pub fn next(&mut self) -> Result<Option<ServerEvent>, RfbError> {
        let now = Instant::now();
        if self.wait_until(now).is_some() {
            return Ok(None);
        }
        let event = self.decoder.next(&mut self.socket.input, &mut self.screen)?;
        let painted = match &event {
            Some(ServerEvent::Painted(rect) | ServerEvent::Copied { to: rect, .. }) => rect.area(),
            Some(ServerEvent::Resized { .. }) => self.screen.bounds().area(),
            _ => 0,
        };
        self.allowance.spend(painted as u64, now.into_std());
        match &event {
            Some(ServerEvent::UpdateEnd) => self.answered = true,
            Some(ServerEvent::Resized { .. }) => {
                self.everything = true;
                self.want_all_unasked();
            }
            Some(ServerEvent::EndOfContinuousUpdates) if self.unasked == Unasked::Wanted => {
                self.unasked = Unasked::Yes;
                self.want_all_unasked();
            }
            // All before it was painted.
            Some(ServerEvent::Fence(fence)) => {
                if let Some(answer) = fence.answer() {
                    ClientMessage::Fence(answer).write(&mut self.socket.output);
                }
            }
            Some(ServerEvent::Cursor(cursor)) => self.cursor = Some(cursor.clone()),
            Some(ServerEvent::Named(name)) => self.name.clone_from(name),
            _ => {}
        }
        Ok(event)
    }

    /// Asks for updates of the whole screen without further requests, if the server sends such updates.
    fn want_all_unasked(&mut self) {
        if self.unasked == Unasked::Yes {
            let rect = self.screen.bounds();
            ClientMessage::EnableContinuousUpdates { enable: true, rect }
                .write(&mut self.socket.output);
        }
    }

    /// Whether the screen shows a part of an update.
    pub fn is_in_update(&self) -> bool {
        self.decoder.is_in_update()
    }

    /// Tells the server a message of a viewer.
    pub fn say(&mut self, message: &ClientMessage) {
        self.pressed.note(message);
        message.write(&mut self.socket.output);
    }

    /// Whether the server still has to read many messages.
    pub fn is_behind(&self) -> bool {
        self.socket.output.len() >= MAX_WAITING
    }

    /// Releases all keys and buttons, because nobody can do that any more.
    pub fn release(&mut self) {
        for message in self.pressed.release() {
            message.write(&mut self.socket.output);
        }
    }

    /// When the server may be asked for changes; `None` while it has not answered the last request, or need
    /// not be asked.
    pub fn next_ask(&self) -> Option<Instant> {
        let at = self.asked.map_or_else(Instant::now, |asked| asked + ASK_INTERVAL);
        // A server that sends changes unasked is asked for the whole screen only.
        (self.answered && (self.everything || self.unasked != Unasked::Yes)).then_some(at)
    }

    /// Asks the server for changes.
    pub fn ask(&mut self) {
        let incremental = !std::mem::take(&mut self.everything);
        let rect = self.screen.bounds();
        ClientMessage::UpdateRequest { incremental, rect }.write(&mut self.socket.output);
        self.asked = Some(Instant::now());
        self.answered = false;
    }

    /// Writes all that waits.
    ///
    /// # Errors
    /// The server is gone.
    pub async fn flush(&mut self) -> Result<(), String> {
        self.socket.flush().await.map_err(|e| gone(&e))
    }
}
