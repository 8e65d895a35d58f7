//! The servers that can be measured.

use crate::clients::Client;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use sutura_benches::Error;
use sutura_benches::tls::Identity;

/// The names of the servers.
#[derive(Debug, Clone, Copy, ValueEnum, Serialize, Deserialize)]
pub enum Name {
    Sutura,
    Quinn,
    #[cfg(feature = "quiche")]
    Quiche,
    /// s2n-quic with s2n-tls, its default
    #[cfg(feature = "s2n-quic")]
    S2nQuic,
    /// s2n-quic with rustls
    #[cfg(feature = "s2n-quic")]
    S2nQuicRustls,
}

/// A server, step by step.
pub trait Server {
    /// The clients' datagrams arrive, but the server does not decide about them yet. Returns whether the
    /// server has such a state.
    fn receive(&mut self, clients: &[Client]) -> Result<bool, Error>;
    /// All clients are let in, and get an answer. Returns how many handshakes are under way.
    fn answer(&mut self, clients: &[Client]) -> Result<usize, Error>;
}

impl Name {
    /// All servers that were built.
    pub fn all() -> &'static [Self] {
        Self::value_variants()
    }

    /// The name of the server in the report.
    pub fn text(self) -> &'static str {
        match self {
            Self::Sutura => "sutura",
            Self::Quinn => "quinn",
            #[cfg(feature = "quiche")]
            Self::Quiche => "quiche",
            #[cfg(feature = "s2n-quic")]
            Self::S2nQuic => "s2n-quic (s2n-tls)",
            #[cfg(feature = "s2n-quic")]
            Self::S2nQuicRustls => "s2n-quic (rustls)",
        }
    }

    /// A server that is idle, for `clients` clients.
    pub fn start(self, identity: &Identity, clients: usize) -> Result<Box<dyn Server>, Error> {
        Ok(match self {
            Self::Sutura => Box::new(crate::sutura::Sutura::new(identity, clients)?),
            Self::Quinn => Box::new(crate::quinn::Quinn::new(identity, clients)?),
            #[cfg(feature = "quiche")]
            Self::Quiche => Box::new(crate::quiche::Quiche::new(identity, clients)?),
            #[cfg(feature = "s2n-quic")]
            Self::S2nQuic => Box::new(crate::s2n_quic::S2nQuic::with_s2n_tls(identity)?),
            #[cfg(feature = "s2n-quic")]
            Self::S2nQuicRustls => Box::new(crate::s2n_quic::S2nQuic::with_rustls(identity)?),
        })
    }
}
