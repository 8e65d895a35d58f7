//! The page that is loaded.

use std::collections::HashMap;
use std::path::Path;

use serde::Deserialize;
use sutura::http;

use crate::content_type;
use crate::failure::{Exit, Failure};
use crate::serve::site::{Site, Synthetic};
use crate::url::encode_segment;

/// Sizes, order and priorities of a real page; see NOTICE.
const SHIPPED: &str = include_str!("../../data/page.json");

/// Files of a directory that are loaded at most.
const MAX_FILES: usize = 1000;

/// A page: resources, and which of them name which others.
#[derive(Debug)]
pub struct Page {
    pub name: String,
    pub resources: Vec<Resource>,
}

/// A part of a page.
#[derive(Debug, Clone)]
pub struct Resource {
    pub path: String,
    pub content_type: &'static str,
    pub size: u64,
    /// The resource that names this one, by its place in the page.
    pub parent: Option<usize>,
    pub priority: http::Priority,
}

#[derive(Debug, Deserialize)]
struct PageFile {
    page: String,
    resources: Vec<ResourceFile>,
}

#[derive(Debug, Deserialize)]
struct ResourceFile {
    path: String,
    size: u64,
    parent: Option<usize>,
    priority: String,
}

impl Page {
    /// The page that comes with the program.
    ///
    /// # Errors
    /// It was damaged.
    pub fn shipped() -> Result<Self, Failure> {
        let damaged = |e: &dyn std::fmt::Display| {
            Failure::new(Exit::Other, format!("the page of the demo is damaged: {e}"))
        };
        let file: PageFile = serde_json::from_str(SHIPPED).map_err(|e| damaged(&e))?;
        let mut resources = Vec::with_capacity(file.resources.len());
        for resource in file.resources {
            resources.push(Resource {
                content_type: content_type::of(Path::new(&resource.path)),
                path: resource.path,
                size: resource.size,
                parent: resource.parent,
                priority: resource.priority.parse().map_err(|e| damaged(&e))?,
            });
        }
        Ok(Self { name: file.page, resources })
    }

    /// A page made of all files below a directory. If it has an index.html, that names the others.
    ///
    /// # Errors
    /// The directory cannot be read, or is empty.
    pub fn of_directory(directory: &Path) -> Result<Self, Failure> {
        let unusable = |e: &dyn std::fmt::Display| {
            Failure::local(format!("cannot load {}: {e}", directory.display()))
        };
        let mut resources = Vec::new();
        collect(directory, "", &mut resources).map_err(|e| unusable(&e))?;
        if resources.is_empty() {
            return Err(unusable(&"it has no files"));
        }
        resources.sort_by(|a, b| a.path.cmp(&b.path));
        if let Some(index) = resources.iter().position(|r| r.path == "/index.html") {
            let index = resources.remove(index);
            resources.insert(0, index);
            resources.iter_mut().skip(1).for_each(|r| r.parent = Some(0));
        }
        Ok(Self { name: directory.display().to_string(), resources })
    }

    /// A site that has what the page needs, of the right size.
    pub fn site(&self) -> Site {
        let synthetic = |r: &Resource| {
            (r.path.clone(), Synthetic { content_type: r.content_type, length: r.size })
        };
        Site::Synthetic(self.resources.iter().map(synthetic).collect::<HashMap<_, _>>())
    }

    /// Bytes of all resources together.
    pub fn size(&self) -> u64 {
        self.resources.iter().map(|r| r.size).sum()
    }
}

fn collect(directory: &Path, path: &str, found: &mut Vec<Resource>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        if found.len() >= MAX_FILES {
            return Ok(());
        }
        let kind = entry.file_type()?;
        // What has no name in Unicode has none in a URL.
        let Some(name) = entry.file_name().to_str().map(encode_segment) else { continue };
        if kind.is_dir() {
            collect(&entry.path(), &format!("{path}/{name}"), found)?;
        } else if kind.is_file() {
            let content_type = content_type::of(&entry.path());
            found.push(Resource {
                path: format!("{path}/{name}"),
                content_type,
                size: entry.metadata()?.len(),
                parent: None,
                priority: priority_of(content_type),
            });
        }
    }
    Ok(())
}

/// What a browser would ask for.
fn priority_of(content_type: &str) -> http::Priority {
    let (urgency, incremental) = match content_type.split(['/', ';']).next().unwrap_or("") {
        _ if content_type.starts_with("text/html") => (0, true),
        _ if content_type.starts_with("text/css") => (0, false),
        _ if content_type.starts_with("text/javascript") => (1, false),
        "font" => (0, false),
        "image" | "audio" | "video" => (3, true),
        _ => (3, false),
    };
    http::Priority { urgency, incremental, ..http::Priority::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_page_is_the_real_one() {
        let page = Page::shipped().unwrap();
        assert_eq!((page.resources.len(), page.size()), (41, 600_525));
        assert_eq!(page.resources[0].content_type, "text/html; charset=utf-8");
        for (n, resource) in page.resources.iter().enumerate() {
            assert!(resource.size > 0 && resource.path.starts_with('/'));
            // Whoever names a resource comes before it, so that all of them are asked for.
            assert_eq!(resource.parent.is_none(), n == 0);
            assert!(resource.parent.is_none_or(|parent| parent < n));
        }
        let unknown = page.resources.iter().filter(|r| r.content_type == content_type::UNKNOWN);
        assert_eq!(unknown.count(), 0);
    }

    #[test]
    fn a_directory_is_a_page() {
        let directory = std::env::temp_dir().join(format!("sutura-page-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir_all(directory.join("img")).unwrap();
        assert!(Page::of_directory(&directory).is_err());
        for (name, size) in [("a.css", 10), ("index.html", 20), ("img/b.png", 30)] {
            std::fs::write(directory.join(name), vec![0; size]).unwrap();
        }
        let page = Page::of_directory(&directory).unwrap();
        let found: Vec<_> =
            page.resources.iter().map(|r| (r.path.as_str(), r.size, r.parent)).collect();
        assert_eq!(
            found,
            [("/index.html", 20, None), ("/a.css", 10, Some(0)), ("/img/b.png", 30, Some(0))]
        );
        std::fs::remove_dir_all(&directory).unwrap();
        assert!(Page::of_directory(&directory).is_err());
    }
}
