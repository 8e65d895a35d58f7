//! The state of a flow at rest as bytes, for the process that goes on with it.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes};

use super::Identity;
use crate::access::Target;
use crate::masque::{Ask, FlowToken};
use crate::stream::{KeptAtRest, MAX_KEPT_BY_FLOW, PipeAtRest};

/// The form of the bytes, which come first. A process takes no other, so it changes with every change below.
const VERSION: u8 = 1;
/// Most bytes of the texts of a flow together: its client, target and addresses.
const MAX_TEXTS: usize = 64 << 10;
/// Longest state of a flow, in bytes.
pub const MAX_FLOW_STATE: usize = MAX_KEPT_BY_FLOW + MAX_TEXTS + 128;
/// Positions are below this, as variable-length integers have 62 bits (RFC 9000 section 16).
const MAX_POSITION: u64 = 1 << 62;

/// The bits that say what has ended, and what was asked for.
const TAKEN: u8 = 1;
const ENDED: u8 = 2;
const OVER: u8 = 4;
const ACCEPTED: u8 = 8;

/// What is to be known of a flow to go on with it, beside its socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FlowState {
    pub(super) token: FlowToken,
    pub(super) owner: Identity,
    /// Where the client was.
    pub(super) address: SocketAddr,
    pub(super) ask: Resting,
    /// The address of the target, or of whoever has connected.
    pub(super) resolved: Option<SocketAddr>,
    /// How long the flow has lasted.
    pub(super) lasted: Duration,
    pub(super) pipe: PipeAtRest,
}

/// What a flow that can rest was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Resting {
    /// A connection to a target.
    To(Target),
    /// A connection to an address of the proxy.
    At(Target),
}

/// Why bytes are not the state of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidState {
    /// Another version of the proxy has written them.
    #[error("it was written by another version, in form {0}")]
    Version(u8),
    /// They say nothing that can be.
    #[error("it is damaged")]
    Malformed,
}

impl Resting {
    /// `None` for what ends with its connection.
    pub(super) fn of(ask: Ask) -> Option<Self> {
        match ask {
            Ask::Tcp(target) => Some(Self::To(target)),
            Ask::Accept(target) => Some(Self::At(target)),
            Ask::Udp(_) | Ask::Ip(_) | Ask::Flows => None,
        }
    }

    pub(super) fn into_ask(self) -> Ask {
        match self {
            Self::To(target) => Ask::Tcp(target),
            Self::At(target) => Ask::Accept(target),
        }
    }
}

impl FlowState {
    /// The bytes; `None` if the texts are longer than [`MAX_TEXTS`] together.
    pub(super) fn encode(&self) -> Option<Vec<u8>> {
        let Self { token, owner, address, ask, resolved, lasted, pipe } = self;
        let PipeAtRest { taken, is_taken, kept } = pipe;
        let (accepted, target) = match ask {
            Resting::To(target) => (false, target),
            Resting::At(target) => (true, target),
        };
        let flag = |bit: u8, is_set: bool| if is_set { bit } else { 0 };
        let flags = flag(TAKEN, *is_taken)
            | flag(ENDED, kept.ended)
            | flag(OVER, kept.over)
            | flag(ACCEPTED, accepted);
        let resolved = resolved.map(|address| address.to_string()).unwrap_or_default();
        let texts = [&*owner.0, &target.to_string(), &address.to_string(), &resolved];
        if texts.iter().map(|text| text.len()).sum::<usize>() > MAX_TEXTS {
            return None;
        }
        let mut out = Vec::new();
        out.put_u8(VERSION);
        out.put_slice(&token.0);
        out.put_u8(flags);
        out.put_u64(*taken);
        out.put_u64(kept.base);
        out.put_u64(u64::try_from(lasted.as_millis()).unwrap_or(u64::MAX));
        for text in texts {
            out.put_u32(text.len() as u32);
            out.put_slice(text.as_bytes());
        }
        kept.data.iter().for_each(|chunk| out.put_slice(chunk));
        Some(out)
    }

    /// Reads the bytes.
    ///
    /// # Errors
    /// They are of another version, or no such state.
    pub(super) fn decode(mut bytes: Bytes) -> Result<Self, InvalidState> {
        match bytes.try_get_u8() {
            Ok(VERSION) => Self::decode_fields(bytes).ok_or(InvalidState::Malformed),
            Ok(other) => Err(InvalidState::Version(other)),
            Err(_) => Err(InvalidState::Malformed),
        }
    }

    /// Reads what follows the version.
    fn decode_fields(mut rest: Bytes) -> Option<Self> {
        let mut token = FlowToken([0; 16]);
        rest.try_copy_to_slice(&mut token.0).ok()?;
        let flags = rest.try_get_u8().ok()?;
        let has = |bit| flags & bit != 0;
        let (taken, base) = (rest.try_get_u64().ok()?, rest.try_get_u64().ok()?);
        let lasted = Duration::from_millis(rest.try_get_u64().ok()?);
        let owner = Identity(take_text(&mut rest)?.into());
        let target = take_text(&mut rest)?.parse().ok()?;
        let address = take_text(&mut rest)?.parse().ok()?;
        let resolved = match &*take_text(&mut rest)? {
            "" => None,
            text => Some(text.parse().ok()?),
        };
        let kept = KeptAtRest { base, ended: has(ENDED), over: has(OVER), data: vec![rest] };
        let pipe = PipeAtRest { taken, is_taken: has(TAKEN), kept };
        let ask = if has(ACCEPTED) { Resting::At(target) } else { Resting::To(target) };
        let known = TAKEN | ENDED | OVER | ACCEPTED;
        let state = Self { token, owner, address, ask, resolved, lasted, pipe };
        (flags & !known == 0 && state.pipe.can_be()).then_some(state)
    }
}

