//! Connections of small RFB servers and viewers.

use std::io::{ErrorKind, Read, Write};
use std::time::Duration;

use bytes::BytesMut;

/// How long a connection is read before its thread looks whether there is other work.
pub const TICK: Duration = Duration::from_millis(2);

/// A connection that is read for no longer than [`TICK`] at once.
pub trait Wire: Read + Write + Send {}

impl<T: Read + Write + Send> Wire for T {}

pub fn write(wire: &mut dyn Wire, out: &[u8]) -> std::io::Result<()> {
    wire.write_all(out)?;
    wire.flush()
}

/// Reads the bytes that there are; returns whether the connection is open.
pub fn read(wire: &mut dyn Wire, input: &mut BytesMut) -> bool {
    let mut chunk = [0; 65536];
    match wire.read(&mut chunk) {
        Ok(size) => {
            input.extend_from_slice(&chunk[..size]);
            size > 0
        }
        Err(error) => is_silence(&error),
    }
}

/// Whether an error says only that nothing has come within [`TICK`].
pub fn is_silence(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}
