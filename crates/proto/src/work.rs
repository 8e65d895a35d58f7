//! Counts the steps of loops whose length a peer influences, so that tests can bound them: unlike
//! time, steps are the same on every machine. Outside tests nothing is counted.

#[cfg(test)]
thread_local! {
    static STEPS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Counts so many steps: elements that are visited or moved.
#[inline]
pub fn steps(n: usize) {
    #[cfg(test)]
    STEPS.with(|steps| steps.set(steps.get() + n as u64));
    #[cfg(not(test))]
    let _ = n;
}

/// The steps that this thread has taken since the last call.
#[cfg(test)]
pub fn take_steps() -> u64 {
    STEPS.with(|steps| steps.replace(0))
}
