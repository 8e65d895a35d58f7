//! A viewer's session at the viewer's end.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::FutureExt;
use serde_json::json;
use sutura::groups::{Delivered, GroupReceiver, ReceiveGroupError};
use sutura::{Connection, ConnectionError};
use sutura_vnc::Framebuffer;
use sutura_vnc::bridge::{ToServer, ToViewer};
use sutura_vnc::rfb::{PixelFormat, Security, ServerInit, ViewerHandshake, ViewerStep};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::connect::Context;
use super::control::{Broken, Control};
use super::local::{Gone, Local};
use super::report::Shown;
use super::socket::{MAX_WAITING, Socket};
use super::{
    DONE, GAVE_WAY, INVALID, LAST_WORDS, PASSWORD_TIMEOUT, RESUME_TIME, SILENCE_TIMEOUT,
    STATS_INTERVAL, stopped,
};
use crate::connect::about_client_certificate;
use crate::doors::Pass;
use crate::failure::Exit;
use crate::output::{self, millis};
use crate::stats::Statistics;

/// The shortest time from the first report of painted pieces to the second; it doubles with each.
const FIRST_REPORT_INTERVAL: Duration = Duration::from_millis(20);
/// The longest such time. Only statistics depend on reports, and each takes some packets in either direction.
const REPORT_INTERVAL: Duration = Duration::from_millis(500);
/// The first and the longest time between attempts to connect again.
const FIRST_RETRY: Duration = Duration::from_millis(250);
const LAST_RETRY: Duration = Duration::from_secs(5);

/// The connection to the server's end.
#[derive(Debug)]
struct ServerLink {
    connection: Connection,
    control: Control,
    pieces: GroupReceiver,
    session: [u8; 16],
    /// If the session was resumed, how many messages of the viewer it has taken.
    resumed: Option<u64>,
}

/// Pieces that were painted and not reported.
#[derive(Debug)]
struct Unreported {
    updates: BTreeMap<u32, (u16, Instant)>,
    next: Instant,
    interval: Duration,
}

/// Why a session does not go on.
#[derive(Debug)]
enum ViewerEnding {
    /// The connection is lost; another connection may go on with the session.
    Lost(String),
    /// The viewer is gone.
    Left,
    /// The session cannot go on.
    Over(String),
}

impl From<Broken> for ViewerEnding {
    fn from(broken: Broken) -> Self {
        match broken {
            Broken::Connection(ConnectionError::ApplicationClosed { code, reason })
                if code == INVALID =>
            {
                Self::Over(String::from_utf8_lossy(&reason).into_owned())
            }
            Broken::Connection(error) => match about_client_certificate(&error) {
                Some(why) => Self::Over(format!("the server's end: {why}")),
                None => Self::Lost(error.to_string()),
            },
            Broken::Ended => Self::Lost("the other end has ended the session".into()),
            Broken::Protocol(error) => Self::Over(error.to_string()),
        }
    }
}

impl From<ReceiveGroupError> for ViewerEnding {
    fn from(error: ReceiveGroupError) -> Self {
        match error {
            ReceiveGroupError::ConnectionLost(error) => Broken::Connection(error).into(),
            error => Self::Over(error.to_string()),
        }
    }
}

impl From<Gone> for ViewerEnding {
    fn from(gone: Gone) -> Self {
        match gone {
            Gone::Closed => Self::Left,
            Gone::Invalid(why) => Self::Over(why),
        }
    }
}

