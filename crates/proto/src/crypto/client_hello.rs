//! Looks for an extension in a ClientHello that arrives in pieces (RFC 8446 section 4.1.2).

/// The type of the extension with the transport parameters (RFC 9001 section 8.2).
pub const TRANSPORT_PARAMETERS: u16 = 0x39;

/// The type of the extension with the application protocols (RFC 7301 section 3.1).
const PROTOCOLS: u16 = 0x10;

/// The type of the message (RFC 8446 section 4).
const CLIENT_HELLO: u8 = 1;

/// Type and length of a handshake message.
const MESSAGE_HEADER: usize = 4;

/// Bytes before the first vector: the message's type and length, the version, and the random.
const BEFORE_SESSION_ID: usize = MESSAGE_HEADER + 2 + 32;

/// The number that is read next.
#[derive(Debug, Clone, Copy)]
enum NextNumber {
    SessionIdLength,
    CipherSuitesLength,
    CompressionMethodsLength,
    ExtensionsLength,
    /// Type and length of an extension.
    Extension,
}

/// Reads a ClientHello without keeping any of it. Whether the message is well-formed is for TLS to
/// say.
#[derive(Debug)]
pub struct ExtensionSearch {
    wanted: u16,
    found: bool,
    skip: usize,
    next: NextNumber,
    /// How many bytes of the next number are missing, and its value so far.
    missing: u8,
    number: u32,
}

impl ExtensionSearch {
    /// Looks for the extension of this type.
    pub const fn new(wanted: u16) -> Self {
        Self {
            wanted,
            found: false,
            skip: BEFORE_SESSION_ID,
            next: NextNumber::SessionIdLength,
            missing: 1,
            number: 0,
        }
    }

    /// Reads on. Returns the bytes behind the type and length of the extension, if it is found.
    pub fn read<'a>(&mut self, mut bytes: &'a [u8]) -> &'a [u8] {
        while !self.found {
            let skipped = self.skip.min(bytes.len());
            self.skip -= skipped;
            let Some((&byte, rest)) = bytes.get(skipped..).and_then(<[u8]>::split_first) else {
                return &[];
            };
            bytes = rest;
            self.number = self.number << 8 | u32::from(byte);
            self.missing -= 1;
            if self.missing == 0 {
                self.on_number();
            }
        }
        bytes
    }

    fn on_number(&mut self) {
        let number = std::mem::take(&mut self.number);
        let (skip, next, missing) = match self.next {
            NextNumber::SessionIdLength => (number, NextNumber::CipherSuitesLength, 2),
            NextNumber::CipherSuitesLength => (number, NextNumber::CompressionMethodsLength, 1),
            NextNumber::CompressionMethodsLength => (number, NextNumber::ExtensionsLength, 2),
            NextNumber::ExtensionsLength => (0, NextNumber::Extension, 4),
            NextNumber::Extension => {
                self.found = number >> 16 == u32::from(self.wanted);
                (number & 0xffff, NextNumber::Extension, 4)
            }
        };
        (self.skip, self.next, self.missing) = (skip as usize, next, missing);
    }

    /// Whether the extension is in the bytes read so far.
    pub const fn found(&self) -> bool {
        self.found
    }
}

/// The transport parameters in a whole ClientHello; `None` if there are none.
pub fn transport_parameters(hello: &[u8]) -> Option<&[u8]> {
    extension(hello, TRANSPORT_PARAMETERS)
}

/// The contents of an extension of a whole ClientHello; `None` if there is no such extension.
fn extension(hello: &[u8], wanted: u16) -> Option<&[u8]> {
    let mut search = ExtensionSearch::new(wanted);
    let rest = search.read(hello);
    rest.get(..search.skip).filter(|_| search.found)
}

