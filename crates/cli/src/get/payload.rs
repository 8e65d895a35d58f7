//! What is sent with a request: data of the command line, a file, or standard input.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::failure::Failure;

/// Most bytes of `--data`, which is held in memory.
const MAX_DATA: u64 = 64 << 20;
/// Bytes that are read from a file at a time.
const CHUNK: usize = 64 << 10;

/// The body of requests.
#[derive(Debug, Clone)]
pub enum Payload {
    Nothing,
    Data(Bytes),
    File(PathBuf),
    /// Standard input, a pipe or the like, and whether it has been opened: it cannot be read a second time.
    Once(Option<PathBuf>, Arc<AtomicBool>),
}

impl Payload {
    /// The data of `--data` or `--data-binary`: texts, `@FILE` or `@-`, joined by `&`. From files, line breaks are
    /// left out unless they are `binary`.
    ///
    /// # Errors
    /// A file cannot be read, or it is more than fits into memory.
    pub fn of_data(texts: &[String], binary: bool) -> Result<Self, Failure> {
        if texts.is_empty() {
            return Ok(Self::Nothing);
        }
        let mut data = Vec::new();
        for (n, text) in texts.iter().enumerate() {
            if n > 0 {
                data.push(b'&');
            }
            match text.strip_prefix('@') {
                None => data.extend_from_slice(text.as_bytes()),
                Some(name) => {
                    let read = read_all(name)?;
                    let keep = |byte: &u8| binary || !matches!(byte, b'\r' | b'\n' | 0);
                    data.extend(read.into_iter().filter(keep));
                }
            }
        }
        Ok(Self::Data(data.into()))
    }

    /// The file of `--upload-file`; `-` is standard input.
    ///
    /// # Errors
    /// It does not exist, or is a directory.
    pub fn of_upload(path: &Path) -> Result<Self, Failure> {
        if path == Path::new("-") {
            return Ok(Self::Once(None, Arc::default()));
        }
        let metadata = fs::metadata(path).map_err(|e| cannot_read(path, &e))?;
        if metadata.is_dir() {
            return Err(cannot_read(path, &io::ErrorKind::IsADirectory.into()));
        }
        if metadata.is_file() {
            return Ok(Self::File(path.to_owned()));
        }
        Ok(Self::Once(Some(path.to_owned()), Arc::default()))
    }

    /// Whether requests have a body.
    pub fn exists(&self) -> bool {
        !matches!(self, Self::Nothing)
    }

    /// Whether it can be sent now: standard input cannot be sent a second time.
    pub fn is_there(&self) -> bool {
        match self {
            Self::Nothing | Self::Data(_) | Self::File(_) => true,
            Self::Once(_, used) => !used.load(Ordering::Relaxed),
        }
    }

    /// Opens it for a request.
    ///
    /// # Errors
    /// It cannot be read, or not a second time.
    pub async fn open(&self) -> Result<Option<Upload>, Failure> {
        match self {
            Self::Nothing => Ok(None),
            Self::Data(data) => Ok(Some(Upload::of(data.clone()))),
            Self::File(path) => Upload::file(path).await.map(Some),
            Self::Once(path, used) => {
                if used.swap(true, Ordering::Relaxed) {
                    return Err(sent_once(path.as_deref()));
                }
                let Some(path) = path else {
                    return Ok(Some(Upload::unbounded("standard input", tokio::io::stdin())));
                };
                let file = tokio::fs::File::open(path).await.map_err(|e| cannot_read(path, &e))?;
                Ok(Some(Upload::unbounded(&path.display().to_string(), file)))
            }
        }
    }
}

/// The failure for a body that would have to be sent a second time.
fn sent_once(path: Option<&Path>) -> Failure {
    let what = path.map_or("standard input".into(), |path| path.display().to_string());
    Failure::local(format!(
        "the request must be sent again, and {what} cannot be read a second time: give -T a regular file"
    ))
}

fn cannot_read(path: &Path, error: &io::Error) -> Failure {
    let why = match error.kind() {
        io::ErrorKind::NotFound => "it does not exist".into(),
        io::ErrorKind::IsADirectory => "it is a directory".into(),
        io::ErrorKind::PermissionDenied => "no permission to read it".into(),
        _ => error.to_string(),
    };
    Failure::local(format!("cannot read {}: {why}", path.display()))
}

/// All of a file, or of standard input if its name is `-`.
fn read_all(name: &str) -> Result<Vec<u8>, Failure> {
    let path = Path::new(name);
    let mut data = Vec::new();
    let read = if name == "-" {
        io::stdin().take(MAX_DATA + 1).read_to_end(&mut data)
    } else {
        fs::File::open(path).and_then(|file| file.take(MAX_DATA + 1).read_to_end(&mut data))
    };
    read.map_err(|e| cannot_read(path, &e))?;
    if data.len() as u64 > MAX_DATA {
        return Err(Failure::local(format!(
            "{name} has more than {} MiB: send it by -T, which does not hold it in memory",
            MAX_DATA >> 20
        )));
    }
    Ok(data)
}

