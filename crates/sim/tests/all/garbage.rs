//! A server that receives garbage.

use std::time::Instant;

use crate::common::{address, tls};
use sutura_proto::TransportConfig;
use sutura_random::Rng;
use sutura_sim::{BulkServer, Host, Node};

/// A datagram that looks like a client's first one, but cannot be decrypted.
fn initial(rng: &mut Rng) -> Vec<u8> {
    let mut datagram: Vec<u8> = rng.bytes(1200);
    // An Initial packet of version 1 with connection IDs of eight bytes, no token, and a length
    // that covers the rest of the datagram.
    datagram[..6].copy_from_slice(&[0xc0, 0, 0, 0, 1, 8]);
    datagram[14] = 8;
    datagram[23] = 0;
    let length = 0x4000 | (1200 - 26u16);
    datagram[24..26].copy_from_slice(&length.to_be_bytes());
    datagram
}

#[test]
fn garbage_leaves_nothing_behind() {
    let config = tls::our_server(&TransportConfig::default());
    let mut host = Host::server(config, Box::new(|| Box::new(BulkServer::default())), 1);
    let mut rng = Rng::new(1);
    let now = Instant::now();
    let mut out = Vec::new();
    for _ in 0..2000 {
        host.receive(now, address(1), None, &mut initial(&mut rng));
        assert!(host.transmit(now, &mut out).is_none(), "nothing is sent to who may not be there");
        assert_eq!((host.endpoint_len(), host.connections().count()), (0, 0));
    }
    assert_eq!(host.next_timeout(), None);
}