/// Shows a viewer the screen until one of both ends is gone.
///
/// # Errors
/// The session did not begin or did not end well; says why. The viewer was told if it still listened.
pub async fn show(
    socket: Socket,
    context: &Context,
    name: &str,
    pass: &Pass,
) -> Result<(), String> {
    let mut guest = WaitingViewer { socket, handshake: ViewerHandshake::new(), pass };
    guest.handshake.start(&mut guest.socket.output);
    match guest.step(SILENCE_TIMEOUT).await {
        Ok(ViewerStep::Version) => {}
        Err(Gone::Invalid(why)) if why == GAVE_WAY => return Err(why),
        _ => return Err("the viewer does not speak RFB".into()),
    }
    let (link, init) = match begin(context, &mut guest).await {
        Ok(begun) => begun,
        Err(ViewerEnding::Left) => return Ok(()),
        Err(ViewerEnding::Lost(why) | ViewerEnding::Over(why)) => {
            // The viewer may be gone.
            let _ = timeout(LAST_WORDS, guest.socket.flush()).await;
            return Err(why);
        }
    };
    pass.stay();
    output::note(&format!("{name}: shows {}", output::clean(&init.name)));
    let screen = Framebuffer::new(init.width, init.height).map_err(|e| e.to_string())?;
    serve(Local::new(guest.socket, screen), link, context, name).await
}

/// A viewer that is not let in yet.
#[derive(Debug)]
struct WaitingViewer<'a> {
    socket: Socket,
    handshake: ViewerHandshake,
    pass: &'a Pass,
}

impl WaitingViewer<'_> {
    /// Waits for the viewer's next step of the handshake, but not if another wants its place.
    async fn step(&mut self, limit: Duration) -> Result<ViewerStep, Gone> {
        tokio::select! {
            () = self.pass.turned_out() => Err(Gone::Invalid(GAVE_WAY.into())),
            step = timeout(limit, step(&mut self.socket, &mut self.handshake)) => {
                step.unwrap_or(Err(Gone::Closed))
            }
        }
    }

    /// Tells the viewer, which was not offered a session yet, why it is not let in.
    fn refuse(&mut self, ending: ViewerEnding) -> ViewerEnding {
        if let ViewerEnding::Lost(why) | ViewerEnding::Over(why) = &ending {
            self.handshake.refuse(why, &mut self.socket.output);
        }
        ending
    }
}

/// Waits for the viewer's next step of the handshake.
async fn step(socket: &mut Socket, handshake: &mut ViewerHandshake) -> Result<ViewerStep, Gone> {
    loop {
        let Socket { input, output, .. } = &mut *socket;
        match handshake.receive(input, output)? {
            ViewerStep::More => socket.exchange(true).await?,
            step => return Ok(step),
        }
    }
}

/// Lets the viewer in, if the server's end and the RFB server do.
async fn begin(
    context: &Context,
    guest: &mut WaitingViewer<'_>,
) -> Result<(ServerLink, ServerInit), ViewerEnding> {
    let first = async {
        let mut link = open(context, None).await?;
        let first = hear(&mut link.control).await?;
        Ok::<_, ViewerEnding>((link, first))
    };
    let (mut link, first) = match first.await {
        Ok(begun) => begun,
        Err(ending) => return Err(guest.refuse(ending)),
    };
    match let_in(&mut link, first, guest).await {
        Ok(init) => Ok((link, init)),
        Err(ending) => {
            // The session is over before it has begun, so the connection is closed.
            link.connection.close(DONE, b"");
            Err(ending)
        }
    }
}

/// Passes the password on, if the RFB server wants one, and tells the viewer which desktop it is let in to.
async fn let_in(
    link: &mut ServerLink,
    first: ToViewer,
    guest: &mut WaitingViewer<'_>,
) -> Result<ServerInit, ViewerEnding> {
    let mut message = first;
    let password = matches!(message, ToViewer::Challenge(_));
    if let ToViewer::Challenge(challenge) = message {
        guest.handshake.offer(Security::Password { challenge }, &mut guest.socket.output);
        let ViewerStep::Response(response) = guest.step(PASSWORD_TIMEOUT).await? else {
            return Err(ViewerEnding::Left);
        };
        link.control.tell_server(&ToServer::Response(response));
        message = hear(&mut link.control).await?;
    }
    let ToViewer::Screen { width, height, name } = message else {
        let why = match message {
            ToViewer::Ended { reason, .. } => reason,
            _ => "the other end says what is out of place".into(),
        };
        if password {
            guest.handshake.result(Err(&why), &mut guest.socket.output);
            return Err(ViewerEnding::Over(why));
        }
        return Err(guest.refuse(ViewerEnding::Over(why)));
    };
    if password {
        guest.handshake.result(Ok(()), &mut guest.socket.output);
    } else {
        guest.handshake.offer(Security::None, &mut guest.socket.output);
    }
    let init = ServerInit { width, height, format: PixelFormat::RGB32, name };
    match guest.step(SILENCE_TIMEOUT).await? {
        ViewerStep::Init { .. } => guest.handshake.init(&init, &mut guest.socket.output),
        _ => return Err(ViewerEnding::Over("the viewer does not keep to RFB".into())),
    }
    Ok(init)
}

