//! The peer's address changes (RFC 9000 section 9): because it moved, or because a NAT on the path
//! forgot a binding.
//!
//! A server goes over to the address from which the newest packet came, unless the packet is only a probe.
//! Until the address is validated, the server remembers the path that it left, and goes back if validation
//! fails. Path frames go out in datagrams of their own, so that congestion control and other data neither
//! delay them nor are charged for them.

mod preferred;

use super::receive::DatagramOrigin;
use super::timer::Timer;
use super::transmit::{TAG_SIZE, Transmit};
use super::{Connection, LifeStage, mtu};
use crate::error::TransportError;
use crate::ids::MIN_UDP_PAYLOAD;
use crate::ids::{ConnectionId, SpaceId};
use crate::path::{Challenge, Conditions, Validation};
use crate::rtt::RttEstimator;
use crate::wire::frame::Frame;
use preferred::Preferred;
pub(super) use preferred::offer;
use rand::Rng;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Instant;

/// How many path frames wait to be sent; more are not queued. They are sent before all other data, so this is
/// how many addresses can be answered between two calls of [`poll_transmit`](Connection::poll_transmit).
pub(super) const MAX_PATH_FRAMES: usize = 8;
/// A datagram with a path frame is at least this long: flags, the longest identifier and packet number,
/// the frame and the tag.
const MIN_PATH_DATAGRAM: usize = 1 + 20 + 4 + 9 + TAG_SIZE;
/// At most this many times the size of a datagram goes back to an address that is not validated (RFC
/// 9000 section 8.1).
const AMPLIFICATION_LIMIT: usize = 3;

/// A frame for a certain address.
#[derive(Debug)]
struct PathFrame {
    remote: SocketAddr,
    cid: ConnectionId,
    frame: Frame<'static>,
    /// How long its datagram may be.
    limit: usize,
}

/// A path that was left before the next one was validated.
#[derive(Debug)]
struct PreviousPath {
    remote: SocketAddr,
    cid: ConnectionId,
    /// `None` if they still apply.
    conditions: Option<Conditions>,
}

/// The state of a move from one path to another.
#[derive(Debug, Default)]
pub(super) struct Migration {
    /// The validation of the present path, while it is under way.
    challenge: Option<Box<Challenge>>,
    /// The path that was validated last, until the present one is. Boxed, because it is large and most
    /// connections never have one.
    previous: Option<Box<PreviousPath>>,
    /// The identifier of ours that the peer's newest packet was sent to.
    addressed: Option<ConnectionId>,
    queue: VecDeque<PathFrame>,
    /// The address that the server prefers, while this end finds out whether it is there.
    preferred: Option<Box<Preferred>>,
    /// Where the server was before this end went over to the address that it prefers. Late packets come
    /// from there.
    original: Option<SocketAddr>,
}

impl Migration {
    fn push(&mut self, frame: PathFrame) {
        // Of the challenges that come from an address, only the newest is answered, as one answer is enough.
        let response = |frame: &PathFrame| matches!(frame.frame, Frame::PathResponse(_));
        let same = |queued: &PathFrame| queued.remote == frame.remote && response(queued);
        if response(&frame) {
            self.queue.retain(|queued| !same(queued));
        }
        if self.queue.len() < MAX_PATH_FRAMES {
            self.queue.push_back(frame);
        }
    }

    /// How many path frames are waiting.
    #[cfg(test)]
    pub(super) fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Whether the present path is being validated.
    #[cfg(test)]
    pub(super) fn is_validating(&self) -> bool {
        self.challenge.is_some()
    }
}

impl Connection {
    /// Whether a datagram from this address may be the peer's. Only clients move, and only once the
    /// handshake is confirmed (RFC 9000 section 9). If they must not, a NAT may still give them
    /// another port.
    pub(super) fn may_come_from(&self, remote: SocketAddr) -> bool {
        let preferred = self.migration.preferred.as_ref().map(|preferred| preferred.remote);
        if self.side.is_client() && [preferred, self.migration.original].contains(&Some(remote)) {
            return true;
        }
        let may_move = self.config.migration || remote.ip() == self.path.remote.ip();
        remote == self.path.remote
            || (self.side.is_server() && self.handshake.confirmed && may_move)
    }

    /// Handles a PATH_CHALLENGE, which is answered on the path that it came on (RFC 9000 section
    /// 8.2.2).
    pub(super) fn on_challenge(
        &mut self,
        arrival: &DatagramOrigin,
        dcid: ConnectionId,
        data: [u8; 8],
    ) {
        let remote = arrival.remote;
        let present = remote == self.path.remote;
        let Some(cid) = self.cid_for_answer(remote, dcid) else { return };
        let limit = if present { usize::MAX } else { AMPLIFICATION_LIMIT * arrival.size };
        self.migration.push(PathFrame { remote, cid, frame: Frame::PathResponse(data), limit });
    }

