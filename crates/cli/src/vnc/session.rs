//! A viewer's session at the server's end.

use std::time::Duration;

use serde_json::json;
use sutura::groups::{GroupMessage, SendGroup, SendGroupError};
use sutura::{Connection, ConnectionError, MessageOutcome, SendMessageError};
use sutura_vnc::bridge::{Outgoing, Source, ToServer, ToViewer, UpdateOrder};
use sutura_vnc::rfb::{ClientMessage, ServerEvent, from_latin1};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until, timeout};

use super::control::{Broken, Control};
use super::report::Sent;
use super::socket::MAX_WAITING;
use super::upstream::Upstream;
use super::{DONE, stopped};
use crate::output::millis;

/// Bytes on their way that are always allowed, however small the congestion window is.
const MIN_WINDOW: u64 = 32 * 1024;
/// How long nothing must change before blurred parts of the screen are sent again.
const SHARPEN_AFTER: Duration = Duration::from_millis(300);
/// How long the server may take to read that keys are released.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(1);
/// How long pieces wait for the rest of an update of the server: those of the whole update are fewer and smaller, but a
/// slow server's first rectangles are not held back for its last ones.
const MOST_HELD: Duration = Duration::from_millis(5);
/// Far in the future: a timer that is not set.
const NEVER: Duration = Duration::from_secs(86_400);

/// A session: an RFB server's screen, and the viewer's end's copy of it.
#[derive(Debug)]
pub struct Session {
    pub upstream: Upstream,
    source: Source,
    order: UpdateOrder,
    /// Whether the server's last messages wait until the pieces of an update are made.
    unread: bool,
    /// A piece that could not be sent yet.
    pending: Option<Outgoing>,
    /// The time of the oldest change that was not sent yet.
    changed: Option<Instant>,
    /// When the screen last changed.
    last_change: Instant,
    /// How many messages of the viewer were taken.
    pub taken: u64,
    /// How many of them the viewer's end knows to have reached the server.
    delivered: u64,
    /// When the first part of an update was painted whose end has not come.
    part_came: Option<Instant>,
    pub sent: Sent,
}

/// The connection to the viewer's end.
#[derive(Debug)]
pub struct Link {
    pub connection: Connection,
    pub control: Control,
    pub group: SendGroup,
}

/// Why a session does not go on.
#[derive(Debug)]
pub enum Ending {
    /// The viewer is gone.
    Left,
    /// The connection is lost; the viewer's end may come back.
    Lost(String),
    /// The viewer's end has come back over another connection.
    Replaced,
    /// The RFB server is gone, or this command is stopped.
    Server(String),
    /// The viewer's end does not keep the protocol.
    Invalid(String),
}

impl From<Broken> for Ending {
    fn from(broken: Broken) -> Self {
        match broken {
            Broken::Connection(ConnectionError::ApplicationClosed { code: DONE, .. }) => Self::Left,
            Broken::Connection(error) => Self::Lost(error.to_string()),
            Broken::Ended => Self::Left,
            Broken::Protocol(error) => Self::Invalid(error.to_string()),
        }
    }
}

impl Session {
    /// A session on a screen.
    ///
    /// # Errors
    /// The screen is too large.
    pub fn new(
        upstream: Upstream,
        quality: Option<u8>,
        order: UpdateOrder,
    ) -> Result<Self, String> {
        let source = Source::new(&upstream.screen, quality).map_err(|e| e.to_string())?;
        Ok(Self {
            upstream,
            source: source.with_order(order),
            order,
            unread: false,
            pending: None,
            changed: None,
            last_change: Instant::now(),
            taken: 0,
            delivered: 0,
            part_came: None,
            sent: Sent::default(),
        })
    }

    /// Goes on with another connection after the last one was lost.
    pub fn resume(&mut self) {
        if let Some(piece) = self.pending.take() {
            self.source.unsent(piece);
        }
        self.source.resume();
        self.sent.restart();
        // The last word of it may have been lost.
        self.delivered = 0;
    }

    /// Releases the keys and buttons that the viewer held down, since it is gone.
    pub async fn release(&mut self) {
        self.upstream.release();
        // If the server does not read, it will find out when the connection ends.
        let _ = timeout(RELEASE_TIMEOUT, self.upstream.flush()).await;
    }

    /// Tells a viewer that did not see the beginning about the screen.
    pub fn introduce(&self, control: &mut Control) {
        let screen = &self.upstream.screen;
        let (width, height, name) = (screen.width(), screen.height(), self.upstream.name.clone());
        control.tell_viewer(&ToViewer::Screen { width, height, name });
        if let Some(cursor) = &self.upstream.cursor {
            control.tell_viewer(&ToViewer::Cursor(cursor.clone()));
        }
        if self.upstream.takes_extended_keys {
            control.tell_viewer(&ToViewer::ExtendedKeys);
        }
    }

    /// Serves the viewer until the connection, the session or the program ends.
    pub async fn run(
        &mut self,
        link: &mut Link,
        replaced: &Notify,
        mut stop: watch::Receiver<bool>,
    ) -> Ending {
        loop {
            let step = tokio::select! {
                () = replaced.notified() => return Ending::Replaced,
                () = stopped(&mut stop) => {
                    return Ending::Server("sutura vnc serve was stopped".into());
                }
                step = self.step(link) => step,
            };
            if let Err(ending) = step {
                return ending;
            }
        }
    }

