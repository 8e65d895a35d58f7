//! Nodes, the links between them, and the event loop.

use std::any::Any;
use std::net::SocketAddr;
use std::time::Duration;

use sutura_link::{LinkConfig, LinkStats, Pipe, corrupt};
use sutura_proto::{EcnCodepoint, Transmit};

use crate::{Clock, Failure, FailureKind, Node, NodeId, TraceEvent, Tracer};

/// The event loop reports a livelock after this many rounds at one instant. A transfer of some
/// megabytes over a link without delay or rate limit needs a few thousand.
const MAX_ROUNDS_PER_INSTANT: u32 = 100_000;
/// The event loop reports a livelock if a node sends more datagrams than this in one go.
const MAX_TRANSMITS_IN_A_ROW: u32 = 100_000;

/// A datagram in transit.
#[derive(Clone)]
struct Datagram {
    from: usize,
    /// The sender's address when it was sent.
    source: SocketAddr,
    to: usize,
    destination: SocketAddr,
    ecn: Option<EcnCodepoint>,
    payload: Vec<u8>,
}

struct Place {
    address: SocketAddr,
    node: Box<dyn Node>,
    /// Whether the node may have new data to send.
    touched: bool,
    /// Until when the node sleeps.
    wakes: Duration,
}

impl Place {
    /// When the node next has work, since the start of `clock`.
    fn next_time(&self, clock: Clock, now: Duration) -> Option<Duration> {
        let timeout = self.node.next_timeout().map(|at| clock.since_start(at).max(self.wakes));
        // Data that the node wants to send when it falls asleep goes when it wakes.
        let waking = (self.touched && self.wakes > now).then_some(self.wakes);
        timeout.into_iter().chain(waking).min()
    }
}

/// The link that leads from one node to another. Several routes may share it.
struct Route {
    from: usize,
    to: usize,
    pipe: usize,
}

/// Nodes and the links between them, on one virtual clock.
pub struct Network {
    clock: Clock,
    now: Duration,
    rounds_at_now: u32,
    places: Vec<Place>,
    routes: Vec<Route>,
    pipes: Vec<Pipe<Datagram>>,
    tracer: Option<Box<dyn Tracer>>,
    last_sent: Option<Duration>,
    buffer: Vec<u8>,
}

impl std::fmt::Debug for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Network").field("now", &self.now).finish_non_exhaustive()
    }
}

