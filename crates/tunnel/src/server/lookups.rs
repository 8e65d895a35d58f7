//! Lookups of names, which block a thread each for as long as the system's resolver takes.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

/// Names that are looked up for one client at a time, at most; further ones wait. One whose names do not answer so
/// leaves threads for the others.
pub const MAX_LOOKUPS: usize = 4;

/// The lookups of one client.
#[derive(Debug)]
pub(super) struct Lookups(Arc<Semaphore>);

impl Default for Lookups {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MAX_LOOKUPS)))
    }
}

impl Lookups {
    /// The first `most` addresses of a name.
    ///
    /// # Errors
    /// The resolver does not know it.
    pub(super) async fn resolve(
        &self,
        name: &str,
        port: u16,
        most: usize,
    ) -> io::Result<Vec<SocketAddr>> {
        let name = name.to_owned();
        self.run(move || Ok((name.as_str(), port).to_socket_addrs()?.take(most).collect())).await
    }

    /// Runs a lookup. It counts until it ends, also if nobody waits for it any more.
    async fn run<T: Send + 'static>(
        &self,
        lookup: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let permit = self.0.clone().acquire_owned().await.map_err(io::Error::other)?;
        let running = spawn_blocking(move || {
            let found = lookup();
            drop(permit);
            found
        });
        running.await.map_err(io::Error::other)?
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_client_whose_names_do_not_answer_leaves_threads_for_others() {
        let (slow, other) = (Lookups::default(), Lookups::default());
        let mut held = Vec::new();
        for _ in 0..MAX_LOOKUPS {
            let (release, released) = mpsc::channel::<()>();
            let mut lookup = Box::pin(slow.run(move || Ok(released.recv())));
            assert!((&mut lookup).now_or_never().is_none());
            // Nobody waits for it, and it goes on all the same.
            drop(lookup);
            held.push(release);
        }
        let mut further = Box::pin(slow.run(|| Ok(())));
        assert!((&mut further).now_or_never().is_none());
        other.run(|| Ok(())).await.unwrap();
        assert_eq!(slow.0.available_permits(), 0);
        drop(held.pop());
        further.await.unwrap();
    }

    #[tokio::test]
    async fn addresses_need_no_resolver() {
        let found = Lookups::default().resolve("192.0.2.1", 7, 9).await.unwrap();
        assert_eq!(found, [([192, 0, 2, 1], 7).into()]);
    }
}
