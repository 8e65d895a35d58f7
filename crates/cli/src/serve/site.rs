//! The resources of a site: the files below a directory.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use percent_encoding::percent_decode_str;
use tokio::task::spawn_blocking;

use crate::content_type;
use crate::failure::Failure;

/// Bytes of a resource held in memory at a time.
pub const CHUNK: usize = 64 * 1024;

/// The only name beginning with a dot that is served, directly below the root (RFC 8615 section 3).
const WELL_KNOWN: &str = ".well-known";

/// Longest path of a request, in bytes.
const MAX_PATH: usize = 4096;

/// A site that resolves paths to the files below a directory, given by its canonical path.
#[derive(Debug)]
pub struct Site(Arc<Path>);

/// The result of looking up a path.
#[derive(Debug)]
pub enum Found {
    Resource(Resource),
    /// A directory was requested without its trailing slash; this is its path with the slash.
    Moved(String),
    Nothing,
}

/// A resource to send.
#[derive(Debug)]
pub struct Resource {
    pub content_type: &'static str,
    pub length: u64,
    left: u64,
    source: Source,
}

/// The source of a resource's bytes.
#[derive(Debug)]
enum Source {
    File(Arc<File>),
    Memory(Bytes),
}

impl Site {
    /// A site of the files below `path`.
    ///
    /// # Errors
    /// It is not a readable directory.
    pub fn directory(path: &Path) -> Result<Self, Failure> {
        let canonical = fs::canonicalize(path)
            .and_then(|canonical| fs::read_dir(&canonical).map(|_| canonical));
        let canonical = canonical
            .map_err(|e| Failure::local(format!("cannot serve {}: {e}", path.display())))?;
        Ok(Self(canonical.into()))
    }

    /// Looks up the path of a request. Never finds anything outside the site, not even through a
    /// symbolic link.
    pub async fn find(&self, target: &str) -> Found {
        let path = target.split('?').next().unwrap_or("").to_owned();
        let root = self.0.clone();
        // One task for all calls of the file system: each task costs a change of threads.
        let found = spawn_blocking(move || find_file(&root, &path)).await;
        found.map_err(io::Error::other).flatten().unwrap_or(Found::Nothing)
    }
}

impl Resource {
    fn new(content_type: &'static str, length: u64, source: Source) -> Self {
        Self { content_type, length, left: length, source }
    }

    /// A plain text that the server itself generates.
    pub fn text(text: String) -> Self {
        Self::new("text/plain", text.len() as u64, Source::Memory(text.into()))
    }

    /// Takes back the last `bytes` of the newest part; the next part begins with them again.
    pub fn give_back(&mut self, bytes: usize) {
        self.left += bytes as u64;
    }

    /// Whether there are no more parts.
    pub fn is_at_end(&self) -> bool {
        self.left == 0
    }

    /// The next part, in order, of at most `room` bytes; `None` at the end.
    ///
    /// # Errors
    /// The file cannot be read, or has become shorter.
    pub async fn next_chunk(&mut self, room: usize) -> io::Result<Option<Bytes>> {
        if self.is_at_end() {
            return Ok(None);
        }
        let want = usize::try_from(self.left).unwrap_or(CHUNK).min(CHUNK).min(room.max(1));
        let offset = self.length - self.left;
        let chunk = match &self.source {
            Source::Memory(bytes) => bytes.slice(offset as usize..offset as usize + want),
            Source::File(file) => {
                let file = file.clone();
                let read = move || read_at(&file, offset, want);
                spawn_blocking(read).await.map_err(io::Error::other)??
            }
        };
        self.left -= chunk.len() as u64;
        Ok(Some(chunk))
    }
}

/// Reads up to `want` bytes of a file from `offset` on.
fn read_at(file: &File, offset: u64, want: usize) -> io::Result<Bytes> {
    let mut buffer = vec![0; want];
    #[cfg(unix)]
    let got = std::os::unix::fs::FileExt::read_at(file, &mut buffer, offset)?;
    #[cfg(windows)]
    let got = std::os::windows::fs::FileExt::seek_read(file, &mut buffer, offset)?;
    if got == 0 {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "file became shorter"));
    }
    buffer.truncate(got);
    Ok(buffer.into())
}

