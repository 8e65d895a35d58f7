//! The server's preferred address (RFC 9000 section 9.6): a server tells it, and a client goes over to it
//! once it has shown that the server receives there.

use super::{PathFrame, Transmit};
use crate::config::PreferredAddresses;
use crate::connection::Connection;
use crate::connection::timer::Timer;
use crate::error::{TransportError, TransportErrorCode};
use crate::ids::ConnectionId;
use crate::path::Challenge;
use crate::path::cids::NewCid;
use crate::reset::ResetToken;
use crate::rtt::RttEstimator;
use crate::wire::frame::Frame;
use crate::wire::transport_parameters::PreferredAddress;
use rand::Rng;
use std::net::SocketAddr;
use std::time::Instant;

/// The sequence number of the identifier that comes with the address (RFC 9000 section 5.1.1).
const SEQUENCE: u64 = 1;

/// The address to which a client tries to go over.
#[derive(Debug)]
pub(super) struct Preferred {
    pub(super) remote: SocketAddr,
    pub(super) cid: ConnectionId,
    challenge: Challenge,
}

/// The address of `offer` that is of the same family as `present`, if a client can send there.
fn reachable(offer: &PreferredAddress, present: SocketAddr) -> Option<SocketAddr> {
    let address = match present {
        SocketAddr::V4(_) => offer.ipv4.map(SocketAddr::V4),
        // A socket for both families, as on most systems.
        SocketAddr::V6(v6) if v6.ip().to_ipv4_mapped().is_some() => {
            let mapped = |v4: std::net::SocketAddrV4| v4.ip().to_ipv6_mapped();
            offer.ipv4.map(|v4| SocketAddr::new(mapped(v4).into(), v4.port()))
        }
        SocketAddr::V6(_) => offer.ipv6.map(SocketAddr::V6),
    }?;
    let ip = address.ip();
    let usable = address.port() != 0 && !ip.is_unspecified() && !ip.is_multicast();
    (usable && address != present).then_some(address)
}

/// The preferred address that a server announces to its clients, with an identifier for it.
pub(in crate::connection) fn offer(
    addresses: PreferredAddresses,
    connection_id: ConnectionId,
    token: ResetToken,
) -> PreferredAddress {
    let PreferredAddresses { ipv4, ipv6 } = addresses;
    PreferredAddress { ipv4, ipv6, connection_id, reset_token: token.0 }
}

impl Connection {
    /// On a client: keeps the identifier that comes with the server's preferred address.
    pub(in crate::connection) fn learn_preferred_address(
        &mut self,
        offer: &PreferredAddress,
    ) -> Result<(), TransportError> {
        let token = ResetToken(offer.reset_token);
        let new = NewCid { seq: SEQUENCE, cid: offer.connection_id, token };
        self.path.remote_cids.on_new_cid(new, 0).map(drop).map_err(|error| {
            TransportError::new(TransportErrorCode::TRANSPORT_PARAMETER_ERROR, error.reason)
        })
    }

    /// The handshake is confirmed: a client finds out whether the server receives at the address that it
    /// prefers, if the application wants that.
    pub(in crate::connection) fn try_preferred_address(&mut self, now: Instant) {
        if self.side.is_server() || !self.config.preferred_address {
            return;
        }
        let Some(offer) = self.peer.preferred_address.as_deref().copied() else { return };
        let Some(remote) = reachable(&offer, self.path.remote) else { return };
        // The server may have made this end retire it already.
        if self.path.remote_cids.next() != Some(offer.connection_id) {
            return;
        }
        let unknown = RttEstimator::new(self.config.initial_rtt).pto_base();
        let challenge = Challenge::new(now, self.pto(), unknown);
        self.timers.set(Timer::PreferredAddress, Some(challenge.timeout()));
        let preferred = Preferred { remote, cid: offer.connection_id, challenge };
        self.migration.preferred = Some(Box::new(preferred));
    }

    /// Sends a PATH_CHALLENGE to the preferred address, if one is due.
    pub(super) fn challenge_preferred_address(
        &mut self,
        now: Instant,
        out: &mut Vec<u8>,
    ) -> Option<Transmit> {
        let preferred = self.migration.preferred.as_mut().filter(|p| p.challenge.is_due())?;
        let data: [u8; 8] = self.rng.random();
        preferred.challenge.on_sent(now, data, true);
        self.timers.set(Timer::PreferredAddress, Some(preferred.challenge.timeout()));
        let (remote, cid) = (preferred.remote, preferred.cid);
        let frame = PathFrame { remote, cid, frame: Frame::PathChallenge(data), limit: usize::MAX };
        Some(self.write_path_frame(now, &frame, usize::MAX, out))
    }

    /// Challenges the preferred address again, or gives it up.
    pub(in crate::connection) fn on_preferred_address_timer(&mut self, now: Instant) {
        let Some(preferred) = &mut self.migration.preferred else { return };
        let failed = preferred.challenge.on_timeout(now);
        let next = preferred.challenge.timeout();
        self.timers.set(Timer::PreferredAddress, (!failed).then_some(next));
        if failed {
            self.migration.preferred = None;
        }
    }

    /// Goes over to the preferred address if this PATH_RESPONSE shows that the server receives there.
    /// Returns whether it does.
    pub(super) fn reach_preferred_address(
        &mut self,
        now: Instant,
        data: [u8; 8],
    ) -> Result<bool, TransportError> {
        let answered =
            |preferred: &mut Box<Preferred>| preferred.challenge.is_answered(data).is_some();
        let Some(preferred) = self.migration.preferred.take_if(answered) else {
            return Ok(false);
        };
        self.timers.set(Timer::PreferredAddress, None);
        // Without its identifier nothing may be sent there (section 9.5).
        if self.path.remote_cids.next() != Some(preferred.cid) {
            return Ok(true);
        }
        if self.path.remote.ip() != preferred.remote.ip() {
            self.forget_conditions(now);
        }
        self.migration.original = Some(self.path.remote);
        self.path.remote = preferred.remote;
        self.take_next_cid()?;
        self.resume(now);
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_family_of_the_socket_decides() {
        let offer = PreferredAddress {
            ipv4: Some("192.0.2.1:44".parse().unwrap()),
            ipv6: Some("[2001:db8::1]:66".parse().unwrap()),
            connection_id: ConnectionId::new(&[1; 8]).unwrap(),
            reset_token: [0; 16],
        };
        for (present, expected) in [
            ("198.51.100.1:1", Some("192.0.2.1:44")),
            ("[2001:db8::9]:1", Some("[2001:db8::1]:66")),
            ("[::ffff:198.51.100.1]:1", Some("[::ffff:192.0.2.1]:44")),
            ("192.0.2.1:44", None),
        ] {
            let expected = expected.map(|address| address.parse().unwrap());
            assert_eq!(reachable(&offer, present.parse().unwrap()), expected, "{present}");
        }
        for useless in ["0.0.0.0:44", "192.0.2.1:0", "224.0.0.1:44"] {
            let offer = PreferredAddress { ipv4: Some(useless.parse().unwrap()), ..offer };
            assert_eq!(reachable(&offer, "198.51.100.1:1".parse().unwrap()), None);
        }
    }
}
