//! Tells the supervisor how the server is, if it wants to know (systemd's `Type=notify` and
//! `Type=notify-reload`).

use sd_notify::{NotifyState, notify};

/// Clients are served, with what was read last.
pub fn tell_ready() {
    tell(&[NotifyState::Ready]);
}

/// Files are being read again.
pub fn tell_reloading() {
    let now = NotifyState::monotonic_usec_now().ok();
    tell(&[Some(NotifyState::Reloading), now].into_iter().flatten().collect::<Vec<_>>());
}

/// No more clients are accepted.
pub fn tell_stopping() {
    tell(&[NotifyState::Stopping]);
}

/// A supervisor that cannot be told finds out in time.
fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = notify(states) {
        tracing::debug!(%error, "the supervisor is not told");
    }
}
