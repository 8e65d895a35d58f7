//! A TCP connection that speaks RFB.

use std::io;

use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Bytes that wait to be written. With more, no messages are read that may lead to further ones.
pub const MAX_WAITING: usize = 4 << 20;

/// A TCP connection, bytes that were read from it, and bytes that wait to be written to it.
#[derive(Debug)]
pub struct Socket {
    tcp: TcpStream,
    pub input: BytesMut,
    pub output: Vec<u8>,
}

impl Socket {
    /// A socket over a TCP connection, without Nagle's algorithm: keys and pointer movements must not wait
    /// for more data.
    pub fn new(tcp: TcpStream) -> Self {
        // Without the option, everything works all the same.
        let _ = tcp.set_nodelay(true);
        Self { tcp, input: BytesMut::new(), output: Vec::new() }
    }

    /// Reads some bytes, unless `read` is false, or writes some. May be cancelled and called again.
    ///
    /// # Errors
    /// The other end has closed the connection, or it is broken.
    pub async fn exchange(&mut self, read: bool) -> io::Result<()> {
        let (mut reader, mut writer) = self.tcp.split();
        tokio::select! {
            size = reader.read_buf(&mut self.input), if read => match size? {
                0 => Err(io::ErrorKind::UnexpectedEof.into()),
                _ => Ok(()),
            },
            size = writer.write(&self.output), if !self.output.is_empty() => {
                self.output.drain(..size?);
                Ok(())
            }
            else => std::future::pending().await,
        }
    }

    /// Writes all that waits.
    ///
    /// # Errors
    /// The connection is broken.
    pub async fn flush(&mut self) -> io::Result<()> {
        self.tcp.write_all(&std::mem::take(&mut self.output)).await
    }
}
