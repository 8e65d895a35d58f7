//! Entry points for what programs and the ends of a tunnel say.

use bytes::{Bytes, BytesMut};

use crate::local::socks::{Greeting, MAX_MESSAGE, SocksRequest, read_udp, write_udp};
use crate::masque::{Cause, FlowRequest, Resumed, read_datagram, read_progress, write_progress};

/// A program that speaks to the SOCKS server, in pieces whose size is the first byte. A decision comes before more than
/// a message is held, and a header of a datagram that is understood is written as it was read.
pub fn socks(data: &[u8]) {
    let [step, rest @ ..] = data else { return };
    let (mut input, mut greeted) = (BytesMut::new(), false);
    for piece in rest.chunks(usize::from(*step) + 1) {
        input.extend_from_slice(piece);
        if !greeted {
            match Greeting::take(&mut input) {
                Ok(Some(_)) => greeted = true,
                Ok(None) => {
                    assert!(input.len() < MAX_MESSAGE);
                    continue;
                }
                Err(_) => break,
            }
        }
        match SocksRequest::take(&mut input) {
            Ok(Some(_)) | Err(_) => break,
            Ok(None) => assert!(input.len() < MAX_MESSAGE),
        }
    }
    if let Some((target, _)) = read_udp(rest) {
        let mut header = Vec::new();
        write_udp(&mut header, &target);
        assert_eq!(read_udp(&header), Some((target, header.len())));
    }
}

/// The fields, capsules and datagrams of a peer. Those that are understood are written as they were read.
pub fn masque(data: &[u8]) {
    let _ = Cause::from_field(data);
    if let Some(request) = FlowRequest::from_field(data) {
        assert_eq!(FlowRequest::from_field(request.to_field().as_bytes()), Some(request));
    }
    if let Some(resumed) = Resumed::from_field(data) {
        assert_eq!(Resumed::from_field(resumed.to_field().as_bytes()), Some(resumed));
    }
    let bytes = Bytes::copy_from_slice(data);
    if let Some(all) = read_progress(&bytes)
        && all.len() <= crate::masque::MAX_PROGRESS
    {
        assert_eq!(read_progress(&write_progress(&all).value), Some(all));
    }
    assert!(read_datagram(bytes).is_none_or(|payload| payload.len() < data.len()));
}
