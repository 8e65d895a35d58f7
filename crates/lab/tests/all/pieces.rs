//! Bodies of HTTP/3 that are read in the order of arrival (Eghbal and Lu 2025, section 4.1).

use std::collections::BTreeMap;
use std::time::Duration;

use sutura_lab::web::{Arrival, Client, PageLoad, Reply, Request, Server, load};
use sutura_proto::TransportConfig;
use sutura_sim::Scenario;

const BYTES: u64 = 400_000;
const REQUESTS: u64 = 3;

/// How a body is sent and read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    InOrder,
    /// In one frame, in order.
    Announced,
    /// In frames of some packets each, as they arrive.
    Frames,
    /// In one frame, as it arrives.
    Pieces,
}

fn fetch(how: How, loss: &str, seed: u64) -> PageLoad {
    let path = format!("rate=10mbit delay=50ms {loss}").parse().unwrap();
    let transport = TransportConfig::default().with_redundancy(None);
    let scenario = Scenario::new(seed).link(&path, &path).transport(&transport);
    let page = (0..REQUESTS).map(|number| Request::described(number as usize, BYTES));
    let client = Client::new(page.collect());
    let client =
        if matches!(how, How::InOrder | How::Announced) { client } else { client.in_pieces() };
    let server = move || match how {
        How::InOrder | How::Frames => Server::app(Reply::described),
        How::Announced | How::Pieces => Server::announcing(Reply::described),
    };
    load(&scenario, client, server, 0).unwrap()
}

/// The mean time at which a byte is there, and the bytes of each response. The client has checked the bytes
/// and their offsets.
fn summary(arrivals: &[Arrival]) -> (Duration, BTreeMap<usize, u64>) {
    let (mut each, mut sum) = (BTreeMap::new(), Duration::ZERO);
    for Arrival { at, request, bytes } in arrivals {
        *each.entry(*request).or_default() += bytes;
        sum += *at * u32::try_from(*bytes).unwrap();
    }
    (sum / u32::try_from(REQUESTS * BYTES).unwrap(), each)
}

/// On a lossy path, bytes that arrive behind a loss can be read a round trip earlier if their frame is known;
/// all bytes come once, at their offsets.
#[test]
fn what_arrives_behind_a_loss_does_not_wait_for_it() {
    let mut means = [Duration::ZERO; 4];
    for seed in 0..4 {
        for (how, mean) in
            [How::InOrder, How::Announced, How::Frames, How::Pieces].into_iter().zip(&mut means)
        {
            let (at, each) = summary(&fetch(how, "loss=bern:3%", seed).arrivals);
            assert!(
                each.len() as u64 == REQUESTS && each.values().all(|bytes| *bytes == BYTES),
                "{how:?}"
            );
            *mean += at / 4;
        }
    }
    let [in_order, announced, frames, pieces] = means;
    println!(
        "a byte is there after {in_order:?} in order, {announced:?} announced, {frames:?} in pieces of frames, {pieces:?} in pieces"
    );
    assert!(pieces + Duration::from_millis(30) < announced);
    assert!(pieces < frames && frames < in_order);
}

/// Without losses there is nothing to wait for.
#[test]
fn without_losses_the_order_is_the_same() {
    let [in_order, pieces] = [How::Announced, How::Pieces].map(|how| {
        let mut at_once = BTreeMap::<_, u64>::new();
        // Data that comes at once may be read in two pieces, where the storage of the stream has a border.
        for Arrival { at, request, bytes } in fetch(how, "", 1).arrivals {
            *at_once.entry((at, request)).or_default() += bytes;
        }
        at_once
    });
    assert!(in_order == pieces && in_order.len() > 900, "{}", in_order.len());
}
