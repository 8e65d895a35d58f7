//! Tasks that wait until the peer allows them a stream take turns.

use crate::common::{configs, connected, echo, local_client, localhost, until, within};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Wake};
use sutura::{Connection, Endpoint, TransportConfig};

/// Opens a stream, uses it, and counts in `polls` how often the task looked whether it may.
async fn use_a_stream(connection: Connection, polls: Arc<AtomicUsize>) {
    let (mut send, mut recv) = {
        let mut open = pin!(connection.open_bi());
        let counted = poll_fn(|cx| {
            polls.fetch_add(1, Relaxed);
            open.as_mut().poll(cx)
        });
        counted.await.unwrap()
    };
    send.write_all(b"x").await.unwrap();
    send.finish().unwrap();
    assert_eq!(recv.read_to_end(1).await.unwrap(), b"x");
}

#[tokio::test]
async fn only_tasks_that_can_open_a_stream_are_woken() {
    const TASKS: usize = 300;
    let (server, client) = configs(b"echo");
    let few = TransportConfig::default().with_max_concurrent_bidi_streams(4);
    let server = Endpoint::server(server.transport(few), localhost()).unwrap();
    let address = server.local_addr().unwrap();
    echo(server);
    let client = local_client(client);
    let connection = client.connect(address, "localhost").unwrap().await.unwrap();
    let polls = Arc::<AtomicUsize>::default();
    let tasks: Vec<_> = std::iter::repeat_with(|| use_a_stream(connection.clone(), polls.clone()))
        .take(TASKS)
        .map(tokio::spawn)
        .collect();
    for task in tasks {
        within(task).await.unwrap();
    }
    // Once when it comes, and once in its turn. The first tasks have no need to wait.
    let polls = polls.load(Relaxed);
    assert!((TASKS..=2 * TASKS).contains(&polls), "{polls}");
}

#[derive(Default)]
struct Task(AtomicBool);

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Relaxed);
    }
}

#[tokio::test]
async fn a_task_that_gives_up_leaves_its_turn_to_the_next() {
    let one = TransportConfig::default().with_max_concurrent_uni_streams(1);
    let (client, server, _endpoint) = connected(b"x", &one).await;
    let mut first = client.open_uni().await.unwrap();
    let mut second = Box::pin(client.open_uni());
    let mut third = Box::pin(client.open_uni());
    let task = Arc::<Task>::default();
    assert!(second.as_mut().poll(&mut Context::from_waker(&task.clone().into())).is_pending());
    let pending = poll_fn(|cx| std::task::Poll::Ready(third.as_mut().poll(cx).is_pending()));
    assert!(pending.await);
    first.write_all(b"x").await.unwrap();
    first.finish().unwrap();
    assert_eq!(server.accept_uni().await.unwrap().read_to_end(1).await.unwrap(), b"x");
    until(|| task.0.load(Relaxed)).await;
    drop(second);
    within(third).await.unwrap();
}
