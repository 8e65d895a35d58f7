//! Endpoints of several workers.

use crate::common::{
    client_of, configs, echo, exchange, local_client, localhost, pattern, until, within,
};
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use sutura::{ClientConfig, ConnectionError, Endpoint, EndpointConfig};

/// A server with this many workers, the configuration of its clients, and its address.
fn server(config: EndpointConfig, workers: usize) -> (Endpoint, ClientConfig, SocketAddr) {
    let (server, client) = configs(b"echo");
    let server = Endpoint::bind_workers(config, server, localhost(), workers).unwrap();
    let address = server.local_addr().unwrap();
    (server, client, address)
}

fn of(workers: usize) -> (Endpoint, ClientConfig, SocketAddr) {
    server(EndpointConfig::default(), workers)
}

fn open(endpoints: &[Endpoint]) -> Vec<usize> {
    endpoints.iter().map(Endpoint::open_connections).collect()
}

/// Moves a client to another port, which may be another worker's.
fn move_away(client: &Endpoint) {
    client.rebind(UdpSocket::bind(localhost()).unwrap()).unwrap();
}

#[tokio::test]
async fn connections_are_spread_over_the_workers_and_work() {
    let (server, config, address) = of(3);
    let workers = server.workers();
    assert_eq!(workers.len(), 3);
    assert!(workers.iter().all(|worker| worker.local_addr().unwrap() == address));
    echo(server.clone());
    let mut connections = Vec::new();
    for n in 0..48 {
        let client = local_client(config.clone());
        let connection = client.connect(address, "localhost").unwrap().await.unwrap();
        exchange(connection.clone(), pattern(10_000 + n), None).await;
        connections.push((client, connection));
    }
    let open = open(&workers);
    // That one of them has none is less likely than 1 : 90,000,000.
    assert!(open.iter().all(|open| *open > 0), "{open:?}");
    assert_eq!(open.iter().sum::<usize>(), server.open_connections());
    assert_eq!(server.open_connections(), 48);
}

#[tokio::test]
async fn a_client_keeps_its_connection_when_it_moves_to_the_address_of_another_worker() {
    let (server, config, address) = of(4);
    let client = local_client(config);
    let accepting = server.clone();
    let accepted = tokio::spawn(async move { accepting.accept().await.unwrap().await.unwrap() });
    let connection = client.connect(address, "localhost").unwrap().await.unwrap();
    let peer = accepted.await.unwrap();
    let echoing = peer.clone();
    tokio::spawn(async move {
        while let Ok((mut send, mut recv)) = echoing.accept_bi().await {
            let data = recv.read_to_end(1 << 20).await.unwrap();
            send.write_all(&data).await.unwrap();
            send.finish().unwrap();
        }
    });
    exchange(connection.clone(), pattern(1000), None).await;
    // That all ports are the same worker's is less likely than 1 : 10^14.
    for n in 0..24 {
        move_away(&client);
        within(exchange(connection.clone(), pattern(20_000 + n), None)).await;
        let moved = client.local_addr().unwrap();
        until(|| peer.remote_address() == moved).await;
    }
    assert_eq!((server.open_connections(), connection.close_reason()), (1, None));
}

#[tokio::test]
async fn a_client_moves_in_the_middle_of_an_exchange() {
    let (server, config, address) = of(4);
    echo(server);
    let client = local_client(config);
    let connection = client.connect(address, "localhost").unwrap().await.unwrap();
    exchange(connection.clone(), pattern(1000), None).await;
    let transfer = tokio::spawn(exchange(connection.clone(), pattern(4 << 20), None));
    for _ in 0..5 {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        move_away(&client);
    }
    within(transfer).await.unwrap();
}

#[tokio::test]
async fn a_client_that_was_here_before_is_known_to_all_workers() {
    let (server, config, address) = server(EndpointConfig::default().with_retry_above(Some(0)), 4);
    let client = local_client(config);
    for n in 0..24 {
        let connecting = client.connect(address, "localhost").unwrap();
        let incoming = server.accept().await.unwrap();
        assert!(incoming.remote_address_validated());
        // The first had to answer a Retry, which the others are spared by the token of the one before.
        assert_eq!(incoming.may_retry(), n > 0, "{n}");
        let (theirs, ours) = tokio::join!(connecting, incoming);
        let (theirs, ours) = (theirs.unwrap(), ours.unwrap());
        // The token comes before the data does.
        let mut hello = ours.open_uni().await.unwrap();
        hello.write_all(b"hello").await.unwrap();
        hello.finish().unwrap();
        let mut heard = theirs.accept_uni().await.unwrap();
        assert_eq!(heard.read_to_end(100).await.unwrap(), b"hello");
        theirs.close(0, b"");
        client.wait_idle().await;
        move_away(&client);
    }
}

