//! The client's end: a device for this machine, over any number of connections one after the other.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use ipnet::IpNet;
use sutura::http::RequestStream;
use tokio::time::interval;

use super::agree::{agree, first_of_each, next};
use super::carrier::PacketCarrier;
use super::device::{Device, MAX_DEVICE_MTU};
use super::gate::{Dropped, PacketGate};
use super::routes::{networks, route};
use super::ways::Ways;
use crate::flow::Rules;
use crate::ip::{AddressedCapsule, IpRange};

/// How often the MTU of the device is adapted to the path.
const ADAPT: Duration = Duration::from_secs(1);

/// A machine's end of a tunnel. The device stays while the connection is lost, so that nothing leaves the machine
/// another way in the meantime, and programs notice a pause only. A tunnel (`Tunnel::machine`)
/// carries its packets.
#[derive(Debug)]
pub struct IpClient {
    name: String,
    wanted: Vec<IpNet>,
    // Before the ways to proxies, which are there as long as its routes.
    device: Option<Attached>,
    ways: Ways,
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

/// Where it is counted what is carried.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PacketCounts<'a> {
    /// Bytes of packets into the tunnel.
    pub(crate) sent: &'a AtomicU64,
    /// Bytes of packets out of it.
    pub(crate) received: &'a AtomicU64,
    /// Packets that were dropped.
    pub(crate) dropped: &'a AtomicU64,
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
    /// A machine that makes a device of this name, which may have a `%d` for a number, and routes these networks into
    /// it, as far as the proxy lets it: all that the proxy advertises, if there are none. The ways to `proxies`, those
    /// that a connection may lead to, stay outside.
    #[must_use]
    pub fn new(name: &str, wanted: Vec<IpNet>, proxies: &[IpAddr]) -> Self {
        Self { name: name.to_owned(), wanted, device: None, ways: Ways::to(proxies) }
    }

    /// Whether the device is there.
    pub(crate) fn is_attached(&self) -> bool {
        self.device.is_some()
    }

    /// Finds ways to proxies anew that are gone because the machine has moved to another network.
    pub(crate) fn keep_ways(&mut self) {
        if let Some(attached) = &self.device
            && let Err(error) = self.ways.keep(&attached.routes, attached.device.name())
        {
            tracing::debug!(%error, "no way to a proxy");
        }
    }

    /// Carries packets over an exchange that a proxy agreed to, until it ends. `told` is called once the device is
    /// there.
    ///
    /// # Errors
    /// It ended, as it always does in the end.
    pub(crate) async fn carry(
        &mut self,
        mut stream: RequestStream,
        rules: Arc<Rules>,
        counts: PacketCounts<'_>,
        told: impl FnOnce(&Attached),
    ) -> Result<(), IpError> {
        let known = self.device.as_ref().map(|device| device.addresses.clone());
        let (addresses, ranges) = agree(&mut stream, &known.unwrap_or_default()).await?;
        let carrier = PacketCarrier::of(&stream);
        let attached = self.attach(addresses, &ranges, carrier.mtu())?;
        told(attached);
        attached.carry(&mut stream, &carrier, rules, counts).await
    }

    /// Makes the device, or keeps the one that has these addresses, and sets its routes.
    fn attach(
        &mut self,
        addresses: Vec<IpNet>,
        ranges: &[IpRange],
        mtu: usize,
    ) -> Result<&Attached, IpError> {
        let routes = networks(ranges, &self.wanted);
        let known = self.device.take().filter(|known| known.addresses == addresses);
        let mut attached = match known {
            Some(known) => known,
            // The one of before is gone by now: its name is free.
            None => {
                let mtu = u16::try_from(mtu).unwrap_or(MAX_DEVICE_MTU);
                let device =
                    Device::open(&self.name, &addresses, mtu).map_err(system("no TUN device"))?;
                Attached { device, addresses, routes: Vec::new() }
            }
        };
        let name = attached.device.name();
        self.ways.keep(&routes, name).map_err(system("no way to the proxy beside the tunnel"))?;
        if attached.routes != routes {
            route(name, &routes, &attached.addresses).map_err(system("no routes"))?;
            attached.routes = routes;
        }
        Ok(self.device.insert(attached))
    }
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
        counts: PacketCounts<'_>,
    ) -> Result<(), IpError> {
        let own = self.addresses.iter().map(IpNet::addr).collect();
        let mut gate = PacketGate::new(self.addresses.clone(), own, None, rules, Instant::now());
        let mut adapt = interval(ADAPT);
        let mut buffer = vec![0; usize::from(MAX_DEVICE_MTU) + 1];
        loop {
            tokio::select! {
                size = self.device.recv(&mut buffer) => {
                    let size = size.map_err(system("the TUN device is gone"))?;
                    self.send(&mut gate, carrier, &mut buffer[..size], counts);
                }
                packet = carrier.recv() => match packet? {
                    Some(packet) => self.deliver(&mut gate, carrier, packet, counts),
                    None => return Err(IpError::Lost("the proxy has ended it".into())),
                },
                capsule = next(stream) => match capsule? {
                    // Other addresses are for the next exchange: they need another device.
                    AddressedCapsule::Assign(all) if first_of_each(&all) != self.addresses => {
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
    fn send(
        &self,
        gate: &mut PacketGate,
        carrier: &PacketCarrier,
        packet: &mut [u8],
        counts: PacketCounts<'_>,
    ) {
        let now = Instant::now();
        let is_sent = match gate.enter(now, packet, carrier.mtu(), true) {
            // What cannot be sent is dropped, as by any link.
            Ok(treatment) => carrier.send(now, packet, &treatment).is_ok(),
            Err(Dropped::Denied(answer) | Dropped::TooBig(answer)) => {
                let _ = answer.map(|answer| self.device.deliver(&answer));
                false
            }
            Err(Dropped::Invalid(_) | Dropped::Foreign) => false,
        };
        counts.count(counts.sent, packet.len(), is_sent);
    }

    /// Hands a packet to this machine.
    fn deliver(
        &self,
        gate: &mut PacketGate,
        carrier: &PacketCarrier,
        mut packet: Vec<u8>,
        counts: PacketCounts<'_>,
    ) {
        let passes = gate.leave(Instant::now(), &mut packet, carrier.mtu(), false).is_ok();
        let is_delivered = passes && self.device.deliver(&packet).is_ok();
        counts.count(counts.received, packet.len(), is_delivered);
    }
}

impl PacketCounts<'_> {
    /// PacketCounts a packet by its bytes, or as dropped.
    fn count(self, bytes: &AtomicU64, size: usize, has_passed: bool) {
        if has_passed {
            bytes.fetch_add(size as u64, Relaxed);
        } else {
            self.dropped.fetch_add(1, Relaxed);
        }
    }
}
