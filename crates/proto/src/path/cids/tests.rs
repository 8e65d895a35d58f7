use super::*;
use crate::wire::frame::RESET_TOKEN_SIZE;
use std::fmt;

fn cid(byte: u8) -> ConnectionId {
    ConnectionId::new(&[byte; 8]).unwrap()
}

fn token(byte: u8) -> ResetToken {
    ResetToken([byte; RESET_TOKEN_SIZE])
}

fn new(seq: u64) -> NewCid {
    NewCid { seq, cid: cid(seq as u8), token: token(seq as u8) }
}

fn announcement(seq: u64, retire_prior_to: u64) -> Announcement {
    Announcement { seq, retire_prior_to, cid: cid(seq as u8), token: token(seq as u8) }
}

fn generate(seq: u64) -> (ConnectionId, ResetToken) {
    (cid(seq as u8), token(seq as u8))
}

fn code<T: fmt::Debug>(result: Result<T, TransportError>) -> TransportErrorCode {
    result.unwrap_err().code
}

/// Local identifiers, all of them issued and announced.
fn announced(limit: u64) -> LocalCids {
    let mut local = LocalCids::new(cid(0));
    local.set_peer_limit(limit);
    local.issue(generate);
    announce(&mut local);
    local
}

/// Announces all identifiers that wait; returns them.
fn announce(local: &mut LocalCids) -> Vec<Announcement> {
    let mut all = Vec::new();
    while let Some(next) = local.next_announcement() {
        local.on_announced(next.seq);
        all.push(next);
    }
    all
}

fn retirements(remote: &mut RemoteCids) -> Vec<u64> {
    let mut seqs = Vec::new();
    while let Some(seq) = remote.next_retirement() {
        remote.on_retirement_sent(seq);
        seqs.push(seq);
    }
    seqs
}

#[test]
fn tokens_compare_and_stay_secret() {
    assert_eq!(token(7), token(7));
    let mut other = token(7);
    other.0[15] ^= 0x80;
    assert_ne!(token(7), other);
    assert_eq!(format!("{:?}", token(7)), "ResetToken(..)");
}

#[test]
fn issues_as_many_as_the_peer_holds_up_to_our_own_cap() {
    for (limit, expected) in [(0, 1), (2, 2), (3, 3), (1 << 62, MAX_LOCAL_CIDS)] {
        let mut local = LocalCids::new(cid(0));
        local.issue(generate);
        assert_eq!(local.iter().count(), 1, "the limit is not known yet");
        local.set_peer_limit(limit);
        local.issue(generate);
        local.issue(generate);
        assert_eq!(local.iter().count(), expected);
        let expected = (1..expected as u64).map(|seq| announcement(seq, 0));
        assert_eq!(announce(&mut local), expected.collect::<Vec<_>>());
    }
}

#[test]
fn retirement_makes_room_for_another() {
    let mut local = announced(3);
    assert_eq!(local.on_retire(1, &cid(0)), Ok(Some(cid(1))));
    assert_eq!(local.on_retire(1, &cid(0)), Ok(None), "repeated frame");
    local.issue(generate);
    assert_eq!(local.next_announcement().map(|next| next.seq), Some(3));
    assert!(local.iter().eq([cid(0), cid(2), cid(3)]));
    assert_eq!(local.on_retire(0, &cid(2)), Ok(Some(cid(0))));
}

#[test]
fn impossible_retirements_are_violations() {
    let mut local = announced(3);
    assert_eq!(code(local.on_retire(3, &cid(0))), TransportErrorCode::PROTOCOL_VIOLATION);
    assert_eq!(code(local.on_retire(u64::MAX, &cid(0))), TransportErrorCode::PROTOCOL_VIOLATION);
    assert_eq!(code(local.on_retire(1, &cid(1))), TransportErrorCode::PROTOCOL_VIOLATION);
    local.on_retire(1, &cid(0)).unwrap();
    local.issue(generate);
    // Issued, but not announced in a frame.
    assert_eq!(code(local.on_retire(3, &cid(0))), TransportErrorCode::PROTOCOL_VIOLATION);
}

#[test]
fn endpoint_with_an_empty_identifier_issues_none() {
    let mut local = LocalCids::new(ConnectionId::default());
    local.set_peer_limit(8);
    local.issue(generate);
    assert_eq!(local.next_announcement(), None);
    let retired = local.on_retire(0, &ConnectionId::default());
    assert_eq!(code(retired), TransportErrorCode::PROTOCOL_VIOLATION);
}

