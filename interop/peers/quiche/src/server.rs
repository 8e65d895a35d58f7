//! The server.

use crate::config::{CONNECTION_ID_LEN, config, log, random, server_address};
use crate::udp::Udp;
use crate::{Error, http3, http09, variable};
use quiche::{Config, Connection, ConnectionId, Header, RecvInfo, Shutdown, Type};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Size of the answer to a datagram that belongs to no connection.
const DATAGRAM: usize = 1200;

/// Requests in a version of HTTP, all of one connection.
pub trait Serve {
    /// Reads and answers as many requests as possible.
    fn advance(&mut self, connection: &mut Connection) -> Result<(), Error>;
}

pub fn run(case: &str) -> Result<(), Error> {
    let mut config = config(case)?;
    let directory = variable("CERTS")?;
    config.load_cert_chain_from_pem_file(&format!("{directory}/cert.pem"))?;
    config.load_priv_key_from_pem_file(&format!("{directory}/priv.key"))?;
    let mut udp = Udp::bind(server_address()?)?;
    let mut server = Server {
        case: case.to_owned(),
        config,
        clients: HashMap::new(),
        numbers: HashMap::new(),
        next: 0,
    };
    loop {
        let go_on = udp.wait(server.timeout())?;
        server.receive(&mut udp)?;
        server.advance(&mut udp, !go_on)?;
        if !go_on {
            return Ok(());
        }
    }
}

/// Ends a request that is not answered.
pub fn refuse(connection: &mut Connection, stream: u64) {
    for direction in [Shutdown::Read, Shutdown::Write] {
        // This fails only if the direction has already ended.
        connection.stream_shutdown(stream, direction, 0).ok();
    }
}

struct Client {
    connection: Connection,
    http: Box<dyn Serve>,
}

/// All connections.
struct Server {
    case: String,
    config: Config,
    clients: HashMap<u64, Client>,
    /// The number of the connection to which an identifier belongs.
    numbers: HashMap<ConnectionId<'static>, u64>,
    next: u64,
}

impl Server {
    /// The time until the next timer of a connection.
    fn timeout(&self) -> Option<Duration> {
        self.clients.values().filter_map(|client| client.connection.timeout()).min()
    }

    fn receive(&mut self, udp: &mut Udp) -> Result<(), Error> {
        while let Some((datagram, info)) = udp.receive()? {
            let Ok(header) = Header::from_slice(datagram, CONNECTION_ID_LEN) else { continue };
            let number = match self.numbers.get(&header.dcid) {
                Some(number) => *number,
                None => match self.first_datagram(&header, &info)? {
                    First::Connection(number) => number,
                    First::Answer(answer) => {
                        udp.send_to(&answer, info.from)?;
                        continue;
                    }
                    First::Nothing => continue,
                },
            };
            if let Some(client) = self.clients.get_mut(&number)
                && let Err(error) = client.connection.recv(datagram, info)
            {
                eprintln!("quiche: a datagram was dropped: {error}");
            }
        }
        Ok(())
    }

    /// Answers or accepts a datagram that belongs to no connection.
    fn first_datagram(&mut self, header: &Header, info: &RecvInfo) -> Result<First, Error> {
        if header.ty != Type::Initial {
            return Ok(First::Nothing);
        }
        let mut answer = vec![0; DATAGRAM];
        if !quiche::version_is_supported(header.version) {
            let len = quiche::negotiate_version(&header.scid, &header.dcid, &mut answer)?;
            answer.truncate(len);
            return Ok(First::Answer(answer));
        }
        let id = ConnectionId::from_vec(random::<CONNECTION_ID_LEN>()?.to_vec());
        let token = header.token.as_deref().unwrap_or_default();
        if self.case == "retry" && token.is_empty() {
            let token = token_for(info.from, &header.dcid);
            let (client, server) = (&header.scid, &header.dcid);
            let len = quiche::retry(client, server, &id, &token, header.version, &mut answer)?;
            answer.truncate(len);
            return Ok(First::Answer(answer));
        }
        if self.case == "retry" {
            let Some(original) = original_of(info.from, token) else { return Ok(First::Nothing) };
            // The identifier that the Retry gave to the client.
            let id = header.dcid.clone().into_owned();
            return self.accept(id, Some(&original), info).map(First::Connection);
        }
        let number = self.accept(id, None, info)?;
        // The client uses its first identifier of the server until it has an answer.
        self.numbers.insert(header.dcid.clone().into_owned(), number);
        Ok(First::Connection(number))
    }

