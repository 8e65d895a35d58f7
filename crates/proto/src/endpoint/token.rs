//! Tokens that prove to a server that it has heard of a client's address before (RFC 9000 section
//! 8.1): the tokens of Retry packets, and the tokens of NEW_TOKEN frames for later connections.
//!
//! A token is `kind | salt | AEAD(age, original identifier)`. Each is sealed with a key of its own,
//! derived from the server's secret and the salt. The facts that it is bound to are authenticated but not
//! contained: the version, the address and for a Retry also the port and the identifier that the Retry chose.

use crate::config::{Secret, TokenKey};
use crate::ids::ConnectionId;
use crate::wire::version::Version;
use primitives::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use primitives::hkdf::{HKDF_SHA256, Prk};
use rand::RngCore;
use rand::rngs::StdRng;
use std::collections::{HashSet, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

/// How long a client may take to answer a Retry.
pub const RETRY_LIFETIME: Duration = Duration::from_secs(15);
/// How long a token of a NEW_TOKEN frame is valid.
pub const NEW_TOKEN_LIFETIME: Duration = Duration::from_secs(24 * 3600);
/// How long a generated key seals tokens. The previous key still opens tokens, so that each token serves its
/// time.
pub const KEY_LIFETIME: Duration = NEW_TOKEN_LIFETIME;
/// Used tokens that are remembered, of each kind. Beyond that number the oldest token is forgotten, and could
/// validate its address once more before it expires.
pub const MAX_USED_TOKENS: usize = 16_384;

const KIND_LEN: usize = 4;
const SALT_LEN: usize = 16;
const TIME_LEN: usize = 8;

/// Names one token among all of its kind.
type Salt = [u8; SALT_LEN];

/// How a client got a token. Tokens of the two kinds must be distinguishable (RFC 9000 section 8.1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TokenKind {
    Retry,
    NewToken,
}

impl TokenKind {
    const ALL: [Self; 2] = [Self::Retry, Self::NewToken];

    /// The first bytes of a token, long enough that tokens of other servers do not begin so.
    const fn magic(self) -> &'static [u8; KIND_LEN] {
        match self {
            Self::Retry => b"sRty",
            Self::NewToken => b"sNew",
        }
    }

    const fn lifetime(self) -> Duration {
        match self {
            Self::Retry => RETRY_LIFETIME,
            Self::NewToken => NEW_TOKEN_LIFETIME,
        }
    }
}

/// The facts that the token of an Initial packet proves about its sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenVerdict {
    /// The token proves nothing: it is missing, or worth no more than a missing token (RFC 9000 section
    /// 8.1.3).
    Unknown,
    /// The client answers the Retry to its first Initial, which had this destination.
    Retried {
        /// The destination identifier of the client's very first Initial.
        original_dcid: ConnectionId,
    },
    /// The client has been at this address before.
    Known,
    /// A token of a Retry that is forged, expired, used, or from another address (RFC 9000 section 8.1.2).
    Invalid,
}

/// Seals and checks the tokens of a server.
#[derive(Debug)]
pub struct AddressTokens {
    rng: StdRng,
    keys: TokenSecrets,
    used: [Used; TokenKind::ALL.len()],
}

impl AddressTokens {
    /// Tokens under `key`, or under generated keys if there is none.
    pub fn new(key: Option<TokenKey>, mut rng: StdRng) -> Self {
        let keys = TokenSecrets::new(key, &mut rng);
        Self { rng, keys, used: Default::default() }
    }

    /// Seals with `key` from now on. Earlier tokens stay good for as long as they were meant to.
    pub fn set_key(&mut self, now: Instant, key: TokenKey) {
        self.keys.replace(now, key);
    }

    /// The token of a Retry of this version with the source `retry_scid`, to the client at `remote`
    /// whose first Initial was for `original_dcid`. `None` only if the AEAD fails.
    pub fn for_retry(
        &mut self,
        now: Instant,
        version: Version,
        remote: SocketAddr,
        retry_scid: &ConnectionId,
        original_dcid: &ConnectionId,
    ) -> Option<Vec<u8>> {
        self.seal(
            now,
            TokenKind::Retry,
            &binding(TokenKind::Retry, version, remote, retry_scid),
            original_dcid,
        )
    }