#[test]
fn lost_announcements_are_repeated_while_they_matter() {
    let mut local = announced(4);
    local.on_announcement_lost(2);
    local.on_announcement_lost(2);
    local.on_announcement_lost(1);
    assert_eq!(local.next_announcement(), Some(announcement(2, 0)));
    local.on_announced(2);
    assert_eq!(local.next_announcement(), Some(announcement(1, 0)));
    local.on_announcement_acked(1);
    assert_eq!(local.next_announcement(), None, "the first copy did arrive");
    local.on_retire(3, &cid(0)).unwrap();
    local.on_announcement_lost(3);
    assert_eq!(local.next_announcement(), None, "retired");
    local.on_announcement_lost(2);
    local.on_retire(2, &cid(0)).unwrap();
    assert_eq!(local.next_announcement(), None, "retired while waiting");
}

#[test]
fn all_are_replaced_once_the_peer_has_retired_those_before() {
    let mut local = announced(3);
    local.rotate();
    local.issue(generate);
    assert_eq!(announce(&mut local), [3, 4, 5].map(|seq| announcement(seq, 3)));
    assert_eq!(local.iter().count(), 6);
    local.rotate();
    local.issue(generate);
    assert_eq!(local.next_announcement(), None, "the peer has retired none yet");
    // A repeated announcement does not ask for its own retirement.
    local.on_announcement_lost(2);
    assert_eq!(local.next_announcement(), Some(announcement(2, 2)));
    for seq in 0..3 {
        assert_eq!(local.on_retire(seq, &cid(3)), Ok(Some(cid(seq as u8))));
        local.issue(generate);
    }
    assert_eq!(local.next_announcement(), None, "replaced already");
    local.rotate();
    local.issue(generate);
    assert_eq!(local.next_announcement(), Some(announcement(6, 6)));
    assert_eq!(local.iter().count(), 6);
}

#[test]
fn flood_of_retirements_keeps_local_state_bounded() {
    let wide = |seq: u64| (ConnectionId::new(&seq.to_be_bytes()).unwrap(), token(0));
    let mut local = LocalCids::new(cid(0xff));
    local.set_peer_limit(1 << 62);
    for seq in 1..10_000 {
        local.issue(wide);
        assert!(local.cids.len() <= MAX_LOCAL_CIDS && local.queue.len() <= MAX_LOCAL_CIDS);
        announce(&mut local);
        assert_eq!(local.on_retire(seq, &cid(0xff)), Ok(Some(wide(seq).0)));
        local.on_announcement_lost(seq);
    }
}

#[test]
fn remote_limit_is_enforced() {
    let mut remote = RemoteCids::new(cid(0), 3);
    assert_eq!(remote.on_new_cid(new(2), 0), Ok(false));
    assert_eq!(remote.on_new_cid(new(1), 0), Ok(false));
    let excess = remote.on_new_cid(new(3), 0);
    assert_eq!(code(excess), TransportErrorCode::CONNECTION_ID_LIMIT_ERROR);
}

#[test]
fn retire_prior_to_is_processed_before_counting() {
    let mut remote = RemoteCids::new(cid(0), 2);
    remote.on_new_cid(new(1), 0).unwrap();
    assert_eq!(remote.on_new_cid(new(2), 1), Ok(true));
    assert_eq!(remote.active(), cid(1));
    assert_eq!(retirements(&mut remote), [0]);
    // All at once: only the new one is left.
    assert_eq!(remote.on_new_cid(new(9), 9), Ok(true));
    assert_eq!((remote.active(), remote.active_token()), (cid(9), Some(token(9))));
    assert_eq!(retirements(&mut remote), [2, 1]);
    // A smaller value later changes nothing.
    assert_eq!(remote.on_new_cid(new(10), 3), Ok(false));
    assert_eq!(remote.next_retirement(), None);
}

#[test]
fn identifier_that_comes_after_its_retirement_is_retired() {
    let mut remote = RemoteCids::new(cid(0), 4);
    remote.on_new_cid(new(5), 4).unwrap();
    assert_eq!(retirements(&mut remote), [0]);
    assert_eq!(remote.on_new_cid(new(3), 0), Ok(false));
    assert_eq!(remote.on_new_cid(new(3), 0), Ok(false));
    assert_eq!(retirements(&mut remote), [3]);
    assert_eq!(remote.active(), cid(5));
    // An identifier that we left must not be revived by a repeated frame.
    remote.on_new_cid(new(6), 4).unwrap();
    assert_eq!(remote.advance(), Ok(true));
    assert_eq!(retirements(&mut remote), [5]);
    remote.on_retirement_acked(5);
    assert_eq!(remote.on_new_cid(new(5), 4), Ok(false));
    assert_eq!((remote.active(), remote.spare.len()), (cid(6), 0));
    assert_eq!(retirements(&mut remote), [5]);
}

