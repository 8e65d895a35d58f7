//! Page loads over HTTP/3 in the simulator: a client that asks for what it finds, and a server that
//! knows what each resource is.

mod client;
mod server;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use sutura_h3 as h3;
use sutura_link::{LinkConfig, Rng};
use sutura_proto::crypto::null::{NullClientConfig, NullServerConfig};
use sutura_proto::{
    ClientConfig, Connection, ConnectionHandle, Event, ServerConfig, StreamEvent, TransportConfig,
};
use sutura_sim::{App, AppError, Clock, Failure, FailureKind, Host, Network, NodeId};

use self::client::Browser;
use self::server::Origin;
use super::corpus::Page;
use super::requests::Load;

/// No page takes longer, in simulated time.
const DEADLINE: Duration = Duration::from_secs(3600);

fn client_address() -> SocketAddr {
    (Ipv4Addr::new(192, 0, 2, 1), 50_000).into()
}

fn server_address() -> SocketAddr {
    (Ipv4Addr::new(198, 51, 100, 1), 443).into()
}

/// Loads a page once, on a connection of its own. `link` is the path in each direction; `config`
/// is for both ends, and its scheduler decides what the server sends next. Times are since the
/// first request, which follows the handshake. All that is random follows from `seed`.
///
/// # Errors
/// The page is not complete after an hour, or the connection is lost.
pub fn load_over(
    page: &Arc<Page>,
    link: &LinkConfig,
    config: &TransportConfig,
    seed: u64,
) -> Result<Load, Failure> {
    let failed = |failure| Failure { seed: Some(seed), ..failure };
    let mut run = Run::new(page, link, config, seed).map_err(failed)?;
    loop {
        if let Some(load) = run.look().map_err(failed)? {
            return Ok(load);
        }
        run.step().map_err(failed)?;
    }
}

struct Run {
    network: Network,
    client: NodeId,
    server: NodeId,
    connection: ConnectionHandle,
}

impl Run {
    fn new(
        page: &Arc<Page>,
        link: &LinkConfig,
        config: &TransportConfig,
        seed: u64,
    ) -> Result<Self, Failure> {
        let mut seeds = Rng::new(seed);
        let mut network = Network::new(Clock::default());
        let transport = Arc::new(config.clone());
        let alpn = vec![h3::ALPN.to_vec()];

        let server = ServerConfig {
            crypto: Arc::new(NullServerConfig::new(alpn.clone())),
            transport: transport.clone(),
        };
        let origin = page.clone();
        let accept = move || Box::new(Origin::new(origin.clone())) as Box<dyn App<Connection>>;
        let server = Host::server(Arc::new(server), Box::new(accept), seeds.next_u64());

        let mut client = Host::client(seeds.next_u64());
        let config = ClientConfig { crypto: Arc::new(NullClientConfig::new(alpn)), transport };
        let now = network.clock().at(Duration::ZERO);
        let connection = client
            .connect(now, config, server_address(), "server.example", Browser::new(page))
            .map_err(|error| network.failure(FailureKind::Connect(error.to_string())))?;

        let client = network.add(client_address(), client);
        let server = network.add(server_address(), server);
        network.connect(client, server, link, seeds.next_u64());
        network.connect(server, client, link, seeds.next_u64());
        Ok(Self { network, client, server, connection })
    }

    /// The load, once it is complete.
    fn look(&self) -> Result<Option<Load>, Failure> {
        let hosts = [self.client, self.server].map(|node| self.network.node::<Host>(node));
        for host in hosts.into_iter().flatten() {
            if let Some(error) = host.app_error() {
                return Err(self.network.failure(FailureKind::App(error.to_string())));
            }
            if let Some(error) = host.connection_error() {
                return Err(self.network.failure(FailureKind::ConnectionLost(error.to_string())));
            }
        }
        let browser = hosts[0].and_then(|host| host.app::<Browser>(self.connection));
        Ok(browser.and_then(Browser::load))
    }

    fn step(&mut self) -> Result<(), Failure> {
        if self.network.now() > DEADLINE {
            return Err(self.network.failure(FailureKind::Deadline(DEADLINE)));
        }
        if !self.network.step()? {
            return Err(self.network.failure(FailureKind::Quiescent));
        }
        Ok(())
    }
}