/// Connects to the server's end, to begin a session or to go on with one.
async fn open(context: &Context, resume: Option<[u8; 16]>) -> Result<ServerLink, ViewerEnding> {
    let connection = context.connector.connect(&context.authority).await;
    let connection = connection.map_err(|failure| match failure.exit {
        Exit::Certificate => ViewerEnding::Over(failure.message),
        _ => ViewerEnding::Lost(failure.message),
    })?;
    context.monitor.follow(&connection);
    // Called before the first bytes of a group can come.
    let pieces = connection.receive_groups();
    let (send, recv) = connection.open_bi().await.map_err(Broken::Connection)?;
    let mut control = Control::new(send, recv);
    control.tell_server(&ToServer::Hello { token: context.token.to_string(), resume });
    match hear(&mut control).await? {
        ToViewer::Welcome { session, resumed, taken } => {
            let resumed = resumed.then_some(taken);
            Ok(ServerLink { connection, control, pieces, session, resumed })
        }
        ToViewer::Ended { reason, .. } => {
            connection.close(DONE, b"");
            Err(ViewerEnding::Over(reason))
        }
        _ => Err(ViewerEnding::Over("the other end says what is out of place".into())),
    }
}

/// Waits for the next message of the server's end, in the beginning of a session.
async fn hear(control: &mut Control) -> Result<ToViewer, ViewerEnding> {
    let message = async {
        loop {
            if let Some(message) = control.take_from_server()? {
                return Ok::<_, Broken>(message);
            }
            control.exchange(true).await?;
        }
    };
    let message = timeout(PASSWORD_TIMEOUT, message).await;
    Ok(message.map_err(|_| ViewerEnding::Lost("the other end is silent".into()))??)
}

/// Serves a viewer that was let in.
async fn serve(
    mut local: Local,
    mut link: ServerLink,
    context: &Context,
    name: &str,
) -> Result<(), String> {
    let mut shown = Shown::default();
    loop {
        let ending = match watch(&mut local, &mut link, &mut shown, context, name).await {
            ViewerEnding::Lost(why) => match paint_rest(&mut local, &mut link, &mut shown) {
                Ok(()) => ViewerEnding::Lost(why),
                Err(ending) => ending,
            },
            ending @ (ViewerEnding::Left | ViewerEnding::Over(_)) => ending,
        };
        report(&link, &shown, context, name);
        let (code, result) = match ending {
            ViewerEnding::Left => {
                // What the viewer said last may be on its way still.
                let _ = timeout(LAST_WORDS, say_rest(&mut local, &mut link)).await;
                (DONE, Ok(()))
            }
            ViewerEnding::Over(why) => (DONE, Err(why)),
            ViewerEnding::Lost(why) => {
                output::complain(&format!("{name}: {why}; connecting again"));
                match reconnect(&mut local, link.session, context).await {
                    Ok(new) => {
                        shown.reconnections += 1;
                        output::note(&format!("{name}: connected again"));
                        link = new;
                        let doubtful = local.resume(link.resumed);
                        if doubtful > 0 {
                            output::complain(&format!(
                                "{name}: the server's end was started anew before it said whether \
                                 {doubtful} messages of the viewer had reached the RFB server; they are \
                                 sent again"
                            ));
                        }
                        continue;
                    }
                    Err(ViewerEnding::Left) => return Ok(()),
                    Err(ViewerEnding::Lost(why) | ViewerEnding::Over(why)) => return Err(why),
                }
            }
        };
        link.connection.close(code, b"");
        return result;
    }
}

