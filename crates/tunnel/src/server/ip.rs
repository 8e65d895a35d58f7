//! Tunnels of IP packets at the proxy (RFC 9484).

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::answer::{Case, Pending};
use super::lookups::Lookups;
use super::reach::{MAX_ADDRESSES, Unreached, resolve};
use super::{Identity, Visit};
use crate::access::{Host, Name, Transport};
use crate::ip::{IpRange, Scope, ScopeTarget, everywhere};
use crate::masque::{Ask, CAPSULE_PROTOCOL, Cause};
use crate::tun::{IpNetwork, Lease, Permit};

/// The status for what a proxy could do but does not (RFC 9110 section 15.6.2).
const NOT_IMPLEMENTED: u16 = 501;

impl Visit {
    /// Carries packets until the client ends the exchange, or its connection is lost.
    pub(super) async fn ip(self: Arc<Self>, mut case: Case, answer: Pending) {
        let Ask::Ip(scope) = &case.ask else { return };
        let Some(network) = &self.shared.config.network else {
            let why = "this proxy carries no IP packets (--tun would have it do so)";
            return self.refuse_as(NOT_IMPLEMENTED, &case, answer, Cause::Request, why).await;
        };
        let entered = match self.enter(&case) {
            Ok(slot) => {
                let leased = self.lease(&case.identity, scope, network, &slot.client.lookups).await;
                leased.map(|lease| (slot, lease))
            }
            Err(full) => Err(full),
        };
        let (slot, lease) = match entered {
            Ok(entered) => entered,
            Err((cause, why)) => return self.refuse(&case, answer, cause, &why).await,
        };
        let Ok(stream) = answer.agree(&[CAPSULE_PROTOCOL]).await else { return };
        case.assigned = lease.addresses().to_vec();
        let throttle = slot.client.throttle.clone();
        let mut recorded = self.begin(case, None, slot);
        let rules = self.shared.config.rules.clone();
        let mut moved = |addresses: &[_]| recorded.moved(addresses);
        let served = lease.serve(stream, rules, throttle, &mut moved).await;
        recorded.to_target.store(served.from_client, Relaxed);
        recorded.from_target.store(served.to_client, Relaxed);
        recorded.dropped.store(served.dropped, Relaxed);
        recorded.complete.store(served.is_complete.into(), Relaxed);
    }

    /// Addresses for a client, and what it may reach from them.
    async fn lease(
        &self,
        owner: &Identity,
        scope: &Scope,
        network: &IpNetwork,
        lookups: &Lookups,
    ) -> Result<Lease, Unreached> {
        let allow = self.shared.config.allow.clone();
        let (name, mut ranges) = match &scope.target {
            None => (None, everywhere().to_vec()),
            Some(ScopeTarget::Network(net)) => (None, vec![IpRange::of(*net)]),
            Some(ScopeTarget::Host(Host::Ip(ip))) => (None, vec![IpRange::of((*ip).into())]),
            Some(ScopeTarget::Host(Host::Name(name))) => {
                if !allow.may_reach_name(Transport::Ip, name) {
                    return Err(prohibited(scope));
                }
                (Some(name.clone()), hosts(name, lookups).await?)
            }
        };
        ranges.retain(|range| network.has_version_of(range.start));
        if ranges.is_empty() {
            let why = "this proxy has no addresses of this version of IP in its tunnel (--tun)";
            return Err((Cause::Unroutable, why.into()));
        }
        let permit = Permit::new(allow, name, ranges, scope.protocol);
        if permit.routes().is_empty() {
            return Err(prohibited(scope));
        }
        network
            .lease(owner.clone(), permit)
            .map_err(|full| (Cause::Limit, format!("{full} of --tun")))
    }
}

/// The hosts of a name.
async fn hosts(name: &Name, lookups: &Lookups) -> Result<Vec<IpRange>, Unreached> {
    let mut hosts = Vec::new();
    for address in resolve(name.as_str(), 0, lookups).await? {
        let host = IpRange::of(address.ip().into());
        if !hosts.contains(&host) {
            hosts.push(host);
        }
    }
    hosts.truncate(MAX_ADDRESSES);
    Ok(hosts)
}

fn prohibited(scope: &Scope) -> Unreached {
    let to = scope.words();
    let why = format!("packets to {to} are not allowed: no rule of --allow is about them");
    (Cause::Prohibited, why)
}
