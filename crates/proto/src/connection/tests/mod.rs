//! Two connections talking to each other.

mod ack_frequency;
mod acknowledgement;
mod admission;
mod advisories;
mod amplification;
mod batch;
mod close;
mod compatible;
mod crowd;
mod datagrams;
mod ecn;
mod fec;
mod fec_charges;
mod fec_codes;
mod fec_events;
mod fec_limits;
mod fec_stop;
mod first_answer;
mod forge;
mod frame_work;
mod grease;
mod h3spec;
mod handshake;
mod hostile;
mod identifiers;
mod key_update;
mod late;
mod messages;
mod migration;
mod mixing;
mod mtu;
mod observe;
mod pair;
mod policy;
mod preferred_address;
mod protected_datagrams;
mod refusals;
mod reset;
mod reset_at;
mod retransmission;
mod streams;
mod traffic;
mod version;
mod violations;
mod watch;
mod work;
mod workers;
mod worthwhile;
mod zero_rtt;

use crate::crypto::null::{NullClientConfig, NullServerConfig};
use crate::crypto::rustls::{RustlsClientConfig, RustlsServerConfig};
use crate::crypto::tests::rustls::tls;
use crate::policy::Block;
use crate::wire::coding::put_varint;
use crate::wire::frame::encode_ack;
use crate::wire_format::{
    Carrier, Frame, FrameIter, Repair, RepairHeader, SourceSymbol, StreamFrame, SymbolRef,
};
use crate::work::take_steps;
use crate::{
    Connection, ConnectionError, ConnectionId, DatagramEvent, Dir, Endpoint, EndpointConfig, Event,
    Extensions, FecConfig, MIN_UDP_PAYLOAD, MessageOptions, MessageOutcome, Observation, Priority,
    Protection, ReadError, Scheme, ServerConfig, Side, SocketFeatures, SpaceId, StreamEvent,
    StreamId, TransportConfig, TransportError, TransportErrorCode, Version,
};
use bytes::Bytes;
use crowd::{client_config, server_config};
use forge::{Forgery, PING, cid, encoded, long_id, new_id, padded};
use pair::{MS, Pair, SECOND, fec, honest, null_server, pattern};
use policy::made;
use rustls::CipherSuite;
use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use sutura_random::Rng;
use traffic::tail;

#[test]
fn handshake_and_a_stream_each_way() {
    let mut pair = Pair::connected();
    pair.carry(Side::Client, 100_000);
    pair.carry(Side::Server, 100_000);
    pair.run_for(SECOND);
}

impl Connection {
    /// Processes a frame as if it had arrived in a 1-RTT packet.
    fn inject_frame(&mut self, frame: &Frame<'_>) -> Result<(), TransportError> {
        let dcid = self.handshake.local_cid;
        self.on_frame(Instant::now(), frame, &dcid)
    }
}
