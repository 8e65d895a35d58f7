//! What a client asks a proxy for at first, and what it is told.

use std::net::IpAddr;
use std::time::Duration;

use ipnet::IpNet;
use sutura::http::RequestStream;
use tokio::time::timeout;

use super::connect::IpError;
use crate::ip::{AddressRequest, AddressedCapsule, AssignedAddress, IpRange};

/// How long a proxy may take to assign addresses and to advertise routes.
const ASSIGN_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a client that had other addresses before waits for them after it was told new ones: by then the proxy
/// may have had no word of its wish.
const WISH_TIMEOUT: Duration = Duration::from_secs(2);

/// What a proxy has told so far.
#[derive(Debug, Default)]
struct Told {
    addresses: Vec<IpNet>,
    routes: Option<Vec<IpRange>>,
    /// Whether a wish was answered.
    is_answer: bool,
}

/// Asks for the addresses that this end had before, or for any, and returns those that it has now with the routes.
///
/// # Errors
/// The proxy does not tell them in time, or the exchange is over.
pub(super) async fn agree(
    stream: &mut RequestStream,
    known: &[IpNet],
) -> Result<(Vec<IpNet>, Vec<IpRange>), IpError> {
    stream.send_capsule(&wishes(known).encode()).await?;
    let mut told = Told::default();
    let first = timeout(ASSIGN_TIMEOUT, told.hear(stream, |told| told.is_enough())).await;
    first.map_err(|_| IpError::Proxy("it assigns no address or no routes"))??;
    let is_as_wished = |told: &Told| told.is_answer || told.addresses == known;
    if !known.is_empty() && !is_as_wished(&told) {
        // Without an answer, what it said first holds.
        if let Ok(heard) = timeout(WISH_TIMEOUT, told.hear(stream, is_as_wished)).await {
            heard?;
        }
    }
    Ok((told.addresses, told.routes.unwrap_or_default()))
}

/// A wish for an address of each version: that of before, or any.
fn wishes(known: &[IpNet]) -> AddressedCapsule {
    let any = [IpAddr::from([0; 4]), IpAddr::from([0_u16; 8])];
    let wish = |(request, any): (u64, &IpAddr)| {
        let before = known.iter().find(|net| net.addr().is_ipv4() == any.is_ipv4());
        AddressRequest { request, network: before.copied().unwrap_or((*any).into()) }
    };
    AddressedCapsule::Request((1..).zip(&any).map(wish).collect())
}

impl Told {
    fn is_enough(&self) -> bool {
        !self.addresses.is_empty() && self.routes.is_some()
    }

    /// Listens until `until` holds.
    async fn hear(
        &mut self,
        stream: &mut RequestStream,
        until: impl Fn(&Self) -> bool,
    ) -> Result<(), IpError> {
        while !until(self) {
            match next(stream).await? {
                AddressedCapsule::Assign(all) => {
                    self.addresses = first_of_each(&all);
                    self.is_answer = all.iter().any(|one| one.request != 0);
                }
                AddressedCapsule::Routes(all) => self.routes = Some(all),
                AddressedCapsule::Request(_) => {}
            }
        }
        Ok(())
    }
}

/// The next capsule of a proxy.
///
/// # Errors
/// It is malformed, or the exchange is over.
pub(super) async fn next(stream: &mut RequestStream) -> Result<AddressedCapsule, IpError> {
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
pub(super) fn first_of_each(all: &[AssignedAddress]) -> Vec<IpNet> {
    let given = all.iter().map(|one| one.network).filter(|net| !net.addr().is_unspecified());
    let mut first: Vec<IpNet> = Vec::new();
    for network in given {
        if first.iter().all(|other| other.addr().is_ipv4() != network.addr().is_ipv4()) {
            first.push(network);
        }
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    fn net(text: &str) -> IpNet {
        text.parse().unwrap()
    }

    #[test]
    fn addresses_of_before_are_wished_for() {
        let wished = |known: &[IpNet]| match wishes(known) {
            AddressedCapsule::Request(all) => all.iter().map(|one| one.network).collect(),
            other => panic!("{other:?}"),
        };
        let all: Vec<IpNet> = wished(&[net("fd77::2/128")]);
        assert_eq!(all, [net("0.0.0.0/32"), net("fd77::2/128")]);
    }

    #[test]
    fn the_first_address_of_each_version_counts() {
        let assigned = |text| AssignedAddress { request: 0, network: net(text) };
        let all = ["0.0.0.0/32", "10.0.0.2/32", "fd77::2/128", "10.0.0.3/32"].map(assigned);
        assert_eq!(first_of_each(&all), [net("10.0.0.2/32"), net("fd77::2/128")]);
    }
}
