//! `sutura vnc serve`: the end of the bridge beside the RFB server.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clap::ValueEnum;
use serde_json::json;
use sutura::{Connection, Incoming, Priority};
use sutura_vnc::bridge::{End, ToServer, ToViewer, UpdateOrder};
use tokio::sync::{Mutex as AsyncMutex, Notify, OwnedMutexGuard, watch};
use tokio::time::{Instant, sleep, timeout};
use zeroize::Zeroizing;

use super::address::ServerAddress;
use super::control::{Broken, Control};
use super::login::{LoginArgs, ServerLogin};
use super::session::{Ending, Link, Session};
use super::token::{self, TokenArgs};
use super::upstream::{self, Knocking, Unusable, Upstream, Wants};
use super::{
    ALPN, GAVE_WAY, HANDSHAKE_TIMEOUT, INVALID, LAST_WORDS, PASSWORD_TIMEOUT, RESTARTING,
    RESUME_TIME, SILENCE_TIMEOUT, STATS_INTERVAL, transport,
};
use crate::cert::IdentityArgs;
use crate::doors::{Doors, Pass};
use crate::failure::{Exit, Failure};
use crate::guesses::Guesses;
use crate::interrupt::{Stop, interrupted};
use crate::listen::{self, Listen};
use crate::memory::MemoryArgs;
use crate::monitor::{Monitor, MonitorArgs};
use crate::output;
use crate::passed;
use crate::qlog::QlogArgs;
use crate::quic_server::{accept, server_config, start};
use crate::secrets::random;
use crate::stats::{Statistics, peer};
use crate::token::{keep_in, same};
use crate::transport::TransportArgs;

/// Most connections that have not shown the token yet.
const MAX_KNOCKING: usize = 64;

const EXAMPLES: &str = "\
The viewer's end is `sutura vnc connect`. It needs the token, which is made on first use and kept, and the
fingerprint of the certificate, unless that is one that its system trusts.

Examples:
  sutura vnc serve --to localhost:5900
  sutura vnc serve --to localhost:5901 --listen 0.0.0.0:7000 --quality 75
  sutura vnc serve --cert fullchain.pem --key privkey.pem --token-file token.txt --stats
  sutura vnc serve --to localhost:5900 --client-ca viewers.pem --no-token
  sutura vnc serve --to unix:/run/user/1000/qemu
  sutura vnc serve --to desk:5901 --server-ca ca.pem
  sutura vnc serve --server-ca ca.pem --server-user ann --server-password-file password.txt

The RFB server should listen on this machine only, unless it uses TLS (VeNCrypt) with a certificate:
  vncserver :1 -localhost yes
  vncserver :1 -SecurityTypes X509Vnc -X509Cert cert.pem -X509Key key.pem
  x11vnc -localhost -forever
  qemu-system-x86_64 -vnc unix:/run/user/1000/qemu";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct VncArgs {
    /// The RFB server: a host, with port 5900 by default, or a UNIX socket
    #[arg(long, value_name = "HOST[:PORT]|unix:PATH", default_value = "localhost:5900")]
    #[arg(value_parser = ServerAddress::parse)]
    to: ServerAddress,
    #[command(flatten)]
    login: LoginArgs,
    /// UDP address to listen on, or a port for all addresses of this machine
    #[arg(long, value_name = "[ADDR:]PORT", default_value = "5900")]
    listen: Listen,
    #[command(flatten)]
    identity: IdentityArgs,
    #[command(flatten)]
    token: TokenArgs,
    /// Let in only viewers whose certificate (`sutura vnc connect --client-cert`) leads to one in this PEM
    /// file
    #[arg(long, value_name = "FILE")]
    client_ca: Option<PathBuf>,
    /// Want no token: everybody may connect who reaches the port, or has a certificate if --client-ca wants
    /// one
    #[arg(long, conflicts_with_all = ["token", "token_file"])]
    no_token: bool,
    /// Send pictures with many colours as JPEG of this quality, and exactly once nothing changes
    #[arg(long, value_name = "1-100", value_parser = clap::value_parser!(u8).range(1..=100))]
    quality: Option<u8>,
    /// What orders the pieces of different updates of the screen
    #[arg(long, value_enum, value_name = "WHAT", default_value = "geometry")]
    order: Order,
    /// Have the RFB server send updates without being asked for each, if it can: for one that is not
    /// on this machine
    #[arg(long)]
    continuous_updates: bool,
    /// Most viewers at a time; three quarters of them, rounded up, from one network that is not this
    /// machine
    #[arg(long, value_name = "N", default_value = "16")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=256))]
    max_viewers: u16,
    #[command(flatten)]
    memory: MemoryArgs,
    #[command(flatten)]
    transport: TransportArgs,
    #[command(flatten)]
    qlog: QlogArgs,
    #[command(flatten)]
    monitor: MonitorArgs,
    /// Show every two seconds, and when a viewer leaves, how long changes take to be painted, and
    /// what is lost on the way
    #[arg(long)]
    stats: bool,
    /// Print the address, the fingerprint and the token as JSON, and statistics of each viewer when
    /// it leaves
    #[arg(long)]
    json: bool,
}