    /// A token for a later connection from the address of `remote` that begins with this version.
    /// `None` only if the AEAD fails.
    pub fn for_later(
        &mut self,
        now: Instant,
        version: Version,
        remote: SocketAddr,
    ) -> Option<Vec<u8>> {
        let none = ConnectionId::default();
        self.seal(
            now,
            TokenKind::NewToken,
            &binding(TokenKind::NewToken, version, remote, &none),
            &none,
        )
    }

    fn seal(
        &mut self,
        now: Instant,
        kind: TokenKind,
        binding: &[u8],
        original_dcid: &ConnectionId,
    ) -> Option<Vec<u8>> {
        self.keys.rotate(now, &mut self.rng);
        let mut salt = Salt::default();
        self.rng.fill_bytes(&mut salt);
        let mut sealed = self.keys.time(now).to_be_bytes().to_vec();
        sealed.extend_from_slice(original_dcid.as_slice());
        let key = derive(&self.keys.current, &salt)?;
        key.seal_in_place_append_tag(nonce(), Aad::from(binding), &mut sealed).ok()?;
        Some([&kind.magic()[..], &salt, &sealed].concat())
    }

    /// Judges the `token` of an Initial packet of this version for `dcid` that came from `remote`.
    pub fn judge(
        &mut self,
        now: Instant,
        version: Version,
        remote: SocketAddr,
        dcid: &ConnectionId,
        token: &[u8],
    ) -> TokenVerdict {
        let Some((kind, salt, sealed)) = split(token) else { return TokenVerdict::Unknown };
        self.keys.rotate(now, &mut self.rng);
        let fresh = !self.used[kind as usize].contains(&salt);
        let opened = self.open(now, kind, &binding(kind, version, remote, dcid), &salt, sealed);
        match (kind, opened.filter(|_| fresh)) {
            (TokenKind::Retry, Some(original_dcid)) => TokenVerdict::Retried { original_dcid },
            (TokenKind::Retry, None) => TokenVerdict::Invalid,
            (TokenKind::NewToken, Some(_)) => TokenVerdict::Known,
            (TokenKind::NewToken, None) => TokenVerdict::Unknown,
        }
    }

    /// The identifier in a token, if it is authentic and not expired.
    fn open(
        &self,
        now: Instant,
        kind: TokenKind,
        binding: &[u8],
        salt: &Salt,
        sealed: &[u8],
    ) -> Option<ConnectionId> {
        let opened = self.keys.secrets().find_map(|secret| {
            let mut sealed = sealed.to_vec();
            let key = derive(secret, salt)?;
            let opened = key.open_in_place(nonce(), Aad::from(binding), &mut sealed).ok()?;
            Some(opened.to_vec())
        })?;
        let (time, original_dcid) = opened.split_first_chunk::<TIME_LEN>()?;
        let age = self.keys.time(now).saturating_sub(u64::from_be_bytes(*time));
        let expired = u128::from(age) > kind.lifetime().as_millis();
        ConnectionId::new(original_dcid).filter(|_| !expired)
    }

    /// How many used tokens are remembered.
    #[cfg(test)]
    pub fn used(&self) -> usize {
        self.used.iter().map(|used| used.order.len()).sum()
    }

    /// Marks `token`, which was good, as used: it is not accepted a second time.
    pub fn consume(&mut self, token: &[u8]) {
        if let Some((kind, salt, _)) = split(token) {
            self.used[kind as usize].insert(salt);
        }
    }
}

/// Kind, salt and sealed part of a token.
fn split(token: &[u8]) -> Option<(TokenKind, Salt, &[u8])> {
    let (magic, rest) = token.split_first_chunk::<KIND_LEN>()?;
    let (salt, sealed) = rest.split_first_chunk::<SALT_LEN>()?;
    let kind = TokenKind::ALL.into_iter().find(|kind| kind.magic() == magic)?;
    Some((kind, *salt, sealed))
}

/// The facts that a token is bound to. It is good for one version (RFC 9369 section 5).
fn binding(
    kind: TokenKind,
    version: Version,
    remote: SocketAddr,
    retry_scid: &ConnectionId,
) -> Vec<u8> {
    let mut bound = kind.magic().to_vec();
    bound.extend(version.number().to_be_bytes());
    match remote.ip().to_canonical() {
        IpAddr::V4(ip) => bound.extend(ip.to_ipv6_mapped().octets()),
        IpAddr::V6(ip) => bound.extend(ip.octets()),
    }
    if kind == TokenKind::Retry {
        bound.extend(remote.port().to_be_bytes());
        bound.extend(retry_scid.as_slice());
    }
    bound
}