/// A body that is being sent.
pub struct Upload {
    name: String,
    reader: Box<dyn AsyncRead + Send + Unpin>,
    /// Bytes in all, if that is known.
    pub length: Option<u64>,
    read: u64,
}

impl std::fmt::Debug for Upload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Upload").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Upload {
    fn of(data: Bytes) -> Self {
        let length = Some(data.len() as u64);
        Self { name: "the data".into(), reader: Box::new(io::Cursor::new(data)), length, read: 0 }
    }

    async fn file(path: &Path) -> Result<Self, Failure> {
        let failed = |e: io::Error| cannot_read(path, &e);
        let file = tokio::fs::File::open(path).await.map_err(failed)?;
        let length = file.metadata().await.map_err(failed)?.len();
        // What is appended meanwhile is not part of it.
        let reader = Box::new(file.take(length));
        Ok(Self { name: path.display().to_string(), reader, length: Some(length), read: 0 })
    }

    fn unbounded(name: &str, reader: impl AsyncRead + Send + Unpin + 'static) -> Self {
        Self { name: name.to_owned(), reader: Box::new(reader), length: None, read: 0 }
    }

    /// The next part; `None` at the end.
    ///
    /// # Errors
    /// It cannot be read, or a file has become shorter.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        let mut chunk = BytesMut::with_capacity(CHUNK);
        let failed = |why: &dyn std::fmt::Display| {
            Failure::local(format!("cannot read {}: {why}", self.name))
        };
        let count = self.reader.read_buf(&mut chunk).await.map_err(|e| failed(&e))?;
        self.read += count as u64;
        match self.length {
            Some(length) if count == 0 && self.read < length => {
                Err(failed(&format!("it ended after {} of {length} bytes", self.read)))
            }
            _ => Ok((count > 0).then(|| chunk.freeze())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn content(payload: &Payload) -> Result<Vec<u8>, Failure> {
        let mut source = payload.open().await?.unwrap();
        let mut all = Vec::new();
        while let Some(data) = source.next().await? {
            all.extend_from_slice(&data);
        }
        Ok(all)
    }

    #[tokio::test]
    async fn data_is_joined_and_files_lose_their_line_breaks() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("form");
        fs::write(&path, b"b=2\r\n\0").unwrap();
        let texts = ["a=1\n".to_owned(), format!("@{}", path.display())];
        for (binary, expected) in [(false, &b"a=1\n&b=2"[..]), (true, b"a=1\n&b=2\r\n\0")] {
            let payload = Payload::of_data(&texts, binary).unwrap();
            assert_eq!(content(&payload).await.unwrap(), expected);
            // Again.
            assert_eq!(content(&payload).await.unwrap(), expected);
            assert_eq!(payload.open().await.unwrap().unwrap().length, Some(expected.len() as u64));
        }
        assert!(Payload::of_data(&["@".to_owned()], false).is_err());
        assert!(!Payload::of_data(&[], false).unwrap().exists());
    }

    #[test]
    fn data_is_bounded() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("big");
        fs::File::create(&path).unwrap().set_len(MAX_DATA + 1).unwrap();
        let failure = Payload::of_data(&[format!("@{}", path.display())], true).unwrap_err();
        assert!(failure.message.contains("send it by -T"), "{failure:?}");
    }

    #[tokio::test]
    async fn a_file_is_sent_as_long_as_it_was_when_it_was_opened() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("file");
        fs::write(&path, vec![7; 3 * CHUNK]).unwrap();
        let payload = Payload::of_upload(&path).unwrap();
        assert!(payload.is_there() && payload.exists());
        assert_eq!(content(&payload).await.unwrap(), vec![7; 3 * CHUNK]);
        assert!(payload.is_there());
        let mut source = payload.open().await.unwrap().unwrap();
        source.next().await.unwrap();
        fs::File::options().write(true).open(&path).unwrap().set_len(10).unwrap();
        let mut last = source.next().await;
        while let Ok(Some(_)) = last {
            last = source.next().await;
        }
        assert!(last.unwrap_err().message.contains("it ended after"));
        assert!(Payload::of_upload(scratch.path()).unwrap_err().message.contains("a directory"));
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_device_is_read_once() {
        let payload = Payload::of_upload(Path::new("/dev/null")).unwrap();
        assert!(payload.is_there());
        assert_eq!(content(&payload).await.unwrap(), b"");
        assert!(!payload.is_there());
        let failure = content(&payload).await.unwrap_err();
        assert!(failure.message.contains("/dev/null cannot be read a second time"), "{failure:?}");
    }
}
