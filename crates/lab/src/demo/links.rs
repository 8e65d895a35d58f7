//! The links of the demo, and where their figures come from.

use std::time::Duration;

use serde::Serialize;
use sutura_link::{LinkConfig, ParseError};

/// A link that people know, with the same properties in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Link {
    /// Its name.
    pub name: &'static str,
    /// Rate, delay and loss in words.
    pub about: &'static str,
    /// The source of the figures, and the assumptions.
    pub source: &'static str,
    /// As `sutura link --profile` takes it.
    pub profile: &'static str,
    /// How long a message of the feed may take, in milliseconds. The network's share of the 150 ms that
    /// ITU-T G.114 recommends for conversations is about 100 ms. Via a geostationary satellite this
    /// cannot be; there it is the deadline of FlEC (Michel 2022, section VIII-B).
    pub deadline_ms: u64,
}

/// A phone in a car or train, a geostationary satellite, and a crowded Wi-Fi network. Queues take one
/// and a half bandwidth-delay products.
///
/// Mobile: a handover interrupts LTE for 40 ms at the median (Lauridsen et al., "From LTE to 5G for
/// Connected Mobility", 2017); 70 % of the losses on trains come with such changes (Baltrunas et al.,
/// "Investigating Packet Loss in Mobile Broadband Networks under Mobility", 2016). That a handover comes
/// every ten seconds, and that packets sent meanwhile are lost, is our assumption; the other 30 % are spread
/// evenly.
///
/// Satellite: Michel et al., "FlEC", 2022, sections VII-B1 and VIII-B.
///
/// Wi-Fi: the bursts of Holzinger et al. 2025, section V-B; that losses of Wi-Fi in homes come in such
/// (Gilbert-Elliott) bursts is measured in "802.11g packet-loss behavior at high sustained bit rates in
/// the home". Delay and rate are our assumption: half of it is the Wi-Fi hop of Pei et al., "WiFi can be
/// the weakest link of round trip network latency in the wild", 2016.
pub const LINKS: [Link; 3] = [
    Link {
        name: "mobile",
        about: "20 Mbit/s, 40 ms one way, handovers of 40 ms, 0.17 % loss between them",
        source: "Lauridsen 2017 (handovers), Baltrunas 2016 (other loss); rate and delay assumed",
        profile: "rate=20mbit delay=40ms queue=300000b loss=gt:10000,40,1,0.0017",
        deadline_ms: 100,
    },
    Link {
        name: "satellite",
        about: "8 Mbit/s, 200 ms one way, 1 % loss",
        source: "geostationary: Michel 2022 (FlEC), VII-B1 and VIII-B",
        profile: "rate=8mbit delay=200ms queue=600000b loss=bern:0.01",
        deadline_ms: 250,
    },
    Link {
        name: "Wi-Fi",
        about: "20 Mbit/s, 15 ms one way, 2.4 % loss, most of it in bursts of 5 ms",
        source: "Holzinger 2025, V-B (bursts), Pei 2016 (delay of crowded Wi-Fi); rate assumed",
        profile: "rate=20mbit delay=15ms queue=112500b loss=gt:240,4.8,0.95,0.005",
        deadline_ms: 100,
    },
];

/// The link of the game: the link of a player on a bad day. The figures are assumed. Its loss applies to each
/// direction.
pub const GAME_LINKS: [Link; 1] = [Link {
    name: "lossy",
    about: "10 Mbit/s, 25 ms one way, 5 % loss each way",
    source: "assumed",
    profile: "rate=10mbit delay=25ms queue=93750b loss=bern:0.05",
    deadline_ms: 100,
}];

impl Link {
    /// The link's configuration.
    ///
    /// # Errors
    /// None, as long as [`profile`](Self::profile) is one.
    pub fn config(&self) -> Result<LinkConfig, ParseError> {
        self.profile.parse()
    }

    /// How long a message of the feed may take.
    #[must_use]
    pub const fn deadline(&self) -> Duration {
        Duration::from_millis(self.deadline_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_are_what_the_words_say() {
        for (link, mbit, ms, loss) in [
            (LINKS[0], 20, 40, 0.0057),
            (LINKS[1], 8, 200, 0.01),
            (LINKS[2], 20, 15, 0.0235),
            (GAME_LINKS[0], 10, 25, 0.05),
        ] {
            let config = link.config().unwrap();
            let rate = config.rate.unwrap().bits_per_second();
            assert_eq!((rate, config.delay), (mbit * 1_000_000, Duration::from_millis(ms)));
            assert!(link.about.starts_with(&format!("{mbit} Mbit/s, {ms} ms one way")));
            assert!((config.loss.mean() - loss).abs() < 1e-4, "{}", config.loss.mean());
            let product = rate as f64 / 8.0 * 2.0 * config.delay.as_secs_f64();
            assert_eq!(config.queue, sutura_link::Queue::Bytes((1.5 * product) as u64));
            // Some time is left for the network when the link's delay is taken off.
            assert!(config.delay + Duration::from_millis(20) < link.deadline());
        }
    }
}
