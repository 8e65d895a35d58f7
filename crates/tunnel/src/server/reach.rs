//! Finds the addresses of targets, and connects to those that are permitted.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

use super::lookups::Lookups;
use crate::access::{AllowList, Host, Target, Transport};
use crate::masque::Cause;
use crate::race::{interleaved, race};

/// How long the resolver may take.
pub const DNS_TIMEOUT: Duration = Duration::from_secs(10);
/// How long all attempts to connect to a target may take together.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// Most addresses of a target that are tried.
pub const MAX_ADDRESSES: usize = 8;

/// Why a target is not reached, and in words.
pub(super) type Unreached = (Cause, String);

/// The addresses of a target that the rules permit, in the order in which they are to be tried.
///
/// # Errors
/// There are none.
pub(super) async fn addresses(
    transport: Transport,
    target: &Target,
    allow: &AllowList,
    lookups: &Lookups,
) -> Result<Vec<SocketAddr>, Unreached> {
    let (name, found) = match &target.host {
        Host::Ip(ip) => (None, vec![SocketAddr::new(*ip, target.port)]),
        Host::Name(name) if !allow.may_allow(transport, name, target.port) => {
            let why =
                format!("{transport} to {target} is not allowed (--allow {target} would allow it)");
            return Err((Cause::Prohibited, why));
        }
        Host::Name(name) => (Some(name), resolve(name.as_str(), target.port, lookups).await?),
    };
    let mut permitted = Vec::new();
    let mut denied = None;
    for address in interleaved(&found) {
        match allow.check(transport, name, address) {
            Ok(()) => permitted.push(address),
            Err(why) => denied = denied.or(Some(why)),
        }
    }
    permitted.truncate(MAX_ADDRESSES);
    match denied {
        Some(why) if permitted.is_empty() => Err((Cause::Prohibited, why.to_string())),
        _ => Ok(permitted),
    }
}

/// The addresses of a name.
///
/// # Errors
/// There are none, or the resolver does not answer in time.
pub(super) async fn resolve(
    name: &str,
    port: u16,
    lookups: &Lookups,
) -> Result<Vec<SocketAddr>, Unreached> {
    let found = timeout(DNS_TIMEOUT, lookups.resolve(name, port, 8 * MAX_ADDRESSES)).await;
    let found = match found {
        Ok(Ok(found)) => found,
        Ok(Err(error)) => return Err((Cause::DnsError, format!("unknown host {name}: {error}"))),
        Err(_) => return Err((Cause::DnsTimeout, format!("no answer about the name {name}"))),
    };
    if found.is_empty() {
        return Err((Cause::DnsError, format!("the host {name} has no address")));
    }
    Ok(found)
}

/// Connects to whichever address of a target answers first.
///
/// # Errors
/// None is permitted, or none answers.
pub(super) async fn connect(
    target: &Target,
    allow: &AllowList,
    lookups: &Lookups,
) -> Result<TcpStream, Unreached> {
    let addresses = addresses(Transport::Tcp, target, allow, lookups).await?;
    let racing = race(addresses, |address| Ok(TcpStream::connect(address)), |_: &io::Error| false);
    match timeout(CONNECT_TIMEOUT, racing).await {
        Ok(Ok(tcp)) => Ok(tcp),
        Ok(Err(Some(error))) => Err((Cause::of(&error), format!("{target}: {error}"))),
        Ok(Err(None)) => Err((Cause::DnsError, format!("{target} has no address"))),
        Err(_) => Err((Cause::Timeout, format!("{target} does not answer"))),
    }
}

/// A socket that sends to the first permitted address of a target and receives from there alone.
///
/// # Errors
/// None is permitted, or this machine has no way there.
pub(super) async fn open_udp(
    target: &Target,
    allow: &AllowList,
    lookups: &Lookups,
) -> Result<(UdpSocket, SocketAddr), Unreached> {
    let mut failed = None;
    for address in addresses(Transport::Udp, target, allow, lookups).await? {
        let any: SocketAddr = match address {
            SocketAddr::V4(_) => ([0, 0, 0, 0], 0).into(),
            SocketAddr::V6(_) => ([0; 16], 0).into(),
        };
        let opened = async {
            let socket = UdpSocket::bind(any).await?;
            socket.connect(address).await?;
            Ok::<_, io::Error>(socket)
        };
        match opened.await {
            Ok(socket) => return Ok((socket, address)),
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    match failed {
        Some(error) => Err((Cause::of(&error), format!("{target}: {error}"))),
        None => Err((Cause::DnsError, format!("{target} has no address"))),
    }
}
