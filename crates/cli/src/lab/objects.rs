//! A prefix in an object store as a place for results.

use std::io;
use std::sync::Arc;

use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt as _, PutMode, PutPayload};
use sutura_lab::results::ResultStore;
use tokio::runtime::{Builder, Runtime};

/// An object for each result. Stores replace objects as a whole.
#[derive(Debug)]
pub struct ResultObjects {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    /// The store is asynchronous; who asks for results waits.
    runtime: Runtime,
}

impl ResultObjects {
    /// The store at this URL, whose settings are variables of the environment. `key` is what the results depend on, as
    /// for a folder.
    ///
    /// # Errors
    /// The URL or the settings are wrong, the store cannot be reached, or it has the results of another key.
    #[cfg(feature = "cloud")]
    pub fn at(url: &str, key: &str) -> io::Result<Self> {
        // The client of the stores takes the provider of the process; there is no other.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let url = url::Url::parse(url).map_err(io::Error::other)?;
        let settings = std::env::vars().filter(|(name, _)| {
            ["AWS_", "AZURE_", "GOOGLE_"].iter().any(|prefix| name.starts_with(prefix))
        });
        let (store, prefix) = object_store::parse_url_opts(&url, settings)?;
        Self::new(store.into(), prefix, key)
    }

    /// The results of this key under a prefix of a store.
    ///
    /// # Errors
    /// The store fails, or has the results of another key.
    pub fn new(store: Arc<dyn ObjectStore>, prefix: Path, key: &str) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let objects = Self { store, prefix, runtime };
        let place = objects.prefix.clone().join("key");
        loop {
            match objects.get(&place)? {
                Some(old) if old == key.as_bytes() => return Ok(objects),
                Some(old) => {
                    let old = String::from_utf8_lossy(&old);
                    let other = format!("it has the results of another run: {old}");
                    return Err(io::Error::other(other));
                }
                None if objects.claim(&place, key)? => return Ok(objects),
                // Another process was faster: its key is there now.
                None => {}
            }
        }
    }

    /// Writes the key. False if there is one already.
    fn claim(&self, place: &Path, key: &str) -> io::Result<bool> {
        let payload = || PutPayload::from(key.to_owned());
        let put = self.store.put_opts(place, payload(), PutMode::Create.into());
        match self.runtime.block_on(put) {
            Ok(_) => Ok(true),
            Err(Error::AlreadyExists { .. }) => Ok(false),
            // A store that cannot say whether an object is new: it is written all the same.
            Err(Error::NotImplemented { .. }) => {
                self.runtime.block_on(self.store.put(place, payload()))?;
                Ok(true)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn get(&self, place: &Path) -> io::Result<Option<Vec<u8>>> {
        let found = async { self.store.get(place).await?.bytes().await };
        match self.runtime.block_on(found) {
            Ok(bytes) => Ok(Some(bytes.into())),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn place(&self, name: &str) -> Path {
        self.prefix.clone().join(format!("{name}.msgpack"))
    }
}

impl ResultStore for ResultObjects {
    fn load(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        self.get(&self.place(name))
    }

    fn save(&self, name: &str, result: &[u8]) -> io::Result<()> {
        let payload = PutPayload::from(result.to_vec());
        self.runtime.block_on(self.store.put(&self.place(name), payload))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use object_store::memory::InMemory;

    use super::*;

    fn open(store: &Arc<InMemory>, prefix: &str, key: &str) -> io::Result<ResultObjects> {
        ResultObjects::new(store.clone(), Path::from(prefix), key)
    }

    #[test]
    fn a_prefix_is_for_one_key() {
        let store = Arc::new(InMemory::new());
        open(&store, "jobs", "a").unwrap().save("0-0", b"x").unwrap();
        let again = open(&store, "jobs", "a").unwrap();
        assert_eq!(again.load("0-0").unwrap().as_deref(), Some(&b"x"[..]));
        assert_eq!(again.load("0-1").unwrap(), None);
        let error = open(&store, "jobs", "b").unwrap_err();
        assert!(error.to_string().ends_with("another run: a"), "{error}");
        assert_eq!(open(&store, "other", "b").unwrap().load("0-0").unwrap(), None);
    }

    #[test]
    fn a_result_takes_the_place_of_an_older_one() {
        let store = Arc::new(InMemory::new());
        let objects = open(&store, "", "a").unwrap();
        objects.save("0-0", b"long").unwrap();
        objects.save("0-0", b"new").unwrap();
        assert_eq!(objects.load("0-0").unwrap().as_deref(), Some(&b"new"[..]));
    }

    #[test]
    fn several_threads_use_one_store() {
        let store = Arc::new(InMemory::new());
        let objects = open(&store, "jobs", "a").unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4u8 {
                let objects = &objects;
                scope.spawn(move || {
                    for place in 0..20 {
                        objects.save(&format!("{thread}-{place}"), &[thread, place]).unwrap();
                    }
                });
            }
        });
        for (thread, place) in [(0, 0), (3, 19), (2, 7)] {
            let result = objects.load(&format!("{thread}-{place}")).unwrap();
            assert_eq!(result, Some(vec![thread, place]));
        }
    }

    #[test]
    fn of_two_that_begin_at_once_one_writes_the_key() {
        let store = Arc::new(InMemory::new());
        let objects = open(&store, "jobs", "a").unwrap();
        assert!(!objects.claim(&Path::from("jobs/key"), "b").unwrap());
        assert!(open(&store, "jobs", "a").is_ok(), "the first key stays");
    }
}
