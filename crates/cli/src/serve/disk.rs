//! The files below a directory, as [`tower_http`] reads them: what is outside of the directory is not there,
//! and a request of a small file takes one change of threads.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, SeekFrom};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::SystemTime;

use bytes::{Buf, Bytes};
use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncSeek, ReadBuf};
use tokio::task::{JoinHandle, spawn_blocking};
use tower_http::services::fs::{Backend, File as FileOf, Metadata};

/// Bytes of a file held in memory at a time.
pub const CHUNK: usize = 64 * 1024;

/// How many bytes a client can be sent at present. Files are read no further, so that a client that does not
/// take them costs no memory.
#[derive(Debug, Clone)]
pub struct Room(Arc<AtomicUsize>);

impl Default for Room {
    fn default() -> Self {
        Self(Arc::new(CHUNK.into()))
    }
}

impl Room {
    pub fn set(&self, bytes: usize) {
        self.0.store(bytes, Relaxed);
    }

    fn get(&self) -> usize {
        self.0.load(Relaxed).clamp(1, CHUNK)
    }
}

/// The files below a directory, for one request: it remembers what it has looked at.
#[derive(Debug, Clone)]
pub struct Disk {
    /// Canonical.
    root: Arc<Path>,
    room: Room,
    /// Endings of names under which compressed copies of a file may be.
    endings: &'static [&'static str],
    looked: Arc<Mutex<HashMap<PathBuf, Found>>>,
}

/// What is at a path.
#[derive(Debug, Clone)]
pub enum Found {
    Directory,
    File(Arc<File>, Known),
    Nothing,
}

/// What is known of a file or directory.
#[derive(Debug, Clone, Copy)]
pub struct Known {
    is_directory: bool,
    length: u64,
    modified: Option<SystemTime>,
}

impl Disk {
    /// The files below `root`, which must be canonical. With `endings`, compressed copies of a file are
    /// looked for together with it.
    pub fn new(root: Arc<Path>, room: Room, endings: &'static [&'static str]) -> Self {
        Self { root, room, endings, looked: Arc::default() }
    }

    /// What is at a path: looks once, at the path and at those of its compressed copies.
    async fn find(&self, path: PathBuf) -> io::Result<Found> {
        if let Some(found) = self.looked().get(&path) {
            return Ok(found.clone());
        }
        let (root, endings, asked) = (self.root.clone(), self.endings, path.clone());
        // One task for all calls of the file system: each task costs a change of threads.
        let seen = spawn_blocking(move || {
            let copies = endings.iter().map(|ending| with_ending(&asked, ending));
            let copies: Vec<_> = copies.map(|copy| (look(&root, &copy), copy)).collect();
            let own = look(&root, &asked);
            copies.into_iter().map(|(found, copy)| (copy, found)).chain([(asked, own)]).collect()
        });
        let seen: Vec<(PathBuf, io::Result<Found>)> = seen.await.map_err(io::Error::other)?;
        let mut looked = self.looked();
        for (path, found) in seen {
            looked.insert(path, found.unwrap_or(Found::Nothing));
        }
        Ok(looked.get(&path).cloned().unwrap_or(Found::Nothing))
    }

    fn looked(&self) -> std::sync::MutexGuard<'_, HashMap<PathBuf, Found>> {
        self.looked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// What is at a path. Nothing is if symbolic links lead outside of the root, nor if it is a pipe or a device,
/// the opening of which could block forever.
fn look(root: &Path, path: &Path) -> io::Result<Found> {
    let path = fs::canonicalize(path)?;
    if !path.starts_with(root) {
        return Ok(Found::Nothing);
    }
    let metadata = fs::metadata(&path)?;
    if metadata.is_dir() {
        return Ok(Found::Directory);
    }
    if !metadata.is_file() {
        return Ok(Found::Nothing);
    }
    let file = File::open(&path)?;
    let metadata = file.metadata()?;
    let known =
        Known { is_directory: false, length: metadata.len(), modified: metadata.modified().ok() };
    Ok(Found::File(file.into(), known))
}

impl Metadata for Known {
    fn is_dir(&self) -> bool {
        self.is_directory
    }

    fn modified(&self) -> io::Result<SystemTime> {
        self.modified.ok_or_else(|| io::ErrorKind::Unsupported.into())
    }

    fn len(&self) -> u64 {
        self.length
    }
}

impl Backend for Disk {
    type File = Opened;
    type Metadata = Known;
    type OpenFuture = BoxFuture<'static, io::Result<Opened>>;
    type MetadataFuture = BoxFuture<'static, io::Result<Known>>;

    fn open(&self, path: PathBuf) -> Self::OpenFuture {
        let disk = self.clone();
        Box::pin(async move {
            match disk.find(path).await? {
                Found::File(file, known) => Ok(Opened::new(file, known, disk.room)),
                Found::Directory | Found::Nothing => Err(io::ErrorKind::NotFound.into()),
            }
        })
    }

    fn metadata(&self, path: PathBuf) -> Self::MetadataFuture {
        let disk = self.clone();
        Box::pin(async move {
            match disk.find(path).await? {
                Found::File(_, known) => Ok(known),
                Found::Directory => Ok(Known { is_directory: true, length: 0, modified: None }),
                Found::Nothing => Err(io::ErrorKind::NotFound.into()),
            }
        })
    }
}

