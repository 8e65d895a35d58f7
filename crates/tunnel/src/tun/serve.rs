//! The proxy's end: one device for all clients.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use ipnet::IpNet;
use sutura::http::{Error, RequestStream};

use super::carrier::PacketCarrier;
use super::device::{Device, MAX_DEVICE_MTU};
use super::gate::{Dropped, PacketGate};
use super::pool::{AddressPool, Full};
use super::routes::advertised;
use crate::access::{AllowList, Meter};
use crate::flow::{Class, Rules, Treatment};
use crate::ip::{self, AddressRequest, AddressedCapsule, AssignedAddress};

/// The device of a proxy and the addresses of its clients. Clones are the same one.
#[derive(Debug, Clone)]
pub struct IpNetwork(Arc<Network>);

#[derive(Debug)]
struct Network {
    device: Device,
    own: Vec<IpNet>,
    allow: Arc<AllowList>,
    rules: Arc<Rules>,
    state: Mutex<NetworkState>,
}

#[derive(Debug)]
struct NetworkState {
    pool: AddressPool,
    clients: HashMap<IpAddr, Arc<Client>>,
}

/// A client with addresses.
#[derive(Debug)]
struct Client {
    carrier: PacketCarrier,
    gate: Mutex<PacketGate>,
    meter: Arc<Mutex<Meter>>,
    to_client: AtomicU64,
    dropped: AtomicU64,
}

/// How much a client was served.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IpServed {
    /// Bytes of packets to the client.
    pub to_client: u64,
    /// Bytes of packets from the client.
    pub from_client: u64,
    /// Packets that did not pass.
    pub dropped: u64,
}

/// Addresses that a client has, until this is dropped.
struct Lease {
    network: IpNetwork,
    addresses: Vec<IpAddr>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl IpNetwork {
    /// Makes the device, with the proxy's own addresses: clients get others of the same networks.
    ///
    /// # Errors
    /// The system refuses.
    pub fn open(name: &str, own: Vec<IpNet>, allow: AllowList, rules: Rules) -> io::Result<Self> {
        let device = Device::open(name, &own, MAX_DEVICE_MTU)?;
        let state =
            Mutex::new(NetworkState { pool: AddressPool::new(&own), clients: HashMap::new() });
        let (allow, rules) = (Arc::new(allow), Arc::new(rules));
        Ok(Self(Arc::new(Network { device, own, allow, rules, state })))
    }

    /// The device's name.
    #[must_use]
    pub fn device(&self) -> &str {
        self.0.device.name()
    }

    /// Sends the packets of the device to the clients that they are for. Ends with an error, when the device is gone.
    ///
    /// # Errors
    /// The device is gone.
    pub async fn run(&self) -> io::Result<()> {
        let mut packet = vec![0; usize::from(MAX_DEVICE_MTU) + 1];
        loop {
            let size = self.0.device.recv(&mut packet).await?;
            let packet = &mut packet[..size];
            let Ok(header) = ip::Header::parse(packet) else { continue };
            let client = locked(&self.0.state).clients.get(&header.destination).cloned();
            if let Some(client) = client {
                client.send(packet, &self.0.device);
            }
        }
    }

    /// Serves a client whose request was agreed to, until the exchange ends. `meter` limits what it may use: packets
    /// beyond that are dropped.
    ///
    /// # Errors
    /// No address is left, or the exchange ended with an error.
    pub async fn serve(
        &self,
        mut stream: RequestStream,
        meter: Arc<Mutex<Meter>>,
    ) -> Result<IpServed, Error> {
        let Ok(lease) = self.lease() else {
            stream.reset(sutura::http::Code::REQUEST_REJECTED);
            return Ok(IpServed::default());
        };
        let client = self.enter(&lease, &stream, meter);
        let routes = AddressedCapsule::Routes(advertised(&self.0.allow, &self.0.own));
        stream.send_capsule(&lease.assigned(&[]).encode()).await?;
        stream.send_capsule(&routes.encode()).await?;
        let mut from_client = 0;
        let ended = loop {
            tokio::select! {
                packet = client.carrier.recv() => match packet {
                    Ok(Some(packet)) => from_client += self.deliver(&client, packet),
                    Ok(None) => break Ok(()),
                    Err(error) => break Err(error),
                },
                capsule = stream.recv_capsule(&AddressedCapsule::KINDS) => match capsule {
                    Ok(Some(capsule)) => match AddressedCapsule::decode(&capsule) {
                        Ok(Some(AddressedCapsule::Request(wanted))) => {
                            stream.send_capsule(&lease.assigned(&wanted).encode()).await?;
                        }
                        // What the client would have this end send from or to is of no use to a proxy.
                        Ok(Some(AddressedCapsule::Assign(_) | AddressedCapsule::Routes(_)) | None) => {}
                        Err(_) => {
                            stream.reset(sutura::http::Code::DATAGRAM_ERROR);
                            break Ok(());
                        }
                    },
                    Ok(None) => break Ok(()),
                    Err(error) => break Err(error),
                },
            }
        };
        let served = IpServed {
            to_client: client.to_client.load(Relaxed),
            from_client,
            dropped: client.dropped.load(Relaxed),
        };
        ended.map(|()| served)
    }

    fn lease(&self) -> Result<Lease, Full> {
        let addresses = locked(&self.0.state).pool.take()?;
        Ok(Lease { network: self.clone(), addresses })
    }

    fn enter(
        &self,
        lease: &Lease,
        stream: &RequestStream,
        meter: Arc<Mutex<Meter>>,
    ) -> Arc<Client> {
        let networks = lease.addresses.iter().map(|ip| IpNet::from(*ip)).collect();
        let own = self.0.own.iter().map(IpNet::addr).collect();
        let (allow, rules) = (Some(self.0.allow.clone()), self.0.rules.clone());
        let gate = Mutex::new(PacketGate::new(networks, own, allow, rules, Instant::now()));
        let (to_client, dropped) = Default::default();
        let carrier = PacketCarrier::of(stream);
        let client = Client { carrier, gate, meter, to_client, dropped };
        let client = Arc::new(client);
        let all = lease.addresses.iter().map(|ip| (*ip, client.clone()));
        locked(&self.0.state).clients.extend(all);
        client
    }

    /// Hands a client's packet to the kernel. Returns its size.
    fn deliver(&self, client: &Client, mut packet: Vec<u8>) -> u64 {
        let mtu = client.carrier.mtu();
        let passed = locked(&client.gate).leave(Instant::now(), &mut packet, mtu, true);
        match passed {
            Ok(()) if client.admits(packet.len()) => {
                if self.0.device.deliver(&packet).is_ok() {
                    return packet.len() as u64;
                }
            }
            Ok(()) => {}
            Err(dropped) => client.answer(dropped),
        }
        client.dropped.fetch_add(1, Relaxed);
        0
    }
}

impl Client {
    /// Whether a packet of so many bytes may be carried now; it counts if so.
    fn admits(&self, bytes: usize) -> bool {
        locked(&self.meter).admit(Instant::now(), bytes as u64)
    }

