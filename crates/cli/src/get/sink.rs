//! Destinations of responses.

use std::io;
use std::path::{Path, PathBuf};

use tokio::io::AsyncWriteExt;
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
/// (see [`file`]).
#[derive(Debug)]
pub enum Sink {
    Stdout(tokio::io::Stdout),
    File { file: tokio::fs::File, place: Place, target: PathBuf },
}

impl Sink {
    /// Opens the target. Waits until somebody reads it, if it is a pipe.
    ///
    /// # Errors
    /// The file cannot be created or written.
    pub async fn open(target: &Target) -> Result<Self, Failure> {
        match target {
            Target::Stdout => Ok(Self::Stdout(tokio::io::stdout())),
            Target::File(path) => {
                let target = path.clone();
                let opened = spawn_blocking(move || file::open(&target, Readers::Usual)).await;
                let (file, place) = opened
                    .unwrap_or_else(|e| Err(io::Error::other(e)))
                    .map_err(|e| cannot_write(path, &e))?;
                let file = tokio::fs::File::from_std(file);
                Ok(Self::File { file, place, target: path.clone() })
            }
        }
    }

    /// Writes the next part of the response.
    ///
    /// # Errors
    /// Writing failed, for instance because the disk is full.
    pub async fn write(&mut self, data: &[u8]) -> Result<(), Failure> {
        match self {
            Self::Stdout(out) => out.write_all(data).await.map_err(|e| output::stdout_failure(&e)),
            Self::File { file, target, .. } => {
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
        }
    }
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
