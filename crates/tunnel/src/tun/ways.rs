//! The ways to proxies, which stay outside of the tunnel: otherwise it would lead into itself.

use std::io;
use std::net::IpAddr;

use ipnet::IpNet;

use super::command::ip;

/// What the kernel notes as the origin of these routes, in which those of an end that was killed are found.
const ORIGIN: &str = "83";

/// Routes to proxies beside those into a device. They are removed when this is dropped.
#[derive(Debug, Default)]
pub(super) struct Ways {
    proxies: Vec<IpAddr>,
    kept: Vec<IpAddr>,
}

impl Ways {
    /// The ways to these proxies, none of which is kept yet.
    pub(super) fn to(proxies: &[IpAddr]) -> Self {
        let proxies = proxies.iter().map(IpAddr::to_canonical).collect();
        Self { proxies, kept: Vec::new() }
    }

    /// Keeps the ways to all proxies that are in `networks`, which are or will be routed into `device`. Called again, it
    /// finds ways anew that are gone because the machine has moved to another network.
    ///
    /// # Errors
    /// The system refuses.
    pub(super) fn keep(&mut self, networks: &[IpNet], device: &str) -> io::Result<()> {
        let inside = |proxy: &&IpAddr| {
            !proxy.is_loopback() && networks.iter().any(|net| net.contains(*proxy))
        };
        for proxy in self.proxies.iter().filter(inside) {
            let Some(way) = way_to(*proxy, device) else { continue };
            if self.kept.contains(proxy) && !way.is_anew {
                continue;
            }
            if keep(*proxy, &way.words)? && !self.kept.contains(proxy) {
                self.kept.push(*proxy);
            }
        }
        Ok(())
    }
}

impl Drop for Ways {
    fn drop(&mut self) {
        for proxy in &self.kept {
            // It may be gone with its network.
            let _ = ip(["route", "del", &proxy.to_string(), "proto", ORIGIN]);
        }
    }
}

/// How the kernel reaches a host without the device, in the words of `ip route`: `via 192.0.2.1 dev eth0`.
struct Detour {
    words: Vec<String>,
    /// Whether the host is reached through the device now.
    is_anew: bool,
}

/// The way to a host; `None` if there is none, or the host is this machine.
fn way_to(host: IpAddr, device: &str) -> Option<Detour> {
    let told = ip(["route", "get", &host.to_string()]).ok()?;
    if told.starts_with("local") {
        return None;
    }
    let words = way_in(&told);
    if !words.iter().any(|word| word == device) {
        return Some(Detour { words, is_anew: false });
    }
    let version = if host.is_ipv4() { "-4" } else { "-6" };
    let told = ip([version, "route", "show", "default"]).ok()?;
    // The first one has the lowest metric.
    let words = way_in(told.lines().next()?);
    (!words.is_empty()).then_some(Detour { words, is_anew: true })
}

/// The gateway and the device of a route as `ip` tells it.
fn way_in(told: &str) -> Vec<String> {
    let words: Vec<&str> = told.split_whitespace().collect();
    let named = words.windows(2).filter(|pair| matches!(pair[0], "via" | "dev"));
    named.flatten().map(|word| (*word).to_owned()).collect()
}

/// Sets a route to a host. Returns whether it is ours: one that somebody else has set stays as it is.
fn keep(host: IpAddr, way: &[String]) -> io::Result<bool> {
    let host = host.to_string();
    let set = |verb| {
        let way = way.iter().map(String::as_str);
        ip(["route", verb, &host].into_iter().chain(way).chain(["proto", ORIGIN]))
    };
    match set("add") {
        Ok(_) => Ok(true),
        Err(_) if !ip(["route", "show", &host, "proto", ORIGIN])?.is_empty() => {
            set("replace").map(|_| true)
        }
        Err(_) if !ip(["route", "show", &host])?.is_empty() => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_are_read_as_ip_tells_them() {
        for (told, way) in [
            (
                "192.0.2.1 via 10.0.0.1 dev eth0 src 10.0.0.2 uid 0 \n    cache ",
                "via 10.0.0.1 dev eth0",
            ),
            ("10.0.0.9 dev eth0 src 10.0.0.2 uid 0", "dev eth0"),
            (
                "default via fe80::1 dev wlan0 proto ra metric 600 pref medium",
                "via fe80::1 dev wlan0",
            ),
            ("", ""),
        ] {
            assert_eq!(way_in(told).join(" "), way);
        }
    }
}
