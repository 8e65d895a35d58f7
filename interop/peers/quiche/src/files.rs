//! The files to serve, and the files that were fetched.

use crate::{Error, variable};
use std::path::{Path, PathBuf};

/// The path in a URL.
pub fn path_of(url: &str) -> Result<&str, Error> {
    let rest = url.strip_prefix("https://").ok_or("not a URL of https")?;
    let start = rest.find('/').ok_or("a URL without a path")?;
    Ok(&rest[start..])
}

/// The file in `directory` with the name at the end of `path`, without its folders.
fn under(directory: &str, path: &str) -> Result<PathBuf, Error> {
    let name = Path::new(path).file_name().ok_or("a path without a name")?;
    Ok(Path::new(&variable(directory)?).join(name))
}

/// The contents to serve under a path.
pub fn read(path: &str) -> Result<Vec<u8>, Error> {
    Ok(std::fs::read(under("WWW", path)?)?)
}

/// Saves the contents that were fetched from a path.
pub fn save(path: &str, body: &[u8]) -> Result<(), Error> {
    Ok(std::fs::write(under("DOWNLOADS", path)?, body)?)
}
