//! Identifiers from which load balancers read where to send packets
//! (draft-ietf-quic-load-balancers-21).

use crate::generator::{ConnectionIdGenerator, MIN_SERVER_CID_SIZE};
use crate::{ConnectionId, MAX_CID_SIZE};
use aes::Aes128;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use rand::{Rng, RngCore};
use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The largest configuration identifier; the next is reserved for identifiers that cannot be routed.
const MAX_ROTATION: u8 = 6;
/// The shortest nonce in bytes.
const MIN_NONCE: usize = 4;
/// The most bytes of server identifier and nonce together.
const MAX_PLAINTEXT: usize = MAX_CID_SIZE - 1;
/// The size of an AES block. Server identifier and nonce of this size together are encrypted at once.
const BLOCK: usize = 16;
/// The most bytes of half a plaintext.
const MAX_HALF: usize = MAX_PLAINTEXT.div_ceil(2);

/// The settings that the load balancers and a server agree on.
///
/// As text, it is a list of settings between blanks or on lines of their own:
/// `rotation=1 server-id=0a2b nonce=6 key=8f95f09245765f80256934e50c66207f`. `rotation` is 0 if it is left
/// out, `nonce` is as long as it takes for 16 bytes together with `server-id`, and without `key` nothing
/// is encrypted. Lines that begin with `#` are comments.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct QuicLbConfig {
    /// Which of the configurations in use this is, 0 to 6.
    pub rotation: u8,
    /// The identifier of this server, at least one byte, and of the same length on all servers.
    pub server_id: Vec<u8>,
    /// The size of the nonce in bytes, at least 4, and at most 19 together with the server identifier.
    pub nonce_size: usize,
    /// The key that encrypts server identifier and nonce. Without a key, everybody sees which identifiers
    /// belong to the same server; only for tests, and where clients do not move.
    pub key: Option<[u8; 16]>,
}

impl fmt::Debug for QuicLbConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuicLbConfig")
            .field("rotation", &self.rotation)
            .field("nonce_size", &self.nonce_size)
            .field("encrypted", &self.key.is_some())
            .finish_non_exhaustive()
    }
}

/// Why a configuration for load balancers cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QuicLbError {
    /// The configuration's identifier is above 6.
    #[error("rotation is not 0 to 6")]
    Rotation,
    /// The server's identifier is empty.
    #[error("no server-id")]
    NoServerId,
    /// The nonce is shorter than 4 bytes.
    #[error("the nonce has less than 4 bytes")]
    ShortNonce,
    /// Server identifier and nonce do not fit.
    #[error("server-id and nonce have more than 19 bytes")]
    TooLong,
    /// A text that is not a setting, or a setting with a malformed value.
    #[error("{0}: not a setting")]
    Syntax(String),
}

impl FromStr for QuicLbConfig {
    type Err = QuicLbError;

    fn from_str(text: &str) -> Result<Self, QuicLbError> {
        let mut config = Self { rotation: 0, server_id: Vec::new(), nonce_size: 0, key: None };
        let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
        for setting in lines.flat_map(str::split_whitespace) {
            config.set(setting).ok_or_else(|| QuicLbError::Syntax(setting.to_owned()))?;
        }
        if config.nonce_size == 0 {
            config.nonce_size = nonce_size(&config.server_id);
        }
        config.check()?;
        Ok(config)
    }
}

impl QuicLbConfig {
    sutura_schedule::setters! {
        with_rotation: rotation = u8,
        with_nonce_size: nonce_size = usize,
        with_key: key = Option<[u8; 16]>,
    }

    /// The configuration 0 with this identifier of the server, a nonce of as many bytes as it takes for 16
    /// together with it, and no key. [`QuicLb::new`] checks it.
    #[must_use]
    pub fn new(server_id: Vec<u8>) -> Self {
        Self { rotation: 0, nonce_size: nonce_size(&server_id), server_id, key: None }
    }

    /// Reads one setting.
    fn set(&mut self, setting: &str) -> Option<()> {
        let (name, value) = setting.split_once('=')?;
        match name {
            "rotation" => self.rotation = value.parse().ok()?,
            "server-id" => self.server_id = from_hex(value)?,
            "nonce" => self.nonce_size = value.parse().ok().filter(|size| *size > 0)?,
            "key" => self.key = Some(from_hex(value)?.try_into().ok()?),
            _ => return None,
        }
        Some(())
    }

