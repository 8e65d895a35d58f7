//! s2n-quic. Its core cannot be driven from outside, so it gets the clients' datagrams through
//! sockets.

use crate::clients::Client;
use crate::server::Server;
use pem::Pem;
use s2n_quic::provider::limits::Limits;
use s2n_quic::provider::tls::{self, rustls, s2n_tls};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Duration;
use sutura_benches::Error;
use sutura_benches::tls::{ALPN, Identity};
use tokio::runtime;

/// Clients whose sockets are open at a time: the buffer of the server's socket has room for all of them.
const AT_A_TIME: usize = 20;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Time for the server to end its work after the last answer.
const SETTLE: Duration = Duration::from_secs(1);

/// Longer than the measurement, so that no handshake is given up.
const TIMEOUT: Duration = Duration::from_secs(3600);

/// The bits that tell an Initial packet from all other packets (RFC 9000 section 17.2.2), and their mask.
const INITIAL: u8 = 0xc0;
const TYPE: u8 = 0xf0;

/// A server in a thread of its own, which ends with the process.
pub struct S2nQuic {
    address: SocketAddr,
}

/// The certificate and the private key in PEM.
fn pem(identity: &Identity) -> (String, String) {
    let encode = |tag: &str, der: &[u8]| pem::encode(&Pem::new(tag, der));
    (encode("CERTIFICATE", identity.certificate()), encode("PRIVATE KEY", identity.key()))
}

impl S2nQuic {
    pub fn with_s2n_tls(identity: &Identity) -> Result<Self, Error> {
        let (certificate, key) = pem(identity);
        let tls = s2n_tls::Server::builder()
            .with_certificate(certificate, key)?
            .with_application_protocols([ALPN])?;
        Self::start(tls.build()?)
    }

    pub fn with_rustls(identity: &Identity) -> Result<Self, Error> {
        let (certificate, key) = pem(identity);
        let tls = rustls::Server::builder()
            .with_certificate(certificate, key)?
            .with_application_protocols([ALPN].into_iter())?;
        Self::start(tls.build()?)
    }

    fn start<T: tls::Provider + Send + 'static>(tls: T) -> Result<Self, Error> {
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            let runtime = runtime::Builder::new_current_thread().enable_all().build();
            let served = runtime
                .map_err(Error::from)
                .and_then(|runtime| runtime.block_on(serve(tls, &sender)));
            // The receiver is gone if it already has the address.
            sender.send(served.and(Err("the server has ended".into()))).ok();
        });
        Ok(Self { address: receiver.recv()?? })
    }
}

/// Serves for ever once it has sent its address.
async fn serve<T: tls::Provider>(
    tls: T,
    address: &Sender<Result<SocketAddr, Error>>,
) -> Result<(), Error> {
    let limits =
        Limits::new().with_max_handshake_duration(TIMEOUT)?.with_max_idle_timeout(TIMEOUT)?;
    let builder = s2n_quic::Server::builder()
        .with_limits(limits)?
        .with_io(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    let builder = builder.with_tls(tls).map_err(|error| error.to_string())?;
    let mut server = builder.start()?;
    address.send(Ok(server.local_addr()?))?;
    while server.accept().await.is_some() {}
    Ok(())
}

impl Server for S2nQuic {
    fn receive(&mut self, _clients: &[Client]) -> Result<bool, Error> {
        Ok(false)
    }

    fn answer(&mut self, clients: &[Client]) -> Result<usize, Error> {
        let mut answered = 0;
        for clients in clients.chunks(AT_A_TIME) {
            let mut sockets = Vec::with_capacity(clients.len());
            for client in clients {
                let socket = UdpSocket::bind(client.address)?;
                socket.set_read_timeout(Some(PATIENCE))?;
                socket.send_to(&client.datagram, self.address)?;
                sockets.push(socket);
            }
            for socket in sockets {
                let mut first = [0; 1];
                // The rest of the datagram is cut off.
                let (len, from) = socket.recv_from(&mut first)?;
                if len == 1 && from == self.address && first[0] & TYPE == INITIAL {
                    answered += 1;
                }
            }
        }
        thread::sleep(SETTLE);
        Ok(answered)
    }
}
