//! The program that is measured: a publisher and its viewers, over any WebTransport.

use crate::outcome::{Came, Outcome};
use crate::plan::Job;
use crate::video;
use moq_net::transport::poll;
use moq_net::{Client, Hop, Server, Timescale, Timestamp, origin, track};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::{Duration, Instant};
use sutura_benches::tls::Identity;
use sutura_benches::{Error, cpu};
use sutura_relay::{Config, Relay};
use tokio::sync::mpsc;
use tokio::task::spawn_local;

/// Frames before those that count: two seconds, in which congestion controllers learn the paths.
pub const WARM_UP: u64 = 2 * video::GROUP;
/// How long viewers wait for what is still on its way after the last frame.
const GRACE: Duration = Duration::from_secs(2);
/// How far a group may be behind the newest frame before a viewer gives it up.
pub const MAX_AGE: Duration = Duration::from_millis(500);
/// The version of moq-lite that both ends speak.
pub const PROTOCOL: &str = "moq-lite-05";

const BROADCAST: &str = "live";
const TRACK: &str = "video";

/// What a peer needs to know of a broadcast.
pub struct Place<'a> {
    pub job: &'a Job,
    pub identity: &'a Identity,
    /// Where Sutura writes qlog files.
    pub qlog: Option<&'a Path>,
}

impl Place<'_> {
    /// Relays in front of a publisher, one for each viewer.
    pub fn relays(&self, publisher: SocketAddr) -> Result<Vec<Relay>, Error> {
        let seeds = self.job.seed..self.job.seed + self.job.viewers;
        let start = |seed| -> Result<Relay, Error> {
            let config = Config::new((Ipv4Addr::LOCALHOST, 0).into(), publisher);
            Ok(Relay::start(&config.link(&self.job.link).seed(seed))?)
        };
        seeds.map(start).collect()
    }
}

fn origin(hop: u64) -> Result<origin::Producer, Error> {
    let (producer, driver) = origin::Producer::new(origin::Config::new(Hop::new(hop)?));
    spawn_local(moq_net::time::run(driver));
    Ok(producer)
}

/// A publisher, whose frames go to every viewer that [`serve`] is called for.
pub struct Publisher {
    origin: origin::Producer,
    track: track::Producer,
    _broadcast: moq_net::broadcast::Producer,
}

impl Publisher {
    pub fn new() -> Result<Self, Error> {
        let origin = origin(1)?;
        let broadcast = origin.create_broadcast(BROADCAST)?;
        let info = track::Info::default().with_timescale(Timescale::MILLI);
        let track = broadcast.create_track(TRACK, info)?;
        broadcast.announce(Default::default())?;
        Ok(Self { origin, track, _broadcast: broadcast })
    }

    /// What [`serve`] takes.
    pub fn offer(&self) -> origin::Consumer {
        self.origin.consume()
    }

    /// Makes frames at their time, and says when each was made.
    async fn run(&mut self, count: u64) -> Result<Vec<Instant>, Error> {
        let start = Instant::now();
        let mut made = Vec::new();
        let mut group = None;
        for number in 0..count {
            tokio::time::sleep_until((start + video::due(number)).into()).await;
            let mut current = match group.take() {
                Some(group) => group,
                None => self.track.append_group()?,
            };
            let at = Timestamp::from_millis(u64::try_from(video::due(number).as_millis())?)?;
            made.push(Instant::now());
            current.write_frame(at, video::frame(number))?;
            if (number + 1).is_multiple_of(video::GROUP) {
                current.finish()?;
            } else {
                group = Some(current);
            }
        }
        Ok(made)
    }
}

/// Sends what a publisher offers to a viewer, until it leaves.
pub async fn serve<S: poll::Session>(offer: origin::Consumer, session: S) -> Result<(), Error> {
    let server = Server::new().with_publisher(&offer);
    let (_session, driver) = server.accept_lite(Instant::now(), session).await?;
    moq_net::time::run(driver).await;
    Ok(())
}

/// A viewer that has subscribed.
pub struct Viewer {
    subscriber: track::Subscriber,
    _session: moq_net::Session,
    _origin: origin::Producer,
}

impl Viewer {
    /// `hop` differs for all publishers and viewers.
    pub async fn connect<S: poll::Session>(session: S, hop: u64) -> Result<Self, Error> {
        let origin = origin(hop)?;
        let client = Client::new().with_subscriber(origin.clone());
        let (session, driver) = client.connect_lite(Instant::now(), session).await?;
        spawn_local(moq_net::time::run(driver));
        let consumer = origin.consume();
        consumer.routed(BROADCAST).await.ok_or("there is no broadcast")?;
        let broadcast = consumer.request_broadcast(BROADCAST).await?;
        let wanted = track::Subscription::default().with_max_age(MAX_AGE);
        let subscriber = broadcast.track(TRACK)?.subscribe(wanted).await?;
        Ok(Self { subscriber, _session: session, _origin: origin })
    }

    /// When each frame came, until `end`.
    async fn watch(mut self, end: Instant) -> Came {
        let (sender, mut frames) = mpsc::unbounded_channel();
        let groups = spawn_local(async move {
            while let Ok(Some(mut group)) = self.subscriber.recv_group().await {
                let sender = sender.clone();
                spawn_local(async move {
                    // An error is a group that was given up.
                    while let Ok(Some(frame)) = group.read_frame().await {
                        let _ = sender.send((frame.payload, Instant::now()));
                    }
                });
            }
        });
        tokio::time::sleep_until(end.into()).await;
        groups.abort();
        let mut came = Came::new();
        while let Ok((payload, at)) = frames.try_recv() {
            came.extend(video::number(&payload).map(|number| (number, at)));
        }
        came
    }
}

/// Bytes that both directions of all links were given.
fn given(relays: &[Relay]) -> (u64, u64) {
    let stats = relays.iter().map(|relay| relay.stats());
    stats.fold((0, 0), |(down, up), s| (down + s.down.sent_bytes, up + s.up.sent_bytes))
}

/// Makes the broadcast for viewers that have subscribed.
pub async fn run(
    job: &Job,
    mut publisher: Publisher,
    viewers: Vec<Viewer>,
    relays: Vec<Relay>,
) -> Result<Outcome, Error> {
    let count = WARM_UP + job.seconds * u64::from(video::RATE);
    let end = Instant::now() + video::due(count) + GRACE;
    let (before, cpu_before) = (given(&relays), cpu::now());
    let watching: Vec<_> =
        viewers.into_iter().map(|viewer| spawn_local(viewer.watch(end))).collect();
    let made = publisher.run(count).await?;
    let mut outcome = Outcome::default();
    for viewer in watching {
        outcome.add_viewer(&viewer.await?, &made, WARM_UP);
    }
    let after = given(&relays);
    outcome.cpu = cpu::now() - cpu_before;
    (outcome.down, outcome.up) = (after.0 - before.0, after.1 - before.1);
    outcome.payload = (0..count).map(|n| video::size(n) as u64).sum::<u64>() * job.viewers;
    outcome.relays = relays.into_iter().map(Relay::stop).collect();
    Ok(outcome)
}
