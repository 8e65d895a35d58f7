//! WebTransport over HTTP/3 as it is on the wire (draft-ietf-webtrans-http3): how the ends agree on a draft, how
//! streams begin, error codes, and how a session is closed.

use bytes::{BufMut, Bytes, BytesMut};
use sutura_proto::{Dir, StreamId};

use crate::capsule::Capsule;
use crate::error::{Code, Error};
use crate::frame::{FrameType, MAX_HEADER_SIZE, header_of};

/// The type of the unidirectional streams of sessions (section 4.2).
pub(crate) const UNI_STREAM: u64 = 0x54;

/// Most bytes of text with which a session is closed (section 6).
pub const MAX_CLOSE_REASON: usize = 1024;

/// The code that stands for the application's error 0, and the one for 2^32 - 1 (section 4.4).
const APPLICATION_ERRORS: std::ops::RangeInclusive<u64> = 0x52e4_a40f_a8db..=0x52e5_ac98_3162;

/// A version of draft-ietf-webtrans-http3. Those between speak like the one before them in this list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WebTransportDraft {
    /// Drafts 02 to 06, with SETTINGS_ENABLE_WEBTRANSPORT.
    Draft02,
    /// Drafts 07 to 12, with SETTINGS_WEBTRANSPORT_MAX_SESSIONS.
    Draft07,
    /// Drafts 13 and 14, with SETTINGS_WT_MAX_SESSIONS.
    Draft14,
    /// Drafts 15 and 16, with SETTINGS_WT_ENABLED.
    Draft15,
}

impl WebTransportDraft {
    /// All that this crate speaks, oldest first.
    pub const ALL: [Self; 4] = [Self::Draft02, Self::Draft07, Self::Draft14, Self::Draft15];

    /// The setting by which an end says that it speaks this draft.
    pub(crate) const fn setting(self) -> u64 {
        match self {
            Self::Draft02 => 0x2b60_3742,
            Self::Draft07 => 0xc671_706a,
            Self::Draft14 => 0x14e9_cd29,
            Self::Draft15 => 0x2c7c_f000,
        }
    }

    /// The draft that a peer speaks which sends this setting, if any.
    ///
    /// # Errors
    /// `H3_SETTINGS_ERROR` for a flag with another value than 0 and 1 (section 3.1).
    pub(crate) fn of_setting(id: u64, value: u64) -> Result<Option<Self>, Error> {
        let Some(draft) = Self::ALL.into_iter().find(|draft| draft.setting() == id) else {
            return Ok(None);
        };
        let is_flag = matches!(draft, Self::Draft02 | Self::Draft15);
        if is_flag && value > 1 {
            return Err(Error::new(Code::SETTINGS_ERROR, "setting is neither 0 nor 1"));
        }
        Ok((value > 0).then_some(draft))
    }

    /// The `:protocol` of the extended CONNECT that begins a session (section 3.2).
    #[must_use]
    pub const fn protocol(self) -> &'static str {
        match self {
            Self::Draft02 | Self::Draft07 | Self::Draft14 => "webtransport",
            Self::Draft15 => "webtransport-h3",
        }
    }
}

/// Whether an extended CONNECT with this `:protocol` begins a session, in any draft.
#[must_use]
pub fn is_webtransport(protocol: &[u8]) -> bool {
    WebTransportDraft::ALL.iter().any(|draft| draft.protocol().as_bytes() == protocol)
}

/// Some drafts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WebTransportDrafts(u8);

impl WebTransportDrafts {
    /// No draft: WebTransport is not supported.
    pub const NONE: Self = Self(0);
    /// All that this crate speaks.
    pub const ALL: Self = Self(0b1111);

    pub(crate) fn insert(&mut self, draft: WebTransportDraft) {
        self.0 |= 1 << draft as u8;
    }

    /// The drafts, oldest first.
    pub fn iter(self) -> impl Iterator<Item = WebTransportDraft> {
        WebTransportDraft::ALL.into_iter().filter(move |draft| self.0 >> *draft as u8 & 1 == 1)
    }

    /// The newest draft that both ends speak (section 7.1).
    #[must_use]
    pub fn newest_common(self, other: Self) -> Option<WebTransportDraft> {
        Self(self.0 & other.0).iter().last()
    }
}

/// The first bytes of a stream of a session, and how many they are.
pub(crate) fn stream_header(dir: Dir, session: StreamId) -> ([u8; MAX_HEADER_SIZE], usize) {
    let kind = match dir {
        Dir::Uni => FrameType(UNI_STREAM),
        Dir::Bi => FrameType::WT_STREAM,
    };
    header_of(kind, session.0)
}

impl Code {
    /// The code on the wire for an error of a WebTransport application (section 4.4).
    #[must_use]
    pub const fn of_webtransport(error: u32) -> Self {
        // Each thirty-first code is reserved (RFC 9114 section 8.1), and left out.
        Self(*APPLICATION_ERRORS.start() + error as u64 + error as u64 / 0x1e)
    }

    /// The error of a WebTransport application that this code stands for, if it is one.
    #[must_use]
    pub fn to_webtransport(self) -> Option<u32> {
        if !APPLICATION_ERRORS.contains(&self.0) || (self.0 - 0x21).is_multiple_of(0x1f) {
            return None;
        }
        let distance = self.0 - APPLICATION_ERRORS.start();
        u32::try_from(distance - distance / 0x1f).ok()
    }
}

