//! How many files and sockets this process may have open.

/// Asks for as many as the system permits. Shells start programs with far fewer, for the sake of those that pass
/// sets of files to `select`, which this one does not.
pub fn permit_all() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
        if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
            tracing::debug!(%error, "the number of open files stays as it is");
        }
    }
}
