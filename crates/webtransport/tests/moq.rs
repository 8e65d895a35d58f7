//! Media over QUIC over Sutura: a publisher and a subscriber of the crate `moq-net` exchange groups.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::time::Instant;

use common::{session, within};
use moq_net::{Client, Hop, Server, Timestamp, origin, time};
use sutura_webtransport::traits::Polled;

/// Groups that are published, and frames in each.
const GROUPS: u64 = 20;
const FRAMES: u64 = 5;

fn origin(hop: u64) -> origin::Producer {
    let config = origin::Config::new(Hop::new(hop).unwrap());
    let (producer, driver) = origin::Producer::new(config);
    tokio::spawn(time::run(driver));
    producer
}

/// A frame of some kilobytes that tells where it belongs.
fn payload(group: u64, frame: u64) -> Vec<u8> {
    let mut payload = vec![(group + frame) as u8; 3000];
    payload[..8].copy_from_slice(&(group * FRAMES + frame).to_be_bytes());
    payload
}

async fn exchange(protocol: &str) {
    let (begun, accepted, _ends) = session(Some(protocol)).await;
    let publisher = origin(1);
    let broadcast = publisher.create_broadcast("room").unwrap();
    let track = broadcast.create_track("video", None).unwrap();
    broadcast.announce(Default::default()).unwrap();
    let subscriber = origin(2);
    let serve = async {
        let server = Server::new().with_publisher(publisher.consume());
        let accepted = server.accept(Instant::now(), Polled::from(accepted)).await.unwrap();
        tokio::spawn(time::run(accepted.1));
        accepted.0
    };
    let connect = async {
        let client = Client::new().with_subscriber(subscriber.clone());
        let begun = client.connect(Instant::now(), Polled::from(begun)).await.unwrap();
        tokio::spawn(time::run(begun.1));
        begun.0
    };
    let (_server, _client) = tokio::join!(serve, connect);

    let consumer = subscriber.consume();
    consumer.routed("room").await.unwrap();
    let remote = consumer.request_broadcast("room").await.unwrap();
    let mut video = remote.track("video").unwrap().subscribe(None).await.unwrap();
    for number in 0..GROUPS {
        let mut group = track.append_group().unwrap();
        for frame in 0..FRAMES {
            let at = Timestamp::from_millis(40 * (number * FRAMES + frame)).unwrap();
            group.write_frame(at, payload(number, frame)).unwrap();
        }
        group.finish().unwrap();
        let mut received = video.recv_group().await.unwrap().unwrap();
        for frame in 0..FRAMES {
            let got = received.read_frame().await.unwrap().unwrap();
            assert_eq!(&got.payload[..], payload(number, frame));
        }
        assert!(received.read_frame().await.unwrap().is_none());
    }
}

#[tokio::test]
async fn a_subscriber_gets_the_groups_of_a_publisher() {
    within(async {
        exchange("moq-lite-05").await;
        exchange("moqt-17").await;
    })
    .await;
}