    /// The identifier for an answer to `remote`, whose packet was sent to `dcid`. `None` on a server that has
    /// left `remote`: no identifier is used with two addresses of a server (RFC 9000 section 9.5).
    fn cid_for_answer(&self, remote: SocketAddr, dcid: ConnectionId) -> Option<ConnectionId> {
        let (cids, migration) = (&self.path.remote_cids, &self.migration);
        let active = cids.active();
        if remote == self.path.remote || active.is_empty() {
            return Some(active);
        }
        if self.side.is_client() {
            // The identifier of the address that the server had before is retired.
            let preferred = migration.preferred.as_ref().filter(|path| path.remote == remote);
            return preferred.map(|preferred| preferred.cid);
        }
        // A peer that takes another identifier for a path gets another one in return, if there is any. A NAT
        // takes none.
        let other = cids.next().filter(|_| migration.addressed != Some(dcid));
        Some(other.unwrap_or(active))
    }

    /// Handles the newest packet so far, which is no probe: the peer is where it came from.
    pub(super) fn follow(
        &mut self,
        now: Instant,
        arrival: &DatagramOrigin,
        dcid: ConnectionId,
    ) -> Result<(), TransportError> {
        let addressed = self.migration.addressed.replace(dcid);
        // Servers do not move; packets from another address of the server are of no importance to a client.
        if arrival.remote == self.path.remote || self.side.is_client() {
            return Ok(());
        }
        if self.migration.previous.as_ref().is_some_and(|path| path.remote == arrival.remote) {
            return self.go_back(now);
        }
        let (left, cid) = (self.path.remote, self.path.remote_cids.active());
        // A NAT does not change the identifier, so a peer that does moves on purpose (section 9.5).
        if addressed.is_some_and(|before| before != dcid) {
            self.take_next_cid()?;
        }
        let conditions = (left.ip() != arrival.remote.ip()).then(|| self.forget_conditions(now));
        if self.path.address.is_validated() && self.migration.challenge.is_none() {
            // An attacker may have copied the packet, so the peer is asked there, too (section 9.3.3).
            let frame = Frame::PathChallenge(self.rng.random());
            let challenge = PathFrame { remote: left, cid, frame, limit: usize::MAX };
            self.migration.push(challenge);
            let previous = PreviousPath { remote: left, cid, conditions };
            self.migration.previous = Some(Box::new(previous));
        } else if let Some(previous) = &mut self.migration.previous
            && previous.conditions.is_none()
        {
            previous.conditions = conditions;
        }
        self.path.remote = arrival.remote;
        self.path.address = Validation::new(false);
        self.path.address.on_received(arrival.size);
        self.challenge(now);
        self.resume(now);
        Ok(())
    }

    fn take_next_cid(&mut self) -> Result<(), TransportError> {
        // If the peer has issued no other identifier, the present one stays in use.
        self.path.remote_cids.advance()?;
        self.update_capacity();
        Ok(())
    }

    /// Forgets the conditions that do not hold for another path (RFC 9000 section 9.4); returns them.
    fn forget_conditions(&mut self, now: Instant) -> Conditions {
        let (config, seed) = (&self.config, self.rng.random());
        let mtu = mtu::of_new_path(config, self.socket, &self.peer);
        let unknown = Conditions::unknown(
            mtu,
            config.initial_rtt,
            self.socket.ecn,
            &*config.congestion,
            seed,
        );
        let known = self.path.replace_conditions(now, unknown);
        self.update_capacity();
        known
    }

    /// Starts to validate the present path.
    fn challenge(&mut self, now: Instant) {
        let unknown = RttEstimator::new(self.config.initial_rtt).pto_base();
        let challenge = Challenge::new(now, self.pto(), unknown);
        self.timers.set(Timer::PathValidation, Some(challenge.timeout()));
        self.migration.challenge = Some(Box::new(challenge));
    }

    /// Resumes sending on a path that was just taken.
    fn resume(&mut self, now: Instant) {
        self.path.recovery.reset_backoff();
        // The acknowledgement of the PING shows which packets were lost on the path before.
        self.spaces[SpaceId::Data].ping = true;
        self.update_loss_timer(now);
    }

    /// Returns to the path that was validated last.
    fn go_back(&mut self, now: Instant) -> Result<(), TransportError> {
        self.end_validation();
        let Some(previous) = self.migration.previous.take() else { return Ok(()) };
        self.path.remote = previous.remote;
        self.path.address = Validation::new(true);
        if let Some(conditions) = previous.conditions {
            self.path.replace_conditions(now, conditions);
            self.update_capacity();
        }
        if self.path.remote_cids.active() != previous.cid {
            self.take_next_cid()?;
        }
        self.resume(now);
        Ok(())
    }

    fn end_validation(&mut self) {
        self.migration.challenge = None;
        self.timers.set(Timer::PathValidation, None);
    }

