//! One case with one pair of stacks.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sutura_random::Rng;
use sutura_relay::{Config, Relay, Way};

use crate::Error;
use crate::case::Case;
use crate::check::Run;
use crate::evidence::Evidence;
use crate::process::{self, Ending, Process, Program};
use crate::record::Recorder;
use crate::{Stacks, certificates};

/// How long to wait for datagrams under way once the client is done.
const LINGER: Duration = Duration::from_millis(300);

/// Stacks whose programs have no HTTP/0.9.
const HTTP3_ONLY: &[&str] = &["ngtcp2"];

/// The end of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Client,
    Server,
}

/// A case, and the stacks at both ends.
#[derive(Debug, Clone)]
pub struct Cell {
    pub case: &'static Case,
    pub client: String,
    pub server: String,
    /// The end whose output and qlog files are checked.
    pub ours: Side,
    pub seed: u64,
}

/// The outcome of a cell.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The case passed, with the rates of all runs in bits per second if they were measured.
    Passed(Vec<f64>),
    /// The client or the server does not support the test case.
    Unsupported,
    Failed(String),
}

impl Outcome {
    pub fn is_failure(&self) -> bool {
        match self {
            Self::Failed(_) => true,
            Self::Passed(_) | Self::Unsupported => false,
        }
    }
}

/// The files and addresses of a run.
struct Setup {
    logs: PathBuf,
    www: PathBuf,
    downloads: PathBuf,
    certificates: PathBuf,
    /// The size of the server's certificates.
    certificates_size: usize,
    names: Vec<String>,
    server: SocketAddr,
}

impl Cell {
    /// The name of the cell, unlike the names of all other cells.
    pub fn name(&self) -> String {
        format!("{} {}-{}", self.case.name, self.client, self.server)
    }

    /// The protocol of the requests.
    fn protocol(&self) -> &'static OsStr {
        let http3 = HTTP3_ONLY.contains(&&*self.client) || HTTP3_ONLY.contains(&&*self.server);
        OsStr::new(if http3 { "h3" } else { "hq-interop" })
    }

    /// Runs the cell as often as the case says. If the cell fails, its files remain in `logs`.
    pub fn run(&self, stacks: &Stacks, logs: &Path) -> Outcome {
        let mut rates = Vec::new();
        for run in 0..self.case.runs {
            let logs = logs.join(self.name().replace(' ', "-"));
            let _ = fs::remove_dir_all(&logs);
            match self.attempt(stacks, &logs, self.seed + run as u64) {
                Ok(Outcome::Passed(rate)) => rates.extend(rate),
                Ok(other) => return other,
                Err(error) => return Outcome::Failed(error.to_string()),
            }
            let _ = fs::remove_dir_all(&logs);
        }
        Outcome::Passed(rates)
    }

    fn attempt(&self, stacks: &Stacks, logs: &Path, seed: u64) -> Result<Outcome, Error> {
        let setup = Setup::new(self.case, logs, seed)?;
        let server =
            setup.program(stacks.path(&self.server)?, "server", self.case.server, setup.server);
        let route = Route::new(self.case, &setup, seed)?;
        let protocol = self.protocol();
        let mut serving = server.start(&[
            ("ALPN", protocol),
            ("WWW", setup.www.as_os_str()),
            ("PREFERRED", route.preferred.to_string().as_ref()),
        ])?;
        if let Some(ending) = serving.listens(setup.server.port())? {
            return Ok(early(ending));
        }
        let preferred = route.preferred.port();
        let cross = self.case.crossed.then(|| Cross::start(stacks, logs)).transpose()?;
        let (relay, recorder) = route.open(cross.as_ref().map(|cross| cross.server))?;
        let address = relay.local_addr();
        let client = setup.program(stacks.path(&self.client)?, "client", self.case.client, address);
        let crossing = cross.map(|cross| cross.cross(&relay)).transpose()?;
        let urls = setup.urls(address.port());
        let mut fetching = client.start(&[
            ("ALPN", protocol),
            ("REQUESTS", urls.as_ref()),
            ("DOWNLOADS", setup.downloads.as_os_str()),
        ])?;
        let ending = fetching.wait(self.case.timeout)?;
        std::thread::sleep(LINGER);
        drop(crossing);
        serving.stop()?;
        let record = recorder.record();
        drop(relay);
        match ending {
            Some(Ending::Done) => {}
            Some(Ending::Unsupported) => return Ok(Outcome::Unsupported),
            Some(Ending::Failed) => return Ok(Outcome::Failed("the client gave up".into())),
            None => return Ok(Outcome::Failed("the client was not done in time".into())),
        }
        if let Some(name) = setup.differs()? {
            return Ok(Outcome::Failed(format!("{name} is not what was served")));
        }
        let ours = if self.ours == Side::Server { &server } else { &client };
        let evidence = Evidence::read(&ours.output()?, &ours.qlog())?;
        let run = Run {
            record: &record,
            ours: &evidence,
            we_serve: self.ours == Side::Server,
            certificates: setup.certificates_size,
            delay: self.case.network.links(seed)?.down.delay,
            preferred,
            requested: setup.names.iter().map(String::len).sum(),
        };
        if let Err(problem) = self.case.check.verify(&run) {
            return Ok(Outcome::Failed(problem));
        }
        let measured = self.case.is_measurement();
        Ok(Outcome::Passed(measured.then(|| self.rate(&record)).into_iter().collect()))
    }

    /// Bits of the files per second, from the client's first datagram to the server's last large one, so that
    /// the close does not count.
    fn rate(&self, record: &crate::record::Record) -> f64 {
        let bytes: usize = self.case.files.iter().sum();
        let start = record.0.first().map_or(Duration::ZERO, |datagram| datagram.at);
        let large = record.way(Way::Down).filter(|datagram| datagram.size > 1000);
        let end = large.last().map_or(start, |datagram| datagram.at);
        bytes as f64 * 8.0 / (end - start).as_secs_f64().max(1e-3)
    }
}

