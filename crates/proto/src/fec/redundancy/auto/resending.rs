//! What sending lost data again does for it, so that repair symbols need not.

use super::super::{PathView, Terms};
use super::aspect::Aspect;
use super::{Auto, DEFAULT_SHARE, is_lossy};
use crate::loss_floor::LossFloor;
use std::time::Duration;

/// A retransmission that takes no longer than this is soon enough for every application without a deadline or
/// target.
const UNNOTICED: Duration = Duration::from_millis(10);

/// Which packets of a piece of data would come too late if they were lost and sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Endangered {
    Nothing,
    /// The last ones: fewer packets follow them than show a loss.
    End,
    All,
}

impl Auto {
    /// What of a piece of data would come too late. The loss of its last packets is `noticed` so long after they were
    /// sent, at the latest by the probe timeout (RFC 9002, section 6.2).
    pub(super) fn endangered(
        &self,
        path: &PathView,
        terms: Terms,
        noticed: Duration,
    ) -> Endangered {
        let tolerance = self.tolerance(path, terms.tolerance);
        let floor = self.floor(path, tolerance);
        let often_enough = || floor.rate <= self.may_fail(path, &floor, terms);
        if !terms.resends || !self.is_soon_enough(path, terms.tolerance) || !often_enough() {
            return Endangered::All;
        }
        // A path that may lose nothing is not worth it.
        let counts = self.has(Aspect::Ends) && is_lossy(&floor, path);
        let late = noticed.saturating_add(path.one_way()) > tolerance.unwrap_or(UNNOTICED);
        if counts && late { Endangered::End } else { Endangered::Nothing }
    }

    /// Whether data that is sent after its loss is known arrives soon enough, whoever sends it.
    pub(super) fn is_soon_enough(&self, path: &PathView, of_data: Option<Duration>) -> bool {
        match self.tolerance(path, of_data) {
            Some(tolerance) => path.retransmission_is_in_time(tolerance),
            None => path.retransmission_is_enough(UNNOTICED),
        }
    }

    /// The share of lost packets that repair symbols need not mend in time: what the target leaves, or more if lost data
    /// is sent again in time and is hardly ever lost again.
    pub(super) fn may_fail(&self, path: &PathView, floor: &LossFloor, terms: Terms) -> f64 {
        let Some(tolerance) = self.tolerance(path, terms.tolerance) else { return 1.0 };
        let resent = if terms.resends { path.retransmissions_in_time(tolerance) } else { 0 };
        if resent > 0 && !self.has(Aspect::Again) {
            return 1.0;
        }
        let missed = 1.0 - self.target.map_or(DEFAULT_SHARE, |target| target.share);
        let again = floor.rate.max(f64::MIN_POSITIVE);
        (0..resent).fold(missed, |share, _| share / again).min(1.0)
    }
}
