//! The attacks of hostile clients.

mod crew;
mod datagrams;
mod floods;
mod hellos;
mod requests;
mod symbols;

use crate::fleet::Fleet;
use crate::puppet::Setup;
use crate::target::Needs;
use std::sync::Arc;
use std::time::{Duration, Instant};
use sutura_benches::Error;
use sutura_benches::tls::{Identity, aes_128_gcm};
use sutura_proto::crypto::rustls::RustlsClientConfig;
use sutura_proto::wire_format::TransportParameters;

/// The rate of an attack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// This many events in a second.
    Events(u64),
    /// This many bits of UDP payload in a second.
    Bits(u64),
}

/// The steps of one attack.
pub trait Tactic {
    /// Does the steps that are due. `quota` is how many events or bytes the pace still allows.
    fn step(&mut self, fleet: &mut Fleet, now: Instant, quota: u64) -> Result<(), Error>;
}

/// An attack.
pub struct Attack {
    pub name: &'static str,
    pub about: &'static str,
    /// The name of what counts as an event.
    pub event: &'static str,
    pub pace: Pace,
    pub seconds: u64,
    /// The application protocol that its clients name.
    pub alpn: &'static [u8],
    pub parameters: fn() -> TransportParameters,
    pub needs: Needs,
    /// Whether servers without the extension for erasure coding can be attacked in this way.
    pub plain: bool,
    pub start: fn() -> Box<dyn Tactic>,
}

impl Attack {
    /// The settings that the attack's clients have in common.
    pub fn setup(&self, identity: &Identity) -> Result<Setup, Error> {
        let mut tls = identity.client_tls(aes_128_gcm())?;
        tls.alpn_protocols = vec![self.alpn.to_vec()];
        tls.resumption = rustls::client::Resumption::disabled();
        let crypto = Arc::new(RustlsClientConfig::new(tls)?);
        Ok(Setup { crypto, parameters: (self.parameters)() })
    }
}

/// The parameters of a client that accepts as many bytes and streams as the server sends.
fn generous() -> TransportParameters {
    const PLENTY: u64 = 1 << 40;
    let mut parameters = TransportParameters::default();
    parameters.initial_max_data = PLENTY;
    parameters.initial_max_stream_data_bidi_local = PLENTY;
    parameters.initial_max_stream_data_bidi_remote = PLENTY;
    parameters.initial_max_stream_data_uni = PLENTY;
    parameters.initial_max_streams_bidi = 100;
    parameters.initial_max_streams_uni = 100;
    parameters.active_connection_id_limit = 8;
    parameters.max_datagram_frame_size = 1200;
    parameters
}

/// An attack over connections with the usual settings.
const fn attack(
    name: &'static str,
    about: &'static str,
    event: &'static str,
    pace: Pace,
    start: fn() -> Box<dyn Tactic>,
) -> Attack {
    Attack {
        name,
        about,
        event,
        pace,
        seconds: 10,
        alpn: b"h3",
        parameters: generous,
        needs: Needs { retry: false },
        plain: true,
        start,
    }
}

/// All attacks.
pub fn all() -> Vec<Attack> {
    let mut all = requests::slow();
    all.extend(hellos::all());
    all.extend(symbols::acks());
    all.extend(requests::cancelled());
    all.extend(requests::half());
    all.extend(floods::all());
    all.extend(symbols::repairs());
    all.extend(datagrams::all());
    all
}

/// How many events or bytes the pace still allows at present, at most as many as in 50 ms: an attacker that
/// was late does not catch up.
pub fn quota(per_second: u64, elapsed: Duration, done: u64) -> u64 {
    let allowed = (elapsed.as_secs_f64() * per_second as f64) as u64;
    allowed.saturating_sub(done).min((per_second / 20).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique() {
        let all = all();
        let names: BTreeSet<_> = all.iter().map(|attack| attack.name).collect();
        assert_eq!(names.len(), all.len());
    }

    #[test]
    fn paces_are_bounded() {
        assert_eq!(quota(1000, Duration::from_millis(10), 4), 6);
        assert_eq!(quota(1000, Duration::from_secs(5), 0), 50);
        assert_eq!(quota(1, Duration::from_secs(1), 1), 0);
    }
}
