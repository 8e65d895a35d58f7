//! An application whose connection has an observer.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use sutura_proto::{Connection, Event, Metrics, Observation, Observer};

use crate::{App, AppError};

/// Sets an observer on the connection before the application is first polled.
pub struct Observed<A> {
    /// The application.
    pub app: A,
    /// Until there is a connection to observe.
    observer: Option<Box<dyn Observer>>,
}

impl<A> Observed<A> {
    /// Runs `app` and reports the events of its connection to `observer`.
    pub fn new(app: A, observer: impl Observer + 'static) -> Self {
        Self { app, observer: Some(Box::new(observer)) }
    }
}

impl<A: App<Connection>> App<Connection> for Observed<A> {
    fn on_event(
        &mut self,
        now: Instant,
        quic: &mut Connection,
        event: Event,
    ) -> Result<(), AppError> {
        self.app.on_event(now, quic, event)
    }

    fn poll(&mut self, now: Instant, quic: &mut Connection) -> Result<Option<Instant>, AppError> {
        if let Some(observer) = self.observer.take() {
            quic.set_observer(now, observer);
        }
        self.app.poll(now, quic)
    }
}

/// The metrics of loss recovery over time. Clones share the same record.
#[derive(Clone, Debug, Default)]
pub struct Figures(Arc<Mutex<Vec<(Instant, Metrics)>>>);

impl Figures {
    /// Takes everything recorded so far.
    #[must_use]
    pub fn take(&self) -> Vec<(Instant, Metrics)> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Observer for Figures {
    fn observe(&mut self, now: Instant, observation: &Observation<'_>) {
        if let Observation::Metrics(metrics) = observation {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push((now, *metrics));
        }
    }
}
