//! Relays between real sockets on the loopback interface. The tests check counts, order and which
//! datagrams are lost, but never times.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, also in its helpers")]

use std::collections::HashSet;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use quinn_udp::EcnCodepoint;
use sutura_link::{DropCause, Fate, Link, LinkConfig};
use sutura_relay::{Config, Relay, Seen, Stats, Tap, Way};

/// The time after which a test is considered to hang. Nothing takes that long on any machine.
const PATIENCE: Duration = Duration::from_secs(300);

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

fn local(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

fn relay(to: &UdpSocket, up: &str, down: &str, seed: u64) -> Relay {
    let mut config = Config::new(local(0), to.local_addr().unwrap()).seed(seed);
    config.up = up.parse().unwrap();
    config.down = down.parse().unwrap();
    Relay::start(&config).unwrap()
}

fn wait_for(relay: &Relay, what: impl Fn(&Stats) -> bool) -> Stats {
    let start = Instant::now();
    loop {
        let stats = relay.stats();
        if what(&stats) {
            return stats;
        }
        assert!(start.elapsed() < PATIENCE, "{stats:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Sends `count` numbered datagrams, few enough at a time for every socket buffer, and returns the
/// numbers that arrived.
fn send_numbers(relay: &Relay, client: &UdpSocket, server: &UdpSocket, count: u32) -> Vec<u32> {
    let mut arrived = Vec::new();
    for first in (0..count).step_by(32) {
        let before = relay.stats();
        let batch = first..count.min(first + 32);
        for n in batch.clone() {
            client.send_to(&n.to_be_bytes(), relay.local_addr()).unwrap();
        }
        let sent = before.up.sent + batch.len() as u64;
        let stats = wait_for(relay, |s| s.up.sent == sent && s.forwarded == s.up.delivered);
        for _ in before.up.delivered..stats.up.delivered {
            let mut data = [0; 16];
            let length = server.recv(&mut data).unwrap();
            arrived.push(u32::from_be_bytes(data[..length].try_into().unwrap()));
        }
    }
    arrived
}

#[test]
fn answers_find_their_way_back_to_each_client() {
    let server = socket();
    let relay = relay(&server, "delay=1ms", "delay=1ms", 1);
    let clients = [socket(), socket(), socket()];
    for (n, client) in clients.iter().enumerate() {
        client.send_to(&[n as u8; 100], relay.local_addr()).unwrap();
    }
    let mut addresses = HashSet::new();
    for _ in &clients {
        let mut data = [0; 200];
        let (length, from) = server.recv_from(&mut data).unwrap();
        server.send_to(&data[..length], from).unwrap();
        addresses.insert(from);
    }
    assert_eq!(addresses.len(), clients.len());
    for (n, client) in clients.iter().enumerate() {
        let mut data = [0; 200];
        let (length, from) = client.recv_from(&mut data).unwrap();
        assert_eq!((&data[..length], from), (&[n as u8; 100][..], relay.local_addr()));
    }
    let stats = relay.stop();
    assert_eq!((stats.up.delivered, stats.down.delivered, stats.forwarded), (3, 3, 6));
    assert_eq!((stats.clients, stats.clients_seen, stats.refused, stats.unsent), (3, 3, 0, 0));
}

#[test]
fn a_link_that_only_delays_keeps_order_and_loses_nothing() {
    let (server, client) = (socket(), socket());
    let relay = relay(&server, "delay=2ms rate=100mbit", "", 1);
    let arrived = send_numbers(&relay, &client, &server, 500);
    assert_eq!(arrived, (0..500).collect::<Vec<_>>());
    assert_eq!(relay.stats().up.lost, 0);
}

#[test]
fn the_seed_decides_which_datagrams_are_lost() {
    let spec = "loss=ge:0.05,0.25,0.9,0.01 delay=1ms";
    let config: LinkConfig = spec.parse().unwrap();
    for seed in [1, 2] {
        let mut link = Link::new(&config, seed);
        let survivors: Vec<u32> = (0..400)
            .filter(|_| matches!(link.send(Duration::ZERO, 4), Fate::Delivered(_)))
            .collect();
        assert!((200..400).contains(&survivors.len()));
        let (server, client) = (socket(), socket());
        let relay = relay(&server, spec, "", seed);
        assert_eq!(send_numbers(&relay, &client, &server, 400), survivors);
        assert_eq!(relay.stop().up.lost, 400 - survivors.len() as u64);
    }
}

#[test]
fn the_two_directions_do_not_share_their_luck() {
    let config = Config::new(local(0), local(9)).seed(3);
    assert_ne!(config.up_seed(), config.down_seed());
    // Nor do the directions of adjacent seeds share a seed.
    assert_ne!(config.down_seed(), config.clone().seed(4).up_seed());
}

#[test]
fn duplicates_arrive_twice_and_only_the_damaged_one_is_damaged() {
    let (server, client) = (socket(), socket());
    let relay = relay(&server, "duplicate=1 corrupt=0.5", "", 5);
    let mut damaged = 0;
    for _ in 0..64 {
        client.send_to(&[0xa5; 300], relay.local_addr()).unwrap();
        for _ in 0..2 {
            let mut data = [0; 400];
            let length = server.recv(&mut data).unwrap();
            assert_eq!(length, 300);
            let bits: u32 = data[..300].iter().map(|byte| (byte ^ 0xa5).count_ones()).sum();
            assert!(bits <= 3);
            damaged += u64::from(bits > 0);
        }
    }
    let stats = wait_for(&relay, |s| s.forwarded == 128);
    assert_eq!((stats.up.duplicated, stats.up.corrupted), (64, damaged));
    assert!(damaged > 0 && damaged < 128);
}

#[test]
fn datagrams_of_any_size_pass() {
    let (server, client) = (socket(), socket());
    let relay = relay(&server, "", "", 1);
    for size in [0usize, 1, 1200, 9000, 65_507] {
        client.send_to(&vec![7; size], relay.local_addr()).unwrap();
        let mut data = vec![0; 65_535];
        let length = server.recv(&mut data).unwrap();
        assert_eq!(&data[..length], vec![7; size]);
    }
}

#[test]
fn clients_beyond_the_limit_are_refused_until_another_is_idle() {
    let server = socket();
    let mut config = Config::new(local(0), server.local_addr().unwrap());
    config.max_clients = 1;
    config.idle_timeout = Duration::from_millis(1);
    let relay = Relay::start(&config).unwrap();
    // Clients are served one after another, however many there have been.
    for n in 0..5u8 {
        let client = socket();
        let start = Instant::now();
        server.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let mut data = [u8::MAX; 1];
        // Refused datagrams are sent again, and datagrams of earlier clients may still arrive.
        while data != [n] {
            assert!(start.elapsed() < PATIENCE);
            client.send_to(&[n], relay.local_addr()).unwrap();
            let _ = server.recv(&mut data);
        }
        assert!(relay.stats().clients <= 1);
    }
    wait_for(&relay, |s| s.clients_seen >= 5 && s.clients <= 1);
}

#[test]
fn a_destination_that_is_not_there_does_no_harm() {
    let server = socket();
    let client = socket();
    let relay = relay(&server, "", "", 1);
    let address = server.local_addr().unwrap();
    drop(server);
    for _ in 0..20 {
        client.send_to(b"anybody?", relay.local_addr()).unwrap();
    }
    wait_for(&relay, |s| s.up.delivered == 20 && s.forwarded + s.unsent == 20);
    // Once the destination exists, it is reached.
    let server = UdpSocket::bind(address).unwrap();
    server.set_read_timeout(Some(PATIENCE)).unwrap();
    client.send_to(b"you!", relay.local_addr()).unwrap();
    let mut data = [0; 16];
    let length = server.recv(&mut data).unwrap();
    assert_eq!(&data[..length], b"you!");
}

#[test]
fn an_address_in_use_is_an_error() {
    let server = socket();
    let taken = Config::new(server.local_addr().unwrap(), local(9));
    let error = Relay::start(&taken).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
}

#[test]
fn a_stopped_relay_leaves_its_address() {
    let server = socket();
    let relay = relay(&server, "delay=3600s", "", 1);
    let address = relay.local_addr();
    socket().send_to(b"under way", address).unwrap();
    wait_for(&relay, |s| s.up.delivered == 1);
    assert_eq!(relay.stop().forwarded, 0);
    UdpSocket::bind(address).unwrap();
}

/// Sends a datagram through the relay, and returns where the server saw it come from.
fn seen_at(relay: &Relay, client: &UdpSocket, server: &UdpSocket) -> SocketAddr {
    client.send_to(b"where am I?", relay.local_addr()).unwrap();
    let (_, from) = server.recv_from(&mut [0; 16]).unwrap();
    from
}

#[test]
fn clients_get_other_ports_and_addresses_and_answers_still_find_them() {
    let (server, client) = (socket(), socket());
    let mut config = Config::new(local(0), server.local_addr().unwrap());
    config.rebindings = vec!["address@20ms".parse().unwrap(), "port@10ms".parse().unwrap()];
    let relay = Relay::start(&config).unwrap();
    let first = seen_at(&relay, &client, &server);
    let in_time = relay.stats().rebindings == 0;
    wait_for(&relay, |stats| stats.rebindings == 2);
    let last = seen_at(&relay, &client, &server);
    assert_eq!(last.ip().to_string(), "127.0.0.2");
    // On a machine that is so busy that both have happened before, there is only one place.
    assert!(!in_time || (first.ip() == local(0).ip() && first.port() != last.port()));
    server.send_to(b"there", last).unwrap();
    let mut data = [0; 16];
    let (length, from) = client.recv_from(&mut data).unwrap();
    assert_eq!((&data[..length], from), (&b"there"[..], relay.local_addr()));
}

#[test]
fn addresses_change_only_where_that_works() {
    let mut config = Config::new(local(0), "192.0.2.1:9".parse().unwrap());
    config.rebindings = vec!["port@1s".parse().unwrap()];
    assert!(Relay::start(&config).is_ok());
    config.rebindings = vec!["address@1s".parse().unwrap()];
    assert_eq!(Relay::start(&config).unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
}

/// Keeps the datagrams that it sees.
struct Notes(std::sync::mpsc::Sender<(Way, u8, Vec<u8>, Option<DropCause>)>);

impl Tap for Notes {
    fn see(&mut self, seen: &Seen<'_>) {
        self.0.send((seen.way, seen.ecn, seen.data.to_vec(), seen.dropped)).unwrap();
    }
}

#[test]
fn a_tap_sees_what_arrives_and_what_does_not() {
    let (server, client) = (socket(), socket());
    let mut config = Config::new(local(0), server.local_addr().unwrap());
    config.up = "loss=trace:01".parse().unwrap();
    let (notes, seen) = std::sync::mpsc::channel();
    let relay = Relay::start_with_tap(&config, Box::new(Notes(notes))).unwrap();
    for data in [b"arrives", b"is lost"] {
        client.send_to(data, relay.local_addr()).unwrap();
    }
    let (_, from) = server.recv_from(&mut [0; 16]).unwrap();
    server.send_to(b"answer", from).unwrap();
    client.recv(&mut [0; 16]).unwrap();
    drop(relay);
    let mut seen: Vec<_> = seen.iter().collect();
    seen.sort_by_key(|(way, ..)| *way == Way::Down);
    assert_eq!(
        seen,
        [
            (Way::Up, 0, b"arrives".to_vec(), None),
            (Way::Up, 0, b"is lost".to_vec(), Some(DropCause::Loss)),
            (Way::Down, 0, b"answer".to_vec(), None),
        ]
    );
}

#[test]
fn marks_are_kept_and_set_where_there_is_a_queue() {
    let quic = |socket: &UdpSocket| quinn_udp::UdpSocketState::new(socket.into()).unwrap();
    let (server, client) = (socket(), socket());
    let (receiving, sending) = (quic(&server), quic(&client));
    server.set_nonblocking(false).unwrap();
    for (up, expected) in [("", EcnCodepoint::Ect0), ("rate=100mbit mark=0b", EcnCodepoint::Ce)] {
        let relay = relay(&server, up, "", 1);
        for mark in [None, Some(EcnCodepoint::Ect0)] {
            let transmit = quinn_udp::Transmit {
                destination: relay.local_addr(),
                ecn: mark,
                contents: b"marked",
                segment_size: None,
                src_ip: None,
            };
            sending.try_send((&client).into(), &transmit).unwrap();
            let mut data = [0; 100];
            let mut meta = [quinn_udp::RecvMeta::default()];
            let mut buffers = [std::io::IoSliceMut::new(&mut data)];
            receiving.recv((&server).into(), &mut buffers, &mut meta).unwrap();
            assert_eq!(meta[0].ecn, mark.map(|_| expected), "{up}");
        }
    }
}

#[test]
fn doors_lead_to_their_own_destinations_over_one_link() {
    let (one, other, client) = (socket(), socket(), socket());
    let mut config = Config::new(local(0), one.local_addr().unwrap());
    config.further = vec![(local(0), other.local_addr().unwrap())];
    let relay = Relay::start(&config).unwrap();
    for (door, server) in relay.local_addrs().iter().zip([&one, &other]) {
        client.send_to(b"?", door).unwrap();
        let (_, from) = server.recv_from(&mut [0; 16]).unwrap();
        server.send_to(b"!", from).unwrap();
        let (_, from) = client.recv_from(&mut [0; 16]).unwrap();
        assert_eq!(from, *door);
    }
    let stats = relay.stop();
    assert_eq!((stats.up.delivered, stats.down.delivered, stats.clients), (2, 2, 2));
}