/// Waits until all that a viewer said before it left has reached the RFB server.
async fn say_rest(local: &mut Local, link: &mut ServerLink) -> Result<(), Broken> {
    loop {
        local.inputs.tell(&mut link.control);
        if local.inputs.is_empty() {
            return Ok(());
        }
        link.control.exchange(true).await?;
        while let Some(message) = link.control.take_from_server()? {
            if let ToViewer::Delivered(count) = message {
                local.inputs.delivered(count);
            }
        }
    }
}

/// Connects again, while the viewer keeps its screen.
async fn reconnect(
    local: &mut Local,
    session: [u8; 16],
    context: &Context,
) -> Result<ServerLink, ViewerEnding> {
    let again = async {
        let (mut wait, until) = (FIRST_RETRY, Instant::now() + RESUME_TIME);
        loop {
            match open(context, Some(session)).await {
                Ok(link) => return begin_again(link).await,
                Err(ViewerEnding::Lost(why)) if Instant::now() + wait > until => {
                    return Err(ViewerEnding::Over(format!("connecting again failed: {why}")));
                }
                Err(ViewerEnding::Lost(_)) => sleep(wait).await,
                Err(ending) => return Err(ending),
            }
            wait = (2 * wait).min(LAST_RETRY);
        }
    };
    let alone = async {
        loop {
            if let Err(gone) = local.exchange(true).await {
                return gone;
            }
        }
    };
    tokio::select! {
        link = again => link,
        gone = alone => Err(gone.into()),
    }
}

/// Deals with the beginning of a connection that replaces a lost one: the server's end may have begun a new
/// session.
async fn begin_again(mut link: ServerLink) -> Result<ServerLink, ViewerEnding> {
    if link.resumed.is_some() {
        return Ok(link);
    }
    match hear(&mut link.control).await? {
        ToViewer::Screen { .. } => Ok(link),
        ToViewer::Challenge(_) => {
            link.connection.close(DONE, b"");
            Err(ViewerEnding::Over("the server wants the password again".into()))
        }
        ToViewer::Ended { reason, .. } => Err(ViewerEnding::Over(reason)),
        _ => Err(ViewerEnding::Over("the other end says what is out of place".into())),
    }
}

/// Runs a connection, and shows statistics meanwhile.
async fn watch(
    local: &mut Local,
    link: &mut ServerLink,
    shown: &mut Shown,
    context: &Context,
    name: &str,
) -> ViewerEnding {
    let mut earlier = Statistics::of(&link.connection);
    let mut unreported = Unreported::new();
    let mut next_stats = Instant::now() + STATS_INTERVAL;
    let mut stop = context.stop.clone();
    loop {
        let step = tokio::select! {
            () = stopped(&mut stop) => Err(ViewerEnding::Left),
            step = step_on(local, link, shown, &mut unreported) => step,
            () = sleep_until(next_stats), if context.stats && !context.json => {
                let now = Statistics::of(&link.connection);
                now.live(name, &earlier).iter().for_each(|line| output::note(line));
                output::note(&format!("  {}", shown.text()));
                (earlier, next_stats) = (now, Instant::now() + STATS_INTERVAL);
                Ok(())
            }
        };
        if let Err(ending) = step {
            return ending;
        }
    }
}

