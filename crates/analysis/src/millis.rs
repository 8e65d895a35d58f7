//! Durations as they are shown: in milliseconds, with microseconds behind the point.

use std::time::Duration;

/// Milliseconds.
pub(crate) fn of(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

pub(crate) fn serialize<S: serde::Serializer>(
    duration: &Duration,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(of(*duration))
}

/// For what may not be known.
pub(crate) mod option {
    use std::time::Duration;

    pub(crate) fn serialize<S: serde::Serializer>(
        duration: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match duration {
            Some(duration) => super::serialize(duration, serializer),
            None => serializer.serialize_none(),
        }
    }
}
