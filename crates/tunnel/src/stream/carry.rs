//! Moves the bytes of a flow between its socket and the exchange that carries it at present.

use std::future::pending;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use sutura::http::{Code, Error, Priority, RecvHalf, RequestStream, SendHalf};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};

use super::kept::{Kept, KeptAtRest};
use super::ledger::{Ledger, Listing, lock};
use super::pool::Pool;
use crate::counts::Counts;
use crate::flow::{Class, Flow};
use crate::throttle::Throttle;

/// Most bytes that are read from a socket at a time.
const READ_SIZE: usize = 64 << 10;
/// What was read is copied if it is less than this: memory that stays nearly empty is not kept.
const COPY_BELOW: usize = READ_SIZE / 2;

/// How a flow ends, or its present exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Both directions are complete.
    Complete,
    /// One of both programs, or an end of the tunnel, has reset it.
    Reset,
    /// The connection is lost.
    Lost,
}

/// A flow at one end.
#[derive(Debug)]
pub(crate) struct Pipe {
    tcp: TcpStream,
    /// What it carries, as both directions show.
    flow: Mutex<Flow>,
    kept: Arc<Kept>,
    /// How much the program at this end has taken, and one more once that is the end.
    taken: u64,
    is_taken: bool,
    throttle: Throttle,
    /// Bytes from and to the socket, for reports.
    counts: Arc<Counts>,
}

/// A flow at one end while no exchange carries it, without its socket.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PipeAtRest {
    /// How much the program at this end has taken, and one more once that is the end.
    pub(crate) taken: u64,
    /// Whether that is the end.
    pub(crate) is_taken: bool,
    /// What the other end is to get.
    pub(crate) kept: KeptAtRest,
}

impl PipeAtRest {
    /// Bytes that were written to the socket, and bytes that were read from it.
    pub(crate) fn carried(&self) -> (u64, u64) {
        let kept: usize = self.kept.data.iter().map(Bytes::len).sum();
        (self.taken - u64::from(self.is_taken), self.kept.base + kept as u64)
    }
}

impl From<Error> for Ending {
    fn from(error: Error) -> Self {
        match error {
            Error::Connection(_)
            | Error::Protocol(_)
            | Error::GoingAway
            | Error::ZeroRttRejected => Self::Lost,
            _ => Self::Reset,
        }
    }
}

/// An error of the socket.
impl From<io::Error> for Ending {
    fn from(_: io::Error) -> Self {
        Self::Reset
    }
}

impl Pipe {
    pub(crate) fn new(
        tcp: TcpStream,
        flow: Flow,
        kept: Arc<Kept>,
        throttle: Throttle,
        counts: Arc<Counts>,
    ) -> Self {
        // Without the option, everything works all the same.
        let _ = tcp.set_nodelay(true);
        let flow = Mutex::new(flow);
        Self { tcp, flow, kept, taken: 0, is_taken: false, throttle, counts }
    }

    /// The priority that its class has at present.
    pub(crate) fn priority(&self) -> Priority {
        lock(&self.flow).treatment().priority()
    }

    /// Goes on with a flow that [`rest`](Self::rest) has stopped.
    ///
    /// # Errors
    /// The socket cannot be used.
    pub(crate) fn resting(
        socket: std::net::TcpStream,
        flow: Flow,
        rest: PipeAtRest,
        pool: Arc<Pool>,
        throttle: Throttle,
        counts: Arc<Counts>,
    ) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let tcp = TcpStream::from_std(socket)?;
        #[expect(deprecated, reason = "no time to linger, which blocks nothing")]
        tcp.set_linger(None)?;
        let PipeAtRest { taken, is_taken, kept } = rest;
        let kept = Kept::resting(kept, pool);
        Ok(Self { taken, is_taken, ..Self::new(tcp, flow, kept, throttle, counts) })
    }

    /// Stops the flow so that another process can go on with it. The program at this end sees a reset if none does:
    /// when the last copy of the socket is closed.
    ///
    /// # Errors
    /// The socket cannot be handed over.
    pub(crate) fn rest(self) -> io::Result<(std::net::TcpStream, PipeAtRest)> {
        self.tcp.set_zero_linger()?;
        let rest =
            PipeAtRest { taken: self.taken, is_taken: self.is_taken, kept: self.kept.rest() };
        Ok((self.tcp.into_std()?, rest))
    }

    pub(crate) const fn kept(&self) -> &Arc<Kept> {
        &self.kept
    }

    /// How much the program at this end has taken; see [`Progress`](crate::masque::Progress).
    pub(crate) const fn taken(&self) -> u64 {
        self.taken
    }

    /// Whether both programs have all of it, so that only reports of that are missing.
    pub(crate) fn is_done(&self) -> bool {
        self.is_taken && self.kept.is_ended() && self.kept.next().is_none()
    }

    /// Carries the flow over an exchange. With a ledger, the flow can be resumed over another one if this is
    /// [`Ending::Lost`] or the future is dropped.
    pub(crate) async fn over(
        &mut self,
        stream: RequestStream,
        ledger: Option<&Arc<Ledger>>,
    ) -> Ending {
        let connection = stream.connection().clone();
        let entry = ledger.map(|ledger| ledger.enter(stream.id().0, &self.kept, self.taken));
        let (mut send, mut recv) = stream.split();
        let (read, write) = self.tcp.split();
        let up = Up {
            read,
            flow: &self.flow,
            class: None,
            kept: &self.kept,
            throttle: &self.throttle,
            counts: &self.counts,
        };
        let down = Down {
            write,
            flow: &self.flow,
            taken: &mut self.taken,
            is_taken: &mut self.is_taken,
            entry: entry.as_ref(),
            throttle: &self.throttle,
            counts: &self.counts,
        };
        let lost = async {
            match ledger {
                // What has arrived and was not taken is sent again.
                Some(_) => drop(connection.closed().await),
                None => pending().await,
            }
        };
        let ending = tokio::select! {
            biased;
            ending = async { tokio::try_join!(up.run(&mut send), down.run(&mut recv)) } => {
                ending.map_or_else(|ending| ending, |_| Ending::Complete)
            }
            () = lost => Ending::Lost,
        };
        if ending == Ending::Reset {
            send.reset(Code::CONNECT_ERROR);
        }
        ending
    }

    /// Ends the flow: the program at this end sees a reset unless all was complete.
    pub(crate) fn end(self, ending: Ending) {
        if ending != Ending::Complete {
            // The program then sees an end instead.
            let _ = self.tcp.set_zero_linger();
        }
    }
}