/// Tells HTTP/3 what happened to a stream.
fn pass_on(http: &mut h3::Connection, event: &Event) {
    match *event {
        Event::Stream(StreamEvent::Readable { id }) => http.readable(id),
        Event::Stream(StreamEvent::Writable { id }) => http.writable(id),
        Event::Stream(StreamEvent::Stopped { id, code }) => http.stopped(id, h3::Code(code)),
        _ => {}
    }
}

fn unexpected(what: &str, why: impl std::fmt::Display) -> AppError {
    AppError(format!("{what}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::super::corpus::{PageResource, Trigger};
    use super::*;
    use sutura_proto::Scheme;
    use sutura_schedule::{Kind, Resource};

    const MS: Duration = Duration::from_millis(1);

    fn resource(kind: Kind, bytes: u64, trigger: Trigger) -> PageResource {
        PageResource { bytes, resource: Resource { kind, ..Resource::default() }, trigger }
    }

    fn load(page: &Arc<Page>, link: &str, scheduler: Scheme) -> Load {
        let config = TransportConfig { scheduler, ..TransportConfig::default() };
        load_over(page, &link.parse().unwrap(), &config, 7).unwrap()
    }

    fn page(resources: &[PageResource]) -> Arc<Page> {
        Arc::new(Page { id: String::new(), resources: resources.to_vec() })
    }

    #[test]
    fn each_resource_is_asked_for_when_what_names_it_is_there() {
        let page = page(&[
            resource(Kind::Html, 500, Trigger::Start(Duration::ZERO)),
            resource(Kind::Css, 500, Trigger::After(0, Duration::ZERO)),
            resource(Kind::Font, 500, Trigger::After(1, 30 * MS)),
        ]);
        let load = load(&page, "delay=50ms", Scheme::Eps);
        let millis =
            |times: &[Duration]| -> Vec<u128> { times.iter().map(Duration::as_millis).collect() };
        // A round trip each.
        assert_eq!(millis(&load.requested), [0, 100, 230]);
        assert_eq!(millis(&load.completed), [100, 200, 330]);
    }

    #[test]
    fn the_server_goes_by_the_scheme() {
        let start = Trigger::Start(Duration::ZERO);
        let page = page(&[
            resource(Kind::Image, 200_000, start),
            resource(Kind::Image, 200_000, start),
            resource(Kind::Css, 200_000, Trigger::During(0, 0.1)),
        ]);
        let order = |scheme| {
            let load = load(&page, "rate=5mbit delay=25ms", scheme);
            let mut order = [0, 1, 2];
            order.sort_by_key(|index| load.completed[*index]);
            (order, load)
        };
        let (fifo, sequence) = order(Scheme::Fifo);
        assert_eq!(fifo, [0, 1, 2]);
        let (dfifo, _) = order(Scheme::Dfifo);
        assert_eq!(dfifo, [2, 0, 1]);
        let (_, turns) = order(Scheme::Rr);
        assert!(turns.completed[0] > sequence.completed[0] * 3 / 2, "{turns:?} {sequence:?}");
    }

    #[test]
    fn more_resources_than_streams_and_loss_do_no_harm() {
        let start = Trigger::Start(Duration::ZERO);
        let resources: Vec<_> = (0..250).map(|_| resource(Kind::Image, 3000, start)).collect();
        let load = load(&page(&resources), "rate=5mbit delay=25ms loss=bern:0.05", Scheme::Rr);
        assert_eq!(load.completed.len(), 250);
        assert!(load.requested[249] > load.requested[0]);
    }

    #[test]
    fn a_path_that_carries_nothing_is_a_failure() {
        let page = page(&[resource(Kind::Html, 500, Trigger::Start(Duration::ZERO))]);
        let link = "loss=bern:1".parse().unwrap();
        let error = load_over(&page, &link, &TransportConfig::default(), 7).unwrap_err();
        assert_eq!(error.seed, Some(7));
        assert!(matches!(error.kind, FailureKind::ConnectionLost(_)), "{error}");
    }
}
