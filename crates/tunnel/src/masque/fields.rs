//! Fields by which flows of TCP outlive the connection that carries them, and by which a proxy tells of those who
//! connect to it.

use std::fmt;

use sfv::{
    BareItem, DictSerializer, Dictionary, Integer, Item, ItemSerializer, KeyRef, ListEntry, Parser,
    key_ref,
};

/// The name of the field in requests for TCP and in their responses. A client that can resume flows says
/// [`FlowRequest`]. The response has [`Resumed`] if the flow can be resumed.
pub const FLOW: &str = "sutura-flow";
/// The field of the response to a request for the next TCP connection that says whose it is.
pub const PEER: &str = "sutura-peer";
/// The field of the interim response that says at which address the proxy listens.
pub const LISTENING: &str = "sutura-listening";

const TOKEN: &KeyRef = key_ref("token");
const TAKEN: &KeyRef = key_ref("taken");

/// The secret name of a flow, which its client chooses at random.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct FlowToken(pub [u8; 16]);

impl fmt::Debug for FlowToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FlowToken(…)")
    }
}

impl FlowToken {
    fn of(item: &BareItem) -> Option<Self> {
        let BareItem::ByteSequence(bytes) = item else { return None };
        bytes.as_slice().try_into().ok().map(Self)
    }
}

/// What a client says of a flow that is to outlive its connection.
///
/// A request to begin one names it. If the answer is lost with the connection, the request is made again: the proxy
/// then goes on with the flow of this name if it has one, so that the target sees one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowRequest {
    /// Which flow.
    pub token: FlowToken,
    /// How much of it was taken at this end; see [`Progress`](super::Progress). `None` to begin it.
    pub taken: Option<u64>,
}

impl FlowRequest {
    /// The value of the field of a request.
    #[must_use]
    pub fn to_field(self) -> String {
        let mut dictionary = DictSerializer::new();
        let _ = dictionary.bare_item(TOKEN, &self.token.0[..]);
        if let Some(taken) = self.taken {
            let _ = dictionary.bare_item(TAKEN, integer(taken));
        }
        dictionary.finish().unwrap_or_default()
    }

    /// Reads the field of a request.
    #[must_use]
    pub fn from_field(value: &[u8]) -> Option<Self> {
        let dictionary: Dictionary = Parser::new(value).parse().ok()?;
        let ListEntry::Item(token) = dictionary.get(TOKEN)? else { return None };
        let token = FlowToken::of(&token.bare_item)?;
        let taken = match dictionary.get(TAKEN) {
            None => None,
            Some(ListEntry::Item(taken)) => Some(natural(&taken.bare_item)?),
            Some(ListEntry::InnerList(_)) => return None,
        };
        Some(Self { token, taken })
    }
}

/// What the answer says of a flow that can be resumed: how much was taken at the proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resumed(pub u64);

impl Resumed {
    /// The value of the field of a response.
    #[must_use]
    pub fn to_field(self) -> String {
        ItemSerializer::new().bare_item(integer(self.0)).finish()
    }

    /// Reads the field of a response.
    #[must_use]
    pub fn from_field(value: &[u8]) -> Option<Self> {
        let item: Item = Parser::new(value).parse().ok()?;
        natural(&item.bare_item).map(Self)
    }
}

/// A number for a field, which has 15 digits at most: nearly a petabyte.
fn integer(number: u64) -> Integer {
    Integer::try_from(number).unwrap_or(Integer::MAX)
}

fn natural(item: &BareItem) -> Option<u64> {
    let BareItem::Integer(number) = item else { return None };
    u64::try_from(*number).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_there_and_back() {
        let token = FlowToken([7; 16]);
        for (taken, expected) in [
            (None, "token=:BwcHBwcHBwcHBwcHBwcHBw==:"),
            (Some(12_345_678_901), "token=:BwcHBwcHBwcHBwcHBwcHBw==:, taken=12345678901"),
        ] {
            let request = FlowRequest { token, taken };
            let field = request.to_field();
            assert_eq!(field, expected);
            assert_eq!(FlowRequest::from_field(field.as_bytes()), Some(request));
        }
        assert_eq!(Resumed::from_field(Resumed(9).to_field().as_bytes()), Some(Resumed(9)));
        assert!(!format!("{token:?}").contains('7'));
    }

    #[test]
    fn malformed_fields_are_nothing() {
        for value in ["", "?1", ":AA==:", "x", "token=:AA==:, taken=1", "taken=1", "-1"] {
            let value = value.as_bytes();
            assert_eq!(FlowRequest::from_field(value), None);
            assert_eq!(Resumed::from_field(value), None);
        }
        for taken in ["-1", "?1", "()", "0.5"] {
            let field = format!("token=:BwcHBwcHBwcHBwcHBwcHBw==:, taken={taken}");
            assert_eq!(FlowRequest::from_field(field.as_bytes()), None);
        }
    }
}
