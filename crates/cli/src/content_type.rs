//! Media types of files, derived from their names.

use std::path::Path;

/// The media type of unknown files.
pub const UNKNOWN: &str = "application/octet-stream";

/// The media type of a file with this name, without parameters.
pub fn of(path: &Path) -> &'static str {
    match path.extension().and_then(|extension| extension.to_str()) {
        // JSON formats that mime_guess does not know.
        Some("map" | "qlog") => "application/json",
        // Unlike text/xml, it leaves the encoding to the document (RFC 7303 section 3).
        Some("xml") => "application/xml",
        _ => mime_guess::from_path(path).first_raw().unwrap_or(UNKNOWN),
    }
}

/// The likely media type of the resource with this path and query, before it was looked for.
pub fn guess(target: &str) -> &'static str {
    let path = target.split('?').next().unwrap_or_default();
    if path.ends_with('/') { "text/html" } else { of(Path::new(path)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extension_decides_whatever_its_case() {
        for (path, expected) in [
            ("a/b.HTML", "text/html"),
            ("x.tar.gz", "application/gzip"),
            ("app.js.map", "application/json"),
            ("feed.xml", "application/xml"),
            ("html", UNKNOWN),
            (".css", UNKNOWN),
        ] {
            assert_eq!(of(Path::new(path)), expected, "{path}");
            assert_eq!(guess(&format!("/{path}?a.png")), expected, "{path}");
        }
        assert_eq!(guess("/?x"), "text/html");
    }
}
