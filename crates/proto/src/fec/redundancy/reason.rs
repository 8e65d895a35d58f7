//! Why a policy sends redundancy, or sends none.

use std::fmt;
use std::time::Duration;

/// Why a policy sends redundancy at present, or why it sends none. The reason is meant for people: no
/// decision depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The path's losses are not known well enough to tell whether redundancy is worth its bytes.
    Unknown,
    /// The path loses no packets, or too few to matter.
    Lossless,
    /// A retransmission arrives early enough.
    RetransmissionIsEnough,
    /// The losses come with delay or congestion marks, so more packets would only be lost as well.
    Congestion,
    /// The congestion window has no room for redundancy beside the data.
    Window,
    /// Other data would wait for redundancy longer than it would save.
    Waiting,
    /// Acknowledgements are overdue: the path may carry nothing at present.
    Silent,
    /// Left out for some round trips, to find out whether it does harm.
    Experiment,
    /// The data is past its deadline whatever protects it.
    Expired,
    /// Recent redundancy mended too few losses.
    NoUse,
    /// The budget of extra bytes is used up.
    Budget,
    /// The stream belongs to the protocol itself, such as HTTP/3's control stream.
    Control,
    /// Redundancy is sent.
    Protects {
        /// How many repair symbols on each occasion.
        repairs: u32,
        /// How long each occasion waits after the data that it protects.
        wait: Duration,
    },
    /// The reason of a policy from outside: a short phrase in lower case.
    Other(&'static str),
}

impl Reason {
    /// A short identifier for logs, such as `retransmission_is_enough`; the phrase itself for
    /// [`Reason::Other`].
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Lossless => "lossless",
            Self::RetransmissionIsEnough => "retransmission_is_enough",
            Self::Congestion => "congestion",
            Self::Window => "window",
            Self::Waiting => "waiting",
            Self::Silent => "silent",
            Self::Experiment => "experiment",
            Self::Expired => "expired",
            Self::NoUse => "no_use",
            Self::Budget => "budget",
            Self::Control => "control",
            Self::Protects { .. } => "protects",
            Self::Other(phrase) => phrase,
        }
    }
}

impl fmt::Display for Reason {
    /// Writes a phrase for the user, such as `2 repair symbols after 5 ms`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let phrase = match *self {
            Self::Unknown => "losses not known yet",
            Self::Lossless => "nothing is lost",
            Self::RetransmissionIsEnough => "retransmission is fast enough",
            Self::Congestion => "losses come from congestion",
            Self::Window => "no room in the congestion window",
            Self::Waiting => "other data would wait for it",
            Self::Silent => "acknowledgements are overdue",
            Self::Experiment => "left out to see whether it does harm",
            Self::Expired => "too late to be of use",
            Self::NoUse => "did not help lately",
            Self::Budget => "budget used up",
            Self::Control => "a control stream",
            Self::Other(phrase) => phrase,
            Self::Protects { repairs, wait } => {
                let plural = if repairs == 1 { "" } else { "s" };
                let text = format!("{repairs} repair symbol{plural}");
                if wait.is_zero() {
                    return f.pad(&text);
                }
                // Fractions of a microsecond interest no reader.
                let millis = wait.as_micros() as f64 / 1e3;
                return f.pad(&format!("{text} after {millis} ms"));
            }
        };
        f.pad(phrase)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_understands_it() {
        let protects =
            |repairs, micros| Reason::Protects { repairs, wait: Duration::from_micros(micros) };
        for (reason, text) in [
            (Reason::Unknown, "losses not known yet"),
            (Reason::RetransmissionIsEnough, "retransmission is fast enough"),
            (Reason::Other("it rains"), "it rains"),
            (protects(1, 0), "1 repair symbol"),
            (protects(2, 5_000), "2 repair symbols after 5 ms"),
            (protects(3, 4_250), "3 repair symbols after 4.25 ms"),
        ] {
            assert_eq!(reason.to_string(), text);
        }
        assert_eq!(format!("{:>17}|", protects(1, 0)), "  1 repair symbol|");
    }
}
