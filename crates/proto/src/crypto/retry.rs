//! The integrity tag of Retry packets (RFC 9001 section 5.8, RFC 9369 section 3.3.3).
//!
//! Its key is public: the tag protects against accidents and off-path attackers, who do not know
//! the original destination connection ID.

use primitives::aead::{AES_128_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

use super::TAG_LEN;
use crate::ids::ConnectionId;
use crate::wire::version::Version;

const KEY_1: [u8; 16] = [
    0xbe, 0x0c, 0x69, 0x0b, 0x9f, 0x66, 0x57, 0x5a, 0x1d, 0x76, 0x6b, 0x54, 0xe3, 0x68, 0xc8, 0x4e,
];
const NONCE_1: [u8; NONCE_LEN] =
    [0x46, 0x15, 0x99, 0xd3, 0x5d, 0x63, 0x2b, 0xf2, 0x23, 0x98, 0x25, 0xbb];
const KEY_2: [u8; 16] = [
    0x8f, 0xb4, 0xb0, 0x1b, 0x56, 0xac, 0x48, 0xe2, 0x60, 0xfb, 0xcb, 0xce, 0xad, 0x7c, 0xcc, 0x92,
];
const NONCE_2: [u8; NONCE_LEN] =
    [0xd8, 0x69, 0x69, 0xbc, 0x2d, 0x7c, 0x6d, 0x99, 0x90, 0xef, 0xb0, 0x4a];

/// The tag of a Retry packet. `retry` is the packet without its tag. `original` is the destination
/// connection ID of the Initial packet that it answers. `None` only if the AEAD fails, which does
/// not happen for the size of a packet.
pub fn integrity_tag(
    version: Version,
    original: &ConnectionId,
    retry: &[u8],
) -> Option<[u8; TAG_LEN]> {
    let (key, nonce) = match version {
        Version::V1 => (KEY_1, NONCE_1),
        Version::V2 => (KEY_2, NONCE_2),
    };
    let mut pseudo = Vec::with_capacity(1 + original.len() + retry.len());
    pseudo.push(u8::try_from(original.len()).ok()?);
    pseudo.extend_from_slice(original.as_slice());
    pseudo.extend_from_slice(retry);
    let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &key).ok()?);
    let nonce = Nonce::assume_unique_for_key(nonce);
    let tag = key.seal_in_place_separate_tag(nonce, Aad::from(&pseudo), &mut []).ok()?;
    tag.as_ref().try_into().ok()
}

/// Whether `packet`, a complete Retry packet, has the right tag for `original`.
pub fn is_authentic(version: Version, original: &ConnectionId, packet: &[u8]) -> bool {
    packet.split_last_chunk::<TAG_LEN>().is_some_and(|(retry, tag)| {
        integrity_tag(version, original, retry).is_some_and(|ours| ours == *tag)
    })
}
