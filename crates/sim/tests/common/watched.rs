//! An application whose connection tells recovery's figures.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use sutura_proto::{Connection, Event, Metrics, Observation, Observer};
use sutura_sim::{App, AppError};

/// Recovery's figures over time.
#[derive(Clone, Debug, Default)]
pub struct Figures(Arc<Mutex<Vec<(Instant, Metrics)>>>);

impl Figures {
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

/// An application on a connection that is observed.
pub struct Watched<A> {
    pub app: A,
    figures: Option<Figures>,
}

impl<A> Watched<A> {
    pub fn new(app: A, figures: Figures) -> Self {
        Self { app, figures: Some(figures) }
    }
}

impl<A: App<Connection>> App<Connection> for Watched<A> {
    fn on_event(
        &mut self,
        now: Instant,
        quic: &mut Connection,
        event: Event,
    ) -> Result<(), AppError> {
        self.app.on_event(now, quic, event)
    }

    fn poll(&mut self, now: Instant, quic: &mut Connection) -> Result<Option<Instant>, AppError> {
        if let Some(figures) = self.figures.take() {
            quic.set_observer(now, Box::new(figures));
        }
        self.app.poll(now, quic)
    }
}
