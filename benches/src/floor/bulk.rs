//! A download without QUIC: datagrams in the largest batches that the kernel takes, and a window, so that none is lost.

use super::{LARGEST, client};
use crate::Error;
use crate::job::Done;
use crate::usage::{self, since};
use quinn_udp::{RecvMeta, Transmit, UdpSocketState};
use std::io::IoSliceMut;
use std::net::{SocketAddr, UdpSocket};
use std::time::Instant;

/// Bytes that the server sends before the client has received any.
const WINDOW: u64 = 2 << 20;
/// Bytes after which the client says how many it has received.
const REPORT: u64 = 256 << 10;
/// Bytes of a datagram that asks for a download, or says how far it is: a number. No request has as few.
const NUMBER: usize = size_of::<u64>();
/// Bytes of UDP payload in one call, and datagrams, at most.
const LARGEST_BATCH: usize = 65_507;
const MOST_SEGMENTS: usize = 64;

/// The number of bytes that a datagram asks for, if it does.
pub fn wanted(datagram: &[u8]) -> Option<u64> {
    datagram.try_into().ok().map(u64::from_be_bytes)
}

/// Sends `bytes` bytes in datagrams of `payload` bytes.
pub fn upload(
    socket: &UdpSocket,
    client: SocketAddr,
    payload: usize,
    bytes: u64,
) -> Result<(), Error> {
    let state = UdpSocketState::new(socket.into())?;
    socket.set_nonblocking(false)?;
    let segments = state.max_gso_segments().clamp(1, MOST_SEGMENTS).min(LARGEST_BATCH / payload);
    let zeros = vec![0; segments * payload];
    let (mut sent, mut received) = (0, 0);
    while sent < bytes {
        while sent - received >= WINDOW {
            let mut report = [0; NUMBER];
            socket.recv(&mut report)?;
            received = u64::from_be_bytes(report);
        }
        let batch = zeros.len().min(usize::try_from(bytes - sent)?);
        let transmit = Transmit {
            destination: client,
            ecn: None,
            contents: &zeros[..batch],
            segment_size: Some(payload),
            src_ip: None,
        };
        state.try_send(socket.into(), &transmit)?;
        sent += batch as u64;
    }
    // The client's last reports would look like requests.
    while received < bytes {
        let mut report = [0; NUMBER];
        socket.recv(&mut report)?;
        received = u64::from_be_bytes(report);
    }
    Ok(())
}

/// Asks for `bytes` bytes and receives them.
pub fn download(server: SocketAddr, bytes: u64) -> Result<Done, Error> {
    let before = usage::now()?;
    let socket = client(server)?;
    let state = UdpSocketState::new((&socket).into())?;
    socket.set_nonblocking(false)?;
    let mut buffer = vec![0; LARGEST];
    let start = Instant::now();
    socket.send(&bytes.to_be_bytes())?;
    let (mut received, mut reported) = (0, 0);
    while received < bytes {
        // One buffer only: a blocking call would wait until all have been filled.
        let mut meta = [RecvMeta::default()];
        state.recv((&socket).into(), &mut [IoSliceMut::new(&mut buffer)], &mut meta)?;
        received += meta[0].len as u64;
        if received - reported >= REPORT || received >= bytes {
            socket.send(&received.to_be_bytes())?;
            reported = received;
        }
    }
    Ok(Done::new(start.elapsed().as_secs_f64(), bytes, since(before)?))
}
