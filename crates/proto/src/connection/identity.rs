//! The identifiers by which the peer addresses this end (RFC 9000 section 5.1): how they are made, and when
//! all of them are replaced.

use super::timer::Timer;
use super::{Connection, EndpointEvent};
use crate::cid_generator::{ConnectionIdGenerator, new_cid};
use crate::path::cids::LocalCids;
use crate::reset::ResetKey;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Identifiers are only replaced after this many packets arrived since the last time, which is more than
/// replacing them takes.
const ROTATION_PACKETS: u64 = 16;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Identity {
    /// The identifiers that exist.
    pub(super) cids: LocalCids,
    reset_key: ResetKey,
    generator: Arc<dyn ConnectionIdGenerator>,
    /// After how long the identifiers are replaced; `None` for never.
    lifetime: Option<Duration>,
    /// How many packets had been received when they were last replaced.
    rotated_at: u64,
}

impl Identity {
    pub(super) fn new(
        cids: LocalCids,
        reset_key: ResetKey,
        generator: Arc<dyn ConnectionIdGenerator>,
        lifetime: Option<Duration>,
    ) -> Self {
        Self { cids, reset_key, generator, lifetime, rotated_at: 0 }
    }

    /// Asks the peer to retire all identifiers, once enough packets were `received` since the last time.
    /// Returns whether it does.
    fn rotate(&mut self, received: u64) -> bool {
        // Otherwise identifiers that nobody sees would keep an idle connection alive.
        let is_due = received - self.rotated_at >= ROTATION_PACKETS;
        if is_due {
            self.rotated_at = received;
            self.cids.rotate();
        }
        is_due
    }
}

impl Connection {
    /// Issues further identifiers of this end to the peer.
    pub(super) fn issue_cids(&mut self) {
        let Identity { cids, reset_key, generator, .. } = &mut self.identity;
        let (rng, events) = (&mut self.rng, &mut self.endpoint_events);
        cids.set_peer_limit(self.peer.active_connection_id_limit);
        cids.issue(|_| {
            let cid = new_cid(&**generator, rng);
            events.push_back(EndpointEvent::AddCid(cid));
            (cid, reset_key.token(&cid))
        });
    }

    /// Replaces all identifiers of this end, unless the peer still has to retire some of the previous ones.
    pub(super) fn rotate_cids(&mut self, now: Instant) {
        if self.is_closed() {
            return;
        }
        if self.identity.rotate(self.stats.received.packets) {
            self.issue_cids();
        }
        self.set_rotation_timer(now);
    }

    /// Sets the timer for the next replacement.
    pub(super) fn set_rotation_timer(&mut self, now: Instant) {
        let next = self.identity.lifetime.and_then(|lifetime| now.checked_add(lifetime));
        self.timers.set(Timer::Identifiers, next);
    }
}
