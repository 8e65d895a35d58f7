//! Logging in to a server (RFC 6143, sections 7.1 to 7.3).

use super::security::{CHALLENGE, Login, NONE, TLS, VENCRYPT, VNC_AUTHENTICATION, describe};
use super::vencrypt::{Inner, Vencrypt, VencryptStep};
use super::version::Version;
use super::wire::{self, text};
use super::{RfbError, ServerInit};
use bytes::{BufMut as _, BytesMut};

/// Bytes of the longest reason for which a server may refuse us.
pub const MAX_REASON: usize = 4096;
/// Bytes of the longest name or password of a user; the rest is left out.
const MAX_USER: usize = 4096;

/// The result of a step of the handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerStep {
    /// More bytes are needed.
    More,
    /// The server wants this to be encrypted with the password: [`ServerHandshake::answer`] is next.
    Challenge([u8; CHALLENGE]),
    /// The server is ready for TLS: all that follows is sent and received over it, and
    /// [`ServerHandshake::tls_started`] is next. The server has sent nothing since; bytes that are there all the
    /// same are somebody else's.
    StartTls,
    /// The server wants the name and the password of a user: [`ServerHandshake::log_in`] is next.
    User,
    /// We are in.
    Done(ServerInit),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ServerState {
    Version,
    Security,
    Refusal,
    Vencrypt(Vencrypt),
    /// It is the caller's turn to start TLS.
    Tls(Inner),
    Challenge,
    /// It is the caller's turn to answer.
    Answer,
    /// A user is to be named.
    UserWanted,
    /// It is the caller's turn to name a user.
    User,
    Result {
        password: bool,
    },
    Failure {
        password: bool,
    },
    Init,
    Done,
}

/// The handshake with a server, whose client we are. Any version from 3.3 on; the security types None, VNC
/// Authentication, and VeNCrypt 0.2 with X509None, X509Vnc, X509Plain and Plain.
#[derive(Debug)]
pub struct ServerHandshake {
    shared: bool,
    login: Login,
    version: Version,
    state: ServerState,
}

impl ServerHandshake {
    /// The start. Unless the desktop is `shared`, the server may disconnect other clients.
    #[must_use]
    pub fn new(shared: bool) -> Self {
        let login = Login::default();
        Self { shared, login, version: Version::V3_8, state: ServerState::Version }
    }

    /// Sets what there is to log in with. By default, that is nothing but the answer to a challenge.
    #[must_use]
    pub fn with_login(self, login: Login) -> Self {
        Self { login, ..self }
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

    /// TLS has started after [`ServerStep::StartTls`]. Does nothing at other times.
    pub fn tls_started(&mut self) {
        if let ServerState::Tls(inner) = self.state {
            self.log_in_by(inner);
        }
    }

    /// Names a user after [`ServerStep::User`]. Does nothing at other times.
    pub fn log_in(&mut self, name: &str, password: &[u8], out: &mut Vec<u8>) {
        if self.state == ServerState::User {
            let (name, password) = (cut(name.as_bytes()), cut(password));
            out.put_u32(name.len() as u32);
            out.put_u32(password.len() as u32);
            out.extend([name, password].concat());
            self.state = ServerState::Result { password: true };
        }
    }

    fn log_in_by(&mut self, inner: Inner) {
        self.state = match inner {
            Inner::None => ServerState::Result { password: false },
            Inner::Challenge => ServerState::Challenge,
            Inner::User => ServerState::UserWanted,
        };
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
            ServerState::Vencrypt(mut vencrypt) => {
                let step = vencrypt.step(self.login, input, out)?;
                Ok(step.map(|step| self.follow(vencrypt, step)))
            }
            ServerState::UserWanted => {
                self.state = ServerState::User;
                Ok(Some(ServerStep::User))
            }
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
            ServerState::Answer | ServerState::Tls(_) | ServerState::User | ServerState::Done => {
                Ok(None)
            }
        }
    }

