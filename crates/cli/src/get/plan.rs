//! Decides where each URL is saved.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::sink::Target;
use crate::failure::Failure;
use crate::file;
use crate::url::Url;

/// The file name for a URL without one.
const DEFAULT_NAME: &str = "index.html";

/// Decides where each response goes, and creates the output directory if needed.
///
/// # Errors
/// Two responses would go to the same place, or the directory cannot be created.
pub fn plan(urls: &[Url], out: Option<&Path>) -> Result<Vec<Target>, Failure> {
    let out = out.unwrap_or(Path::new("."));
    let target = Target::named(out);
    if target == Target::Stdout || !is_directory(out) {
        if let [_] = urls {
            return Ok(vec![target]);
        }
        if target == Target::Stdout || out.exists() {
            let (out, urls) = (out.display(), urls.len());
            let message = format!("--out {out} takes one URL, not {urls}: it is no directory");
            return Err(Failure::usage(message));
        }
    }
    let targets = in_directory(urls, out)?;
    file::make_directory(out)?;
    Ok(targets)
}

fn is_directory(path: &Path) -> bool {
    path.is_dir() || path.as_os_str().to_string_lossy().ends_with(std::path::is_separator)
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
        let dir = std::env::temp_dir();
        assert_eq!(plan(&one, None), Ok(vec![file("./y.js")]));
        for stdout in ["-", "/dev/stdout"] {
            assert_eq!(plan(&one, Some(Path::new(stdout))), Ok(vec![Target::Stdout]));
        }
        assert_eq!(plan(&one, Some(Path::new("f"))), Ok(vec![file("f")]));
        assert_eq!(plan(&one, Some(&dir)), Ok(vec![Target::File(dir.join("y.js"))]));
        let two = urls(&["https://a/", "https://a/b"]);
        let expected = ["index.html", "b"].map(|name| Target::File(dir.join(name)));
        assert_eq!(plan(&two, Some(&dir)), Ok(expected.to_vec()));
    }

    #[test]
    fn two_responses_do_not_go_to_the_same_place() {
        for out in [Some("-"), Some("/dev/null"), Some("/dev/stdout"), None] {
            let two = urls(&["https://a/x", "https://b/x"]);
            let failure = plan(&two, out.map(Path::new)).unwrap_err();
            assert_eq!(failure.exit, Exit::Usage);
        }
    }
}