impl PipeAtRest {
    /// Whether a flow can have come to this.
    fn can_be(&self) -> bool {
        let KeptAtRest { base, data, ended, over } = &self.kept;
        let held: usize = data.iter().map(Bytes::len).sum();
        let positions = self.taken < MAX_POSITION && *base < MAX_POSITION;
        let end_is_taken = !self.is_taken || self.taken > 0;
        positions && end_is_taken && held <= MAX_KEPT_BY_FLOW && (!over || (*ended && held == 0))
    }
}

fn take_text(rest: &mut Bytes) -> Option<String> {
    let length = rest.try_get_u32().ok()? as usize;
    if length > rest.len().min(MAX_TEXTS) {
        return None;
    }
    String::from_utf8(rest.split_to(length).into()).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_state() -> impl Strategy<Value = FlowState> {
        let pipe = (0..MAX_POSITION, 0..MAX_POSITION, any::<[bool; 3]>(), any::<Vec<u8>>());
        let case = (any::<[u8; 16]>(), ".{0,9}", any::<SocketAddr>(), 1..u16::MAX, any::<bool>());
        (pipe, case, any::<Option<std::net::Ipv4Addr>>(), any::<u32>()).prop_map(
            |((taken, base, [is_taken, ended, over], data), case, resolved, lasted)| {
                let (token, owner, address, port, accepted) = case;
                // What cannot be is not written.
                let is_taken = is_taken && taken > 0;
                let over = over && ended && data.is_empty();
                let kept = KeptAtRest { base, data: vec![data.into()], ended, over };
                let target: Target = format!("db.example.org:{port}").parse().unwrap();
                // Flow labels are no part of an address as text.
                let address = address.to_string().parse().unwrap();
                FlowState {
                    token: FlowToken(token),
                    owner: Identity(owner.into()),
                    address,
                    ask: if accepted { Resting::At(target) } else { Resting::To(target) },
                    resolved: resolved.map(|ip| (ip, port).into()),
                    lasted: Duration::from_millis(lasted.into()),
                    pipe: PipeAtRest { taken, is_taken, kept },
                }
            },
        )
    }

    /// What is understood is written as it was read.
    fn check(bytes: &[u8]) -> Result<FlowState, InvalidState> {
        let read = FlowState::decode(Bytes::copy_from_slice(bytes));
        if let Ok(state) = &read {
            let again = state.encode().unwrap();
            assert_eq!(FlowState::decode(again.into()).as_ref(), Ok(state));
        }
        read
    }

    proptest! {
        #[test]
        fn states_there_and_back(state in any_state()) {
            let bytes = state.encode().unwrap();
            prop_assert!(bytes.len() <= MAX_FLOW_STATE);
            prop_assert_eq!(check(&bytes), Ok(state));
        }

        #[test]
        fn garbage_is_refused_or_understood(bytes in any::<Vec<u8>>(), version in 0..3_u8) {
            let _ = check(&bytes);
            let _ = check(&[&[version][..], &bytes].concat());
        }

        #[test]
        fn damage_is_refused_or_understood(
            state in any_state(),
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
            cut in any::<prop::sample::Index>(),
        ) {
            let mut bytes = state.encode().unwrap();
            for (at, value) in changes {
                let at = at.index(bytes.len());
                bytes[at] = value;
            }
            bytes.truncate(cut.index(bytes.len()) + 1);
            let _ = check(&bytes);
        }

        #[test]
        fn a_state_that_is_cut_before_what_is_kept_is_refused(state in any_state()) {
            let bytes = state.encode().unwrap();
            let head = bytes.len() - state.pipe.kept.data[0].len();
            for cut in 0..head {
                prop_assert_eq!(check(&bytes[..cut]), Err(InvalidState::Malformed));
            }
        }
    }

    fn state(pipe: PipeAtRest) -> Vec<u8> {
        let address = ([192, 0, 2, 1], 443).into();
        let state = FlowState {
            token: FlowToken([7; 16]),
            owner: Identity("ann".into()),
            address,
            ask: Resting::To("192.0.2.9:22".parse().unwrap()),
            resolved: None,
            lasted: Duration::ZERO,
            pipe,
        };
        state.encode().unwrap()
    }

    fn kept(base: u64, size: usize, ended: bool, over: bool) -> PipeAtRest {
        let kept = KeptAtRest { base, data: vec![vec![0; size].into()], ended, over };
        PipeAtRest { taken: 0, is_taken: false, kept }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        assert!(check(&state(kept(0, MAX_KEPT_BY_FLOW, true, false))).is_ok());
        for pipe in [
            kept(0, MAX_KEPT_BY_FLOW + 1, false, false),
            kept(MAX_POSITION, 0, false, false),
            kept(0, 0, false, true),
            kept(0, 1, true, true),
            PipeAtRest { taken: MAX_POSITION, ..kept(0, 0, false, false) },
            PipeAtRest { is_taken: true, ..kept(0, 0, false, false) },
        ] {
            assert_eq!(check(&state(pipe.clone())), Err(InvalidState::Malformed), "{pipe:?}");
        }
    }

    #[test]
    fn another_version_is_told_apart() {
        let mut bytes = state(PipeAtRest::default());
        bytes[0] = VERSION + 1;
        let error = check(&bytes).unwrap_err();
        assert_eq!(error, InvalidState::Version(VERSION + 1));
        assert!(error.to_string().contains("another version"));
    }

    #[test]
    fn a_client_whose_name_is_endless_has_no_state() {
        let bytes = state(PipeAtRest::default());
        let mut long = FlowState::decode(bytes.into()).unwrap();
        long.owner = Identity("n".repeat(MAX_TEXTS).into());
        assert_eq!(long.encode(), None);
    }
}
