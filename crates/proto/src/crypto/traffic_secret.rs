//! Packet protection keys from the traffic secrets of TLS, for any version (RFC 9001 section 5.1,
//! RFC 9369 section 3.3.2).
//!
//! The AEADs come from `ring`, or from AWS-LC without it, because rustls derives keys only for the version that its session was started
//! with.

use primitives::aead::{self, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey, quic};
use primitives::hkdf::{self, KeyType, Okm, Prk};
use rustls::CipherSuite;
use zeroize::Zeroizing;

use super::{
    DirectionalKeys, HeaderKey, MASK_LEN, PacketKey, ProtectionError, SAMPLE_LEN, TAG_LEN,
};
use crate::wire::version::Version;

/// The prefix of all labels of TLS 1.3 (RFC 8446 section 7.1).
const LABEL_PREFIX: &[u8] = b"tls13 ";

/// The labels of a version.
struct Labels {
    key: &'static [u8],
    iv: &'static [u8],
    header: &'static [u8],
    update: &'static [u8],
}

const fn labels(version: Version) -> Labels {
    match version {
        Version::V1 => {
            Labels { key: b"quic key", iv: b"quic iv", header: b"quic hp", update: b"quic ku" }
        }
        Version::V2 => Labels {
            key: b"quicv2 key",
            iv: b"quicv2 iv",
            header: b"quicv2 hp",
            update: b"quicv2 ku",
        },
    }
}

/// The algorithms of a cipher suite, and how often its keys may be used.
#[derive(Debug, Clone, Copy)]
pub struct SuiteAlgorithms {
    hkdf: hkdf::Algorithm,
    aead: &'static aead::Algorithm,
    header: &'static quic::Algorithm,
    confidentiality_limit: u64,
    integrity_limit: u64,
}

impl SuiteAlgorithms {
    /// The algorithms of `suite`; `None` if it is unknown. The limits are given in RFC 9001 section 6.6.
    pub fn of(suite: CipherSuite) -> Option<Self> {
        let aes = |hkdf, aead, header| Self {
            hkdf,
            aead,
            header,
            confidentiality_limit: 1 << 23,
            integrity_limit: 1 << 52,
        };
        match suite {
            CipherSuite::TLS13_AES_128_GCM_SHA256 => {
                Some(aes(hkdf::HKDF_SHA256, &aead::AES_128_GCM, &quic::AES_128))
            }
            CipherSuite::TLS13_AES_256_GCM_SHA384 => {
                Some(aes(hkdf::HKDF_SHA384, &aead::AES_256_GCM, &quic::AES_256))
            }
            CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => Some(Self {
                hkdf: hkdf::HKDF_SHA256,
                aead: &aead::CHACHA20_POLY1305,
                header: &quic::CHACHA20,
                confidentiality_limit: u64::MAX,
                integrity_limit: 1 << 36,
            }),
            _ => None,
        }
    }
}

/// The length of an initialization vector.
struct IvLength;

impl KeyType for IvLength {
    fn len(&self) -> usize {
        NONCE_LEN
    }
}

/// The secret of one direction and one encryption level or key phase.
pub struct TrafficSecret {
    secret: Prk,
    protection: SuiteAlgorithms,
    version: Version,
}

impl TrafficSecret {
    /// A secret of TLS, for keys of `version`.
    pub fn new(protection: SuiteAlgorithms, version: Version, secret: &[u8]) -> Self {
        Self { secret: Prk::new_less_safe(protection.hkdf, secret), protection, version }
    }

    /// Header and packet protection. `None` only if HKDF fails, which does not happen for these
    /// lengths.
    pub fn keys(&self) -> Option<DirectionalKeys> {
        let label = labels(self.version).header;
        let header =
            self.expand(label, self.protection.header, |okm| quic::HeaderProtectionKey::from(okm))?;
        Some(DirectionalKeys {
            header: Box::new(RingHeaderKey(header)),
            packet: self.packet_key()?,
        })
    }

    /// Packet protection alone. `None` as for [`keys`](Self::keys).
    pub fn packet_key(&self) -> Option<Box<dyn PacketKey>> {
        let (labels, protection) = (labels(self.version), self.protection);
        let key = self.expand(labels.key, protection.aead, |okm| UnboundKey::from(okm))?;
        let mut iv = Zeroizing::new([0; NONCE_LEN]);
        self.expand(labels.iv, IvLength, |okm| okm.fill(&mut *iv))?.ok()?;
        Some(Box::new(RingPacketKey { key: LessSafeKey::new(key), iv, protection }))
    }

    /// The secret of the next key phase (RFC 9001 section 6.1). `None` as for [`keys`](Self::keys).
    pub fn next(&self) -> Option<Self> {
        let label = labels(self.version).update;
        let secret = self.expand(label, self.protection.hkdf, |okm| Prk::from(okm))?;
        Some(Self { secret, ..*self })
    }

    /// HKDF-Expand-Label without a context (RFC 8446 section 7.1), read by `read`.
    fn expand<L: KeyType, T>(
        &self,
        label: &[u8],
        length: L,
        read: impl FnOnce(Okm<'_, L>) -> T,
    ) -> Option<T> {
        let size = u16::try_from(length.len()).ok()?.to_be_bytes();
        let label_size = [u8::try_from(LABEL_PREFIX.len() + label.len()).ok()?];
        let info = [&size[..], &label_size, LABEL_PREFIX, label, &[0]];
        self.secret.expand(&info, length).ok().map(read)
    }
}

struct RingPacketKey {
    key: LessSafeKey,
    iv: Zeroizing<[u8; NONCE_LEN]>,
    protection: SuiteAlgorithms,
}

impl RingPacketKey {
    /// RFC 9001 section 5.3.
    fn nonce(&self, pn: u64) -> Nonce {
        let mut nonce = *self.iv;
        let pn = pn.to_be_bytes();
        nonce.iter_mut().rev().zip(pn.iter().rev()).for_each(|(byte, pn)| *byte ^= pn);
        Nonce::assume_unique_for_key(nonce)
    }
}

impl PacketKey for RingPacketKey {
    fn seal(&self, pn: u64, header: &[u8], payload: &mut [u8]) -> Result<(), ProtectionError> {
        let (plain, tag) =
            payload.split_last_chunk_mut::<TAG_LEN>().ok_or(ProtectionError::TooShort)?;
        let (nonce, header) = (self.nonce(pn), Aad::from(header));
        let sealed = self.key.seal_in_place_separate_tag(nonce, header, plain);
        *tag = sealed
            .ok()
            .and_then(|tag| tag.as_ref().try_into().ok())
            .ok_or(ProtectionError::Seal)?;
        Ok(())
    }

    fn open(&self, pn: u64, header: &[u8], payload: &mut [u8]) -> Result<usize, ProtectionError> {
        if payload.len() < TAG_LEN {
            return Err(ProtectionError::TooShort);
        }
        let opened = self.key.open_in_place(self.nonce(pn), Aad::from(header), payload);
        opened.map(|plain| plain.len()).map_err(|_| ProtectionError::Open)
    }

    fn confidentiality_limit(&self) -> u64 {
        self.protection.confidentiality_limit
    }

    fn integrity_limit(&self) -> u64 {
        self.protection.integrity_limit
    }
}

struct RingHeaderKey(quic::HeaderProtectionKey);

impl HeaderKey for RingHeaderKey {
    fn mask(&self, sample: &[u8; SAMPLE_LEN]) -> Result<[u8; MASK_LEN], ProtectionError> {
        self.0.new_mask(sample).map_err(|_| ProtectionError::Mask)
    }
}
