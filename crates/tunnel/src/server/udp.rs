//! Flows of UDP at the proxy (RFC 9298).

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tokio::net::UdpSocket;

use super::Visit;
use super::answer::{Case, Pending};
use super::reach;
use crate::access::Transport;
use crate::counts::Counts;
use crate::datagrams::{Oversize, carry};
use crate::flow::{Flow, FlowInfo};
use crate::masque::{Ask, CAPSULE_PROTOCOL};

/// How long a flow of UDP may be silent in both directions (RFC 9298 section 6.1 asks for at least two minutes).
pub const UDP_IDLE: Duration = Duration::from_secs(120);

impl Visit {
    /// Carries datagrams to and from a target until nobody sends any more.
    pub(super) async fn udp(self: Arc<Self>, case: Case, answer: Pending) {
        let Ask::Udp(target) = &case.ask else { return };
        let slot = match self.enter(&case) {
            Ok(slot) => slot,
            Err((cause, details)) => return self.refuse(&case, answer, cause, &details).await,
        };
        let opened: Result<(UdpSocket, SocketAddr), _> =
            reach::open_udp(target, &self.shared.config.allow, &slot.client.lookups).await;
        let (socket, resolved) = match opened {
            Ok(opened) => opened,
            Err((cause, details)) => return self.refuse(&case, answer, cause, &details).await,
        };
        let Ok(stream) = answer.agree(&[CAPSULE_PROTOCOL]).await else { return };
        let info = FlowInfo::asked(Transport::Udp, target, Some(resolved));
        let flow = Flow::new(&self.shared.config.rules, &info);
        let client = slot.client.clone();
        let complain = |text: &str| self.shared.observer.complain(text);
        let oversize = Oversize { said: &client.said_oversize, complain: &complain };
        let recorded = self.begin(case, Some(resolved), slot);
        let counts = Counts::default();
        carry(stream, &socket, flow, &client.throttle, UDP_IDLE, &oversize, &counts).await;
        recorded.to_target.store(counts.received(), Relaxed);
        recorded.from_target.store(counts.sent(), Relaxed);
        recorded.dropped.store(counts.dropped(), Relaxed);
        recorded.complete.store(1, Relaxed);
    }
}
