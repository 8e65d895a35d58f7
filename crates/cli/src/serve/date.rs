//! The time of day as HTTP writes it.

use std::time::{Duration, SystemTime};

const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// An IMF-fixdate (RFC 9110 section 5.6.7).
pub fn http_date(time: SystemTime) -> String {
    let since_epoch = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let seconds = since_epoch.as_secs();
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    let name = |names: &[&'static str], at: u64| {
        usize::try_from(at).ok().and_then(|at| names.get(at)).copied().unwrap_or("")
    };
    format!(
        "{}, {day:02} {} {year:04} {:02}:{:02}:{:02} GMT",
        name(&DAYS, days % 7),
        name(&MONTHS, month - 1),
        of_day / 3600,
        of_day / 60 % 60,
        of_day % 60,
    )
}

/// Year, month and day, the latter two from 1, of the day that is `days` after 1 January 1970.
fn civil(days: u64) -> (u64, u64, u64) {
    // Years begin in March here, so that the leap day is the last one, and eras of 400 years all
    // have the same number of days.
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
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