    /// Handles a PATH_RESPONSE, which may come on any path (RFC 9000 section 8.2.3).
    pub(super) fn on_path_response(
        &mut self,
        now: Instant,
        data: [u8; 8],
    ) -> Result<(), TransportError> {
        if self.reach_preferred_address(now, data)? {
            return Ok(());
        }
        let answered = self.migration.challenge.as_ref().and_then(|c| c.is_answered(data));
        match answered {
            None => {}
            Some(full) => {
                self.path.address.validate();
                if full {
                    self.end_validation();
                    self.migration.previous = None;
                } else {
                    // The path may not carry datagrams of the size that it must (section 8.2.1).
                    self.challenge(now);
                }
                self.update_loss_timer(now);
            }
        }
        Ok(())
    }

    /// Challenges the present path again, or gives it up.
    pub(super) fn on_path_timer(&mut self, now: Instant) {
        let Some(challenge) = &mut self.migration.challenge else { return };
        let failed = challenge.on_timeout(now);
        self.timers.set(Timer::PathValidation, Some(challenge.timeout()));
        if failed && let Err(error) = self.go_back(now) {
            self.fail(now, error);
        }
    }

    /// Sends the next path frame, if one is due.
    pub(super) fn transmit_path_frame(
        &mut self,
        now: Instant,
        out: &mut Vec<u8>,
    ) -> Option<Transmit> {
        if self.state != LifeStage::Established || !self.may_send_in(SpaceId::Data) {
            return None;
        }
        while let Some(next) = self.migration.queue.pop_front() {
            let allowance = self.path_allowance(next.remote).min(next.limit);
            if allowance >= MIN_PATH_DATAGRAM {
                return Some(self.write_path_frame(now, &next, allowance, out));
            }
        }
        if let Some(transmit) = self.challenge_preferred_address(now, out) {
            return Some(transmit);
        }
        let remote = self.path.remote;
        let limit = self.path_allowance(remote);
        let due = self.migration.challenge.as_ref().is_some_and(|challenge| challenge.is_due());
        if !due || limit < MIN_PATH_DATAGRAM {
            return None;
        }
        let data: [u8; 8] = self.rng.random();
        let cid = self.path.remote_cids.active();
        let next = PathFrame { remote, cid, frame: Frame::PathChallenge(data), limit };
        let transmit = self.write_path_frame(now, &next, limit, out);
        if let Some(challenge) = &mut self.migration.challenge {
            challenge.on_sent(now, data, transmit.size >= usize::from(MIN_UDP_PAYLOAD));
            self.timers.set(Timer::PathValidation, Some(challenge.timeout()));
        }
        Some(transmit)
    }

    /// How many bytes may be sent to this address now, as far as that is known.
    fn path_allowance(&self, remote: SocketAddr) -> usize {
        if remote != self.path.remote {
            return usize::MAX;
        }
        usize::try_from(self.path.address.allowance()).unwrap_or(usize::MAX)
    }

    fn write_path_frame(
        &mut self,
        now: Instant,
        next: &PathFrame,
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Transmit {
        let begin = out.len();
        let mut packet = self.start_packet(SpaceId::Data, next.cid, begin, out);
        next.frame.encode(out);
        // All path frames need datagrams of the size that every path must carry, as far as allowed
        // (RFC 9000 section 8.2).
        let size = usize::from(MIN_UDP_PAYLOAD).min(limit);
        packet.pad_to(begin + size - TAG_SIZE, out);
        // The packet tells nothing about the present path, and has a timer of its own.
        (packet.in_flight, packet.ect0) = (false, false);
        let end = out.len();
        out.resize(end + TAG_SIZE, 0);
        self.seal(now, packet, end, out);
        let size = out.len() - begin;
        if next.remote == self.path.remote {
            self.path.address.on_sent(size);
        }
        self.stats.sent.datagrams += 1;
        self.stats.sent.bytes += size as u64;
        Transmit::new(next.remote, size)
    }

    /// Tells the connection that this end's address has changed or will change with the next datagram,
    /// because the application moves the connection to another socket (RFC 9000 section 9.2). The
    /// measurements of the path are forgotten, and the server learns the new address at once. Only a client
    /// can move, and only once the handshake is confirmed: before that the server drops packets from there.
    ///
    /// If the server forbids a move ([`may_migrate`](Self::may_migrate)), it may drop later packets, too.
    pub fn local_address_changed(&mut self, now: Instant) {
        if self.side.is_server() || self.is_closed() {
            return;
        }
        if self.handshake.confirmed {
            self.forget_conditions(now);
            if let Err(error) = self.take_next_cid() {
                self.fail(now, error);
                return;
            }
        }
        self.resume(now);
    }

    /// Whether this end may move to another address: it is a client's, the handshake is confirmed, and
    /// the server does not forbid it by `disable_active_migration` (RFC 9000 section 18.2).
    #[must_use]
    pub fn may_migrate(&self) -> bool {
        self.side.is_client() && self.handshake.confirmed && !self.peer.disable_active_migration
    }
}
