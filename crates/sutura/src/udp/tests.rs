//! Tests over the loopback interface, and of `send_all` with a simulated kernel.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use super::*;

/// Makes a lost datagram fail a test instead of hanging it.
const PATIENCE: Duration = Duration::from_secs(300);

const V4: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const V6: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);

/// Binds a socket; `None`, with a note, if this host has no IPv6.
fn bind(ip: IpAddr) -> Option<UdpSocket> {
    match UdpSocket::bind(SocketAddr::new(ip, 0)) {
        Ok(socket) => Some(socket),
        Err(error) if ip.is_ipv6() => {
            println!("skipped: no IPv6 loopback here ({error})");
            None
        }
        Err(error) => panic!("{ip}: {error}"),
    }
}

fn address(socket: &UdpSocket) -> SocketAddr {
    socket.local_addr().expect("bound")
}

/// One unmarked datagram.
fn datagram(destination: SocketAddr, contents: &[u8]) -> Transmit<'_> {
    Transmit { destination, source: None, ecn: None, contents, segment_size: None }
}

async fn send(socket: &UdpSocket, mut transmit: Transmit<'_>) {
    let sending = poll_fn(|cx| socket.poll_send(cx, &mut transmit));
    tokio::time::timeout(PATIENCE, sending).await.expect("room in the kernel").expect("sending");
    assert!(transmit.contents.is_empty());
}

async fn receive(socket: &UdpSocket, count: usize) -> Vec<(Received, Vec<u8>)> {
    let mut buffers = ReceiveBuffers::new();
    let mut datagrams = Vec::new();
    while datagrams.len() < count {
        let before = datagrams.len();
        let receiving = poll_fn(|cx| {
            socket.poll_recv(cx, &mut buffers, |from, data| {
                datagrams.push((from, data.to_vec()));
            })
        });
        let got =
            tokio::time::timeout(PATIENCE, receiving).await.expect("datagrams").expect("receiving");
        assert_eq!(datagrams.len(), before + got);
    }
    datagrams
}

/// Bytes in which all segments differ.
fn contents(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i % 251) as u8 ^ (i / 251) as u8).collect()
}

async fn check_batch(sender: UdpSocket, ip: IpAddr, len: usize, segment: usize) {
    let Some(receiver) = bind(ip) else { return };
    let contents = contents(len);
    let ecn = Some(EcnCodepoint::Ect0);
    let segment_size = Some(segment);
    let transmit = Transmit { ecn, segment_size, ..datagram(address(&receiver), &contents) };
    send(&sender, transmit).await;
    let datagrams = receive(&receiver, len.div_ceil(segment)).await;
    assert_eq!(datagrams.len(), len.div_ceil(segment));
    for ((from, data), sent) in datagrams.iter().zip(contents.chunks(segment)) {
        assert_eq!(data, sent);
        assert_eq!(*from, Received { remote: address(&sender), local: Some(ip), ecn });
    }
}

#[tokio::test]
async fn a_batch_arrives_whole_with_its_mark_on_every_datagram() {
    for ip in [V4, V6] {
        for (len, segment) in [(9 * 1200 + 700, 1200), (30 * 1452, 1452), (64 * 100, 100)] {
            let Some(sender) = bind(ip) else { continue };
            check_batch(sender, ip, len, segment).await;
        }
    }
}

/// The ECN mark must survive coalescing. It comes in a control message, which the kernel silently
/// omits if the control buffer is too small.
#[tokio::test]
async fn a_coalesced_buffer_has_a_mark() {
    for ip in [V4, V6] {
        let (Some(sender), Some(receiver)) = (bind(ip), bind(ip)) else { continue };
        if sender.max_segments() == 1 || receiver.state.gro_segments() == 1 {
            println!("skipped: no segmentation offload here");
            return;
        }
        let contents = contents(10 * 1200);
        let (ecn, segment_size) = (Some(EcnCodepoint::Ect0), Some(1200));
        let transmit = Transmit { ecn, segment_size, ..datagram(address(&receiver), &contents) };
        send(&sender, transmit).await;
        let mut buffers = ReceiveBuffers::new();
        let filled = poll_fn(|cx| receiver.poll_fill(cx, &mut buffers)).await;
        assert_eq!(filled.expect("a datagram"), 1);
        let meta = buffers.metas[0];
        assert_eq!((meta.len, meta.stride), (12_000, 1200), "coalesced");
        assert_eq!(meta.ecn, Some(quinn_udp::EcnCodepoint::Ect0));
    }
}

