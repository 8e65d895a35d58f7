//! The viewer, and the screen that it shows.

use std::io;

use sutura_vnc::bridge::{Change, Painted, Painter, ToViewer};
use sutura_vnc::rfb::{
    ClientMessage, Clipboard, ClipboardOut, RfbError, Viewer, encoding, from_latin1, write_bell,
    write_clipboard, write_cut_text,
};
use sutura_vnc::{Allowance, Framebuffer};

use tokio::time::Instant;

use super::inputs::Inputs;
use super::socket::{MAX_WAITING, Socket};

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
    clipboard: Clipboard,
    pub inputs: Inputs,
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
            clipboard: Clipboard::default(),
            inputs: Inputs::default(),
            unread: false,
            answers: 0,
        }
    }

    /// Reads or writes some. May be cancelled and called again.
    ///
    /// # Errors
    /// The viewer is gone.
    pub async fn exchange(&mut self, read: bool) -> Result<(), Gone> {
        let room = self.has_room_for_words();
        if !(room && std::mem::take(&mut self.unread)) {
            self.socket.exchange(read && room).await?;
        }
        if self.socket.output.is_empty() {
            self.answers = 0;
        }
        self.read()
    }

    /// Whether further messages of the viewer may be dealt with.
    fn has_room_for_words(&self) -> bool {
        self.inputs.has_room() && self.answers < MAX_ANSWERS
    }

    /// Deals with all that the viewer has said.
    fn read(&mut self) -> Result<(), Gone> {
        self.unread = true;
        while self.has_room_for_words() {
            let Some(message) = ClientMessage::parse(&mut self.socket.input)? else {
                self.unread = false;
                break;
            };
            let waiting = self.socket.output.len();
            self.viewer.on_message(&message, &mut self.socket.output)?;
            self.take(message);
            self.answers += self.socket.output.len() - waiting;
        }
        self.refresh();
        Ok(())
    }

    /// Keeps what is for the server, and answers what is about clipboards.
    fn take(&mut self, message: ClientMessage) {
        match message {
            ClientMessage::Key { .. }
            | ClientMessage::ExtendedKey { .. }
            | ClientMessage::Pointer { .. }
            | ClientMessage::SetDesktopSize { .. } => self.inputs.push(message),
            ClientMessage::CutText(text) => self.inputs.push_text(from_latin1(&text)),
            ClientMessage::Clipboard(message) => {
                let (answer, text) = self.clipboard.on_message(message);
                answer.into_iter().for_each(|answer| self.write_clipboard(&answer));
                text.into_iter().for_each(|text| self.inputs.push_text(text));
            }
            ClientMessage::SetEncodings(encodings) => {
                let extended = encodings.contains(&encoding::EXTENDED_CLIPBOARD);
                let told = self.clipboard.set_extended(extended);
                told.into_iter().for_each(|told| self.write_clipboard(&told));
            }
            ClientMessage::SetPixelFormat(_)
            | ClientMessage::UpdateRequest { .. }
            | ClientMessage::EnableContinuousUpdates { .. }
            | ClientMessage::Fence(_) => {}
        }
    }

    fn write_clipboard(&mut self, out: &ClipboardOut) {
        match out {
            ClipboardOut::Latin1(text) => write_cut_text(text, &mut self.socket.output),
            ClipboardOut::Extended(message) => write_clipboard(message, &mut self.socket.output),
        }
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
            ToViewer::ExtendedKeys => self.viewer.take_extended_keys(),
            ToViewer::Delivered(count) => self.inputs.delivered(count),
            ToViewer::Text(text) if self.has_room() => {
                let told = self.clipboard.offer(&text);
                self.write_clipboard(&told);
            }
            ToViewer::Bell if self.has_room() => write_bell(&mut self.socket.output),
            // Texts and bells are dropped if the viewer does not read. The other messages belong to the
            // beginning of a session.
            ToViewer::Text(_)
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

    /// Goes on with another connection to the server's end: with the session that has taken so many messages of the
    /// viewer, or with another. Returns how many messages the RFB server may hear twice.
    pub fn resume(&mut self, taken: Option<u64>) -> usize {
        self.painter.resume();
        match taken {
            Some(taken) => {
                self.inputs.resume(taken);
                0
            }
            None => self.inputs.start_over(),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;
    use tokio::net::{TcpListener, TcpStream};

    use sutura_vnc::bridge::ToServer;
    use sutura_vnc::rfb::{ClipboardMessage, Fence, MAX_FENCE};

    use super::super::inputs::MAX_INPUT;
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
        let text = "x".repeat(200_000);
        for _ in 0..100 {
            assert_eq!(local.hear(ToViewer::Text(text.clone())), None);
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
    async fn whatever_a_viewer_says_is_kept_until_it_has_arrived() {
        let (mut local, mut viewer) = viewed().await;
        let keys =
            (0..2 * MAX_INPUT as u32).map(|keysym| ClientMessage::Key { down: true, keysym });
        let mut said = Vec::new();
        keys.clone().for_each(|key| key.write(&mut said));
        let _open = tokio::spawn(async move { viewer.write_all(&said).await.map(|()| viewer) });
        let mut heard = Vec::new();
        while heard.len() < 2 * MAX_INPUT {
            local.exchange(true).await.unwrap();
            if !local.inputs.has_room() || heard.len() + MAX_INPUT > 2 * MAX_INPUT {
                heard.extend(std::iter::from_fn(|| local.inputs.next().cloned()));
                local.inputs.delivered(heard.len() as u64);
            }
        }
        let keys: Vec<_> = keys.map(ToServer::Input).collect();
        assert_eq!(heard, keys);
    }

    /// A viewer that asks for the text again and again and does not read it.
    #[tokio::test]
    async fn a_flood_of_requests_for_the_clipboard_is_bounded() {
        let (mut local, mut viewer) = viewed().await;
        let mut flood = Vec::new();
        ClientMessage::SetEncodings(vec![encoding::EXTENDED_CLIPBOARD]).write(&mut flood);
        (0..10_000)
            .for_each(|_| ClientMessage::Clipboard(ClipboardMessage::Request).write(&mut flood));
        viewer.write_all(&flood[..8]).await.unwrap();
        local.exchange(true).await.unwrap();
        // Noise hardly gets smaller when it is packed.
        let text: String = (0..100_000_u32)
            .map(|n| char::from((n.wrapping_mul(2_654_435_761) >> 25) as u8 | 1))
            .collect();
        local.hear(ToViewer::Text(text));
        let _open =
            tokio::spawn(async move { viewer.write_all(&flood[8..]).await.map(|()| viewer) });
        let mut left = 1000;
        while left > 0 {
            tokio::select! {
                biased;
                result = local.exchange(true) => result.unwrap(),
                () = tokio::task::yield_now() => left -= 1,
            }
            assert!(local.answers <= MAX_ANSWERS + 200_000, "{}", local.answers);
            left -= u32::from(local.answers >= MAX_ANSWERS).min(left);
        }
    }
}
