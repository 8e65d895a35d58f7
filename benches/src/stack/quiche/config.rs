//! The configurations of both ends.

use super::super::{CONNECTION_WINDOW, STREAM_WINDOW, Setting, Settings};
use crate::Error;
use crate::tls::ALPN;
use boring::pkey::PKey;
use boring::ssl::{SslContextBuilder, SslMethod};
use boring::x509::X509;
use quiche::{Config, PROTOCOL_VERSION};

/// Streams that a peer may open, as quinn and s2n-quic have it.
const STREAMS: u64 = 100;

/// What quiche's own example of a server has, since the library's limits are zero.
mod example {
    pub const DATA: u64 = 10_000_000;
    pub const STREAM_DATA: u64 = 1_000_000;
    pub const PAYLOAD: usize = 1350;
}

pub fn server(settings: &Settings<'_>) -> Result<Config, Error> {
    let mut tls = SslContextBuilder::new(SslMethod::tls())?;
    tls.set_certificate(&*X509::from_der(settings.identity.certificate())?)?;
    tls.set_private_key(&*PKey::private_key_from_der(settings.identity.key())?)?;
    limits(settings, Config::with_boring_ssl_ctx_builder(PROTOCOL_VERSION, tls)?)
}

pub fn client(settings: &Settings<'_>) -> Result<Config, Error> {
    let mut tls = SslContextBuilder::new(SslMethod::tls())?;
    tls.cert_store_mut().add_cert(X509::from_der(settings.identity.certificate())?)?;
    let mut config = Config::with_boring_ssl_ctx_builder(PROTOCOL_VERSION, tls)?;
    config.verify_peer(true);
    limits(settings, config)
}

fn limits(settings: &Settings<'_>, mut config: Config) -> Result<Config, Error> {
    config.set_application_protos(&[ALPN])?;
    config.set_max_idle_timeout(u64::try_from(settings.idle_timeout.as_millis())?);
    config.set_initial_max_streams_bidi(STREAMS);
    let (data, stream_data, payload) = match settings.setting {
        Setting::Tuned => {
            config.set_cc_algorithm_name(settings.congestion.name())?;
            config.set_curves_list("X25519")?;
            config.set_max_recv_udp_payload_size(settings.payload.into());
            config.set_max_connection_window(CONNECTION_WINDOW.into());
            config.set_max_stream_window(STREAM_WINDOW.into());
            (CONNECTION_WINDOW.into(), STREAM_WINDOW.into(), settings.payload.into())
        }
        Setting::Default => (example::DATA, example::STREAM_DATA, example::PAYLOAD),
    };
    config.set_initial_max_data(data);
    config.set_initial_max_stream_data_bidi_local(stream_data);
    config.set_initial_max_stream_data_bidi_remote(stream_data);
    config.set_max_send_udp_payload_size(payload);
    Ok(config)
}
