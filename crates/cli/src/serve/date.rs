//! The time of day as HTTP writes it.

use std::time::SystemTime;

use time::OffsetDateTime;
use time::format_description::StaticFormatDescription;
use time::macros::format_description;

const IMF_FIXDATE: StaticFormatDescription = format_description!(
    "[weekday repr:short], [day] [month repr:short] [year] [hour]:[minute]:[second] GMT"
);

/// An IMF-fixdate (RFC 9110 section 5.6.7).
pub fn http_date(time: SystemTime) -> String {
    // Only years of more than four digits cannot be said.
    OffsetDateTime::from(time).format(IMF_FIXDATE).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, text) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (1_709_251_199, "Thu, 29 Feb 2024 23:59:59 GMT"),
            (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
        ] {
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            assert_eq!(http_date(time), text);
        }
    }
}
