//! A single page load.

use std::collections::BTreeMap;

use sutura_proto::{Connection, StreamId};
use sutura_sim::{App, Clock, Ends, Failure, Progress, Scenario};

use super::{Arrival, Client};
use crate::pages::Load;

/// The outcome of a page load.
#[derive(Clone, Debug, Default)]
pub struct PageLoad {
    /// When each resource was asked for and complete.
    pub load: Load,
    /// The bytes of responses in the order of their arrival.
    pub arrivals: Vec<Arrival>,
    /// The index of the request that each stream carried.
    pub streams: BTreeMap<StreamId, usize>,
    /// The statistics when the watched request was sent.
    pub before: Ends,
    /// The statistics at the end.
    pub after: Ends,
}

/// Loads the page of `client` once in a scenario, on a connection of its own, from the
/// [server](super::Server) that `server` makes. Notes the state when the `watched` request was sent, which is
/// given by its place in the page.
///
/// # Errors
/// The page is not complete in the time that the scenario has, or the connection fails.
pub fn load<S: App<Connection>>(
    scenario: &Scenario,
    client: Client,
    server: impl FnMut() -> S + 'static,
    watched: usize,
) -> Result<PageLoad, Failure> {
    let mut page = PageLoad::default();
    let mut before = None;
    let after = scenario.drive(Clock::default(), client.app(), server, |view| {
        let client = &view.client.end;
        if before.is_none() && client.has_asked_for(watched) {
            before = Some(view.ends());
        }
        let load = client.load();
        let progress = Progress { done: load.is_some(), busy: client.is_busy() };
        if let Some(load) = load {
            page.load = load;
            page.arrivals = client.arrivals().to_vec();
            page.streams = client.streams().clone();
        }
        progress
    })?;
    Ok(PageLoad { before: before.unwrap_or_default(), after, ..page })
}
