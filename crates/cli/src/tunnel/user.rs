//! Giving up root, for tunnels that are started by root without a service manager that does it.

use crate::failure::Failure;

#[derive(Debug, clap::Args)]
pub struct UserArgs {
    /// Begin as root, and go on as this user, with no more rights than --tun and ports below 1024 need (Linux)
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
}

/// What a tunnel still needs root's rights for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needs {
    /// A TUN device, and routes to it.
    pub device: bool,
    /// Ports below 1024.
    pub low_ports: bool,
}

/// Whether only root may listen at a port, which may be 0 for any.
pub fn is_low(port: u16) -> bool {
    (1..1024).contains(&port)
}

impl UserArgs {
    /// Becomes the user, if there is one, for good. The rights are those of the calling thread and of threads that it
    /// starts, so this comes before all others.
    ///
    /// # Errors
    /// There is no such user, or this is not root, or not Linux.
    pub fn give_up_root(&self, needs: Needs) -> Result<(), Failure> {
        self.user.as_ref().map_or(Ok(()), |name| become_user(name, needs))
    }
}

#[cfg(target_os = "linux")]
use linux::become_user;

#[cfg(not(target_os = "linux"))]
fn become_user(_: &str, _: Needs) -> Result<(), Failure> {
    Err(Failure::usage("--user: only Linux has rights that can be kept without root"))
}

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::CString;
    use std::io;

    use nix::unistd::{Uid, User, initgroups, setresgid, setresuid};
    use rustix::thread::{
        CapabilitySet, CapabilitySets, set_capabilities, set_keep_capabilities, set_no_new_privs,
    };

    use super::Needs;
    use crate::failure::Failure;

    pub(super) fn become_user(name: &str, needs: Needs) -> Result<(), Failure> {
        if !Uid::effective().is_root() {
            return Err(Failure::usage("--user: only root can go on as another user"));
        }
        let known = User::from_name(name)
            .map_err(|error| Failure::local(format!("--user {name}: {error}")))?;
        let user =
            known.ok_or_else(|| Failure::usage(format!("--user: there is no user {name}")))?;
        change_to(&user, needs.rights())
            .map_err(|error| Failure::local(format!("cannot go on as {name}: {error}")))
    }

    impl Needs {
        fn rights(self) -> CapabilitySet {
            let mut set = CapabilitySet::empty();
            set.set(CapabilitySet::NET_ADMIN, self.device);
            set.set(CapabilitySet::NET_BIND_SERVICE, self.low_ports);
            set
        }
    }

    fn change_to(user: &User, rights: CapabilitySet) -> io::Result<()> {
        set_keep_capabilities(true)?;
        initgroups(&CString::new(&*user.name)?, user.gid)?;
        setresgid(user.gid, user.gid, user.gid)?;
        setresuid(user.uid, user.uid, user.uid)?;
        let sets = CapabilitySets {
            effective: rights,
            permitted: rights,
            inheritable: CapabilitySet::empty(),
        };
        set_capabilities(None, sets)?;
        set_keep_capabilities(false)?;
        // No program that is run gets more.
        Ok(set_no_new_privs(true)?)
    }
}
