//! Decides where each URL is saved.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::sink::Target;
use crate::failure::Failure;
use crate::file;
use crate::url::Url;

/// The file name for a URL without one.
const DEFAULT_NAME: &str = "index.html";

/// Decides where each response goes; makes missing directories if `creates` says so.
///
/// # Errors
/// Two responses would go to the same place, or there is no such directory.
pub fn plan(urls: &[Url], out: &Path, creates: bool) -> Result<Vec<Target>, Failure> {
    let target = Target::named(out);
    if target == Target::Stdout {
        return Ok(vec![target; urls.len()]);
    }
    if !is_directory(out) {
        if let [_] = urls {
            provide(out, directory_of(out), creates)?;
            return Ok(vec![target]);
        }
        if out.exists() {
            let (out, urls) = (out.display(), urls.len());
            let message = format!("--out {out} takes one URL, not {urls}: it is no directory");
            return Err(Failure::usage(message));
        }
    }
    let targets = in_directory(urls, out)?;
    provide(out, out, creates)?;
    Ok(targets)
}

fn is_directory(path: &Path) -> bool {
    path.is_dir() || path.as_os_str().to_string_lossy().ends_with(std::path::is_separator)
}

/// The directory of a file.
fn directory_of(path: &Path) -> &Path {
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    directory.unwrap_or(Path::new("."))
}

/// Makes the directory for `out` if need be, and if that is permitted.
fn provide(out: &Path, directory: &Path, creates: bool) -> Result<(), Failure> {
    if directory.is_dir() {
        return Ok(());
    }
    if creates {
        return file::make_directory(directory);
    }
    // Without the slash at the end, behind which nothing is but in a directory.
    let bare: PathBuf = directory.components().collect();
    let (shown, exists) = (bare.display(), bare.exists());
    let why = if exists {
        format!("{shown} is no directory")
    } else {
        format!("the directory {shown} does not exist: make it, or say --create-dirs")
    };
    Err(Failure::local(format!("cannot write {}: {why}", out.display())))
}

fn in_directory(urls: &[Url], directory: &Path) -> Result<Vec<Target>, Failure> {
    let mut taken: HashSet<PathBuf> = HashSet::new();
    let mut targets = Vec::with_capacity(urls.len());
    for url in urls {
        let path = directory.join(url.file_name().unwrap_or(DEFAULT_NAME));
        if !taken.insert(path.clone()) {
            return Err(Failure::usage(format!(
                "more than one URL would be saved as {}",
                path.display()
            )));
        }
        targets.push(Target::File(path));
    }
    Ok(targets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Exit;

    fn urls(texts: &[&str]) -> Vec<Url> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn file(path: &str) -> Target {
        Target::File(path.into())
    }

    #[test]
    fn a_response_goes_where_it_should() {
        let one = urls(&["https://a/x/y.js?z"]);
        let two = urls(&["https://a/", "https://a/b"]);
        let dir = std::env::temp_dir();
        assert_eq!(plan(&one, Path::new("."), false), Ok(vec![file("./y.js")]));
        for stdout in ["-", "/dev/stdout"] {
            assert_eq!(plan(&one, Path::new(stdout), false), Ok(vec![Target::Stdout]));
            assert_eq!(plan(&two, Path::new(stdout), false), Ok(vec![Target::Stdout; 2]));
        }
        assert_eq!(plan(&one, Path::new("f"), false), Ok(vec![file("f")]));
        assert_eq!(plan(&one, &dir, false), Ok(vec![Target::File(dir.join("y.js"))]));
        let expected = ["index.html", "b"].map(|name| Target::File(dir.join(name)));
        assert_eq!(plan(&two, &dir, false), Ok(expected.to_vec()));
    }

    #[test]
    fn directories_are_made_on_request_only() {
        let scratch = tempfile::tempdir().unwrap();
        let one = urls(&["https://a/x"]);
        let two = urls(&["https://a/x", "https://a/y"]);
        let wanted = ["a/", "b/file", "c"].map(|name| scratch.path().join(name));
        let urls = [&one, &one, &two];
        for (out, urls) in wanted.iter().zip(urls) {
            let failure = plan(urls, out, false).unwrap_err();
            assert_eq!(failure.exit, Exit::Local);
            assert!(failure.message.ends_with("say --create-dirs"), "{failure:?}");
        }
        assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0);
        for (out, urls) in wanted.iter().zip(urls) {
            plan(urls, out, true).unwrap();
        }
        assert!(["a", "b", "c"].iter().all(|name| scratch.path().join(name).is_dir()));
        assert!(!wanted[1].exists());
    }

    #[test]
    fn two_responses_do_not_go_to_the_same_place() {
        for out in ["/dev/null", "."] {
            let two = urls(&["https://a/x", "https://b/x"]);
            let failure = plan(&two, Path::new(out), true).unwrap_err();
            assert_eq!(failure.exit, Exit::Usage);
        }
    }
}
