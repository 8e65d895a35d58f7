//! Small requests and answers on streams of a pair, without HTTP/3.

use crate::Error;
use crate::load::{ANSWER, Load, PATIENCE, REQUESTS};
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

    /// Sends a request, if the server lets the client open a stream. Returns whether it does.
    ///
    /// # Errors
    /// The connection fails.
    fn try_send(&mut self) -> Result<bool, Error> {
        self.pair.work(Side::Client, |connection| {
            let Some(stream) = connection.open(Dir::Bi) else { return Ok(false) };
            connection.send_stream(stream).write(&[0; REQUEST])?;
            connection.send_stream(stream).finish()?;
            Ok(true)
        })
    }

    /// Keeps `at_once` requests under way: another one follows each answer, as soon as the server lets the client open
    /// a stream. The first half is a warm-up. Returns how many answers came while it was measured.
    ///
    /// # Errors
    /// Not all requests are answered.
    pub fn keep_up(mut self, at_once: usize) -> Result<u64, Error> {
        let half = REQUESTS.max(10 * at_once);
        let (mut sent, mut before) = (0, 0);
        let end = self.pair.now + PATIENCE;
        while self.answered < 2 * half {
            self.work()?;
            if before == 0 && self.answered >= half {
                before = self.answered;
                self.pair.meter.switch(true);
            }
            while sent < 2 * half && sent < self.answered + at_once && self.try_send()? {
                sent += 1;
            }
            if !self.pair.step(end) && self.answered < 2 * half {
                return Err("not all requests were answered".into());
            }
        }
        if self.received != sent * ANSWER {
            return Err("not all of the answers arrived".into());
        }
        Ok((self.answered - before) as u64)
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
        if self.try_send()? { Ok(()) } else { Err("no stream may be opened".into()) }
    }

    fn answered(&self) -> usize {
        self.answered
    }

    fn received(&self) -> usize {
        self.received
    }
}
