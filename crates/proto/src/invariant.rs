//! What must always hold: a condition, and what is wrong if it does not hold.

/// `Ok` if the condition holds, otherwise what is wrong.
pub(crate) fn ensure(holds: bool, wrong: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(wrong()) }
}
