//! Connection identifiers issued by us and by the peer (RFC 9000 sections 5.1, 19.15 and 19.16).

use crate::error::{TransportError, TransportErrorCode};
use crate::ids::ConnectionId;
use crate::reset::ResetToken;
use std::collections::VecDeque;

/// How many of the peer's connection identifiers this end stores.
pub const ACTIVE_CID_LIMIT: u64 = 4;
/// How many of our identifiers the peer may have at once, even if it allows more.
pub const MAX_LOCAL_CIDS: usize = 4;
/// How many unacknowledged RETIRE_CONNECTION_ID frames the peer may make us keep, in multiples of
/// our `active_connection_id_limit`. RFC 9000 section 5.1.2 requires at least 2.
pub const MAX_RETIRE_FACTOR: usize = 10;

fn violation(reason: &'static str) -> TransportError {
    TransportError::new(TransportErrorCode::PROTOCOL_VIOLATION, reason)
}

/// One of our identifiers, as announced by a NEW_CONNECTION_ID frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewCid {
    /// Its sequence number.
    pub seq: u64,
    /// The identifier.
    pub cid: ConnectionId,
    /// Its stateless reset token.
    pub token: ResetToken,
}

/// One of our identifiers, to be announced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Announcement {
    /// Its sequence number.
    pub seq: u64,
    /// Identifiers with smaller numbers are to be retired.
    pub retire_prior_to: u64,
    /// The identifier.
    pub cid: ConnectionId,
    /// Its stateless reset token.
    pub token: ResetToken,
}

#[derive(Debug)]
struct LocalCid {
    seq: u64,
    cid: ConnectionId,
    /// `None` for the handshake's identifier, which no frame announces.
    token: Option<ResetToken>,
    /// Whether the peer may know it.
    announced: bool,
}

/// Our identifiers, which the peer uses to address us.
#[derive(Debug)]
pub struct LocalCids {
    /// Sorted by sequence number; at most [`MAX_LOCAL_CIDS`], and as many that the peer has to retire.
    cids: Vec<LocalCid>,
    /// Sequence numbers to announce, each of `cids` at most once.
    queue: VecDeque<u64>,
    next_seq: u64,
    /// The peer was told to retire identifiers with smaller numbers.
    retire_prior_to: u64,
    limit: usize,
}

impl LocalCids {
    /// `handshake` is the Source Connection ID of our first packets. If it is empty, the peer never
    /// gets another identifier.
    pub fn new(handshake: ConnectionId) -> Self {
        let first = LocalCid { seq: 0, cid: handshake, token: None, announced: true };
        let mut cids = Vec::with_capacity(MAX_LOCAL_CIDS);
        cids.push(first);
        Self { cids, queue: VecDeque::new(), next_seq: 1, retire_prior_to: 0, limit: 1 }
    }

    /// Gives back the memory for announcements that were made.
    pub fn shrink(&mut self) {
        self.queue.shrink_to_fit();
    }

    /// Adds the identifier that the transport parameters announce together with a preferred address (RFC
    /// 9000 section 5.1.1). Only right after [`new`](Self::new).
    pub fn add_preferred(&mut self, cid: ConnectionId, token: ResetToken) {
        let seq = self.next_seq;
        self.next_seq += 1;
        self.cids.push(LocalCid { seq, cid, token: Some(token), announced: true });
    }

    /// Sets the peer's `active_connection_id_limit` transport parameter.
    pub fn set_peer_limit(&mut self, limit: u64) {
        self.limit = usize::try_from(limit).unwrap_or(usize::MAX).clamp(1, MAX_LOCAL_CIDS);
    }

