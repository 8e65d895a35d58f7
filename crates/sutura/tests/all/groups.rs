//! Ordered groups over real sockets.

use crate::common::{connected, pattern, within};
use std::collections::BTreeSet;
use sutura::groups::{GroupMessage, ReceiveGroupError, SendGroupError};
use sutura::{
    Connection, ConnectionError, MessageOptions, MessageOutcome, Priority, TransportConfig,
};

/// Messages of several sizes, 40 in each of 30 updates.
const MESSAGES: u64 = 1200;
const STAGE: u64 = 40;

fn size(number: u64) -> usize {
    [1, 900, 1400, 5000, 70_000][number as usize % 5]
}

async fn send_updates(connection: Connection) {
    let group = connection.open_group(Priority::default()).unwrap();
    let mut cancelled = BTreeSet::new();
    for number in 0..MESSAGES {
        let data = pattern(size(number));
        let message = GroupMessage::new(&data);
        assert_eq!(group.send(&message).await, Ok(number));
        if number % STAGE == STAGE - 1 {
            group.fence();
        }
        if number % 50 == 49 && group.cancel(number) {
            cancelled.insert(number);
        }
    }
    for _ in 0..MESSAGES {
        let (number, outcome) = group.outcome().await.unwrap();
        let given_up = outcome == MessageOutcome::GivenUp;
        assert_eq!(given_up, cancelled.contains(&number), "{number}: {outcome:?}");
    }
    let last = GroupMessage::new(b"last");
    group.send(&last).await.unwrap();
    assert_eq!(group.outcome().await.unwrap(), (MESSAGES, MessageOutcome::Arrived));
}

#[tokio::test]
async fn updates_are_delivered_in_partial_order() {
    // Few streams: the sender waits for the receiver again and again.
    let transport = TransportConfig::default()
        .with_max_concurrent_uni_streams(50)
        .with_max_concurrent_group_streams(50);
    let (a, b, _client) = connected(b"x", &transport).await;
    let mut groups = b.receive_groups();
    let sender = tokio::spawn(send_updates(a.clone()));
    let mut stage = 0;
    loop {
        let message = within(groups.next()).await.unwrap().unwrap();
        if message.number == MESSAGES {
            break;
        }
        assert!(message.data == pattern(size(message.number)), "{} differs", message.number);
        assert!(message.number / STAGE >= stage, "{} is behind its fence", message.number);
        stage = message.number / STAGE;
    }
    sender.await.unwrap();
    assert_eq!(stage, MESSAGES / STAGE - 1);
    // Messages without a group have outcomes of their own.
    let id = b.send_message(pattern(10).into(), MessageOptions::default()).await.unwrap();
    assert_eq!(b.message_outcome().await, Ok((id, MessageOutcome::Arrived)));
    a.close(0, b"");
    assert_eq!(groups.next().await, Ok(None));
}

#[tokio::test]
async fn a_peer_that_breaks_the_rules_loses_its_connection() {
    let (a, b, _client) = connected(b"x", &TransportConfig::default()).await;
    let mut groups = b.receive_groups();
    let mut stream = a.open_uni().await.unwrap();
    stream.write_all(&[0, 1, 2, 0]).await.unwrap();
    stream.finish().unwrap();
    let error = within(groups.next()).await.unwrap_err();
    assert!(matches!(error, ReceiveGroupError::Group(_)), "{error}");
    let code = sutura::groups::INVALID;
    let closed = within(a.closed()).await;
    assert!(matches!(closed, ConnectionError::ApplicationClosed { code: c, .. } if c == code));
}

#[tokio::test]
async fn a_closed_connection_takes_no_messages() {
    let (a, b, _client) = connected(b"x", &TransportConfig::default()).await;
    let mut groups = b.receive_groups();
    let group = a.open_group(Priority::default()).unwrap();
    b.close(7, b"enough");
    within(a.closed()).await;
    assert!(matches!(group.send(&GroupMessage::default()).await, Err(SendGroupError::Message(_))));
    assert!(group.outcome().await.is_err());
    assert!(matches!(groups.next().await, Err(ReceiveGroupError::ConnectionLost(_))));
}
