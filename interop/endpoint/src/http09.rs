//! HTTP/0.9 over QUIC, as in the interop runner.

use std::path::{Component, Path, PathBuf};

/// The name of the protocol in the handshake.
pub const ALPN: &[u8] = b"hq-interop";

/// More bytes than the longest request has.
pub const MAX_REQUEST: usize = 4096;

/// A request for this path.
#[must_use]
pub fn request(path: &str) -> Vec<u8> {
    format!("GET {path}\r\n").into_bytes()
}

/// The file in `directory` for which a request asks.
#[must_use]
pub fn file(directory: &Path, request: &[u8]) -> Option<PathBuf> {
    let request = std::str::from_utf8(request).ok()?;
    let path = request.trim_end().strip_prefix("GET /")?;
    locate(directory, path)
}

/// The file in `directory` under a path without its first `/`, if the file is inside.
#[must_use]
pub fn locate(directory: &Path, path: &str) -> Option<PathBuf> {
    let path = Path::new(path);
    let inside = path.components().all(|part| matches!(part, Component::Normal(_)));
    inside.then(|| directory.join(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_names_a_file_inside() {
        let directory = Path::new("/www");
        assert_eq!(file(directory, &request("/a")), Some("/www/a".into()));
        for bad in [&b"GET /../a\r\n"[..], b"GET //a\r\n", b"POST /a\r\n", b"GET /\xff"] {
            assert_eq!(file(directory, bad), None);
        }
    }
}
