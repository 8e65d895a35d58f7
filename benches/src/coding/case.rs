//! The conditions of a transfer.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use sutura::{Algorithm, FecConfig, TransportConfig};
use sutura_link::{LinkConfig, Loss, Probability, Rate};

/// Bytes that a peer may send on a stream before the application has read any byte.
const STREAM_WINDOW: u64 = 8 << 20;
/// Bytes that wait to be sent or to be acknowledged: more than path and queue have room for.
const SEND_BUFFER: usize = 4 << 20;

/// A path, and the settings of both ends.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    pub rtt: Duration,
    pub loss: Probability,
    pub rate: Rate,
    pub payload: u16,
    pub congestion: Algorithm,
    /// Source symbols that the receiver allows in the coding window.
    pub window: u32,
}

impl Case {
    /// The link of both directions.
    pub fn link(&self) -> LinkConfig {
        LinkConfig {
            rate: Some(self.rate),
            delay: self.rtt / 2,
            loss: Loss::Bernoulli(self.loss),
            ..LinkConfig::default()
        }
    }

    /// The limits that a receiver announces, with room for a window of symbols that are as long as packets.
    pub fn fec(&self) -> FecConfig {
        FecConfig::default()
            .with_max_window_symbols(self.window)
            .with_max_window_bytes(FecConfig::default().max_window_bytes.max(self.window * 1500))
    }

    pub fn transport(&self) -> TransportConfig {
        TransportConfig::default()
            .with_udp_payload_size(self.payload)
            .with_stream_receive_window(STREAM_WINDOW)
            .with_max_stream_receive_window(STREAM_WINDOW)
            .with_receive_window(STREAM_WINDOW)
            .with_max_receive_window(STREAM_WINDOW)
            .with_send_buffer(SEND_BUFFER)
            .with_congestion(Arc::new(self.congestion))
            .with_fec(Some(self.fec()))
            // Only the measured stream asks for protection.
            .with_redundancy(None)
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms, loss {}", self.rtt.as_millis(), self.loss)
    }
}
