//! Pages over HTTP/3 in the simulator: a client that loads them, a server that makes up what it is
//! asked for, and a count of what erasure coding protects.

mod browser;
mod coverage;
mod ideal;
mod site;

pub use browser::{Arrival, Browser, Loaded, Request};
pub use coverage::{Coverage, StreamBytes};
pub use ideal::{Phase, ideal};
pub use site::Site;

use sutura_h3 as h3;
use sutura_proto::{Event, StreamEvent};
use sutura_sim::{AppError, Pattern};

/// Where a resource is: its number, which decides its bytes, and how many they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    number: u64,
    bytes: u64,
}

impl Place {
    fn path(self) -> String {
        format!("/{}/{}", self.number, self.bytes)
    }

    fn parse(path: &[u8]) -> Option<Self> {
        let path = std::str::from_utf8(path).ok()?;
        let (number, bytes) = path.strip_prefix('/')?.split_once('/')?;
        Some(Self { number: number.parse().ok()?, bytes: bytes.parse().ok()? })
    }

    fn pattern(self) -> Pattern {
        Pattern::new(self.number)
    }
}

/// Tells HTTP/3 what happened to a stream.
pub(crate) fn pass_on(http: &mut h3::Connection, event: &Event) {
    match *event {
        Event::Stream(StreamEvent::Readable { id }) => http.readable(id),
        Event::Stream(StreamEvent::Writable { id }) => http.writable(id),
        Event::Stream(StreamEvent::Stopped { id, code }) => http.stopped(id, h3::Code(code)),
        _ => {}
    }
}

pub(crate) fn unexpected(what: &str, why: impl std::fmt::Display) -> AppError {
    AppError(format!("{what}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_from_its_path() {
        let place = Place { number: 3, bytes: 35_000 };
        assert_eq!(place.path(), "/3/35000");
        assert_eq!(Place::parse(b"/3/35000"), Some(place));
        for path in ["", "/", "/3", "3/4", "/3/4/5", "/x/4", "/3/-4"] {
            assert_eq!(Place::parse(path.as_bytes()), None, "{path}");
        }
    }
}
