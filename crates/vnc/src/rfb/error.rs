//! Errors in the messages of a peer.

use crate::framebuffer::TooLarge;
use crate::rect::Rect;

/// The peer breaks the protocol, does not let us in, or needs something that is not supported. The connection
/// is of no more use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RfbError {
    /// The first bytes of a server are not a version of the protocol.
    #[error("not an RFB server: it begins with \"{0}\"")]
    NotServer(String),
    /// The first bytes of a viewer are not a version of the protocol.
    #[error("not an RFB viewer: it begins with \"{0}\"")]
    NotViewer(String),
    /// The version of the protocol is older than 3.3.
    #[error("version {0} of RFB is not supported")]
    Version(String),
    /// A server offers only security types that are not supported, which are listed.
    #[error("the server wants a security type that is not supported: {0}")]
    Security(String),
    /// A server offers only TLS without a certificate, or other ways that are not supported; all are listed.
    #[error(
        "the server encrypts without showing a certificate ({0}), so that anybody could pass for it; this is not \
         supported. Have it show one (TigerVNC: -SecurityTypes X509Vnc -X509Cert FILE -X509Key FILE; QEMU: \
         tls-creds-x509), or listen on its own machine only, without TLS (TigerVNC: -localhost -SecurityTypes \
         VncAuth)"
    )]
    AnonymousTls(String),
    /// A server does not offer TLS, without which the client does not go on; what it offers is listed.
    #[error("the server does not encrypt: it offers {0}")]
    NotEncrypted(String),
    /// A server wants the name and the password of a user, which the client does not have.
    #[error("the server wants the name and the password of a user")]
    UserWanted,
    /// A server wants the password of a user without encryption.
    #[error(
        "the server wants the password of a user without encryption, and is not on this machine"
    )]
    UserInClear,
    /// A server's version of VeNCrypt is not supported.
    #[error("version {major}.{minor} of VeNCrypt is not supported")]
    Vencrypt {
        /// The first part of the version.
        major: u8,
        /// The second part of the version.
        minor: u8,
    },
    /// A viewer chose a security type that it was not offered.
    #[error("the viewer chose the security type {0}, which was not offered")]
    NotOffered(u8),
    /// A server refuses the connection, for this reason.
    #[error("the server refuses: {0}")]
    Refused(String),
    /// A server does not accept the answer to its challenge, for this reason.
    #[error("the server does not accept the password: {0}")]
    Password(String),
    /// A pixel format is not usable.
    #[error("unusable pixel format: {0}")]
    PixelFormat(&'static str),
    /// A part of a message has a length above its bound.
    #[error("{what} of length {length} is larger than {max}")]
    TooLong {
        /// The part that is too long.
        what: &'static str,
        /// The length that the peer gave.
        length: u64,
        /// The bound.
        max: u64,
    },
    /// A rectangle is not within the screen.
    #[error("a rectangle {rect} is outside the screen of {width}x{height}")]
    OutsideScreen {
        /// The rectangle.
        rect: Rect,
        /// The width of the screen.
        width: u16,
        /// The height of the screen.
        height: u16,
    },
    /// A part of a rectangle is not within it.
    #[error("a subrectangle {part} is outside its rectangle of {width}x{height}")]
    OutsideRectangle {
        /// The part, from the corner of the rectangle.
        part: Rect,
        /// The width of the rectangle.
        width: u16,
        /// The height of the rectangle.
        height: u16,
    },
    /// The subrectangles of an RRE rectangle cover it too often.
    #[error("the subrectangles of a rectangle {0} paint over each other too often")]
    Overdraw(Rect),
    /// An encoding that was not asked for.
    #[error("unknown encoding {0}")]
    Encoding(i32),
    /// Bits of a Hextile tile that the encoding does not have.
    #[error("unknown kind of Hextile tile {0}")]
    Tile(u8),
    /// A type of message that was not asked for.
    #[error("unknown message type {kind} from the {peer}")]
    Message {
        /// The peer that sent it.
        peer: &'static str,
        /// The number of the type.
        kind: u8,
    },
    /// The screen is too large.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// A viewer supports no message about a new size of the screen.
    #[error("the viewer does not support that the screen changes its size")]
    CannotResize,
}