/// The names of [`UpdateOrder`].
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Order {
    /// What they write and read: parts of two updates may be seen at once
    Geometry,
    /// Fences: nothing of an update is seen before all of the former one
    Fences,
}

impl From<Order> for UpdateOrder {
    fn from(order: Order) -> Self {
        match order {
            Order::Geometry => Self::Geometry,
            Order::Fences => Self::Fences,
        }
    }
}

/// A session and the task that serves it.
#[derive(Debug)]
struct Slot {
    /// Its place among the viewers.
    pass: Pass,
    /// The task that serves the session holds this; the session is `None` once it is over.
    session: Arc<AsyncMutex<Option<Session>>>,
    /// Tells the task that serves the session to stop. Each task has a notification of its own.
    replaced: Mutex<Arc<Notify>>,
}

/// All sessions, by the secret that the viewer's end shows to go on with a session.
type Sessions = Mutex<HashMap<[u8; 16], Arc<Slot>>>;

#[derive(Debug)]
struct Bridge {
    to: ServerAddress,
    login: Arc<ServerLogin>,
    token: Option<Zeroizing<String>>,
    quality: Option<u8>,
    order: UpdateOrder,
    continuous_updates: bool,
    /// Viewers that have not shown the token.
    knocking: Doors,
    /// Viewers that have shown the token; they are silent until the RFB server has let them in.
    viewers: Doors,
    guesses: Guesses,
    monitor: Monitor,
    stats: bool,
    json: bool,
    sessions: Sessions,
    stop: watch::Receiver<bool>,
}

/// A session that is to be served, and how to find it again.
#[derive(Debug)]
struct Served {
    id: [u8; 16],
    session: OwnedMutexGuard<Option<Session>>,
    replaced: Arc<Notify>,
    resumed: bool,
}

/// Why a viewer is not let in.
type Refusal = (End, String);

