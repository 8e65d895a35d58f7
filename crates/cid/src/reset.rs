//! Stateless resets (RFC 9000 section 10.3): how an endpoint that knows nothing of a connection tells the
//! peer so, and how it recognises that it is told.

use crate::ConnectionId;
use primitives::hmac;
use rand::{Rng, RngCore};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The length of a stateless reset token in bytes (RFC 9000 section 10.3).
pub const RESET_TOKEN_SIZE: usize = 16;
/// Most stateless resets that an endpoint sends in a second.
pub const MAX_RESETS_PER_SECOND: u32 = 1000;
/// The shortest stateless reset: 38 bits that look random after the first two, and the token (RFC 9000
/// section 10.3).
pub const MIN_RESET: usize = 5 + RESET_TOKEN_SIZE;
/// A stateless reset of this length could be a packet of any peer; a longer one would serve no purpose.
/// The length varies from here on.
const USUAL_RESET: usize = 42;
/// How much it varies.
const RESET_VARIATION: usize = 32;

/// A stateless reset token (RFC 9000 section 10.3). Anyone who knows a token can end the
/// connection, so it is compared in constant time and never printed.
#[derive(Clone, Copy, Eq)]
pub struct ResetToken(pub [u8; RESET_TOKEN_SIZE]);

impl PartialEq for ResetToken {
    fn eq(&self, other: &Self) -> bool {
        let difference = self.0.iter().zip(&other.0).fold(0, |sum, (a, b)| sum | (a ^ b));
        std::hint::black_box(difference) == 0
    }
}

impl std::hash::Hash for ResetToken {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl fmt::Debug for ResetToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ResetToken(..)")
    }
}

/// The key from which an endpoint derives the stateless reset tokens of its connection identifiers. An
/// endpoint that is started again with the same key can reset the connections that it forgot.
///
/// To replace a key, start the endpoint with a new key and [the previous one](Self::with_previous).
#[derive(Clone)]
pub struct ResetKey {
    key: Arc<hmac::Key>,
    /// Earlier keys, under which peers may hold connections that this endpoint has forgotten.
    previous: Vec<Arc<hmac::Key>>,
}

impl ResetKey {
    /// Derives the key from `secret`, at least 32 unpredictable bytes, and from `context`, which
    /// distinguishes this endpoint from others with the same secret, such as the address that it is bound to.
    /// Of two endpoints with the same key, each would give away the tokens of the other's connections (RFC
    /// 9000 section 21.11).
    #[must_use]
    pub fn new(secret: &[u8], context: &[u8]) -> Self {
        let secret = hmac::Key::new(hmac::HMAC_SHA256, secret);
        Self { key: derived(&secret, context), previous: Vec::new() }
    }

    /// Also resets the connections that were opened under `previous` and forgotten. A packet does not show
    /// which key its connection used, so the keys take turns, and a peer may need one more packet to be
    /// reset.
    #[must_use]
    pub fn with_previous(mut self, previous: &Self) -> Self {
        self.previous.push(previous.key.clone());
        self
    }

    /// The key of an endpoint that shares this key with others and is called `owner`; this key, if `owner` is
    /// empty.
    #[must_use]
    pub fn of(self, owner: &[u8]) -> Self {
        if owner.is_empty() {
            return self;
        }
        // Longer than any identifier, so that the derived key is no identifier's token.
        let context = [b"the owner of identifiers: ", owner].concat();
        let of = |key: &Arc<hmac::Key>| derived(key, &context);
        Self { key: of(&self.key), previous: self.previous.iter().map(of).collect() }
    }

    /// The token of one of our identifiers.
    #[must_use]
    pub fn token(&self, cid: &ConnectionId) -> ResetToken {
        token(&self.key, cid)
    }

