//! Bulk transfers in either direction, or in both at once.
//!
//! The client opens a stream for each transfer. It sends the length of the response, 8 bytes in
//! big-endian order, followed by its own payload. The server responds at once with the requested
//! number of bytes, and ends the stream when it has also received everything. Both ends check every
//! byte.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use sutura_proto::Protection;

use super::{CHUNK, Number, read_all, read_pieces};
use crate::{App, AppError, Pattern, Quic};

/// A transfer on one stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transfer {
    /// Bytes from the server to the client.
    pub download: u64,
    /// Bytes from the client to the server.
    pub upload: u64,
    /// How the client protects its data.
    pub protection: Option<Protection>,
}

impl Transfer {
    /// A download from the server to the client.
    #[must_use]
    pub fn download(bytes: u64) -> Self {
        Self { download: bytes, ..Self::default() }
    }

    /// An upload from the client to the server.
    #[must_use]
    pub fn upload(bytes: u64) -> Self {
        Self { upload: bytes, ..Self::default() }
    }

    /// An upload and a download of `bytes` each, at the same time.
    #[must_use]
    pub fn both(bytes: u64) -> Self {
        Self { download: bytes, upload: bytes, protection: None }
    }
}

/// When a transfer began and ended, as the client saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completed {
    /// The index of the transfer, starting at 0.
    pub index: usize,
    /// When its stream was opened.
    pub started: Instant,
    /// When its last byte and the end of the stream had been received.
    pub completed: Instant,
}

fn upload_pattern(stream: u64) -> Pattern {
    Pattern::new(2 * stream)
}

fn download_pattern(stream: u64) -> Pattern {
    Pattern::new(2 * stream + 1)
}

/// The outgoing bytes of a stream.
#[derive(Debug)]
struct Sending {
    pattern: Pattern,
    sent: u64,
    total: u64,
}