/// Serves until interrupted.
pub async fn run(args: VncArgs) -> Result<Exit, Failure> {
    args.qlog.prepare()?;
    let (identity, origin) = args.identity.identity()?;
    let fingerprint = identity.fingerprint();
    let token = match args.token.given()? {
        None if args.no_token => None,
        None => Some(keep_in(&args.identity.state_dir()?, token::FILE)?),
        given => given,
    };
    let login = Arc::new(args.login.login()?);
    let config = server_config(identity, args.client_ca.as_deref(), ALPN)?;
    let config = config.transport(transport(&args.transport));
    let passed = passed::one_for_udp()?;
    let (endpoint, address) = start(args.listen, passed, config, &args.identity, &args.memory)?;
    args.qlog.watch(&endpoint, "sutura vnc serve");
    if let Err(Unusable::Password(why) | Unusable::Other(why)) =
        upstream::try_out(&args.to, &login).await
    {
        output::complain(&format!("{why}; viewers are told so until there is one"));
    }
    let monitor = args.monitor.start("sutura vnc serve").await?;
    let interrupted = interrupted();
    let shown = token.as_ref().map(|token| token.as_str());
    announce(&args, address, &fingerprint, &origin, shown)?;

    let (stopping, stop) = watch::channel(false);
    let bridge = Arc::new(Bridge {
        to: args.to,
        login,
        token,
        quality: args.quality,
        order: args.order.into(),
        continuous_updates: args.continuous_updates,
        knocking: Doors::new(MAX_KNOCKING),
        viewers: Doors::new(args.max_viewers.into()),
        guesses: Guesses::default(),
        monitor,
        stats: args.stats,
        json: args.json,
        sessions: Sessions::default(),
        stop,
    });
    let mut accepting =
        tokio::spawn(accept(endpoint.clone(), move |incoming| serve(incoming, bridge.clone())));
    let stop = interrupted.await?;
    endpoint.stop_accepting();
    match stop {
        Stop::Interrupted => {
            // Fails if nobody is connected.
            let _ = stopping.send(true);
        }
        // Viewers keep their screen, and come back if the server is started again.
        Stop::Terminated => endpoint.close(RESTARTING, b"sutura vnc serve was stopped"),
    }
    let _ = timeout(LAST_WORDS, &mut accepting).await;
    accepting.abort();
    let _ = timeout(LAST_WORDS, endpoint.wait_idle()).await;
    Ok(Exit::Success)
}

fn announce(
    args: &VncArgs,
    address: SocketAddr,
    fingerprint: &str,
    origin: &Path,
    token: Option<&str>,
) -> Result<(), Failure> {
    if args.json {
        return output::json(&json!({
            "listening": address.to_string(),
            "port": address.port(),
            "fingerprint": fingerprint,
            "certificate": origin,
            "token": token,
        }));
    }
    let token = match (token, &args.client_ca) {
        (Some(token), _) => format!("token {token}"),
        (None, None) => "no token: everybody may connect".into(),
        (None, Some(path)) => {
            format!("no token: who has a certificate of {} may connect", path.display())
        }
    };
    let (listening, to, origin) = (listen::describe(address), &args.to, origin.display());
    output::line(&format!(
        "UDP {listening} shows the screen of {to}\ncertificate {origin}\nfingerprint {fingerprint}\n{token}"
    ))
}

/// Serves a connection to its end.
async fn serve(incoming: Incoming, bridge: Arc<Bridge>) {
    let Ok(connection) = incoming.await else { return };
    bridge.monitor.follow(&connection);
    let name = peer(&connection);
    let address = connection.remote_address().ip();
    let Some(pass) = bridge.knocking.enter(address) else { return };
    let accepted = tokio::select! {
        () = pass.turned_out() => None,
        accepted = timeout(SILENCE_TIMEOUT, connection.accept_bi()) => accepted.ok(),
    };
    let Some(Ok((send, recv))) = accepted else {
        connection.close(super::DONE, b"");
        return;
    };
    let mut control = Control::new(send, recv);
    match bridge.admit(&mut control, address, pass).await {
        Ok(served) => bridge.show(served, connection, control, &name).await,
        Err(Some((why, reason))) => {
            output::complain(&format!("{name}: {reason}"));
            dismiss(&connection, &mut control, why, reason).await;
        }
        Err(None) => connection.close(super::DONE, b""),
    }
}

/// Tells the viewer's end why it is over.
async fn dismiss(connection: &Connection, control: &mut Control, why: End, reason: String) {
    control.tell_viewer(&ToViewer::Ended { why, reason });
    let told = async {
        if control.finish().await.is_ok() {
            connection.closed().await;
        }
    };
    // The other end closes the connection when it has read the message.
    let _ = timeout(LAST_WORDS, told).await;
    connection.close(super::DONE, b"");
}

