//! The security type VeNCrypt, version 0.2, from the client's side (the community's version of the protocol): TLS
//! around a way to log in, which together are a *subtype*.

use super::security::Login;
use super::wire::{self, Read, Reader};
use super::{RfbError, security};
use bytes::{BufMut as _, BytesMut};

/// The only version that servers still speak.
const VERSION: [u8; 2] = [0, 2];

const PLAIN: u32 = 256;
const TLS_NONE: u32 = 257;
const TLS_VNC: u32 = 258;
const TLS_PLAIN: u32 = 259;
const X509_NONE: u32 = 260;
const X509_VNC: u32 = 261;
const X509_PLAIN: u32 = 262;

/// How to log in within VeNCrypt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Inner {
    /// Everybody may come in.
    None,
    /// VNC Authentication (RFC 6143, section 7.2.2).
    Challenge,
    /// The name of a user and a password.
    User,
}

/// A subtype that was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Subtype {
    number: u32,
    tls: bool,
    inner: Inner,
}

/// The subtypes with which a client can log in, best first. Those of anonymous TLS are not among them: the client
/// does not know whom it talks to.
const SUBTYPES: [Subtype; 4] = [
    Subtype { number: X509_NONE, tls: true, inner: Inner::None },
    Subtype { number: X509_PLAIN, tls: true, inner: Inner::User },
    Subtype { number: X509_VNC, tls: true, inner: Inner::Challenge },
    Subtype { number: PLAIN, tls: false, inner: Inner::User },
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum VencryptState {
    /// The server says its version.
    Version,
    /// The server says whether it speaks ours.
    Acknowledgement,
    /// The server lists its subtypes.
    Subtypes,
    /// The server says whether it is ready for TLS.
    Ready(Inner),
}

/// What is next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VencryptStep {
    /// More messages of VeNCrypt.
    Onward,
    /// TLS, and then this way to log in.
    Tls(Inner),
    /// This way to log in, without TLS.
    Clear(Inner),
}

/// The choice of a subtype.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Vencrypt(VencryptState);

impl Vencrypt {
    pub(super) fn new() -> Self {
        Self(VencryptState::Version)
    }

    /// One message of the server; `None` if it has not come entirely.
    pub(super) fn step(
        &mut self,
        login: Login,
        input: &mut BytesMut,
        out: &mut Vec<u8>,
    ) -> Result<Option<VencryptStep>, RfbError> {
        match self.0 {
            VencryptState::Version => Ok(wire::take(input, version)?.map(|()| {
                out.extend(VERSION);
                self.go(VencryptState::Acknowledgement)
            })),
            VencryptState::Acknowledgement => {
                let Some(refused) = wire::take(input, |reader| reader.u8())? else {
                    return Ok(None);
                };
                if refused != 0 {
                    return Err(RfbError::Refused("it does not speak VeNCrypt 0.2".into()));
                }
                Ok(Some(self.go(VencryptState::Subtypes)))
            }
            VencryptState::Subtypes => {
                let Some(offered) = wire::take(input, subtypes)? else { return Ok(None) };
                let Subtype { number, tls, inner } = choose(login, &offered)?;
                out.put_u32(number);
                Ok(Some(if tls {
                    self.go(VencryptState::Ready(inner))
                } else {
                    VencryptStep::Clear(inner)
                }))
            }
            VencryptState::Ready(inner) => match wire::take(input, |reader| reader.u8())? {
                None => Ok(None),
                Some(0) => Err(RfbError::Refused("it cannot begin TLS".into())),
                Some(_) => Ok(Some(VencryptStep::Tls(inner))),
            },
        }
    }

    fn go(&mut self, state: VencryptState) -> VencryptStep {
        self.0 = state;
        VencryptStep::Onward
    }
}

fn version(reader: &mut Reader<'_>) -> Read<()> {
    let [major, minor] = reader.array()?;
    // The lower of both versions counts.
    if [major, minor] < VERSION {
        return Err(RfbError::Vencrypt { major, minor }.into());
    }
    Ok(())
}

fn subtypes(reader: &mut Reader<'_>) -> Read<Vec<u32>> {
    let count = reader.u8()?;
    let (numbers, _) = reader.bytes(4 * usize::from(count))?.as_chunks();
    Ok(numbers.iter().map(|&number| u32::from_be_bytes(number)).collect())
}

