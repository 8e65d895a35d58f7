//! The client's end: a device for this machine, over any number of connections one after the other.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ipnet::IpNet;
use sutura::http::RequestStream;
use tokio::time::{interval, timeout};

use super::carrier::PacketCarrier;
use super::device::{Device, MAX_DEVICE_MTU};
use super::gate::{Dropped, PacketGate};
use super::routes::{Kernel, networks};
use crate::flow::Rules;
use crate::ip::{AddressRequest, AddressedCapsule, AssignedAddress, IpRange};

/// How long a proxy may take to assign addresses.
const ASSIGN_TIMEOUT: Duration = Duration::from_secs(10);
/// How often the MTU of the device is adapted to the path.
const ADAPT: Duration = Duration::from_secs(1);

/// A machine's end of a tunnel. The device stays while the connection is lost, so that nothing leaves the machine
/// another way in the meantime, and programs notice a pause only.
#[derive(Debug)]
pub struct IpClient {
    name: String,
    wanted: Vec<IpNet>,
    rules: Arc<Rules>,
    device: Option<Attached>,
}

/// The device and what was agreed for it.
#[derive(Debug)]
pub struct Attached {
    device: Device,
    /// The addresses of this machine in the tunnel.
    pub addresses: Vec<IpNet>,
    /// What is routed into the tunnel.
    pub routes: Vec<IpNet>,
}

/// Why packets are no longer carried.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IpError {
    /// The exchange with the proxy is over or failed; another one may follow.
    #[error("the tunnel is lost: {0}")]
    Lost(String),
    /// The proxy assigns no address or no routes, or not what is right.
    #[error("the proxy does not do its part: {0}")]
    Proxy(&'static str),
    /// The device or the routes cannot be had.
    #[error("{what}: {error}")]
    System {
        /// What was tried.
        what: &'static str,
        /// The system's answer.
        error: io::Error,
    },
}

impl From<sutura::http::Error> for IpError {
    fn from(error: sutura::http::Error) -> Self {
        Self::Lost(error.to_string())
    }
}

fn system(what: &'static str) -> impl FnOnce(io::Error) -> IpError {
    move |error| IpError::System { what, error }
}

impl IpClient {
    /// A machine that makes a device of this name and routes these networks into it, as far as the proxy lets it: all
    /// that the proxy advertises, if there are none.
    #[must_use]
    pub fn new(name: &str, wanted: Vec<IpNet>, rules: Rules) -> Self {
        Self { name: name.to_owned(), wanted, rules: Arc::new(rules), device: None }
    }

    /// Carries packets over an exchange that the proxy at `proxy` agreed to, until it ends. `told` is called once the
    /// device is there.
    ///
    /// # Errors
    /// It ended, as it always does in the end.
    pub async fn carry(
        &mut self,
        mut stream: RequestStream,
        proxy: IpAddr,
        told: impl FnOnce(&Attached),
    ) -> Result<(), IpError> {
        let any = [IpAddr::from([0; 4]), IpAddr::from([0_u16; 8])];
        let wish = |(n, ip): (u64, &IpAddr)| AddressRequest { request: n, network: (*ip).into() };
        let wishes = AddressedCapsule::Request((1..).zip(&any).map(wish).collect());
        stream.send_capsule(&wishes.encode()).await?;
        let agreed = timeout(ASSIGN_TIMEOUT, agreed(&mut stream)).await;
        let (addresses, ranges) =
            agreed.map_err(|_| IpError::Proxy("it assigns no address or no routes"))??;
        let carrier = PacketCarrier::of(&stream);
        self.attach(addresses, &ranges, carrier.mtu(), proxy)?;
        let attached = self.device.as_ref().ok_or(IpError::Proxy("it assigns no address"))?;
        told(attached);
        attached.carry(&mut stream, &carrier, self.rules.clone()).await
    }

    /// Makes the device, or keeps the one that has these addresses, and sets its routes.
    fn attach(
        &mut self,
        addresses: Vec<IpNet>,
        ranges: &[IpRange],
        mtu: usize,
        proxy: IpAddr,
    ) -> Result<(), IpError> {
        let routes = networks(ranges, &self.wanted);
        if self.device.as_ref().is_none_or(|known| known.addresses != addresses) {
            // The name must be free.
            self.device = None;
            let mtu = u16::try_from(mtu).unwrap_or(MAX_DEVICE_MTU);
            let device =
                Device::open(&self.name, &addresses, mtu).map_err(system("no TUN device"))?;
            self.device = Some(Attached { device, addresses, routes: Vec::new() });
        }
        if let Some(attached) = &mut self.device
            && attached.routes != routes
        {
            let kernel = Kernel::new(attached.device.name());
            kernel.route(&routes, &attached.addresses, proxy).map_err(system("no routes"))?;
            attached.routes = routes;
        }
        Ok(())
    }
}

