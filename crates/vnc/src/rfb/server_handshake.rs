//! Logging in to a server (RFC 6143, sections 7.1 to 7.3).

use super::security::{CHALLENGE, NONE, VNC_AUTHENTICATION, describe};
use super::version::Version;
use super::wire::{self, text};
use super::{RfbError, ServerInit};
use bytes::BytesMut;

/// Bytes of the longest reason for which a server may refuse us.
pub const MAX_REASON: usize = 4096;

/// The result of a step of the handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerStep {
    /// More bytes are needed.
    More,
    /// The server wants this to be encrypted with the password: [`ServerHandshake::answer`] is next.
    Challenge([u8; CHALLENGE]),
    /// We are in.
    Done(ServerInit),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ServerState {
    Version,
    Security,
    Refusal,
    Challenge,
    /// It is the caller's turn to answer.
    Answer,
    Result {
        password: bool,
    },
    Failure {
        password: bool,
    },
    Init,
    Done,
}

/// The handshake with a server, whose client we are. Any version from 3.3 on; the security types None and VNC
/// Authentication.
#[derive(Debug)]
pub struct ServerHandshake {
    shared: bool,
    version: Version,
    state: ServerState,
}

impl ServerHandshake {
    /// The start. Unless the desktop is `shared`, the server may disconnect other clients.
    #[must_use]
    pub fn new(shared: bool) -> Self {
        Self { shared, version: Version::V3_8, state: ServerState::Version }
    }

    /// Consumes complete messages of `input` and adds the answers to `out`.
    ///
    /// # Errors
    /// The peer is no RFB server, does not let us in, or needs something that is not supported.
    pub fn receive(
        &mut self,
        input: &mut BytesMut,
        out: &mut Vec<u8>,
    ) -> Result<ServerStep, RfbError> {
        loop {
            match self.step(input, out)? {
                None => return Ok(ServerStep::More),
                Some(ServerStep::More) => {}
                Some(step) => return Ok(step),
            }
        }
    }

    /// Answers a [`ServerStep::Challenge`]. Does nothing if there was none.
    pub fn answer(&mut self, response: [u8; CHALLENGE], out: &mut Vec<u8>) {
        if self.state == ServerState::Answer {
            out.extend(response);
            self.state = ServerState::Result { password: true };
        }
    }

    /// One message of the server; `None` if it has not come entirely.
    fn step(
        &mut self,
        input: &mut BytesMut,
        out: &mut Vec<u8>,
    ) -> Result<Option<ServerStep>, RfbError> {
        match self.state {
            ServerState::Version => self.agree(input, out),
            ServerState::Security => self.choose(input, out),
            ServerState::Refusal => fail(input, RfbError::Refused),
            ServerState::Challenge => {
                let challenge = wire::take(input, |reader| reader.array())?;
                Ok(challenge.map(|challenge| {
                    self.state = ServerState::Answer;
                    ServerStep::Challenge(challenge)
                }))
            }
            ServerState::Result { password } => self.conclude(password, input, out),
            ServerState::Failure { password } => fail(input, failure(password)),
            ServerState::Init => {
                let init = wire::take(input, ServerInit::read)?;
                Ok(init.map(|init| {
                    self.state = ServerState::Done;
                    ServerStep::Done(init)
                }))
            }
            ServerState::Answer | ServerState::Done => Ok(None),
        }
    }

    fn agree(
        &mut self,
        input: &mut BytesMut,
        out: &mut Vec<u8>,
    ) -> Result<Option<ServerStep>, RfbError> {
        let Some(version) = Version::take(input, RfbError::NotServer)? else { return Ok(None) };
        out.extend(version.message());
        self.version = version;
        Ok(self.go(ServerState::Security))
    }

    fn choose(
        &mut self,
        input: &mut BytesMut,
        out: &mut Vec<u8>,
    ) -> Result<Option<ServerStep>, RfbError> {
        let server_chooses = self.version == Version::V3_3;
        let offered: Option<Vec<u32>> = wire::take(input, |reader| {
            if server_chooses {
                let chosen = reader.u32()?;
                return Ok(if chosen == 0 { vec![] } else { vec![chosen] });
            }
            let count = reader.u8()?;
            Ok(reader.bytes(count.into())?.iter().map(|&number| number.into()).collect())
        })?;
        let Some(offered) = offered else { return Ok(None) };
        if offered.is_empty() {
            return Ok(self.go(ServerState::Refusal));
        }
        let chosen = [NONE, VNC_AUTHENTICATION]
            .into_iter()
            .find(|&supported| offered.contains(&supported.into()))
            .ok_or_else(|| RfbError::Security(describe(&offered)))?;
        if !server_chooses {
            out.push(chosen);
        }
        if chosen == VNC_AUTHENTICATION {
            return Ok(self.go(ServerState::Challenge));
        }
        if self.version == Version::V3_8 {
            return Ok(self.go(ServerState::Result { password: false }));
        }
        Ok(self.enter(out))
    }

