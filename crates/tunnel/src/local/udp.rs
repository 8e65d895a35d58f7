//! Datagrams to a port of this machine that go to one target.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use tokio::net::UdpSocket;
use tokio::time::sleep;

use super::{MAX_UDP_FLOWS, UDP_IDLE};
use crate::access::Target;
use crate::bounded_accept::PAUSE;
use crate::client::{Tunnel, UdpFlow};
use crate::datagrams::MAX_READ;

/// Flows by a key, of which the one that was used least recently gives way to a new one.
#[derive(Debug)]
pub(super) struct FlowTable<K> {
    flows: HashMap<K, (UdpFlow, u64)>,
    /// Counts uses.
    clock: u64,
}

impl<K: std::hash::Hash + Eq + Clone> FlowTable<K> {
    pub(super) fn new() -> Self {
        Self { flows: HashMap::new(), clock: 0 }
    }

    /// Hands a datagram to the flow with a key, which `open` opens if there is none.
    pub(super) fn send(&mut self, key: K, datagram: Bytes, open: impl FnOnce() -> UdpFlow) {
        self.clock += 1;
        if let Some((flow, used)) = self.flows.get_mut(&key) {
            *used = self.clock;
            if flow.send(datagram.clone()) {
                return;
            }
            self.flows.remove(&key);
        }
        if self.flows.len() >= MAX_UDP_FLOWS {
            let oldest = self.flows.iter().min_by_key(|(_, (_, used))| *used);
            if let Some(key) = oldest.map(|(key, _)| key.clone()) {
                self.flows.remove(&key);
            }
        }
        let flow = open();
        let _ = flow.send(datagram);
        self.flows.insert(key, (flow, self.clock));
    }
}

/// Forwards datagrams, with a flow for each address that they come from, for ever.
pub async fn forward_udp(socket: UdpSocket, tunnel: Tunnel, target: Target) {
    let socket = Arc::new(socket);
    let mut flows: FlowTable<SocketAddr> = FlowTable::new();
    let mut buffer = Vec::with_capacity(MAX_READ);
    loop {
        buffer.clear();
        match socket.recv_buf_from(&mut buffer).await {
            Ok((_, from)) => {
                flows.send(from, Bytes::copy_from_slice(&buffer), || {
                    let socket = socket.clone();
                    let reply =
                        move |datagram: &Bytes| socket.try_send_to(datagram, from).map(drop);
                    tunnel.udp(&target, UDP_IDLE, reply)
                });
            }
            // What an earlier datagram has brought about, such as that nobody listens there any more.
            Err(error) if is_about_peers(&error) => {}
            Err(_) => sleep(PAUSE).await,
        }
    }
}

fn is_about_peers(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionReset)
}
