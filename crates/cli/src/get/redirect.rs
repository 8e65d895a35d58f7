//! Where a redirection leads, and what is asked there (RFC 9110 section 15.4), by the rules of curl.

use crate::url::{Authority, Url};

/// One request on the way to a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hop {
    pub url: Url,
    pub method: String,
    /// Whether it has the body that the user gave.
    pub sends: bool,
    /// Whether it goes to the server that the user named, which alone may have the user's secrets.
    pub is_home: bool,
    /// Whether a redirection has taken the body away.
    pub is_stripped: bool,
}

/// Whether a status redirects.
pub fn is_redirection(status: u16) -> bool {
    matches!(status, 301 | 302 | 303 | 307 | 308)
}

impl Hop {
    /// The request to which a response with this `status` and `location` leads. `home` is the server that the user
    /// named; a method of the user's own is kept (`keeps_method`).
    ///
    /// # Errors
    /// The location cannot be fetched; the error says why.
    pub fn follow(
        &self,
        status: u16,
        location: &[u8],
        home: &Authority,
        keeps_method: bool,
    ) -> Result<Self, String> {
        let shown = String::from_utf8_lossy(location);
        let url = std::str::from_utf8(location)
            .map_err(|e| e.to_string())
            .and_then(|reference| self.url.join(reference))
            .map_err(|why| {
                format!("status {status}, moved to {shown}, which cannot be fetched: {why}")
            })?;
        let becomes_get = match status {
            301 | 302 => self.method == "POST" || (keeps_method && self.sends),
            303 => self.method != "GET" && self.method != "HEAD",
            _ => false,
        };
        let method = if becomes_get && !keeps_method { "GET".into() } else { self.method.clone() };
        Ok(Self {
            is_home: url.authority == *home,
            url,
            method,
            sends: self.sends && !becomes_get,
            is_stripped: self.is_stripped || (self.sends && becomes_get),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop(method: &str, sends: bool) -> Hop {
        let url = "https://example.org/a/b".parse().unwrap();
        Hop { url, method: method.into(), sends, is_home: true, is_stripped: false }
    }

    fn follow(hop: &Hop, status: u16, location: &str) -> Hop {
        hop.follow(status, location.as_bytes(), &hop.url.authority, false).unwrap()
    }

    #[test]
    fn the_method_changes_as_the_status_says() {
        for (method, sends, status, then, still) in [
            ("GET", false, 301, "GET", false),
            ("HEAD", false, 303, "HEAD", false),
            ("POST", true, 301, "GET", false),
            ("POST", true, 302, "GET", false),
            ("POST", true, 303, "GET", false),
            ("POST", true, 307, "POST", true),
            ("POST", true, 308, "POST", true),
            ("PUT", true, 302, "PUT", true),
            ("PUT", true, 303, "GET", false),
            ("PUT", true, 308, "PUT", true),
        ] {
            let next = follow(&hop(method, sends), status, "/c");
            assert_eq!((next.method.as_str(), next.sends), (then, still), "{method} {status}");
            assert_eq!(next.is_stripped, sends && !still);
            assert!(next.is_home);
        }
    }

    #[test]
    fn a_method_of_the_users_own_stays_without_its_body() {
        let posted = hop("PATCH", true);
        let next = posted.follow(302, b"/c", &posted.url.authority, true).unwrap();
        assert_eq!((next.method.as_str(), next.sends, next.is_stripped), ("PATCH", false, true));
        let next = posted.follow(307, b"/c", &posted.url.authority, true).unwrap();
        assert_eq!((next.method.as_str(), next.sends), ("PATCH", true));
        // What a redirection took away does not come back.
        let next = follow(&follow(&hop("POST", true), 302, "/c"), 307, "/d");
        assert_eq!((next.method.as_str(), next.sends, next.is_stripped), ("GET", false, true));
    }

    #[test]
    fn another_port_is_another_server() {
        let home = hop("GET", false);
        assert!(follow(&home, 302, "https://EXAMPLE.org:443/x").is_home);
        for location in ["https://example.org:444/", "//example.com/", "https://sub.example.org/"] {
            let away = follow(&home, 302, location);
            assert!(!away.is_home, "{location}");
            let back = away.follow(302, b"https://example.org/", &home.url.authority, false);
            assert!(back.unwrap().is_home);
        }
    }

    #[test]
    fn what_cannot_be_fetched_is_told() {
        let home = hop("GET", false);
        for (location, why) in [
            (&b"http://a/"[..], "moved to http://a/, which cannot be fetched: only https"),
            (b"mailto:a@b", "moved to mailto:a@b, which cannot be fetched: only https"),
            (b"/\xff", "cannot be fetched: invalid utf-8"),
        ] {
            let error = home.follow(302, location, &home.url.authority, false).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn only_some_statuses_redirect() {
        let all: Vec<u16> = (300..400).filter(|&status| is_redirection(status)).collect();
        assert_eq!(all, [301, 302, 303, 307, 308]);
    }
}
