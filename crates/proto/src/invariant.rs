//! Invariants: a condition that must always hold, and a description of the fault if it does not.

/// `Ok` if the condition holds, otherwise the description of the fault.
pub(crate) fn ensure(holds: bool, wrong: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(wrong()) }
}
