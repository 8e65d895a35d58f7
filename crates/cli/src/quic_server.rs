//! Servers that want a token or certificates of their clients.

use std::net::SocketAddr;
use std::path::Path;

use rustls::RootCertStore;
use sutura::{Endpoint, EndpointConfig, ServerConfig};

use crate::cert::Identity;
use crate::failure::Failure;
use crate::listen::Listen;
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

/// Listens.
///
/// # Errors
/// The address cannot be listened on.
pub fn bind(
    listen: Listen,
    config: &ServerConfig,
    secrets: Option<&Secrets>,
) -> Result<(Endpoint, SocketAddr), Failure> {
    let failed = |e: std::io::Error| Failure::local(format!("cannot listen on {listen}: {e}"));
    let endpoint = listen.bind(|address| {
        // A server that is started again at the same address tells viewers that it has forgotten them. A
        // server that takes any free port is never at the same address again.
        let secrets = secrets.filter(|_| address.port() != 0);
        let context = address.to_string();
        let reset_key = secrets.map(|secrets| secrets.reset_key(context.as_bytes()));
        let limits = EndpointConfig::default().with_reset_key(reset_key);
        Endpoint::bind(limits, Some(config.clone()), address)
    });
    let endpoint = endpoint.map_err(failed)?;
    let address = endpoint.local_addr().map_err(failed)?;
    Ok((endpoint, address))
}
