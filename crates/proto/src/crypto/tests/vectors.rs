//! The sample packets of RFC 9001 appendix A and RFC 9369 appendix A.

use ::rustls::CipherSuite;
use ::rustls::crypto::cipher::{AeadKey, Iv};

use super::super::rustls::{RustlsHeaderKey, RustlsPacketKey, initial_keys};
use super::super::{ProtectionError, TAG_LEN, retry};
use super::rustls::suite;
use super::*;
use crate::wire::version::Version;

/// The destination connection ID of the client's first Initial packet.
const DCID: &str = "8394c8f03e515708";

/// A.2: the client's CRYPTO frame, before padding to 1162 bytes.
const CLIENT_HELLO: &str = concat!(
    "060040f1010000ed0303ebf8fa56f12939b9584a3896472ec40bb863cfd3e86804fe3a47f06a2b69484c000004",
    "13011302010000c000000010000e00000b6578616d706c652e636f6dff01000100000a00080006001d00170018",
    "00100007000504616c706e000500050100000000003300260024001d00209370b2c9caa47fbabaf4559fedba75",
    "3de171fa71f50f1ce15d43e994ec74d748002b0003020304000d0010000e040305030603020308040805080600",
    "2d00020101001c00024001003900320408ffffffffffffffff05048000ffff07048000ffff0801100104800075",
    "300901100f088394c8f03e51570806048000ffff",
);

/// A.2: the protected packet.
const CLIENT_PACKET: &str = concat!(
    "c000000001088394c8f03e5157080000449e7b9aec34d1b1c98dd7689fb8ec11d242b123dc9bd8bab936b47d92",
    "ec356c0bab7df5976d27cd449f63300099f3991c260ec4c60d17b31f8429157bb35a1282a643a8d2262cad6750",
    "0cadb8e7378c8eb7539ec4d4905fed1bee1fc8aafba17c750e2c7ace01e6005f80fcb7df621230c83711b39343",
    "fa028cea7f7fb5ff89eac2308249a02252155e2347b63d58c5457afd84d05dfffdb20392844ae812154682e9cf",
    "012f9021a6f0be17ddd0c2084dce25ff9b06cde535d0f920a2db1bf362c23e596d11a4f5a6cf3948838a3aec4e",
    "15daf8500a6ef69ec4e3feb6b1d98e610ac8b7ec3faf6ad760b7bad1db4ba3485e8a94dc250ae3fdb41ed15fb6",
    "a8e5eba0fc3dd60bc8e30c5c4287e53805db059ae0648db2f64264ed5e39be2e20d82df566da8dd5998ccabdae",
    "053060ae6c7b4378e846d29f37ed7b4ea9ec5d82e7961b7f25a9323851f681d582363aa5f89937f5a67258bf63",
    "ad6f1a0b1d96dbd4faddfcefc5266ba6611722395c906556be52afe3f565636ad1b17d508b73d8743eeb524be2",
    "2b3dcbc2c7468d54119c7468449a13d8e3b95811a198f3491de3e7fe942b330407abf82a4ed7c1b311663ac698",
    "90f4157015853d91e923037c227a33cdd5ec281ca3f79c44546b9d90ca00f064c99e3dd97911d39fe9c5d0b23a",
    "229a234cb36186c4819e8b9c5927726632291d6a418211cc2962e20fe47feb3edf330f2c603a9d48c0fcb5699d",
    "bfe5896425c5bac4aee82e57a85aaf4e2513e4f05796b07ba2ee47d80506f8d2c25e50fd14de71e6c418559302",
    "f939b0e1abd576f279c4b2e0feb85c1f28ff18f58891ffef132eef2fa09346aee33c28eb130ff28f5b76695333",
    "4113211996d20011a198e3fc433f9f2541010ae17c1bf202580f6047472fb36857fe843b19f5984009ddc32404",
    "4e847a4f4a0ab34f719595de37252d6235365e9b84392b061085349d73203a4a13e96f5432ec0fd4a1ee65accd",
    "d5e3904df54c1da510b0ff20dcc0c77fcb2c0e0eb605cb0504db87632cf3d8b4dae6e705769d1de354270123cb",
    "11450efc60ac47683d7b8d0f811365565fd98c4c8eb936bcab8d069fc33bd801b03adea2e1fbc5aa463d08ca19",
    "896d2bf59a071b851e6c239052172f296bfb5e72404790a2181014f3b94a4e97d117b438130368cc39dbb2d198",
    "065ae3986547926cd2162f40a29f0c3c8745c0f50fba3852e566d44575c29d39a03f0cda721984b6f440591f35",
    "5e12d439ff150aab7613499dbd49adabc8676eef023b15b65bfc5ca06948109f23f350db82123535eb8a7433bd",
    "abcb909271a6ecbcb58b936a88cd4e8f2e6ff5800175f113253d8fa9ca8885c2f552e657dc603f252e1a8e308f",
    "76f0be79e2fb8f5d5fbbe2e30ecadd220723c8c0aea8078cdfcb3868263ff8f0940054da48781893a7e49ad5af",
    "f4af300cd804a6b6279ab3ff3afb64491c85194aab760d58a606654f9f4400e8b38591356fbf6425aca26dc852",
    "44259ff2b19c41b9f96f3ca9ec1dde434da7d2d392b905ddf3d1f9af93d1af5950bd493f5aa731b4056df31bd2",
    "67b6b90a079831aaf579be0a39013137aac6d404f518cfd46840647e78bfe706ca4cf5e9c5453e9f7cfd2b8b4c",
    "8d169a44e55c88d4a9a7f9474241e221af44860018ab0856972e194cd934",
);

