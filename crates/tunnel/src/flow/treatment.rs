//! How what flows carry is sent.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use sutura::http::{Error, Priority, SendHalf};
use sutura::{DatagramOptions, DatagramProtection, Protection, Urgency};

use super::class::Class;
use super::rule::Changes;

/// How many different protections datagrams of the classes have.
pub(super) const OWN_PROTECTIONS: usize = 2;

/// The delay of a path of which nothing is known: that of a satellite.
const LONG_WAY: Duration = Duration::from_millis(300);
/// The protection of datagrams of [`Class::RealTime`], and of streams that somebody waits for: what is lost is there
/// before the loss could be noticed.
const PROMPT: &str = "auto:beyond=35ms,budget=1,expect=0.02";
/// The protection of datagrams of [`Class::Interactive`] and [`Class::Bulk`]: who sends these does repair them, but takes
/// each loss for a sign to slow down, and videos that are taken for them do not repair.
const PATIENT: &str = "auto:beyond=125ms,expect=0.02";

static PROTECTIONS: LazyLock<[Option<Protection>; OWN_PROTECTIONS]> = LazyLock::new(|| {
    let find = |policy| sutura::registry::redundancy().find(policy).ok().map(Protection::new);
    [PROMPT, PATIENT].map(find)
});

/// How a stream of a flow is protected.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum StreamProtection {
    /// As all streams of the connection are that have no protection of their own.
    #[default]
    OfConnection,
    /// Not at all.
    Bare,
    /// By this.
    By(Protection),
}

/// How datagrams and streams of a flow are sent: what its class gets, changed by what a rule says.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Treatment {
    /// How much longer than the path's own delay a datagram may take; it is not sent if it would come later.
    pub deadline: Option<Duration>,
    /// The urgency of datagrams and streams, 0 to 7.
    pub urgency: u8,
    /// The protection of datagrams.
    pub protection: Option<Protection>,
    /// The protection of streams.
    pub stream_protection: StreamProtection,
}

impl Treatment {
    /// What flows of a class get where no rule says otherwise.
    #[must_use]
    pub fn of(class: Class) -> Self {
        let [prompt, patient] = PROTECTIONS.clone();
        let for_streams =
            prompt.clone().map_or_else(StreamProtection::default, StreamProtection::By);
        let (deadline, urgency, protection, stream_protection) = match class {
            Class::Interactive => (250, 0, patient, for_streams),
            Class::RealTime => (100, 1, prompt, for_streams),
            Class::Bulk => (500, 5, patient, StreamProtection::OfConnection),
        };
        let deadline = Some(Duration::from_millis(deadline));
        Self { deadline, urgency, protection, stream_protection }
    }

    /// The same, changed by what a rule says.
    #[must_use]
    pub fn with(self, changes: &Changes) -> Self {
        let Changes { class: _, deadline, urgency, protection } = changes;
        let of_rule = |protection: &Option<Protection>| match protection {
            Some(protection) => StreamProtection::By(protection.clone()),
            None => StreamProtection::Bare,
        };
        Self {
            deadline: deadline.unwrap_or(self.deadline),
            urgency: urgency.unwrap_or(self.urgency),
            protection: protection.clone().unwrap_or(self.protection),
            stream_protection: protection.as_ref().map_or(self.stream_protection, of_rule),
        }
    }

    /// How a datagram is sent that came at this time, over a path whose round-trip time is not at hand: the delay of
    /// the path counts as 300 ms, since a shorter one than it is would have nothing sent at all.
    #[must_use]
    pub fn datagram(&self, came: Instant) -> DatagramOptions {
        self.within(came, LONG_WAY)
    }

    /// How a datagram is sent that came at this time, over a path of this round-trip time.
    #[must_use]
    pub fn datagram_over(&self, came: Instant, round_trip: Duration) -> DatagramOptions {
        self.within(came, round_trip / 2)
    }

    fn within(&self, came: Instant, way: Duration) -> DatagramOptions {
        let protection = self.protection.clone();
        DatagramOptions::default()
            .with_deadline(self.deadline.map(|deadline| came + way + deadline))
            .with_urgency(Urgency::new(self.urgency).unwrap_or_default())
            .with_protection(protection.map_or(DatagramProtection::Bare, DatagramProtection::By))
    }

    /// The priority of a stream, as the other end is told: all of a tunnel's data is of use as it comes, so they are
    /// incremental.
    #[must_use]
    pub fn priority(&self) -> Priority {
        Priority::default().with_urgency(self.urgency).with_incremental(true)
    }

    /// Has this end send an exchange's data in this way from now on.
    ///
    /// # Errors
    /// The exchange is over, or the connection.
    pub(crate) fn apply(&self, send: &SendHalf) -> Result<(), Error> {
        let priority = sutura::Priority::new(self.urgency, true);
        send.set_stream_priority(priority.unwrap_or_default())?;
        match &self.stream_protection {
            StreamProtection::OfConnection => send.protect_by_default(),
            StreamProtection::Bare => send.protect(None),
            StreamProtection::By(protection) => send.protect(Some(protection.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_protections_are_known_and_no_more_than_said() {
        assert!(PROTECTIONS.iter().all(Option::is_some));
        let mut own: Vec<String> = Class::ALL
            .into_iter()
            .filter_map(|class| Treatment::of(class).protection)
            .map(|protection| protection.to_string())
            .collect();
        own.sort();
        own.dedup();
        assert_eq!(own.len(), OWN_PROTECTIONS);
    }

    #[test]
    fn a_rule_changes_what_it_says() {
        let now = Instant::now();
        let rule = |line: &str| line.parse::<super::super::Rule>().unwrap().changes().clone();
        let treatment = Treatment::of(Class::RealTime).with(&rule("udp u=4 deadline=none"));
        let options = treatment.datagram(now);
        assert_eq!(options.deadline, None);
        assert_eq!(options.urgency, Urgency::new(4).unwrap());
        assert!(matches!(options.protection, DatagramProtection::By(_)));
        let treatment = Treatment::of(Class::RealTime).with(&rule("udp protect none"));
        let options = treatment.datagram_over(now, Duration::from_millis(50));
        assert_eq!(options.deadline, Some(now + Duration::from_millis(125)));
        assert!(treatment.datagram(now).deadline > options.deadline);
        assert_eq!(options.protection, DatagramProtection::Bare);
        assert_eq!(treatment.stream_protection, StreamProtection::Bare);
    }

    #[test]
    fn what_somebody_waits_for_goes_first() {
        let [interactive, real_time, bulk] =
            Class::ALL.map(|class| Treatment::of(class).priority().urgency);
        assert!(interactive < real_time && real_time < bulk);
        assert_eq!(Treatment::of(Class::Bulk).stream_protection, StreamProtection::OfConnection);
        assert!(matches!(
            Treatment::of(Class::Interactive).stream_protection,
            StreamProtection::By(_)
        ));
    }
}
