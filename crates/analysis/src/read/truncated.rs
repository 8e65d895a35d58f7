//! Repairs a document that was cut off.

/// The nesting depth of an event: the number of brackets around it.
const DEEPEST: usize = 4;

/// Cuts a document after its last complete event (or other bracketed value at least as far out),
/// and closes the brackets that are still open there. `None` if there is none.
pub(super) fn close(text: &str) -> Option<String> {
    // The outermost open brackets, and the number of all open ones.
    let mut open: Vec<u8> = Vec::with_capacity(DEEPEST);
    let mut depth = 0usize;
    let (mut in_string, mut escaped) = (false, false);
    let mut cut = None;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' | b'[' => {
                if depth < DEEPEST {
                    open.push(byte);
                }
                depth += 1;
            }
            b'}' | b']' => {
                depth = depth.checked_sub(1)?;
                open.truncate(depth);
                if (1..=DEEPEST).contains(&depth) {
                    cut = Some((at + 1, depth));
                }
            }
            _ => {}
        }
    }
    let (end, depth) = cut?;
    // Nothing this far out was closed after the cut, so the open brackets are still those at the
    // cut.
    let closing = open.get(..depth)?.iter().rev().map(|b| if *b == b'{' { '}' } else { ']' });
    let mut closed = text.get(..end)?.to_owned();
    closed.extend(closing);
    Some(closed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_ends_after_the_last_whole_event() {
        let text = r#"{"traces":[{"x":"}]\"","events":[{"a":[{}]},{"b":1},{"frames":[{},{"#;
        let closed = r#"{"traces":[{"x":"}]\"","events":[{"a":[{}]},{"b":1}]}]}"#;
        assert_eq!(close(text).as_deref(), Some(closed));
        let arrays = r#"{"traces":[{"events":[[1,"a",{}],[2,"b",{"#;
        assert_eq!(close(arrays).as_deref(), Some(r#"{"traces":[{"events":[[1,"a",{}]]}]}"#));
    }

    #[test]
    fn what_is_closed_stays_closed() {
        let text = r#"{"traces":[{"events":[{"a":1}],"vantage_point":{"type":"cl"#;
        assert_eq!(close(text).as_deref(), Some(r#"{"traces":[{"events":[{"a":1}]}]}"#));
        let text = r#"{"traces":[{"events":[{"a":1}]}],"#;
        assert_eq!(close(text).as_deref(), Some(r#"{"traces":[{"events":[{"a":1}]}]}"#));
    }

    #[test]
    fn without_a_whole_event_there_is_nothing() {
        for text in ["", "{", r#"{"traces":[{"events":[{"time":1"#, "}", "]]"] {
            assert_eq!(close(text), None, "{text}");
        }
    }
}
