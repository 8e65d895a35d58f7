//! Two connections talking to each other.

mod ack_frequency;
mod acknowledgement;
mod admission;
mod advisories;
mod amplification;
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
mod preferred_address;
mod protected_datagrams;
mod refusals;
mod reset;
mod reset_at;
mod retransmission;
mod streams;
mod version;
mod violations;
mod work;
mod worthwhile;
mod zero_rtt;

use crate::wire_format::Frame;
use crate::{Connection, Dir, Side, TransportError};
use pair::{Pair, pattern};
use std::time::Duration;

#[test]
fn handshake_and_a_stream_each_way() {
    let mut pair = Pair::connected();
    let data = pattern(100_000);
    pair.send(Side::Client, Dir::Uni, &data);
    assert_eq!(pair.accept_and_read(Side::Server, Dir::Uni), data);
    pair.send(Side::Server, Dir::Uni, &data);
    assert_eq!(pair.accept_and_read(Side::Client, Dir::Uni), data);
    pair.run_for(Duration::from_secs(1));
}

impl Connection {
    /// Processes a frame as if it had arrived in a 1-RTT packet.
    fn inject_frame(&mut self, frame: &Frame<'_>) -> Result<(), TransportError> {
        let dcid = self.handshake.local_cid;
        self.on_frame(std::time::Instant::now(), frame, &dcid)
    }
}