impl Network {
    /// An empty network whose time zero is the start of `clock`.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            now: Duration::ZERO,
            rounds_at_now: 0,
            places: Vec::new(),
            routes: Vec::new(),
            pipes: Vec::new(),
            tracer: None,
            last_sent: None,
            buffer: Vec::new(),
        }
    }

    /// Adds a node with an address.
    pub fn add(&mut self, address: SocketAddr, node: impl Node) -> NodeId {
        self.places.push(Place {
            address,
            node: Box::new(node),
            touched: true,
            wakes: Duration::ZERO,
        });
        NodeId(self.places.len() - 1)
    }

    /// Adds a link in one direction. The link comes up at time zero.
    pub fn connect(&mut self, from: NodeId, to: NodeId, config: &LinkConfig, seed: u64) {
        self.routes.push(Route { from: from.0, to: to.0, pipe: self.pipes.len() });
        self.pipes.push(Pipe::new(config, seed));
    }

    /// Lets `from` reach `to` over the link that already leads from the first to the second node of
    /// `along`, so that both share its rate, its queue and all other properties. Without such a link, `to`
    /// stays out of reach.
    pub fn share(&mut self, from: NodeId, to: NodeId, along: (NodeId, NodeId)) {
        if let Some(pipe) = self.pipe(along.0, along.1) {
            self.routes.push(Route { from: from.0, to: to.0, pipe });
        }
    }

    fn pipe(&self, from: NodeId, to: NodeId) -> Option<usize> {
        let route = self.routes.iter().find(|r| (r.from, r.to) == (from.0, to.0));
        route.map(|route| route.pipe)
    }

    /// Gives a node another address, as a NAT does that forgot a binding. The node does not notice. Datagrams
    /// to its old address are lost from now on, also if they are under way. Datagrams that it has sent arrive
    /// from the old address.
    pub fn move_to(&mut self, node: NodeId, address: SocketAddr) {
        if let Some(place) = self.places.get_mut(node.0) {
            place.address = address;
        }
    }

    /// Lets a node sleep for some time, as a host does whose lid is closed: its clock jumps. Datagrams
    /// that arrive meanwhile are lost, and its timers fire when it wakes.
    pub fn sleep(&mut self, node: NodeId, duration: Duration) {
        if let Some(place) = self.places.get_mut(node.0) {
            place.wakes = place.wakes.max(self.now + duration);
        }
    }

    /// The latest time until which any node sleeps or has slept; zero if none ever did.
    #[must_use]
    pub fn awake_since(&self) -> Duration {
        self.places.iter().map(|place| place.wakes).max().unwrap_or_default()
    }

    /// Reports every event from now on to `tracer`.
    pub fn set_tracer(&mut self, tracer: Box<dyn Tracer>) {
        self.tracer = Some(tracer);
    }

    /// The time since the start.
    #[must_use]
    pub const fn now(&self) -> Duration {
        self.now
    }

    /// The clock of the simulation.
    #[must_use]
    pub const fn clock(&self) -> Clock {
        self.clock
    }

    /// When a node last sent a datagram.
    #[must_use]
    pub const fn last_sent(&self) -> Option<Duration> {
        self.last_sent
    }

    /// The statistics of the link from `from` to `to`, which include all other data that it carries; all zero
    /// if there is no such link.
    #[must_use]
    pub fn link_stats(&self, from: NodeId, to: NodeId) -> LinkStats {
        let pipe = self.pipe(from, to).and_then(|pipe| self.pipes.get(pipe));
        pipe.map(|pipe| *pipe.link().stats()).unwrap_or_default()
    }

    /// The node `id`; `None` if it is not a `T`.
    #[must_use]
    pub fn node<T: Node>(&self, id: NodeId) -> Option<&T> {
        let node: &dyn Any = &*self.places.get(id.0)?.node;
        node.downcast_ref()
    }

    /// The node `id`; `None` if it is not a `T`. Data that the node has to send afterwards is sent by the
    /// next [`flush`](Self::flush) or [`step`](Self::step).
    pub fn node_mut<T: Node>(&mut self, id: NodeId) -> Option<&mut T> {
        let place = self.places.get_mut(id.0)?;
        place.touched = true;
        let node: &mut dyn Any = &mut *place.node;
        node.downcast_mut()
    }

    /// The time of the next event, if there is one.
    #[must_use]
    pub fn next_time(&self) -> Option<Duration> {
        let arrivals = self.pipes.iter().filter_map(Pipe::next_time);
        let timeouts = self.places.iter().filter_map(|place| place.next_time(self.clock, self.now));
        arrivals.chain(timeouts).min().map(|at| at.max(self.now))
    }

    /// Advances to the time of the next event, delivers the datagrams that arrive then, fires the timers that
    /// are due and lets the nodes send. Returns `false` if there is no further event.
    ///
    /// # Errors
    /// [`FailureKind::Livelock`] if events keep coming without time advancing.
    pub fn step(&mut self) -> Result<bool, Failure> {
        self.flush()?;
        let Some(next) = self.next_time() else { return Ok(false) };
        if next > self.now {
            self.now = next;
            self.rounds_at_now = 0;
        }
        self.rounds_at_now += 1;
        if self.rounds_at_now > MAX_ROUNDS_PER_INSTANT {
            return Err(self.failure(FailureKind::Livelock));
        }
        self.deliver();
        self.fire();
        self.flush()?;
        Ok(true)
    }

    /// Runs until the virtual time is `until`.
    ///
    /// # Errors
    /// As for [`step`](Self::step).
    pub fn run_until(&mut self, until: Duration) -> Result<(), Failure> {
        self.flush()?;
        while self.next_time().is_some_and(|next| next <= until) {
            self.step()?;
        }
        self.now = self.now.max(until);
        self.rounds_at_now = 0;
        Ok(())
    }

    /// Sends everything that the nodes have to send now.
    ///
    /// # Errors
    /// [`FailureKind::Livelock`] if a node does not stop sending.
    pub fn flush(&mut self) -> Result<(), Failure> {
        let now = self.clock.at(self.now);
        let mut buffer = std::mem::take(&mut self.buffer);
        for id in 0..self.places.len() {
            let place = &mut self.places[id];
            if place.wakes > self.now || !std::mem::take(&mut place.touched) {
                continue;
            }
            let mut count = 0;
            loop {
                buffer.clear();
                let Some(transmit) = self.places[id].node.transmit(now, &mut buffer) else { break };
                self.send(id, &transmit, &buffer);
                count += 1;
                if count > MAX_TRANSMITS_IN_A_ROW {
                    return Err(self.failure(FailureKind::Livelock));
                }
            }
        }
        self.buffer = buffer;
        Ok(())
    }

    /// A failure at the current time, with the report of the tracer.
    #[must_use]
    pub fn failure(&self, kind: FailureKind) -> Failure {
        let trace = self.tracer.as_ref().map(|tracer| tracer.report()).unwrap_or_default();
        Failure { trace, ..Failure::new(self.now, kind) }
    }

    fn send(&mut self, from: usize, transmit: &Transmit, buffer: &[u8]) {
        self.last_sent = Some(self.now);
        let to = self.places.iter().position(|p| p.address == transmit.destination);
        let pipe = to.and_then(|to| self.pipe(NodeId(from), NodeId(to)));
        let way = to.zip(pipe.and_then(|pipe| self.pipes.get_mut(pipe)));
        let segment = transmit.segment_size.unwrap_or(transmit.size).max(1);
        let batch = &buffer[..transmit.size.min(buffer.len())];
        let Some((to, pipe)) = way else {
            let event = TraceEvent::Unroutable { from: NodeId(from), payload: batch };
            record(&mut self.tracer, self.now, &event);
            return;
        };
        let source = self.places[from].address;
        for payload in batch.chunks(segment) {
            let datagram = Datagram {
                from,
                source,
                to,
                destination: transmit.destination,
                ecn: transmit.ecn,
                payload: payload.to_vec(),
            };
            let fate = pipe.send(self.now, payload.len(), datagram);
            let event = TraceEvent::Sent { from: NodeId(from), to: NodeId(to), payload, fate };
            record(&mut self.tracer, self.now, &event);
        }
    }

    fn deliver(&mut self) {
        let now = self.clock.at(self.now);
        for pipe in &mut self.pipes {
            while let Some(arrival) = pipe.pop(self.now) {
                let Datagram { from, source, to, destination, ecn, mut payload } = arrival.payload;
                let Some(place) = self.places.get_mut(to) else { continue };
                if place.address != destination || place.wakes > self.now {
                    // The destination has another address by now, or sleeps.
                    continue;
                }
                let event = TraceEvent::Arrived {
                    from: NodeId(from),
                    to: NodeId(to),
                    size: payload.len(),
                    corrupt: arrival.corrupt.is_some(),
                };
                record(&mut self.tracer, self.now, &event);
                if let Some(seed) = arrival.corrupt {
                    corrupt(seed, &mut payload);
                }
                place.touched = true;
                // A queue marks only ECN-capable packets (RFC 3168 section 5).
                let ecn = if arrival.marked { ecn.map(|_| EcnCodepoint::Ce) } else { ecn };
                place.node.receive(now, source, ecn, &mut payload);
            }
        }
    }

    fn fire(&mut self) {
        let now = self.clock.at(self.now);
        for (id, place) in self.places.iter_mut().enumerate() {
            if place.next_time(self.clock, self.now).is_some_and(|at| at <= self.now) {
                record(&mut self.tracer, self.now, &TraceEvent::Timeout { node: NodeId(id) });
                place.touched = true;
                place.node.timeout(now);
            }
        }
    }
}