/// The application protocols that the ClientHello at the start of `handshake` offers: no protocol if it lacks
/// the extension. `None` if the message is incomplete, or is no ClientHello.
pub fn protocols(handshake: &[u8]) -> Option<impl Iterator<Item = &[u8]>> {
    let &[ty, high, middle, low] = handshake.first_chunk()?;
    let length = u32::from_be_bytes([0, high, middle, low]) as usize;
    let hello = handshake.get(..MESSAGE_HEADER + length)?;
    if ty != CLIENT_HELLO {
        return None;
    }
    let list = extension(hello, PROTOCOLS).unwrap_or_default();
    let mut rest = list.get(2..).unwrap_or_default();
    Some(std::iter::from_fn(move || {
        let (length, names) = rest.split_first()?;
        let (name, others) = names.split_at_checked((*length).into())?;
        rest = others;
        Some(name)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ClientHello with extensions of these types and lengths in bytes.
    fn hello(extensions: &[(u16, usize)]) -> Vec<u8> {
        let mut hello = vec![0; BEFORE_SESSION_ID];
        hello.extend_from_slice(&[3, 9, 9, 9]);
        hello.extend_from_slice(&[0, 2, 0x13, 0x01]);
        hello.extend_from_slice(&[1, 0]);
        // The length of all extensions does not matter here.
        hello.extend_from_slice(&[0, 0]);
        for (ty, len) in extensions {
            hello.extend_from_slice(&ty.to_be_bytes());
            hello.extend_from_slice(&(*len as u16).to_be_bytes());
            hello.resize(hello.len() + len, 0x39);
        }
        hello
    }

    #[test]
    fn an_extension_is_found_however_the_message_is_cut() {
        let with = hello(&[(0, 300), (0xffa5, 0), (TRANSPORT_PARAMETERS, 5), (1, 1)]);
        let without = hello(&[(0, 300), (0xffa5, 70), (0x3900, 0x39)]);
        for piece in [1, 2, 3, 7, 1000] {
            for (hello, expected) in [(&with, true), (&without, false)] {
                let mut search = ExtensionSearch::new(TRANSPORT_PARAMETERS);
                for bytes in hello.chunks(piece) {
                    search.read(bytes);
                }
                assert_eq!(search.found(), expected, "{piece}");
            }
        }
    }

    #[test]
    fn protocols_are_read_from_a_whole_client_hello_only() {
        let mut whole = hello(&[(0, 300), (PROTOCOLS, 8), (1, 70)]);
        let at = whole.len() - 74 - 8;
        whole[at..at + 8].copy_from_slice(b"\0\x06\x02h3\x02hq");
        let length = (whole.len() - 4) as u32;
        whole[..4].copy_from_slice(&(u32::from(CLIENT_HELLO) << 24 | length).to_be_bytes());
        let names = |bytes: &[u8]| protocols(bytes).map(|p| p.map(<[u8]>::to_vec).collect());
        let both = vec![b"h3".to_vec(), b"hq".to_vec()];
        assert_eq!(names(&whole), Some(both.clone()));
        assert_eq!(names(&[&whole[..], &[7; 9]].concat()), Some(both));
        (0..whole.len()).for_each(|len| assert_eq!(names(&whole[..len]), None, "{len}"));
        // A name that is cut is none.
        whole[at + 5] = 200;
        assert_eq!(names(&whole), Some(vec![b"h3".to_vec()]));
        whole[0] = 2;
        assert_eq!(names(&whole), None);
    }

    #[test]
    fn parameters_are_read_from_a_whole_message_only() {
        let whole = hello(&[(0, 300), (TRANSPORT_PARAMETERS, 5), (1, 70)]);
        assert_eq!(transport_parameters(&whole), Some(&[0x39; 5][..]));
        assert_eq!(transport_parameters(&whole[..whole.len() - 74]), Some(&[0x39; 5][..]));
        (0..whole.len() - 74).for_each(|len| assert_eq!(transport_parameters(&whole[..len]), None));
        assert_eq!(transport_parameters(&hello(&[(TRANSPORT_PARAMETERS, 0)])), Some(&[][..]));
        assert_eq!(transport_parameters(&hello(&[(0xffa5, 5)])), None);
    }
}
