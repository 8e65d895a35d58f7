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
use super::permit::Permit;
use super::pool::{AddressPool, Full};
use crate::access::Identity;
use crate::flow::{Class, Rules, Treatment};
use crate::ip::{self, AddressRequest, AddressedCapsule, AssignedAddress};
use crate::throttle::Throttle;

/// The device of a proxy and the addresses of its clients. Clones are the same one.
#[derive(Debug, Clone)]
pub struct IpNetwork(Arc<Network>);

#[derive(Debug)]
struct Network {
    device: Device,
    own: Vec<IpNet>,
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
    owner: Identity,
    carrier: PacketCarrier,
    gate: Mutex<PacketGate>,
    throttle: Throttle,
    to_client: AtomicU64,
    from_client: AtomicU64,
    dropped: AtomicU64,
}

/// How much a client was served.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct IpServed {
    /// Bytes of packets to the client.
    pub(crate) to_client: u64,
    /// Bytes of packets from the client.
    pub(crate) from_client: u64,
    /// Packets that did not pass.
    pub(crate) dropped: u64,
    /// Whether the client ended it, and its connection was not lost.
    pub(crate) is_complete: bool,
}

/// Addresses that a client has until this is dropped, and what it may reach from them.
#[derive(Debug)]
pub(crate) struct Lease {
    network: IpNetwork,
    owner: Identity,
    addresses: Vec<IpAddr>,
    permit: Permit,
    /// Whom packets for the addresses go to, once that is known.
    client: Option<Arc<Client>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl NetworkState {
    /// Lets packets for an address go to a client that wishes for it. Returns false if it may not have it.
    fn take_over(&mut self, address: IpAddr, client: &Arc<Client>) -> bool {
        match self.clients.get(&address) {
            Some(holder) if holder.owner == client.owner => {
                // From now on, the earlier connection sends nothing from there.
                locked(&holder.gate).set_client(Vec::new());
            }
            Some(_) => return false,
            None if self.pool.take_exactly(address) => {}
            None => return false,
        }
        self.clients.insert(address, client.clone());
        true
    }
}

impl IpNetwork {
    /// Makes the device, with the proxy's own addresses: clients get others of the same networks. `name` may have a
    /// `%d` for a number. Needs the right to administer the network (`CAP_NET_ADMIN`).
    ///
    /// # Errors
    /// The system refuses.
    pub fn open(name: &str, own: Vec<IpNet>) -> io::Result<Self> {
        let device = Device::open(name, &own, MAX_DEVICE_MTU)?;
        let state =
            Mutex::new(NetworkState { pool: AddressPool::new(&own), clients: HashMap::new() });
        Ok(Self(Arc::new(Network { device, own, state })))
    }

    /// The device's name.
    #[must_use]
    pub fn device(&self) -> &str {
        self.0.device.name()
    }

    /// The proxy's own addresses.
    #[must_use]
    pub fn addresses(&self) -> &[IpNet] {
        &self.0.own
    }

    /// Whether clients get addresses of the version of this one.
    pub(crate) fn has_version_of(&self, ip: IpAddr) -> bool {
        self.0.own.iter().any(|net| net.addr().is_ipv4() == ip.is_ipv4())
    }

    /// Sends the packets of the device to the clients that they are for, as long as it is there.
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

    /// Takes addresses for a client of this owner that may reach what `permit` says.
    ///
    /// # Errors
    /// There are none left.
    pub(crate) fn lease(&self, owner: Identity, permit: Permit) -> Result<Lease, Full> {
        let addresses = locked(&self.0.state).pool.take()?;
        Ok(Lease { network: self.clone(), owner, addresses, permit, client: None })
    }