/// A.3: the server's ACK and CRYPTO frames.
const SERVER_PAYLOAD: &str = concat!(
    "02000000000600405a020000560303eefce7f7b37ba1d1632e96677825ddf73988cfc79825df566dc5430b9a04",
    "5a1200130100002e00330024001d00209d3c940d89690b84d08a60993c144eca684d1081287c834d5311bcf32b",
    "b9da1a002b00020304",
);

/// A.3: the protected packet.
const SERVER_PACKET: &str = concat!(
    "cf000000010008f067a5502a4262b5004075c0d95a482cd0991cd25b0aac406a5816b6394100f37a1c69797554",
    "780bb38cc5a99f5ede4cf73c3ec2493a1839b3dbcba3f6ea46c5b7684df3548e7ddeb9c3bf9c73cc3f3bded74b",
    "562bfb19fb84022f8ef4cdd93795d77d06edbb7aaf2f58891850abbdca3d20398c276456cbc42158407dd074ee",
);

pub(super) fn hex(text: &str) -> Vec<u8> {
    assert!(text.len().is_multiple_of(2));
    let digits = |at| u8::from_str_radix(&text[at..at + 2], 16).expect("hexadecimal");
    (0..text.len()).step_by(2).map(digits).collect()
}

pub(super) fn array<const N: usize>(text: &str) -> [u8; N] {
    hex(text).try_into().expect("length")
}

fn dcid() -> ConnectionId {
    ConnectionId::new(&hex(DCID)).expect("eight bytes")
}

fn keys(side: Side) -> Keys {
    initial_keys(&suite(CipherSuite::TLS13_AES_128_GCM_SHA256), Version::V1, &dcid(), side)
}

/// Protects `header` and `payload` and expects `packet`, then reverses it.
fn check(
    (local, remote): (&DirectionalKeys, &DirectionalKeys),
    pn: u64,
    (header, pn_len): (&str, usize),
    payload: &[u8],
    packet: &str,
) {
    let (header, expected) = (hex(header), hex(packet));
    let pn_offset = header.len() - pn_len;
    let mut packet = [&header, payload, &[0; TAG_LEN]].concat();
    local.protect(pn, &mut packet, pn_offset, pn_len).expect("protection");
    assert_eq!(packet, expected);

    assert_eq!(remote.header.unprotect(&mut packet, pn_offset), Ok(pn_len));
    let (received, sealed) = packet.split_at_mut(header.len());
    assert_eq!(received, header);
    assert_eq!(remote.packet.open(pn, received, sealed), Ok(payload.len()));
    assert_eq!(&sealed[..payload.len()], payload);
}

#[test]
fn a2_client_initial() {
    let (client, server) = (keys(Side::Client), keys(Side::Server));
    let mut payload = hex(CLIENT_HELLO);
    payload.resize(1162, 0);
    let header = ("c300000001088394c8f03e5157080000449e00000002", 4);
    check((&client.local, &server.remote), 2, header, &payload, CLIENT_PACKET);
    // The RFC's mask has 43 as its first byte, of which only five bits matter.
    let mask = client.local.header.mask(&array("d1b1c98dd7689fb8ec11d242b123dc9b"));
    assert_eq!(mask.map(Vec::from), Ok(hex("037b9aec36")));
}

