//! Writes files and other places with a name: devices, pipes, other programs' descriptors.
//!
//! A regular file that is written anew gets its content under another name beside it and is replaced
//! at the end, so that it is never seen half done. Other places are written in place: places that are no
//! regular file; a file with further names (hard links) or of another owner, which a replacement would part
//! from it; and a file in a directory where nothing can be created.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::{NamedTempFile, TempPath};

use crate::failure::Failure;

/// Most symbolic links that are followed from a name to a file, as in Linux.
const MAX_LINKS: usize = 40;
/// Characters of a file's name in its temporary name: file systems limit the length of names.
const MAX_PREFIX: usize = 40;
/// Where the system keeps links to open files: the files that they name are opened already.
const DESCRIPTORS: [&str; 2] = ["/proc", "/dev/fd"];

/// The users who may read a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readers {
    /// The users who may read the old file, or any new one (the umask).
    Usual,
    /// Its owner alone, also if there is an old file that others may read: it holds a secret.
    Owner,
}

/// How written content comes to its place.
#[derive(Debug)]
pub struct Place {
    /// The temporary file, unless the content went to its place at once.
    temporary: Option<TempPath>,
    /// Behind all symbolic links.
    target: PathBuf,
}

/// Opens a place for writing. May block, for instance until somebody reads a pipe.
///
/// # Errors
/// It is a directory, its directory does not exist, or it may not be written.
pub fn open(path: &Path, readers: Readers) -> io::Result<(File, Place)> {
    let target = follow(path)?;
    if is_descriptor(&target) {
        // The program that opened the descriptor decided where its content begins.
        let file = OpenOptions::new().append(true).open(&target)?;
        return Ok((file, Place { temporary: None, target }));
    }
    let old = match fs::metadata(&target) {
        Ok(old) => Some(old),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    match old {
        None => begin(&target, readers).map(|new| split(new, target)),
        Some(old) if old.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Some(old) if old.is_file() => replace(target, &old, readers),
        Some(_) => {
            let file = OpenOptions::new().write(true).open(&target)?;
            Ok((file, Place { temporary: None, target }))
        }
    }
}

impl Place {
    /// Whether nobody sees the content before it is [put in its place](Self::commit).
    pub const fn is_temporary(&self) -> bool {
        self.temporary.is_some()
    }

    /// Puts a complete file in its place. The written content must have reached the system.
    ///
    /// # Errors
    /// The file cannot be put there. The old file is still there.
    pub fn commit(self) -> io::Result<()> {
        let Some(temporary) = self.temporary else { return Ok(()) };
        if fs::symlink_metadata(&self.target).is_ok_and(|old| !old.is_file()) {
            return Err(io::Error::other("something else has taken its place"));
        }
        match temporary.persist(&self.target) {
            Ok(()) => Ok(()),
            // For example, another file is mounted on the target, or the target is another user's file in
            // /tmp.
            Err(error) if self.target.is_file() => {
                let mut from = File::open(&error.path)?;
                let mut to = OpenOptions::new().write(true).truncate(true).open(&self.target)?;
                io::copy(&mut from, &mut to).map(drop)
            }
            Err(error) => Err(error.error),
        }
    }
}

/// Writes a whole file; a file that only its owner may read is on the disk when this returns.
///
/// # Errors
/// As for [`open`], or the disk is full.
pub fn write(path: &Path, content: &[u8], readers: Readers) -> io::Result<()> {
    let (mut file, place) = open(path, readers)?;
    file.write_all(content)?;
    if readers == Readers::Owner && place.temporary.is_some() {
        file.sync_all()?;
    }
    drop(file);
    place.commit()
}

/// Says that a file cannot be written and why, so that it can be helped.
pub fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    let directory = directory_of(path);
    let why = match error.kind() {
        io::ErrorKind::NotFound if !directory.exists() => {
            format!("the directory {} does not exist", directory.display())
        }
        io::ErrorKind::NotADirectory => format!("{} is no directory", directory.display()),
        io::ErrorKind::IsADirectory => "it is a directory".into(),
        io::ErrorKind::PermissionDenied if path.exists() => "no permission to write it".into(),
        io::ErrorKind::PermissionDenied => {
            format!("no permission to create files in {}", directory.display())
        }
        io::ErrorKind::BrokenPipe => "nobody reads it any more".into(),
        _ => error.to_string(),
    };
    Failure::local(format!("cannot write {}: {why}", path.display()))
}

/// The directory of a file.
fn directory_of(path: &Path) -> &Path {
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    directory.unwrap_or(Path::new("."))
}