impl Bridge {
    fn sessions(&self) -> MutexGuard<'_, HashMap<[u8; 16], Arc<Slot>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a viewer in, or says why not; says nothing if it has gone.
    async fn admit(
        &self,
        control: &mut Control,
        address: IpAddr,
        pass: Pass,
    ) -> Result<Served, Option<Refusal>> {
        let hello = tokio::select! {
            () = pass.turned_out() => return Err(Some((End::Busy, GAVE_WAY.into()))),
            hello = timeout(SILENCE_TIMEOUT, receive(control)) => match hello {
                Ok(Ok(hello)) => hello,
                Ok(Err(Broken::Protocol(e))) => return Err(Some((End::Server, e.to_string()))),
                Ok(Err(Broken::Connection(_) | Broken::Ended)) | Err(_) => return Err(None),
            },
        };
        let ToServer::Hello { token, resume } = hello else { return Err(None) };
        tokio::select! {
            () = pass.turned_out() => return Err(Some((End::Busy, GAVE_WAY.into()))),
            judged = self.judge(&token, address) => judged.map_err(Some)?,
        }
        drop(pass);
        if let Some(id) = resume
            && let Some(served) = self.resume(id).await
        {
            let taken = served.session.as_ref().map_or(0, |session| session.taken);
            control.tell_viewer(&ToViewer::Welcome { session: id, resumed: true, taken });
            return Ok(served);
        }
        self.begin(control, address).await
    }

    /// Whether a token is the right one. Addresses that have shown wrong tokens wait for the answer.
    async fn judge(&self, token: &str, address: IpAddr) -> Result<(), Refusal> {
        let Some(expected) = &self.token else { return Ok(()) };
        let Some(wait) = self.guesses.queue(address, Instant::now()) else {
            return Err((End::Token, "too many wrong tokens from this address: wait".into()));
        };
        if !wait.is_zero() {
            sleep(wait).await;
        }
        if same(expected, token) {
            return Ok(());
        }
        self.guesses.wrong(address, Instant::now());
        Err((End::Token, "the token is wrong".into()))
    }

    /// The session with this name, if it is not over.
    async fn resume(&self, id: [u8; 16]) -> Option<Served> {
        let slot = self.sessions().get(&id).cloned()?;
        let replaced = Arc::new(Notify::new());
        let old = std::mem::replace(&mut *lock(&slot.replaced), replaced.clone());
        // The task that serves the session may not know yet that its connection is lost.
        old.notify_one();
        let session = timeout(HANDSHAKE_TIMEOUT, slot.session.clone().lock_owned()).await.ok()?;
        session.is_some().then_some(Served { id, session, replaced, resumed: true })
    }

    /// Begins a session, if the RFB server lets the viewer in.
    async fn begin(
        &self,
        control: &mut Control,
        address: IpAddr,
    ) -> Result<Served, Option<Refusal>> {
        let failed = |failure: Failure| Some((End::Server, failure.message));
        let id = random().map_err(failed)?;
        let pass = self.viewers.enter(address);
        let pass = pass.ok_or_else(|| Some((End::Busy, "there are too many viewers".into())))?;
        let slot = Arc::new(Slot { pass, session: Arc::default(), replaced: Mutex::default() });
        self.sessions().insert(id, slot.clone());
        let mut session = slot.session.clone().lock_owned().await;
        control.tell_viewer(&ToViewer::Welcome { session: id, resumed: false, taken: 0 });
        let begun = tokio::select! {
            () = slot.pass.turned_out() => Err(Some((End::Busy, GAVE_WAY.into()))),
            begun = self.log_in(control) => begun.and_then(|upstream| {
                Session::new(upstream, self.quality, self.order).map_err(|e| Some((End::Server, e)))
            }),
        };
        match begun {
            Ok(begun) => {
                slot.pass.stay();
                *session = Some(begun);
            }
            Err(refusal) => {
                self.sessions().remove(&id);
                return Err(refusal);
            }
        }
        let replaced = lock(&slot.replaced).clone();
        Ok(Served { id, session, replaced, resumed: false })
    }

