//! Urgent data does not wait behind buffered data, even if some of the latter was lost.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::common::supply::{Reader, failed};
use crate::common::{app, hosts};
use sutura_proto::policy::{ByLoss, First, FirstBy, InTurn, ResendOrderFactory};
use sutura_proto::{
    Algorithm, Connection, Dir, Priority, Scheme, StreamId, TransportConfig, WriteError,
};
use sutura_sim::{App, AppError};

const SECOND: Duration = Duration::from_secs(1);
const BULK_STREAMS: usize = 16;
const POOL: usize = 8 << 20;
const URGENT: usize = 30_000;

/// Keeps streams of low urgency full, and writes an urgent stream after two seconds.
#[derive(Default)]
struct Writer {
    begin: Option<Instant>,
    bulk: Vec<StreamId>,
    /// The number of bytes that were buffered when the urgent stream was written.
    backlog: Option<usize>,
}

impl Writer {
    fn fill(&self, quic: &mut Connection) -> Result<(), AppError> {
        for id in &self.bulk {
            loop {
                match quic.send_stream(*id).write(&[0; 16_384]) {
                    Ok(_) => {}
                    Err(WriteError::Blocked) => break,
                    Err(error) => return Err(failed(error)),
                }
            }
        }
        Ok(())
    }

    fn write_urgent(&mut self, quic: &mut Connection) -> Result<(), AppError> {
        self.backlog = Some(quic.stats().streams.send_buffered);
        let id = quic.open(Dir::Uni).ok_or_else(|| failed("no stream"))?;
        let mut stream = quic.send_stream(id);
        stream.set_priority(Priority::new(0, false).unwrap()).map_err(failed)?;
        if stream.write(&[1; URGENT]) != Ok(URGENT) {
            return Err(failed("no room for what is urgent"));
        }
        stream.finish().map_err(failed)
    }
}

impl App<Connection> for Writer {
    fn poll(&mut self, now: Instant, quic: &mut Connection) -> Result<Option<Instant>, AppError> {
        if quic.is_handshaking() || quic.is_closed() {
            return Ok(None);
        }
        if self.begin.is_none() {
            self.begin = Some(now);
            for _ in 0..BULK_STREAMS {
                let id = quic.open(Dir::Uni).ok_or_else(|| failed("no stream"))?;
                let priority = Priority::new(6, true).unwrap();
                quic.send_stream(id).set_priority(priority).map_err(failed)?;
                self.bulk.push(id);
            }
        }
        self.fill(quic)?;
        let due = self.begin.map(|begin| begin + 2 * SECOND);
        if self.backlog.is_none() && due.is_some_and(|due| due <= now) {
            self.write_urgent(quic)?;
        }
        Ok(due.filter(|due| *due > now))
    }
}

/// How long the urgent stream takes, and how many bytes were buffered when it was written.
fn overtake(seed: u64, approach: Arc<dyn ResendOrderFactory>) -> (Duration, usize) {
    let transport = TransportConfig::default()
        .with_resend_order(approach)
        .with_connection_send_buffer(POOL)
        .with_receive_window(16 << 20)
        .with_congestion(Arc::new(Algorithm::BBR));
    let path = "rate=10mbit delay=50ms queue=100p loss=bern:0.02";
    let (mut network, client, server) =
        hosts(seed, path, &transport, Writer::default(), Reader::default);
    network.flush().unwrap();

    let mut written = None;
    loop {
        assert!(network.step().unwrap() && network.now() < 60 * SECOND);
        let backlog = app::<Writer>(&network, client).and_then(|app| app.backlog);
        written = written.or(backlog.map(|backlog| (network.now(), backlog)));
        // Only the urgent stream ends.
        if let Some(length) = app::<Reader>(&network, server).and_then(|app| app.ended.first()) {
            assert_eq!(*length, URGENT);
            let (at, backlog) = written.unwrap();
            return (network.now() - at, backlog);
        }
    }
}

#[test]
fn an_urgent_stream_overtakes_what_is_buffered() {
    let approaches: [Arc<dyn ResendOrderFactory>; 4] = [
        Arc::new(ByLoss),
        Arc::new(InTurn),
        Arc::new(First),
        Arc::new(FirstBy(Arc::new(Scheme::EPS))),
    ];
    for approach in approaches {
        for seed in 0..3 {
            let (taken, backlog) = overtake(seed, approach.clone());
            // The link needs more than five seconds to send this much.
            assert!(backlog >= POOL * 3 / 4, "{approach:?}, seed {seed}: {backlog} bytes");
            assert!(taken < SECOND, "{approach:?}, seed {seed}: {taken:?}");
        }
    }
}
