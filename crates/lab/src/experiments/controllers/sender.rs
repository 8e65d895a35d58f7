//! Senders: a congestion controller of ours, or one of quinn.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use quinn_proto::congestion::{BbrConfig, ControllerFactory, CubicConfig};
use quinn_proto::{TransportConfig as QuinnTransport, VarInt};
use sutura_proto::policy::CongestionFactory;
use sutura_proto::{Algorithm, Protection, TransportConfig, registry};

/// A controller that keeps to its rate, no matter how many packets are lost: it does not adapt, so it is not
/// compared.
const FIXED_RATE: &str = "fixed";
/// Repair symbols behind the last byte of a transfer, for senders with redundancy.
const BURST: u32 = 3;

/// A sender.
#[derive(Clone, Debug)]
pub enum Sender {
    /// Our transport.
    Ours {
        /// The congestion controller.
        congestion: Arc<dyn CongestionFactory>,
        /// How it protects its transfers.
        protection: Option<Protection>,
    },
    /// quinn-proto, which has no redundancy.
    Quinn(QuinnController),
}

/// A controller of quinn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuinnController {
    /// quinn's default.
    Cubic,
    /// BBR, version 1.
    Bbr,
}

impl Sender {
    /// Every controller of ours but the fixed rate, without redundancy.
    pub fn ours() -> Vec<Self> {
        let registry = registry::congestion();
        let adaptive = registry.entries().iter().filter(|entry| entry.name != FIXED_RATE);
        let made = adaptive.filter_map(|entry| entry.make("").ok());
        made.map(|congestion| Self::Ours { congestion, protection: None }).collect()
    }

    /// Our controllers that heed the floor of loss, in the published form without it.
    pub fn references() -> Vec<Self> {
        let plain = [Algorithm::CUBIC_WITHOUT_FLOOR, Algorithm::BBR_WITHOUT_FLOOR];
        plain
            .map(|algorithm| Self::Ours { congestion: Arc::new(algorithm), protection: None })
            .into()
    }

    /// The controllers of quinn.
    pub fn quinn() -> [Self; 2] {
        [QuinnController::Cubic, QuinnController::Bbr].map(Self::Quinn)
    }

    /// The same with repair symbols behind the last byte; `None` if it cannot have any.
    pub fn protected(&self) -> Option<Self> {
        match self {
            Self::Ours { congestion, .. } => Some(Self::Ours {
                congestion: congestion.clone(),
                protection: Some(Protection::tail(BURST, Duration::ZERO)),
            }),
            Self::Quinn(_) => None,
        }
    }

    /// The same without redundancy.
    pub fn plain(&self) -> Self {
        match self {
            Self::Ours { congestion, .. } => {
                Self::Ours { congestion: congestion.clone(), protection: None }
            }
            Self::Quinn(controller) => Self::Quinn(*controller),
        }
    }
}

impl fmt::Display for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ours { congestion, protection: None } => f.write_str(congestion.name()),
            Self::Ours { congestion, protection: Some(_) } => {
                write!(f, "{} + repair", congestion.name())
            }
            Self::Quinn(QuinnController::Cubic) => f.write_str("quinn cubic"),
            Self::Quinn(QuinnController::Bbr) => f.write_str("quinn bbr"),
        }
    }
}

/// The settings of our ends: the defaults, except that buffers and flow control leave `window` bytes
/// in flight, so that the controllers alone hold back.
pub fn our_transport(congestion: Arc<dyn CongestionFactory>, window: u32) -> TransportConfig {
    TransportConfig::default()
        .with_congestion(congestion)
        .with_send_buffer(window as usize)
        .with_connection_send_buffer(window as usize)
        .with_stream_receive_window(window.into())
        .with_max_stream_receive_window(window.into())
        .with_receive_window(window.into())
        .with_max_receive_window(window.into())
}

/// The settings of quinn's ends, likewise. quinn's packets stay as large as ours: it does not look for a
/// larger size.
pub fn quinn_transport(controller: QuinnController, window: u32) -> Arc<QuinnTransport> {
    let factory: Arc<dyn ControllerFactory + Send + Sync> = match controller {
        QuinnController::Cubic => Arc::new(CubicConfig::default()),
        QuinnController::Bbr => Arc::new(BbrConfig::default()),
    };
    let mut config = QuinnTransport::default();
    config
        .congestion_controller_factory(factory)
        .mtu_discovery_config(None)
        .send_window(window.into())
        .stream_receive_window(VarInt::from_u32(window))
        .receive_window(VarInt::from_u32(window));
    Arc::new(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_adaptive_controller_takes_part() {
        let names: Vec<String> = Sender::ours().iter().map(ToString::to_string).collect();
        for name in ["newreno", "cubic", "bbr"] {
            assert!(names.iter().any(|known| known == name), "{name} is not in {names:?}");
        }
        assert!(!names.iter().any(|name| name == FIXED_RATE));
        let protected = Sender::ours().iter().filter_map(Sender::protected).count();
        assert_eq!((protected, Sender::quinn()[0].protected().is_none()), (names.len(), true));
    }
}
