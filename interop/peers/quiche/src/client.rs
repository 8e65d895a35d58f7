//! The client.

use crate::config::{CONNECTION_ID_LEN, config, log, random, server_address};
use crate::udp::Udp;
use crate::{Error, files, http3, http09, variable};
use quiche::{Config, Connection, ConnectionId};
use std::collections::VecDeque;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

/// Requests in a version of HTTP, all on one connection.
pub trait Fetch {
    /// Sends and receives as much data as possible.
    fn advance(&mut self, connection: &mut Connection) -> Result<(), Error>;
    /// Whether all files have arrived.
    fn is_done(&self) -> bool;
}

pub fn run(case: &str) -> Result<(), Error> {
    let mut config = config(case)?;
    config.verify_peer(true);
    config.load_verify_locations_from_file(&format!("{}/ca.pem", variable("CERTS")?))?;
    let requests = variable("REQUESTS")?;
    let paths: Vec<&str> =
        requests.split_whitespace().map(files::path_of).collect::<Result<_, _>>()?;
    let mut client = Client { case, config };
    match case {
        "multiconnect" => {
            paths.iter().try_for_each(|path| client.fetch(&[path], None, false).map(drop))
        }
        "resumption" | "zerortt" => {
            let (first, rest) = paths.split_at_checked(1).ok_or("nothing to fetch")?;
            let session = client.fetch(first, None, true)?;
            client.fetch(rest, session.as_deref(), false).map(drop)
        }
        _ => client.fetch(&paths, None, false).map(drop),
    }
}

struct Client<'a> {
    case: &'a str,
    config: Config,
}

impl Client<'_> {
    /// Fetches the files over a new connection, which resumes a session if there is one. Returns the session
    /// of the new connection if it was told to wait for it.
    fn fetch(
        &mut self,
        paths: &[&str],
        session: Option<&[u8]>,
        wait_for_session: bool,
    ) -> Result<Option<Vec<u8>>, Error> {
        let mut udp = Udp::bind(any_address(server_address()?))?;
        let mut connection = self.connect(&udp, session)?;
        let paths: VecDeque<String> = paths.iter().map(|path| (*path).to_owned()).collect();
        let mut fetch: Box<dyn Fetch> = match self.case {
            "http3" => Box::new(http3::Client::new(paths)?),
            _ => Box::new(http09::Client::new(paths)),
        };
        udp.send_all(&mut connection)?;
        while !connection.is_closed() {
            if connection.is_established() || connection.is_in_early_data() {
                offer_connection_ids(&mut connection)?;
                fetch.advance(&mut connection)?;
            }
            if fetch.is_done() && (connection.session().is_some() || !wait_for_session) {
                // This fails only if the connection is closed already.
                connection.close(true, 0, b"").ok();
            }
            udp.send_all(&mut connection)?;
            step(&mut udp, &mut connection)?;
        }
        if !fetch.is_done() {
            let (local, peer) = (connection.local_error(), connection.peer_error());
            let timed_out = connection.is_timed_out();
            return Err(format!("closed: {local:?}, {peer:?}, timed out: {timed_out}").into());
        }
        if session.is_some() && !connection.is_resumed() {
            return Err("the server did not resume the session".into());
        }
        Ok(connection.session().filter(|_| wait_for_session).map(<[u8]>::to_vec))
    }

    fn connect(&mut self, udp: &Udp, session: Option<&[u8]>) -> Result<Connection, Error> {
        let id: [u8; CONNECTION_ID_LEN] = random()?;
        let id = ConnectionId::from_ref(&id);
        let server = server_address()?;
        let mut connection =
            quiche::connect(Some("localhost"), &id, udp.local(), server, &mut self.config)?;
        log(&mut connection)?;
        if let Some(session) = session {
            connection.set_session(session)?;
        }
        Ok(connection)
    }
}

/// The wildcard address of the same family, with any port.
fn any_address(peer: SocketAddr) -> SocketAddr {
    match peer {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    }
}

/// Gives the server identifiers to use after the client's address changes.
fn offer_connection_ids(connection: &mut Connection) -> Result<(), Error> {
    while connection.is_established() && connection.scids_left() > 0 {
        let id: [u8; CONNECTION_ID_LEN] = random()?;
        let reset_token = u128::from_be_bytes(random()?);
        connection.new_scid(&ConnectionId::from_ref(&id), reset_token, false)?;
    }
    Ok(())
}

/// Waits for datagrams or a timer, and processes them.
fn step(udp: &mut Udp, connection: &mut Connection) -> Result<(), Error> {
    if !udp.wait(connection.timeout())? {
        return Err("stopped".into());
    }
    if connection.timeout() == Some(Duration::ZERO) {
        connection.on_timeout();
    }
    while let Some((datagram, info)) = udp.receive()? {
        // A datagram that cannot be read is dropped. If the connection fails, it tells the peer and closes.
        if let Err(error) = connection.recv(datagram, info) {
            eprintln!("quiche: a datagram was dropped: {error}");
        }
    }
    Ok(())
}
