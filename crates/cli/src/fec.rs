//! The erasure coding option of the commands.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use sutura::http::DefaultProtection;

/// The protection of a response: `BLT[,RDT]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fec {
    /// Burst loss tolerance: repair symbols on each occasion.
    pub burst: u32,
    /// Repair delay tolerance, in whole milliseconds.
    pub delay: Duration,
}

impl Fec {
    /// The largest burst loss tolerance that the priority parameters can express.
    const MAX_BURST: u32 = 255;
    const MAX_DELAY_MS: u64 = 60_000;
    const SYNTAX: &str = "expected BLT[,RDT]: 0 to 255 repair symbols and, if they may be delayed, \
                          0 to 60000 milliseconds, such as 3 or 3,25";

    /// The server's protection of responses for which neither the request nor a rule sets a protection.
    pub fn default_protection(&self) -> DefaultProtection {
        DefaultProtection::Parameters { burst: self.burst, delay: self.delay }
    }
}

impl FromStr for Fec {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (burst, delay) = text.split_once(',').unwrap_or((text, "0"));
        let burst = burst.trim().parse().ok().filter(|&burst| burst <= Self::MAX_BURST);
        let delay = delay.trim();
        let delay = delay.strip_suffix("ms").unwrap_or(delay).trim_end();
        let delay = delay.parse().ok().filter(|&delay| delay <= Self::MAX_DELAY_MS);
        let (Some(burst), Some(delay)) = (burst, delay) else { return Err(Self::SYNTAX) };
        Ok(Self { burst, delay: Duration::from_millis(delay) })
    }
}

impl fmt::Display for Fec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}ms", self.burst, self.delay.as_millis())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn burst_and_delay_are_read() {
        let fec = |burst, delay| Ok(Fec { burst, delay: Duration::from_millis(delay) });
        assert_eq!("3".parse(), fec(3, 0));
        assert_eq!("3,25".parse(), fec(3, 25));
        assert_eq!("255, 60000 ms".parse(), fec(255, 60_000));
        assert_eq!("0".parse(), fec(0, 0));
        for text in ["", "x", "-1", "256", "3,", "3,60001", "3,1,2", "3,5s", "3,-5"] {
            assert_eq!(text.parse::<Fec>(), Err(Fec::SYNTAX), "{text}");
        }
    }

    #[test]
    fn it_is_said_in_priority_parameters() {
        let said = |text: &str| text.parse::<Fec>().unwrap().default_protection().to_string();
        assert_eq!(said("3"), "exp_b=3");
        assert_eq!(said("2,25ms"), "exp_b=2, exp_d=25");
        assert_eq!("2,25".parse::<Fec>().unwrap().to_string(), "2,25ms");
    }
}
