//! The viewer, and the screen that it shows.

use std::collections::VecDeque;
use std::io;

use sutura_vnc::bridge::{Change, Painted, Painter, ToViewer};
use sutura_vnc::rfb::{ClientMessage, RfbError, Viewer, write_bell, write_cut_text};
use sutura_vnc::{Allowance, Framebuffer};

use tokio::time::Instant;

use super::socket::{MAX_WAITING, Socket};

/// Messages of a viewer that the other end was not told yet; further ones stay unread.
const MAX_INPUT: usize = 256;
/// If this many bytes of answers wait for the viewer to read them, no more of its messages are read.
const MAX_ANSWERS: usize = 64 * 1024;

/// Why a viewer cannot be served any more.
#[derive(Debug)]
pub enum Gone {
    /// The viewer has closed the connection.
    Closed,
    /// The viewer does not keep to RFB, or cannot show the screen.
    Invalid(String),
}

impl From<io::Error> for Gone {
    fn from(_: io::Error) -> Self {
        Self::Closed
    }
}

impl From<RfbError> for Gone {
    fn from(error: RfbError) -> Self {
        Self::Invalid(format!("the viewer: {error}"))
    }
}

/// A viewer after its handshake.
#[derive(Debug)]
pub struct Local {
    socket: Socket,
    viewer: Viewer,
    painter: Painter,
    /// How much the other end may have painted.
    allowance: Allowance,
    input: VecDeque<ClientMessage>,
    /// Messages that were received, but for which there was no room.
    unread: bool,
    /// Bytes of answers that were added since the viewer last had read all output.
    answers: usize,
}

impl Local {
    /// A viewer of a screen.
    pub fn new(socket: Socket, screen: Framebuffer) -> Self {
        let viewer = Viewer::new(screen.width(), screen.height());
        Self {
            socket,
            viewer,
            painter: Painter::new(screen),
            allowance: Allowance::default(),
            input: VecDeque::new(),
            unread: false,
            answers: 0,
        }
    }

    /// Reads or writes some. May be cancelled and called again.
    ///
    /// # Errors
    /// The viewer is gone.
    pub async fn exchange(&mut self, read: bool) -> Result<(), Gone> {
        let room = self.input.len() < MAX_INPUT && self.answers < MAX_ANSWERS;
        if !(room && std::mem::take(&mut self.unread)) {
            self.socket.exchange(read && room).await?;
        }
        if self.socket.output.is_empty() {
            self.answers = 0;
        }
        self.read()
    }

    /// Deals with all that the viewer has said.
    fn read(&mut self) -> Result<(), Gone> {
        self.unread = true;
        while self.input.len() < MAX_INPUT {
            let Some(message) = ClientMessage::parse(&mut self.socket.input)? else {
                self.unread = false;
                break;
            };
            let waiting = self.socket.output.len();
            self.viewer.on_message(&message, &mut self.socket.output)?;
            self.answers += self.socket.output.len() - waiting;
            match &message {
                ClientMessage::Key { .. }
                | ClientMessage::CutText(_)
                | ClientMessage::SetDesktopSize { .. } => self.input.push_back(message),
                ClientMessage::Pointer { buttons, .. } => {
                    // Of waiting pointer movements with the same buttons, only the last matters.
                    let same = |old: &ClientMessage| matches!(old, ClientMessage::Pointer { buttons: before, .. } if before == buttons);
                    self.input.pop_back_if(|old| same(old));
                    self.input.push_back(message);
                }
                _ => {}
            }
        }
        self.refresh();
        Ok(())
    }

    /// The oldest message of the viewer that was not taken yet.
    pub fn next_input(&mut self) -> Option<ClientMessage> {
        self.input.pop_front()
    }

    /// Sends the viewer the update that it has asked for, if it has read all data before that.
    pub fn refresh(&mut self) {
        if self.socket.output.is_empty() && self.viewer.wants() {
            self.viewer.update(self.painter.screen(), &mut self.socket.output);
        }
    }

    /// When the next piece may be painted, if the other end has used up its allowance of pixels.
    pub fn wait_until(&self, now: Instant) -> Option<Instant> {
        self.allowance.wait_until(now.into_std()).map(Into::into)
    }

    /// Paints a piece of the screen.
    ///
    /// # Errors
    /// The piece is malformed, or the viewer cannot show the screen's new size.
    pub fn paint(&mut self, number: u64, data: &[u8], now: Instant) -> Result<Painted, Gone> {
        let painted = self.painter.paint(number, data);
        let painted = painted.map_err(|e| Gone::Invalid(format!("the other end: {e}")))?;
        self.allowance.spend(painted.pixels(), now.into_std());
        for change in &painted.changes {
            match *change {
                Change::Painted(rect) => self.viewer.painted(rect),
                Change::Copied { from, to } => self.viewer.copied(from, to),
                Change::Resized(size) => self.viewer.resized(size.width, size.height)?,
            }
        }
        Ok(painted)
    }

