//! Entry point for fuzzing.

use super::header::{self, GroupHeaderError, MAX_HEADER, MAX_NOTICE, Notice, StreamKind};
use super::order::Order;
use std::collections::BTreeSet;

/// Reads `data` as the first bytes of streams of one group, each after a byte with its length, and delivers
/// their messages. Everything that is decoded is encoded again.
pub fn groups(mut data: &[u8]) {
    let (mut order, mut delivered) = (Order::default(), BTreeSet::new());
    while let Some((length, rest)) = data.split_first() {
        let (stream, rest) = rest.split_at(rest.len().min(usize::from(*length)));
        data = rest;
        let mut out = Vec::new();
        match header::decode(stream) {
            Ok((StreamKind::Message(header), size)) => {
                let mut again = Vec::new();
                header.encode(&mut again);
                assert!(again.len() <= size.min(MAX_HEADER), "{header:?}");
                let decoded = header::decode(&again);
                assert_eq!(decoded, Ok((StreamKind::Message(header.clone()), again.len())));
                order.complete(header.number, header.before, 1, (), &mut out);
            }
            Ok((StreamKind::Notice, _)) => {
                let Ok(notice) = Notice::decode(stream) else { continue };
                let mut again = Vec::new();
                notice.encode(&mut again);
                assert!(again.len() <= stream.len().min(MAX_NOTICE), "{notice:?}");
                assert_eq!(Notice::decode(&again), Ok(notice.clone()));
                notice.cancelled.into_iter().for_each(|range| order.cancel(range, &mut out));
            }
            Err(GroupHeaderError::Incomplete | GroupHeaderError::Invalid(_)) => {}
        }
        for (number, ()) in out {
            assert!(delivered.insert(number), "{number} is delivered twice");
        }
        assert_eq!(order.held(), order.held_bytes());
    }
}