    fn check(&self) -> Result<(), QuicLbError> {
        if self.rotation > MAX_ROTATION {
            return Err(QuicLbError::Rotation);
        }
        if self.server_id.is_empty() {
            return Err(QuicLbError::NoServerId);
        }
        if self.nonce_size < MIN_NONCE {
            return Err(QuicLbError::ShortNonce);
        }
        if self.server_id.len().saturating_add(self.nonce_size) > MAX_PLAINTEXT {
            return Err(QuicLbError::TooLong);
        }
        Ok(())
    }
}

/// The size of a nonce that fills a block together with the server's identifier, if that is possible.
fn nonce_size(server_id: &[u8]) -> usize {
    BLOCK.saturating_sub(server_id.len()).max(MIN_NONCE)
}

fn from_hex(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().as_chunks::<2>();
    if !pairs.1.is_empty() {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    pairs.0.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect()
}

/// Generates identifiers that say which server they belong to. The first byte says how long they are.
pub struct QuicLb {
    config: QuicLbConfig,
    cipher: Option<Aes128>,
    /// The first nonce. Encrypted nonces count up from there, so that none occurs twice.
    first: OnceLock<[u8; MAX_PLAINTEXT]>,
    generated: AtomicU64,
}

impl fmt::Debug for QuicLb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("QuicLb").field(&self.config).finish()
    }
}

impl QuicLb {
    /// A generator for a server.
    ///
    /// # Errors
    /// The configuration exceeds the limits of the draft.
    pub fn new(config: QuicLbConfig) -> Result<Self, QuicLbError> {
        config.check()?;
        let cipher = config.key.map(|key| Aes128::new(&key.into()));
        Ok(Self { config, cipher, first: OnceLock::new(), generated: AtomicU64::new(0) })
    }

    /// How many bytes server identifier and nonce have together.
    fn plaintext_size(&self) -> usize {
        self.config.server_id.len() + self.config.nonce_size
    }

    /// The next nonce.
    fn nonce(&self, random: &mut dyn RngCore) -> Vec<u8> {
        let mut nonce = vec![0; self.config.nonce_size];
        if self.cipher.is_none() {
            // Visible nonces must not show which identifiers follow each other.
            random.fill(&mut nonce[..]);
            return nonce;
        }
        let first = self.first.get_or_init(|| {
            let mut first = [0; MAX_PLAINTEXT];
            random.fill(&mut first);
            first
        });
        nonce.copy_from_slice(&first[..self.config.nonce_size]);
        let mut carry = self.generated.fetch_add(1, Ordering::Relaxed);
        for byte in nonce.iter_mut().rev() {
            carry += u64::from(*byte);
            *byte = carry as u8;
            carry >>= 8;
        }
        nonce
    }

    /// The identifier with this nonce. If it is too short, bytes from `random` fill it up.
    fn encode(&self, nonce: &[u8], random: &mut dyn RngCore) -> ConnectionId {
        let size = self.size();
        let mut bytes = [0; MAX_CID_SIZE];
        bytes[0] = self.config.rotation << 5 | (size - 1) as u8;
        let end = 1 + self.plaintext_size();
        let (server_id, rest) = bytes[1..end].split_at_mut(self.config.server_id.len());
        server_id.copy_from_slice(&self.config.server_id);
        rest.copy_from_slice(nonce);
        if let Some(cipher) = &self.cipher {
            encrypt(cipher, &mut bytes[1..end]);
        }
        random.fill(&mut bytes[end..size]);
        ConnectionId::new(&bytes[..size]).unwrap_or_default()
    }
}

impl ConnectionIdGenerator for QuicLb {
    fn size(&self) -> usize {
        (1 + self.plaintext_size()).max(MIN_SERVER_CID_SIZE)
    }

    fn generate(&self, random: &mut dyn RngCore) -> ConnectionId {
        let nonce = self.nonce(random);
        self.encode(&nonce, random)
    }

    fn owner(&self) -> &[u8] {
        &self.config.server_id
    }
}

