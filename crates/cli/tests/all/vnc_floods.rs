//! Floods of connections to both ends of `sutura vnc`, and viewers with certificates.

use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
};
use sutura::{ClientConfig, Connection, Endpoint, TransportConfig};

use crate::support::bridge::{bridge, bridged, connect, watch};
use crate::support::screen::Screen;
use crate::support::watcher::Watcher;
use crate::support::{Listening, Scratch, complaint, sutura, wait_until};

/// `MAX_VIEWERS` of `vnc connect`, and `MAX_KNOCKING` of `vnc serve`.
const PLACES: usize = 64;
/// Connections of a flood.
const FLOOD: usize = 5 * PLACES;

#[test]
fn a_flood_of_viewers_that_say_nothing_keeps_nobody_out() {
    let (screen, _scratch, _server, bridge) = bridged(64, 64, &[]);
    let first = watch(&bridge, &screen);
    let flood: Vec<TcpStream> = (0..FLOOD)
        .map(|n| {
            let mut tcp = TcpStream::connect(&bridge.address).unwrap();
            tcp.write_all(&b"RFB 003.008"[..n % 12]).unwrap();
            tcp
        })
        .collect();
    let _second = watch(&bridge, &screen);
    screen.fill(sutura_vnc::Rect::new(0, 0, 64, 64), 1);
    first.wait_for(&screen);
    // Those that had to make room were told why; nobody reached the screen but the viewers.
    let (output, _) = bridge.interrupt();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("others wanted to connect, and this one was silent"), "{said}");
    assert_eq!(screen.connections(), 2);
    drop(flood);
}

/// Connections over QUIC of which some open a stream and begin a message on it.
async fn flood(endpoint: &Endpoint, server: &Listening) -> Vec<Connection> {
    let config = ClientConfig::without_verification(&[b"sutura-vnc"]).unwrap();
    let config = config.transport(TransportConfig::default());
    let mut connections = Vec::new();
    for n in 0..FLOOD {
        let address = server.address.parse().unwrap();
        let connecting = endpoint.connect_with(config.clone(), address, "localhost").unwrap();
        let Ok(connection) = connecting.await else { continue };
        if n % 2 == 0
            && let Ok((mut send, _)) = connection.open_bi().await
        {
            // The connection may be closed by now, in favour of the next ones.
            let _ = send.write_all(&[0, 0]).await;
        }
        connections.push(connection);
    }
    connections
}

#[test]
fn a_flood_of_connections_without_a_token_keeps_nobody_out() {
    let (screen, _scratch, server, bridge) = bridged(64, 64, &[]);
    let first = watch(&bridge, &screen);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (endpoint, connections) = runtime.block_on(async {
        let endpoint = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
        let connections = flood(&endpoint, &server).await;
        (endpoint, connections)
    });
    let _second = watch(&bridge, &screen);
    screen.fill(sutura_vnc::Rect::new(0, 0, 64, 64), 1);
    first.wait_for(&screen);
    wait_until("the flood to give way", || {
        connections.iter().filter(|connection| connection.close_reason().is_none()).count()
            <= PLACES
    });
    assert_eq!(screen.connections(), 2);
    drop((connections, endpoint));
}

/// An authority that says who is let in.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// The authority's certificate in a file.
    fn file(&self, directory: &Path) -> String {
        let path = directory.join("authority.pem");
        fs::write(&path, self.0.pem()).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// A certificate and its key, in one file.
    fn certificate(&self, directory: &Path, name: &str, usage: ExtendedKeyUsagePurpose) -> String {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["viewer".to_owned()]).unwrap();
        params.extended_key_usages = vec![usage];
        let certificate = params.signed_by(&key, &self.0).unwrap();
        let path = directory.join(name);
        fs::write(&path, certificate.pem() + &key.serialize_pem()).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

#[test]
fn a_certificate_lets_viewers_in_and_nothing_else_does() {
    let (screen, scratch) = (Screen::start(64, 64, false), Scratch::new());
    let (authority, stranger) = (Authority::new(), Authority::new());
    let ca = authority.file(&scratch.dir("ca"));
    let clients = ExtendedKeyUsagePurpose::ClientAuth;
    let good = authority.certificate(scratch.path(), "good.pem", clients.clone());
    let servers = ExtendedKeyUsagePurpose::ServerAuth;
    let wrong = authority.certificate(scratch.path(), "wrong.pem", servers);
    let strange = stranger.certificate(scratch.path(), "strange.pem", clients);
    for token in [&["--no-token"][..], &[]] {
        let more = [&["--client-ca", &ca], token].concat();
        let server = crate::support::bridge::serve(&screen, &scratch, &more);
        // The token is checked besides, unless there is none.
        let bridge_with = |more: &[&str]| {
            let fingerprint = ["--fingerprint", server.fingerprint()];
            match token {
                [] => connect(&server, more),
                _ => {
                    Listening::spawn(bridge(&server.address, &[&fingerprint, token, more].concat()))
                }
            }
        };
        let shown = |file: &str| bridge_with(&["--client-cert", file, "--client-key", file]);
        let end = |bridge: &Listening| Watcher::start(&bridge.address, [0; 16]).wait_for_end();
        for _ in 0..2 {
            // The second connection resumes nothing: the certificate is shown again.
            watch(&shown(&good), &screen);
        }
        let why = end(&bridge_with(&[]));
        assert!(why.contains("--client-cert FILE and --client-key FILE"), "{why}");
        for file in [&wrong, &strange] {
            let why = end(&shown(file));
            assert!(why.contains("does not trust the certificate that this client shows"), "{why}");
        }
        server.interrupt();
    }
    assert_eq!(screen.connections(), 4);
    let alone = sutura(["vnc", "connect", "a", "--client-cert", "b"]).output().unwrap();
    assert_eq!(alone.status.code(), Some(2));
    let missing = ["vnc", "serve", "--no-token", "--client-ca", "/nowhere/at/all"];
    complaint(&sutura(missing).output().unwrap(), 3);
}
