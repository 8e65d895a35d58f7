//! The servers, and what they serve.

use serde::Serialize;
use std::fmt;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use sutura_benches::Error;
use sutura_benches::server::{self, Server};
use sutura_benches::tls::Identity;
use tempfile::TempDir;

/// A resource: its path and its size.
#[derive(Debug, Clone, Copy)]
pub struct Resource {
    pub path: &'static str,
    pub bytes: u64,
}

/// Bytes of the small file.
const SMALL: u64 = 1000;

/// A directory with the certificate and the files.
pub struct Site {
    directory: TempDir,
    pub identity: Identity,
    pub small: Resource,
    pub large: Resource,
}

impl Site {
    pub fn new(large: u64) -> Result<Self, Error> {
        let site = Self {
            directory: tempfile::tempdir()?,
            identity: Identity::new()?,
            small: Resource { path: "/small", bytes: SMALL },
            large: Resource { path: "/large", bytes: large },
        };
        fs::create_dir(site.at("www"))?;
        for Resource { path, bytes } in [site.small, site.large] {
            fs::write(site.at("www").join(&path[1..]), vec![b'x'; usize::try_from(bytes)?])?;
        }
        let (certificate, key) = site.identity.to_pem();
        fs::write(site.at("certificate.pem"), certificate)?;
        fs::write(site.at("key.pem"), key)?;
        Ok(site)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

/// The kind of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Sutura,
    Caddy,
    Nginx,
}

/// A version of HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Version {
    #[serde(rename = "HTTP/1.1")]
    One,
    #[serde(rename = "HTTP/2")]
    Two,
    #[serde(rename = "HTTP/3")]
    Three,
}

impl Version {
    pub const ALL: [Self; 3] = [Self::One, Self::Two, Self::Three];
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::One => "HTTP/1.1",
            Self::Two => "HTTP/2",
            Self::Three => "HTTP/3",
        })
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sutura => "sutura",
            Self::Caddy => "caddy",
            Self::Nginx => "nginx",
        })
    }
}

impl Kind {
    pub const ALL: [Self; 3] = [Self::Sutura, Self::Caddy, Self::Nginx];

    /// Whether it speaks a version of HTTP.
    pub fn speaks(self, version: Version) -> bool {
        match self {
            Self::Sutura | Self::Caddy => true,
            // HTTP/3 came with 1.25; Debian 12 has 1.22.
            Self::Nginx => version != Version::Three,
        }
    }

    /// The version that the binary says it is.
    pub fn version(self, binary: &Path) -> Result<String, Error> {
        let argument = match self {
            Self::Sutura => "--version",
            Self::Caddy => "version",
            Self::Nginx => "-v",
        };
        let failed = |error: std::io::Error| format!("{}: {error}", binary.display());
        let output = Command::new(binary).arg(argument).output().map_err(failed)?;
        // nginx says it on standard error.
        let text = String::from_utf8([output.stdout, output.stderr].concat())?;
        // caddy says only the version, and the sum of its source behind it.
        let version = text.split([' ', '/', '\n']).find(|word| word.contains('.'));
        Ok(format!("{self} {}", version.ok_or("a server does not say its version")?))
    }
}

/// Starts a server of the site. It may not listen yet.
pub fn start(kind: Kind, binary: &Path, site: &Site) -> Result<Server, Error> {
    match kind {
        Kind::Sutura => Server::start(&mut server::sutura(binary, site.directory.path())),
        Kind::Caddy => {
            caddy(binary, site).map_err(|error| format!("{}: {error}", binary.display()).into())
        }
        Kind::Nginx => {
            nginx(binary, site).map_err(|error| format!("{}: {error}", binary.display()).into())
        }
    }
}

/// A port that is free over UDP and TCP.
fn free_port() -> Result<SocketAddr, Error> {
    let udp = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = udp.local_addr()?;
    drop((TcpListener::bind(address)?, udp));
    Ok(address)
}

/// nginx with a worker for each core and the settings that Debian's file has, on a port that was free before.
fn nginx(binary: &Path, site: &Site) -> Result<Server, Error> {
    let address = free_port()?;
    let file = format!(
        "daemon off;\nworker_processes auto;\npid {pid};\nerror_log {log} error;\n\
         events {{ worker_connections 768; }}\n\
         http {{\n sendfile on;\n tcp_nopush on;\n access_log off;\n keepalive_requests 1000000;\n\
         server {{\n listen {address} ssl http2;\n ssl_certificate {certificate};\n \
         ssl_certificate_key {key};\n \
         ssl_protocols TLSv1.3;\n root {root};\n }}\n}}\n",
        pid = site.at("nginx.pid").display(),
        log = site.at("nginx.log").display(),
        certificate = site.at("certificate.pem").display(),
        key = site.at("key.pem").display(),
        root = site.at("www").display(),
    );
    fs::write(site.at("nginx.conf"), file)?;
    let mut command = Command::new(binary);
    command.arg("-e").arg(site.at("nginx.log")).arg("-c").arg(site.at("nginx.conf"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    Ok(Server::new(command.spawn()?, address).with_children())
}

/// caddy with the settings that it has by itself, on a port that was free before.
fn caddy(binary: &Path, site: &Site) -> Result<Server, Error> {
    // caddy also listens there over TCP.
    let address = free_port()?;
    let quoted = |name: &str| format!("\"{}\"", site.at(name).display());
    let file = format!(
        "{{\n\tadmin off\n\tauto_https off\n\tlog {{\n\t\tlevel ERROR\n\t}}\n}}\n\
         https://localhost:{} {{\n\tbind 127.0.0.1\n\ttls {} {}\n\troot * {}\n\tfile_server\n}}\n",
        address.port(),
        quoted("certificate.pem"),
        quoted("key.pem"),
        quoted("www"),
    );
    fs::write(site.at("Caddyfile"), file)?;
    let mut command = Command::new(binary);
    command.args(["run", "--adapter", "caddyfile", "--config"]).arg(site.at("Caddyfile"));
    let state = site.at("state-of-caddy");
    command.env("HOME", &state).env("XDG_DATA_HOME", &state).env("XDG_CONFIG_HOME", &state);
    let output = fs::File::create(site.at("caddy.log"))?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(output);
    Ok(Server::new(command.spawn()?, address))
}