/// The path behind all symbolic links, also where it does not exist yet.
fn follow(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        // A link to a pipe or to a removed file says which file it is, not where: the link itself must be
        // opened.
        if is_descriptor(&path) {
            return Ok(path);
        }
        match fs::read_link(&path) {
            Ok(link) => path = directory_of(&path).join(link),
            // The path is no link, or does not exist.
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

/// Whether a path stands for an open file of this or another process.
fn is_descriptor(path: &Path) -> bool {
    let Ok(directory) = fs::canonicalize(directory_of(path)) else { return false };
    cfg!(unix) && DESCRIPTORS.iter().any(|root| directory.starts_with(root))
}

/// Opens a regular file that exists.
fn replace(target: PathBuf, old: &fs::Metadata, readers: Readers) -> io::Result<(File, Place)> {
    // Without permission to write the file, it is not to be replaced either.
    let file = OpenOptions::new().write(true).open(&target)?;
    let new = if is_known_elsewhere(old) { None } else { begin(&target, readers).ok() };
    let new = new.filter(|new| has_owner_of(new.as_file(), old));
    if let Some(new) = new {
        if readers == Readers::Usual {
            new.as_file().set_permissions(old.permissions())?;
        }
        return Ok(split(new, target));
    }
    #[cfg(unix)]
    if readers == Readers::Owner {
        file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    }
    file.set_len(0)?;
    Ok((file, Place { temporary: None, target }))
}

fn split(new: NamedTempFile, target: PathBuf) -> (File, Place) {
    let (file, temporary) = new.into_parts();
    (file, Place { temporary: Some(temporary), target })
}

/// Creates a file with a unique name beside `target`.
fn begin(target: &Path, readers: Readers) -> io::Result<NamedTempFile> {
    let name = target.file_name().ok_or(io::ErrorKind::InvalidFilename)?.to_string_lossy();
    let name = name.chars().take(MAX_PREFIX);
    let prefix: String = ['.'].into_iter().chain(name).chain(['.']).collect();
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix).suffix(".part");
    #[cfg(unix)]
    if readers == Readers::Usual {
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    }
    // The error is reported with the path of the target, not with the path of the temporary file.
    builder.tempfile_in(directory_of(target)).map_err(|error| match error.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => error.kind().into(),
    })
}

#[cfg(unix)]
fn is_known_elsewhere(old: &fs::Metadata) -> bool {
    std::os::unix::fs::MetadataExt::nlink(old) > 1
}

#[cfg(not(unix))]
fn is_known_elsewhere(_: &fs::Metadata) -> bool {
    false
}

/// Whether a new file belongs to the same user and group as the old one.
#[cfg(unix)]
fn has_owner_of(new: &File, old: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    new.metadata().is_ok_and(|new| (new.uid(), new.gid()) == (old.uid(), old.gid()))
}

#[cfg(not(unix))]
fn has_owner_of(_: &File, _: &fs::Metadata) -> bool {
    true
}

/// Creates a directory unless it exists.
///
/// # Errors
/// It cannot be created.
pub fn make_directory(path: &Path) -> Result<(), Failure> {
    fs::create_dir_all(path).map_err(|error| {
        let why = match error.kind() {
            io::ErrorKind::AlreadyExists => "it exists and is no directory".into(),
            io::ErrorKind::NotADirectory => "it is below what is no directory".into(),
            _ => error.to_string(),
        };
        Failure::local(format!("cannot make the directory {}: {why}", path.display()))
    })
}