impl Sending {
    /// Writes as much as possible. Returns whether all data is written.
    fn poll(&mut self, quic: &mut impl Quic, stream: u64) -> Result<bool, AppError> {
        let mut buffer = [0; CHUNK];
        while self.sent < self.total {
            let n = usize::try_from(self.total - self.sent).map_or(CHUNK, |left| left.min(CHUNK));
            self.pattern.fill(self.sent, &mut buffer[..n]);
            let written = quic.write(stream, &buffer[..n])?;
            self.sent += written as u64;
            if written < n {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The incoming bytes of a stream.
#[derive(Debug)]
struct Receiving {
    pattern: Pattern,
    received: u64,
}

impl Receiving {
    fn take(&mut self, stream: u64, data: &[u8]) -> Result<(), AppError> {
        self.take_at(stream, self.received, data)
    }

    /// Takes bytes at any offset of the stream; the transport delivers each byte once.
    fn take_at(&mut self, stream: u64, offset: u64, data: &[u8]) -> Result<(), AppError> {
        if let Some(wrong) = self.pattern.mismatch(offset, data) {
            return Err(AppError(format!("stream {stream}: byte {wrong} is wrong")));
        }
        self.received += data.len() as u64;
        Ok(())
    }
}

struct Active {
    index: usize,
    stream: u64,
    started: Instant,
    plan: Transfer,
    header: usize,
    upload: Sending,
    finished: bool,
    download: Receiving,
}

impl Active {
    /// Returns whether the transfer is complete. With `ordered`, bytes are read in stream order.
    fn poll(&mut self, quic: &mut impl Quic, ordered: bool) -> Result<bool, AppError> {
        self.send(quic)?;
        let download = &mut self.download;
        let stream = self.stream;
        let ended = if ordered {
            read_all(quic, stream, |data| download.take(stream, data))?
        } else {
            read_pieces(quic, stream, |offset, data| download.take_at(stream, offset, data))?
        };
        if !ended {
            return Ok(false);
        }
        if self.download.received != self.plan.download {
            let (got, want) = (self.download.received, self.plan.download);
            return Err(AppError(format!("stream {stream}: {got} bytes instead of {want}")));
        }
        Ok(true)
    }

    fn send(&mut self, quic: &mut impl Quic) -> Result<(), AppError> {
        if self.finished {
            return Ok(());
        }
        let header = self.plan.download.to_be_bytes();
        if self.header < header.len() {
            self.header += quic.write(self.stream, &header[self.header..])?;
        }
        if self.header == header.len() && self.upload.poll(quic, self.stream)? {
            quic.finish(self.stream)?;
            self.finished = true;
        }
        Ok(())
    }
}

/// Runs a list of transfers, one after the other or several in parallel.
pub struct BulkClient {
    plan: VecDeque<Transfer>,
    gap: Duration,
    parallel: usize,
    /// Whether responses are read in stream order.
    ordered: bool,
    next_at: Option<Instant>,
    started: usize,
    active: Vec<Active>,
    completed: Vec<Completed>,
    /// Bytes of the completed responses.
    received: u64,
}

impl BulkClient {
    /// Runs the transfers of `plan`, up to `parallel` at a time. A transfer begins at the earliest
    /// `gap` after the last one to complete.
    #[must_use]
    pub fn new(plan: impl IntoIterator<Item = Transfer>, parallel: usize, gap: Duration) -> Self {
        Self {
            plan: plan.into_iter().collect(),
            gap,
            parallel: parallel.max(1),
            ordered: true,
            next_at: None,
            started: 0,
            active: Vec::new(),
            completed: Vec::new(),
            received: 0,
        }
    }

    /// Begins no transfer before `at`.
    #[must_use]
    pub fn not_before(self, at: Instant) -> Self {
        Self { next_at: Some(at), ..self }
    }

    /// Reads responses in whichever order their bytes arrive.
    #[must_use]
    pub fn unordered(self) -> Self {
        Self { ordered: false, ..self }
    }

    /// How many transfers have begun.
    #[must_use]
    pub const fn started(&self) -> usize {
        self.started
    }

    /// The completed transfers, in the order in which they completed.
    #[must_use]
    pub fn completed(&self) -> &[Completed] {
        &self.completed
    }

    /// Bytes of responses read so far.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.received + self.active.iter().map(|active| active.download.received).sum::<u64>()
    }

    /// Whether a transfer is in progress.
    #[must_use]
    pub const fn is_busy(&self) -> bool {
        !self.active.is_empty()
    }

    /// Whether all transfers are complete.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.plan.is_empty() && self.active.is_empty()
    }

    fn start(&mut self, now: Instant, quic: &mut impl Quic) -> Result<(), AppError> {
        while self.active.len() < self.parallel && self.next_at.is_none_or(|at| at <= now) {
            let Some(plan) = self.plan.front() else { return Ok(()) };
            let plan = plan.clone();
            let Some(stream) = quic.open() else { return Ok(()) };
            self.plan.pop_front();
            quic.protect(stream, plan.protection.clone())?;
            let pattern = upload_pattern(stream);
            let upload = Sending { pattern, sent: 0, total: plan.upload };
            self.active.push(Active {
                index: self.started,
                stream,
                started: now,
                plan,
                header: 0,
                upload,
                finished: false,
                download: Receiving { pattern: download_pattern(stream), received: 0 },
            });
            self.started += 1;
        }
        Ok(())
    }
}

impl<Q: Quic> App<Q> for BulkClient {
    fn poll(&mut self, now: Instant, quic: &mut Q) -> Result<Option<Instant>, AppError> {
        loop {
            self.start(now, quic)?;
            let before = self.completed.len();
            let mut i = 0;
            while let Some(active) = self.active.get_mut(i) {
                if active.poll(quic, self.ordered)? {
                    let Active { index, started, download, .. } = self.active.remove(i);
                    self.received += download.received;
                    self.completed.push(Completed { index, started, completed: now });
                    self.next_at = Some(now + self.gap);
                } else {
                    i += 1;
                }
            }
            if self.completed.len() == before {
                break;
            }
        }
        let waiting = self.active.len() < self.parallel && !self.plan.is_empty();
        Ok(self.next_at.filter(|at| waiting && *at > now))
    }
}

struct Serving {
    stream: u64,
    length: Number,
    upload: Receiving,
    upload_ended: bool,
    download: Option<Sending>,
}

impl Serving {
    /// Returns whether the stream is done.
    fn poll(
        &mut self,
        quic: &mut impl Quic,
        protection: Option<&Protection>,
    ) -> Result<bool, AppError> {
        let stream = self.stream;
        if !self.upload_ended {
            let (length, upload) = (&mut self.length, &mut self.upload);
            self.upload_ended =
                read_all(quic, stream, |data| upload.take(stream, length.take(data)))?;
        }
        if self.download.is_none() {
            let Some(total) = self.length.get() else {
                if self.upload_ended {
                    return Err(AppError(format!("stream {stream}: ended before its length")));
                }
                return Ok(false);
            };
            quic.protect(stream, protection.cloned())?;
            self.download = Some(Sending { pattern: download_pattern(stream), sent: 0, total });
        }
        let Some(download) = &mut self.download else { return Ok(false) };
        if !download.poll(quic, stream)? || !self.upload_ended {
            return Ok(false);
        }
        quic.finish(stream)?;
        Ok(true)
    }
}

/// The server for [`BulkClient`].
#[derive(Default)]
pub struct BulkServer {
    protection: Option<Protection>,
    active: Vec<Serving>,
    received: u64,
}

impl BulkServer {
    /// A server that protects its responses with `protection`.
    #[must_use]
    pub fn new(protection: Option<Protection>) -> Self {
        Self { protection, ..Self::default() }
    }

    /// Bytes received on completed streams, not counting the length prefixes.
    #[must_use]
    pub const fn received(&self) -> u64 {
        self.received
    }
}

impl<Q: Quic> App<Q> for BulkServer {
    fn poll(&mut self, _: Instant, quic: &mut Q) -> Result<Option<Instant>, AppError> {
        while let Some(stream) = quic.accept() {
            self.active.push(Serving {
                stream,
                length: Number::default(),
                upload: Receiving { pattern: upload_pattern(stream), received: 0 },
                upload_ended: false,
                download: None,
            });
        }
        let mut i = 0;
        while let Some(serving) = self.active.get_mut(i) {
            if serving.poll(quic, self.protection.as_ref())? {
                self.received += self.active.remove(i).upload.received;
            } else {
                i += 1;
            }
        }
        Ok(None)
    }
}