#[test]
fn a3_server_initial() {
    let (client, server) = (keys(Side::Client), keys(Side::Server));
    let header = ("c1000000010008f067a5502a4262b50040750001", 2);
    check((&server.local, &client.remote), 1, header, &hex(SERVER_PAYLOAD), SERVER_PACKET);
}

#[test]
fn a4_retry() {
    let packet = hex("ff000000010008f067a5502a4262b5746f6b656e04a265ba2eff4d829058fb3f0f2496ba");
    let (body, tag) = packet.split_at(packet.len() - TAG_LEN);
    assert_eq!(
        retry::integrity_tag(Version::V1, &dcid(), body).as_ref().map(|t| &t[..]),
        Some(tag)
    );
    assert!(retry::is_authentic(Version::V1, &dcid(), &packet));
    for bit in 0..packet.len() * 8 {
        let mut damaged = packet.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(!retry::is_authentic(Version::V1, &dcid(), &damaged), "bit {bit}");
    }
    assert!(!retry::is_authentic(Version::V1, &ConnectionId::default(), &packet));
    assert!(!retry::is_authentic(Version::V1, &dcid(), &packet[..TAG_LEN - 1]));
}

#[test]
fn rfc9369_a3_server_initial() {
    let suite = suite(CipherSuite::TLS13_AES_128_GCM_SHA256);
    let [client, server] =
        [Side::Client, Side::Server].map(|side| initial_keys(&suite, Version::V2, &dcid(), side));
    let header = ("d16b3343cf0008f067a5502a4262b50040750001", 2);
    let packet = concat!(
        "dc6b3343cf0008f067a5502a4262b5004075d92faaf16f05d8a4398c47089698baeea26b91eb761d9b89237bbf",
        "87263017915358230035f7fd3945d88965cf17f9af6e16886c61bfc703106fbaf3cb4cfa52382dd16a393e4275",
        "7507698075b2c984c707f0a0812d8cd5a6881eaf21ceda98f4bd23f6fe1a3e2c43edd9ce7ca84bed8521e2e140",
    );
    check((&server.local, &client.remote), 1, header, &hex(SERVER_PAYLOAD), packet);
}

#[test]
fn rfc9369_a4_retry() {
    let packet = hex("cf6b3343cf0008f067a5502a4262b5746f6b656ec8646ce8bfe33952d955543665dcc7b6");
    assert!(retry::is_authentic(Version::V2, &dcid(), &packet));
    assert!(!retry::is_authentic(Version::V1, &dcid(), &packet));
}

#[test]
fn a5_chacha20_short_header() {
    let quic = suite(CipherSuite::TLS13_CHACHA20_POLY1305_SHA256).quic;
    let key = "c6d98ff3441c3fe1b2182094f69caa2ed4b716b65488960a7a984979fb23e1c8";
    let header_key = "25a282b9e82f06f21f488917a4fc8f1b73573685608597d0efcb076b0ab7a7a4";
    let (key, header_key) = (array::<32>(key), array::<32>(header_key));
    let iv = Iv::from(array::<12>("e0459b3474bdd0e44a41c144"));
    let keys = DirectionalKeys {
        header: Box::new(RustlsHeaderKey(quic.header_protection_key(AeadKey::from(header_key)))),
        packet: Box::new(RustlsPacketKey(quic.packet_key(AeadKey::from(key), iv))),
    };
    let packet = "4cfe4189655e5cd55c41f69080575d7999c25a5bfb";
    check((&keys, &keys), 654_360_564, ("4200bff4", 3), &[1], packet);
    let mask = keys.header.mask(&array("5e5cd55c41f69080575d7999c25a5bfb"));
    assert_eq!(
        mask.map(Vec::from),
        Ok(hex("0efefe7d03")),
        "ae in the RFC, of which five bits matter"
    );
}

#[test]
fn a_damaged_vector_does_not_open() {
    let client = keys(Side::Client);
    let mut packet = hex(SERVER_PACKET);
    packet[60] ^= 1;
    assert_eq!(client.remote.header.unprotect(&mut packet, 18), Ok(2));
    let (header, payload) = packet.split_at_mut(20);
    assert_eq!(client.remote.packet.open(1, header, payload), Err(ProtectionError::Open));
}
