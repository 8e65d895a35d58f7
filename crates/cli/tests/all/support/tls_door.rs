//! VeNCrypt of a small RFB server.

use std::sync::Arc;

use bytes::{Buf, BytesMut};
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::{ServerConnection, StreamOwned};

use super::screen::CHALLENGE;
use super::wire::{Wire, is_silence, write};

/// What a server wants of its clients.
#[derive(Debug)]
pub struct TlsDoor {
    pub fingerprint: String,
    /// The certificate in PEM.
    pub pem: String,
    config: Arc<rustls::ServerConfig>,
    /// The subtypes of VeNCrypt that it offers.
    offered: Vec<u32>,
    /// What a client must say once it is inside.
    expected: Vec<u8>,
}

pub const TLS_VNC: u32 = 258;
pub const X509_NONE: u32 = 260;
pub const X509_VNC: u32 = 261;
pub const X509_PLAIN: u32 = 262;

impl TlsDoor {
    /// A door with a certificate of its own, for clients that say what is expected.
    pub fn new(offered: &[u32], expected: &[u8]) -> Arc<Self> {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let chain = vec![certificate.der().clone()];
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, PrivatePkcs8KeyDer::from(key.serialize_der()).into())
            .unwrap();
        Arc::new(Self {
            fingerprint: hex::encode(sutura::certificate_fingerprint(certificate.der())),
            pem: certificate.pem(),
            config: Arc::new(config),
            offered: offered.to_vec(),
            expected: expected.to_vec(),
        })
    }

    /// Lets a client in; `None` if it goes away, or is not the right one.
    pub fn let_in(&self, mut wire: Box<dyn Wire>) -> Option<Box<dyn Wire>> {
        write(&mut wire, b"RFB 003.008\n").ok()?;
        hear(&mut wire, 12)?;
        write(&mut wire, b"\x01\x13").ok()?;
        hear(&mut wire, 1)?;
        write(&mut wire, b"\0\x02").ok()?;
        hear(&mut wire, 2)?;
        let subtypes: Vec<u8> =
            self.offered.iter().flat_map(|number| number.to_be_bytes()).collect();
        write(&mut wire, &[&[0, self.offered.len() as u8], &subtypes[..]].concat()).ok()?;
        let chosen = hear(&mut wire, 4)?.get_u32();
        assert!(self.offered.contains(&chosen));
        write(&mut wire, &[1]).ok()?;
        let mut tls = ServerConnection::new(self.config.clone()).ok()?;
        while tls.is_handshaking() {
            match tls.complete_io(&mut wire) {
                Err(error) if !is_silence(&error) => return None,
                Ok(_) | Err(_) => {}
            }
        }
        let mut inside: Box<dyn Wire> = Box::new(StreamOwned::new(tls, wire));
        if chosen == X509_VNC {
            write(&mut inside, &CHALLENGE).ok()?;
        }
        let said = hear(&mut inside, self.expected.len())?;
        if said != self.expected[..] {
            write(&mut inside, b"\0\0\0\x01\0\0\0\x08not you!").ok()?;
            return None;
        }
        write(&mut inside, &[0; 4]).ok()?;
        Some(inside)
    }
}

/// The next bytes of a client, as many as that.
fn hear(wire: &mut dyn Wire, count: usize) -> Option<BytesMut> {
    let (mut heard, mut byte) = (BytesMut::new(), [0; 1]);
    while heard.len() < count {
        match wire.read(&mut byte) {
            Ok(0) => return None,
            Ok(_) => heard.extend_from_slice(&byte),
            Err(error) if is_silence(&error) => {}
            Err(_) => return None,
        }
    }
    Some(heard)
}
