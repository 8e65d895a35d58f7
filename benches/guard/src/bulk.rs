//! One long stream from the client to the server of a pair.

use crate::Error;
use crate::pair::{Pair, REST};
use sutura_proto::{Dir, Protection, Read, Side, StreamId};

/// A client that writes whenever there is room, and a server that reads whenever there is data.
#[derive(Debug)]
pub struct Bulk {
    pub pair: Pair,
    stream: StreamId,
    data: Vec<u8>,
    buffer: Vec<u8>,
    /// Bytes that are still to be written.
    left: usize,
    /// Whether the client writes until there is no room, and not only once, before each step.
    pub fills: bool,
    /// Bytes that were read.
    pub read: usize,
}

impl Bulk {
    /// A stream of this many bytes on a pair that is connected.
    ///
    /// # Errors
    /// No stream may be opened.
    pub fn new(
        mut pair: Pair,
        protection: Option<Protection>,
        bytes: usize,
    ) -> Result<Self, Error> {
        let stream = pair.work(Side::Client, |connection| {
            let stream = connection.open(Dir::Uni).ok_or("no stream may be opened")?;
            connection.send_stream(stream).protect(protection)?;
            Ok(stream)
        })?;
        let (data, buffer) = (vec![7; 1 << 16], vec![0; 1 << 16]);
        Ok(Self { pair, stream, data, buffer, left: bytes, fills: false, read: 0 })
    }

    /// Goes on until this many bytes were read.
    ///
    /// # Errors
    /// The stream ends before that.
    pub fn until(&mut self, read: usize) -> Result<(), Error> {
        let end = self.pair.now + 100 * REST;
        while self.read < read {
            self.step()?;
            if self.pair.now > end {
                return Err("the stream takes too long".into());
            }
        }
        Ok(())
    }

    fn step(&mut self) -> Result<(), Error> {
        let (stream, data, buffer) = (self.stream, &self.data, &mut self.buffer);
        let (left, fills) = (self.left, self.fills);
        self.left -= self.pair.work(Side::Client, |connection| {
            let mut written = 0;
            loop {
                let rest = data.len().min(left - written);
                // Data without room now is written later.
                match connection.send_stream(stream).write(&data[..rest]).unwrap_or(0) {
                    0 => return Ok(written),
                    more if fills => written += more,
                    more => return Ok(written + more),
                }
            }
        })?;
        if !self.pair.step(self.pair.now + 100 * REST) {
            return Err("the stream does not end".into());
        }
        while let Some(_event) = self.pair.server.poll_event() {}
        while let Some(_event) = self.pair.client.poll_event() {}
        self.read += self.pair.work(Side::Server, |connection| {
            let mut bytes = 0;
            while let Ok(Read::Data(more)) = connection.recv_stream(stream).read(buffer) {
                bytes += more;
            }
            Ok(bytes)
        })?;
        Ok(())
    }
}
