//! No connection keeps an endpoint to itself: the driver's work in one turn is bounded, no matter how much
//! arrives or is to be sent. The runtime has one thread, on which tasks take turns.

use crate::common::memory::{Memory, MemorySocket};
use crate::common::{client_of, configs, echo, exchange, pattern, within};
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use sutura::policy::FixedRate;
use sutura::{
    AsyncUdpSocket, Endpoint, EndpointConfig, Received, ServerConfig, Transmit, TransportConfig,
};

/// Batches that a driver receives in one turn; `RECEIVE_BATCHES` of the driver.
const BATCHES: usize = 16;
/// Datagrams after which a driver receives no further batch in a turn.
const DATAGRAMS: usize = 1024;
/// Batches that one connection sends in one turn.
const SENT: usize = 8;
/// Answers to datagrams that belong to no connection, sent in one turn.
const ANSWERS: usize = 64;
/// The source address of the flood.
const FLOOD: ([u8; 4], u16) = ([192, 0, 2, 9], 9);

/// How often a socket has acted since another task had its turn, and the most often so far.
#[derive(Debug, Default)]
struct Turn {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Turn {
    /// Counts `n`; returns how many there were in this turn.
    fn count(&self, n: usize) -> usize {
        let now = self.now.fetch_add(n, Ordering::Relaxed) + n;
        self.most.fetch_max(now, Ordering::Relaxed);
        now
    }
}

/// A socket on which there is always another datagram.
#[derive(Debug)]
struct Flooded {
    socket: MemorySocket,
    junk: Vec<u8>,
    /// How many of them are received at once.
    batch: usize,
    batches: Turn,
    datagrams: Turn,
    answers: Turn,
}

impl Flooded {
    /// Another task has its turn.
    fn next_turn(&self) {
        for turn in [&self.batches, &self.datagrams, &self.answers] {
            turn.now.store(0, Ordering::Relaxed);
        }
    }
}

impl AsyncUdpSocket for Flooded {
    fn poll_send(&self, cx: &mut Context<'_>, transmit: &mut Transmit<'_>) -> Poll<io::Result<()>> {
        self.answers.count(usize::from(transmit.destination == FLOOD.into()));
        self.socket.poll_send(cx, transmit)
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        each: &mut dyn FnMut(Received, &mut [u8]),
    ) -> Poll<io::Result<usize>> {
        if self.batches.count(1) > 10 * BATCHES {
            // A driver that gets this far would never stop.
            return Poll::Pending;
        }
        let received = match self.socket.poll_recv(cx, each) {
            Poll::Ready(Ok(received)) => received,
            Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            Poll::Pending => 0,
        };
        for _ in 0..self.batch {
            let remote = FLOOD.into();
            each(Received::new(remote), &mut self.junk.clone());
        }
        self.datagrams.count(received + self.batch);
        Poll::Ready(Ok(received + self.batch))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }
}

/// Lets all other tasks have a turn.
async fn yield_now() {
    let mut yielded = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

fn open(socket: Arc<dyn AsyncUdpSocket>, config: Option<ServerConfig>) -> Endpoint {
    Endpoint::with_abstract_socket(EndpointConfig::default(), config, socket).unwrap()
}

#[tokio::test]
async fn a_flood_leaves_other_connections_and_tasks_their_turn() {
    // Nothing at all, a byte, a packet that is answered by Version Negotiation, and one by a stateless reset.
    let junk = [vec![], vec![0x40], vec![0xff; 1200], vec![0x41; 100]];
    for (junk, batch) in junk.iter().flat_map(|junk| [(junk, 1), (junk, 500)]) {
        let memory = Memory::default();
        let (config, trusting) = configs(b"echo");
        let socket = Arc::new(Flooded {
            socket: memory.socket(1),
            junk: junk.clone(),
            batch,
            batches: Turn::default(),
            datagrams: Turn::default(),
            answers: Turn::default(),
        });
        echo(open(socket.clone(), Some(config)));
        let client = client_of(trusting, open(Arc::new(memory.socket(2)), None));
        let flooded = socket.clone();
        let other = tokio::spawn(async move {
            loop {
                flooded.next_turn();
                yield_now().await;
            }
        });
        within(async {
            let address = socket.socket.address;
            let connection = client.connect(address, "localhost").unwrap().await.unwrap();
            exchange(connection, pattern(20_000), None).await;
        })
        .await;
        other.abort();
        let [batches, datagrams, answers] = [&socket.batches, &socket.datagrams, &socket.answers]
            .map(|turn| turn.most.load(Ordering::Relaxed));
        assert!(batches <= BATCHES, "{} bytes: {batches} batches", junk.len());
        assert!(datagrams < DATAGRAMS + batch + 1, "{} bytes: {datagrams}", junk.len());
        assert!(batches == BATCHES || datagrams >= DATAGRAMS, "it was no flood");
        assert!(answers <= ANSWERS, "{} bytes: {answers} answers", junk.len());
        assert_eq!(answers > 0, junk.len() >= 100);
    }
}

/// Notes where each batch goes.
#[derive(Debug)]
struct Noting {
    socket: MemorySocket,
    destinations: Arc<Mutex<Vec<SocketAddr>>>,
}

impl AsyncUdpSocket for Noting {
    fn poll_send(&self, cx: &mut Context<'_>, transmit: &mut Transmit<'_>) -> Poll<io::Result<()>> {
        self.destinations.lock().unwrap().push(transmit.destination);
        self.socket.poll_send(cx, transmit)
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        each: &mut dyn FnMut(Received, &mut [u8]),
    ) -> Poll<io::Result<usize>> {
        self.socket.poll_recv(cx, each)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }
}

#[tokio::test]
async fn a_connection_with_much_to_send_leaves_others_their_turn() {
    let memory = Memory::default();
    let ((config, trusting), servers) = (configs(b"echo"), [1, 2].map(|port| memory.socket(port)));
    let addresses = [servers[0].address, servers[1].address];
    servers.into_iter().for_each(|socket| echo(open(Arc::new(socket), Some(config.clone()))));
    let destinations = Arc::<Mutex<Vec<SocketAddr>>>::default();
    let socket = Noting { socket: memory.socket(3), destinations: destinations.clone() };
    // A rate at which a connection may send everything at once.
    let transport =
        TransportConfig::default().with_congestion(Arc::new(FixedRate::new(1 << 36).unwrap()));
    let client = client_of(trusting.transport(transport), open(Arc::new(socket), None));
    let mut streams = Vec::new();
    for address in addresses {
        let connection = client.connect(address, "localhost").unwrap().await.unwrap();
        let (send, recv) = connection.open_bi().await.unwrap();
        streams.push((connection, send, recv));
    }
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    destinations.lock().unwrap().clear();
    // Nothing is sent before both connections have data to send: no other task runs in between.
    let data = pattern(60_000);
    for (_, send, _) in &mut streams {
        send.write_all(&data).await.unwrap();
        send.finish().unwrap();
    }
    for (_, _, recv) in &mut streams {
        assert!(within(recv.read_to_end(100_000)).await.unwrap() == data);
    }
    let destinations = destinations.lock().unwrap();
    let runs: Vec<usize> = destinations.chunk_by(|a, b| a == b).map(<[_]>::len).collect();
    assert_eq!(runs[..4], [SENT; 4], "{runs:?}");
}
