//! A connection that speaks RFB.

use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::BytesMut;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Bytes that wait to be written. With more, no messages are read that may lead to further ones.
pub const MAX_WAITING: usize = 4 << 20;

/// The connections below: TCP, UNIX sockets, and TLS over both.
trait Stream: AsyncRead + AsyncWrite + Send + Sync + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Sync + Unpin> Stream for T {}

/// A connection, bytes that were read from it, and bytes that wait to be written to it.
pub struct Socket {
    stream: Box<dyn Stream>,
    /// Whether TLS may hold bytes back that were written.
    unflushed: bool,
    pub input: BytesMut,
    pub output: Vec<u8>,
}

impl fmt::Debug for Socket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Socket").field("output", &self.output.len()).finish_non_exhaustive()
    }
}

impl Socket {
    /// A socket over a TCP connection, without Nagle's algorithm: keys and pointer movements must not wait
    /// for more data.
    pub fn new(tcp: TcpStream) -> Self {
        // Without the option, everything works all the same.
        let _ = tcp.set_nodelay(true);
        Self::over(tcp)
    }

    /// A socket over another connection.
    pub fn over(stream: impl AsyncRead + AsyncWrite + Send + Sync + Unpin + 'static) -> Self {
        let (input, output) = (BytesMut::new(), Vec::new());
        Self { stream: Box::new(stream), unflushed: false, input, output }
    }

    /// Writes all that waits, and goes on over TLS, of which this is the client.
    ///
    /// # Errors
    /// The peer does not speak TLS, it is not trusted, or it has sent bytes before TLS began: these could be
    /// anybody's.
    pub async fn start_tls(
        mut self,
        name: ServerName<'static>,
        config: Arc<rustls::ClientConfig>,
    ) -> io::Result<Self> {
        if !self.input.is_empty() {
            return Err(io::Error::other("bytes came before TLS began"));
        }
        self.flush().await?;
        Ok(Self::over(TlsConnector::from(config).connect(name, self.stream).await?))
    }

    /// Reads some bytes, unless `read` is false, or writes some. May be cancelled and called again.
    ///
    /// # Errors
    /// The other end has closed the connection, or it is broken.
    pub async fn exchange(&mut self, read: bool) -> io::Result<()> {
        poll_fn(|context| self.poll(context, read)).await
    }

    fn poll(&mut self, context: &mut Context<'_>, read: bool) -> Poll<io::Result<()>> {
        if !self.output.is_empty()
            && let Poll::Ready(size) = Pin::new(&mut self.stream).poll_write(context, &self.output)
        {
            self.output.drain(..size?);
            self.unflushed = true;
            // If that is not possible now, the next call goes on.
            let _ = self.poll_flush(context)?;
            return Poll::Ready(Ok(()));
        }
        if self.unflushed && self.poll_flush(context)?.is_ready() {
            return Poll::Ready(Ok(()));
        }
        if !read {
            return Poll::Pending;
        }
        match pin!(self.stream.read_buf(&mut self.input)).poll(context)? {
            Poll::Ready(0) => Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
            Poll::Ready(_) => Poll::Ready(Ok(())),
            Poll::Pending => Poll::Pending,
        }
    }

    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context)?;
        if flushed.is_ready() {
            self.unflushed = false;
        }
        flushed.map(Ok)
    }

    /// Whether the system has taken all that was to be written.
    pub fn is_written(&self) -> bool {
        self.output.is_empty() && !self.unflushed
    }

    /// Writes all that waits.
    ///
    /// # Errors
    /// The connection is broken.
    pub async fn flush(&mut self) -> io::Result<()> {
        self.stream.write_all(&std::mem::take(&mut self.output)).await?;
        self.stream.flush().await?;
        self.unflushed = false;
        Ok(())
    }
}
