//! Servers that want a token or certificates of their clients.

use std::net::{SocketAddr, UdpSocket};
use std::path::Path;

use rustls::RootCertStore;
use sutura::{Endpoint, EndpointConfig, Incoming, ServerConfig};
use tokio::task::JoinSet;

use crate::cert::{Identity, IdentityArgs};
use crate::failure::Failure;
use crate::keylog;
use crate::listen::Listen;
use crate::memory::MemoryArgs;
use crate::secrets::Secrets;
use crate::trust::file_certificates;

/// The configuration of a server that wants certificates of its clients if there is a file of authorities.
///
/// # Errors
/// The certificates or the key cannot be used.
pub fn server_config(
    identity: Identity,
    client_ca: Option<&Path>,
    alpn: &[u8],
) -> Result<ServerConfig, Failure> {
    let Identity { chain, key } = identity;
    let config = match client_ca {
        None => ServerConfig::with_single_cert(chain, key, &[alpn]),
        Some(path) => {
            let mut authorities = RootCertStore::empty();
            for certificate in file_certificates(path)? {
                authorities.add(certificate).map_err(|e| {
                    Failure::local(format!("no certificate in {}: {e}", path.display()))
                })?;
            }
            ServerConfig::with_client_authorities(chain, key, &[alpn], authorities)
        }
    };
    config.map_err(|e| Failure::local(format!("certificate and key cannot be used: {e}")))
}

/// Listens, or takes the socket that a supervisor has passed, with what is kept between two starts: tickets of clients
/// and resets of their connections.
///
/// # Errors
/// The address cannot be listened on, or the file for keys cannot be written.
pub fn start(
    listen: Listen,
    passed: Option<UdpSocket>,
    config: ServerConfig,
    identity: &IdentityArgs,
    memory: &MemoryArgs,
) -> Result<(Endpoint, SocketAddr), Failure> {
    let mut config = keylog::server(config)?;
    let secrets = identity.secrets();
    let tickets = secrets.as_ref().map(Secrets::ticket_key);
    if let Some(tickets) = &tickets {
        config = config.ticket_key(tickets.clone());
    }
    let (endpoint, address) = bind(listen, passed, &config, secrets.as_ref())?;
    endpoint.set_memory_budget(memory.budget());
    if let Some((secrets, tickets)) = secrets.zip(tickets) {
        tokio::spawn(secrets.renew(tickets));
    }
    Ok((endpoint, address))
}

/// Serves each connection in a task of its own, until the endpoint accepts no more and all have ended.
pub async fn accept<F>(endpoint: Endpoint, serve: impl Fn(Incoming) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            incoming = endpoint.accept() => {
                let Some(incoming) = incoming else { break };
                connections.spawn(serve(incoming));
            }
            Some(_) = connections.join_next() => {}
        }
    }
    while connections.join_next().await.is_some() {}
}

fn bind(
    listen: Listen,
    passed: Option<UdpSocket>,
    config: &ServerConfig,
    secrets: Option<&Secrets>,
) -> Result<(Endpoint, SocketAddr), Failure> {
    let failed = |e: std::io::Error| Failure::local(format!("cannot listen on {listen}: {e}"));
    let limits = |address: SocketAddr| {
        // A server that is started again at the same address tells viewers that it has forgotten them. A
        // server that takes any free port is never at the same address again.
        let secrets = secrets.filter(|_| address.port() != 0);
        let context = address.to_string();
        let reset_key = secrets.map(|secrets| secrets.reset_key(context.as_bytes()));
        EndpointConfig::default().with_reset_key(reset_key)
    };
    let endpoint = match passed {
        Some(socket) => {
            let limits = limits(socket.local_addr().map_err(failed)?);
            Endpoint::with_socket(limits, Some(config.clone()), socket)
        }
        None => {
            listen.bind(|address| Endpoint::bind(limits(address), Some(config.clone()), address))
        }
    };
    let endpoint = endpoint.map_err(failed)?;
    let address = endpoint.local_addr().map_err(failed)?;
    Ok((endpoint, address))
}