fn derive(secret: &Secret, salt: &Salt) -> Option<LessSafeKey> {
    let prk = Prk::new_less_safe(HKDF_SHA256, &**secret);
    let info = [&salt[..]];
    let key = prk.expand(&info, &AES_256_GCM).ok()?;
    Some(LessSafeKey::new(UnboundKey::from(key)))
}

/// Each key seals one token.
fn nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; NONCE_LEN])
}

/// A secret that seals no more tokens.
struct RetiredSecret {
    secret: Secret,
    /// When its last token has expired.
    until: Instant,
}

/// The secrets from which the keys of tokens are derived, and the clock of their age.
struct TokenSecrets {
    configured: Option<TokenKey>,
    current: Secret,
    /// The previous secrets, oldest first.
    previous: Vec<RetiredSecret>,
    /// When the current secret was first used.
    since: Option<Instant>,
    /// When the first secret was first used.
    start: Option<Instant>,
}

impl std::fmt::Debug for TokenSecrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenSecrets").field("configured", &self.configured).finish_non_exhaustive()
    }
}

impl TokenSecrets {
    fn new(configured: Option<TokenKey>, rng: &mut StdRng) -> Self {
        let current = configured.as_ref().map_or_else(|| random(rng), |key| key.secret().clone());
        Self { configured, current, previous: Vec::new(), since: None, start: None }
    }

    /// Replaces a generated secret that has served its time, and forgets secrets whose tokens have expired.
    fn rotate(&mut self, now: Instant, rng: &mut StdRng) {
        self.start.get_or_insert(now);
        let since = *self.since.get_or_insert(now);
        if self.configured.is_none() && now >= since + KEY_LIFETIME {
            self.retire(random(rng), since + KEY_LIFETIME);
            self.since = Some(now);
        }
        self.previous.retain(|previous| now < previous.until);
    }

    /// Uses the secret of `key` from now on.
    fn replace(&mut self, now: Instant, key: TokenKey) {
        if **key.secret() != *self.current {
            self.retire(key.secret().clone(), now);
        }
        self.configured = Some(key);
    }

    /// Goes over to `next`. The current secret sealed its last token at `last`.
    fn retire(&mut self, next: Secret, last: Instant) {
        let secret = std::mem::replace(&mut self.current, next);
        self.previous.push(RetiredSecret { secret, until: last + NEW_TOKEN_LIFETIME });
    }

    /// The secrets of tokens that are good, the likeliest first.
    fn secrets(&self) -> impl Iterator<Item = &Secret> {
        let previous = self.previous.iter().rev().map(|previous| &previous.secret);
        let others = self.configured.iter().flat_map(|key| key.others());
        std::iter::once(&self.current).chain(previous).chain(others)
    }

    /// The time `now` as tokens contain it, in milliseconds.
    fn time(&self, now: Instant) -> u64 {
        let time = match &self.configured {
            Some(key) => key.since_epoch(now),
            None => now.saturating_duration_since(self.start.unwrap_or(now)),
        };
        u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
    }
}

fn random(rng: &mut StdRng) -> Secret {
    let mut secret = Secret::default();
    rng.fill_bytes(&mut *secret);
    secret
}

/// The tokens that were used last.
#[derive(Debug, Default)]
struct Used {
    salts: HashSet<Salt>,
    /// The same, oldest first.
    order: VecDeque<Salt>,
}

impl Used {
    fn contains(&self, salt: &Salt) -> bool {
        self.salts.contains(salt)
    }

    fn insert(&mut self, salt: Salt) {
        if !self.salts.insert(salt) {
            return;
        }
        if self.order.len() >= MAX_USED_TOKENS
            && let Some(oldest) = self.order.pop_front()
        {
            self.salts.remove(&oldest);
        }
        self.order.push_back(salt);
    }
}

#[cfg(test)]
mod tests {
    use super::Version::{V1, V2};
    use super::*;
    use rand::SeedableRng;

    fn tokens(seed: u8) -> AddressTokens {
        AddressTokens::new(None, StdRng::from_seed([seed; 32]))
    }

