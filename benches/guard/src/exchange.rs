//! Small requests and answers on streams of a pair, without HTTP/3.

use crate::Error;
use crate::load::{ANSWER, Load};
use crate::pair::Pair;
use sutura_proto::{Connection, Dir, Event, Read, ReadError, Side, StreamEvent, StreamId};

/// The size of a request.
const REQUEST: usize = 8;

/// A client that asks and a server that answers, on a stream for each question.
#[derive(Debug)]
pub struct Exchanges {
    pair: Pair,
    /// Answers that are complete.
    answered: usize,
    /// Bytes of answers.
    received: usize,
}

/// Reads a stream and counts its bytes. Returns whether it has ended.
fn read(
    connection: &mut Connection,
    stream: StreamId,
    received: &mut usize,
) -> Result<bool, Error> {
    let mut buffer = [0; 2 * ANSWER];
    loop {
        match connection.recv_stream(stream).read(&mut buffer) {
            Ok(Read::Data(bytes)) => *received += bytes,
            Ok(Read::Fin) => return Ok(true),
            // A stream that was read to its end may be announced once more.
            Err(ReadError::Blocked | ReadError::Closed) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Answers a request that has arrived as a whole.
fn answer(connection: &mut Connection, stream: StreamId) -> Result<(), Error> {
    if read(connection, stream, &mut 0)? {
        connection.send_stream(stream).write(&[b'x'; ANSWER])?;
        connection.send_stream(stream).finish()?;
    }
    Ok(())
}

impl Exchanges {
    /// Exchanges on a pair that is connected.
    pub fn new(pair: Pair) -> Self {
        Self { pair, answered: 0, received: 0 }
    }

    /// Opens streams whose requests do not end, so that they are not answered.
    ///
    /// # Errors
    /// No more streams may be opened.
    pub fn hold(&mut self, streams: usize) -> Result<(), Error> {
        self.pair.work(Side::Client, |connection| {
            for _ in 0..streams {
                let stream = connection.open(Dir::Bi).ok_or("no stream may be opened")?;
                connection.send_stream(stream).write(&[0; REQUEST])?;
            }
            Ok(())
        })
    }
}

impl Load for Exchanges {
    fn pair(&mut self) -> &mut Pair {
        &mut self.pair
    }

    fn work(&mut self) -> Result<(), Error> {
        for side in [Side::Client, Side::Server] {
            while let Some(event) = self.pair.end(side).poll_event() {
                let Event::Stream(event) = event else { continue };
                let (answered, received) = (&mut self.answered, &mut self.received);
                self.pair.work(side, |connection| match (side, event) {
                    (Side::Client, StreamEvent::Readable { id }) => {
                        *answered += usize::from(read(connection, id, received)?);
                        Ok(())
                    }
                    (Side::Server, StreamEvent::Readable { id }) => answer(connection, id),
                    (Side::Server, StreamEvent::Opened { dir }) => {
                        while let Some(id) = connection.accept(dir) {
                            answer(connection, id)?;
                        }
                        Ok(())
                    }
                    _ => Ok(()),
                })?;
            }
        }
        Ok(())
    }

    fn send(&mut self) -> Result<(), Error> {
        self.pair.work(Side::Client, |connection| {
            let stream = connection.open(Dir::Bi).ok_or("no stream may be opened")?;
            connection.send_stream(stream).write(&[0; REQUEST])?;
            Ok(connection.send_stream(stream).finish()?)
        })
    }

    fn answered(&self) -> usize {
        self.answered
    }

    fn received(&self) -> usize {
        self.received
    }
}