    /// Hands a client's packet to the kernel.
    fn deliver(&self, client: &Client, mut packet: Vec<u8>) {
        let mtu = client.carrier.mtu();
        let passed = locked(&client.gate).leave(Instant::now(), &mut packet, mtu, true);
        match passed {
            Ok(()) if client.throttle.admits(packet.len()) => {
                if self.0.device.deliver(&packet).is_ok() {
                    client.from_client.fetch_add(packet.len() as u64, Relaxed);
                    return;
                }
            }
            Ok(()) => {}
            Err(dropped) => client.answer(dropped),
        }
        client.dropped.fetch_add(1, Relaxed);
    }
}

impl Client {
    /// Sends a packet of the device to it.
    fn send(&self, packet: &mut [u8], device: &Device) {
        let now = Instant::now();
        let passed = locked(&self.gate).enter(now, packet, self.carrier.mtu(), false);
        match passed {
            Ok(treatment) if self.throttle.admits(packet.len()) => {
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
    /// The addresses.
    pub(crate) fn addresses(&self) -> &[IpAddr] {
        &self.addresses
    }

    /// Carries packets over an exchange that was agreed to, until it ends. What is over the limits of `throttle` is
    /// dropped. `moved` is told when the client gets other addresses, as it wished for them.
    pub(crate) async fn serve(
        mut self,
        mut stream: RequestStream,
        rules: Arc<Rules>,
        throttle: Throttle,
        moved: &mut (dyn FnMut(&[IpAddr]) + Send),
    ) -> IpServed {
        let client = self.enter(&stream, rules, throttle);
        let ended = self.exchange(&mut stream, &client, moved).await;
        IpServed {
            to_client: client.to_client.load(Relaxed),
            from_client: client.from_client.load(Relaxed),
            dropped: client.dropped.load(Relaxed),
            is_complete: ended.is_ok(),
        }
    }

    /// From now on, packets for the addresses go to this client.
    fn enter(
        &mut self,
        stream: &RequestStream,
        rules: Arc<Rules>,
        throttle: Throttle,
    ) -> Arc<Client> {
        let networks = self.addresses.iter().map(|ip| IpNet::from(*ip)).collect();
        let network = &self.network.0;
        let own = network.own.iter().map(IpNet::addr).collect();
        let permit = Some(self.permit.clone());
        let gate = Mutex::new(PacketGate::new(networks, own, permit, rules, Instant::now()));
        let (to_client, from_client, dropped) = Default::default();
        let carrier = PacketCarrier::of(stream);
        let owner = self.owner.clone();
        let client = Client { owner, carrier, gate, throttle, to_client, from_client, dropped };
        let client = Arc::new(client);
        let all = self.addresses.iter().map(|ip| (*ip, client.clone()));
        locked(&network.state).clients.extend(all);
        self.client = Some(client.clone());
        client
    }

    /// Tells the client its addresses and routes, and carries its packets.
    async fn exchange(
        &mut self,
        stream: &mut RequestStream,
        client: &Arc<Client>,
        moved: &mut (dyn FnMut(&[IpAddr]) + Send),
    ) -> Result<(), Error> {
        let routes = AddressedCapsule::Routes(self.permit.routes());
        stream.send_capsule(&self.assigned(&[]).encode()).await?;
        stream.send_capsule(&routes.encode()).await?;
        loop {
            tokio::select! {
                packet = client.carrier.recv() => match packet? {
                    Some(packet) => self.network.deliver(client, packet),
                    None => return Ok(()),
                },
                capsule = stream.recv_capsule(&AddressedCapsule::KINDS) => {
                    let Some(capsule) = capsule? else {
                        stream.finish().await?;
                        return Ok(());
                    };
                    match AddressedCapsule::decode(&capsule) {
                        Ok(Some(AddressedCapsule::Request(wanted))) => {
                            if self.grant(&wanted, client) {
                                moved(&self.addresses);
                            }
                            stream.send_capsule(&self.assigned(&wanted).encode()).await?;
                        }
                        // What the client would have this end send from or to is of no use to a proxy.
                        Ok(Some(AddressedCapsule::Assign(_) | AddressedCapsule::Routes(_)) | None) => {}
                        Err(_) => {
                            stream.reset(sutura::http::Code::DATAGRAM_ERROR);
                            return Ok(());
                        }
                    }
                }
            }
        }
    }

    /// Gives the client the addresses that it wishes for, if nobody has them, or an earlier connection of the same owner
    /// does, which is lost as it seems. Returns whether it has others now.
    fn grant(&mut self, wanted: &[AddressRequest], client: &Arc<Client>) -> bool {
        let mut state = locked(&self.network.0.state);
        let mut has_moved = false;
        for wish in wanted.iter().map(|wish| wish.network) {
            let is_same = |ip: &&mut IpAddr| ip.is_ipv4() == wish.addr().is_ipv4();
            let Some(own) = self.addresses.iter_mut().find(is_same) else { continue };
            let is_one = wish == IpNet::from(wish.addr()) && wish.addr() != *own;
            if is_one && state.take_over(wish.addr(), client) {
                state.clients.remove(own);
                state.pool.give_back(&[*own]);
                *own = wish.addr();
                has_moved = true;
            }
        }
        if has_moved {
            let networks = self.addresses.iter().map(|ip| IpNet::from(*ip)).collect();
            locked(&client.gate).set_client(networks);
        }
        has_moved
    }

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
            let is_own = match (state.clients.get(address), &self.client) {
                (Some(holder), Some(own)) => Arc::ptr_eq(holder, own),
                (None, _) => true,
                (Some(_), None) => false,
            };
            // Otherwise a later connection has taken it over.
            if is_own {
                state.clients.remove(address);
                state.pool.give_back(&[*address]);
            }
        }
    }
}
