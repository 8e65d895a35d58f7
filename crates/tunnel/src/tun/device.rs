//! A TUN device: the kernel's packets, as files have bytes.

use std::io;
use std::net::IpAddr;

use ipnet::IpNet;
#[cfg(target_os = "linux")]
use tun_rs::AsyncDevice;

#[cfg(not(target_os = "linux"))]
use self::elsewhere::AsyncDevice;

/// Largest MTU of a device, in bytes: what paths usually carry.
pub const MAX_DEVICE_MTU: u16 = 1500;
/// The smallest MTU of a device (RFC 791).
const MIN_DEVICE_MTU: u16 = 576;

/// A TUN device, which is removed when it is dropped.
pub struct Device {
    device: AsyncDevice,
    name: String,
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Device").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Device {
    /// Makes a device with these addresses; `name` may have a `%d` for a number. Needs the right to administer the
    /// network (`CAP_NET_ADMIN`).
    ///
    /// # Errors
    /// The system refuses, or is none that has such devices here (`Unsupported`).
    pub fn open(name: &str, addresses: &[IpNet], mtu: u16) -> io::Result<Self> {
        let device = build(name, addresses, clamped(mtu, addresses))?;
        let name = device.name()?;
        Ok(Self { device, name })
    }

    /// The device's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Sets the MTU, where the device has these addresses.
    ///
    /// # Errors
    /// The system refuses.
    pub fn set_mtu(&self, mtu: u16, addresses: &[IpNet]) -> io::Result<()> {
        let mtu = clamped(mtu, addresses);
        if self.device.mtu()? == mtu { Ok(()) } else { self.device.set_mtu(mtu) }
    }

    /// The next packet that the kernel sends: its size.
    ///
    /// # Errors
    /// The device is gone.
    pub(super) async fn recv(&self, into: &mut [u8]) -> io::Result<usize> {
        self.device.recv(into).await
    }

    /// Hands a packet to the kernel, which drops it if it has no room.
    pub(super) fn deliver(&self, packet: &[u8]) -> io::Result<()> {
        self.device.try_send(packet).map(drop)
    }
}

#[cfg(target_os = "linux")]
fn build(name: &str, addresses: &[IpNet], mtu: u16) -> io::Result<AsyncDevice> {
    let mut builder = tun_rs::DeviceBuilder::new().name(name).mtu(mtu);
    for network in addresses {
        builder = match network.addr() {
            IpAddr::V4(ip) => builder.ipv4(ip, network.prefix_len(), None),
            IpAddr::V6(ip) => builder.ipv6(ip, network.prefix_len()),
        };
    }
    builder.build_async()
}

#[cfg(not(target_os = "linux"))]
fn build(_: &str, _: &[IpNet], _: u16) -> io::Result<AsyncDevice> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "there are TUN devices on Linux only"))
}

/// Systems where no device is ever made.
#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use std::io;

    pub(super) enum AsyncDevice {}

    impl AsyncDevice {
        pub(super) fn name(&self) -> io::Result<String> {
            match *self {}
        }

        pub(super) fn mtu(&self) -> io::Result<u16> {
            match *self {}
        }

        pub(super) fn set_mtu(&self, _: u16) -> io::Result<()> {
            match *self {}
        }

        pub(super) async fn recv(&self, _: &mut [u8]) -> io::Result<usize> {
            match *self {}
        }

        pub(super) fn try_send(&self, _: &[u8]) -> io::Result<usize> {
            match *self {}
        }
    }
}

/// An MTU that a device with these addresses can have. Without 1280 bytes there is no IPv6: what does not fit in the
/// tunnel is dropped then, and its source told so.
fn clamped(mtu: u16, addresses: &[IpNet]) -> u16 {
    let has_v6 = addresses.iter().any(|net| net.addr().is_ipv6());
    let least = if has_v6 { crate::ip::MIN_MTU as u16 } else { MIN_DEVICE_MTU };
    mtu.clamp(least, MAX_DEVICE_MTU)
}