#[tokio::test]
async fn who_finds_no_room_is_woken_when_there_is_some() {
    let Some(socket) = bind(V4) else { return };
    for full in [0, 1, 3] {
        let mut calls = 0;
        let sending = poll_fn(|cx| {
            socket.io.poll_send(cx, || {
                calls += 1;
                if calls <= full { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(calls) }
            })
        });
        let kick = async {
            // The kernel has room all the time, and announces it when a datagram has left.
            loop {
                socket.io.get().send_to(&[0], address(&socket)).expect("sent");
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::select! {
            calls = sending => assert_eq!(calls.expect("sent"), full + 1),
            () = kick => {}
            () = tokio::time::sleep(PATIENCE) => panic!("not woken"),
        }
    }
}

#[tokio::test]
async fn a_batch_longer_than_an_ip_packet_arrives_whole() {
    for ip in [V4, V6] {
        let Some(sender) = bind(ip) else { continue };
        check_batch(sender, ip, 100 * 1400 + 1, 1400).await;
    }
}

#[tokio::test]
async fn a_batch_arrives_whole_without_offload() {
    for ip in [V4, V6] {
        let Some(sender) = bind(ip) else { continue };
        let sender = sender.with_segment_limit(1);
        assert_eq!(sender.max_segments(), 1);
        check_batch(sender, ip, 12 * 1200 + 1, 1200).await;
    }
}

#[tokio::test]
async fn every_mark_arrives_as_it_was_sent() {
    for ip in [V4, V6] {
        let (Some(sender), Some(receiver)) = (bind(ip), bind(ip)) else { continue };
        for ecn in
            [None, Some(EcnCodepoint::Ect0), Some(EcnCodepoint::Ect1), Some(EcnCodepoint::Ce)]
        {
            let to = datagram(address(&receiver), b"marked");
            send(&sender, Transmit { source: Some(ip), ecn, ..to }).await;
            let datagrams = receive(&receiver, 1).await;
            assert_eq!(datagrams[0].0.ecn, ecn);
            assert_eq!(datagrams[0].1, b"marked");
        }
    }
}

#[tokio::test]
async fn empty_datagrams_are_delivered_and_counted() {
    let (sender, receiver) = (bind(V4).expect("IPv4"), bind(V4).expect("IPv4"));
    for contents in [&b""[..], b"", b"last"] {
        send(&sender, datagram(address(&receiver), contents)).await;
    }
    let lengths: Vec<_> = receive(&receiver, 3).await.iter().map(|(_, data)| data.len()).collect();
    assert_eq!(lengths, [0, 0, 4]);
}

#[tokio::test]
async fn a_datagram_that_cannot_be_sent_is_dropped() {
    let (sender, receiver) = (bind(V4).expect("IPv4"), bind(V4).expect("IPv4"));
    let too_long = contents(MAX_PAYLOAD + 1);
    for contents in [&too_long[..], b"fits"] {
        send(&sender, datagram(address(&receiver), contents)).await;
    }
    let datagrams = receive(&receiver, 1).await;
    assert_eq!(datagrams[0].1, b"fits");
}

#[tokio::test]
async fn an_ipv6_socket_serves_ipv4() {
    let Some(receiver) = bind(IpAddr::V6(Ipv6Addr::UNSPECIFIED)) else {
        return;
    };
    let sender = bind(V4).expect("IPv4");
    let there = datagram(SocketAddr::new(V4, address(&receiver).port()), b"from IPv4");
    send(&sender, Transmit { ecn: Some(EcnCodepoint::Ect0), ..there }).await;
    let (from, data) = receive(&receiver, 1).await.remove(0);
    assert_eq!(data, b"from IPv4");
    assert_eq!(from.remote.ip().to_canonical(), V4);
    assert_eq!(from.ecn, Some(EcnCodepoint::Ect0));
    // And back.
    let back = datagram(from.remote, b"from IPv6");
    send(&receiver, Transmit { ecn: Some(EcnCodepoint::Ce), ..back }).await;
    let (from, data) = receive(&sender, 1).await.remove(0);
    assert_eq!((&data[..], from.ecn), (&b"from IPv6"[..], Some(EcnCodepoint::Ce)));
}

/// Sends `contents` through `kernel`. Returns the result and the remaining bytes.
fn send_to(
    kernel: impl FnMut(&quinn_udp::Transmit<'_>) -> io::Result<()>,
    limit: &Cell<usize>,
    contents: &[u8],
    segment_size: Option<usize>,
) -> (io::Result<()>, usize) {
    let mut transmit = Transmit { segment_size, ..datagram(SocketAddr::new(V4, 1), contents) };
    let result = send_all(&mut transmit, || limit.get(), kernel);
    (result, transmit.contents.len())
}

#[test]
fn a_device_that_cannot_segment_gets_datagrams_one_by_one() {
    let limit = Cell::new(64);
    let calls = RefCell::new(Vec::new());
    let kernel = |part: &quinn_udp::Transmit<'_>| {
        calls.borrow_mut().push((part.contents.len(), part.segment_size));
        if part.segment_size.is_some() {
            limit.set(1);
            return Err(io::Error::other("input/output error"));
        }
        Ok(())
    };
    let (result, rest) = send_to(kernel, &limit, &contents(250), Some(100));
    assert!(result.is_ok() && rest == 0);
    let expected = [(250, Some(100)), (100, None), (100, None), (50, None)];
    assert_eq!(calls.into_inner(), expected);
}

#[test]
fn an_error_with_offload_intact_drops_that_part_only() {
    let calls = Cell::new(0);
    let kernel = |_: &quinn_udp::Transmit<'_>| {
        calls.set(calls.get() + 1);
        Err(io::Error::from(io::ErrorKind::NetworkUnreachable))
    };
    let (result, rest) = send_to(kernel, &Cell::new(2), &contents(500), Some(100));
    assert!(result.is_ok() && rest == 0);
    assert_eq!(calls.get(), 3);
}

#[test]
fn a_full_kernel_leaves_the_rest_for_later() {
    let calls = Cell::new(0);
    let kernel = |_: &quinn_udp::Transmit<'_>| {
        calls.set(calls.get() + 1);
        if calls.get() == 3 { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
    };
    let (result, rest) = send_to(kernel, &Cell::new(2), &contents(500), Some(100));
    assert_eq!(result.expect_err("full").kind(), io::ErrorKind::WouldBlock);
    assert_eq!(rest, 100);
}

#[test]
fn calls_respect_the_segment_limit_and_the_ip_layer() {
    for (len, segment, limit) in [(100_000, Some(1000), 64), (70_000, Some(100), 64), (5, None, 64)]
    {
        let sizes = RefCell::new(Vec::new());
        let kernel = |part: &quinn_udp::Transmit<'_>| {
            sizes.borrow_mut().push(part.contents.len());
            let segments = part.segment_size.map_or(1, |size| part.contents.len().div_ceil(size));
            assert!(part.contents.len() <= MAX_PAYLOAD && segments <= limit);
            Ok(())
        };
        let (result, rest) = send_to(kernel, &Cell::new(limit), &contents(len), segment);
        assert!(result.is_ok() && rest == 0);
        assert_eq!(sizes.into_inner().iter().sum::<usize>(), len);
    }
}

