//! quiche, which has no I/O of its own, with a loop of ours.

mod config;
mod endpoint;
mod entry;
mod shared;
mod state;
mod transmit;

use super::{Settings, Stack};
use crate::Error;
use ::quiche::Error as QuicheError;
use ::sutura::Protection;
use bytes::{Bytes, BytesMut};
use shared::{Handle, Shared};
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Poll;

/// quiche on BoringSSL, with its own congestion control.
pub struct Quiche;

/// Bytes that are read from a stream in one call, at most.
const READ: usize = 64 << 10;

/// The application's end of an endpoint, whose loop runs in a task.
pub struct Endpoint {
    shared: Arc<Shared>,
}

/// A stream that the application writes.
pub struct Send {
    connection: Arc<Handle>,
    id: u64,
}

/// A stream that the application reads.
pub struct Recv {
    connection: Arc<Handle>,
    id: u64,
    /// The room for the next bytes, which is used again once the application has dropped the last ones.
    room: BytesMut,
    has_ended: bool,
}

fn stream(connection: &Arc<Handle>, id: u64) -> (Send, Recv) {
    let recv = Recv { connection: connection.clone(), id, room: BytesMut::new(), has_ended: false };
    (Send { connection: connection.clone(), id }, recv)
}

impl Stack for Quiche {
    type Endpoint = Endpoint;
    type Incoming = Arc<Handle>;
    type Connection = Arc<Handle>;
    type Send = Send;
    type Recv = Recv;

    fn server(settings: &Settings<'_>) -> Result<(Endpoint, SocketAddr), Error> {
        let (shared, address) = endpoint::start(settings, config::server(settings)?)?;
        Ok((Endpoint { shared }, address))
    }

    fn client(settings: &Settings<'_>) -> Result<Endpoint, Error> {
        let (shared, _) = endpoint::start(settings, config::client(settings)?)?;
        Ok(Endpoint { shared })
    }

    async fn connect(endpoint: &Endpoint, server: SocketAddr) -> Result<Arc<Handle>, Error> {
        let handle = Shared::connect(&endpoint.shared, server)?;
        Self::accept(Arc::new(handle)).await
    }

    async fn incoming(endpoint: &Endpoint) -> Option<Arc<Handle>> {
        endpoint.shared.incoming().await.map(Arc::new)
    }

    async fn accept(incoming: Arc<Handle>) -> Result<Arc<Handle>, Error> {
        incoming
            .poll(|entry, cx| {
                if entry.is_ready {
                    return Poll::Ready(Ok(()));
                }
                entry.waiting.wait_for_handshake(cx);
                Poll::Pending
            })
            .await?;
        Ok(incoming)
    }

    async fn open(connection: &Arc<Handle>) -> Result<(Send, Recv), Error> {
        let id = connection
            .poll(|entry, cx| {
                if entry.connection.peer_streams_left_bidi() == 0 {
                    entry.waiting.wait_to_open(cx);
                    return Poll::Pending;
                }
                Poll::Ready(entry.open())
            })
            .await?;
        Ok(stream(connection, id))
    }

    async fn accept_stream(connection: &Arc<Handle>) -> Result<(Send, Recv), Error> {
        let id = connection
            .poll(|entry, cx| match entry.opened.pop_front() {
                Some(id) => Poll::Ready(Ok(id)),
                None => {
                    entry.waiting.wait_for_stream(cx);
                    Poll::Pending
                }
            })
            .await?;
        Ok(stream(connection, id))
    }

    fn repairs(_: &Arc<Handle>) -> (u64, u64) {
        (0, 0)
    }

    fn protect(_: &Send, _: Protection) -> Result<(), Error> {
        Err("quiche has no erasure coding".into())
    }

    async fn write(stream: &mut Send, data: Bytes) -> Result<(), Error> {
        let (id, mut rest) = (stream.id, Some(data));
        stream
            .connection
            .poll(|entry, cx| {
                while let Some(data) = rest.take() {
                    if !entry.connection.stream_writable(id, 1)? {
                        rest = Some(data);
                        entry.waiting.wait_to_write(id, cx);
                        return Poll::Pending;
                    }
                    (_, rest) = entry.connection.stream_send_zc(id, data, false)?;
                    entry.touch();
                }
                Poll::Ready(Ok(()))
            })
            .await
    }

    fn finish(stream: &mut Send) -> Result<(), Error> {
        stream.connection.with(|entry| {
            entry.connection.stream_send(stream.id, &[], true)?;
            entry.touch();
            Ok(())
        })
    }

    async fn read(recv: &mut Recv) -> Result<Option<Bytes>, Error> {
        if recv.has_ended {
            return Ok(None);
        }
        let Recv { connection, id, room, has_ended } = recv;
        let read = connection.poll(|entry, cx| {
            room.reserve(entry.connection.stream_readable_len(*id, READ).max(1));
            let limit = bytes::BufMut::limit(&mut *room, READ);
            match entry.connection.stream_recv_buf(*id, limit) {
                Ok((_, end)) => {
                    // The peer may learn that it can send more.
                    entry.touch();
                    Poll::Ready(Ok(end))
                }
                Err(QuicheError::Done) => {
                    entry.waiting.wait_to_read(*id, cx);
                    Poll::Pending
                }
                Err(error) => Poll::Ready(Err(error.into())),
            }
        });
        *has_ended = read.await?;
        let bytes = room.split().freeze();
        Ok((!bytes.is_empty() || !*has_ended).then_some(bytes))
    }
}
