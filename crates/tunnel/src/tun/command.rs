//! The program `ip` of iproute2, which sets routes.

use std::io;
use std::process::Command;

#[cfg(target_os = "linux")]
use rustix::thread::{
    CapabilitySet, capabilities, configure_capability_in_ambient_set, set_capabilities,
};

/// Runs `ip`, and returns what it writes.
///
/// # Errors
/// It is not there (`NotFound`), or says what is wrong.
pub(super) fn ip<'a>(arguments: impl IntoIterator<Item = &'a str>) -> io::Result<String> {
    // Without it, `ip` says so.
    #[cfg(target_os = "linux")]
    let _ = pass_on_right();
    let ran = Command::new("ip").args(arguments).output().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => io::Error::new(
            io::ErrorKind::NotFound,
            "there is no program `ip`, which sets routes: install iproute2",
        ),
        _ => error,
    })?;
    if ran.status.success() {
        return Ok(String::from_utf8_lossy(&ran.stdout).into_owned());
    }
    Err(io::Error::other(String::from_utf8_lossy(&ran.stderr).trim().to_owned()))
}

/// Lets the programs that this thread runs administer the network, if it may itself. Otherwise a program that has the
/// right by its file (`setcap`) would not pass it on.
#[cfg(target_os = "linux")]
fn pass_on_right() -> io::Result<()> {
    let mut sets = capabilities(None)?;
    if sets.inheritable.contains(CapabilitySet::NET_ADMIN) {
        return Ok(configure_capability_in_ambient_set(CapabilitySet::NET_ADMIN, true)?);
    }
    sets.inheritable |= CapabilitySet::NET_ADMIN;
    set_capabilities(None, sets)?;
    Ok(configure_capability_in_ambient_set(CapabilitySet::NET_ADMIN, true)?)
}