#[test]
fn repeated_frames_are_accepted_and_contradictions_are_not() {
    let violates = |new: NewCid| {
        let mut remote = RemoteCids::new(cid(0), 4);
        remote.on_new_cid(self::new(1), 0).unwrap();
        remote.on_new_cid(self::new(1), 0).unwrap();
        assert_eq!(remote.spare.len(), 1);
        code(remote.on_new_cid(new, 0)) == TransportErrorCode::PROTOCOL_VIOLATION
    };
    assert!(violates(NewCid { cid: cid(7), ..new(1) }));
    assert!(violates(NewCid { token: token(7), ..new(1) }));
    assert!(violates(NewCid { seq: 2, ..new(1) }));
    assert!(violates(NewCid { cid: cid(7), ..new(0) }));
    assert!(violates(NewCid { seq: 2, ..new(0) }));
}

#[test]
fn malformed_frames_are_refused() {
    let mut remote = RemoteCids::new(cid(0), 4);
    let encoding = TransportErrorCode::FRAME_ENCODING_ERROR;
    assert_eq!(code(remote.on_new_cid(new(1), 2)), encoding);
    let empty = NewCid { cid: ConnectionId::default(), ..new(1) };
    assert_eq!(code(remote.on_new_cid(empty, 0)), encoding);
    let mut remote = RemoteCids::new(ConnectionId::default(), 4);
    let unexpected = remote.on_new_cid(new(1), 0);
    assert_eq!(code(unexpected), TransportErrorCode::PROTOCOL_VIOLATION);
}

#[test]
fn only_the_token_of_the_identifier_in_use_resets() {
    let mut remote = RemoteCids::new(cid(0), 4);
    assert!(!remote.is_reset(&token(0)));
    remote.set_handshake_cid(cid(100));
    remote.set_handshake_token(token(0));
    remote.on_new_cid(new(1), 0).unwrap();
    assert_eq!(remote.active(), cid(100));
    assert!(remote.is_reset(&token(0)) && !remote.is_reset(&token(1)));
    remote.advance().unwrap();
    assert!(!remote.is_reset(&token(0)) && remote.is_reset(&token(1)));
    // The handshake's identifier is no longer in use.
    remote.set_handshake_cid(cid(200));
    remote.set_handshake_token(token(200));
    assert_eq!((remote.active(), remote.active_token()), (cid(1), Some(token(1))));
    assert_eq!(remote.advance(), Ok(false));
}

#[test]
fn lost_retirements_are_repeated() {
    let mut remote = RemoteCids::new(cid(0), 2);
    remote.on_new_cid(new(1), 1).unwrap();
    assert_eq!(retirements(&mut remote), [0]);
    remote.on_retirement_lost(0);
    assert_eq!(retirements(&mut remote), [0]);
    remote.on_retirement_acked(0);
    remote.on_retirement_lost(0);
    assert_eq!(remote.next_retirement(), None);
}

/// Feeds frames until one is rejected; nothing is ever acknowledged.
fn flood(mut remote: RemoteCids, frames: impl Iterator<Item = (u64, u64)>) -> TransportErrorCode {
    let bound = MAX_RETIRE_FACTOR * remote.limit;
    for (seq, retire_prior_to) in frames.take(10_000) {
        let new = NewCid { cid: ConnectionId::new(&seq.to_be_bytes()).unwrap(), ..new(seq) };
        if let Err(error) = remote.on_new_cid(new, retire_prior_to) {
            assert_eq!(remote.retirements.len(), bound);
            return error.code;
        }
        retirements(&mut remote);
        assert!(remote.retirements.len() <= bound && remote.spare.len() < remote.limit);
    }
    panic!("the flood was not refused");
}

#[test]
fn backlog_of_retirements_is_bounded_for_jumps_and_singles() {
    let limit_error = TransportErrorCode::CONNECTION_ID_LIMIT_ERROR;
    let remote = || RemoteCids::new(ConnectionId::new(&[0xff; 20]).unwrap(), 4);
    // Each frame retires the previous identifier.
    assert_eq!(flood(remote(), (1..).map(|seq| (seq, seq))), limit_error);
    // Every fourth frame retires all stored identifiers.
    let jumps = (1..).map(|seq| (seq, if seq % 4 == 0 { seq } else { seq / 4 * 4 }));
    assert_eq!(flood(remote(), jumps), limit_error);
    // After a jump over everything, each frame carries an identifier that is already retired.
    let jump = std::iter::once((1 << 61, 1 << 61)).chain((1..).map(|seq| (seq, 0)));
    assert_eq!(flood(remote(), jump), limit_error);
}

#[test]
fn acknowledged_retirements_never_reach_the_bound() {
    let mut remote = RemoteCids::new(ConnectionId::new(&[0xff; 20]).unwrap(), 2);
    for seq in 1..1_000_u64 {
        let new = NewCid { cid: ConnectionId::new(&seq.to_be_bytes()).unwrap(), ..new(seq) };
        assert_eq!(remote.on_new_cid(new, seq), Ok(true));
        for seq in retirements(&mut remote) {
            remote.on_retirement_acked(seq);
        }
    }
    assert_eq!(remote.retirements.len(), 0);
}
