//! Giving up root, for tunnels that are started by root without a service manager that does it.

use std::ffi::CString;
use std::io;

use nix::unistd::{Uid, User, initgroups, setresgid, setresuid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, set_capabilities, set_keep_capabilities, set_no_new_privs,
};

use crate::failure::Failure;

#[derive(Debug, clap::Args)]
pub struct UserArgs {
    /// Begin as root, and go on as this user, with no more rights than --tun and ports below 1024 need
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

impl Needs {
    fn capabilities(self) -> CapabilitySet {
        let mut set = CapabilitySet::empty();
        set.set(CapabilitySet::NET_ADMIN, self.device);
        set.set(CapabilitySet::NET_BIND_SERVICE, self.low_ports);
        set
    }
}

impl UserArgs {
    /// Becomes the user, if there is one, for good. The rights are those of the calling thread and of threads that it
    /// starts, so this comes before all others.
    ///
    /// # Errors
    /// There is no such user, or this is not root.
    pub fn give_up_root(&self, needs: Needs) -> Result<(), Failure> {
        let Some(name) = &self.user else { return Ok(()) };
        if !Uid::effective().is_root() {
            return Err(Failure::usage("--user: only root can go on as another user"));
        }
        let known = User::from_name(name)
            .map_err(|error| Failure::local(format!("--user {name}: {error}")))?;
        let user =
            known.ok_or_else(|| Failure::usage(format!("--user: there is no user {name}")))?;
        become_user(&user, needs)
            .map_err(|error| Failure::local(format!("cannot go on as {name}: {error}")))
    }
}

fn become_user(user: &User, needs: Needs) -> io::Result<()> {
    set_keep_capabilities(true)?;
    initgroups(&CString::new(&*user.name)?, user.gid)?;
    setresgid(user.gid, user.gid, user.gid)?;
    setresuid(user.uid, user.uid, user.uid)?;
    let rights = needs.capabilities();
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
