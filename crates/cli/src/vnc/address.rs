//! Where an RFB server listens: a TCP port or a UNIX socket.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use rustls::pki_types::ServerName;
use tokio::net::TcpStream;

use super::socket::Socket;
use crate::url::Authority;

/// The TCP port of RFB servers.
const RFB_PORT: u16 = 5900;

/// Where an RFB server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerAddress {
    Tcp(Authority),
    Unix(PathBuf),
}

impl ServerAddress {
    /// Reads `unix:PATH`, a path that begins with `/` or `./`, or a host with or without a port.
    ///
    /// # Errors
    /// The text is something else; the error says why.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        match unix_path(text)? {
            Some(path) => Ok(Self::Unix(path)),
            None => Authority::parse(text, RFB_PORT).map(Self::Tcp),
        }
    }

    /// The name that the server's certificate must have.
    pub fn certificate_name(&self) -> &str {
        match self {
            Self::Tcp(authority) => &authority.host,
            Self::Unix(_) => "localhost",
        }
    }

    /// The same, as TLS takes it.
    ///
    /// # Errors
    /// The host is no name that a certificate can have.
    pub fn tls_name(&self) -> io::Result<ServerName<'static>> {
        ServerName::try_from(self.certificate_name().to_owned()).map_err(io::Error::other)
    }

    /// Connects. Also says whether the server is on this machine.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub async fn connect(&self) -> io::Result<(Socket, bool)> {
        match self {
            Self::Tcp(authority) => {
                let tcp = TcpStream::connect((authority.host.as_str(), authority.port)).await?;
                let here = tcp.peer_addr().is_ok_and(|address| is_here(address.ip()));
                Ok((Socket::new(tcp), here))
            }
            #[cfg(unix)]
            Self::Unix(path) => {
                let stream = tokio::net::UnixStream::connect(path).await?;
                Ok((Socket::over(stream), true))
            }
            #[cfg(not(unix))]
            Self::Unix(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(authority) => authority.fmt(f),
            Self::Unix(path) => path.display().fmt(f),
        }
    }
}

fn is_here(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// The path of a UNIX socket that a text names, if it names one: `unix:PATH`, `/PATH` or `./PATH`.
///
/// # Errors
/// The path is empty, or this system has no UNIX sockets.
pub fn unix_path(text: &str) -> Result<Option<PathBuf>, &'static str> {
    let path = match text.strip_prefix("unix:") {
        Some(path) => path,
        None if text.starts_with('/') || text.starts_with("./") => text,
        None => return Ok(None),
    };
    if path.is_empty() {
        return Err("the path of a UNIX socket is missing");
    }
    if cfg!(not(unix)) {
        return Err("this system has no UNIX sockets");
    }
    Ok(Some(Path::new(path).to_owned()))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn paths_and_hosts_are_told_apart() {
        for (text, path) in [("unix:a", "a"), ("/run/vnc", "/run/vnc"), ("./vnc", "./vnc")] {
            assert_eq!(ServerAddress::parse(text), Ok(ServerAddress::Unix(path.into())), "{text}");
        }
        for (text, shown) in [("a", "a:5900"), ("[::1]:5", "[::1]:5"), ("unix", "unix:5900")] {
            assert_eq!(ServerAddress::parse(text).map(|to| to.to_string()), Ok(shown.into()));
        }
        assert!(ServerAddress::parse("unix:").is_err() && ServerAddress::parse("a:b").is_err());
        assert_eq!(ServerAddress::parse("/run/vnc").unwrap().certificate_name(), "localhost");
    }
}
