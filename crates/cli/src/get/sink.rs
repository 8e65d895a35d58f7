//! Where responses go.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::AsyncWriteExt;

use crate::failure::Failure;
use crate::output;

/// Where a response is to go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    Stdout,
    File(PathBuf),
}

/// Takes a response. What goes to a file has another name there until it is whole, and is removed
/// if it never is.
#[derive(Debug)]
pub enum Sink {
    Stdout(tokio::io::Stdout),
    File { file: tokio::fs::File, partial: Partial },
}

/// A file that is not whole yet. Dropped, it is removed.
#[derive(Debug)]
pub struct Partial {
    temporary: PathBuf,
    target: PathBuf,
    done: bool,
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.done {
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

impl Sink {
    /// Opens what `target` names.
    ///
    /// # Errors
    /// No file can be made there.
    pub fn open(target: &Target) -> Result<Self, Failure> {
        match target {
            Target::Stdout => Ok(Self::Stdout(tokio::io::stdout())),
            Target::File(path) => {
                let (file, partial) = create(path).map_err(|e| cannot_write(path, &e))?;
                Ok(Self::File { file: tokio::fs::File::from_std(file), partial })
            }
        }
    }

    /// Writes the next part.
    ///
    /// # Errors
    /// Such as a full disk.
    pub async fn write(&mut self, data: &[u8]) -> Result<(), Failure> {
        match self {
            Self::Stdout(out) => out.write_all(data).await.map_err(|e| output::stdout_failure(&e)),
            Self::File { file, partial } => {
                file.write_all(data).await.map_err(|e| cannot_write(&partial.target, &e))
            }
        }
    }

    /// The response is whole.
    ///
    /// # Errors
    /// It could not be written, or the file could not be given its name.
    pub async fn finish(self) -> Result<(), Failure> {
        match self {
            Self::Stdout(mut out) => out.flush().await.map_err(|e| output::stdout_failure(&e)),
            Self::File { mut file, mut partial } => {
                let result = file.flush().await;
                drop(file.into_std().await);
                let result = result.and_then(|()| fs::rename(&partial.temporary, &partial.target));
                partial.done = result.is_ok();
                result.map_err(|e| cannot_write(&partial.target, &e))
            }
        }
    }
}

/// Makes a file with a name that nobody has, next to its final place.
fn create(target: &Path) -> io::Result<(fs::File, Partial)> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let name = target.file_name().ok_or(io::ErrorKind::InvalidFilename)?.to_string_lossy();
    if target.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    // Names have a greatest length.
    let name: String = name.chars().take(40).collect();
    loop {
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let temporary =
            target.with_file_name(format!(".{name}.{}-{number}.part", std::process::id()));
        match fs::OpenOptions::new().write(true).create_new(true).open(&temporary) {
            Ok(file) => {
                let partial = Partial { temporary, target: target.to_owned(), done: false };
                return Ok((file, partial));
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::local(format!("cannot write {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_file_appears_when_it_is_whole_and_leaves_no_litter_when_not() {
        let directory = std::env::temp_dir().join(format!("sutura-sink-{}", std::process::id()));
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory).unwrap();
        let names = || -> Vec<String> {
            let entries = fs::read_dir(&directory).unwrap();
            entries.map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect()
        };
        let path = directory.join("page.html");
        let target = Target::File(path.clone());

        let mut sink = Sink::open(&target).unwrap();
        sink.write(b"half").await.unwrap();
        assert_eq!(names().len(), 1);
        assert_ne!(names(), ["page.html"]);
        drop(sink);
        assert!(names().is_empty());

        let mut sink = Sink::open(&target).unwrap();
        sink.write(b"whole").await.unwrap();
        sink.finish().await.unwrap();
        assert_eq!(names(), ["page.html"]);
        assert_eq!(fs::read(&path).unwrap(), b"whole");

        // What was there before stays until the new one is whole.
        let mut sink = Sink::open(&target).unwrap();
        sink.write(b"new").await.unwrap();
        drop(sink);
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        assert!(Sink::open(&Target::File(directory.clone())).is_err());
        assert!(Sink::open(&Target::File(directory.join("none/x"))).is_err());
        fs::remove_dir_all(&directory).unwrap();
    }
}
