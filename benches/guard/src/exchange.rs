//! Small requests and answers on streams of a pair, without HTTP/3.

use crate::Error;
use crate::pair::Pair;
use std::time::{Duration, Instant};
use sutura_proto::{Connection, Dir, Event, Read, ReadError, Side, StreamEvent, StreamId};

/// The size of a request.
const REQUEST: usize = 8;
/// The size of an answer.
const ANSWER: usize = 1000;
/// No exchange takes longer.
const PATIENCE: Duration = Duration::from_secs(10);

/// A client that asks and a server that answers, on a stream for each question.
#[derive(Debug)]
pub struct Exchanges {
    pub pair: Pair,
    /// Answers that are complete.
    answered: usize,
}

/// Reads a stream. Returns whether it has ended.
fn read(connection: &mut Connection, stream: StreamId) -> Result<bool, Error> {
    let mut buffer = [0; 2 * ANSWER];
    loop {
        match connection.recv_stream(stream).read(&mut buffer) {
            Ok(Read::Data(_)) => {}
            Ok(Read::Fin) => return Ok(true),
            // A stream that was read to its end may be announced once more.
            Err(ReadError::Blocked | ReadError::Closed) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Answers a request that has arrived as a whole.
fn answer(connection: &mut Connection, stream: StreamId) -> Result<(), Error> {
    if read(connection, stream)? {
        connection.send_stream(stream).write(&[b'x'; ANSWER])?;
        connection.send_stream(stream).finish()?;
    }
    Ok(())
}

impl Exchanges {
    /// Exchanges on a pair that is connected.
    pub fn new(pair: Pair) -> Self {
        Self { pair, answered: 0 }
    }

    /// Lets the applications of both sides work.
    fn work(&mut self) -> Result<(), Error> {
        for side in [Side::Client, Side::Server] {
            while let Some(event) = self.pair.end(side).poll_event() {
                let Event::Stream(event) = event else { continue };
                let answered = &mut self.answered;
                self.pair.work(side, |connection| match (side, event) {
                    (Side::Client, StreamEvent::Readable { id }) => {
                        *answered += usize::from(read(connection, id)?);
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

    fn step(&mut self, end: Instant) -> Result<bool, Error> {
        self.work()?;
        Ok(self.pair.step(end))
    }

    /// Sends requests at once, and waits for all answers.
    ///
    /// # Errors
    /// Not all requests are answered.
    pub fn ask(&mut self, requests: usize) -> Result<(), Error> {
        let (end, answered) = (self.pair.now + PATIENCE, self.answered);
        for _ in 0..requests {
            self.pair.work(Side::Client, |connection| {
                let stream = connection.open(Dir::Bi).ok_or("no stream may be opened")?;
                connection.send_stream(stream).write(&[0; REQUEST])?;
                Ok(connection.send_stream(stream).finish()?)
            })?;
        }
        while self.answered < answered + requests {
            if !self.step(end)? {
                return Err("not all requests were answered".into());
            }
        }
        Ok(())
    }

    /// Lets time pass.
    ///
    /// # Errors
    /// The connection fails.
    pub fn pass(&mut self, time: Duration) -> Result<(), Error> {
        let end = self.pair.now + time;
        while self.step(end)? {}
        self.pair.now = end;
        Ok(())
    }
}
