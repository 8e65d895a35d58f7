//! The loop of an endpoint: it takes what the socket has, lets the application's tasks react, sends what they and the
//! connections have to send, and waits.

use super::super::{SOCKET_RECEIVE_BUFFER, SOCKET_SEND_BUFFER, Setting, Settings};
use super::shared::Shared;
use super::state::{ID, State};
use super::transmit::{Batch, LARGEST_BATCH, gather};
use crate::Error;
use quiche::{Config, RecvInfo};
use quinn_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSocketState};
use std::future::poll_fn;
use std::io::{self, IoSliceMut};
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::io::Interest;
use tokio::net::UdpSocket;
use tokio::time::{Instant as TokioInstant, sleep_until};

/// Room for a datagram, or for datagrams that the kernel has put together.
const LARGEST: usize = 1 << 16;
/// Packets of a connection that are sent before the loop looks whether any have come, as in tokio-quiche.
const SENT_AT_A_TIME: usize = 128;
/// How long the loop waits if there is no timer.
const LONG: Duration = Duration::from_secs(60);

/// Starts the loop of an endpoint on a port of its own choice.
pub fn start(settings: &Settings<'_>, config: Config) -> Result<(Arc<Shared>, SocketAddr), Error> {
    let socket = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    if settings.setting == Setting::Tuned {
        let options = socket2::SockRef::from(&socket);
        options.set_recv_buffer_size(SOCKET_RECEIVE_BUFFER)?;
        options.set_send_buffer_size(SOCKET_SEND_BUFFER)?;
    }
    let local = socket.local_addr()?;
    let udp = UdpSocketState::new((&socket).into())?;
    let shared = Arc::new(Shared::new(config, local));
    let endpoint = Endpoint {
        socket: UdpSocket::from_std(socket)?,
        udp,
        local,
        shared: shared.clone(),
        touched: Vec::new(),
        incoming: vec![0; BATCH_SIZE * LARGEST],
        outgoing: vec![0; LARGEST_BATCH],
    };
    tokio::spawn(endpoint.run());
    Ok((shared, local))
}

struct Endpoint {
    socket: UdpSocket,
    udp: UdpSocketState,
    local: SocketAddr,
    shared: Arc<Shared>,
    /// The list of connections to look after, which is empty between two turns.
    touched: Vec<usize>,
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
}

impl Endpoint {
    /// Goes on until the runtime ends.
    async fn run(mut self) -> Result<(), Error> {
        let mut timer = pin!(sleep_until(TokioInstant::now() + LONG));
        loop {
            let is_drained = self.receive()?;
            self.shared.lock().expire(Instant::now());
            let_others_run().await;
            self.send().await?;
            let next = {
                let state = self.shared.lock();
                if !is_drained || state.has_touched() {
                    continue;
                }
                TokioInstant::from_std(state.next_timer().unwrap_or_else(|| Instant::now() + LONG))
            };
            // A timer that is too early costs a turn of the loop, and each change of it costs something, too.
            if next < timer.deadline() || timer.is_elapsed() {
                timer.as_mut().reset(next);
            }
            tokio::select! {
                biased;
                () = self.shared.work() => {}
                ready = self.socket.readable() => ready?,
                () = &mut timer => {}
            }
        }
    }