fn record(tracer: &mut Option<Box<dyn Tracer>>, at: Duration, event: &TraceEvent<'_>) {
    if let Some(tracer) = tracer {
        tracer.record(at, event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;
    use std::time::Instant;

    const MS: Duration = Duration::from_millis(1);

    /// Sends prepared datagrams, or echoes everything that it receives.
    #[derive(Default)]
    struct Toy {
        to: Option<SocketAddr>,
        outgoing: Vec<Vec<u8>>,
        incoming: Vec<(Instant, Vec<u8>)>,
        answers: bool,
        timer: Option<Instant>,
        timers_fired: u32,
        stuck: bool,
    }

    impl Node for Toy {
        fn receive(
            &mut self,
            now: Instant,
            from: SocketAddr,
            _: Option<EcnCodepoint>,
            payload: &mut [u8],
        ) {
            self.incoming.push((now, payload.to_vec()));
            if self.answers {
                self.to = Some(from);
                self.outgoing.push(payload.to_vec());
            }
        }

        fn transmit(&mut self, _: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
            let datagram = self.outgoing.pop()?;
            out.extend_from_slice(&datagram);
            let segment_size = (datagram.len() > 100).then_some(100);
            Some(Transmit::new(self.to?, datagram.len()).with_segment_size(segment_size))
        }

        fn timeout(&mut self, _: Instant) {
            self.timers_fired += 1;
            if !self.stuck {
                self.timer = None;
            }
        }

        fn next_timeout(&self) -> Option<Instant> {
            self.timer
        }
    }

    fn address(host: u8) -> SocketAddr {
        (Ipv4Addr::new(192, 0, 2, host), 443).into()
    }

    fn pair(a: Toy, b: Toy, link: &str) -> (Network, NodeId, NodeId) {
        let mut network = Network::new(Clock::default());
        let (a, b) = (network.add(address(1), a), network.add(address(2), b));
        let config = link.parse().unwrap();
        network.connect(a, b, &config, 1);
        network.connect(b, a, &config, 2);
        (network, a, b)
    }

    #[test]
    fn datagrams_take_as_long_as_the_link_says_and_batches_are_taken_apart() {
        let sender = Toy { to: Some(address(2)), outgoing: vec![vec![7; 250]], ..Toy::default() };
        let (mut network, _, b) = pair(sender, Toy::default(), "delay=50ms");
        while network.step().unwrap() {}
        let at = network.clock().at(50 * MS);
        let expected = [(at, vec![7; 100]), (at, vec![7; 100]), (at, vec![7; 50])];
        assert_eq!(network.node::<Toy>(b).unwrap().incoming, expected);
        assert_eq!((network.now(), network.last_sent()), (50 * MS, Some(Duration::ZERO)));
    }

    #[test]
    fn damage_is_done_on_arrival_and_who_cannot_be_reached_is_not() {
        let outgoing = vec![vec![0; 50]];
        let sender = Toy { to: Some(address(2)), outgoing, ..Toy::default() };
        let (mut network, a, b) = pair(sender, Toy::default(), "corrupt=1");
        network.step().unwrap();
        assert_ne!(network.node::<Toy>(b).unwrap().incoming[0].1, vec![0; 50]);
        let toy = network.node_mut::<Toy>(a).unwrap();
        toy.to = Some(address(9));
        toy.outgoing.push(vec![1]);
        assert!(!network.step().unwrap());
    }

    #[test]
    fn a_shared_link_takes_turns_and_reaches_everybody() {
        let sender =
            |to| Toy { to: Some(address(to)), outgoing: vec![vec![0; 97]; 2], ..Toy::default() };
        let mut network = Network::new(Clock::default());
        let [a, b] = [(1, 3), (2, 4)].map(|(own, to)| network.add(address(own), sender(to)));
        let [c, d] = [3, 4].map(|own| network.add(address(own), Toy::default()));
        // A datagram takes a millisecond.
        network.connect(a, c, &"rate=1mbit".parse().unwrap(), 1);
        network.share(b, d, (a, c));
        network.share(d, b, (c, a));
        while network.step().unwrap() {}
        let arrivals = |node| -> Vec<Duration> {
            let incoming = &network.node::<Toy>(node).unwrap().incoming;
            incoming.iter().map(|(at, _)| network.clock().since_start(*at)).collect()
        };
        assert_eq!((arrivals(c), arrivals(d)), (vec![MS, 2 * MS], vec![3 * MS, 4 * MS]));
        assert_eq!((network.link_stats(b, d).sent, network.link_stats(a, c).sent), (4, 4));
        assert_eq!(network.link_stats(d, b).sent, 0, "there is no way from c to a");
    }

    #[test]
    fn timers_fire_at_their_time() {
        let (mut network, a, _) = pair(Toy::default(), Toy::default(), "");
        let at = network.clock().at(30 * MS);
        network.node_mut::<Toy>(a).unwrap().timer = Some(at);
        assert!(network.step().unwrap());
        assert_eq!((network.now(), network.node::<Toy>(a).unwrap().timers_fired), (30 * MS, 1));
        assert!(!network.step().unwrap());
    }

    #[test]
    fn who_sleeps_misses_what_arrives_and_does_late_what_was_due() {
        let outgoing = vec![vec![0; 50]];
        let sender = Toy { to: Some(address(2)), outgoing, ..Toy::default() };
        let (mut network, a, b) = pair(sender, Toy::default(), "delay=20ms");
        network.flush().unwrap();
        let at = network.clock().at(10 * MS);
        let toy = network.node_mut::<Toy>(b).unwrap();
        (toy.timer, toy.to) = (Some(at), Some(address(1)));
        toy.outgoing.push(vec![1]);
        network.sleep(b, 30 * MS);
        assert_eq!(network.awake_since(), 30 * MS);
        network.run_until(29 * MS).unwrap();
        let toy = network.node::<Toy>(b).unwrap();
        assert_eq!((toy.incoming.len(), toy.timers_fired, toy.outgoing.len()), (0, 0, 1));
        network.run_until(100 * MS).unwrap();
        let toy = network.node::<Toy>(b).unwrap();
        assert_eq!((toy.incoming.len(), toy.timers_fired, toy.outgoing.len()), (0, 1, 0));
        let arrived = &network.node::<Toy>(a).unwrap().incoming;
        assert_eq!(arrived[..], [(network.clock().at(50 * MS), vec![1])]);
    }

    #[test]
    fn a_timer_that_does_not_stop_and_an_endless_exchange_are_found_out() {
        let (mut network, a, _) = pair(Toy::default(), Toy::default(), "");
        let at = network.clock().at(30 * MS);
        let toy = network.node_mut::<Toy>(a).unwrap();
        (toy.timer, toy.stuck) = (Some(at), true);
        let error = network.run_until(40 * MS).unwrap_err();
        assert_eq!((error.at, error.kind), (30 * MS, FailureKind::Livelock));

        let toy = || Toy { answers: true, ..Toy::default() };
        let first = Toy { to: Some(address(2)), outgoing: vec![vec![1]], ..toy() };
        let (mut network, ..) = pair(first, toy(), "");
        network.set_tracer(Box::new(crate::TraceLog::new(3)));
        let error = network.run_until(MS).unwrap_err();
        assert_eq!(error.kind, FailureKind::Livelock);
        assert_eq!(error.trace.lines().count(), 3);
        assert!(error.trace.contains("0 <- 1: 1 bytes"), "{}", error.trace);
    }
}
