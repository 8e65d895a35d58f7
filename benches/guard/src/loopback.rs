//! The exchanges of the loopback bench (`benches/src`), with both of its settings.

use crate::Error;
use crate::exchange::Exchanges;
use crate::gauge::Meter;
use crate::pair::{Pair, REST};
use std::sync::Arc;
use std::time::Duration;
use sutura_proto::{Algorithm, SocketFeatures, TransportConfig};

/// How long a datagram takes over the loopback device, with what wakes the other end.
const LATENCY: Duration = Duration::from_micros(20);

/// What Sutura has by itself: datagrams as large as it finds, windows that grow, BBR, and streams of which `auto` finds
/// that nothing is to be protected. Exchanges, `at_once` at a time, each of which follows another.
///
/// # Errors
/// Not all requests are answered.
pub fn untuned(meter: Meter, at_once: usize) -> Result<u64, Error> {
    exchanges(&TransportConfig::default(), meter, at_once)
}

/// The same with what the bench calls `tuned`: full datagrams and large windows from the first, and CUBIC.
///
/// # Errors
/// Not all requests are answered.
pub fn tuned(meter: Meter, at_once: usize) -> Result<u64, Error> {
    let transport = TransportConfig::default()
        .with_udp_payload_size(1452)
        .with_stream_receive_window(4 << 20)
        .with_max_stream_receive_window(4 << 20)
        .with_receive_window(8 << 20)
        .with_max_receive_window(8 << 20)
        .with_send_buffer(4 << 20)
        .with_congestion(Arc::new(Algorithm::CUBIC))
        .with_max_idle_timeout(Some(Duration::from_secs(300)));
    exchanges(&transport, meter, at_once)
}

/// Exchanges over sockets with the abilities that they have on Linux.
fn exchanges(transport: &TransportConfig, meter: Meter, at_once: usize) -> Result<u64, Error> {
    let socket = SocketFeatures::default().with_ecn(true).with_unfragmented(true);
    let mut pair = Pair::with_sockets(socket, transport, meter)?;
    pair.meter.switch(false);
    pair.latency = LATENCY;
    pair.pass(REST);
    Exchanges::new(pair).keep_up(at_once)
}