    /// Passes on the messages of the server's end about the desktop. Returns why the session is over, if it
    /// is.
    pub fn hear(&mut self, message: ToViewer) -> Option<String> {
        match message {
            ToViewer::Ended { reason, .. } => return Some(reason),
            ToViewer::Cursor(cursor) => self.viewer.cursor(Some(cursor)),
            ToViewer::Named(name) => self.viewer.named(&name),
            ToViewer::ResizeResult(status) => self.viewer.resize_result(status),
            ToViewer::CutText(text) if self.has_room() => {
                write_cut_text(&text, &mut self.socket.output);
            }
            ToViewer::Bell if self.has_room() => write_bell(&mut self.socket.output),
            // Texts and bells are dropped if the viewer does not read. The other messages belong to the
            // beginning of a session.
            ToViewer::CutText(_)
            | ToViewer::Bell
            | ToViewer::Welcome { .. }
            | ToViewer::Challenge(_)
            | ToViewer::Screen { .. } => {}
        }
        None
    }

    fn has_room(&self) -> bool {
        self.socket.output.len() < MAX_WAITING
    }

    /// Goes on with another connection to the server's end.
    pub fn resume(&mut self) {
        self.painter.resume();
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;
    use tokio::net::{TcpListener, TcpStream};

    use sutura_vnc::rfb::{Fence, MAX_FENCE};

    use super::*;

    /// A viewer of a small screen, and its end of the connection.
    async fn viewed() -> (Local, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let viewer = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (tcp, _) = listener.accept().await.unwrap();
        (Local::new(Socket::new(tcp), Framebuffer::new(64, 64).unwrap()), viewer)
    }

    #[tokio::test]
    async fn a_flood_of_words_for_a_viewer_that_does_not_read_is_bounded() {
        let (mut local, _viewer) = viewed().await;
        let text = bytes::Bytes::from(vec![b'x'; 200_000]);
        for _ in 0..100 {
            assert_eq!(local.hear(ToViewer::CutText(text.clone())), None);
            assert!(local.socket.output.len() <= MAX_WAITING + text.len() + 8);
        }
        for _ in 0..10 {
            assert_eq!(local.hear(ToViewer::Bell), None);
        }
        assert!(!local.has_room());
        assert!(local.socket.output.len() <= MAX_WAITING + text.len() + 8);
    }

    #[tokio::test]
    async fn a_flood_of_fences_of_a_viewer_that_does_not_read_is_bounded() {
        let (mut local, mut viewer) = viewed().await;
        let mut flood = Vec::new();
        let fence = Fence { flags: Fence::REQUEST, payload: vec![b'x'; MAX_FENCE].into() };
        (0..1000).for_each(|_| ClientMessage::Fence(fence.clone()).write(&mut flood));
        tokio::spawn(async move { while viewer.write_all(&flood).await.is_ok() {} });
        // The system's buffers take the first answers; then the answers pile up here.
        let mut left = 1000;
        while left > 0 {
            tokio::select! {
                biased;
                result = local.exchange(true) => result.unwrap(),
                () = tokio::task::yield_now() => {}
            }
            tokio::task::yield_now().await;
            assert!(local.socket.output.len() <= local.answers);
            assert!(local.answers <= 2 * MAX_ANSWERS, "{}", local.answers);
            left -= u32::from(local.answers >= MAX_ANSWERS);
        }
    }

    #[tokio::test]
    async fn whatever_a_viewer_says_is_kept_until_it_is_taken() {
        let (mut local, mut viewer) = viewed().await;
        let keys = (0..2000).map(|keysym| ClientMessage::Key { down: true, keysym });
        let mut said = Vec::new();
        keys.clone().for_each(|key| key.write(&mut said));
        // Of movements, only the last is told.
        (0..50).for_each(|x| ClientMessage::Pointer { buttons: 0, x, y: 1 }.write(&mut said));
        viewer.write_all(&said).await.unwrap();
        let mut heard = Vec::new();
        let last = ClientMessage::Pointer { buttons: 0, x: 49, y: 1 };
        while heard.last() != Some(&last) {
            local.exchange(true).await.unwrap();
            assert!(local.input.len() <= MAX_INPUT);
            heard.extend(std::iter::from_fn(|| local.next_input()));
        }
        heard.retain(|message| matches!(message, ClientMessage::Key { .. }));
        assert_eq!(heard, keys.collect::<Vec<_>>());
    }
}