/// The addresses and routes that a proxy tells first.
async fn agreed(stream: &mut RequestStream) -> Result<(Vec<IpNet>, Vec<IpRange>), IpError> {
    let (mut addresses, mut routes) = (None, None);
    loop {
        match (addresses.take(), routes.take()) {
            (Some(addresses), Some(routes)) => return Ok((addresses, routes)),
            known => (addresses, routes) = known,
        }
        match next(stream).await? {
            AddressedCapsule::Assign(all) => {
                let all = own(&all);
                addresses = (!all.is_empty()).then_some(all);
            }
            AddressedCapsule::Routes(all) => routes = Some(all),
            AddressedCapsule::Request(_) => {}
        }
    }
}

/// The next capsule of a proxy.
async fn next(stream: &mut RequestStream) -> Result<AddressedCapsule, IpError> {
    loop {
        let capsule = stream.recv_capsule(&AddressedCapsule::KINDS).await?;
        let capsule = capsule.ok_or(IpError::Lost("the proxy has ended it".into()))?;
        let decoded = AddressedCapsule::decode(&capsule);
        let decoded = decoded.map_err(|_| IpError::Proxy("it sends malformed capsules"))?;
        if let Some(decoded) = decoded {
            return Ok(decoded);
        }
    }
}

/// The addresses of an assignment: the first one of each version.
fn own(all: &[AssignedAddress]) -> Vec<IpNet> {
    let given = all.iter().map(|one| one.network).filter(|net| !net.addr().is_unspecified());
    let mut own: Vec<IpNet> = Vec::new();
    for network in given {
        if own.iter().all(|other| other.addr().is_ipv4() != network.addr().is_ipv4()) {
            own.push(network);
        }
    }
    own
}

impl Attached {
    /// The device's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.device.name()
    }

    async fn carry(
        &self,
        stream: &mut RequestStream,
        carrier: &PacketCarrier,
        rules: Arc<Rules>,
    ) -> Result<(), IpError> {
        let own = self.addresses.iter().map(IpNet::addr).collect();
        let mut gate = PacketGate::new(self.addresses.clone(), own, None, rules, Instant::now());
        let mut adapt = interval(ADAPT);
        let mut buffer = vec![0; usize::from(MAX_DEVICE_MTU) + 1];
        loop {
            tokio::select! {
                size = self.device.recv(&mut buffer) => {
                    let size = size.map_err(system("the TUN device is gone"))?;
                    self.send(&mut gate, carrier, &mut buffer[..size]);
                }
                packet = carrier.recv() => match packet? {
                    Some(packet) => self.deliver(&mut gate, carrier, packet),
                    None => return Err(IpError::Lost("the proxy has ended it".into())),
                },
                capsule = next(stream) => match capsule? {
                    // Other addresses are for the next exchange: they need another device.
                    AddressedCapsule::Assign(all) if own_differs(&self.addresses, &all) => {
                        return Err(IpError::Lost("the proxy assigns other addresses".into()));
                    }
                    AddressedCapsule::Assign(_)
                    | AddressedCapsule::Request(_)
                    | AddressedCapsule::Routes(_) => {}
                },
                _ = adapt.tick() => {
                    let mtu = u16::try_from(carrier.mtu()).unwrap_or(MAX_DEVICE_MTU);
                    let adapted = self.device.set_mtu(mtu, &self.addresses);
                    adapted.map_err(system("the MTU of the TUN device"))?;
                }
            }
        }
    }

    /// Sends a packet of this machine.
    fn send(&self, gate: &mut PacketGate, carrier: &PacketCarrier, packet: &mut [u8]) {
        let now = Instant::now();
        match gate.enter(now, packet, carrier.mtu(), true) {
            Ok(treatment) => {
                // What cannot be sent is dropped, as by any link.
                let _ = carrier.send(now, packet, &treatment);
            }
            Err(Dropped::Denied(answer) | Dropped::TooBig(answer)) => {
                let _ = answer.map(|answer| self.device.deliver(&answer));
            }
            Err(Dropped::Invalid(_) | Dropped::Foreign) => {}
        }
    }

    /// Hands a packet to this machine.
    fn deliver(&self, gate: &mut PacketGate, carrier: &PacketCarrier, mut packet: Vec<u8>) {
        if gate.leave(Instant::now(), &mut packet, carrier.mtu(), false).is_ok() {
            let _ = self.device.deliver(&packet);
        }
    }
}

fn own_differs(known: &[IpNet], told: &[AssignedAddress]) -> bool {
    own(told) != known
}
