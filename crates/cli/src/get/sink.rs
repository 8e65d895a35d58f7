//! Destinations of responses.

use std::io;
use std::path::{Path, PathBuf};

use tempfile::{NamedTempFile, TempPath};
use tokio::io::AsyncWriteExt;

use crate::failure::Failure;
use crate::output;

/// Where a response goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    Stdout,
    File(PathBuf),
}

/// Receives a response. A file has a temporary name until it is complete, and is removed if it
/// never is.
#[derive(Debug)]
pub enum Sink {
    Stdout(tokio::io::Stdout),
    File { file: tokio::fs::File, temporary: TempPath, target: PathBuf },
}

impl Sink {
    /// Opens the target.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn open(target: &Target) -> Result<Self, Failure> {
        match target {
            Target::Stdout => Ok(Self::Stdout(tokio::io::stdout())),
            Target::File(path) => {
                let (file, temporary) =
                    create(path).map_err(|e| cannot_write(path, &e))?.into_parts();
                let file = tokio::fs::File::from_std(file);
                Ok(Self::File { file, temporary, target: path.clone() })
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
            Self::File { mut file, temporary, target } => {
                let result = file.flush().await;
                drop(file.into_std().await);
                let result = result.and_then(|()| Ok(temporary.persist(&target)?));
                result.map_err(|e| cannot_write(&target, &e))
            }
        }
    }
}

/// Creates a file with a unique name next to `target`, with the permissions of any new file.
fn create(target: &Path) -> io::Result<NamedTempFile> {
    let name = target.file_name().ok_or(io::ErrorKind::InvalidFilename)?.to_string_lossy();
    if target.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    // File systems limit the length of names.
    let prefix: String = ['.'].into_iter().chain(name.chars().take(40)).chain(['.']).collect();
    let directory = target.parent().filter(|directory| !directory.as_os_str().is_empty());
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix).suffix(".part");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.tempfile_in(directory.unwrap_or(Path::new(".")))
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::local(format!("cannot write {}: {error}", path.display()))
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

        // The existing file stays until the new one is complete.
        let mut sink = Sink::open(&target).unwrap();
        sink.write(b"new").await.unwrap();
        drop(sink);
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        assert!(Sink::open(&Target::File(directory.to_owned())).is_err());
        assert!(Sink::open(&Target::File(directory.join("none/x"))).is_err());
    }
}
