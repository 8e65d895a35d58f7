//! A server that sends resources, each on a stream, and a client that takes their bytes in the order
//! of their arrival and notes when each message is complete.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sutura_proto::{
    Connection, Dir, Event, Priority, Protection, ReadError, StreamEvent, StreamId,
};
use sutura_sim::{App, AppError, Pattern, Quic};

/// How many bytes are read at a time.
const CHUNK: usize = 16 * 1024;

/// A resource of the page.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Resource {
    pub(super) bytes: usize,
    pub(super) priority: Priority,
    pub(super) protection: Option<Protection>,
}

/// The data that the server sends.
#[derive(Clone, Debug)]
pub(super) struct PagePlan {
    /// Bytes of a transfer that comes before, so that congestion control knows the path.
    pub(super) warm_up: usize,
    /// The time after it.
    pub(super) gap: Duration,
    /// All written at once.
    pub(super) resources: Arc<[Resource]>,
    /// The size of a message: each resource is made of whole messages.
    pub(super) message: usize,
}

fn wrong(what: &str, error: impl std::fmt::Display) -> AppError {
    AppError(format!("{what}: {error}"))
}

/// Sends the transfer before, and then the resources. Runs on the server.
pub(super) struct Source {
    plan: PagePlan,
    /// The stream of the transfer before, and how much of it was written.
    warm_up: Option<(StreamId, usize)>,
    /// When the resources are to be sent.
    due: Option<Instant>,
    begun: Option<Instant>,
}

impl Source {
    pub(super) const fn new(plan: PagePlan) -> Self {
        Self { plan, warm_up: None, due: None, begun: None }
    }

    /// Whether the transfer before is over.
    pub(super) const fn is_warm(&self) -> bool {
        self.due.is_some()
    }

    /// When the resources were handed to the transport.
    pub(super) const fn begun(&self) -> Option<Instant> {
        self.begun
    }

    fn open(
        quic: &mut Connection,
        priority: Priority,
        protection: Option<Protection>,
    ) -> Result<StreamId, AppError> {
        let id = quic.open(Dir::Uni).ok_or(AppError("too many streams".to_owned()))?;
        let told = quic.send_stream(id).set_priority(priority);
        told.map_err(|error| wrong("priority", error))?;
        quic.protect(id.0, protection)?;
        Ok(id)
    }

    /// Writes as much of the earlier transfer as there is room for.
    fn write_warm_up(&mut self, quic: &mut Connection) -> Result<(), AppError> {
        if self.warm_up.is_none() {
            self.warm_up = Some((Self::open(quic, Priority::default(), None)?, 0));
        }
        let Some((id, written)) = &mut self.warm_up else { return Ok(()) };
        let pattern = Pattern::new(id.0);
        while *written < self.plan.warm_up {
            let mut data = vec![0; CHUNK.min(self.plan.warm_up - *written)];
            pattern.fill(*written as u64, &mut data);
            match quic.write(id.0, &data)? {
                0 => return Ok(()),
                taken => *written += taken,
            }
            if *written == self.plan.warm_up {
                quic.finish(id.0)?;
            }
        }
        Ok(())
    }

    fn send_resources(&self, quic: &mut Connection) -> Result<(), AppError> {
        for resource in &*self.plan.resources {
            let Resource { bytes, priority, protection } = resource.clone();
            let id = Self::open(quic, priority, protection)?;
            let mut data = vec![0; bytes];
            Pattern::new(id.0).fill(0, &mut data);
            let written = quic.write(id.0, &data)?;
            if written < bytes {
                return Err(AppError(format!("room for {written} of {bytes} bytes")));
            }
            quic.finish(id.0)?;
        }
        Ok(())
    }
}

impl App<Connection> for Source {
    fn on_event(&mut self, now: Instant, _: &mut Connection, event: Event) -> Result<(), AppError> {
        let warm_up = self.warm_up.map(|(id, _)| id);
        if let Event::Stream(StreamEvent::Finished { id }) = event
            && Some(id) == warm_up
        {
            self.due = Some(now + self.plan.gap);
        }
        Ok(())
    }

    fn poll(&mut self, now: Instant, quic: &mut Connection) -> Result<Option<Instant>, AppError> {
        if quic.is_handshaking() || self.begun.is_some() {
            return Ok(None);
        }
        self.write_warm_up(quic)?;
        if self.due.is_some_and(|at| at <= now) {
            self.begun = Some(now);
            self.send_resources(quic)?;
        }
        Ok(self.due.filter(|_| self.begun.is_none()))
    }
}

/// Receives it, each stream in the order of arrival. Runs on the client.
pub(super) struct Sink {
    plan: PagePlan,
    /// Streams that have not ended.
    open: Vec<StreamId>,
    /// For each message in the order of sending, how many of its bytes are missing, and when it was
    /// complete.
    messages: Vec<(usize, Option<Instant>)>,
}

impl Sink {
    pub(super) fn new(plan: PagePlan) -> Self {
        let bytes: usize = plan.resources.iter().map(|resource| resource.bytes).sum();
        let messages = vec![(plan.message, None); bytes / plan.message];
        Self { plan, open: Vec::new(), messages }
    }

    /// When each message was complete, once all are.
    pub(super) fn completed(&self) -> Option<Vec<Instant>> {
        self.messages.iter().map(|(_, completed)| *completed).collect()
    }

    /// Bytes of a stream have arrived. The first stream is the earlier transfer, the next streams are the
    /// resources in their order.
    fn take(
        &mut self,
        now: Instant,
        id: StreamId,
        offset: u64,
        data: &[u8],
    ) -> Result<(), AppError> {
        if Pattern::new(id.0).mismatch(offset, data).is_some() {
            return Err(AppError(format!("stream {} is damaged at {offset}", id.0)));
        }
        let Some(resource) = ((id.0 >> 2) as usize).checked_sub(1) else { return Ok(()) };
        let before = self.plan.resources.iter().take(resource);
        let first = before.map(|resource| resource.bytes).sum::<usize>() / self.plan.message;
        let (mut at, end) = (offset as usize, offset as usize + data.len());
        while at < end {
            let message = at / self.plan.message;
            let part = end.min((message + 1) * self.plan.message) - at;
            let beyond = || AppError(format!("stream {} is too long", id.0));
            let (missing, completed) = self.messages.get_mut(first + message).ok_or_else(beyond)?;
            *missing = missing.checked_sub(part).ok_or_else(beyond)?;
            if *missing == 0 {
                *completed = Some(now);
            }
            at += part;
        }
        Ok(())
    }

    /// Reads the data of a stream. Returns whether there may be more.
    fn read(
        &mut self,
        now: Instant,
        quic: &mut Connection,
        id: StreamId,
    ) -> Result<bool, AppError> {
        loop {
            match quic.recv_stream(id).read_chunk(CHUNK, false) {
                Ok(Some(chunk)) => self.take(now, id, chunk.offset, &chunk.bytes)?,
                Ok(None) => return Ok(false),
                Err(ReadError::Blocked) => return Ok(true),
                Err(error) => return Err(wrong("read", error)),
            }
        }
    }
}

impl App<Connection> for Sink {
    fn poll(&mut self, now: Instant, quic: &mut Connection) -> Result<Option<Instant>, AppError> {
        while let Some(id) = quic.accept(Dir::Uni) {
            self.open.push(id);
        }
        for id in std::mem::take(&mut self.open) {
            if self.read(now, quic, id)? {
                self.open.push(id);
            }
        }
        Ok(None)
    }
}