/// Encrypts server identifier and nonce in place (section 5.4 of the draft).
fn encrypt(cipher: &Aes128, plaintext: &mut [u8]) {
    if let Ok(block) = <&mut [u8; BLOCK]>::try_from(&mut *plaintext) {
        *block = encrypted(cipher, *block);
        return;
    }
    // A Feistel network of four rounds. The middle byte of an odd number belongs to both halves, four
    // bits to each.
    let size = plaintext.len();
    let (half, odd) = (size.div_ceil(2), size % 2 == 1);
    let (mut left, mut right) = ([0; MAX_HALF], [0; MAX_HALF]);
    left[..half].copy_from_slice(&plaintext[..half]);
    right[..half].copy_from_slice(&plaintext[size - half..]);
    let trim_left = |left: &mut [u8; MAX_HALF]| left[half - 1] &= if odd { 0xf0 } else { 0xff };
    let trim_right = |right: &mut [u8; MAX_HALF]| right[0] &= if odd { 0x0f } else { 0xff };
    trim_left(&mut left);
    trim_right(&mut right);
    for pass in 1..=4 {
        let (from, to) = if pass % 2 == 1 { (&left, &mut right) } else { (&right, &mut left) };
        let mut block = [0; BLOCK];
        block[..half].copy_from_slice(&from[..half]);
        (block[BLOCK - 2], block[BLOCK - 1]) = (size as u8, pass);
        let key = encrypted(cipher, block);
        to[..half].iter_mut().zip(key).for_each(|(byte, key)| *byte ^= key);
        if pass % 2 == 1 { trim_right(&mut right) } else { trim_left(&mut left) }
    }
    plaintext[..half].copy_from_slice(&left[..half]);
    if odd {
        plaintext[half - 1] |= right[0];
        plaintext[half..].copy_from_slice(&right[1..half]);
    } else {
        plaintext[half..].copy_from_slice(&right[..half]);
    }
}

