//! Serialises durations as milliseconds.

use std::time::Duration;

use crate::statistics::millis;

pub(crate) fn serialize<S: serde::Serializer>(
    duration: &Duration,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(millis(*duration))
}

/// The same for optional durations.
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
