//! Page loads over HTTP/3 in the simulator, from a server that knows the properties of each resource.

use std::sync::Arc;

use sutura_h3::{Fields, Priority};
use sutura_link::LinkConfig;
use sutura_proto::TransportConfig;
use sutura_sim::{Failure, Scenario};

use super::{Client, Reply, Request, Server, load};
use crate::pages::{Load, Page, chrome, priority};

/// Loads a page once, on a connection of its own. The links are the way to the server and back; `config`
/// is for both ends, and its scheduler decides which data the server sends next. Times are since the first
/// request, which follows the handshake. All randomness derives from `seed`.
///
/// # Errors
/// The page is not complete after an hour, or the connection is lost.
pub fn load_over(
    page: &Arc<Page>,
    [up, down]: [&LinkConfig; 2],
    config: &TransportConfig,
    seed: u64,
) -> Result<Load, Failure> {
    let resources = page.resources.iter().enumerate();
    let requests = resources.map(|(index, resource)| {
        let (urgency, incremental) = chrome(&resource.resource);
        Request {
            fields: Fields::request("GET", "https", "server.example", format!("/{index}")),
            bytes: resource.bytes,
            priority: Some(Priority::default().with_urgency(urgency).with_incremental(incremental)),
            trigger: resource.trigger,
        }
    });
    let client = Client::new(requests.collect());
    let page = page.clone();
    let server = move || {
        let page = page.clone();
        Server::app(move |request| answer(&page, request)).early()
    };
    let scenario = Scenario::new(seed).link(up, down).transport(config);
    Ok(load(&scenario, client, server, 0)?.load)
}

/// Tells the scheduler all that is known of a resource.
fn answer(page: &Page, request: &Fields) -> Option<Reply> {
    let path = std::str::from_utf8(request.get(":path")?).ok()?;
    let number = path.strip_prefix('/')?.parse().ok()?;
    let resource = page.resources.get(number)?;
    let priority = Some(priority(resource));
    Some(Reply { head: Fields::response(200), number, bytes: resource.bytes, priority })
}

#[cfg(test)]
mod tests {
    use crate::pages::Trigger;
    use std::time::Duration;

    use super::*;
    use sutura_proto::Scheme;
    use sutura_research::marx::{Kind, dfifo, fifo, rr};
    use sutura_sim::FailureKind;

    const MS: Duration = Duration::from_millis(1);

    fn load(page: &Arc<Page>, link: &str, scheduler: Scheme) -> Load {
        let config = TransportConfig::default().with_scheduler(Arc::new(scheduler));
        load_over(page, [&link.parse().unwrap(); 2], &config, 7).unwrap()
    }

    #[test]
    fn each_resource_is_asked_for_when_what_names_it_is_there() {
        let page = Arc::new(Page::of(&[
            (Kind::Html, 500, Trigger::Start(Duration::ZERO)),
            (Kind::Css, 500, Trigger::After(0, Duration::ZERO)),
            (Kind::Font, 500, Trigger::After(1, 30 * MS)),
        ]));
        let load = load(&page, "delay=50ms", Scheme::EPS);
        let millis =
            |times: &[Duration]| -> Vec<u128> { times.iter().map(Duration::as_millis).collect() };
        // A round trip each.
        assert_eq!(millis(&load.requested), [0, 100, 230]);
        assert_eq!(millis(&load.completed), [100, 200, 330]);
    }

    #[test]
    fn the_server_goes_by_the_scheme() {
        let start = Trigger::Start(Duration::ZERO);
        let page = Arc::new(Page::of(&[
            (Kind::Image, 200_000, start),
            (Kind::Image, 200_000, start),
            (Kind::Css, 200_000, Trigger::During(0, 0.1)),
        ]));
        let order = |scheme| {
            let load = load(&page, "rate=5mbit delay=25ms", scheme);
            let mut order = [0, 1, 2];
            order.sort_by_key(|index| load.completed[*index]);
            (order, load)
        };
        let (fifo, sequence) = order(fifo::SCHEME);
        assert_eq!(fifo, [0, 1, 2]);
        let (dfifo, _) = order(dfifo::SCHEME);
        assert_eq!(dfifo, [2, 0, 1]);
        let (_, turns) = order(rr::SCHEME);
        assert!(turns.completed[0] > sequence.completed[0] * 3 / 2, "{turns:?} {sequence:?}");
    }

    #[test]
    fn more_resources_than_streams_and_loss_do_no_harm() {
        let start = Trigger::Start(Duration::ZERO);
        let page = Arc::new(Page::of(&[(Kind::Image, 3000, start); 250]));
        let load = load(&page, "rate=5mbit delay=25ms loss=bern:0.05", rr::SCHEME);
        assert_eq!(load.completed.len(), 250);
        assert!(load.requested[249] > load.requested[0]);
    }

    #[test]
    fn a_path_that_carries_nothing_is_a_failure() {
        let page = Arc::new(Page::of(&[(Kind::Html, 500, Trigger::Start(Duration::ZERO))]));
        let link = "loss=bern:1".parse().unwrap();
        let error = load_over(&page, [&link; 2], &TransportConfig::default(), 7).unwrap_err();
        assert_eq!(error.seed, Some(7));
        assert!(matches!(error.kind, FailureKind::ConnectionLost(_)), "{error}");
    }
}
