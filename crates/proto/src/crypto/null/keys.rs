//! Keys that authenticate packets with a checksum and hide nothing.

use super::super::{
    DirectionalKeys, HeaderKey, Keys, MASK_LEN, PacketKey, PacketKeys, ProtectionError, SAMPLE_LEN,
    TAG_LEN,
};
use crate::ids::{ConnectionId, Side};
use crate::wire::version::Version;

/// Odd multipliers with about as many ones as zeros.
const MIX: [u64; 4] =
    [0x9e37_79b9_7f4a_7c15, 0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb, 0xd6e8_feb8_6659_fd93];

/// The XOR of the two halves of the 128-bit product.
const fn fold(a: u64, b: u64) -> u64 {
    let product = (a as u128).wrapping_mul(b as u128);
    (product as u64) ^ ((product >> 64) as u64)
}

/// A keyed checksum: fast, deterministic and easy to forge. Two chains of multiplications run in
/// parallel, because each multiplication in a single chain would wait for the previous one.
#[derive(Debug, Clone, Copy)]
pub struct Checksum([u64; 2]);

impl Checksum {
    /// An empty checksum under `key`.
    pub const fn new(key: u64) -> Self {
        Self([fold(key ^ MIX[0], MIX[1]), fold(key ^ MIX[2], MIX[3])])
    }

    /// Adds a number.
    pub const fn number(mut self, number: u64) -> Self {
        self.0[0] = fold(self.0[0] ^ number, MIX[2]);
        self
    }

    /// Adds `bytes` and their number, so that bytes cannot move between two calls unnoticed.
    pub fn bytes(self, bytes: &[u8]) -> Self {
        let Self([mut a, mut b]) = self.number(bytes.len() as u64);
        let mut take = |block: &[u8; 32]| {
            let [w, x, y, z] = words(block);
            a = fold(w ^ MIX[0], x ^ a);
            b = fold(y ^ MIX[1], z ^ b);
        };
        let (blocks, rest) = bytes.as_chunks::<32>();
        blocks.iter().for_each(&mut take);
        if !rest.is_empty() {
            let mut block = [0; 32];
            block.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
            take(&block);
        }
        Self([a, b])
    }

    /// The checksum as a number, for deriving further keys.
    pub const fn finish(self) -> u64 {
        fold(self.0[0] ^ MIX[2], self.0[1] ^ MIX[3])
    }

    /// The checksum as a tag.
    pub fn tag(self) -> [u8; TAG_LEN] {
        let high = self.finish();
        let low = fold(high ^ MIX[1], self.0[0] ^ self.0[1].rotate_left(32));
        (u128::from(high) << 64 | u128::from(low)).to_be_bytes()
    }
}

fn words(block: &[u8; 32]) -> [u64; 4] {
    let (words, _) = block.as_chunks::<8>();
    let mut out = [0; 4];
    out.iter_mut().zip(words).for_each(|(to, from)| *to = u64::from_le_bytes(*from));
    out
}

/// Derives a secret from another.
pub fn derive(secret: u64, label: &str) -> u64 {
    Checksum::new(secret).bytes(label.as_bytes()).finish()
}

/// The secret of packets of `version`, derived from `secret`.
pub fn versioned_secret(secret: u64, version: Version) -> u64 {
    match version {
        Version::V1 => secret,
        Version::V2 => derive(secret, "version 2"),
    }
}

/// The secret for packets from `sender`, derived from `secret`.
pub fn directional_secret(secret: u64, sender: Side) -> u64 {
    derive(secret, if sender.is_client() { "client" } else { "server" })
}

/// The keys of an encryption level, as `side` uses them.
pub fn keys(secret: u64, side: Side) -> Keys {
    let directional = |sender| {
        let secret = directional_secret(secret, sender);
        DirectionalKeys {
            header: Box::new(NullHeaderKey { secret: derive(secret, "header") }),
            packet: Box::new(NullPacketKey { secret }),
        }
    };
    Keys { local: directional(side), remote: directional(side.peer()) }
}

/// The keys of Initial packets.
pub fn initial_keys(version: Version, dcid: &ConnectionId, side: Side) -> Keys {
    let secret = Checksum::new(0).bytes(dcid.as_slice()).finish();
    keys(versioned_secret(secret, version), side)
}

/// The packet keys of a 1-RTT key phase, as `side` uses them.
pub fn packet_keys(secret: u64, side: Side) -> PacketKeys {
    let key = |sender| Box::new(NullPacketKey { secret: directional_secret(secret, sender) });
    PacketKeys { local: key(side), remote: key(side.peer()) }
}

/// Writes and checks tags, but leaves the payload readable.
struct NullPacketKey {
    secret: u64,
}

impl NullPacketKey {
    fn tag(&self, pn: u64, header: &[u8], plain: &[u8]) -> [u8; TAG_LEN] {
        Checksum::new(self.secret).number(pn).bytes(header).bytes(plain).tag()
    }
}

impl PacketKey for NullPacketKey {
    fn seal(&self, pn: u64, header: &[u8], payload: &mut [u8]) -> Result<(), ProtectionError> {
        let (plain, tag) =
            payload.split_last_chunk_mut::<TAG_LEN>().ok_or(ProtectionError::TooShort)?;
        *tag = self.tag(pn, header, plain);
        Ok(())
    }

    fn open(&self, pn: u64, header: &[u8], payload: &mut [u8]) -> Result<usize, ProtectionError> {
        let (plain, tag) =
            payload.split_last_chunk::<TAG_LEN>().ok_or(ProtectionError::TooShort)?;
        if *tag == self.tag(pn, header, plain) {
            Ok(plain.len())
        } else {
            Err(ProtectionError::Open)
        }
    }

    fn confidentiality_limit(&self) -> u64 {
        u64::MAX
    }

    fn integrity_limit(&self) -> u64 {
        u64::MAX
    }
}

/// Masks headers with a checksum of the sample.
struct NullHeaderKey {
    secret: u64,
}

impl HeaderKey for NullHeaderKey {
    fn mask(&self, sample: &[u8; SAMPLE_LEN]) -> Result<[u8; MASK_LEN], ProtectionError> {
        let [a, b, c, d, e, ..] = Checksum::new(self.secret).bytes(sample).tag();
        Ok([a, b, c, d, e])
    }
}
