//! HTTP datagrams that come before, while and after there is an exchange for them.

use std::collections::VecDeque;

use bytes::Bytes;
use sutura_proto::{Dir, Side, StreamId};

use super::Feed;
use crate::{Code, Config, Connection, MAX_QUEUED_DATAGRAMS};

/// A request in one frame, of static fields.
const REQUEST: &[u8] = &[1, 11, 0, 0, 0xd1, 0xd7, 0xc1, 0x50, 0x04, b'h', b'o', b's', b't'];
/// Requests that may come, in their order.
const REQUESTS: usize = 4;

/// Feeds a server. Each step is a byte: what happens, in its upper two bits, and to which request, in the next two; the
/// lower bits are the length of a datagram, whose bytes follow. Datagrams of a request are read in the order in which
/// they came, the newest if they are too many, and none comes for a request that is over.
pub fn datagrams(data: &[u8]) {
    let mut feed = Feed::new(Side::Server, usize::MAX);
    let mut connection = Connection::server(Config::default().with_enable_datagrams(true));
    let mut expected: [VecDeque<Bytes>; REQUESTS] = Default::default();
    let mut is_over = [false; REQUESTS];
    let mut begun = 0;
    let mut rest = data;
    while let [step, after @ ..] = rest {
        rest = after;
        let index = usize::from(step >> 4 & 3);
        let request = |index| StreamId::new(Side::Client, Dir::Bi, index as u64);
        match step >> 6 {
            0 => {
                let (payload, after) = rest.split_at(usize::from(step & 15).min(rest.len()));
                rest = after;
                feed.datagrams.push_back([&[index as u8], payload].concat().into());
                let all = &mut expected[index];
                all.push_back(Bytes::copy_from_slice(payload));
                if is_over[index] || all.len() > MAX_QUEUED_DATAGRAMS {
                    all.pop_front();
                }
            }
            1 if begun < REQUESTS => {
                // Its end is still to come.
                feed.promise(request(begun), &[REQUEST, &[0]].concat());
                feed.arrive(request(begun), 0..REQUEST.len());
                begun += 1;
            }
            2 if index < begun => {
                assert_eq!(connection.recv_datagram(request(index)), expected[index].pop_front());
            }
            3 if connection.cancel(&mut feed, request(index), Code::REQUEST_CANCELLED).is_ok() => {
                is_over[index] = true;
                expected[index].clear();
            }
            _ => {}
        }
        assert_eq!(connection.process(&mut feed), Ok(()));
        while connection.poll_event().is_some() {}
    }
    let waiting = expected.iter().flatten().map(Bytes::len).sum::<usize>();
    assert!(connection.datagram_memory() >= waiting);
}