    fn accept(
        &mut self,
        id: ConnectionId<'static>,
        original: Option<&ConnectionId>,
        info: &RecvInfo,
    ) -> Result<u64, Error> {
        let mut connection = quiche::accept(&id, original, info.to, info.from, &mut self.config)?;
        log(&mut connection)?;
        let http: Box<dyn Serve> = match self.case.as_str() {
            "http3" => Box::new(http3::Server::new()?),
            _ => Box::new(http09::Server::default()),
        };
        let number = self.next;
        self.next += 1;
        self.numbers.insert(id, number);
        self.clients.insert(number, Client { connection, http });
        Ok(number)
    }

    /// Lets every connection make progress, and forgets connections that have ended.
    fn advance(&mut self, udp: &mut Udp, close: bool) -> Result<(), Error> {
        for (number, client) in &mut self.clients {
            let connection = &mut client.connection;
            if connection.timeout() == Some(Duration::ZERO) {
                connection.on_timeout();
            }
            if connection.is_in_early_data() || connection.is_established() {
                manage_connection_ids(connection, *number, &mut self.numbers)?;
                if let Err(error) = client.http.advance(connection) {
                    eprintln!("quiche: connection {number}: {error}");
                }
            }
            if close {
                // This fails only if the connection is closed already.
                connection.close(true, 0, b"").ok();
            }
            if let Err(error) = udp.send_all(connection) {
                eprintln!("quiche: connection {number}: {error}");
            }
        }
        self.clients.retain(|_, client| !client.connection.is_closed());
        self.numbers.retain(|_, number| self.clients.contains_key(number));
        Ok(())
    }
}

/// The outcome of a datagram that belongs to no connection.
enum First {
    Connection(u64),
    Answer(Vec<u8>),
    Nothing,
}

/// Gives the client identifiers to use after its address changes, and forgets identifiers that it no longer
/// uses.
fn manage_connection_ids(
    connection: &mut Connection,
    number: u64,
    numbers: &mut HashMap<ConnectionId<'static>, u64>,
) -> Result<(), Error> {
    while connection.scids_left() > 0 {
        let id = ConnectionId::from_vec(random::<CONNECTION_ID_LEN>()?.to_vec());
        let reset_token = u128::from_be_bytes(random()?);
        if connection.new_scid(&id, reset_token, false).is_err() {
            break;
        }
        numbers.insert(id, number);
    }
    while let Some(id) = connection.retired_scid_next() {
        numbers.remove(&id);
    }
    Ok(())
}

/// The token that a Retry asks the client to return: its address, and the identifier with which it began. A
/// server outside of tests must also protect the token against forgery.
fn token_for(client: SocketAddr, original: &ConnectionId) -> Vec<u8> {
    [&octets(client), original.as_ref()].concat()
}

/// The identifier with which the client began, if the token was made for its address.
fn original_of(client: SocketAddr, token: &[u8]) -> Option<ConnectionId<'static>> {
    let original = token.strip_prefix(octets(client).as_slice())?;
    Some(ConnectionId::from_vec(original.to_vec()))
}

fn octets(address: SocketAddr) -> Vec<u8> {
    let mut octets = match address.ip() {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    octets.extend_from_slice(&address.port().to_be_bytes());
    octets
}