    /// Sends a packet of the device to it.
    fn send(&self, packet: &mut [u8], device: &Device) {
        let now = Instant::now();
        let passed = locked(&self.gate).enter(now, packet, self.carrier.mtu(), false);
        match passed {
            Ok(treatment) if self.admits(packet.len()) => {
                if self.carrier.send(now, packet, &treatment).is_ok() {
                    self.to_client.fetch_add(packet.len() as u64, Relaxed);
                    return;
                }
            }
            Ok(_) | Err(Dropped::Invalid(_) | Dropped::Foreign) => {}
            // Its source is on the device's side.
            Err(Dropped::Denied(answer) | Dropped::TooBig(answer)) => {
                let _ = answer.map(|answer| device.deliver(&answer));
            }
        }
        self.dropped.fetch_add(1, Relaxed);
    }

    /// Tells it why its packet was dropped.
    fn answer(&self, dropped: Dropped) {
        let answer = match dropped {
            Dropped::Denied(answer) | Dropped::TooBig(answer) => answer,
            Dropped::Invalid(_) | Dropped::Foreign => None,
        };
        if let Some(answer) = answer {
            let treatment = Treatment::of(Class::Interactive);
            let _ = self.carrier.send(Instant::now(), &answer, &treatment);
        }
    }
}

impl Lease {
    /// All addresses of the client. Each answers the first wish for one of its version; wishes for more are declined.
    fn assigned(&self, wanted: &[AddressRequest]) -> AddressedCapsule {
        let mut answered = vec![0; self.addresses.len()];
        let mut declined = Vec::new();
        for wish in wanted {
            let is_v4 = wish.network.addr().is_ipv4();
            let mut own = self.addresses.iter().zip(&mut answered);
            match own.find(|(ip, by)| ip.is_ipv4() == is_v4 && **by == 0) {
                Some((_, by)) => *by = wish.request,
                None => {
                    let none: IpAddr = if is_v4 { [0, 0, 0, 0].into() } else { [0_u16; 8].into() };
                    declined.push(AssignedAddress { request: wish.request, network: none.into() });
                }
            }
        }
        let own = self.addresses.iter().zip(answered);
        let own = own.map(|(ip, request)| AssignedAddress { request, network: (*ip).into() });
        AddressedCapsule::Assign(own.chain(declined).collect())
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut state = locked(&self.network.0.state);
        for address in &self.addresses {
            state.clients.remove(address);
        }
        state.pool.give_back(&self.addresses);
    }
}