/// The best subtype of those that a server offers.
fn choose(login: Login, offered: &[u32]) -> Result<Subtype, RfbError> {
    let usable = |subtype: &Subtype| {
        (subtype.inner != Inner::User || login.user)
            && (subtype.tls || login.user_in_clear && !login.only_tls)
    };
    let known = || SUBTYPES.into_iter().filter(|subtype| offered.contains(&subtype.number));
    known().find(usable).ok_or_else(|| {
        let list = security::describe_with(offered, name);
        let is_anonymous = |number: &u32| (TLS_NONE..=TLS_PLAIN).contains(number);
        match known().next() {
            Some(Subtype { tls: true, .. }) => RfbError::UserWanted,
            Some(_) if login.only_tls => RfbError::NotEncrypted(list),
            Some(_) if login.user => RfbError::UserInClear,
            Some(_) => RfbError::UserWanted,
            None if offered.iter().any(is_anonymous) => RfbError::AnonymousTls(list),
            None => RfbError::Security(list),
        }
    })
}

/// The name of a subtype.
const fn name(number: u32) -> Option<&'static str> {
    Some(match number {
        PLAIN => "Plain",
        TLS_NONE => "TLSNone",
        TLS_VNC => "TLSVnc",
        TLS_PLAIN => "TLSPlain",
        X509_NONE => "X509None",
        X509_VNC => "X509Vnc",
        X509_PLAIN => "X509Plain",
        263 => "TLSSASL",
        264 => "X509SASL",
        _ => return security::name(number),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    const EVERYTHING: Login = Login { user: true, only_tls: false, user_in_clear: true };

    #[test]
    fn the_best_subtype_is_chosen() {
        let number = |login, offered: &[u32]| choose(login, offered).map(|chosen| chosen.number);
        let all: Vec<u32> = (PLAIN..=X509_PLAIN).collect();
        assert_eq!(number(EVERYTHING, &all), Ok(X509_NONE));
        assert_eq!(number(EVERYTHING, &[PLAIN, X509_VNC, X509_PLAIN]), Ok(X509_PLAIN));
        assert_eq!(number(EVERYTHING, &[PLAIN]), Ok(PLAIN));
        let nobody = Login::default();
        assert_eq!(number(nobody, &[PLAIN, X509_PLAIN, X509_VNC]), Ok(X509_VNC));
        assert_eq!(number(nobody, &[X509_PLAIN]), Err(RfbError::UserWanted));
        assert_eq!(number(nobody, &[PLAIN]), Err(RfbError::UserWanted));
        let far = Login { user_in_clear: false, ..EVERYTHING };
        assert_eq!(number(far, &[PLAIN]), Err(RfbError::UserInClear));
        let strict = Login { only_tls: true, ..EVERYTHING };
        assert_eq!(number(strict, &[PLAIN]), Err(RfbError::NotEncrypted("256 (Plain)".into())));
        let error = number(EVERYTHING, &[2, TLS_VNC, TLS_NONE]).unwrap_err();
        let list = "2 (VNC Authentication), 258 (TLSVnc), 257 (TLSNone)";
        assert_eq!(error, RfbError::AnonymousTls(list.into()));
        assert_eq!(number(EVERYTHING, &[264]), Err(RfbError::Security("264 (X509SASL)".into())));
        assert_eq!(number(EVERYTHING, &[]), Err(RfbError::Security(String::new())));
    }

    proptest! {
        /// Whatever a server offers, no password leaves in the clear unless that is allowed, and a client that
        /// wants TLS never goes on without.
        #[test]
        fn no_offer_makes_a_client_less_careful(
            offered in vec(0..300_u32, 0..9),
            (user, only_tls, user_in_clear) in any::<(bool, bool, bool)>(),
        ) {
            let login = Login { user, only_tls, user_in_clear };
            if let Ok(Subtype { number, tls, inner }) = choose(login, &offered) {
                prop_assert!(offered.contains(&number));
                prop_assert!(tls || !only_tls && user_in_clear);
                prop_assert!(inner != Inner::User || user);
            }
        }
    }
}