    /// Sends the pieces that may be sent, waits for an event, and deals with it.
    async fn step(&mut self, link: &mut Link) -> Result<(), Ending> {
        self.confirm(link);
        self.send_pieces(link)?;
        if self.unread && !self.is_held() {
            return self.take_events(link);
        }
        let now = Instant::now();
        let waiting = self.upstream.wait_until(now);
        let wake = self.wake_time(link).min(waiting.unwrap_or(now + NEVER));
        // Neither end is read while the other does not take the messages that would result.
        let (read_server, read_viewer) =
            (link.control.waiting() < MAX_WAITING && waiting.is_none(), !self.upstream.is_behind());
        let read_server = read_server && !self.is_held();
        tokio::select! {
            server = self.upstream.exchange(read_server) => {
                server.map_err(Ending::Server)?;
                self.take_events(link)
            }
            viewer = link.control.exchange(read_viewer) => {
                viewer?;
                self.take_messages(link)?;
                // There may be room now for what the server has said.
                self.take_events(link)
            }
            outcome = link.group.outcome() => {
                let (number, outcome) = outcome.map_err(|e| Ending::from(Broken::Connection(e)))?;
                self.take_outcome(number, outcome);
                Ok(())
            }
            () = sleep_until(wake) => {
                self.ask(link);
                // Events that came while the server had to wait.
                self.take_events(link)
            }
        }
    }

    /// Tells the viewer's end when its messages have reached the server.
    fn confirm(&mut self, link: &mut Link) {
        if self.delivered < self.taken && self.upstream.is_written() {
            self.delivered = self.taken;
            link.control.tell_viewer(&ToViewer::Delivered(self.delivered));
        }
    }

    /// Whether the path carries more bytes than are on their way.
    fn has_room(&self, link: &Link) -> bool {
        let window = link.connection.stats().congestion_window.max(MIN_WINDOW);
        self.pending.is_none()
            && self.source.is_open()
            && (self.source.bytes_open() as u64) < window
    }

    fn send_pieces(&mut self, link: &Link) -> Result<(), Ending> {
        loop {
            let piece = match self.pending.take() {
                Some(piece) => piece,
                None if self.has_room(link) => match self.next_piece() {
                    Some(piece) => piece,
                    None => {
                        self.changed = None;
                        self.sent.complete();
                        return Ok(());
                    }
                },
                None => return Ok(()),
            };
            if !self.send(link, piece)? {
                return Ok(());
            }
        }
    }

    /// Whether to process no further update of the server yet, so that pieces are made from the last update
    /// alone.
    fn is_held(&self) -> bool {
        self.order == UpdateOrder::Fences
            && !self.upstream.is_in_update()
            && self.source.has_changes()
    }

    fn next_piece(&mut self) -> Option<Outgoing> {
        if self.upstream.is_in_update() {
            let whole = self.order == UpdateOrder::Fences;
            if whole || self.part_came.is_some_and(|at| at.elapsed() < MOST_HELD) {
                return None;
            }
        }
        let screen = &self.upstream.screen;
        let piece = self.source.next(screen);
        let idle = self.last_change.elapsed() >= SHARPEN_AFTER;
        piece.or_else(|| idle.then(|| self.source.sharpen(screen))?)
    }

    /// Sends a piece, unless too much waits to be sent. Returns whether it was sent.
    fn send(&mut self, link: &Link, piece: Outgoing) -> Result<bool, Ending> {
        if piece.fence {
            link.group.fence();
        }
        let (data, after) = (&piece.data[..], piece.after());
        let message = GroupMessage::new(data).with_after(after);
        match link.group.try_send(&message) {
            Ok(number) => {
                self.sent.sent(number, piece.update, piece.data.len());
                link.connection.log("screen:piece_sent", || {
                    let (update, bytes) = (piece.update, piece.data.len());
                    json!({ "number": number, "update": update, "bytes": bytes, "after": piece.after() })
                });
                if piece.then_fence {
                    link.group.fence();
                }
                for old in self.source.sent(piece) {
                    link.group.cancel(old);
                    self.sent.superseded(old);
                    link.connection.log("screen:piece_superseded", || json!({ "number": old }));
                }
                Ok(true)
            }
            Err(SendGroupError::Message(SendMessageError::Blocked)) => {
                self.pending = Some(piece);
                Ok(false)
            }
            // The control stream says why.
            Err(error) => {
                self.pending = Some(piece);
                match link.connection.close_reason() {
                    Some(reason) => Err(Broken::Connection(reason).into()),
                    None => Err(Ending::Invalid(error.to_string())),
                }
            }
        }
    }

