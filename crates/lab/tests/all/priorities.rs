//! The order in which responses arrive: RFC 9218 from the header of a request to the packets, over
//! a bottleneck link.

use std::sync::Arc;
use std::time::Duration;

use sutura_h3::{Fields, PriorityParameters};
use sutura_lab::pages::Trigger;
use sutura_lab::web::{Client, Reply, Request, Server, load};
use sutura_proto::{Algorithm, Scheme, TransportConfig};
use sutura_sim::Scenario;

const MS: Duration = Duration::from_millis(1);
const SIZE: usize = 200_000;
/// By this time, the handshake and the exchange of settings are over.
const START: Duration = Duration::from_secs(1);
/// More than the largest packet.
const PACKET: usize = 1500;

/// The congestion controller keeps the queue of the link short, so that the scheduler decides late
/// what to send next.
fn eps() -> TransportConfig {
    let congestion = Arc::new(Algorithm::BBR);
    TransportConfig::default().with_scheduler(Arc::new(Scheme::EPS)).with_congestion(congestion)
}

/// The same with send buffers that cover the path but not a whole response: most of a response is
/// still in the application when its first bytes arrive.
fn small_buffers() -> TransportConfig {
    eps().with_send_buffer(128 * 1024)
}

/// An action of the client.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// Asks for `length` bytes with a `priority` field, to be answered with another one.
    Get { length: usize, wish: Option<&'static str>, own: Option<&'static str> },
    /// Sends a PRIORITY_UPDATE for the request with this index.
    Update { index: usize, wish: &'static str },
}

/// A request for `length` bytes with the priority `wish`.
const fn get(length: usize, wish: &'static str) -> Act {
    Act::Get { length, wish: Some(wish), own: None }
}

/// The outcome of a script.
#[derive(Debug)]
struct Played {
    /// Which request got how many bytes of body, in the order of their arrival.
    arrivals: Vec<(usize, usize)>,
}

impl Played {
    /// The requests in the order in which their bodies came, each named again when it came after
    /// another.
    fn runs(&self) -> Vec<usize> {
        let mut runs: Vec<usize> = self.arrivals.iter().map(|(index, _)| *index).collect();
        runs.dedup();
        runs
    }

    /// How far apart in bytes two requests ever were until one of them was complete.
    fn spread(&self, a: usize, b: usize, length: usize) -> usize {
        let (mut got, mut spread) = ([0; 2], 0);
        for &(index, n) in &self.arrivals {
            let Some(at) = [a, b].iter().position(|x| *x == index) else { continue };
            got[at] += n;
            if got.contains(&length) {
                break;
            }
            spread = spread.max(usize::abs_diff(got[0], got[1]));
        }
        spread
    }
}

/// The server takes the priority of its response from the request.
fn answer(request: &Fields) -> Option<Reply> {
    let reply = Reply::described(request)?;
    let own = request.get("own").map(<[u8]>::to_vec);
    let head = own.into_iter().fold(reply.head, |head, own| head.with("priority", own));
    Some(Reply { head, ..reply })
}

/// Plays a script over a link of 8 Mbit/s with a round trip of 20 ms. `up` changes the direction of
/// the requests. Times count from the end of the handshake.
fn play(server: &TransportConfig, up: &str, script: &[(Duration, Act)]) -> Played {
    let link = |more: &str| format!("rate=8mbit delay=10ms {more}").parse().unwrap();
    let (mut page, mut updates) = (Vec::new(), Vec::new());
    for &(at, act) in script {
        match act {
            Act::Get { length, wish, own } => {
                let request = Request::described(page.len(), length as u64);
                let fields = [("priority", wish), ("own", own)]
                    .into_iter()
                    .filter_map(|(name, value)| Some((name, value?)))
                    .fold(request.fields, |fields, (name, value)| fields.with(name, value));
                page.push(Request { fields, trigger: Trigger::Start(at), ..request });
            }
            Act::Update { index, wish } => {
                let parameters = PriorityParameters::parse(wish.as_bytes()).unwrap_or_default();
                updates.push((at, index, parameters.resolve()));
            }
        }
    }
    let client = updates
        .into_iter()
        .fold(Client::new(page), |client, (at, index, wish)| client.update(at, index, wish));
    let scenario = Scenario::new(1).link(&link(up), &link("")).server(server);
    let loaded = load(&scenario, client, || Server::app(answer), 0).unwrap();
    let arrivals = loaded.arrivals.iter();
    Played { arrivals: arrivals.map(|a| (a.request, a.bytes as usize)).collect() }
}