#[tokio::test]
async fn closing_an_endpoint_closes_the_connections_of_all_workers() {
    let (server, config, address) = of(3);
    let workers = server.workers();
    let accepting = server.clone();
    let accepted = tokio::spawn(async move {
        let mut connections = Vec::new();
        for _ in 0..32 {
            connections.push(accepting.accept().await.unwrap().await.unwrap());
        }
        connections
    });
    let clients: Vec<Endpoint> = (0..32).map(|_| local_client(config.clone())).collect();
    let mut connections = Vec::new();
    for client in &clients {
        connections.push(client.connect(address, "localhost").unwrap().await.unwrap());
    }
    let accepted = accepted.await.unwrap();
    assert_eq!(server.open_connections(), 32);
    server.close(9, b"maintenance");
    let told = ConnectionError::ApplicationClosed { code: 9, reason: b"maintenance".to_vec() };
    for connection in &connections {
        assert_eq!(connection.closed().await, told);
    }
    for connection in accepted {
        assert_eq!(connection.closed().await, ConnectionError::LocallyClosed);
    }
    assert!(server.accept().await.is_none());
    within(server.wait_idle()).await;
    assert_eq!(open(&workers), [0, 0, 0]);
    for client in &clients {
        assert!(client.connect(address, "localhost").unwrap().await.is_err());
    }
}

#[tokio::test]
async fn each_worker_serves_its_own_clients_on_its_own_thread() {
    let (server, config, address) = of(2);
    let threads: Vec<_> = server
        .workers()
        .into_iter()
        .map(|worker| {
            worker.runtime().clone().spawn(async move {
                let mut served = 0;
                while let Some(incoming) = worker.accept().await {
                    let connection = incoming.await.unwrap();
                    let mut stream = connection.open_uni().await.unwrap();
                    let name = std::thread::current().name().unwrap().to_owned();
                    stream.write_all(name.as_bytes()).await.unwrap();
                    stream.finish().unwrap();
                    // The client closes the connection once it has read the name.
                    let _ = stream.stopped().await;
                    served += 1;
                }
                served
            })
        })
        .collect();
    let mut names = Vec::new();
    for _ in 0..40 {
        let client = local_client(config.clone());
        let connection = client.connect(address, "localhost").unwrap().await.unwrap();
        let mut stream = connection.accept_uni().await.unwrap();
        names.push(stream.read_to_end(100).await.unwrap());
        connection.close(0, b"");
        client.wait_idle().await;
    }
    server.close(0, b"");
    for (number, thread) in threads.into_iter().enumerate() {
        let name = format!("sutura-{number}");
        let named = names.iter().filter(|other| **other == name.as_bytes()).count();
        assert_eq!(thread.await.unwrap(), named);
        assert!(named > 0, "no client of 40 came to {name}");
    }
}

#[tokio::test]
async fn a_flood_of_datagrams_for_other_workers_disturbs_nobody() {
    let (server, config, address) = of(2);
    echo(server.clone());
    let client = local_client(config);
    let connection = client.connect(address, "localhost").unwrap().await.unwrap();
    exchange(connection.clone(), pattern(1000), None).await;
    let flood = std::thread::spawn(move || {
        let socket = UdpSocket::bind(localhost()).unwrap();
        for n in 0..20_000u64 {
            let mut datagram = [0x40; 100];
            datagram[1..9].copy_from_slice(&n.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes());
            // The kernel may refuse some.
            let _ = socket.send_to(&datagram, address);
        }
    });
    while !flood.is_finished() {
        within(exchange(connection.clone(), pattern(10_000), None)).await;
    }
    flood.join().unwrap();
    move_away(&client);
    within(exchange(connection, pattern(10_000), None)).await;
    assert_eq!(server.open_connections(), 1);
}

#[tokio::test]
async fn an_endpoint_takes_its_address_for_itself() {
    let (server, config, address) = of(2);
    let (other, _) = configs(b"echo");
    let again = Endpoint::server_workers(other.clone(), address, 2).map(drop);
    assert_eq!(again.unwrap_err().kind(), ErrorKind::AddrInUse);
    let again = Endpoint::server(other, address).map(drop);
    assert_eq!(again.unwrap_err().kind(), ErrorKind::AddrInUse);
    let elsewhere = UdpSocket::bind(localhost()).unwrap();
    assert_eq!(server.rebind(elsewhere).unwrap_err().kind(), ErrorKind::Unsupported);
    let clients = client_of(config, server);
    assert!(clients.connect(address, "localhost").is_err());
}

#[tokio::test]
async fn the_number_of_workers_has_bounds() {
    for count in [0, 65, 1_000_000] {
        let (config, _) = configs(b"echo");
        let failed = Endpoint::server_workers(config, localhost(), count).map(drop);
        assert_eq!(failed.unwrap_err().kind(), ErrorKind::InvalidInput, "{count}");
    }
    let (config, _) = configs(b"echo");
    let limits = EndpointConfig::default().with_max_connections(2);
    let failed = Endpoint::bind_workers(limits, config, localhost(), 3).map(drop);
    assert_eq!(failed.unwrap_err().kind(), ErrorKind::InvalidInput);
    let (one, config, address) = of(1);
    assert_eq!(one.workers().len(), 1);
    echo(one);
    let connection = local_client(config).connect(address, "localhost").unwrap().await.unwrap();
    exchange(connection, pattern(1000), None).await;
}
