//! Random paths.

use std::time::Duration;

use sutura_link::LinkConfig;
use sutura_random::Rng;

use crate::Error;

/// A link, and the properties of it that settings depend on.
pub struct RandomLink {
    pub link: LinkConfig,
    /// The lowest rate of the link in Mbit/s.
    pub slowest: u64,
    /// The longest UDP payload that it always carries.
    pub mtu: u16,
}

/// All impairments, within limits that a transport must cope with. No outage begins before `calm`.
///
/// # Errors
/// The text of the link is wrong, which is a bug.
pub fn random(rng: &mut Rng, calm: Duration) -> Result<RandomLink, Error> {
    let rate = 2 + rng.below(99);
    let mut text = format!(
        "rate={rate}mbit queue={}p delay={}ms jitter={}us{}",
        20 + rng.below(200),
        rng.below(150),
        rng.below(3000),
        if rng.below(2) == 0 { "" } else { ",reorder" },
    );
    let loss = match rng.below(4) {
        0 => 0.0,
        1 => rng.below(21) as f64 / 1000.0,
        _ => rng.below(201) as f64 / 1000.0,
    };
    text += &losses(rng, loss);
    let share = |rng: &mut Rng, most| rng.below(most) as f64 / 1000.0;
    if rng.below(2) == 0 {
        text += &format!(" reorder={},{}ms", share(rng, 100), rng.below(50));
    }
    if rng.below(3) == 0 {
        text += &format!(" duplicate={} corrupt={}", share(rng, 50), share(rng, 30));
    }
    if rng.below(4) == 0 {
        text += &format!(" mark={}b", 15_000 + rng.below(100_000));
    }
    let (slowest, mtu) = changes(rng, rate, &mut text);
    outages(rng, calm, &mut text);
    Ok(RandomLink { link: text.parse()?, slowest, mtu })
}

fn losses(rng: &mut Rng, loss: f64) -> String {
    if loss == 0.0 {
        return String::new();
    }
    if rng.below(2) == 0 {
        return format!(" loss=bern:{loss}");
    }
    // Bursts of four packets on average that lose nearly all of them, at a frequency that gives the
    // same mean loss rate. Background traffic makes a burst pass; without it, a silent host would stay
    // in the burst.
    let p = 0.25 * loss / (0.95 - loss);
    format!(" loss=ge:{p},0.25,0.95,0 background=5mbit")
}

/// Changes of the rate and of the longest packet. Returns the lowest rate, and the longest UDP payload
/// that the link always carries.
fn changes(rng: &mut Rng, rate: u64, text: &mut String) -> (u64, u16) {
    /// IP and UDP headers in the simulator, which counts IPv4 headers.
    const HEADERS: u64 = 28;
    let mut slowest = rate;
    if rng.below(4) == 0 {
        let other = 1 + rng.below(50);
        *text += &format!(" step={}ms,rate={other}mbit", 200 + rng.below(4000));
        slowest = slowest.min(other);
    }
    let mut mtu = 1472;
    if rng.below(3) == 0 {
        let payload = 1200 + rng.below(273);
        *text += &format!(" mtu={}b", payload + HEADERS);
        mtu = payload;
        if rng.below(2) == 0 {
            let (at, later) = (200 + rng.below(4000), 1200 + rng.below(273));
            *text += &format!(" step={at}ms,mtu={}b", later + HEADERS);
            mtu = mtu.min(later);
        }
    }
    (slowest, mtu as u16)
}

/// Outages. An early outage is shorter than the time for which a server waits for a client whose address it
/// has not validated.
fn outages(rng: &mut Rng, calm: Duration, text: &mut String) {
    let calm = calm.as_millis() as u64;
    let mut outage = |from: u64, length: u64| {
        *text += &format!(" outage={from}ms..{}ms", from + length);
    };
    if rng.below(4) == 0 {
        outage(calm + rng.below(3000), 1 + rng.below(4000));
    }
    if rng.below(8) == 0 {
        outage(8000 + rng.below(2000), 1 + rng.below(20_000));
    }
}
