//! The RFB server and its screen.

use std::sync::Arc;
use std::time::Duration;

use sutura_vnc::rfb::{
    ClientMessage, Clipboard, ClipboardMessage, ClipboardOut, Cursor, Decoder, PixelFormat,
    RfbError, ServerEvent, ServerHandshake, ServerStep, encoding,
};
use sutura_vnc::{Allowance, Framebuffer};
use tokio::time::{Instant, timeout};

use super::address::ServerAddress;
use super::login::ServerLogin;
use super::pressed::Pressed;
use super::socket::{MAX_WAITING, Socket};
use super::{HANDSHAKE_TIMEOUT, SILENCE_TIMEOUT};
use crate::trust::why_no_tls;

/// The shortest time from one request for changes to the next: 60 a second.
const ASK_INTERVAL: Duration = Duration::from_micros(16_667);

/// The RFB server before it has let anybody in.
#[derive(Debug)]
pub struct Knocking {
    to: ServerAddress,
    login: Arc<ServerLogin>,
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
    /// Whether the server takes keys with their places on the keyboard.
    pub takes_extended_keys: bool,
    clipboard: Clipboard,
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
            RfbError::UserWanted => Self::Other(format!(
                "{error}: give them to `sutura vnc serve` by --server-user and --server-password-file"
            )),
            _ => Self::Other(error.to_string()),
        }
    }
}

impl Knocking {
    /// Connects.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub async fn connect(to: &ServerAddress, login: &Arc<ServerLogin>) -> Result<Self, Unusable> {
        let failed = |why: &dyn std::fmt::Display| {
            Unusable::Other(format!("cannot connect to the RFB server at {to}: {why}"))
        };
        let connected = timeout(HANDSHAKE_TIMEOUT, to.connect()).await;
        let (socket, here) =
            connected.map_err(|_| failed(&"no answer"))?.map_err(|e| failed(&e))?;
        // Other viewers of the server stay.
        let handshake = ServerHandshake::new(true).with_login(login.policy(here));
        let (to, login) = (to.clone(), login.clone());
        Ok(Self { to, login, socket, handshake, unasked: Unasked::No })
    }

    /// Has the server send updates without being asked for each, if it can.
    pub fn want_unasked(&mut self) {
        self.unasked = Unasked::Wanted;
    }

    /// Answers the challenge.
    pub fn answer(&mut self, response: [u8; 16]) {
        self.handshake.answer(response, &mut self.socket.output);
    }

    /// Waits until the server lets us in or wants a password that is not here. In the second case, call it again after
    /// [`answer`](Self::answer).
    ///
    /// # Errors
    /// The server refuses, does not answer, or is no RFB server.
    pub async fn knock(mut self) -> Result<(Option<Self>, Wants), Unusable> {
        let gone = |e: std::io::Error| Unusable::Other(gone(&e));
        loop {
            let Socket { input, output, .. } = &mut self.socket;
            match self.handshake.receive(input, output)? {
                ServerStep::More => {
                    let step = timeout(HANDSHAKE_TIMEOUT, self.socket.exchange(true));
                    let step = step
                        .await
                        .map_err(|_| Unusable::Other("the RFB server is silent".into()))?;
                    step.map_err(gone)?;
                }
                ServerStep::Challenge(challenge) => match self.login.answer(challenge) {
                    Some(response) => self.answer(response),
                    None => return Ok((Some(self), Wants::Password(challenge))),
                },
                ServerStep::User => {
                    let (name, password) = self.login.user().unwrap_or_default();
                    self.handshake.log_in(name, password, output);
                }
                ServerStep::StartTls => self = self.start_tls().await?,
                ServerStep::Done(init) => {
                    let screen = Framebuffer::new(init.width, init.height);
                    let screen = screen.map_err(|e| Unusable::Other(e.to_string()))?;
                    let upstream = Upstream::new(self.socket, screen, init.name, self.unasked);
                    return Ok((None, Wants::Nothing(Box::new(upstream))));
                }
            }
        }
    }
}

impl Knocking {
    async fn start_tls(self) -> Result<Self, Unusable> {
        let Self { to, login, socket, mut handshake, unasked } = self;
        let failed = |why: &dyn std::fmt::Display| {
            Unusable::Other(format!("no TLS with the RFB server at {to}: {why}"))
        };
        let config = login.tls().map_err(|failure| failed(&failure.message))?;
        let name = to.tls_name().map_err(|e| failed(&e))?;
        let socket = timeout(HANDSHAKE_TIMEOUT, socket.start_tls(name, config)).await;
        let socket = socket.map_err(|_| failed(&"it is silent"))?;
        let socket = socket.map_err(|e| failed(&why_no_tls(&e)))?;
        handshake.tls_started();
        Ok(Self { to, login, socket, handshake, unasked })
    }
}

/// Looks whether there is an RFB server, and goes away again before that has let anybody in.
///
/// # Errors
/// The server cannot be reached, or says nothing that an RFB server says first.
pub async fn try_out(to: &ServerAddress, login: &Arc<ServerLogin>) -> Result<(), Unusable> {
    let mut knocking = Knocking::connect(to, login).await?;
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
        let mut encodings = [&encoding::WANTED[..], &encoding::INPUT].concat();
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
            takes_extended_keys: false,
            clipboard: Clipboard::default(),
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
            Some(ServerEvent::ExtendedKeys) => self.takes_extended_keys = true,
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

    /// Tells the server a message of a viewer. Keys lose their places on the keyboard if the server takes none.
    pub fn say(&mut self, message: &ClientMessage) {
        let plain = match *message {
            ClientMessage::ExtendedKey { keysym: 0, .. } if !self.takes_extended_keys => return,
            ClientMessage::ExtendedKey { down, keysym, .. } if !self.takes_extended_keys => {
                Some(ClientMessage::Key { down, keysym })
            }
            _ => None,
        };
        let message = plain.as_ref().unwrap_or(message);
        self.pressed.note(message);
        message.write(&mut self.socket.output);
    }

    /// Tells the server a text of a viewer's clipboard.
    pub fn say_text(&mut self, text: &str) {
        let told = self.clipboard.offer(text);
        self.write_clipboard(told);
    }

    /// Deals with what the server says about its clipboard. Returns its new text.
    pub fn hear(&mut self, message: ClipboardMessage) -> Option<String> {
        if let ClipboardMessage::Caps { .. } = message {
            let told = self.clipboard.set_extended(true);
            told.into_iter().for_each(|told| self.write_clipboard(told));
        }
        let (answer, text) = self.clipboard.on_message(message);
        answer.into_iter().for_each(|answer| self.write_clipboard(answer));
        text
    }

    fn write_clipboard(&mut self, out: ClipboardOut) {
        let message = match out {
            ClipboardOut::Latin1(text) => ClientMessage::CutText(text),
            ClipboardOut::Extended(message) => ClientMessage::Clipboard(message),
        };
        message.write(&mut self.socket.output);
    }

    /// Whether the system has taken all that was to be sent.
    pub fn is_written(&self) -> bool {
        self.socket.is_written()
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