    /// The token with which an unknown connection with this identifier is reset in this turn.
    fn token_in_turn(&self, cid: &ConnectionId, turn: usize) -> ResetToken {
        let turn = turn % (self.previous.len() + 1);
        let key = turn.checked_sub(1).and_then(|turn| self.previous.get(turn));
        token(key.unwrap_or(&self.key), cid)
    }
}

fn derived(key: &hmac::Key, context: &[u8]) -> Arc<hmac::Key> {
    let derived = hmac::sign(key, context);
    Arc::new(hmac::Key::new(hmac::HMAC_SHA256, derived.as_ref()))
}

fn token(key: &hmac::Key, cid: &ConnectionId) -> ResetToken {
    let tag = hmac::sign(key, cid.as_slice());
    let mut token = [0; RESET_TOKEN_SIZE];
    token.iter_mut().zip(tag.as_ref()).for_each(|(to, from)| *to = *from);
    ResetToken(token)
}

impl fmt::Debug for ResetKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ResetKey(..)")
    }
}

/// The token with which this datagram would reset a connection.
#[must_use]
pub fn token_of(datagram: &[u8]) -> Option<ResetToken> {
    let is_short = datagram.first().is_some_and(|first| first & 0x80 == 0);
    let token = datagram.last_chunk().filter(|_| is_short && datagram.len() >= MIN_RESET)?;
    Some(ResetToken(*token))
}

/// The stateless resets of an endpoint, in both directions. `H` names its connections.
#[derive(Debug)]
pub struct Resets<H> {
    key: ResetKey,
    /// The connections that a token resets, one for each connection at most. Tokens are secret, and the
    /// time of a lookup depends on a randomly keyed hash of them only.
    tokens: HashMap<ResetToken, H>,
    /// Most stateless resets in a second.
    limit: u32,
    left: u32,
    /// How many were sent.
    sent: usize,
    /// When the present second began.
    since: Option<Instant>,
}

impl<H: Copy + PartialEq> Resets<H> {
    /// An endpoint with this key, which knows of no token.
    #[must_use]
    pub fn new(key: ResetKey) -> Self {
        let limit = MAX_RESETS_PER_SECOND;
        Self { key, tokens: HashMap::new(), limit, left: 0, sent: 0, since: None }
    }

    /// Sends this many stateless resets in a second at most, instead of [`MAX_RESETS_PER_SECOND`].
    #[must_use]
    pub fn with_limit(mut self, limit: u32) -> Self {
        self.limit = limit;
        self
    }

    /// The key of the endpoint's own tokens.
    #[must_use]
    pub fn key(&self) -> &ResetKey {
        &self.key
    }

    /// The connection that this datagram, which belongs to none, resets.
    #[must_use]
    pub fn find(&self, datagram: &[u8]) -> Option<H> {
        self.tokens.get(&token_of(datagram)?).copied()
    }

    /// Replaces the token that resets a connection.
    pub fn replace(&mut self, handle: H, old: Option<ResetToken>, new: Option<ResetToken>) {
        if let Some(old) = old
            && self.tokens.get(&old) == Some(&handle)
        {
            self.tokens.remove(&old);
        }
        self.tokens.extend(new.map(|new| (new, handle)));
    }

    /// The stateless reset for a datagram of `size` bytes to an unknown identifier. It is shorter than the
    /// datagram, so that two endpoints that know nothing do not answer each other for ever, and no address is
    /// sent more bytes than were sent in its name.
    pub fn answer(
        &mut self,
        now: Instant,
        cid: &ConnectionId,
        size: usize,
        rng: &mut impl RngCore,
    ) -> Option<Vec<u8>> {
        let longest = size.saturating_sub(1);
        if longest < MIN_RESET || !self.take(now) {
            return None;
        }
        let longest = longest.min(rng.random_range(USUAL_RESET..USUAL_RESET + RESET_VARIATION));
        let mut reset = vec![0; longest];
        rng.fill_bytes(&mut reset);
        reset[0] = reset[0] & 0x3f | 0x40;
        let token = self.key.token_in_turn(cid, self.sent).0;
        self.sent = self.sent.wrapping_add(1);
        let at = longest - token.len();
        reset[at..].copy_from_slice(&token);
        Some(reset)
    }

