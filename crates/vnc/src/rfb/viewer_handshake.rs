//! Letting a viewer in (RFC 6143, sections 7.1 to 7.3).

use super::security::{CHALLENGE, Security};
use super::server_handshake::MAX_REASON;
use super::version::Version;
use super::wire::{self, put_text};
use super::{RfbError, ServerInit};
use bytes::{BufMut as _, BytesMut};

/// The result of a step of the handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ViewerStep {
    /// More bytes are needed.
    More,
    /// The viewer's version is known: [`ViewerHandshake::offer`] or [`ViewerHandshake::refuse`] is next.
    Version,
    /// The answer to the challenge: [`ViewerHandshake::result`] is next.
    Response([u8; CHALLENGE]),
    /// The viewer is in: [`ViewerHandshake::init`] is next.
    Init {
        /// Whether other viewers may stay.
        shared: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ViewerState {
    Version,
    /// It is the caller's turn to offer.
    Offer,
    Choice(Security),
    Response,
    /// It is the caller's turn to judge the answer.
    Judgement,
    ClientInit,
    /// It is the caller's turn to describe the desktop.
    ServerInit,
    /// The viewer is in or was sent away.
    Done,
}

/// The handshake with a viewer, whose server we are. The methods of the caller do nothing when it is not
/// their turn.
#[derive(Debug)]
pub struct ViewerHandshake {
    version: Version,
    state: ViewerState,
}

impl Default for ViewerHandshake {
    fn default() -> Self {
        Self::new()
    }
}

impl ViewerHandshake {
    /// The start: [`Self::start`] is next.
    #[must_use]
    pub fn new() -> Self {
        Self { version: Version::V3_8, state: ViewerState::Version }
    }

    /// Adds the version to `out`, with which a server begins.
    pub fn start(&mut self, out: &mut Vec<u8>) {
        out.extend(Version::V3_8.message());
    }

    /// Consumes complete messages of `input` and adds the answers to `out`.
    ///
    /// # Errors
    /// The peer is no RFB viewer, or it chose a security type that was not offered.
    pub fn receive(
        &mut self,
        input: &mut BytesMut,
        out: &mut Vec<u8>,
    ) -> Result<ViewerStep, RfbError> {
        if let ViewerState::Choice(security) = self.state {
            let Some(chosen) = wire::take(input, |reader| reader.u8())? else {
                return Ok(ViewerStep::More);
            };
            if chosen != security.number() {
                return Err(RfbError::NotOffered(chosen));
            }
            self.challenge(security, out);
        }
        Ok(self.step(input)?.unwrap_or(ViewerStep::More))
    }

    fn step(&mut self, input: &mut BytesMut) -> Result<Option<ViewerStep>, RfbError> {
        let step = match self.state {
            ViewerState::Version => Version::take(input, RfbError::NotViewer)?.map(|version| {
                self.version = version;
                (ViewerState::Offer, ViewerStep::Version)
            }),
            ViewerState::Response => wire::take(input, |reader| reader.array())?
                .map(|response| (ViewerState::Judgement, ViewerStep::Response(response))),
            ViewerState::ClientInit => wire::take(input, |reader| reader.u8())?
                .map(|shared| (ViewerState::ServerInit, ViewerStep::Init { shared: shared != 0 })),
            ViewerState::Offer
            | ViewerState::Choice(_)
            | ViewerState::Judgement
            | ViewerState::ServerInit
            | ViewerState::Done => None,
        };
        Ok(step.map(|(state, step)| {
            self.state = state;
            step
        }))
    }

    /// Says how the viewer is to show that it may come in.
    pub fn offer(&mut self, security: Security, out: &mut Vec<u8>) {
        if self.state != ViewerState::Offer {
            return;
        }
        if self.version == Version::V3_3 {
            out.put_u32(security.number().into());
            self.challenge(security, out);
        } else {
            out.extend([1, security.number()]);
            self.state = ViewerState::Choice(security);
        }
    }

    /// Starts the security type that was chosen.
    fn challenge(&mut self, security: Security, out: &mut Vec<u8>) {
        self.state = match security {
            Security::None => {
                if self.version == Version::V3_8 {
                    out.put_u32(0);
                }
                ViewerState::ClientInit
            }
            Security::Password { challenge } => {
                out.extend(challenge);
                ViewerState::Response
            }
        };
    }

    /// Says whether the answer to the challenge was right, or why not. The viewer of a wrong answer is to be
    /// disconnected.
    pub fn result(&mut self, result: Result<(), &str>, out: &mut Vec<u8>) {
        if self.state != ViewerState::Judgement {
            return;
        }
        self.state = match result {
            Ok(()) => {
                out.put_u32(0);
                ViewerState::ClientInit
            }
            Err(reason) => {
                out.put_u32(1);
                if self.version == Version::V3_8 {
                    put_text(out, reason, MAX_REASON);
                }
                ViewerState::Done
            }
        };
    }

    /// Refuses the viewer instead of [`Self::offer`]. Disconnect it then.
    pub fn refuse(&mut self, reason: &str, out: &mut Vec<u8>) {
        if self.state != ViewerState::Offer {
            return;
        }
        if self.version == Version::V3_3 {
            out.put_u32(0);
        } else {
            out.push(0);
        }
        put_text(out, reason, MAX_REASON);
        self.state = ViewerState::Done;
    }

    /// Describes the desktop, which is the end of the handshake. The [`Viewer`](super::Viewer) starts with
    /// [`PixelFormat::RGB32`](super::PixelFormat::RGB32), so this is the format to give.
    pub fn init(&mut self, init: &ServerInit, out: &mut Vec<u8>) {
        if self.state == ViewerState::ServerInit {
            init.write(out);
            self.state = ViewerState::Done;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{MAX_NAME, PixelFormat, ServerHandshake, ServerStep};
    use super::*;

    fn init() -> ServerInit {
        ServerInit { width: 3, height: 2, format: PixelFormat::RGB32, name: "ä desk".into() }
    }

    /// Lets a viewer in that sends `viewer` in pieces of `size` bytes.
    fn run(
        viewer: &[u8],
        size: usize,
        security: Security,
        right: bool,
    ) -> (Vec<u8>, Vec<ViewerStep>) {
        let (mut handshake, mut out) = (ViewerHandshake::new(), Vec::new());
        let (mut input, mut steps) = (BytesMut::new(), Vec::new());
        handshake.start(&mut out);
        for piece in viewer.chunks(size) {
            input.extend_from_slice(piece);
            loop {
                let step = handshake.receive(&mut input, &mut out).unwrap();
                match step {
                    ViewerStep::More => break,
                    ViewerStep::Version => handshake.offer(security, &mut out),
                    ViewerStep::Response(_) => {
                        handshake.result(if right { Ok(()) } else { Err("wrong") }, &mut out);
                    }
                    ViewerStep::Init { .. } => handshake.init(&init(), &mut out),
                }
                steps.push(step);
            }
        }
        (out, steps)
    }

    fn run_all(viewer: &[&[u8]], security: Security, right: bool) -> (Vec<u8>, Vec<ViewerStep>) {
        let viewer = viewer.concat();
        let whole = run(&viewer, viewer.len(), security, right);
        for size in 1..viewer.len() {
            assert_eq!(run(&viewer, size, security, right), whole, "pieces of {size} bytes");
        }
        whole
    }

    fn init_bytes() -> Vec<u8> {
        let mut out = Vec::new();
        init().write(&mut out);
        out
    }

    #[test]
    fn viewers_of_all_versions_come_in_without_a_password() {
        for (version, choice, reply) in [
            ("RFB 003.003\n", &b""[..], &b"\0\0\0\x01"[..]),
            ("RFB 003.007\n", b"\x01", b"\x01\x01"),
            ("RFB 003.008\n", b"\x01", b"\x01\x01\0\0\0\0"),
            ("RFB 003.889\n", b"\x01", b"\x01\x01\0\0\0\0"),
        ] {
            let viewer = [version.as_bytes(), choice, &[1]];
            let (out, steps) = run_all(&viewer, Security::None, true);
            assert_eq!(out, [b"RFB 003.008\n", reply, &init_bytes()].concat(), "{version}");
            assert_eq!(steps, [ViewerStep::Version, ViewerStep::Init { shared: true }]);
        }
    }

    #[test]
    fn viewers_of_all_versions_come_in_with_the_right_password_only() {
        let security = Security::Password { challenge: [9; 16] };
        for (version, choice, reply, reason) in [
            ("RFB 003.003\n", &b""[..], &b"\0\0\0\x02"[..], &b""[..]),
            ("RFB 003.007\n", b"\x02", b"\x01\x02", b""),
            ("RFB 003.008\n", b"\x02", b"\x01\x02", b"\0\0\0\x05wrong"),
        ] {
            let viewer = [version.as_bytes(), choice, &[8; 16], &[0]];
            let (out, steps) = run_all(&viewer, security, true);
            let sent = [b"RFB 003.008\n", reply, &[9; 16]].concat();
            assert_eq!(out, [&sent[..], &[0; 4], &init_bytes()].concat());
            let init = ViewerStep::Init { shared: false };
            assert_eq!(steps, [ViewerStep::Version, ViewerStep::Response([8; 16]), init]);
            let (out, steps) = run_all(&viewer, security, false);
            assert_eq!(out, [&sent[..], &[0, 0, 0, 1], reason].concat());
            assert_eq!(steps.len(), 2);
        }
    }

    #[test]
    fn a_refusal_comes_with_its_reason() {
        for (version, refusal) in [("003", &b"\0\0\0\0"[..]), ("007", b"\0"), ("008", b"\0")] {
            let (mut handshake, mut out) = (ViewerHandshake::new(), Vec::new());
            handshake.refuse("not yet", &mut out);
            assert!(out.is_empty());
            let mut input = BytesMut::from(format!("RFB 003.{version}\n").as_str());
            assert_eq!(handshake.receive(&mut input, &mut out), Ok(ViewerStep::Version));
            handshake.refuse("busy", &mut out);
            assert_eq!(out, [refusal, b"\0\0\0\x04busy"].concat());
            input.extend_from_slice(b"\x01\x01");
            assert_eq!(handshake.receive(&mut input, &mut out), Ok(ViewerStep::More));
        }
    }

    #[test]
    fn what_was_not_offered_cannot_be_chosen() {
        let (mut handshake, mut out) = (ViewerHandshake::new(), Vec::new());
        let mut input = BytesMut::from("RFB 003.008\n");
        assert_eq!(handshake.receive(&mut input, &mut out), Ok(ViewerStep::Version));
        handshake.offer(Security::Password { challenge: [9; 16] }, &mut out);
        handshake.result(Ok(()), &mut out);
        handshake.init(&init(), &mut out);
        input.extend_from_slice(&[1]);
        let error = handshake.receive(&mut input, &mut out).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the viewer chose the security type 1, which was not offered"
        );
        let error = ViewerHandshake::new().receive(&mut "GET / HTTP/1.1".into(), &mut out);
        assert_eq!(error, Err(RfbError::NotViewer("GET / HTTP/1".into())));
    }

    #[test]
    fn a_long_name_is_cut_between_characters() {
        let init = ServerInit { name: format!("x{}", "ä".repeat(MAX_NAME)), ..init() };
        let mut bytes = Vec::new();
        init.write(&mut bytes);
        assert_eq!(bytes.len(), 24 + MAX_NAME - 1);
    }

    #[test]
    fn both_handshakes_understand_each_other() {
        let (mut server, mut client) = (ViewerHandshake::new(), ServerHandshake::new(true));
        let (mut to_client, mut to_server) = (BytesMut::new(), BytesMut::new());
        let mut out = Vec::new();
        server.start(&mut out);
        let done = (0..20).find_map(|_| {
            to_client.extend(out.drain(..));
            match client.receive(&mut to_client, &mut out).unwrap() {
                ServerStep::More => {}
                ServerStep::Challenge(challenge) => client.answer(challenge, &mut out),
                ServerStep::StartTls | ServerStep::User => panic!("not offered"),
                ServerStep::Done(init) => return Some(init),
            }
            to_server.extend(out.drain(..));
            match server.receive(&mut to_server, &mut out).unwrap() {
                ViewerStep::More => {}
                ViewerStep::Version => {
                    server.offer(Security::Password { challenge: [3; 16] }, &mut out);
                }
                ViewerStep::Response(response) => {
                    assert_eq!(response, [3; 16]);
                    server.result(Ok(()), &mut out);
                }
                ViewerStep::Init { shared } => {
                    assert!(shared);
                    server.init(&init(), &mut out);
                }
            }
            None
        });
        assert_eq!(done, Some(init()));
    }
}