    /// Issues identifiers up to the limit and queues their announcements. `generate` makes one for
    /// a sequence number, of the same length as the first, and registers it with the endpoint. Call
    /// this once the peer's limit is known, and after each retirement.
    pub fn issue(&mut self, mut generate: impl FnMut(u64) -> (ConnectionId, ResetToken)) {
        if self.is_zero_length() {
            return;
        }
        while self.cids.iter().filter(|cid| cid.seq >= self.retire_prior_to).count() < self.limit {
            let seq = self.next_seq;
            self.next_seq += 1;
            let (cid, token) = generate(seq);
            self.cids.push(LocalCid { seq, cid, token: Some(token), announced: false });
            self.queue.push_back(seq);
        }
    }

    /// Asks the peer to retire all identifiers, once others are [issued](Self::issue). Does nothing
    /// while it still has to retire some of the previous ones (RFC 9000 section 5.1.1).
    pub fn rotate(&mut self) {
        let behind = self.cids.first().is_some_and(|cid| cid.seq < self.retire_prior_to);
        if !self.is_zero_length() && !behind {
            self.retire_prior_to = self.next_seq;
        }
    }

    /// The identifier for the next NEW_CONNECTION_ID frame. Call [`Self::on_announced`] once the frame
    /// is written.
    pub fn next_announcement(&self) -> Option<Announcement> {
        let seq = *self.queue.front()?;
        let LocalCid { cid, token, .. } = self.cids.iter().find(|cid| cid.seq == seq)?;
        let retire_prior_to = self.retire_prior_to.min(seq);
        Some(Announcement { seq, retire_prior_to, cid: *cid, token: (*token)? })
    }

    /// Records that a NEW_CONNECTION_ID frame with this sequence number was written into a packet.
    pub fn on_announced(&mut self, seq: u64) {
        self.queue.retain(|queued| *queued != seq);
        if let Some(cid) = self.cids.iter_mut().find(|cid| cid.seq == seq) {
            cid.announced = true;
        }
    }

    /// Queues a lost NEW_CONNECTION_ID frame again, unless its identifier has already been retired.
    pub fn on_announcement_lost(&mut self, seq: u64) {
        if self.cids.iter().any(|cid| cid.seq == seq) && !self.queue.contains(&seq) {
            self.queue.push_back(seq);
        }
    }

    /// Handles the acknowledgement of a NEW_CONNECTION_ID frame: if it is queued again, that is no
    /// longer needed.
    pub fn on_announcement_acked(&mut self, seq: u64) {
        self.queue.retain(|queued| *queued != seq);
    }

    /// Handles a RETIRE_CONNECTION_ID frame in a packet that was sent to `destination`. Returns the
    /// identifier that the endpoint may forget now; `None` if it was already retired.
    ///
    /// # Errors
    /// PROTOCOL_VIOLATION if the sequence number was never announced or belongs to `destination`.
    pub fn on_retire(
        &mut self,
        seq: u64,
        destination: &ConnectionId,
    ) -> Result<Option<ConnectionId>, TransportError> {
        if self.is_zero_length() {
            return Err(violation("retirement of an empty connection id"));
        }
        if seq >= self.next_seq {
            return Err(violation("retirement of a connection id that was not issued"));
        }
        let Some(index) = self.cids.iter().position(|cid| cid.seq == seq) else {
            return Ok(None);
        };
        if !self.cids[index].announced {
            return Err(violation("retirement of a connection id that was not issued"));
        }
        if self.cids[index].cid == *destination {
            return Err(violation("retirement of the connection id that it was sent to"));
        }
        self.queue.retain(|queued| *queued != seq);
        Ok(Some(self.cids.remove(index).cid))
    }

    /// The identifiers that the peer may use, oldest first.
    #[cfg(test)]
    pub fn iter(&self) -> impl Iterator<Item = ConnectionId> + '_ {
        self.cids.iter().map(|cid| cid.cid)
    }

    /// Only the handshake's identifier can be empty, and then it is never retired.
    fn is_zero_length(&self) -> bool {
        self.cids.first().is_some_and(|cid| cid.cid.is_empty())
    }
}

