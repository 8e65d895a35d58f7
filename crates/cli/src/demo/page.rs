//! The page to load.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use sutura::http;
use sutura_lab::pages::{
    Kind, Page as Model, PageResource, Requests, Resource, Timing, Trigger, chrome,
};

use crate::content_type;
use crate::failure::{Exit, Failure};
use crate::serve::site::{Site, Synthetic};
use crate::url::encode_segment;

/// The default page; see NOTICE.
const SHIPPED: &str = "elsoberano-org-2020";

/// Most files of a directory that are loaded.
const MAX_FILES: usize = 1000;

/// A page with the paths of its resources.
#[derive(Debug)]
pub struct Page {
    model: Model,
    /// The path of each resource.
    paths: Vec<String>,
}

impl Page {
    /// The page that ships with the experiments: sizes, types, order and priorities of a real one.
    ///
    /// # Errors
    /// The shipped data is damaged.
    pub fn shipped() -> Result<Self, Failure> {
        let damaged = |e: &dyn std::fmt::Display| {
            Failure::new(Exit::Other, format!("the page of the demo is damaged: {e}"))
        };
        let pages = Model::corpus(Timing::Dependencies).map_err(|e| damaged(&e))?;
        let model = pages.into_iter().find(|page| page.id == SHIPPED);
        let model = model.ok_or_else(|| damaged(&"it is not there"))?;
        let path = |(number, resource): (usize, &PageResource)| {
            format!("/{number:02}.{}", extension(resource.resource.kind))
        };
        let paths = model.resources.iter().enumerate().map(path).collect();
        Ok(Self { model, paths })
    }

    /// A page made of all files below a directory. If there is an index.html, it counts as naming
    /// the others.
    ///
    /// # Errors
    /// The directory cannot be read, or is empty.
    pub fn of_directory(directory: &Path) -> Result<Self, Failure> {
        let unusable = |e: &dyn std::fmt::Display| {
            Failure::local(format!("cannot load {}: {e}", directory.display()))
        };
        let mut files = Vec::new();
        collect(directory, "", &mut files).map_err(|e| unusable(&e))?;
        if files.is_empty() {
            return Err(unusable(&"it has no files"));
        }
        files.sort();
        let index = files.iter().position(|(path, _)| path == "/index.html");
        if let Some(index) = index {
            files[..=index].rotate_right(1);
        }
        let resource = |(number, (path, bytes)): (usize, &(String, u64))| {
            let kind = Kind::from_mime(content_type::of(Path::new(path)));
            let main = index.is_some() && number == 0;
            let trigger = if main || index.is_none() {
                Trigger::Start(Duration::ZERO)
            } else {
                Trigger::After(0, Duration::ZERO)
            };
            let resource =
                Resource { kind, main, in_head: kind == Kind::Css, ..Resource::default() };
            PageResource { bytes: *bytes, resource, trigger }
        };
        let resources = files.iter().enumerate().map(resource).collect();
        let model = Model { id: directory.display().to_string(), resources };
        Ok(Self { model, paths: files.into_iter().map(|(path, _)| path).collect() })
    }

    /// A site that serves the page's resources in their sizes.
    pub fn site(&self) -> Site {
        let synthetic = |(path, resource): (&String, &PageResource)| {
            let content_type = content_type::of(Path::new(path));
            (path.clone(), Synthetic { content_type, length: resource.bytes })
        };
        let resources = self.paths.iter().zip(&self.model.resources).map(synthetic);
        Site::Synthetic(resources.collect::<HashMap<_, _>>())
    }

    /// The page's name.
    pub fn name(&self) -> &str {
        &self.model.id
    }

    /// The number of resources.
    pub fn len(&self) -> usize {
        self.paths.len()
    }

    /// The total size of all resources, in bytes.
    pub fn size(&self) -> u64 {
        self.model.bytes()
    }

    /// The state of the requests at the beginning of a load.
    pub fn requests(&self) -> Requests {
        self.model.requests()
    }

    /// The size of a resource.
    pub fn bytes(&self, index: usize) -> u64 {
        self.model.resources[index].bytes
    }

    /// The path of a resource.
    pub fn path(&self, index: usize) -> &str {
        &self.paths[index]
    }

    /// The priority with which a browser requests a resource.
    pub fn priority(&self, index: usize) -> http::Priority {
        let (urgency, incremental) = chrome(&self.model.resources[index].resource);
        http::Priority { urgency, incremental, ..http::Priority::default() }
    }
}

/// Lists the files below a directory: paths and sizes.
fn collect(directory: &Path, path: &str, found: &mut Vec<(String, u64)>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        if found.len() >= MAX_FILES {
            return Ok(());
        }
        let kind = entry.file_type()?;
        // A name that is not Unicode cannot appear in a URL.
        let Some(name) = entry.file_name().to_str().map(encode_segment) else { continue };
        let path = format!("{path}/{name}");
        if kind.is_dir() {
            collect(&entry.path(), &path, found)?;
        } else if kind.is_file() {
            found.push((path, entry.metadata()?.len()));
        }
    }
    Ok(())
}

/// The file extension for a kind of resource.
const fn extension(kind: Kind) -> &'static str {
    match kind {
        Kind::Html => "html",
        Kind::Css => "css",
        Kind::Js => "js",
        Kind::Font => "woff2",
        Kind::Image => "webp",
        Kind::Svg => "svg",
        Kind::Xhr => "json",
        Kind::Video => "mp4",
        Kind::Other => "bin",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_page_is_the_real_one() {
        let page = Page::shipped().unwrap();
        assert_eq!((page.len(), page.size()), (41, 600_525));
        let priority = |index| page.priority(index).to_string();
        assert_eq!((page.path(0), page.path(40)), ("/00.html", "/40.webp"));
        assert_eq!([0, 1, 2, 10].map(priority), ["u=0, i", "u=1", "u=3", "u=0"]);
        for path in &page.paths {
            assert_ne!(content_type::of(Path::new(path)), content_type::UNKNOWN);
        }
    }

    #[test]
    fn a_directory_is_a_page() {
        let scratch = tempfile::tempdir().unwrap();
        let directory = scratch.path();
        std::fs::create_dir(directory.join("img")).unwrap();
        assert!(Page::of_directory(directory).is_err());
        for (name, size) in [("a.css", 10), ("index.html", 20), ("img/b.png", 30)] {
            std::fs::write(directory.join(name), vec![0; size]).unwrap();
        }
        let page = Page::of_directory(directory).unwrap();
        assert_eq!(page.paths, ["/index.html", "/a.css", "/img/b.png"]);
        let sizes: Vec<u64> = page.model.resources.iter().map(|resource| resource.bytes).collect();
        assert_eq!(sizes, [20, 10, 30]);
        assert_eq!([0, 1, 2].map(|index| page.priority(index).urgency), [0, 0, 3]);
        // The others are requested once the index has arrived.
        let mut requests = page.requests();
        let now = Duration::ZERO;
        assert_eq!((requests.next(now), requests.next(now)), (Some(0), None));
        requests.arrive(0, 20, now);
        assert_eq!([requests.next(now), requests.next(now)], [Some(1), Some(2)]);
        assert!(Page::of_directory(&directory.join("none")).is_err());
    }
}
