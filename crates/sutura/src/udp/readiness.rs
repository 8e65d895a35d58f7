//! A socket that tells when datagrams may be received or sent.

#[cfg(not(unix))]
pub(super) use self::both::WatchedSocket as ReadySocket;
#[cfg(unix)]
pub(super) use self::readable::ReadySocket;

/// Where tokio accepts any file descriptor, a socket is watched for room only while it has none. Each datagram
/// that leaves the kernel's buffer makes room, and would wake the runtime for nothing.
#[cfg(unix)]
mod readable {
    use crate::sync::lock;
    use std::io;
    use std::net::UdpSocket;
    use std::sync::Mutex;
    use std::task::{Context, Poll, ready};
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    #[derive(Debug)]
    pub(crate) struct ReadySocket {
        socket: AsyncFd<UdpSocket>,
        /// The same socket, watched for room to send, while there is none.
        full: Mutex<Option<AsyncFd<UdpSocket>>>,
    }

    #[allow(
        deprecated,
        reason = "a socket of the standard library keeps its descriptor while it lives"
    )]
    fn watch(socket: UdpSocket, interest: Interest) -> io::Result<AsyncFd<UdpSocket>> {
        AsyncFd::with_interest(socket, interest)
    }

    impl ReadySocket {
        pub(crate) fn new(socket: UdpSocket) -> io::Result<Self> {
            socket.set_nonblocking(true)?;
            let socket = watch(socket, Interest::READABLE)?;
            Ok(Self { socket, full: Mutex::default() })
        }

        pub(crate) fn get(&self) -> &UdpSocket {
            self.socket.get_ref()
        }

        /// Calls `receive` when there may be datagrams. If it returns `WouldBlock`, only the readiness is forgotten
        /// that was known before, so that later datagrams are announced.
        pub(crate) fn poll_recv<T>(
            &self,
            cx: &mut Context<'_>,
            receive: impl FnOnce() -> io::Result<T>,
        ) -> Poll<io::Result<T>> {
            let mut guard = ready!(self.socket.poll_read_ready(cx))?;
            let would_block = || Err(io::ErrorKind::WouldBlock.into());
            Poll::Ready(guard.try_io(|_| receive()).unwrap_or_else(|_| would_block()))
        }

        /// Calls `send`, again and again while the kernel has no room.
        pub(crate) fn poll_send<T>(
            &self,
            cx: &mut Context<'_>,
            mut send: impl FnMut() -> io::Result<T>,
        ) -> Poll<io::Result<T>> {
            let mut full = lock(&self.full);
            if full.is_none() {
                match send() {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    result => return Poll::Ready(result),
                }
            }
            let watched = match full.take() {
                Some(watched) => watched,
                None => watch(self.get().try_clone()?, Interest::WRITABLE)?,
            };
            loop {
                let Poll::Ready(guard) = watched.poll_write_ready(cx) else {
                    *full = Some(watched);
                    return Poll::Pending;
                };
                if let Ok(result) = guard?.try_io(|_| send()) {
                    return Poll::Ready(result);
                }
            }
        }
    }
}

/// Elsewhere, a socket is watched for both.
#[cfg(not(unix))]
mod both {
    use std::io;
    use std::task::{Context, Poll, ready};
    use tokio::io::Interest;
    use tokio::net::UdpSocket;

    #[derive(Debug)]
    pub(crate) struct WatchedSocket(UdpSocket);

    impl WatchedSocket {
        pub(crate) fn new(socket: std::net::UdpSocket) -> io::Result<Self> {
            socket.set_nonblocking(true)?;
            UdpSocket::from_std(socket).map(Self)
        }

        pub(crate) fn get(&self) -> &UdpSocket {
            &self.0
        }

        /// Calls `receive` when there may be datagrams. If it returns `WouldBlock`, only the readiness is forgotten
        /// that was known before, so that later datagrams are announced.
        pub(crate) fn poll_recv<T>(
            &self,
            cx: &mut Context<'_>,
            receive: impl FnOnce() -> io::Result<T>,
        ) -> Poll<io::Result<T>> {
            ready!(self.0.poll_recv_ready(cx))?;
            Poll::Ready(self.0.try_io(Interest::READABLE, receive))
        }

        /// Calls `send`, again and again while the kernel has no room.
        pub(crate) fn poll_send<T>(
            &self,
            cx: &mut Context<'_>,
            mut send: impl FnMut() -> io::Result<T>,
        ) -> Poll<io::Result<T>> {
            loop {
                ready!(self.0.poll_send_ready(cx))?;
                match self.0.try_io(Interest::WRITABLE, &mut send) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    result => return Poll::Ready(result),
                }
            }
        }
    }
}