    fn at(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    fn cid(byte: u8) -> ConnectionId {
        ConnectionId::new(&[byte; 8]).unwrap()
    }

    const HERE: &str = "192.0.2.1:1000";

    /// The verdict about a token that comes from [`HERE`] to identifier 7.
    fn verdict(tokens: &mut AddressTokens, now: Instant, token: &[u8]) -> TokenVerdict {
        tokens.judge(now, V1, at(HERE), &cid(7), token)
    }

    #[test]
    fn a_retry_token_is_bound_to_address_port_identifier_and_time() {
        let (mut tokens, now) = (tokens(1), Instant::now());
        let token = tokens.for_retry(now, V1, at(HERE), &cid(7), &cid(1)).unwrap();
        let mut judge = |after: u64, from: &str, dcid: u8, token: &[u8]| {
            tokens.judge(now + Duration::from_secs(after), V1, at(from), &cid(dcid), token)
        };
        let retried = TokenVerdict::Retried { original_dcid: cid(1) };
        assert_eq!(judge(15, HERE, 7, &token), retried);
        assert_eq!(judge(1, "[::ffff:192.0.2.1]:1000", 7, &token), retried);
        assert_eq!(judge(16, HERE, 7, &token), TokenVerdict::Invalid);
        assert_eq!(judge(1, "192.0.2.1:1001", 7, &token), TokenVerdict::Invalid);
        assert_eq!(judge(1, "192.0.2.2:1000", 7, &token), TokenVerdict::Invalid);
        assert_eq!(judge(1, HERE, 8, &token), TokenVerdict::Invalid);
        for at in 0..token.len() {
            let mut forged = token.clone();
            forged[at] ^= 1;
            let verdict = judge(1, HERE, 7, &forged);
            let expected =
                if at < KIND_LEN { TokenVerdict::Unknown } else { TokenVerdict::Invalid };
            assert_eq!(verdict, expected, "byte {at}");
            assert_ne!(judge(1, HERE, 7, &token[..at]), retried);
        }
    }

    #[test]
    fn a_token_for_later_is_bound_to_the_address_alone() {
        let (mut tokens, now) = (tokens(1), Instant::now());
        let token = tokens.for_later(now, V1, at(HERE)).unwrap();
        let later = now + NEW_TOKEN_LIFETIME;
        let mut judge = |now, from| tokens.judge(now, V1, at(from), &cid(3), &token);
        assert_eq!(judge(later, "192.0.2.1:9"), TokenVerdict::Known);
        assert_eq!(judge(now, "192.0.2.2:9"), TokenVerdict::Unknown);
        assert_eq!(judge(later + Duration::from_secs(1), HERE), TokenVerdict::Unknown);
        // The token does not pass for the answer to a Retry.
        let disguised = [&TokenKind::Retry.magic()[..], &token[KIND_LEN..]].concat();
        assert_eq!(tokens.judge(now, V1, at(HERE), &cid(0), &disguised), TokenVerdict::Invalid);
    }

    #[test]
    fn a_token_is_good_for_one_version() {
        let (mut tokens, now) = (tokens(1), Instant::now());
        for (version, other) in [(V1, V2), (V2, V1)] {
            let retry = tokens.for_retry(now, version, at(HERE), &cid(7), &cid(1)).unwrap();
            let later = tokens.for_later(now, version, at(HERE)).unwrap();
            let mut judge = |version, token| tokens.judge(now, version, at(HERE), &cid(7), token);
            assert_eq!(judge(other, &retry), TokenVerdict::Invalid);
            assert_eq!(judge(other, &later), TokenVerdict::Unknown);
            assert_eq!(judge(version, &retry), TokenVerdict::Retried { original_dcid: cid(1) });
            assert_eq!(judge(version, &later), TokenVerdict::Known);
        }
    }

    #[test]
    fn a_token_is_accepted_once() {
        let (mut tokens, now) = (tokens(1), Instant::now());
        let retry = tokens.for_retry(now, V1, at(HERE), &cid(7), &cid(1)).unwrap();
        let later = tokens.for_later(now, V1, at(HERE)).unwrap();
        tokens.consume(&retry);
        tokens.consume(&later);
        assert_eq!(tokens.judge(now, V1, at(HERE), &cid(7), &retry), TokenVerdict::Invalid);
        assert_eq!(tokens.judge(now, V1, at(HERE), &cid(7), &later), TokenVerdict::Unknown);
    }

    #[test]
    fn a_flood_of_used_tokens_is_remembered_within_bounds() {
        let mut used = Used::default();
        for n in 0..3 * MAX_USED_TOKENS as u128 {
            used.insert(n.to_be_bytes());
            used.insert(n.to_be_bytes());
        }
        assert_eq!((used.order.len(), used.salts.len()), (MAX_USED_TOKENS, MAX_USED_TOKENS));
        assert!(used.contains(&(3 * MAX_USED_TOKENS as u128 - 1).to_be_bytes()));
    }

    #[test]
    fn keys_rotate_and_tokens_serve_their_time() {
        let (mut tokens, now) = (tokens(1), Instant::now());
        tokens.for_later(now, V1, at(HERE)).unwrap();
        let first = tokens.keys.current.clone();
        let issued = now + KEY_LIFETIME - Duration::from_secs(1);
        let token = tokens.for_later(issued, V1, at(HERE)).unwrap();
        let expiry = issued + NEW_TOKEN_LIFETIME;
        assert_eq!(tokens.judge(expiry, V1, at(HERE), &cid(1), &token), TokenVerdict::Known);
        assert_ne!(tokens.keys.current, first);
        assert_eq!(tokens.keys.previous.len(), 1);
        assert_eq!(verdict(&mut tokens, expiry + KEY_LIFETIME, &token), TokenVerdict::Unknown);
        assert!(tokens.keys.secrets().all(|secret| *secret != first), "it has served its time");
        // A server that has just started does not know the key.
        let mut other = self::tokens(2);
        assert_eq!(other.judge(now, V1, at(HERE), &cid(1), &token), TokenVerdict::Unknown);
    }

    #[test]
    fn a_configured_key_is_replaced_while_its_tokens_serve_their_time() {
        let now = Instant::now();
        let key = |n: u8| TokenKey::new([n; 32], now, NEW_TOKEN_LIFETIME);
        let server = |key, seed| AddressTokens::new(Some(key), StdRng::from_seed([seed; 32]));
        let (mut tokens, mut behind) = (server(key(1), 1), server(key(1).also_opens([2; 32]), 2));
        let old = tokens.for_later(now, V1, at(HERE)).unwrap();
        let replaced = now + Duration::from_secs(3600);
        tokens.set_key(replaced, key(2));
        tokens.set_key(replaced, key(2));
        let new = tokens.for_later(replaced, V1, at(HERE)).unwrap();
        let judge = |tokens: &mut AddressTokens, after, token| verdict(tokens, now + after, token);
        for tokens in [&mut tokens, &mut behind] {
            assert_eq!(judge(tokens, NEW_TOKEN_LIFETIME, &old), TokenVerdict::Known);
            assert_eq!(judge(tokens, NEW_TOKEN_LIFETIME, &new), TokenVerdict::Known);
        }
        let mut first = server(key(1), 3);
        assert_eq!(judge(&mut first, NEW_TOKEN_LIFETIME, &new), TokenVerdict::Unknown);
        judge(&mut tokens, 2 * NEW_TOKEN_LIFETIME, &new);
        assert!(tokens.keys.previous.is_empty(), "the old key is wiped");
    }

    #[test]
    fn keys_that_are_replaced_often_are_forgotten_in_time() {
        let now = Instant::now();
        let mut tokens = tokens(1);
        let hours = 4 * 24;
        for hour in 0..hours {
            let now = now + Duration::from_secs(3600 * hour);
            tokens.set_key(now, TokenKey::new([hour as u8 + 1; 32], now, Duration::ZERO));
            tokens.for_later(now, V1, at(HERE)).unwrap();
            assert!(tokens.keys.previous.len() <= 24, "{hour}");
        }
    }

    #[test]
    fn servers_with_the_same_key_accept_each_others_tokens() {
        let (now, day) = (Instant::now(), Duration::from_secs(86_400));
        let server = |seed, epoch| {
            let key = TokenKey::new([7; 32], now, epoch);
            AddressTokens::new(Some(key), StdRng::from_seed([seed; 32]))
        };
        let token = server(1, 100 * day).for_later(now, V1, at(HERE)).unwrap();
        let judge = |epoch| server(2, epoch).judge(now, V1, at(HERE), &cid(1), &token);
        assert_eq!(judge(101 * day), TokenVerdict::Known);
        assert_eq!(judge(102 * day), TokenVerdict::Unknown);
    }
}
