//! Where the results of jobs are: a directory, or a prefix in an object store.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use sutura_lab::results::{ResultFolder, ResultStore};

#[cfg(feature = "cloud")]
use super::objects::ResultObjects;
use crate::failure::Failure;

/// The schemes of object stores. Their settings are in the environment, as `AWS_REGION`.
const CLOUDS: [&str; 3] = ["s3", "gs", "az"];

/// A place for results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeptAt {
    /// A directory.
    Folder(PathBuf),
    /// The URL of a prefix in an object store.
    Cloud(String),
}

impl FromStr for KeptAt {
    type Err = String;

    /// A URL, or else the path of a directory.
    fn from_str(text: &str) -> Result<Self, String> {
        let Some((scheme, rest)) = text.split_once("://") else {
            return Ok(Self::Folder(text.into()));
        };
        match scheme {
            "file" if rest.starts_with('/') => {
                let path = percent_encoding::percent_decode_str(rest).decode_utf8();
                let path = path.map_err(|_| "the path of the URL is not UTF-8")?;
                Ok(Self::Folder(PathBuf::from(path.as_ref())))
            }
            "file" => Err("a file URL has three slashes before its path: file:///path".to_owned()),
            "memory" => {
                Err("results in memory end with this process: no other would see them".into())
            }
            cloud if CLOUDS.contains(&cloud) => Ok(Self::Cloud(text.to_owned())),
            _ => Err(format!(
                "no object store has `{scheme}://`: there are file, {}",
                CLOUDS.join(", ")
            )),
        }
    }
}

impl fmt::Display for KeptAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(path) => write!(f, "{}", path.display()),
            Self::Cloud(url) => f.write_str(url),
        }
    }
}

impl KeptAt {
    /// The store in this place, for the results of this key alone.
    ///
    /// # Errors
    /// It cannot be used, or has the results of another key.
    pub fn open(&self, key: &str) -> Result<Arc<dyn ResultStore>, Failure> {
        let opened = match self {
            Self::Folder(path) => ResultFolder::new(path, key).map(|store| Arc::new(store) as _),
            Self::Cloud(url) => open_cloud(url, key),
        };
        opened.map_err(|error| Failure::local(format!("{self}: {error}")))
    }
}

#[cfg(feature = "cloud")]
fn open_cloud(url: &str, key: &str) -> io::Result<Arc<dyn ResultStore>> {
    Ok(Arc::new(ResultObjects::at(url, key)?))
}

#[cfg(not(feature = "cloud"))]
fn open_cloud(_url: &str, _key: &str) -> io::Result<Arc<dyn ResultStore>> {
    const NEEDS: &str = "object stores need a program that was built with the feature `cloud`: \
         `cargo install sutura-cli --features cloud`";
    Err(io::Error::other(NEEDS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_directories_or_urls() {
        let folder = |path: &str| Ok(KeptAt::Folder(path.into()));
        for (text, place) in [
            ("results", folder("results")),
            ("a/b:c", folder("a/b:c")),
            ("file:///a%20b", folder("/a b")),
            ("s3://bucket/x", Ok(KeptAt::Cloud("s3://bucket/x".to_owned()))),
        ] {
            assert_eq!(text.parse(), place, "{text}");
        }
        for (text, why) in [
            ("memory://x", "in memory"),
            ("file://x", "three slashes"),
            ("ftp://x/y", "no object store has `ftp://`"),
        ] {
            let error = text.parse::<KeptAt>().unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }

    #[cfg(not(feature = "cloud"))]
    #[test]
    fn without_the_feature_a_url_says_which_one_it_needs() {
        let failure = KeptAt::Cloud("s3://bucket/x".to_owned()).open("key").unwrap_err();
        assert!(failure.message.starts_with("s3://bucket/x: "), "{failure:?}");
        assert!(failure.message.contains("--features cloud"), "{failure:?}");
    }
}