#[derive(Debug)]
struct RemoteCid {
    seq: u64,
    cid: ConnectionId,
    token: Option<ResetToken>,
}

/// An unacknowledged RETIRE_CONNECTION_ID frame.
#[derive(Debug)]
struct Retirement {
    seq: u64,
    /// Whether it is queued to be sent, for the first time or again.
    queued: bool,
}

/// The peer's identifiers, which we use to address it.
///
/// The active identifier has the smallest sequence number of all that are stored. An identifier
/// that arrives late, with a smaller number, may already have been used and retired, so it is
/// retired (again) at once.
#[derive(Debug)]
pub struct RemoteCids {
    /// The active identifier.
    active: RemoteCid,
    /// All other identifiers, sorted by sequence number.
    spare: Vec<RemoteCid>,
    /// Identifiers with lower sequence numbers are to be retired, because the peer said so or we stopped
    /// using them.
    retire_below: u64,
    retirements: Vec<Retirement>,
    limit: usize,
}

impl RemoteCids {
    /// `handshake` is the identifier that the first packets are sent to; `limit` is our
    /// `active_connection_id_limit`, at least 2.
    pub fn new(handshake: ConnectionId, limit: usize) -> Self {
        Self {
            active: RemoteCid { seq: 0, cid: handshake, token: None },
            spare: Vec::new(),
            retire_below: 0,
            retirements: Vec::new(),
            limit: limit.max(2),
        }
    }

    /// The identifier that packets are sent to.
    pub fn active(&self) -> ConnectionId {
        self.active.cid
    }

    /// The identifier that [`advance`](Self::advance) goes over to, if there is one.
    pub fn next(&self) -> Option<ConnectionId> {
        self.spare.first().map(|next| next.cid)
    }

    /// The stateless reset token of the active identifier, if the peer gave one.
    pub fn active_token(&self) -> Option<ResetToken> {
        self.active.token
    }

    /// Sets the identifier that the peer chose in its first packet or Retry (RFC 9000 section 7.2).
    /// Does nothing once another identifier is active.
    pub fn set_handshake_cid(&mut self, cid: ConnectionId) {
        if self.active.seq == 0 {
            self.active.cid = cid;
        }
    }

    /// Sets the server's `stateless_reset_token` transport parameter, which belongs to the
    /// handshake's identifier.
    pub fn set_handshake_token(&mut self, token: ResetToken) {
        if self.active.seq == 0 {
            self.active.token = Some(token);
        }
    }

    /// Whether this is the stateless reset token of the active identifier, given the last bytes of
    /// a datagram. Tokens of other identifiers do not count (RFC 9000 section 10.3.1).
    pub fn is_reset(&self, token: &ResetToken) -> bool {
        self.active.token.is_some_and(|ours| ours == *token)
    }

    /// Handles a NEW_CONNECTION_ID frame (or the identifier of the preferred address, with sequence
    /// number 1). Returns whether the active identifier has changed.
    ///
    /// # Errors
    /// PROTOCOL_VIOLATION if the peer uses an empty identifier or contradicts itself;
    /// CONNECTION_ID_LIMIT_ERROR if it issues more identifiers than we allow, or retires them
    /// faster than it acknowledges retirements; FRAME_ENCODING_ERROR if the fields are invalid.
    pub fn on_new_cid(
        &mut self,
        new: NewCid,
        retire_prior_to: u64,
    ) -> Result<bool, TransportError> {
        if self.active.cid.is_empty() {
            return Err(violation("connection id from a peer whose connection id is empty"));
        }
        if retire_prior_to > new.seq || new.cid.is_empty() {
            let code = TransportErrorCode::FRAME_ENCODING_ERROR;
            return Err(TransportError::new(code, "malformed NEW_CONNECTION_ID"));
        }
        let known = self.find(&new)?;
        self.retire_below = self.retire_below.max(retire_prior_to);
        self.retire_old_spares()?;
        if new.seq < self.retire_below {
            // Retired before we knew it (RFC 9000 section 19.15), unless it is the active one.
            if !known {
                self.retire(new.seq)?;
            }
        } else if !known {
            let index = self.spare.partition_point(|cid| cid.seq < new.seq);
            let cid = RemoteCid { seq: new.seq, cid: new.cid, token: Some(new.token) };
            self.spare.insert(index, cid);
        }
        let changed = self.active.seq < self.retire_below && self.leave_active()?;
        if self.spare.len() >= self.limit {
            let code = TransportErrorCode::CONNECTION_ID_LIMIT_ERROR;
            return Err(TransportError::new(code, "more connection ids than allowed"));
        }
        Ok(changed)
    }

