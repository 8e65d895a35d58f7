//! `sutura vnc`: a remote desktop over a lossy path. One command runs beside an RFB server, the other beside
//! a viewer; between them, changes of the screen travel as pieces that need not arrive in order.

mod address;
mod connect;
mod control;
mod inputs;
mod listener;
mod local;
mod login;
mod pressed;
mod report;
mod serve;
mod session;
mod socket;
mod token;
mod upstream;
mod viewer;

use std::time::Duration;

use clap::Subcommand;
use sutura::TransportConfig;
use tokio::sync::watch;

use crate::failure::{Exit, Failure};
use crate::transport::TransportArgs;

/// The application protocol (RFC 7301) of the bridge.
const ALPN: &[u8] = b"sutura-vnc";
/// The UDP port of the bridge: the number that RFB has for TCP.
const DEFAULT_PORT: u16 = 5900;
/// The application error code of a connection that is not needed any more.
const DONE: u64 = 0;
/// The application error code of a connection whose peer does not keep the bridge's protocol.
const INVALID: u64 = 1;
/// The application error code of a connection that ends because the server's end does, which may be started
/// again.
const RESTARTING: u64 = 2;
/// When a connection counts as lost.
const IDLE_TIMEOUT: Duration = Duration::from_secs(10);
/// How often the other end shows that it is there.
const KEEP_ALIVE: Duration = Duration::from_secs(2);
/// Pieces of the screen that may be on their way, each of which is a unidirectional stream.
const MAX_PIECES: u64 = 4096;
/// How long a session waits for a viewer's end whose connection was lost.
const RESUME_TIME: Duration = Duration::from_secs(60);
/// How long each step of a handshake over the network may take.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long each step of a handshake may take that needs no person: programs answer at once.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(5);
/// The message to viewers that were silent when others came.
const GAVE_WAY: &str = "others wanted to connect, and this one was silent";
/// How long a person may take to type a password.
const PASSWORD_TIMEOUT: Duration = Duration::from_secs(120);
/// How long the other end may take to read why a session is over.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// How often statistics are shown.
const STATS_INTERVAL: Duration = Duration::from_secs(2);

#[derive(Debug, Subcommand)]
pub enum VncCommand {
    /// Run beside an RFB server (TigerVNC, x11vnc, QEMU) and serve its screen
    Serve(serve::VncArgs),
    /// Run beside a viewer (TigerVNC, Remmina, noVNC) and show it the screen
    Connect(connect::ConnectArgs),
}

/// Runs one end of the bridge.
pub async fn run(command: VncCommand) -> Result<Exit, Failure> {
    match command {
        VncCommand::Serve(args) => serve::run(args).await,
        VncCommand::Connect(args) => connect::run(args).await,
    }
}

/// The configuration of connections between both ends.
fn transport(args: &TransportArgs) -> TransportConfig {
    args.interactive(IDLE_TIMEOUT)
        .with_keep_alive(Some(KEEP_ALIVE))
        .with_max_concurrent_uni_streams(MAX_PIECES)
}

/// Waits until the command is to stop.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    // The sender is kept until the end.
    let _ = stop.wait_for(|&stop| stop).await;
}