    /// Takes a batch of datagrams. Returns whether there were no more.
    fn receive(&mut self) -> Result<bool, Error> {
        let mut meta = [RecvMeta::default(); BATCH_SIZE];
        let mut buffers = self.incoming.chunks_mut(LARGEST).map(IoSliceMut::new);
        let mut buffers: [IoSliceMut<'_>; BATCH_SIZE] =
            std::array::from_fn(|_| buffers.next().unwrap_or_else(|| IoSliceMut::new(&mut [])));
        let mut count = 0;
        let received = self.socket.try_io(Interest::READABLE, || {
            count = self.udp.recv((&self.socket).into(), &mut buffers, &mut meta)?;
            // A batch that is not full has emptied the socket: the next call would only say so.
            let is_empty = count < BATCH_SIZE;
            if is_empty { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
        });
        let is_drained = match received {
            Ok(()) => false,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => true,
            Err(error) => return Err(error.into()),
        };
        let mut state = self.shared.lock();
        for (buffer, meta) in buffers.iter_mut().zip(&meta).take(count) {
            let datagrams = buffer[..meta.len].chunks_mut(meta.stride.max(1));
            take(&mut state, datagrams, RecvInfo { from: meta.addr, to: self.local });
        }
        Ok(is_drained)
    }

    /// Sends what the touched connections have to send, or the first part of it if one has much.
    async fn send(&mut self) -> Result<(), Error> {
        self.shared.lock().take_touched(&mut self.touched);
        let segments = self.udp.max_gso_segments();
        while let Some(index) = self.touched.pop() {
            let mut sent = 0;
            loop {
                let (batch, is_closing) = {
                    let mut state = self.shared.lock();
                    let Some(entry) = state.get(index) else { break };
                    if sent >= SENT_AT_A_TIME {
                        entry.touch();
                        state.list(index);
                        break;
                    }
                    let connection = &mut entry.connection;
                    let is_closing = connection.local_error().is_some();
                    let segments = if is_closing { 1 } else { segments };
                    (gather(connection, &mut self.outgoing, segments), is_closing)
                };
                let Some(batch) = batch else { break };
                sent += batch.packets;
                self.transmit(&batch).await?;
                // quiche has packets without end for a connection that is closed while it sends probes.
                if is_closing {
                    break;
                }
            }
            self.shared.lock().settle(index);
        }
        Ok(())
    }

    async fn transmit(&self, batch: &Batch) -> io::Result<()> {
        let transmit = Transmit {
            destination: batch.to,
            ecn: None,
            contents: &self.outgoing[..batch.len],
            segment_size: Some(batch.segment),
            src_ip: None,
        };
        let call = || self.udp.send((&self.socket).into(), &transmit);
        while let Err(error) = self.socket.try_io(Interest::WRITABLE, call) {
            if error.kind() != io::ErrorKind::WouldBlock {
                return Err(error);
            }
            self.socket.writable().await?;
        }
        Ok(())
    }
}

/// Gives datagrams to their connections, and wakes the tasks for which something has come.
fn take<'a>(state: &mut State, datagrams: impl Iterator<Item = &'a mut [u8]>, info: RecvInfo) {
    let mut last: Option<([u8; ID], usize)> = None;
    let wake = |state: &mut State, index: usize| {
        if let Some(entry) = state.get(index) {
            entry.wake();
            entry.touch();
        }
        state.list(index);
    };
    for datagram in datagrams {
        let id = datagram.get(1..=ID).and_then(|id| <[u8; ID]>::try_from(id).ok());
        let is_short = datagram.first().is_some_and(|first| first & 0x80 == 0);
        let same = last.filter(|(last, _)| is_short && Some(*last) == id);
        let Some(index) = same.map(|(_, index)| index).or_else(|| state.find(datagram, info.from))
        else {
            continue;
        };
        if let Some((_, last)) = last.filter(|(_, last)| *last != index) {
            wake(state, last);
        }
        last = id.map(|id| (id, index));
        if let Some(entry) = state.get(index) {
            // With an error the connection closes itself, or the datagram was not worth one.
            let _ = entry.connection.recv(datagram, info);
        }
    }
    if let Some((_, last)) = last {
        wake(state, last);
    }
}

/// Lets the tasks run that are ready.
async fn let_others_run() {
    let mut has_waited = false;
    poll_fn(|cx| {
        if has_waited {
            return Poll::Ready(());
        }
        has_waited = true;
        // In the queue of the runtime, this task is now behind those that have been woken before.
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