    fn take(&mut self, now: Instant) -> bool {
        let second = Duration::from_secs(1);
        if self.since.is_none_or(|since| now.saturating_duration_since(since) >= second) {
            (self.since, self.left) = (Some(now), self.limit);
        }
        let allowed = self.left > 0;
        self.left = self.left.saturating_sub(1);
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    fn cid(n: u8) -> ConnectionId {
        ConnectionId::new(&[n; 8]).unwrap()
    }

    #[test]
    fn tokens_depend_on_secret_context_and_identifier() {
        let key = ResetKey::new(&[1; 32], b"here");
        assert_eq!(key.token(&cid(1)), ResetKey::new(&[1; 32], b"here").token(&cid(1)));
        assert_ne!(key.token(&cid(1)), key.token(&cid(2)));
        assert_ne!(key.token(&cid(1)), ResetKey::new(&[1; 32], b"there").token(&cid(1)));
        assert_ne!(key.token(&cid(1)), ResetKey::new(&[2; 32], b"here").token(&cid(1)));
    }

    #[test]
    fn previous_keys_take_turns() {
        let keys = [1, 2, 3].map(|n| ResetKey::new(&[n; 32], b""));
        let key = keys[0].clone().with_previous(&keys[1]).with_previous(&keys[2]);
        assert_eq!(key.token(&cid(1)), keys[0].token(&cid(1)), "our own are of the newest");
        for owner in [&b""[..], b"one of many"] {
            let (mut rng, now) = (StdRng::from_seed([1; 32]), Instant::now());
            let mut resets = Resets::<usize>::new(key.clone().of(owner));
            let mut sent = || token_of(&resets.answer(now, &cid(1), 100, &mut rng).unwrap());
            for _ in 0..2 {
                for key in &keys {
                    assert_eq!(sent(), Some(key.clone().of(owner).token(&cid(1))));
                }
            }
        }
    }

    #[test]
    fn resets_are_shorter_than_what_they_answer_and_limited() {
        let (mut rng, now) = (StdRng::from_seed([1; 32]), Instant::now());
        let mut resets = Resets::<usize>::new(ResetKey::new(&[1; 32], b""));
        for size in 0..1500 {
            let reset = resets.answer(now, &cid(1), size, &mut rng);
            let sent = size > MIN_RESET && size - MIN_RESET <= MAX_RESETS_PER_SECOND as usize;
            assert_eq!(reset.is_some(), sent, "{size}");
            let Some(reset) = reset else { continue };
            assert!(reset.len() < size && reset.len() < USUAL_RESET + RESET_VARIATION);
            assert_eq!(reset[0] & 0xc0, 0x40, "a short header");
            assert_eq!(token_of(&reset), Some(resets.key.token(&cid(1))));
        }
        let later = now + Duration::from_secs(1);
        assert!(resets.answer(later, &cid(1), 100, &mut rng).is_some());
    }

    #[test]
    fn a_connection_has_one_token() {
        let mut resets = Resets::<usize>::new(ResetKey::new(&[1; 32], b""));
        let (handle, tokens) = (7, [ResetToken([1; 16]), ResetToken([2; 16])]);
        resets.replace(handle, None, Some(tokens[0]));
        resets.replace(handle, Some(tokens[0]), Some(tokens[1]));
        let datagram = |token: ResetToken| [&[0x40; 10][..], &token.0].concat();
        assert_eq!(resets.find(&datagram(tokens[0])), None);
        assert_eq!(resets.find(&datagram(tokens[1])), Some(handle));
        resets.replace(handle, Some(tokens[1]), None);
        assert!(resets.tokens.is_empty());
    }
}