/// The outcome with a server that ended before it listened.
fn early(ending: Ending) -> Outcome {
    match ending {
        Ending::Unsupported => Outcome::Unsupported,
        Ending::Done | Ending::Failed => Outcome::Failed("the server did not start".into()),
    }
}

impl Setup {
    fn new(case: &Case, logs: &Path, seed: u64) -> Result<Self, Error> {
        let [www, downloads, certificates] =
            ["www", "downloads", "certificates"].map(|name| logs.join(name));
        for directory in [&www, &downloads, &certificates] {
            fs::create_dir_all(directory)?;
        }
        let certificates_size = certificates::write(&certificates, case.chain)?;
        let mut rng = Rng::new(seed);
        let mut names = Vec::new();
        for (n, size) in case.files.iter().enumerate() {
            // The name begins with a letter, because some servers make up files whose names are numbers.
            let name = format!("f{n:0>width$}", width = case.names - 1);
            fs::write(www.join(&name), rng.bytes(*size))?;
            names.push(name);
        }
        let host: IpAddr =
            if case.ipv6 { Ipv6Addr::LOCALHOST.into() } else { Ipv4Addr::LOCALHOST.into() };
        let server = process::free_port(host)?;
        let logs = logs.to_owned();
        Ok(Self { logs, www, downloads, certificates, certificates_size, names, server })
    }

    fn program<'a>(
        &'a self,
        path: PathBuf,
        role: &'static str,
        case: &'static str,
        address: SocketAddr,
    ) -> Program<'a> {
        Program { path, role, case, address, certificates: &self.certificates, logs: &self.logs }
    }

    fn urls(&self, port: u16) -> OsString {
        let urls = self.names.iter().map(|name| format!("https://localhost:{port}/{name}"));
        urls.collect::<Vec<_>>().join(" ").into()
    }

    /// The first file that is missing or changed.
    fn differs(&self) -> Result<Option<&str>, Error> {
        for name in &self.names {
            let there = fs::read(self.downloads.join(name)).unwrap_or_default();
            if there != fs::read(self.www.join(name))? {
                return Ok(Some(name));
            }
        }
        Ok(None)
    }
}

/// The network between both ends, before it is opened.
struct Route {
    config: Config,
    /// The preferred address of the server.
    preferred: SocketAddr,
}

impl Route {
    fn new(case: &Case, setup: &Setup, seed: u64) -> Result<Self, Error> {
        let host = setup.server.ip();
        let links = case.network.links(seed)?;
        let mut config = Config::new((host, 0).into(), setup.server).seed(seed);
        config.up = links.up;
        config.down = links.down;
        config.rebindings = links.rebindings;
        let preferred = process::free_port(host)?;
        config.further.push((preferred, setup.server));
        Ok(Self { config, preferred })
    }

    /// Opens the network, with one more door to the server of another flow.
    fn open(mut self, cross: Option<SocketAddr>) -> Result<(Relay, Recorder), Error> {
        // Some servers listen at their preferred address themselves. Clients then go there past the relay.
        if process::is_bound(self.preferred.port())? {
            self.config.further.clear();
        }
        let listen = (self.config.listen.ip(), 0).into();
        self.config.further.extend(cross.map(|server| (listen, server)));
        let recorder = Recorder { doors: Some(2), ..Recorder::default() };
        let relay = Relay::start_with_tap(&self.config, Box::new(recorder.clone()))?;
        Ok((relay, recorder))
    }
}

/// A flow with CUBIC on the same link: quinn's.
struct Cross<'a> {
    stacks: &'a Stacks,
    setup: Setup,
    server: SocketAddr,
    serving: Process,
}

/// The stack of the other flow, which uses CUBIC unless told otherwise.
const CROSS: &str = "quinn";

/// The transfer lasts longer than the measured transfer.
const CROSS_CASE: Case = Case { files: &[100 << 20], ..crate::case::CASES[1] };

impl<'a> Cross<'a> {
    fn start(stacks: &'a Stacks, logs: &Path) -> Result<Self, Error> {
        let setup = Setup::new(&CROSS_CASE, &logs.join("cross"), 1)?;
        let program = setup.program(stacks.path(CROSS)?, "server", CROSS_CASE.server, setup.server);
        let mut serving = program.start(&[("WWW", setup.www.as_os_str())])?;
        if serving.listens(setup.server.port())?.is_some() {
            return Err("the other flow's server did not start".into());
        }
        let server = setup.server;
        Ok(Self { stacks, setup, server, serving })
    }

    /// Starts the transfer, which ends with the processes.
    fn cross(self, relay: &Relay) -> Result<(Process, Process), Error> {
        let address = *relay.local_addrs().last().ok_or("no door")?;
        let path = self.stacks.path(CROSS)?;
        let client = self.setup.program(path, "client", CROSS_CASE.client, address);
        let fetching = client.start(&[
            ("REQUESTS", self.setup.urls(address.port()).as_ref()),
            ("DOWNLOADS", self.setup.downloads.as_os_str()),
        ])?;
        Ok((self.serving, fetching))
    }
}
