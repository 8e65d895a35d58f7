//! The stream of a connection that carries all messages except pieces of the screen.

use bytes::BytesMut;
use sutura::{ConnectionError, Priority, ReadError, RecvStream, SendStream, WriteError};
use sutura_vnc::bridge::{ControlError, ToServer, ToViewer};

/// Why a control stream is of no more use.
#[derive(Debug)]
pub enum Broken {
    /// The connection is lost, or was closed by the other end.
    Connection(ConnectionError),
    /// The other end has ended the stream.
    Ended,
    /// The other end does not keep the protocol.
    Protocol(ControlError),
}

impl From<ReadError> for Broken {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::ConnectionLost(error) => Self::Connection(error),
            _ => Self::Ended,
        }
    }
}

impl From<WriteError> for Broken {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::ConnectionLost(error) => Self::Connection(error),
            _ => Self::Ended,
        }
    }
}

impl From<ControlError> for Broken {
    fn from(error: ControlError) -> Self {
        Self::Protocol(error)
    }
}

/// The control stream, bytes that were read from it, and bytes that wait to be written to it.
#[derive(Debug)]
pub struct Control {
    send: SendStream,
    recv: RecvStream,
    input: BytesMut,
    output: Vec<u8>,
}

impl Control {
    /// Control messages over a bidirectional stream, which gets the highest urgency.
    pub fn new(send: SendStream, recv: RecvStream) -> Self {
        let first = Priority::default().with_urgency(sutura::Urgency::HIGHEST);
        // Fails if the stream is over; the first use of the stream reports that.
        let _ = send.set_priority(first);
        Self { send, recv, input: BytesMut::new(), output: Vec::new() }
    }

    /// How many bytes wait to be sent.
    pub fn waiting(&self) -> usize {
        self.output.len()
    }

    /// Queues a message to the viewer's end.
    pub fn tell_viewer(&mut self, message: &ToViewer) {
        message.encode(&mut self.output);
    }

    /// Queues a message to the server's end.
    pub fn tell_server(&mut self, message: &ToServer) {
        message.encode(&mut self.output);
    }

    /// Takes a message that has come from the viewer's end.
    ///
    /// # Errors
    /// It is malformed.
    pub fn take_from_viewer(&mut self) -> Result<Option<ToServer>, Broken> {
        Ok(ToServer::decode(&mut self.input)?)
    }

    /// Takes a message that has come from the server's end.
    ///
    /// # Errors
    /// It is malformed.
    pub fn take_from_server(&mut self) -> Result<Option<ToViewer>, Broken> {
        Ok(ToViewer::decode(&mut self.input)?)
    }

    /// Reads or writes some. May be cancelled and called again.
    ///
    /// # Errors
    /// The stream or the connection is over.
    pub async fn exchange(&mut self, read: bool) -> Result<(), Broken> {
        let mut chunk = [0; 4096];
        tokio::select! {
            size = self.recv.read(&mut chunk), if read => {
                let size = size?.ok_or(Broken::Ended)?;
                self.input.extend_from_slice(&chunk[..size]);
            }
            size = self.send.write(&self.output), if !self.output.is_empty() => {
                self.output.drain(..size?);
            }
            else => std::future::pending().await,
        }
        Ok(())
    }

    /// Writes all that waits, and ends the stream.
    ///
    /// # Errors
    /// The stream or the connection is over.
    pub async fn finish(&mut self) -> Result<(), Broken> {
        self.send.write_all(&std::mem::take(&mut self.output)).await?;
        Ok(self.send.finish()?)
    }
}
