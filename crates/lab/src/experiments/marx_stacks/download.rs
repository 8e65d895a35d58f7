//! Downloads several files over one connection.

use std::sync::Arc;
use std::time::Duration;

use sutura_analysis::statistics::mean;
use sutura_analysis::{
    Arrival, Blocking, Class, Direction, Multiplexing, head_of_line_blocking, multiplexing,
};
use sutura_link::{LinkConfig, ParseError};
use sutura_proto::{Algorithm, TransportConfig};
use sutura_research::stacks::Preset;
use sutura_sim::{BulkClient, BulkServer, Clock, Observed, Progress, Scenario, Transfer};

use crate::Error;
use crate::comparison::Values;
use crate::recorder::Recorder;

/// The receive window of the connection that the client of the paper offers.
const WINDOW: u64 = 1 << 20;

named! {
    /// A network of the paper, which does not give the round-trip times. The queues never overflow, so all
    /// losses come from the channel.
    pub enum Network {
        /// 35 Mbit/s to the client, 2 Mbit/s back.
        Residential = "35/2 Mbit/s",
        /// 1 Gbit/s to the client, 10 Mbit/s back.
        University = "1000/10 Mbit/s",
    }
}

impl Network {
    /// The path to the server, and the path back.
    const fn paths(self) -> [&'static str; 2] {
        match self {
            Self::Residential => {
                ["rate=2mbit delay=20ms queue=100mb", "rate=35mbit delay=20ms queue=100mb"]
            }
            Self::University => {
                ["rate=10mbit delay=20ms queue=100mb", "rate=1000mbit delay=20ms queue=100mb"]
            }
        }
    }
}

named! {
    /// The loss on the way to the client.
    pub enum FileLoss {
        /// Nothing.
        Lossless = "lossless",
        /// One packet in five hundred, independently.
        Random = "random",
        /// One packet in five hundred, in bursts of eight on average.
        Bursts = "bursts",
    }
}

impl FileLoss {
    /// The links of the residential network to the server and back.
    ///
    /// # Errors
    /// None, as long as the link crate reads the settings here.
    pub fn links(self) -> Result<(LinkConfig, LinkConfig), ParseError> {
        self.links_of(Network::Residential)
    }

    /// The links of a network to the server and back.
    ///
    /// # Errors
    /// None, as long as the link crate reads the settings here.
    pub fn links_of(self, network: Network) -> Result<(LinkConfig, LinkConfig), ParseError> {
        let loss = match self {
            Self::Lossless => "none",
            Self::Random => "bern:0.002",
            Self::Bursts => "ge:0.00025,0.125,1,0",
        };
        let [up, down] = network.paths();
        Ok((up.parse()?, format!("{down} loss={loss}").parse()?))
    }
}

/// A server with CUBIC, without erasure coding. It has the windows that its client offers.
#[must_use]
pub fn server() -> TransportConfig {
    TransportConfig::default()
        .with_receive_window(WINDOW)
        .with_stream_receive_window(WINDOW)
        // Like the stacks that are compared, this controller reacts to every loss.
        .with_congestion(Arc::new(Algorithm::CUBIC_WITHOUT_FLOOR))
        .with_fec(None)
}

/// A server with the defaults of a stack.
#[must_use]
pub fn stack(preset: &Preset) -> TransportConfig {
    let mut config = server();
    preset.apply(&mut config);
    preset.apply_to_client(&mut config);
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

/// The trace of a client.
#[derive(Clone, Debug)]
pub struct FileTrace {
    /// The STREAM frames that carried anything, in the order of their arrival.
    pub received: Multiplexing,
    /// The bytes that were held back. The order in which TCP would send is estimated from the order of the
    /// client's packets, as in the paper.
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
) -> Result<FileTrace, Error> {
    // All requests are in one packet, so that the server knows all files before it sends any.
    let client = TransportConfig::default()
        .with_receive_window(server.receive_window)
        .with_stream_receive_window(server.stream_receive_window)
        .with_mix_streams(true)
        .with_congestion(server.congestion.clone())
        .with_fec(None);
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
    let trace = recorder.take();
    Ok(FileTrace {
        received: multiplexing(&trace, Direction::Received),
        blocking: head_of_line_blocking(&trace, &[]),
        completion: completed.iter().map(|t| t.completed - t.started).collect(),
    })
}

impl FileTrace {
    /// The lengths that a tenth, half and nine tenths of the runs do not exceed.
    #[must_use]
    pub fn run_lengths(&self) -> [usize; 3] {
        let lengths = Values::of(self.received.runs().map(|(_, length)| length as f64));
        [0.1, 0.5, 0.9].map(|q| lengths.at(q) as usize)
    }

    /// How many frames that were sent again come in a row, on average; 0 if there are none.
    #[must_use]
    pub fn mean_retransmitted_run(&self) -> f64 {
        let again = |arrival: &Arrival| arrival.class == Class::Retransmitted;
        let runs = self.received.arrivals.chunk_by(|a, b| again(a) == again(b));
        mean(runs.filter(|run| run.iter().any(again)).map(|run| run.len() as f64))
    }

    /// How many packets carried several streams.
    #[must_use]
    pub fn mixed_packets(&self) -> usize {
        let packets = self.received.arrivals.chunk_by(|a, b| a.packet == b.packet);
        let mixed = |frames: &&[Arrival]| {
            frames.windows(2).any(|pair| pair[0].frame.stream != pair[1].frame.stream)
        };
        packets.filter(mixed).count()
    }
}
