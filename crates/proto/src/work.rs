//! Counts the steps of loops whose length a peer influences, so that tests can bound them: unlike
//! time, steps are the same on every machine. Nothing is counted without the feature `work`, which tests of this
//! crate and of others have. Crates that use this one count theirs in the same place.

#[cfg(feature = "work")]
thread_local! {
    static STEPS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Counts `n` steps: elements that are visited or moved.
#[inline]
pub fn steps(n: usize) {
    #[cfg(feature = "work")]
    STEPS.with(|steps| steps.set(steps.get() + n as u64));
    #[cfg(not(feature = "work"))]
    let _ = n;
}

/// The steps that this thread has taken since the last call.
#[cfg(feature = "work")]
pub fn take_steps() -> u64 {
    STEPS.with(|steps| steps.replace(0))
}
