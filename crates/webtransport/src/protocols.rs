//! The sub-protocols that a session may speak (draft-ietf-webtrans-http3-15 section 3.3), as structured fields (RFC
//! 9651).

use sfv::{BareItem, Item, ItemSerializer, List, ListEntry, ListSerializer, Parser, StringRef};

/// The field of the request that lists what the client offers, best first.
pub(crate) const AVAILABLE: &str = "wt-available-protocols";
/// The field of the response with the one that the server has chosen.
pub(crate) const CHOSEN: &str = "wt-protocol";

/// The sub-protocols in a list; none if it has anything but strings.
pub(crate) fn parse_list(field: &[u8]) -> Vec<String> {
    let list: Option<List> = Parser::new(field).parse().ok();
    let strings = list.unwrap_or_default().into_iter().map(|entry| match entry {
        ListEntry::Item(item) => text(item),
        ListEntry::InnerList(_) => None,
    });
    strings.collect::<Option<_>>().unwrap_or_default()
}

/// The sub-protocol in an item; `None` if it is no string.
pub(crate) fn parse_item(field: &[u8]) -> Option<String> {
    Parser::new(field).parse().ok().and_then(text)
}

fn text(item: Item) -> Option<String> {
    match item.bare_item {
        BareItem::String(text) => Some(text.into()),
        _ => None,
    }
}

/// The list of these sub-protocols; `None` if there are none. Those that are no ASCII text are left out.
pub(crate) fn list(protocols: &[String]) -> Option<String> {
    let mut list = ListSerializer::new();
    for protocol in protocols.iter().filter_map(|protocol| StringRef::from_str(protocol).ok()) {
        list.bare_item(protocol);
    }
    list.finish()
}

/// The item for this sub-protocol; `None` if it is no ASCII text.
pub(crate) fn item(protocol: &str) -> Option<String> {
    let protocol = StringRef::from_str(protocol).ok()?;
    Some(ItemSerializer::new().bare_item(protocol).finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_items_there_and_back() {
        let protocols = ["moq-lite-04".to_owned(), "a \"quoted\" one".to_owned()];
        let field = list(&protocols).unwrap();
        assert_eq!(field, r#""moq-lite-04", "a \"quoted\" one""#);
        assert_eq!(parse_list(field.as_bytes()), protocols);
        assert_eq!(list(&[]), None);
        assert_eq!(list(&["ä".to_owned()]), None);
        let field = item("moq-00").unwrap();
        assert_eq!(parse_item(field.as_bytes()).as_deref(), Some("moq-00"));
    }

    #[test]
    fn other_types_void_the_field_and_parameters_do_not() {
        assert_eq!(parse_list(br#""a";q=1, "b""#), ["a", "b"]);
        for field in [&br#""a", token"#[..], br#""a", ("b")"#, b"1", b"\"", b""] {
            assert!(parse_list(field).is_empty());
        }
        assert_eq!(parse_item(b"token"), None);
        assert_eq!(parse_item(br#""a";x"#).as_deref(), Some("a"));
    }
}
