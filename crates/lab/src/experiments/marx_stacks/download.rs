//! Files over one connection, and what their client received.

use std::time::Duration;

use sutura_link::{LinkConfig, ParseError};
use sutura_proto::TransportConfig;
use sutura_research::stacks::Preset;
use sutura_sim::{BulkClient, BulkServer, Clock, Observed, Progress, Scenario, Transfer};

use crate::arrivals::{Arrival, Recorder};
use crate::blocking::{Blocking, Kind};
use crate::multiplexing::Mark;
use crate::{Error, metrics};

/// The receive window of the connection that the client of the paper offers.
const WINDOW: u64 = 1 << 20;

/// The path, both ways: that of the paper's residential network, whose round-trip time it does not
/// tell. The queue takes whatever comes, so that nothing is lost but by the channel.
const UP: &str = "rate=2mbit delay=20ms queue=100mb";
const DOWN: &str = "rate=35mbit delay=20ms queue=100mb";

/// What is lost on the way to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    /// Nothing.
    Lossless,
    /// One packet in five hundred, each on its own.
    Random,
    /// One packet in five hundred, in bursts of eight on average.
    Bursts,
}

impl Channel {
    /// Its name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lossless => "lossless",
            Self::Random => "random",
            Self::Bursts => "bursts",
        }
    }

    /// The links to the server and back.
    ///
    /// # Errors
    /// None, as long as the link crate reads what is written here.
    pub fn links(self) -> Result<(LinkConfig, LinkConfig), ParseError> {
        let loss = match self {
            Self::Lossless => "none",
            Self::Random => "bern:0.002",
            Self::Bursts => "ge:0.00025,0.125,1,0",
        };
        Ok((UP.parse()?, format!("{DOWN} loss={loss}").parse()?))
    }
}

/// A server without erasure coding. Its windows are those that its client offers it.
#[must_use]
pub fn server() -> TransportConfig {
    TransportConfig {
        receive_window: WINDOW,
        stream_receive_window: WINDOW,
        fec: None,
        ..TransportConfig::default()
    }
}

/// A server with the defaults of a stack.
#[must_use]
pub fn stack(preset: &Preset) -> TransportConfig {
    let mut config = server();
    preset.apply(&mut config);
    config
}

/// Files that are requested at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Files {
    /// How many.
    pub count: usize,
    /// Bytes of each.
    pub bytes: u64,
}

/// What a client received.
#[derive(Clone, Debug)]
pub struct Trace {
    /// The STREAM frames that carried anything, in the order of their arrival, with what they
    /// brought.
    pub frames: Vec<(Arrival, Kind)>,
    /// What of it waited.
    pub blocking: Blocking,
    /// How long each file took, in the order of the requests.
    pub completion: Vec<Duration>,
}

/// Downloads `files` over a connection.
///
/// # Errors
/// The simulation fails.
pub fn download(
    server: &TransportConfig,
    files: Files,
    (up, down): (&LinkConfig, &LinkConfig),
    seed: u64,
) -> Result<Trace, Error> {
    // All requests are in one packet, so that the server knows all files before it sends any.
    let client = TransportConfig {
        receive_window: server.receive_window,
        stream_receive_window: server.stream_receive_window,
        mix_streams: true,
        fec: None,
        ..TransportConfig::default()
    };
    let recorder = Recorder::default();
    let plan = std::iter::repeat_n(Transfer::download(files.bytes), files.count);
    let client_app = BulkClient::new(plan, files.count, Duration::ZERO);
    let app = Observed::new(client_app, recorder.clone());
    let mut completed = Vec::new();
    let scenario = Scenario::new(seed).link(up, down).client(&client).server(server);
    scenario.drive(Clock::default(), app, BulkServer::default, |view| {
        let app = &view.client.app;
        let done = app.is_done();
        if done {
            completed = app.completed().to_vec();
        }
        Progress { done, busy: app.is_busy() || app.started() == 0 }
    })?;
    completed.sort_by_key(|transfer| transfer.index);
    let mut blocking = Blocking::default();
    let arrivals = recorder.take().into_iter().filter(|a| a.chunk.start < a.chunk.end);
    let frames = arrivals.map(|arrival| (arrival, blocking.receive(arrival.chunk))).collect();
    let completion = completed.iter().map(|t| t.completed - t.started).collect();
    Ok(Trace { frames, blocking, completion })
}

impl Trace {
    /// Frames of one stream in a row: the stream, and how many.
    #[must_use]
    pub fn runs(&self) -> Vec<(u64, usize)> {
        let same = |a: &(Arrival, Kind), b: &(Arrival, Kind)| a.0.chunk.stream == b.0.chunk.stream;
        let runs = self.frames.chunk_by(same);
        runs.filter_map(|run| Some((run.first()?.0.chunk.stream, run.len()))).collect()
    }

    /// A tenth, half and nine tenths of the runs are not longer than this.
    #[must_use]
    pub fn run_lengths(&self) -> [usize; 3] {
        let mut lengths: Vec<f64> = self.runs().iter().map(|(_, len)| *len as f64).collect();
        lengths.sort_by(f64::total_cmp);
        [0.1, 0.5, 0.9].map(|q| metrics::quantile(&lengths, q) as usize)
    }

    /// How many frames that were sent again come in a row, on average; 0 if there are none.
    #[must_use]
    pub fn mean_retransmitted_run(&self) -> f64 {
        let again = |kind: &Kind| *kind == Kind::Retransmitted;
        let runs = self.frames.chunk_by(|a, b| again(&a.1) == again(&b.1));
        let runs: Vec<_> = runs.filter(|run| run.iter().any(|(_, kind)| again(kind))).collect();
        let frames: usize = runs.iter().map(|run| run.len()).sum();
        frames as f64 / runs.len().max(1) as f64
    }

    /// How many packets carried several streams.
    #[must_use]
    pub fn mixed_packets(&self) -> usize {
        let packets = self.frames.chunk_by(|a, b| a.0.packet == b.0.packet);
        let mixed = |frames: &&[(Arrival, Kind)]| {
            let first = frames.first().map(|(frame, _)| frame.chunk.stream);
            frames.iter().any(|(frame, _)| Some(frame.chunk.stream) != first)
        };
        packets.filter(mixed).count()
    }

    /// The frames for a multiplexing graph.
    #[must_use]
    pub fn marks(&self) -> Vec<Mark> {
        let mark = |(arrival, kind): &(Arrival, Kind)| Mark {
            stream: arrival.chunk.stream,
            retransmitted: *kind == Kind::Retransmitted,
        };
        self.frames.iter().map(mark).collect()
    }
}