    /// Switches to the next identifier and retires the active one, for a new path (RFC 9000 section
    /// 9.5). Returns `Ok(false)` if there is no other identifier.
    ///
    /// # Errors
    /// CONNECTION_ID_LIMIT_ERROR if the peer does not acknowledge retirements.
    pub fn advance(&mut self) -> Result<bool, TransportError> {
        self.leave_active()
    }

    /// The sequence number for the next RETIRE_CONNECTION_ID frame. Call
    /// [`Self::on_retirement_sent`] once the frame is written.
    pub fn next_retirement(&self) -> Option<u64> {
        self.retirements.iter().find(|retirement| retirement.queued).map(|next| next.seq)
    }

    /// Records that a RETIRE_CONNECTION_ID frame was written into a packet.
    pub fn on_retirement_sent(&mut self, seq: u64) {
        self.set_queued(seq, false);
    }

    /// Queues a lost RETIRE_CONNECTION_ID frame again.
    pub fn on_retirement_lost(&mut self, seq: u64) {
        self.set_queued(seq, true);
    }

    /// Handles the acknowledgement of a RETIRE_CONNECTION_ID frame.
    pub fn on_retirement_acked(&mut self, seq: u64) {
        self.retirements.retain(|retirement| retirement.seq != seq);
    }

    /// Whether this identifier is already stored.
    fn find(&self, new: &NewCid) -> Result<bool, TransportError> {
        let mut held = self.spare.iter().chain(std::iter::once(&self.active));
        let Some(old) = held.find(|old| old.seq == new.seq || old.cid == new.cid) else {
            return Ok(false);
        };
        let same_token = old.token.is_none_or(|token| token == new.token);
        if old.seq == new.seq && old.cid == new.cid && same_token {
            Ok(true)
        } else {
            Err(violation("connection id issued twice"))
        }
    }

    fn retire_old_spares(&mut self) -> Result<(), TransportError> {
        while let Some(seq) = self.spare.first().map(|cid| cid.seq)
            && seq < self.retire_below
        {
            self.spare.remove(0);
            self.retire(seq)?;
        }
        Ok(())
    }

    fn leave_active(&mut self) -> Result<bool, TransportError> {
        if self.spare.is_empty() {
            return Ok(false);
        }
        let next = self.spare.remove(0);
        let old = std::mem::replace(&mut self.active, next);
        self.retire_below = self.retire_below.max(self.active.seq);
        self.retire(old.seq)?;
        Ok(true)
    }

    fn retire(&mut self, seq: u64) -> Result<(), TransportError> {
        if self.retirements.iter().any(|retirement| retirement.seq == seq) {
            return Ok(());
        }
        if self.retirements.len() >= MAX_RETIRE_FACTOR * self.limit {
            let code = TransportErrorCode::CONNECTION_ID_LIMIT_ERROR;
            return Err(TransportError::new(code, "too many connection ids to retire"));
        }
        self.retirements.push(Retirement { seq, queued: true });
        Ok(())
    }

    fn set_queued(&mut self, seq: u64, queued: bool) {
        if let Some(retirement) = self.retirements.iter_mut().find(|one| one.seq == seq) {
            retirement.queued = queued;
        }
    }
}

#[cfg(test)]
mod tests;
