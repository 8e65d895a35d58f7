//! Destinations of responses.

use std::io;
use std::io::Seek as _;
use std::path::{Path, PathBuf};

use tokio::io::{AsyncSeekExt, AsyncWriteExt};
use tokio::task::spawn_blocking;

use crate::failure::Failure;
use crate::file::{self, Place, Readers, cannot_write};
use crate::output;

/// Names of standard output in the file system.
const STDOUT: [&str; 3] = ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];

/// The destination of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    Stdout,
    File(PathBuf),
}

impl Target {
    /// The target of this name; `-` stands for standard output.
    pub fn named(name: &Path) -> Self {
        let is_stdout = name == Path::new("-") || STDOUT.iter().any(|path| name == Path::new(path));
        if is_stdout { Self::Stdout } else { Self::File(name.to_owned()) }
    }
}

/// Receives a response. A file has a temporary name until it is complete, and is removed if the response
/// stays incomplete; a target that cannot be replaced, such as a pipe, is written as the response arrives
/// (see [`file`]). A file that is continued is written in place, so that it can be continued again.
#[derive(Debug)]
pub enum Sink {
    Stdout(tokio::io::Stdout),
    File { file: tokio::fs::File, place: Place, target: PathBuf },
    Continued { file: tokio::fs::File, target: PathBuf },
}

impl Sink {
    /// Opens the target. Waits until somebody reads it, if it is a pipe.
    ///
    /// # Errors
    /// The file cannot be created or written.
    pub async fn open(target: &Target) -> Result<Self, Failure> {
        let Target::File(path) = target else { return Ok(Self::Stdout(tokio::io::stdout())) };
        let (file, place) = blocking(path, |path| file::open(path, Readers::Usual)).await?;
        Ok(Self::File { file: tokio::fs::File::from_std(file), place, target: path.clone() })
    }

    /// Opens the target to write it from byte `from` on; what was there behind it is cut off.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub async fn open_at(target: &Target, from: u64) -> Result<Self, Failure> {
        let Target::File(path) = target else { return Ok(Self::Stdout(tokio::io::stdout())) };
        let file = blocking(path, move |path| {
            let mut file =
                std::fs::OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
            file.set_len(from)?;
            file.seek(io::SeekFrom::Start(from))?;
            Ok(file)
        });
        let file = tokio::fs::File::from_std(file.await?);
        Ok(Self::Continued { file, target: path.clone() })
    }

    /// Whether what was written can be taken back.
    pub const fn can_restart(&self) -> bool {
        match self {
            Self::Stdout(_) => false,
            Self::File { place, .. } => place.is_temporary(),
            Self::Continued { .. } => true,
        }
    }

    /// Takes back everything that was written.
    ///
    /// # Errors
    /// It cannot be taken back: somebody may have read it.
    pub async fn restart(&mut self) -> Result<(), Failure> {
        match self {
            Self::File { file, place, target } if place.is_temporary() => empty(file, target).await,
            Self::Continued { file, target } => empty(file, target).await,
            Self::File { target, .. } => Err(already_written(&target.display().to_string())),
            Self::Stdout(_) => Err(already_written("standard output")),
        }
    }

    /// Writes the next part of the response.
    ///
    /// # Errors
    /// Writing failed, for instance because the disk is full.
    pub async fn write(&mut self, data: &[u8]) -> Result<(), Failure> {
        match self {
            Self::Stdout(out) => out.write_all(data).await.map_err(|e| output::stdout_failure(&e)),
            Self::File { file, target, .. } | Self::Continued { file, target } => {
                file.write_all(data).await.map_err(|e| cannot_write(target, &e))
            }
        }
    }

    /// Ends a complete response.
    ///
    /// # Errors
    /// It could not be written, or the file could not be renamed.
    pub async fn finish(self) -> Result<(), Failure> {
        match self {
            Self::Stdout(mut out) => out.flush().await.map_err(|e| output::stdout_failure(&e)),
            Self::File { mut file, place, target } => {
                let result = file.flush().await;
                drop(file.into_std().await);
                let result = result.and_then(|()| place.commit());
                result.map_err(|e| cannot_write(&target, &e))
            }
            Self::Continued { mut file, target } => {
                file.flush().await.map_err(|e| cannot_write(&target, &e))
            }
        }
    }

    /// Hands over what was written so far, though it is not complete. Files that are not continued are given up
    /// when the sink is dropped.
    pub async fn leave(&mut self) {
        match self {
            Self::Stdout(out) => drop(out.flush().await),
            Self::File { file, .. } | Self::Continued { file, .. } => drop(file.flush().await),
        }
    }
}