    /// When to ask the server for an update, or to sharpen lossy parts of the screen.
    fn wake_time(&self, link: &Link) -> Instant {
        if !self.has_room(link) {
            return Instant::now() + NEVER;
        }
        let sharpen = self.source.is_blurred() && self.last_change.elapsed() < SHARPEN_AFTER;
        let sharpen = sharpen.then(|| self.last_change + SHARPEN_AFTER);
        let ask = self.upstream.next_ask();
        let held = self.part_came.filter(|_| self.order == UpdateOrder::Geometry);
        let held = held.map(|at| at + MOST_HELD).filter(|&at| at > Instant::now());
        ask.into_iter().chain(sharpen).chain(held).min().unwrap_or_else(|| Instant::now() + NEVER)
    }

    fn ask(&mut self, link: &Link) {
        let due = self.upstream.next_ask().is_some_and(|at| at <= Instant::now());
        if due && self.has_room(link) {
            self.upstream.ask();
        }
    }

    /// Deals with all that the server has shown and said.
    fn take_events(&mut self, link: &mut Link) -> Result<(), Ending> {
        let broken = |e: &dyn std::fmt::Display| Ending::Server(format!("the RFB server: {e}"));
        loop {
            self.unread = self.is_held();
            // Events may lead to messages to both sides, which must take those before: a few bytes of a clipboard may
            // unpack to a long text.
            let full = self.upstream.is_behind() || link.control.waiting() >= MAX_WAITING;
            if self.unread || full {
                break;
            }
            let Some(event) = self.upstream.next().map_err(|e| broken(&e))? else { break };
            match event {
                ServerEvent::Painted(rect) => {
                    self.source.painted(rect);
                    self.part_came.get_or_insert_with(Instant::now);
                }
                ServerEvent::Copied { from, to } => {
                    self.source.copied(from, to);
                    self.part_came.get_or_insert_with(Instant::now);
                }
                ServerEvent::Resized { .. } => {
                    self.source.resize(&self.upstream.screen).map_err(|e| broken(&e))?;
                }
                ServerEvent::UpdateEnd => self.begin_update(),
                ServerEvent::Cursor(cursor) => link.control.tell_viewer(&ToViewer::Cursor(cursor)),
                ServerEvent::Named(name) => link.control.tell_viewer(&ToViewer::Named(name)),
                ServerEvent::ResizeResult { status } => {
                    link.control.tell_viewer(&ToViewer::ResizeResult(status));
                }
                ServerEvent::Bell => link.control.tell_viewer(&ToViewer::Bell),
                ServerEvent::CutText(text) => {
                    link.control.tell_viewer(&ToViewer::Text(from_latin1(&text)));
                }
                ServerEvent::Clipboard(message) => {
                    if let Some(text) = self.upstream.hear(message) {
                        link.control.tell_viewer(&ToViewer::Text(text));
                    }
                }
                ServerEvent::ExtendedKeys => link.control.tell_viewer(&ToViewer::ExtendedKeys),
                // A viewer is shown one screen of the whole size. The others are dealt with already.
                ServerEvent::Screens(_)
                | ServerEvent::Fence(_)
                | ServerEvent::EndOfContinuousUpdates => {}
            }
        }
        Ok(())
    }

    /// The server has shown all that had changed.
    fn begin_update(&mut self) {
        self.part_came = None;
        if self.source.has_changes() {
            self.last_change = Instant::now();
            let changed = *self.changed.get_or_insert(self.last_change);
            let update = self.source.begin_update();
            self.sent.begin(update, changed);
        }
    }

    /// Deals with all that the viewer's end has said.
    fn take_messages(&mut self, link: &mut Link) -> Result<(), Ending> {
        while let Some(message) = link.control.take_from_viewer()? {
            match message {
                ToServer::Input(
                    message @ (ClientMessage::Key { .. }
                    | ClientMessage::ExtendedKey { .. }
                    | ClientMessage::Pointer { .. }
                    | ClientMessage::SetDesktopSize { .. }),
                ) => {
                    self.taken += 1;
                    self.upstream.say(&message);
                }
                ToServer::Text(text) => {
                    self.taken += 1;
                    self.upstream.say_text(&text);
                }
                ToServer::Painted { update, pieces, age } => {
                    // The report took half a round trip.
                    let ago = Duration::from_micros(age.into()) + link.connection.stats().rtt / 2;
                    let at = Instant::now().checked_sub(ago).unwrap_or_else(Instant::now);
                    if let Some(took) = self.sent.painted(update, pieces, at) {
                        link.connection.log(
                            "screen:update_painted",
                            || json!({ "update": update, "took_ms": millis(took) }),
                        );
                    }
                }
                ToServer::Hello { .. } | ToServer::Response(_) | ToServer::Input(_) => {
                    return Err(Ending::Invalid("a message out of place".into()));
                }
            }
        }
        Ok(())
    }

    fn take_outcome(&mut self, number: u64, outcome: MessageOutcome) {
        match outcome {
            MessageOutcome::Recovered => {
                self.sent.arrived(number, true);
                self.source.arrived(number);
            }
            MessageOutcome::Arrived | MessageOutcome::Late => {
                self.sent.arrived(number, false);
                self.source.arrived(number);
            }
            // The piece was given up, or may not have arrived. If it was superseded, the source has forgotten
            // it.
            _ => self.source.lost(number),
        }
    }
}
