//! All packets of this machine through the tunnel (`sutura tunnel connect --tun`).

use std::io;
use std::net::IpAddr;
use std::sync::Mutex;

use ipnet::IpNet;
use serde_json::{Value, json};
use sutura_tunnel::client::{MachineError, Tunnel};
use sutura_tunnel::tun::{Attached, IpClient, IpError};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::failure::{Exit, Failure};
use crate::output;

#[derive(Debug, clap::Args)]
pub struct MachineArgs {
    /// Send the IP packets of this machine through the tunnel, by a TUN device. Linux, as root or with CAP_NET_ADMIN
    #[arg(long)]
    tun: bool,
    /// The name of the device of --tun; %d stands for a number
    #[arg(long, value_name = "NAME", default_value = "sutura%d", requires = "tun")]
    tun_name: String,
    /// Send packets to this network through the tunnel, such as 10.0.0.0/8 or 0.0.0.0/0 [default: all that the proxy
    /// allows]
    #[arg(long, value_name = "NETWORK", requires = "tun", value_parser = network)]
    route: Vec<IpNet>,
}

/// A network, or a single address.
fn network(text: &str) -> Result<IpNet, String> {
    let single = || text.parse::<IpAddr>().map(IpNet::from);
    let network = text.parse::<IpNet>().or_else(|_| single());
    let network = network.map_err(|_| "expected a network, such as 10.0.0.0/8".to_owned())?;
    if network.trunc() == network {
        return Ok(network);
    }
    Err(format!("there are bits behind the prefix: expected {}", network.trunc()))
}

/// The device as it is now.
type Told = watch::Receiver<Option<Value>>;

/// What carries packets, if that is wanted.
#[derive(Debug)]
pub struct Machine(Option<Carrying>);

#[derive(Debug)]
struct Carrying {
    running: JoinHandle<Result<(), MachineError>>,
    told: Told,
}

impl MachineArgs {
    pub const fn is_wanted(&self) -> bool {
        self.tun
    }

    /// Begins to carry packets, if that is wanted. The ways to these proxies stay outside of the tunnel.
    pub fn start(&self, tunnel: &Tunnel, proxies: &[IpAddr]) -> Machine {
        if !self.tun {
            return Machine(None);
        }
        let machine = IpClient::new(&self.tun_name, self.route.clone(), proxies);
        let (sender, told) = watch::channel(None);
        let tunnel = tunnel.clone();
        let shown = Mutex::new(String::new());
        let running = tokio::spawn(async move {
            let tell = |attached: &Attached| {
                let text = describe(attached);
                if let Ok(mut shown) = shown.lock()
                    && *shown != text
                {
                    output::note(&text);
                    *shown = text;
                }
                sender.send_replace(Some(to_json(attached)));
            };
            tunnel.machine(machine, tell).await
        });
        Machine(Some(Carrying { running, told }))
    }
}

impl Machine {
    /// Waits until the device is there, if one is wanted, and returns what scripts are told of it.
    ///
    /// # Errors
    /// It cannot be had, or the proxy refuses.
    pub async fn attached(&mut self) -> Result<Option<Value>, Failure> {
        let Some(Carrying { running, told }) = &mut self.0 else { return Ok(None) };
        tokio::select! {
            biased;
            failure = ended(running) => Err(failure),
            told = told.wait_for(Option::is_some) => Ok(told.ok().and_then(|told| told.clone())),
        }
    }

    /// Waits until packets are no longer carried, and says why.
    pub async fn failed(&mut self) -> Failure {
        match &mut self.0 {
            Some(carrying) => ended(&mut carrying.running).await,
            None => std::future::pending().await,
        }
    }

    /// Removes the device, and with it its routes.
    pub async fn stop(self) {
        if let Some(Carrying { running, .. }) = self.0 {
            running.abort();
            let _ = running.await;
        }
    }
}

async fn ended(running: &mut JoinHandle<Result<(), MachineError>>) -> Failure {
    match running.await {
        Ok(Err(MachineError::Failed(IpError::System { what, error }))) => {
            Failure::local(advice(what, &error))
        }
        Ok(Err(error)) => Failure::new(Exit::NoConnection, format!("tun: {error}")),
        Ok(Ok(())) | Err(_) => Failure::new(Exit::NoConnection, "the tunnel has ended"),
    }
}

/// What the system refuses, and what to do.
pub fn advice(what: &str, error: &io::Error) -> String {
    let advice = match error.kind() {
        io::ErrorKind::PermissionDenied => {
            ": run this as root, or let it administer the network by `sudo setcap cap_net_admin+ep $(which sutura)`; the \
             user, and that of --user, must be allowed to open /dev/net/tun (`sudo chmod 666 /dev/net/tun`)"
        }
        io::ErrorKind::NotFound if !std::path::Path::new("/dev/net/tun").exists() => {
            ": there is no /dev/net/tun: `sudo modprobe tun` makes it; a container needs `--device /dev/net/tun \
             --cap-add NET_ADMIN`"
        }
        io::ErrorKind::ResourceBusy => {
            ": another program has a device of this name: see --tun-name"
        }
        _ => "",
    };
    format!("{what}: {error}{advice}")
}

fn list(networks: &[IpNet]) -> String {
    let all: Vec<String> = networks.iter().map(ToString::to_string).collect();
    if all.is_empty() { "nothing".into() } else { all.join(", ") }
}

fn describe(attached: &Attached) -> String {
    let (name, own) = (attached.name(), attached.addresses.iter().map(|net| net.addr().into()));
    let own: Vec<IpNet> = own.collect();
    format!("{name} has {}; {} is sent through it", list(&own), list(&attached.routes))
}

fn to_json(attached: &Attached) -> Value {
    let text = |networks: &[IpNet]| networks.iter().map(ToString::to_string).collect::<Vec<_>>();
    json!({
        "device": attached.name(),
        "addresses": text(&attached.addresses),
        "routes": text(&attached.routes),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_are_networks_or_addresses() {
        for (text, shown) in [
            ("10.0.0.0/8", "10.0.0.0/8"),
            ("0.0.0.0/0", "0.0.0.0/0"),
            ("10.1.2.3", "10.1.2.3/32"),
            ("fd00::1", "fd00::1/128"),
        ] {
            assert_eq!(network(text).unwrap().to_string(), shown);
        }
        assert!(network("10.0.0.1/8").unwrap_err().contains("10.0.0.0/8"));
        assert!(network("example.org").is_err());
    }

    #[test]
    fn what_the_system_refuses_is_told_with_what_to_do() {
        let denied = advice("no TUN device", &io::ErrorKind::PermissionDenied.into());
        assert!(denied.contains("setcap cap_net_admin+ep"), "{denied}");
    }
}
