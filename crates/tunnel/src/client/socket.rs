//! QUIC through a proxy (RFC 9298): the socket of an endpoint whose datagrams a tunnel carries.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv6Addr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use sutura::{AsyncUdpSocket, Received, Transmit};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use super::{Refusal, Tunnel, UdpFlow, UdpTunnel};
use crate::access::Target;
use crate::masque::Cause;

/// Datagrams that wait for the endpoint, at most; further ones are dropped.
pub const MAX_ARRIVED: usize = 1024;
/// The prefix of the addresses that stand for targets: nothing else has them (RFC 6666).
const PREFIX: u16 = 0x0100;
/// How long a flow may be silent, as at the proxy (RFC 9298 section 6.1).
const IDLE: Duration = Duration::from_secs(120);
/// The size of datagrams that every path of QUIC carries (RFC 9000 section 14).
const MIN_SIZE: usize = 1200;
/// How long it may take until the path to the proxy is known to carry them.
const SIZE_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest time between two looks at what it carries.
const LOOK: Duration = Duration::from_millis(20);

/// The socket of an endpoint that sends through a tunnel. Each target has an address that stands for it here, as its
/// name is for the proxy to resolve.
#[derive(Debug)]
pub struct TunnelSocket {
    tunnel: Tunnel,
    flows: Mutex<TargetFlows>,
    sender: mpsc::Sender<(SocketAddr, Bytes)>,
    arrived: Mutex<mpsc::Receiver<(SocketAddr, Bytes)>>,
}

#[derive(Debug, Default)]
struct TargetFlows {
    by_address: HashMap<SocketAddr, UdpFlow>,
    /// How many there were.
    count: u64,
}

impl TunnelSocket {
    /// A socket that sends through this tunnel.
    #[must_use]
    pub fn new(tunnel: Tunnel) -> Self {
        let (sender, arrived) = mpsc::channel(MAX_ARRIVED);
        Self { tunnel, flows: Mutex::default(), sender, arrived: Mutex::new(arrived) }
    }

    /// The tunnel.
    #[must_use]
    pub const fn tunnel(&self) -> &Tunnel {
        &self.tunnel
    }

    /// Whether an address stands for a target beyond a proxy.
    #[must_use]
    pub fn stands_for_target(address: SocketAddr) -> bool {
        let SocketAddr::V6(address) = address else { return false };
        let [first, second, third, fourth, ..] = address.ip().segments();
        first == PREFIX && (second, third, fourth) == (0, 0, 0)
    }

    /// Begins a flow to a target. Returns the address by which the endpoint sends to it, for as long as the flow is
    /// used: it is over after two minutes of silence.
    ///
    /// # Errors
    /// The proxy refuses or does not answer, or the path to it carries no datagrams of QUIC.
    pub async fn open(&self, target: &Target) -> Result<SocketAddr, Refusal> {
        let opened = self.tunnel.open_udp(target).await?;
        wait_for_size(&opened).await?;
        let mut flows = self.flows();
        flows.by_address.retain(|_, flow| !flow.is_over());
        flows.count += 1;
        let address = address_of(flows.count, target.port);
        let sender = self.sender.clone();
        let flow = opened.carry(IDLE, move |datagram| {
            sender.try_send((address, datagram.clone())).map_err(io::Error::other)
        });
        flows.by_address.insert(address, flow);
        Ok(address)
    }

    fn flows(&self) -> MutexGuard<'_, TargetFlows> {
        self.flows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The address that stands for a target.
fn address_of(number: u64, port: u16) -> SocketAddr {
    let [_, _, _, _, rest @ ..] = Ipv6Addr::from_bits(number.into()).segments();
    let ip = Ipv6Addr::new(PREFIX, 0, 0, 0, rest[0], rest[1], rest[2], rest[3]);
    (ip, port).into()
}

/// Waits until the path to the proxy is known to carry the datagrams with which connections begin.
async fn wait_for_size(opened: &UdpTunnel) -> Result<(), Refusal> {
    let until = Instant::now() + SIZE_TIMEOUT;
    while opened.max_size() < MIN_SIZE {
        if Instant::now() >= until {
            let most = opened.max_size();
            let why = format!(
                "the path to the proxy carries datagrams of {most} bytes, and QUIC needs {MIN_SIZE}"
            );
            return Err(Refusal::new(Cause::Internal, why));
        }
        sleep((opened.rtt() / 8).clamp(Duration::from_millis(1), LOOK)).await;
    }
    Ok(())
}

impl AsyncUdpSocket for TunnelSocket {
    fn poll_send(
        &self,
        _cx: &mut Context<'_>,
        transmit: &mut Transmit<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(flow) = self.flows().by_address.get(&transmit.destination) {
            let size = transmit.segment_size.unwrap_or(transmit.contents.len()).max(1);
            for datagram in transmit.contents.chunks(size) {
                // What a flow does not take is dropped, as on any path.
                let _ = flow.send(Bytes::copy_from_slice(datagram));
            }
        }
        transmit.contents = &[];
        Poll::Ready(Ok(()))
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        each: &mut dyn FnMut(Received, &mut [u8]),
    ) -> Poll<io::Result<usize>> {
        let mut arrived = self.arrived.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = ready!(arrived.poll_recv(cx));
        let mut count = 0;
        while let Some((address, datagram)) = next {
            each(Received::new(address), &mut Vec::from(datagram));
            count += 1;
            next = arrived.try_recv().ok();
        }
        Poll::Ready(Ok(count))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok((Ipv6Addr::UNSPECIFIED, 0).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_target_has_an_address_of_its_own() {
        assert_eq!(address_of(1, 443), "[100::1]:443".parse().unwrap());
        assert!(TunnelSocket::stands_for_target(address_of(7, 443)));
        for other in ["[100:0:0:1::1]:1", "[200::1]:1", "1.0.0.1:1"] {
            assert!(!TunnelSocket::stands_for_target(other.parse().unwrap()));
        }
        assert_eq!(address_of(u64::MAX, 1), "[100::ffff:ffff:ffff:ffff]:1".parse().unwrap());
    }
}
