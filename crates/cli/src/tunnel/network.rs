//! The device of a proxy for clients that send IP packets (`sutura tunnel serve --tun`).

use std::io;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;
use serde_json::{Value, json};
use sutura_tunnel::tun::IpNetwork;

use super::machine::advice;
use crate::failure::Failure;
use crate::output;

/// What says whether the kernel passes packets of a version of IP on: a file, and the setting by its name.
const FORWARDING: [(bool, &str, &str); 2] = [
    (true, "/proc/sys/net/ipv4/ip_forward", "net.ipv4.ip_forward"),
    (false, "/proc/sys/net/ipv6/conf/all/forwarding", "net.ipv6.conf.all.forwarding"),
];

/// An address of the proxy in the tunnel, and the network in which clients get theirs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnNetwork(pub IpNet);

#[derive(Debug, clap::Args)]
pub struct NetworkArgs {
    /// Carry IP packets too, for `sutura tunnel connect --tun`: with this address in the tunnel, and others of the same
    /// networks for clients, such as 10.77.0.1/24 or 10.77.0.1/24,fd77::1/64. Linux, as root or with CAP_NET_ADMIN
    #[arg(long, value_name = "ADDR/BITS[,ADDR/BITS]", value_delimiter = ',')]
    tun: Vec<OwnNetwork>,
    /// The name of the device of --tun; %d stands for a number
    #[arg(long, value_name = "NAME", default_value = "suturap%d", requires = "tun")]
    tun_name: String,
}

impl FromStr for OwnNetwork {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let network: IpNet = text.parse().map_err(|_| {
            "expected the proxy's address in the tunnel and the length of its network, such as 10.77.0.1/24"
                .to_owned()
        })?;
        // The network's own address, the proxy's, and one of a client at least.
        let least = if network.addr().is_ipv4() { 30 } else { 126 };
        if network.prefix_len() > least {
            return Err(format!("there is no address for clients: expected /{least} or less"));
        }
        if [network.network(), network.broadcast()].contains(&network.addr()) {
            let first = match network.network() {
                IpAddr::V4(ip) => IpAddr::from((u32::from(ip) + 1).to_be_bytes()),
                IpAddr::V6(ip) => IpAddr::from((u128::from(ip) + 1).to_be_bytes()),
            };
            return Err(format!(
                "{} is no address of a host in this network: expected one such as {first}/{}",
                network.addr(),
                network.prefix_len()
            ));
        }
        Ok(Self(network))
    }
}

impl NetworkArgs {
    pub const fn is_wanted(&self) -> bool {
        !self.tun.is_empty()
    }

    /// Makes the device, if it is wanted.
    ///
    /// # Errors
    /// The system refuses.
    pub fn open(&self) -> Result<Option<IpNetwork>, Failure> {
        let own: Vec<IpNet> = self.tun.iter().map(|OwnNetwork(network)| *network).collect();
        for is_v4 in [true, false] {
            if own.iter().filter(|network| network.addr().is_ipv4() == is_v4).count() > 1 {
                return Err(Failure::usage("--tun takes one network of each version of IP"));
            }
        }
        if own.is_empty() {
            return Ok(None);
        }
        let network = IpNetwork::open(&self.tun_name, own)
            .map_err(|error| Failure::local(advice("no TUN device", &error)))?;
        hint(network.addresses());
        Ok(Some(network))
    }
}

/// Says what the kernel must be told for clients that want to go further than this machine.
fn hint(own: &[IpNet]) {
    for (is_v4, file, setting) in FORWARDING {
        let is_off = std::fs::read_to_string(file).is_ok_and(|text| text.trim() == "0");
        if is_off && own.iter().any(|network| network.addr().is_ipv4() == is_v4) {
            output::note(&format!(
                "clients of --tun reach this machine only: `sysctl -w {setting}=1` lets them go further; \
                 docs/tunnel-tun.md has the rules that hide them behind this machine's address"
            ));
        }
    }
}

/// Carries packets to clients, until the device is gone.
pub async fn carry(network: Option<IpNetwork>) -> Failure {
    let Some(network) = network else { return std::future::pending().await };
    let gone = match network.run().await {
        Ok(()) => io::ErrorKind::UnexpectedEof.into(),
        Err(error) => error,
    };
    Failure::local(format!("the device {} is gone: {gone}", network.device()))
}

/// The device and its addresses, for scripts.
pub fn to_json(network: &IpNetwork) -> Value {
    let addresses: Vec<String> = network.addresses().iter().map(ToString::to_string).collect();
    json!({ "device": network.device(), "addresses": addresses })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_networks_have_an_address_for_the_proxy_and_for_a_client() {
        for text in ["10.77.0.1/24", "10.77.0.2/30", "fd77::1/64", "fd77::1/126"] {
            let OwnNetwork(network) = text.parse().unwrap();
            assert_eq!(network.to_string(), text);
        }
        for (text, advice) in [
            ("10.77.0.1", "10.77.0.1/24"),
            ("10.77.0.0/24", "10.77.0.1/24"),
            ("10.77.0.255/24", "10.77.0.1/24"),
            ("10.77.0.1/31", "/30 or less"),
            ("fd77::/64", "fd77::1/64"),
            ("fd77::1/128", "/126 or less"),
        ] {
            let error = text.parse::<OwnNetwork>().unwrap_err();
            assert!(error.contains(advice), "{text}: {error}");
        }
    }
}