/// The direction from the socket.
struct Up<'a> {
    read: ReadHalf<'a>,
    flow: &'a Mutex<Flow>,
    /// The class as which the exchange is sent.
    class: Option<Class>,
    kept: &'a Kept,
    throttle: &'a Throttle,
    counts: &'a Counts,
}

impl Up<'_> {
    async fn run(mut self, send: &mut SendHalf) -> Result<(), Ending> {
        loop {
            self.treat(send)?;
            while let Some((at, mut chunk)) = self.kept.next() {
                chunk.truncate(send.body_room().await?);
                let to = at + chunk.len() as u64;
                send.send_data(chunk).await?;
                self.kept.sent(to);
            }
            if self.kept.is_ended() {
                send.finish().await?;
                self.kept.wait_over().await;
                return Ok(());
            }
            let data = tokio::select! {
                data = self.read(send.body_room().await?) => data?,
                () = send.unwanted() => return Err(why_unwanted(send).await),
            };
            if data.is_empty() {
                self.kept.finish();
            } else {
                self.counts.add_sent(data.len());
                lock(self.flow).sent(Instant::now(), data.len());
                let wait = self.throttle.pass(data.len());
                self.kept.push(data);
                wait.await?;
            }
        }
    }

    /// Has the exchange sent as its class is, if that has changed.
    fn treat(&mut self, send: &SendHalf) -> Result<(), Error> {
        let flow = lock(self.flow);
        if self.class != Some(flow.class()) {
            flow.treatment().apply(send)?;
            self.class = Some(flow.class());
        }
        Ok(())
    }

    /// Waits for bytes from the socket, of which there is room for `room` on the way. Nothing is held before they
    /// come, and none are lost if this is dropped.
    async fn read(&self, room: usize) -> io::Result<Bytes> {
        let room = self.kept.wait_room().await.min(room).clamp(1, READ_SIZE);
        loop {
            self.read.readable().await?;
            let mut buffer = BytesMut::with_capacity(room);
            match self.read.try_read_buf(&mut buffer) {
                Ok(size) if size < COPY_BELOW => return Ok(Bytes::copy_from_slice(&buffer)),
                Ok(_) => return Ok(buffer.freeze()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Why the other end does not want what is sent.
async fn why_unwanted(send: &mut SendHalf) -> Ending {
    // If the exchange can go on in this direction, the other one was reset.
    send.body_room().await.map_or_else(Ending::from, |_| Ending::Reset)
}

/// The direction to the socket.
struct Down<'a> {
    write: WriteHalf<'a>,
    flow: &'a Mutex<Flow>,
    taken: &'a mut u64,
    is_taken: &'a mut bool,
    entry: Option<&'a Listing>,
    throttle: &'a Throttle,
    counts: &'a Counts,
}

impl Down<'_> {
    async fn run(self, recv: &mut RecvHalf) -> Result<(), Ending> {
        use tokio::io::AsyncWriteExt;
        let Self { mut write, flow, taken, is_taken, entry, throttle, counts } = self;
        while let Some(data) = recv.recv_data().await? {
            lock(flow).received(Instant::now(), data.len());
            let wait = throttle.pass(data.len());
            let mut rest = &data[..];
            while !rest.is_empty() {
                write.writable().await?;
                match write.try_write(rest) {
                    Ok(size) => {
                        rest = rest.get(size..).unwrap_or_default();
                        *taken += size as u64;
                        counts.add_received(size);
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                    Err(error) => return Err(error.into()),
                }
                if let Some(entry) = entry {
                    entry.taken(*taken, false);
                }
            }
            wait.await?;
        }
        if !*is_taken {
            write.shutdown().await?;
            *taken += 1;
            *is_taken = true;
        }
        if let Some(entry) = entry {
            entry.taken(*taken, true);
        }
        Ok(())
    }
}