fn find_file(root: &Path, path: &str) -> io::Result<Found> {
    let Some(relative) = relative_path(path) else { return Ok(Found::Nothing) };
    let mut found = fs::canonicalize(root.join(relative))?;
    if !found.starts_with(root) {
        return Ok(Found::Nothing);
    }
    let mut metadata = fs::metadata(&found)?;
    if metadata.is_dir() {
        found = fs::canonicalize(found.join("index.html"))?;
        if !found.starts_with(root) {
            return Ok(Found::Nothing);
        }
        if !path.ends_with('/') {
            return Ok(Found::Moved(moved(path)));
        }
        metadata = fs::metadata(&found)?;
    } else if path.ends_with('/') {
        return Ok(Found::Nothing);
    }
    // Opening a pipe or a device could block forever.
    if !metadata.is_file() {
        return Ok(Found::Nothing);
    }
    let file = File::open(&found)?;
    let length = file.metadata()?.len();
    Ok(Found::Resource(Resource::new(content_type::of(&found), length, Source::File(file.into()))))
}

/// A `location` on this server: two slashes at the beginning would name another server.
fn moved(path: &str) -> String {
    format!("/{}/", path.trim_start_matches('/'))
}

/// The path below the root for a request's path; `None` if no file can have it, or if a name in it marks it
/// as hidden. Only the names of the request count, not the names behind a symbolic link: a link is made so
/// that its target is found there.
fn relative_path(path: &str) -> Option<PathBuf> {
    if path.len() > MAX_PATH || !path.starts_with('/') {
        return None;
    }
    let mut relative = PathBuf::new();
    for segment in path.split('/').filter(|segment| !segment.is_empty()) {
        let name = percent_decode(segment)?;
        // Such as .git or .env: files that are not meant to be seen (RFC 8615 has the exception).
        let hidden =
            name.starts_with('.') && (name != WELL_KNOWN || relative.file_name().is_some());
        let odd = |c: char| c == '\0' || std::path::is_separator(c) || c == '\\';
        let drive = cfg!(windows) && name.contains(':');
        if hidden || name.contains(odd) || drive {
            return None;
        }
        relative.push(name);
    }
    Some(relative)
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

    #[test]
    fn a_redirection_stays_on_the_server() {
        assert_eq!(moved("/a"), "/a/");
        assert_eq!(moved("//evil.example/a"), "/evil.example/a/");
    }

    #[tokio::test]
    async fn files_come_in_chunks() {
        let scratch = tempfile::tempdir().unwrap();
        let content: Vec<u8> = (0..3 * CHUNK + 17).map(|n| (n % 251) as u8).collect();
        fs::write(scratch.path().join("a.png"), &content).unwrap();
        let site = Site::directory(scratch.path()).unwrap();
        let Found::Resource(mut found) = site.find("/a.png?x").await else { panic!() };
        let mut all = Vec::new();
        while let Some(chunk) = found.next_chunk(usize::MAX).await.unwrap() {
            assert!(chunk.len() <= CHUNK);
            all.extend_from_slice(&chunk);
        }
        assert_eq!((found.length, found.content_type), (content.len() as u64, "image/png"));
        assert!(all == content);
        assert!(matches!(site.find("/b.png").await, Found::Nothing));
    }

    #[tokio::test]
    async fn what_is_given_back_comes_again() {
        let scratch = tempfile::tempdir().unwrap();
        let content: Vec<u8> = (0..3000).map(|n| (n % 251) as u8).collect();
        fs::write(scratch.path().join("a"), &content).unwrap();
        let site = Site::directory(scratch.path()).unwrap();
        let Found::Resource(file) = site.find("/a").await else { panic!() };
        let text = content.iter().map(|byte| char::from(byte % 128)).collect::<String>();
        for (mut resource, content) in
            [(file, content), (Resource::text(text.clone()), text.into_bytes())]
        {
            let mut all = Vec::new();
            for give_back in [0, 1, 700, 1000].into_iter().cycle() {
                let Some(chunk) = resource.next_chunk(1000).await.unwrap() else { break };
                let kept = chunk.len().saturating_sub(give_back).max(1);
                all.extend_from_slice(&chunk[..kept]);
                resource.give_back(chunk.len() - kept);
            }
            assert!(all == content);
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