impl Capsule {
    /// The type of the capsule that closes a WebTransport session (section 6).
    pub const WT_CLOSE_SESSION: u64 = 0x2843;
    /// The type of the capsule that asks the peer to end its WebTransport session soon (section 4.7).
    pub const WT_DRAIN_SESSION: u64 = 0x78ae;
}

/// How the application of one end has closed a session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionClose {
    /// The application's error code.
    pub code: u32,
    /// Text for people, of at most [`MAX_CLOSE_REASON`] bytes.
    pub reason: String,
}

impl SessionClose {
    /// The capsule that says so. A longer text is cut at the end of a character.
    #[must_use]
    pub fn to_capsule(&self) -> Capsule {
        let reason = &self.reason[..self.reason.floor_char_boundary(MAX_CLOSE_REASON)];
        let mut value = BytesMut::with_capacity(4 + reason.len());
        value.put_u32(self.code);
        value.put_slice(reason.as_bytes());
        Capsule { kind: Capsule::WT_CLOSE_SESSION, value: value.freeze() }
    }

    /// Reads the value of such a capsule; `None` if it is cut short, too long, or its text is not UTF-8.
    pub(crate) fn of_capsule(value: &Bytes) -> Option<Self> {
        let (code, reason) = value.split_first_chunk()?;
        if reason.len() > MAX_CLOSE_REASON {
            return None;
        }
        let reason = std::str::from_utf8(reason).ok()?.to_owned();
        Some(Self { code: u32::from_be_bytes(*code), reason })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_newest_draft_of_both_is_spoken() {
        let mut peer = WebTransportDrafts::NONE;
        assert_eq!(WebTransportDrafts::ALL.newest_common(peer), None);
        for draft in WebTransportDraft::ALL {
            assert_eq!(WebTransportDraft::of_setting(draft.setting(), 0), Ok(None));
            let said = WebTransportDraft::of_setting(draft.setting(), 1).unwrap().unwrap();
            peer.insert(said);
            assert_eq!(peer.newest_common(WebTransportDrafts::ALL), Some(draft));
            assert!(is_webtransport(draft.protocol().as_bytes()));
        }
        assert_eq!(peer, WebTransportDrafts::ALL);
        assert!(!is_webtransport(b"websocket"));
        let sessions = |value| WebTransportDraft::of_setting(0xc671_706a, value);
        assert_eq!(sessions(100), Ok(Some(WebTransportDraft::Draft07)));
        assert!(WebTransportDraft::of_setting(0x2c7c_f000, 2).is_err());
        assert_eq!(WebTransportDraft::of_setting(0x33, 1), Ok(None));
    }

    #[test]
    fn streams_begin_as_the_draft_says() {
        let header = |dir, session| {
            let (bytes, length) = stream_header(dir, StreamId(session));
            bytes[..length].to_vec()
        };
        assert_eq!(header(Dir::Uni, 4), [0x40, 0x54, 4]);
        assert_eq!(header(Dir::Bi, 0), [0x40, 0x41, 0]);
        assert_eq!(header(Dir::Bi, 64), [0x40, 0x41, 0x40, 64]);
    }

    /// The examples of the draft, and codes that no application has.
    #[test]
    fn codes_of_applications_leave_out_reserved_ones() {
        assert_eq!(Code::of_webtransport(0), Code(0x52e4_a40f_a8db));
        assert_eq!(Code::of_webtransport(u32::MAX), Code(0x52e5_ac98_3162));
        assert_eq!(Code::of_webtransport(0x1d), Code(0x52e4_a40f_a8f8));
        assert_eq!(Code::of_webtransport(0x1e), Code(0x52e4_a40f_a8fa));
        let not_of_an_application =
            [Code(0x52e4_a40f_a8f9), Code(0x52e4_a40f_a8da), Code(0x52e5_ac98_3163), Code(0)];
        assert!(not_of_an_application.iter().all(|code| code.to_webtransport().is_none()));
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        let long = SessionClose { code: 1, reason: "ä".repeat(MAX_CLOSE_REASON) };
        let cut = SessionClose::of_capsule(&long.to_capsule().value).unwrap();
        assert_eq!((cut.code, cut.reason.len()), (1, MAX_CLOSE_REASON));
        let odd = SessionClose { code: 1, reason: format!("a{}", long.reason) };
        let cut = SessionClose::of_capsule(&odd.to_capsule().value).unwrap();
        assert_eq!(cut.reason.len(), MAX_CLOSE_REASON - 1);
        for malformed in [&b"\0\0\0"[..], b"\0\0\0\x01\xff", &[0; 5 + MAX_CLOSE_REASON]] {
            assert_eq!(SessionClose::of_capsule(&Bytes::copy_from_slice(malformed)), None);
        }
    }

    proptest! {
        #[test]
        fn codes_there_and_back(error: u32) {
            let code = Code::of_webtransport(error);
            prop_assert!(!(code.0 - 0x21).is_multiple_of(0x1f));
            prop_assert_eq!(code.to_webtransport(), Some(error));
        }
    }
}