#[test]
fn a_segment_size_of_zero_means_one_datagram() {
    let sizes = RefCell::new(Vec::new());
    let kernel = |part: &quinn_udp::Transmit<'_>| {
        sizes.borrow_mut().push((part.contents.len(), part.segment_size));
        Ok(())
    };
    let (result, _) = send_to(kernel, &Cell::new(64), &contents(300), Some(0));
    assert!(result.is_ok());
    assert_eq!(sizes.into_inner(), [(300, None)]);
}

/// A call that leaves buffers empty takes the readiness of the socket back. The socket must become ready again for
/// datagrams that come later, and for those that come before the next call.
#[tokio::test]
async fn datagrams_after_a_batch_that_was_not_full_are_received() {
    let (Some(sender), Some(receiver)) = (bind(V4), bind(V4)) else { return };
    let mut buffers = ReceiveBuffers::new();
    for round in 0..200u8 {
        let mut received = 0;
        for _ in 0..=round % 3 {
            send(&sender, datagram(address(&receiver), &[round])).await;
        }
        while received <= usize::from(round % 3) {
            let receiving = poll_fn(|cx| {
                receiver.poll_recv(cx, &mut buffers, |_, data| assert_eq!(data, [round]))
            });
            let got = tokio::time::timeout(PATIENCE, receiving).await.expect("datagrams");
            received += got.expect("receiving");
        }
    }
}