fn encrypted(cipher: &Aes128, block: [u8; BLOCK]) -> [u8; BLOCK] {
    let mut block = block.into();
    cipher.encrypt_block(&mut block);
    block.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand::rngs::StdRng;
    use std::collections::HashSet;

    const KEY: &str = "8f95f09245765f80256934e50c66207f";

    fn rng() -> StdRng {
        StdRng::from_seed([3; 32])
    }

    fn generator(rotation: u8, server_id: &[u8], nonce_size: usize, key: Option<&str>) -> QuicLb {
        let key = key.map(|key| from_hex(key).unwrap().try_into().unwrap());
        QuicLb::new(QuicLbConfig { rotation, server_id: server_id.to_vec(), nonce_size, key })
            .unwrap()
    }

    fn encoded(rotation: u8, server_id: &str, nonce: &str, key: Option<&str>) -> String {
        let (server_id, nonce) = (from_hex(server_id).unwrap(), from_hex(nonce).unwrap());
        generator(rotation, &server_id, nonce.len(), key).encode(&nonce, &mut rng()).to_string()
    }

    /// The server identifier in `cid`, as a load balancer finds it (section 5.5 of the draft).
    fn server_id(cipher: &Aes128, cid: &[u8], plaintext: usize, server_id: usize) -> Vec<u8> {
        let text = &cid[1..=plaintext];
        if plaintext == BLOCK {
            use aes::cipher::BlockCipherDecrypt;
            let mut block = <[u8; BLOCK]>::try_from(text).unwrap().into();
            cipher.decrypt_block(&mut block);
            return block[..server_id].to_vec();
        }
        // In half bytes, so that an odd number of bytes needs no special care.
        let nibbles: Vec<u8> = text.iter().flat_map(|byte| [byte >> 4, byte & 0x0f]).collect();
        let (left, right) = nibbles.split_at(plaintext);
        let (mut left, mut right) = (left.to_vec(), right.to_vec());
        let mask = |half: &[u8], is_right: bool, pass: u8| -> Vec<u8> {
            let mut digits = half.to_vec();
            if plaintext % 2 == 1 {
                digits.insert(if is_right { 0 } else { digits.len() }, 0);
            }
            let mut block = [0; BLOCK];
            for (byte, pair) in block.iter_mut().zip(digits.chunks(2)) {
                *byte = pair[0] << 4 | pair[1];
            }
            (block[14], block[15]) = (plaintext as u8, pass);
            let out = encrypted(cipher, block);
            let out: Vec<u8> = out.iter().flat_map(|byte| [byte >> 4, byte & 0x0f]).collect();
            // The half that is mixed with the right half skips its missing first four bits.
            let skip = usize::from(plaintext % 2 == 1 && !is_right);
            out[skip..].to_vec()
        };
        for pass in (1..=4).rev() {
            let is_right = pass % 2 == 0;
            let key = mask(if is_right { &right } else { &left }, is_right, pass);
            let to = if is_right { &mut left } else { &mut right };
            to.iter_mut().zip(key).for_each(|(digit, key)| *digit ^= key);
        }
        let digits = [left, right].concat();
        digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).take(server_id).collect()
    }

    #[test]
    fn appendix_b1_unencrypted() {
        assert_eq!(encoded(0, "c4605e", "4504cc4f", None), "07c4605e4504cc4f");
        assert_eq!(encoded(1, "350d28b420", "3487d970b0", None), "2a350d28b4203487d970b0");
    }

    #[test]
    fn appendix_b2_encrypted() {
        for (rotation, id, nonce, cid) in [
            (0, "ed793a", "ee080dbf", "0720b1d07b359d3c"),
            (1, "ed793a51d49b8f5fab65", "ee080dbf48", "2fcc381bc74cb4fbad2823a3d1f8fed2"),
            (2, "ed793a51d49b8f5f", "ee080dbf48c0d1e5", "504dd2d05a7b0de9b2b9907afb5ecf8cc3"),
            (
                0,
                "ed793a51d49b8f5fab",
                "ee080dbf48c0d1e55d",
                "125779c9cc86beb3a3a4a3ca96fce4bfe0cdbc",
            ),
        ] {
            assert_eq!(encoded(rotation, id, nonce, Some(KEY)), cid);
        }
    }

    #[test]
    fn the_example_of_section_5_4_2() {
        let key = Some("fdf726a9893ec05c0632d3956680baf0");
        assert_eq!(encoded(0, "31441a", "9c69c275", key), "0767947d29be054a");
    }

    proptest! {
        #[test]
        fn load_balancers_find_the_server(
            key: [u8; 16],
            id in proptest::collection::vec(any::<u8>(), 1..=15),
            nonce in 4..=18usize,
            seed: [u8; 32],
        ) {
            let nonce_size = nonce.min(MAX_PLAINTEXT - id.len());
            let config = QuicLbConfig { rotation: 3, server_id: id.clone(), nonce_size, key: Some(key) };
            let generator = QuicLb::new(config).unwrap();
            let mut random = StdRng::from_seed(seed);
            let mut seen = HashSet::new();
            for _ in 0..300 {
                let cid = generator.generate(&mut random);
                prop_assert_eq!(cid.len(), generator.size());
                prop_assert_eq!(cid.as_slice()[0], 3 << 5 | (cid.len() as u8 - 1));
                let plaintext = id.len() + nonce_size;
                let cipher = Aes128::new(&key.into());
                prop_assert_eq!(server_id(&cipher, cid.as_slice(), plaintext, id.len()), &id[..]);
                prop_assert!(seen.insert(cid), "twice");
            }
        }
    }

    #[test]
    fn short_ones_are_filled_up() {
        let generator = generator(0, &[7], 4, None);
        let mut random = rng();
        let cids = [generator.generate(&mut random), generator.generate(&mut random)];
        assert!(cids.iter().all(|cid| cid.len() == 8 && cid.as_slice()[..2] == [7, 7]));
        assert_ne!(cids[0].as_slice()[2..], cids[1].as_slice()[2..]);
    }

    #[test]
    fn configurations_are_read_and_checked() {
        let text = "# for the second rack\nrotation=1 server-id=0a2b\n  nonce=6\nkey=8f95f09245765f80256934e50c66207f";
        let config: QuicLbConfig = text.parse().unwrap();
        assert_eq!(
            (config.rotation, &config.server_id[..], config.nonce_size),
            (1, &[0x0a, 0x2b][..], 6)
        );
        assert_eq!(config.key.unwrap()[..3], [0x8f, 0x95, 0xf0]);
        assert_eq!("server-id=0102".parse::<QuicLbConfig>().unwrap().nonce_size, 14);
        for (text, expected) in [
            ("", QuicLbError::NoServerId),
            ("server-id=01 rotation=7", QuicLbError::Rotation),
            ("server-id=01 nonce=3", QuicLbError::ShortNonce),
            ("server-id=01 nonce=19", QuicLbError::TooLong),
            ("server-id=012", QuicLbError::Syntax("server-id=012".into())),
            ("server-id=01 key=00", QuicLbError::Syntax("key=00".into())),
            ("server-id=01 colour=red", QuicLbError::Syntax("colour=red".into())),
        ] {
            assert_eq!(text.parse::<QuicLbConfig>(), Err(expected));
        }
        let debug = format!("{:?}", QuicLb::new(config).unwrap());
        assert!(!debug.contains("8f95") && !debug.contains("143"), "{debug}");
    }
}
