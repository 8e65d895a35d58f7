//! Where a server's time goes, as `perf record` finds it.

use crate::Error;
use crate::job::Subject;
use std::fmt::Display;
use std::path::Path;
use std::process::Command;

/// A file for a profile.
#[derive(Debug, Clone, Copy)]
pub struct Profile<'a> {
    directory: &'a Path,
    name: &'a str,
}

impl<'a> Profile<'a> {
    /// A file of this name, if there is a directory for it.
    pub fn new(directory: Option<&'a Path>, name: &'a str) -> Option<Self> {
        directory.map(|directory| Self { directory, name })
    }
}

/// The name of a measurement's profile, of letters, digits and `-`. A later round writes over it.
pub fn name(subject: &Subject, load: &impl Display, payload: Option<u16>) -> String {
    let payload = payload.map(|payload| format!("-{payload}")).unwrap_or_default();
    let name = format!("{subject}-{}-{load}{payload}", subject.setting);
    let parts = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("-") + ".data"
}

/// This program, under `perf record` if there is to be a profile.
pub fn command(profile: Option<Profile<'_>>) -> Result<Command, Error> {
    let program = std::env::current_exe()?;
    let Some(Profile { directory, name }) = profile else { return Ok(Command::new(program)) };
    let mut perf = Command::new("perf");
    // The clock is there on virtual machines too, where counters of cycles are not.
    perf.args(["record", "--quiet", "--event", "cpu-clock", "--output"]).arg(directory.join(name));
    perf.arg("--").arg(program);
    Ok(perf)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Load;
    use sutura_benches::stack::Name;

    #[test]
    fn names_have_nothing_that_a_shell_reads() {
        let load = Load::Requests { at_once: 1 };
        let name = name(&Name::S2nQuic.into(), &load, Some(1452));
        assert_eq!(name, "s2n-quic-tuned-requests-one-after-another-1452.data");
    }
}
