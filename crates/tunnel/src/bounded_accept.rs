//! Accepting TCP connections, a bounded number at a time.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// How long to wait after accepting failed, for example because of too many open files: some may be closed soon.
pub const PAUSE: Duration = Duration::from_millis(100);

/// Hands every connection to `serve`, `most` of them at a time, for ever.
pub async fn accept_all<F>(listener: TcpListener, most: usize, serve: impl Fn(TcpStream) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let room = Arc::new(Semaphore::new(most));
    loop {
        let Ok(permit) = room.clone().acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let served = serve(stream);
        tokio::spawn(async move {
            served.await;
            drop(permit);
        });
    }
}