    /// Connects to the RFB server; passes its challenge on to the viewer, if it has one.
    async fn log_in(&self, control: &mut Control) -> Result<Upstream, Option<Refusal>> {
        let refusal = |unusable: Unusable| match unusable {
            Unusable::Password(reason) => Some((End::Password, reason)),
            Unusable::Other(reason) => Some((End::Server, reason)),
        };
        let mut knocking = Knocking::connect(&self.to, &self.login).await.map_err(refusal)?;
        if self.continuous_updates {
            knocking.want_unasked();
        }
        loop {
            match knocking.knock().await.map_err(refusal)? {
                (_, Wants::Nothing(upstream)) => return Ok(*upstream),
                (None, Wants::Password(_)) => return Err(None),
                (Some(waiting), Wants::Password(challenge)) => {
                    control.tell_viewer(&ToViewer::Challenge(challenge));
                    let answer = timeout(PASSWORD_TIMEOUT, receive(control)).await;
                    let Ok(Ok(ToServer::Response(response))) = answer else { return Err(None) };
                    knocking = waiting;
                    knocking.answer(response);
                }
            }
        }
    }

    /// Serves a session over a connection until the session or the connection ends.
    async fn show(
        self: &Arc<Self>,
        mut served: Served,
        connection: Connection,
        control: Control,
        name: &str,
    ) {
        let Some(session) = served.session.as_mut() else { return };
        let Some(group) = connection.open_group(Priority::default()) else { return };
        let mut link = Link { connection: connection.clone(), control, group };
        if served.resumed {
            session.resume();
        }
        session.introduce(&mut link.control);
        output::note(&format!("{name}: {}", if served.resumed { "is back" } else { "connected" }));
        let ending = self.watch(session, &mut link, &served.replaced, name).await;
        self.report(session, &connection, name);
        match ending {
            Ending::Lost(why) => {
                output::complain(&format!("{name}: lost: {why}"));
                session.release().await;
                self.forget_later(served);
                return;
            }
            Ending::Replaced => {
                session.release().await;
                connection.close(super::DONE, b"another connection goes on with the session");
                return;
            }
            Ending::Left => output::note(&format!("{name}: left")),
            Ending::Server(reason) => {
                output::complain(&format!("{name}: {reason}"));
                dismiss(&connection, &mut link.control, End::Server, reason).await;
            }
            Ending::Invalid(reason) => {
                output::complain(&format!("{name}: {reason}"));
                connection.close(INVALID, reason.as_bytes());
            }
        }
        *served.session = None;
        self.sessions().remove(&served.id);
    }

    /// Runs a session, and shows statistics meanwhile.
    async fn watch(
        &self,
        session: &mut Session,
        link: &mut Link,
        replaced: &Notify,
        name: &str,
    ) -> Ending {
        let mut earlier = Statistics::of(&link.connection);
        loop {
            let stop = self.stop.clone();
            match timeout(STATS_INTERVAL, session.run(link, replaced, stop)).await {
                Ok(ending) => return ending,
                Err(_) if self.stats && !self.json => {
                    let now = Statistics::of(&link.connection);
                    now.live(name, &earlier).iter().for_each(|line| output::note(line));
                    output::note(&format!("  {}", session.sent.text()));
                    earlier = now;
                }
                Err(_) => {}
            }
        }
    }

    fn report(&self, session: &Session, connection: &Connection, name: &str) {
        let statistics = Statistics::of(connection);
        if self.json {
            let mut value = statistics.to_json();
            value["viewer"] = name.into();
            value["screen"] = session.sent.to_json();
            // Nobody may read it any more; the bridge goes on.
            let _ = output::json(&value);
        } else if self.stats {
            statistics.summary(name).iter().for_each(|line| output::note(line));
            output::note(&format!("  {}", session.sent.text()));
        }
    }

    /// Ends a session unless its viewer comes back in time.
    fn forget_later(self: &Arc<Self>, served: Served) {
        let Served { id, session, replaced, .. } = served;
        drop(session);
        let bridge = self.clone();
        tokio::spawn(async move {
            sleep(RESUME_TIME).await;
            let slot = bridge.sessions().get(&id).cloned();
            // A task that goes on with the session has another notification.
            if slot.is_some_and(|slot| Arc::ptr_eq(&*lock(&slot.replaced), &replaced)) {
                bridge.sessions().remove(&id);
            }
        });
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for the next message of the viewer's end.
async fn receive(control: &mut Control) -> Result<ToServer, Broken> {
    loop {
        if let Some(message) = control.take_from_viewer()? {
            return Ok(message);
        }
        control.exchange(true).await?;
    }
}
