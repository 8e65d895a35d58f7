//! Paths of requests, and the files that they name.

use std::path::PathBuf;

use percent_encoding::percent_decode_str;

/// The only name beginning with a dot that is served, directly below the root (RFC 8615 section 3).
const WELL_KNOWN: &str = ".well-known";
/// Longest path of a request, in bytes.
const MAX_PATH: usize = 4096;

/// The path below the root for a request's path; `None` if no file can have it, or if a name in it marks it
/// as hidden. Only the names of the request count, not the names behind a symbolic link: a link is made so
/// that its target is found there.
pub fn relative_path(path: &str) -> Option<PathBuf> {
    if path.len() > MAX_PATH || !path.starts_with('/') {
        return None;
    }
    let mut relative = PathBuf::new();
    for segment in path.split('/').filter(|segment| !segment.is_empty()) {
        let name = percent_decode(segment)?;
        let is_well_known = name == WELL_KNOWN && relative.file_name().is_none();
        let odd = |c: char| c == '\0' || std::path::is_separator(c) || c == '\\';
        let drive = cfg!(windows) && name.contains(':');
        if (is_hidden(&name) && !is_well_known) || name.contains(odd) || drive {
            return None;
        }
        relative.push(name);
    }
    Some(relative)
}

/// Whether a name is of a file that is not meant to be seen, such as .git or .env.
pub fn is_hidden(name: &str) -> bool {
    name.starts_with('.')
}

/// Decodes a path or a part of it. `None` if the result is not UTF-8, or if a percent sign is not
/// followed by two hexadecimal digits.
pub fn percent_decode(text: &str) -> Option<String> {
    let is_encoded = |rest: &str| {
        rest.as_bytes().get(..2).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    if !text.split('%').skip(1).all(is_encoded) {
        return None;
    }
    Some(percent_decode_str(text).decode_utf8().ok()?.into_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn paths_stay_below_the_root() {
        let relative = |path| relative_path(path).map(|p| p.to_string_lossy().into_owned());
        assert_eq!(relative("/"), Some(String::new()));
        assert_eq!(relative("/a//b%20c.html"), Some("a/b c.html".into()));
        assert_eq!(relative("/%C3%A4"), Some("ä".into()));
        let refused = "a /.. /a/../b /%2e%2e/x /.%2E /a%2fb /a%5cb /a\\b /%00 /% /%4 /%zz /%ff /.";
        for path in refused.split(' ').chain([""]) {
            assert_eq!(relative(path), None, "{path}");
        }
        assert_eq!(relative(&"/a".repeat(MAX_PATH)), None);
    }

    #[test]
    fn hidden_files_have_no_path_except_those_that_are_well_known() {
        let relative = |path| relative_path(path).map(|p| p.to_string_lossy().into_owned());
        let acme = Some(".well-known/acme-challenge/x".to_owned());
        for path in [
            "/.well-known/acme-challenge/x",
            "//%2ewell-known/acme-challenge/x",
            "/.well%2Dknown//acme-challenge/x",
        ] {
            assert_eq!(relative(path), acme, "{path}");
        }
        let refused = "/.git/config /.env /%2egit/config /%2Eenv //.env /a/.env /a/%2eb/c /.a/ /... \
                       /.well-known/.env /a/.well-known/x /.Well-Known/x /.well-knownx/y";
        for path in refused.split(' ').filter(|path| !path.is_empty()) {
            assert_eq!(relative(path), None, "{path}");
        }
        for path in ["/a.b", "/a./b", "/a..b/c"] {
            assert!(relative(path).is_some(), "{path}");
        }
    }

    proptest! {
        #[test]
        fn no_path_leaves_the_root(path in "/(\\.|%2e|%2F|/|%5c|a|%|%00|\\\\){0,12}") {
            if let Some(relative) = relative_path(&path) {
                let normal = |c| matches!(c, std::path::Component::Normal(_));
                prop_assert!(relative.components().all(normal), "{}", relative.display());
            }
        }
    }
}