/// Does something with a path that may block.
async fn blocking<T: Send + 'static>(
    path: &Path,
    act: impl FnOnce(&Path) -> io::Result<T> + Send + 'static,
) -> Result<T, Failure> {
    let owned = path.to_owned();
    let done = spawn_blocking(move || act(&owned)).await;
    done.unwrap_or_else(|e| Err(io::Error::other(e))).map_err(|e| cannot_write(path, &e))
}

async fn empty(file: &mut tokio::fs::File, target: &Path) -> Result<(), Failure> {
    let emptied = async {
        file.flush().await?;
        file.set_len(0).await?;
        file.rewind().await
    };
    emptied.await.map(drop).map_err(|e| cannot_write(target, &e))
}

fn already_written(what: &str) -> Failure {
    Failure::local(format!(
        "the response begins anew, and what {what} has got of it cannot be taken back"
    ))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[tokio::test]
    async fn a_file_appears_when_it_is_whole_and_leaves_no_litter_when_not() {
        let scratch = tempfile::tempdir().unwrap();
        let directory = scratch.path();
        let names = || -> Vec<String> {
            let entries = fs::read_dir(directory).unwrap();
            entries.map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect()
        };
        let path = directory.join("page.html");
        let target = Target::File(path.clone());

        let mut sink = Sink::open(&target).await.unwrap();
        sink.write(b"half").await.unwrap();
        assert_eq!(names().len(), 1);
        assert_ne!(names(), ["page.html"]);
        drop(sink);
        assert!(names().is_empty());

        let mut sink = Sink::open(&target).await.unwrap();
        sink.write(b"whole").await.unwrap();
        sink.finish().await.unwrap();
        assert_eq!(names(), ["page.html"]);
        assert_eq!(fs::read(&path).unwrap(), b"whole");

        // The existing file stays until the new one is complete.
        let mut sink = Sink::open(&target).await.unwrap();
        sink.write(b"new").await.unwrap();
        drop(sink);
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        assert!(Sink::open(&Target::File(directory.to_owned())).await.is_err());
        assert!(Sink::open(&Target::File(directory.join("none/x"))).await.is_err());
    }

    #[tokio::test]
    async fn a_file_begins_anew_or_goes_on_where_it_should() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("page.html");
        let target = Target::File(path.clone());
        let mut sink = Sink::open(&target).await.unwrap();
        sink.write(b"a long beginning").await.unwrap();
        sink.restart().await.unwrap();
        sink.write(b"0123456789").await.unwrap();
        sink.finish().await.unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"0123456789");
        let mut sink = Sink::open_at(&target, 4).await.unwrap();
        sink.write(b"xy").await.unwrap();
        sink.leave().await;
        drop(sink);
        // What has come stays.
        assert_eq!(fs::read(&path).unwrap(), b"0123xy");
        let mut sink = Sink::open_at(&target, 6).await.unwrap();
        sink.restart().await.unwrap();
        sink.write(b"new").await.unwrap();
        sink.finish().await.unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }

    #[tokio::test]
    async fn what_somebody_may_have_read_does_not_begin_anew() {
        for target in [Target::Stdout, Target::File("/dev/null".into())] {
            let mut sink = Sink::open(&target).await.unwrap();
            let failure = sink.restart().await.unwrap_err();
            assert!(failure.message.contains("cannot be taken back"), "{failure:?}");
        }
    }

    #[test]
    fn standard_output_has_several_names() {
        for name in ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
            assert_eq!(Target::named(Path::new(name)), Target::Stdout, "{name}");
        }
        for name in ["./-", "/dev/null", "stdout"] {
            assert_eq!(Target::named(Path::new(name)), Target::File(name.into()));
        }
    }
}