    fn conclude(
        &mut self,
        password: bool,
        input: &mut BytesMut,
        out: &mut Vec<u8>,
    ) -> Result<Option<ServerStep>, RfbError> {
        match wire::take(input, |reader| reader.u32())? {
            None => Ok(None),
            Some(0) => Ok(self.enter(out)),
            Some(_) if self.version == Version::V3_8 => {
                Ok(self.go(ServerState::Failure { password }))
            }
            Some(_) => Err(failure(password)("it gives no reason".into())),
        }
    }

    /// Sends the ClientInit.
    fn enter(&mut self, out: &mut Vec<u8>) -> Option<ServerStep> {
        out.push(self.shared.into());
        self.go(ServerState::Init)
    }

    fn go(&mut self, state: ServerState) -> Option<ServerStep> {
        self.state = state;
        Some(ServerStep::More)
    }
}

/// The error of a server that does not let us in.
fn failure(password: bool) -> fn(String) -> RfbError {
    if password { RfbError::Password } else { RfbError::Refused }
}

/// Fails as soon as the reason is there.
fn fail(
    input: &mut BytesMut,
    error: fn(String) -> RfbError,
) -> Result<Option<ServerStep>, RfbError> {
    let what = "the server's reason for its refusal";
    match wire::take(input, |reader| reader.counted(what, MAX_REASON).map(text))? {
        None => Ok(None),
        Some(reason) => Err(error(reason)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{MAX_NAME, PixelFormat};
    use super::*;

    const INIT: &[u8] =
        b"\x04\0\x03\0\x20\x18\0\x01\0\xff\0\xff\0\xff\x10\x08\0\0\0\0\0\0\0\x04desk";

    /// The bytes that a client sent, and the end of its handshake.
    type Outcome = (Vec<u8>, Result<ServerStep, RfbError>);

    /// Receives `server` in pieces of `size` bytes.
    fn run(server: &[u8], size: usize) -> Outcome {
        let (mut handshake, mut out) = (ServerHandshake::new(true), Vec::new());
        let mut input = BytesMut::new();
        let mut last = Ok(ServerStep::More);
        for piece in server.chunks(size) {
            input.extend_from_slice(piece);
            last = handshake.receive(&mut input, &mut out);
            if let Ok(ServerStep::Challenge(challenge)) = last {
                handshake.answer(challenge.map(|byte| !byte), &mut out);
                last = handshake.receive(&mut input, &mut out);
            }
            if last.is_err() {
                break;
            }
        }
        (out, last)
    }

    /// As [`run`], with every way to cut the bytes into equal pieces.
    fn run_all(server: &[&[u8]]) -> Outcome {
        let server = server.concat();
        let whole = run(&server, server.len());
        for size in 1..server.len() {
            let (out, last) = run(&server, size);
            let size_matters = matches!(last, Err(RfbError::NotServer(_)));
            assert!(size_matters || (out, last) == whole, "pieces of {size} bytes");
        }
        whole
    }

    fn init() -> Result<ServerStep, RfbError> {
        let format = PixelFormat::RGB32;
        Ok(ServerStep::Done(ServerInit { width: 1024, height: 768, format, name: "desk".into() }))
    }

    #[test]
    fn servers_without_a_password_let_us_in() {
        let (out, end) = run_all(&[b"RFB 003.003\n\0\0\0\x01", INIT]);
        assert_eq!((&out[..], end), (&b"RFB 003.003\n\x01"[..], init()));
        let (out, end) = run_all(&[b"RFB 003.007\n\x02\x02\x01", INIT]);
        assert_eq!((&out[..], end), (&b"RFB 003.007\n\x01\x01"[..], init()));
        for version in ["RFB 003.008\n", "RFB 003.889\n"] {
            let (out, end) = run_all(&[version.as_bytes(), b"\x03\x13\x02\x01\0\0\0\0", INIT]);
            assert_eq!((&out[..], end), (&b"RFB 003.008\n\x01\x01"[..], init()));
        }
    }

    #[test]
    fn the_answer_to_the_challenge_lets_us_in() {
        let challenge = [0x5a; 16];
        let result = [0; 4];
        for (version, security, choice) in [
            ("RFB 003.003\n", &b"\0\0\0\x02"[..], &b""[..]),
            ("RFB 003.007\n", b"\x01\x02", b"\x02"),
            ("RFB 003.008\n", b"\x02\x1e\x02", b"\x02"),
        ] {
            let (out, end) = run_all(&[version.as_bytes(), security, &challenge, &result, INIT]);
            assert_eq!(out, [version.as_bytes(), choice, &[0xa5; 16], &[1]].concat());
            assert_eq!(end, init());
        }
    }

    #[test]
    fn a_refusal_comes_with_its_reason() {
        let refused = |parts: &[&[u8]]| run_all(parts).1.unwrap_err();
        let reason = b"\0\0\0\x08too many";
        let expected = RfbError::Refused("too many".into());
        assert_eq!(expected.to_string(), "the server refuses: too many");
        assert_eq!(refused(&[b"RFB 003.003\n\0\0\0\0", reason]), expected);
        assert_eq!(refused(&[b"RFB 003.007\n\0", reason]), expected);
        assert_eq!(refused(&[b"RFB 003.008\n\0", reason]), expected);
        assert_eq!(refused(&[b"RFB 003.008\n\x01\x01\0\0\0\x01", reason]), expected);
        let wrong = [&b"RFB 003.008\n\x01\x02"[..], &[1; 16], b"\0\0\0\x01", reason];
        assert_eq!(refused(&wrong), RfbError::Password("too many".into()));
        let wrong = [&b"RFB 003.003\n\0\0\0\x02"[..], &[1; 16], b"\0\0\0\x02"];
        assert_eq!(refused(&wrong), RfbError::Password("it gives no reason".into()));
        let escape = b"\0\0\0\x04\x1b[2J";
        assert_eq!(refused(&[b"RFB 003.008\n\0", escape]), RfbError::Refused("\u{fffd}[2J".into()));
    }

    #[test]
    fn servers_that_want_what_is_not_supported_are_told_apart() {
        let error = run_all(&[b"RFB 003.008\n\x03\x13\x12\xfa"]).1.unwrap_err();
        let text =
            "the server wants a security type that is not supported: 19 (VeNCrypt), 18 (TLS), 250";
        assert_eq!(error.to_string(), text);
        let error = run_all(&[b"RFB 003.003\n\0\0\x01\x01"]).1.unwrap_err();
        assert_eq!(error, RfbError::Security("257".into()));
        let error = run_all(&[b"HTTP/1.1 400 Bad Request\r\n"]).1.unwrap_err();
        assert_eq!(error, RfbError::NotServer("HTTP/1.1 400".into()));
    }

    #[test]
    fn texts_beyond_their_bounds_are_refused() {
        let error = run_all(&[b"RFB 003.008\n\0", b"\xff\xff\xff\xff"]).1.unwrap_err();
        let text = "the server's reason for its refusal of length 4294967295 is larger than 4096";
        assert_eq!(error.to_string(), text);
        let mut init = INIT.to_vec();
        init[20..24].copy_from_slice(&(MAX_NAME as u32 + 1).to_be_bytes());
        let error = run_all(&[b"RFB 003.008\n\x01\x01\0\0\0\0", &init]).1.unwrap_err();
        assert_eq!(error.to_string(), "the name of the desktop of length 4097 is larger than 4096");
    }

    #[test]
    fn nothing_is_consumed_behind_the_handshake_or_before_the_answer() {
        let mut input = BytesMut::from(&b"RFB 003.003\n\0\0\0\x02"[..]);
        input.extend_from_slice(&[7; 20]);
        let (mut handshake, mut out) = (ServerHandshake::new(false), Vec::new());
        handshake.answer([1; 16], &mut out);
        assert!(out.is_empty());
        let step = handshake.receive(&mut input, &mut out);
        assert_eq!(step, Ok(ServerStep::Challenge([7; 16])));
        assert_eq!(handshake.receive(&mut input, &mut out), Ok(ServerStep::More));
        assert_eq!(input, [7; 4][..]);
        let mut input = BytesMut::from(&b"RFB 003.003\n\0\0\0\x01"[..]);
        input.extend_from_slice(INIT);
        input.extend_from_slice(b"rest");
        let mut handshake = ServerHandshake::new(false);
        assert_eq!(handshake.receive(&mut input, &mut out), init());
        assert_eq!(handshake.receive(&mut input, &mut out), Ok(ServerStep::More));
        assert_eq!(input, b"rest"[..]);
    }
}
