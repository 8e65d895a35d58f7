//! Keeps a connection to one of several proxies.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use sutura::ConnectionError;
use tokio::time::{Instant, sleep, timeout_at};

use super::link::{Link, Unanswered};
use super::{FIRST_RETRY, LAST_RETRY, Refusal, State, Tunnel};
use crate::masque::Cause;

/// A connection that was lost sooner than this did not work: the next attempt waits.
const WORKED: Duration = Duration::from_secs(5);

/// Why an attempt to connect failed.
struct Failed {
    message: String,
    is_final: bool,
}

impl Tunnel {
    /// Connects, and connects again whenever the connection is lost, until [`close`](Self::close), or until no
    /// proxy lets this end in at all.
    ///
    /// # Errors
    /// No proxy lets this end in, and another attempt would end likewise.
    pub async fn run(&self) -> Result<(), String> {
        let (mut proxy, mut wait, mut connected) = (0, FIRST_RETRY, false);
        let mut hopeless = 0;
        loop {
            match self.connect(proxy).await {
                Ok(link) => {
                    hopeless = 0;
                    if connected {
                        self.0.totals.reconnections.fetch_add(1, Relaxed);
                        self.0.notices.note("connected again");
                    }
                    connected = true;
                    let since = Instant::now();
                    if !self.hold(link).await {
                        return Ok(());
                    }
                    if since.elapsed() >= WORKED {
                        wait = FIRST_RETRY;
                    }
                }
                Err(Failed { message, is_final }) => {
                    hopeless = if is_final && !connected { hopeless + 1 } else { 0 };
                    if hopeless == self.0.dial.proxies() {
                        self.0.state.send_replace(State::Over(message.clone()));
                        return Err(message);
                    }
                    self.0.notices.complain(&message);
                    proxy = (proxy + 1) % self.0.dial.proxies();
                }
            }
            if self.is_over() {
                return Ok(());
            }
            sleep(wait).await;
            wait = (wait * 2).min(LAST_RETRY);
        }
    }

    /// Connects to a proxy.
    async fn connect(&self, proxy: usize) -> Result<Arc<Link>, Failed> {
        let dialled = self.0.dial.dial(proxy).await;
        let dialled =
            dialled.map_err(|error| Failed { message: error.message, is_final: error.is_final })?;
        let authority = dialled.authority.clone();
        match Link::open(dialled, self.0.authorization.clone()).await {
            Ok(link) => Ok(link),
            Err(Unanswered::Refused(refusal)) => {
                let message = format!("{authority} does not let us in: {refusal}");
                Err(Failed { message, is_final: refusal.cause() == Some(Cause::Denied) })
            }
            Err(Unanswered::Lost(why)) => {
                let message = format!("the connection to {authority} is lost: {why}");
                Err(Failed { message, is_final: false })
            }
        }
    }

    /// Lets flows use a connection until it is lost. Returns whether there is to be another one.
    async fn hold(&self, link: Arc<Link>) -> bool {
        let connection = link.connection().clone();
        let mut over = false;
        self.0.state.send_modify(|state| match state {
            State::Over(_) => over = true,
            State::Up(_) | State::Down => *state = State::Up(link.clone()),
        });
        if over {
            link.close();
            return false;
        }
        let why = connection.closed().await;
        if self.is_over() || matches!(why, ConnectionError::LocallyClosed) {
            return false;
        }
        self.0.state.send_replace(State::Down);
        self.0.notices.complain(&format!("the connection is lost: {why}; connecting again"));
        true
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(&*self.0.state.borrow(), State::Over(_))
    }

    /// Waits until there is a connection for the first time.
    ///
    /// # Errors
    /// There will be none.
    pub async fn ready(&self) -> Result<(), String> {
        let mut state = self.0.state.subscribe();
        let state = state.wait_for(|state| !matches!(state, State::Down)).await;
        match state.as_deref() {
            Ok(State::Over(why)) => Err(why.clone()),
            _ => Ok(()),
        }
    }

    /// The present connection, or the next one if that comes in time. One that is known to be lost does not count.
    ///
    /// # Errors
    /// There is none.
    pub(super) async fn link(&self, until: Instant) -> Result<Arc<Link>, Refusal> {
        let mut state = self.0.state.subscribe();
        let usable = |state: &State| match state {
            State::Up(link) => link.connection().close_reason().is_none(),
            State::Down => false,
            State::Over(_) => true,
        };
        let none = || Refusal::new(Cause::Timeout, "there is no connection to the proxy");
        let state = timeout_at(until, state.wait_for(usable)).await.map_err(|_| none())?;
        match state.as_deref() {
            Ok(State::Up(link)) => Ok(link.clone()),
            Ok(State::Over(why)) => Err(Refusal::new(Cause::Denied, why.clone())),
            _ => Err(none()),
        }
    }

    /// Ends the tunnel and its flows, and tells the proxy.
    pub fn close(&self) {
        let state = self.0.state.send_replace(State::Over("the tunnel is closed".into()));
        if let State::Up(link) = state {
            link.close();
        }
    }
}