/// Writes a file that only its owner may read, and makes its directory if needed.
///
/// # Errors
/// It cannot be written.
pub fn write_private(directory: &Path, path: &Path, text: &str) -> Result<(), Failure> {
    make_directory(directory)?;
    write(path, text.as_bytes(), Readers::Owner).map_err(|e| cannot_write(path, &e))
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};

    use rustix::fs::{CWD, FileType, Mode, mknodat};
    use tempfile::TempDir;

    use super::*;

    fn scratch() -> (TempDir, PathBuf) {
        let scratch = tempfile::tempdir().unwrap();
        let file = scratch.path().join("file");
        (scratch, file)
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let mut names: Vec<_> =
            entries.map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    fn make_fifo(path: &Path) {
        mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    }

    /// Reads a pipe to its end, while `write` writes to it.
    fn through(fifo: &Path, write: impl FnOnce()) -> String {
        let reading = fifo.to_owned();
        let reader = std::thread::spawn(move || {
            let mut text = String::new();
            File::open(reading).unwrap().read_to_string(&mut text).unwrap();
            text
        });
        write();
        reader.join().unwrap()
    }

    #[test]
    fn a_file_is_replaced_when_the_new_one_is_whole_and_keeps_its_permissions() {
        let (scratch, path) = scratch();
        fs::write(&path, "a longer old text").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let inode = fs::metadata(&path).unwrap().ino();
        let (mut file, place) = open(&path, Readers::Usual).unwrap();
        file.write_all(b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"a longer old text");
        drop(place);
        assert_eq!(names(scratch.path()), ["file"]);
        write(&path, b"new", Readers::Usual).unwrap();
        assert_eq!((fs::read(&path).unwrap(), mode(&path)), (b"new".to_vec(), 0o640));
        assert_ne!(fs::metadata(&path).unwrap().ino(), inode);
        assert_eq!(names(scratch.path()), ["file"]);
    }

    #[test]
    fn symbolic_links_stay_and_lead_to_the_file() {
        let (scratch, path) = scratch();
        let (link, deep) = (scratch.path().join("link"), scratch.path().join("sub/deep"));
        fs::create_dir(scratch.path().join("sub")).unwrap();
        symlink("file", &link).unwrap();
        symlink("../link", &deep).unwrap();
        // The first time, the file does not exist yet.
        for text in [b"one", b"two"] {
            write(&deep, text, Readers::Usual).unwrap();
            assert_eq!(fs::read(&path).unwrap(), text);
            assert!(fs::symlink_metadata(&path).unwrap().is_file());
            assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
            assert!(fs::symlink_metadata(&deep).unwrap().is_symlink());
        }
        let lost = scratch.path().join("lost");
        symlink("nowhere/file", &lost).unwrap();
        let error = open(&lost, Readers::Usual).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        let round = scratch.path().join("round");
        symlink("round", &round).unwrap();
        assert!(open(&round, Readers::Usual).is_err());
        assert!(fs::symlink_metadata(&round).unwrap().is_symlink());
    }

    #[test]
    fn a_pipe_is_written_and_stays_one() {
        let (scratch, path) = scratch();
        let link = scratch.path().join("link");
        make_fifo(&path);
        symlink("file", &link).unwrap();
        for place in [&path, &link] {
            for readers in [Readers::Usual, Readers::Owner] {
                let text = through(&path, || write(place, b"through", readers).unwrap());
                assert_eq!(text, "through");
            }
        }
        assert!(fs::symlink_metadata(&path).unwrap().file_type().is_fifo());
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(names(scratch.path()), ["file", "link"]);
    }

    #[test]
    fn a_device_is_written_and_stays_one() {
        let (scratch, _) = scratch();
        let link = scratch.path().join("link");
        symlink("/dev/null", &link).unwrap();
        for path in [Path::new("/dev/null"), &link] {
            write(path, b"nothing", Readers::Owner).unwrap();
        }
        let null = fs::symlink_metadata("/dev/null").unwrap();
        assert!(null.file_type().is_char_device());
        assert_eq!(null.permissions().mode() & 0o777, 0o666);
        let full = Path::new("/dev/full");
        if full.exists() {
            let error = write(full, b"x", Readers::Usual).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        }
    }

    /// A file to which a shell has redirected the output already holds the output of other programs.
    #[test]
    fn an_open_file_is_continued() {
        use std::os::fd::AsRawFd;
        let (_scratch, path) = scratch();
        fs::write(&path, "before, ").unwrap();
        let held = OpenOptions::new().append(true).open(&path).unwrap();
        let name = PathBuf::from(format!("/dev/fd/{}", held.as_raw_fd()));
        write(&name, b"after", Readers::Usual).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"before, after");
    }

    #[test]
    fn all_names_of_a_file_stay_names_of_it() {
        let (scratch, path) = scratch();
        let other = scratch.path().join("other");
        fs::write(&path, "a longer old text").unwrap();
        fs::hard_link(&path, &other).unwrap();
        write(&path, b"new", Readers::Owner).unwrap();
        assert_eq!((fs::read(&other).unwrap(), mode(&other)), (b"new".to_vec(), 0o600));
        assert_eq!(names(scratch.path()), ["file", "other"]);
    }

    #[test]
    fn secrets_are_for_their_owner_only() {
        let (_scratch, path) = scratch();
        write(&path, b"secret", Readers::Owner).unwrap();
        assert_eq!(mode(&path), 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        write(&path, b"another", Readers::Owner).unwrap();
        assert_eq!(mode(&path), 0o600);
    }

    #[test]
    fn what_takes_the_place_of_a_file_is_not_replaced() {
        let (_scratch, path) = scratch();
        let (file, place) = open(&path, Readers::Usual).unwrap();
        drop(file);
        make_fifo(&path);
        assert!(place.commit().is_err());
        assert!(fs::symlink_metadata(&path).unwrap().file_type().is_fifo());
    }

    #[test]
    fn errors_say_what_is_wrong() {
        let (scratch, path) = scratch();
        fs::write(&path, "").unwrap();
        let told = |path: &Path| {
            let error = open(path, Readers::Usual).unwrap_err();
            cannot_write(path, &error).message
        };
        let directory = scratch.path().display().to_string();
        let text = told(&scratch.path().join("none/x"));
        assert!(
            text.ends_with(&format!("the directory {directory}/none does not exist")),
            "{text}"
        );
        let text = told(&path.join("x"));
        assert!(text.ends_with("file is no directory"), "{text}");
        assert!(told(scratch.path()).ends_with("it is a directory"));
        assert_eq!(names(scratch.path()), ["file"]);
    }
}