/// Concurrent requests for responses of the same length.
fn at_once(wishes: &[Option<&'static str>]) -> Played {
    let act = |wish: &Option<&'static str>| Act::Get { length: SIZE, wish: *wish, own: None };
    let script: Vec<_> = wishes.iter().map(|wish| (START, act(wish))).collect();
    play(&eps(), "", &script)
}

/// RFC 9218 section 10: "in order of urgency".
#[test]
fn responses_come_in_order_of_urgency() {
    let wishes = ["u=7", "u=5", "u=0", "u=6", "u=2", "u=4", "u=1", "u=3"].map(Some);
    assert_eq!(at_once(&wishes).runs(), [2, 6, 4, 7, 5, 1, 3, 0]);
}

/// RFC 9218 section 10: non-incremental responses are sent one by one, in the order of the
/// requests.
#[test]
fn responses_that_are_not_incremental_come_one_by_one_as_requested() {
    assert_eq!(at_once(&[Some("u=2"); 5]).runs(), [0, 1, 2, 3, 4]);
    assert_eq!(at_once(&[Some("u=2"), Some("u=2, i=?0"), Some("i=?0, u=2")]).runs(), [0, 1, 2]);
}

/// RFC 9218 section 10: incremental responses share the bandwidth.
#[test]
fn incremental_responses_interleave() {
    let outcome = at_once(&[Some("u=2, i"); 4]);
    for a in 0..4 {
        for b in 0..a {
            assert!(outcome.spread(a, b, SIZE) <= 2 * PACKET, "{a} and {b}");
        }
    }
    assert!(outcome.runs().len() > 4 * SIZE / PACKET / 2, "{} turns", outcome.runs().len());
}

/// Among responses of the same urgency, non-incremental ones go first. Urgency takes precedence.
#[test]
fn a_more_urgent_response_waits_for_no_incremental_one() {
    let outcome = at_once(&["u=3, i", "u=3", "u=2, i", "u=3, i", "u=2, i"].map(Some));
    let runs = outcome.runs();
    let first_of_three = runs.iter().position(|index| *index == 1).unwrap();
    assert!(runs[..first_of_three].iter().all(|index| [2, 4].contains(index)), "{runs:?}");
    assert!(runs[first_of_three + 1..].iter().all(|index| [0, 3].contains(index)), "{runs:?}");
    assert!(outcome.spread(2, 4, SIZE).max(outcome.spread(0, 3, SIZE)) <= 2 * PACKET);
}

/// RFC 9218 sections 4 and 5: without a priority, or with a priority that cannot be parsed, a request has
/// urgency 3 and is not incremental.
#[test]
fn whatever_is_not_understood_is_the_default() {
    for wish in [
        None,
        Some(""),
        Some("u=3"),
        Some("u=8"),
        Some("u=-1"),
        Some("u=\"0\""),
        Some("u=0.0, i=1"),
        Some("u"),
        Some("U=0"),
        Some("u=0, i,"),
        Some("\u{e4}"),
    ] {
        let runs = at_once(&[Some("u=4"), wish, Some("u=2"), Some("u=3")]).runs();
        assert_eq!(runs, [2, 1, 3, 0], "{wish:?}");
    }
}

/// RFC 9218 section 4: unknown parameters are ignored. The parameters for hierarchical sharing and
/// erasure coding do not affect a scheduler that supports neither, so it falls back to `u` and `i`.
#[test]
fn unknown_parameters_change_nothing() {
    let plain = at_once(&["u=4", "u=1", "u=2"].map(Some)).runs();
    for extra in [
        ["u=4, exp_w=900", "u=1, exp_w=0.1", "u=2, exp_p=(\"a\";u=0;exp_w=9)"],
        ["u=4, x=(1 2);y, z=?0", "u=1;u=7, *k=:aGk=:", "q=0.7, u=2"],
        ["u=4, exp_p=(a;u=0 b;u=0)", "u=1, exp_p=(a;u=7)", "u=2, exp_q=1"],
        ["u=4, exp_w=x, exp_d", "u=1, exp_p=7, exp_b=-2", "u=2, exp_d=1.5"],
    ] {
        assert_eq!(at_once(&extra.map(Some)).runs(), plain, "{extra:?}");
    }
}

/// RFC 9218 section 7: a client reprioritises responses that are in progress, no matter whether the
/// transport has buffered all of them or most of their bytes are still in the application.
#[test]
fn an_update_changes_the_order_midway() {
    let length = 300_000;
    for transport in [eps(), small_buffers()] {
        let update = |index, wish| Act::Update { index, wish };
        let mut script = vec![(START, get(length, "u=3")); 3];
        script.push((START + 100 * MS, update(2, "u=1")));
        let outcome = play(&transport, "", &script);
        assert_eq!(outcome.runs(), [0, 2, 0, 1], "up");

        script[3] = (START + 100 * MS, update(0, "u=5"));
        let outcome = play(&transport, "", &script);
        assert_eq!(outcome.runs(), [0, 1, 2, 0], "down");

        script[3] = (START + 100 * MS, update(1, "u=2"));
        script.push((START + 200 * MS, update(1, "")));
        let outcome = play(&transport, "", &script);
        assert_eq!(outcome.runs(), [0, 1, 0, 1, 2], "back to the default");

        let shared = [0, 1].map(|index| (START + 100 * MS, update(index, "u=3, i")));
        script.splice(3.., shared);
        let outcome = play(&transport, "", &script);
        let runs = outcome.runs();
        assert_eq!(runs[..2], [0, 2], "what is not incremental goes first");
        assert!(runs[2..].iter().all(|index| *index < 2) && runs.len() > 100, "then both share");
    }
}

/// An update may overtake its request (RFC 9218 section 7.2): here, the datagram with the requests is lost
/// and the datagram with the update is not.
#[test]
fn an_update_that_comes_before_its_request_counts() {
    let script = [
        (START, get(SIZE, "u=2")),
        (START, get(SIZE, "u=3")),
        (START + 5 * MS, Act::Update { index: 1, wish: "u=1" }),
    ];
    // The handshake takes between 20 and 24 ms.
    let outcome = play(&eps(), "outage=1020ms..1025ms", &script);
    assert_eq!(outcome.runs(), [1, 0]);
}

/// RFC 9218 section 8: the response's own parameters win, and the client's apply where the response
/// has none. The first response is the example of the RFC.
#[test]
fn the_responses_own_field_wins_the_merge() {
    let own = |wish, own| (START, Act::Get { length: SIZE, wish: Some(wish), own: Some(own) });
    let merged = || {
        vec![
            own("u=5, i", "u=1"),
            (START, get(SIZE, "u=0")),
            own("u=5, i", "u=1"),
            own("u=0", "u=6"),
            (START, get(SIZE, "u=2")),
        ]
    };
    let check = |outcome: &Played| {
        let runs = outcome.runs();
        let [first, .., last_but_one, last] = runs[..] else { panic!("{runs:?}") };
        assert_eq!([first, last_but_one, last], [1, 4, 3], "{runs:?}");
        assert!(outcome.spread(0, 2, SIZE) <= 2 * PACKET, "the client's `i` holds");
    };
    check(&play(&eps(), "", &merged()));
    // Updates do not override the response's parameters either.
    let mut script = merged();
    script.push((START + 50 * MS, Act::Update { index: 3, wish: "u=0" }));
    script.push((START + 50 * MS, Act::Update { index: 2, wish: "u=7, i" }));
    check(&play(&eps(), "", &script));
    check(&play(&small_buffers(), "", &script));
    // Invalid values in the response override nothing.
    for broken in ["u=9", "i=1", "u=,", "x=1"] {
        let script = [own("u=5", broken), (START, get(SIZE, "u=4"))];
        assert_eq!(play(&eps(), "", &script).runs(), [1, 0], "{broken}");
    }
}

/// Schedulers that support weights and classes.
const SHARING: [Scheme; 2] = [Scheme::HMM, Scheme::HLS];

fn sharing(scheduler: Scheme) -> TransportConfig {
    eps().with_scheduler(Arc::new(scheduler))
}

/// The bytes of each request that have arrived when the first one is complete.
fn until_the_first_is_complete(outcome: &Played, length: usize, requests: usize) -> Vec<f64> {
    let mut got = vec![0; requests];
    for &(index, n) in &outcome.arrivals {
        got[index] += n;
        if got[index] == length {
            break;
        }
    }
    got.into_iter().map(|n| n as f64).collect()
}

fn assert_ratio(a: f64, b: f64, expected: f64, what: &str) {
    let ratio = a / b;
    assert!((ratio / expected - 1.0).abs() < 0.1, "{what}: {ratio:.2} instead of {expected}");
}

/// `exp_w` and `exp_p` from the header of a request to the packets.
#[test]
fn weights_and_classes_share_the_bottleneck() {
    for scheme in SHARING {
        let script = [
            (START, get(SIZE, "u=3, i, exp_w=3")),
            (START, get(SIZE, "u=3, i")),
            (START, get(SIZE, "u=3, i, exp_p=(c;i;exp_w=4)")),
            (START, get(SIZE, "u=3, i, exp_w=3, exp_p=(c;i;exp_w=4)")),
        ];
        let outcome = play(&sharing(scheme), "", &script);
        let got = until_the_first_is_complete(&outcome, SIZE, 4);
        assert_ratio(got[0], got[1], 3.0, "by weight");
        assert_ratio(got[3], got[2], 3.0, "within the class");
        assert_ratio(got[2] + got[3], got[0] + got[1], 1.0, "the class and its siblings");
    }
}

/// If requests disagree about a class, the latest one counts, be it a request or an update.
#[test]
fn the_latest_word_on_a_class_counts() {
    for scheme in SHARING {
        let mut script = vec![
            (START, get(SIZE, "u=3, i, exp_p=(c;i;exp_w=9)")),
            (START, get(SIZE, "u=3, i, exp_p=(c;i;exp_w=4)")),
            (START, get(SIZE, "u=3, i")),
        ];
        let outcome = play(&sharing(scheme), "", &script);
        let got = until_the_first_is_complete(&outcome, SIZE, 3);
        assert_ratio(got[0] + got[1], got[2], 4.0, "the second request's");
        script
            .push((START + 10 * MS, Act::Update { index: 2, wish: "u=3, i, exp_p=(d;i;exp_w=4)" }));
        script.push((START + 10 * MS, Act::Update { index: 0, wish: "u=3, i, exp_p=(c;i)" }));
        let outcome = play(&sharing(scheme), "", &script);
        let got = until_the_first_is_complete(&outcome, SIZE, 3);
        assert!(got[2] > 3.0 * (got[0] + got[1]), "the update's: {got:?}");
    }
}

/// A client that only uses `u` and `i` is served according to RFC 9218, even next to classes.
#[test]
fn strict_order_needs_no_classes() {
    for scheme in SHARING {
        let wishes = ["u=5", "u=1", "u=3", "u=1"];
        let script = wishes.map(|wish| (START, get(SIZE, wish)));
        assert_eq!(play(&sharing(scheme), "", &script).runs(), [1, 3, 2, 0], "{scheme}");
        let wishes = ["u=5", "u=1, exp_p=(c;u=6)", "u=3", "u=1"];
        let script = wishes.map(|wish| (START, get(SIZE, wish)));
        assert_eq!(play(&sharing(scheme), "", &script).runs(), [3, 2, 0, 1], "{scheme}");
    }
}