/// Waits for an event, and deals with it.
async fn step_on(
    local: &mut Local,
    link: &mut ServerLink,
    shown: &mut Shown,
    unreported: &mut Unreported,
) -> Result<(), ViewerEnding> {
    local.inputs.tell(&mut link.control);
    let wait = local.wait_until(Instant::now());
    tokio::select! {
        viewer = local.exchange(link.control.waiting() < MAX_WAITING) => Ok(viewer?),
        server = link.control.exchange(true) => {
            server?;
            while let Some(message) = link.control.take_from_server()? {
                if let Some(reason) = local.hear(message) {
                    return Err(ViewerEnding::Over(reason));
                }
            }
            local.refresh();
            Ok(())
        }
        // The other end may have many pixels painted with few bytes, and then must wait for its turn.
        () = sleep_until(wait.unwrap_or_else(Instant::now)), if wait.is_some() => Ok(()),
        piece = link.pieces.next(), if wait.is_none() => {
            paint(local, &link.connection, piece?, shown, unreported)?;
            // All pieces that have arrived already go to the viewer at once.
            while local.wait_until(Instant::now()).is_none()
                && let Some(piece) = link.pieces.next().now_or_never()
            {
                paint(local, &link.connection, piece?, shown, unreported)?;
            }
            local.refresh();
            Ok(())
        }
        () = sleep_until(unreported.next), if !unreported.updates.is_empty() => {
            unreported.tell(&mut link.control);
            Ok(())
        }
    }
}

/// Paints the pieces that came before the connection was lost. The other end may know that they arrived, and
/// does not send them again then.
fn paint_rest(
    local: &mut Local,
    link: &mut ServerLink,
    shown: &mut Shown,
) -> Result<(), ViewerEnding> {
    let mut unreported = Unreported::new();
    while let Some(Ok(Some(piece))) = link.pieces.next().now_or_never() {
        paint(local, &link.connection, Some(piece), shown, &mut unreported)?;
    }
    local.refresh();
    Ok(())
}

fn paint(
    local: &mut Local,
    connection: &Connection,
    piece: Option<Delivered>,
    shown: &mut Shown,
    unreported: &mut Unreported,
) -> Result<(), ViewerEnding> {
    let piece =
        piece.ok_or_else(|| ViewerEnding::Lost("the other end has ended the session".into()))?;
    let now = Instant::now();
    let painted = local.paint(piece.number, &piece.data, now)?;
    shown.pieces += 1;
    shown.left_out += u64::from(painted.changes.is_empty());
    let blocked = now.saturating_duration_since(piece.completed.into());
    shown.blocked.add(blocked);
    connection.log("screen:piece_painted", || {
        let (number, update, left_out) = (piece.number, painted.update, painted.changes.is_empty());
        json!({ "number": number, "update": update, "left_out": left_out, "blocked_ms": millis(blocked) })
    });
    let (pieces, at) = unreported.updates.entry(painted.update).or_insert((0, now));
    (*pieces, *at) = (pieces.saturating_add(1), now);
    Ok(())
}

impl Unreported {
    fn new() -> Self {
        let next = Instant::now();
        Self { updates: BTreeMap::new(), next, interval: FIRST_REPORT_INTERVAL }
    }

    fn tell(&mut self, control: &mut Control) {
        for (update, (pieces, at)) in std::mem::take(&mut self.updates) {
            let age = u32::try_from(at.elapsed().as_micros()).unwrap_or(u32::MAX);
            control.tell_server(&ToServer::Painted { update, pieces, age });
        }
        self.next = Instant::now() + self.interval;
        self.interval = (2 * self.interval).min(REPORT_INTERVAL);
    }
}

fn report(link: &ServerLink, shown: &Shown, context: &Context, name: &str) {
    let statistics = Statistics::of(&link.connection);
    if context.json {
        let mut value = statistics.to_json();
        value["viewer"] = name.into();
        value["screen"] = shown.to_json();
        // Nobody may read it any more; the bridge goes on.
        let _ = output::json(&value);
    } else if context.stats {
        statistics.summary(name).iter().for_each(|line| output::note(line));
        output::note(&format!("  {}", shown.text()));
    }
}