    fn follow(&mut self, vencrypt: Vencrypt, step: VencryptStep) -> ServerStep {
        match step {
            VencryptStep::Onward => self.state = ServerState::Vencrypt(vencrypt),
            VencryptStep::Tls(inner) => {
                self.state = ServerState::Tls(inner);
                return ServerStep::StartTls;
            }
            VencryptStep::Clear(inner) => self.log_in_by(inner),
        }
        ServerStep::More
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
        let chosen = choose(self.login, &offered)?;
        if !server_chooses {
            out.push(chosen);
        }
        match chosen {
            VNC_AUTHENTICATION => return Ok(self.go(ServerState::Challenge)),
            VENCRYPT => return Ok(self.go(ServerState::Vencrypt(Vencrypt::new()))),
            _ => {}
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

/// The best security type of those that a server offers.
fn choose(login: Login, offered: &[u32]) -> Result<u8, RfbError> {
    let order: &[u8] = match login {
        Login { only_tls: true, .. } => &[VENCRYPT],
        Login { user: true, .. } => &[NONE, VENCRYPT, VNC_AUTHENTICATION],
        Login { user: false, .. } => &[NONE, VNC_AUTHENTICATION, VENCRYPT],
    };
    let chosen = order.iter().find(|&&supported| offered.contains(&supported.into()));
    chosen.copied().ok_or_else(|| {
        let list = describe(offered);
        match offered.contains(&TLS.into()) {
            true => RfbError::AnonymousTls(list),
            false if login.only_tls => RfbError::NotEncrypted(list),
            false => RfbError::Security(list),
        }
    })
}

fn cut(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.len().min(MAX_USER)]
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
    fn run(login: Login, server: &[u8], size: usize) -> Outcome {
        let mut handshake = ServerHandshake::new(true).with_login(login);
        let mut out = Vec::new();
        let mut input = BytesMut::new();
        let mut last = Ok(ServerStep::More);
        for piece in server.chunks(size) {
            input.extend_from_slice(piece);
            last = handshake.receive(&mut input, &mut out);
            loop {
                match last {
                    Ok(ServerStep::Challenge(challenge)) => {
                        handshake.answer(challenge.map(|byte| !byte), &mut out);
                    }
                    Ok(ServerStep::StartTls) => handshake.tls_started(),
                    Ok(ServerStep::User) => handshake.log_in("ann", b"secret", &mut out),
                    Ok(ServerStep::More | ServerStep::Done(_)) | Err(_) => break,
                }
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
        run_all_with(Login::default(), server)
    }

    fn run_all_with(login: Login, server: &[&[u8]]) -> Outcome {
        let server = server.concat();
        let whole = run(login, &server, server.len());
        for size in 1..server.len() {
            let (out, last) = run(login, &server, size);
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
        let error = run_all(&[b"RFB 003.008\n\x03\x05\x1e\xfa"]).1.unwrap_err();
        let text = "the server wants a security type that is not supported: 5 (RA2), 30 (Apple Remote \
                    Desktop), 250";
        assert_eq!(error.to_string(), text);
        let error = run_all(&[b"RFB 003.008\n\x02\x12\x05"]).1.unwrap_err();
        assert_eq!(error, RfbError::AnonymousTls("18 (TLS), 5 (RA2)".into()));
        assert!(error.to_string().contains("-SecurityTypes X509Vnc"), "{error}");
        let error = run_all(&[b"RFB 003.003\n\0\0\x01\x01"]).1.unwrap_err();
        assert_eq!(error, RfbError::Security("257".into()));
        let error = run_all(&[b"HTTP/1.1 400 Bad Request\r\n"]).1.unwrap_err();
        assert_eq!(error, RfbError::NotServer("HTTP/1.1 400".into()));
    }

    const VENCRYPT_8: &[u8] = b"RFB 003.008\n\x01\x13";
    const USER: Login = Login { user: true, only_tls: false, user_in_clear: true };

    #[test]
    fn logging_in_over_tls_follows_vencrypt() {
        let begun = b"\0\x02\0";
        let sent = b"RFB 003.008\n\x13\0\x02";
        // X509None.
        let (out, end) = run_all(&[VENCRYPT_8, begun, b"\x01\0\0\x01\x04", b"\x01", &[0; 4], INIT]);
        assert_eq!((out, end), ([&sent[..], b"\0\0\x01\x04\x01"].concat(), init()));
        // X509Vnc, beside TLSVnc.
        let subtypes = b"\x02\0\0\x01\x02\0\0\x01\x05";
        let server: [&[u8]; 7] = [VENCRYPT_8, begun, subtypes, b"\x01", &[0x5a; 16], &[0; 4], INIT];
        let (out, end) = run_all(&server);
        let expected = [&sent[..], b"\0\0\x01\x05", &[0xa5; 16], b"\x01"].concat();
        assert_eq!((out, end), (expected, init()));
        // X509Plain, and Plain without TLS.
        let user = b"\0\0\0\x03\0\0\0\x06annsecret";
        for (subtype, ready) in [(b"\0\0\x01\x06", &b"\x01"[..]), (b"\0\0\x01\0", b"")] {
            let server = [VENCRYPT_8, begun, b"\x01", subtype, ready, &[0; 4], INIT];
            let (out, end) = run_all_with(USER, &server);
            assert_eq!((out, end), ([&sent[..], subtype, user, b"\x01"].concat(), init()));
            let wrong = [&server[..5], &[b"\0\0\0\x01", b"\0\0\0\x08not you!"]].concat();
            let end = run_all_with(USER, &wrong).1;
            assert_eq!(end, Err(RfbError::Password("not you!".into())));
        }
    }

    #[test]
    fn vencrypt_may_be_refused_on_either_side() {
        let error = |parts: &[&[u8]]| run_all(&[&[VENCRYPT_8], parts].concat()).1.unwrap_err();
        assert_eq!(error(&[b"\0\x01"]), RfbError::Vencrypt { major: 0, minor: 1 });
        let refused = error(&[b"\0\x02\x01"]);
        assert_eq!(refused.to_string(), "the server refuses: it does not speak VeNCrypt 0.2");
        let refused = error(&[b"\0\x02\0\x01\0\0\x01\x04\0"]);
        assert_eq!(refused.to_string(), "the server refuses: it cannot begin TLS");
        let anonymous = error(&[b"\0\x02\0\x01\0\0\x01\x02"]);
        assert_eq!(anonymous, RfbError::AnonymousTls("258 (TLSVnc)".into()));
        let strict = Login { only_tls: true, ..USER };
        let plain = run_all_with(strict, &[b"RFB 003.008\n\x02\x01\x02"]).1;
        let list = "1 (None), 2 (VNC Authentication)";
        assert_eq!(plain, Err(RfbError::NotEncrypted(list.into())));
    }

    /// A password alone is answered as ever, before VeNCrypt; with a user, VeNCrypt comes before.
    #[test]
    fn who_names_a_user_prefers_the_types_that_want_one() {
        let server = b"RFB 003.008\n\x02\x02\x13";
        assert_eq!(run_all(&[server]).0, b"RFB 003.008\n\x02");
        assert_eq!(run_all_with(USER, &[server]).0, b"RFB 003.008\n\x13");
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
