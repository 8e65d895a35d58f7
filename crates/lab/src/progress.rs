//! The progress of an experiment.

use std::fmt;
use std::sync::Arc;

type Tell = dyn Fn(usize, usize) + Send + Sync;

/// A callback that receives the number of jobs that are done and the number of all jobs. An
/// experiment may have several rounds of jobs. The default ignores them.
#[derive(Clone, Default)]
pub struct Progress(Option<Arc<Tell>>);

impl Progress {
    /// Calls `tell` with the number of jobs that are done and of all jobs of the round. Calls come
    /// from any thread, but one at a time.
    #[must_use]
    pub fn new(tell: impl Fn(usize, usize) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(tell)))
    }

    pub(crate) fn tell(&self, done: usize, total: usize) {
        if let Some(tell) = &self.0 {
            tell(done, total);
        }
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Progress(told)" } else { "Progress(silent)" })
    }
}