/// A file that is being read. It ends where it ended when it was opened: what is appended since does not
/// belong to the response.
#[derive(Debug)]
pub struct Opened {
    file: Arc<File>,
    known: Known,
    room: Room,
    position: u64,
    /// Bytes from `position` on.
    ahead: Bytes,
    reading: Option<JoinHandle<io::Result<Bytes>>>,
}

impl Opened {
    fn new(file: Arc<File>, known: Known, room: Room) -> Self {
        Self { file, known, room, position: 0, ahead: Bytes::new(), reading: None }
    }
}

impl AsyncRead for Opened {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            if !this.ahead.is_empty() {
                let bytes = this.ahead.len().min(buffer.remaining());
                buffer.put_slice(&this.ahead[..bytes]);
                this.ahead.advance(bytes);
                this.position += bytes as u64;
                return Poll::Ready(Ok(()));
            }
            let left = this.known.length.saturating_sub(this.position);
            if left == 0 || buffer.remaining() == 0 {
                return Poll::Ready(Ok(()));
            }
            let reading = this.reading.get_or_insert_with(|| {
                let most = usize::try_from(left).unwrap_or(CHUNK).min(buffer.remaining());
                let (file, offset, want) =
                    (this.file.clone(), this.position, most.min(this.room.get()));
                spawn_blocking(move || read_at(&file, offset, want))
            });
            let read = ready!(Pin::new(reading).poll(cx));
            this.reading = None;
            this.ahead = read.map_err(io::Error::other)??;
        }
    }
}

impl AsyncSeek for Opened {
    fn start_seek(self: Pin<&mut Self>, to: SeekFrom) -> io::Result<()> {
        let this = self.get_mut();
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => this.known.length.checked_add_signed(by),
            SeekFrom::Current(by) => this.position.checked_add_signed(by),
        };
        this.position = at.ok_or(io::ErrorKind::InvalidInput)?;
        this.ahead = Bytes::new();
        this.reading = None;
        Ok(())
    }

    fn poll_complete(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<u64>> {
        Poll::Ready(Ok(self.position))
    }
}

impl FileOf for Opened {
    type Metadata = Known;
    type MetadataFuture<'a> = std::future::Ready<io::Result<Known>>;

    fn metadata(&self) -> Self::MetadataFuture<'_> {
        std::future::ready(Ok(self.known))
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
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file became shorter"));
    }
    buffer.truncate(got);
    Ok(buffer.into())
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncSeekExt};

    use super::*;

    fn disk(root: &Path) -> Disk {
        Disk::new(fs::canonicalize(root).unwrap().into(), Room::default(), &[".gz"])
    }

    #[tokio::test]
    async fn a_file_is_read_no_further_than_there_is_room_and_ends_where_it_did() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("a");
        let content: Vec<u8> = (0..3 * CHUNK + 17).map(|n| (n % 251) as u8).collect();
        fs::write(&path, &content).unwrap();
        let disk = disk(scratch.path());
        let mut file = disk.open(disk.root.join("a")).await.unwrap();
        let mut appended = fs::OpenOptions::new().append(true).open(&path).unwrap();
        io::Write::write_all(&mut appended, b"more").unwrap();
        let (mut all, mut buffer) = (Vec::new(), vec![0; 2 * CHUNK]);
        for room in [0, 700, CHUNK, 4 * CHUNK].into_iter().cycle() {
            disk.room.set(room);
            let got = file.read(&mut buffer).await.unwrap();
            assert!(got <= room.clamp(1, CHUNK), "{got} bytes with room for {room}");
            all.extend_from_slice(&buffer[..got]);
            if got == 0 {
                break;
            }
        }
        assert!(all == content);
        file.seek(SeekFrom::Start(CHUNK as u64)).await.unwrap();
        assert_eq!(file.read_u8().await.unwrap(), content[CHUNK]);
        assert_eq!(file.seek(SeekFrom::End(-1)).await.unwrap(), content.len() as u64 - 1);
        assert_eq!(file.read(&mut buffer).await.unwrap(), 1);
        assert!(file.seek(SeekFrom::Current(i64::MIN)).await.is_err());
    }

    #[tokio::test]
    async fn a_file_that_became_shorter_is_an_error() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("a");
        fs::write(&path, vec![7; 2 * CHUNK]).unwrap();
        let disk = disk(scratch.path());
        let mut file = disk.open(disk.root.join("a")).await.unwrap();
        file.read_u8().await.unwrap();
        File::create(&path).unwrap();
        let mut rest = Vec::new();
        let error = file.read_to_end(&mut rest).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn what_is_outside_or_no_file_is_not_there() {
        use std::os::unix::fs::symlink;
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().join("root");
        fs::create_dir_all(root.join("sub")).unwrap();
        fs::write(scratch.path().join("secret"), "x").unwrap();
        fs::write(root.join("sub/a"), "x").unwrap();
        symlink("../secret", root.join("out")).unwrap();
        symlink("sub/a", root.join("in")).unwrap();
        symlink("/dev/zero", root.join("zero")).unwrap();
        let disk = disk(&root);
        for (name, there) in [("in", true), ("sub/a", true), ("out", false), ("zero", false)] {
            assert_eq!(disk.open(disk.root.join(name)).await.is_ok(), there, "{name}");
            assert_eq!(disk.metadata(disk.root.join(name)).await.is_ok(), there, "{name}");
        }
        assert!(disk.metadata(disk.root.join("sub")).await.unwrap().is_dir());
        assert!(disk.open(disk.root.join("sub")).await.is_err());
        assert!(disk.metadata(disk.root.join("../secret")).await.is_err());
    }
}
