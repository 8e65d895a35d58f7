//! A supervisor with a store of descriptors, as systemd is one.

use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

use super::{Listening, Scratch, pass, wait_until};

type Stored = Vec<(String, OwnedFd)>;

/// Most descriptors in a message.
const MAX_DESCRIPTORS: usize = 253;

/// Keeps what processes store, and passes it to the next.
#[derive(Debug)]
pub struct Supervisor {
    path: PathBuf,
    stored: Arc<Mutex<Stored>>,
}

impl Supervisor {
    /// One that stores so many descriptors.
    pub fn start(scratch: &Scratch, most: usize) -> Self {
        let path = scratch.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        let stored = Arc::<Mutex<Stored>>::default();
        let store = stored.clone();
        thread::spawn(move || {
            while let Some((text, descriptors)) = receive(&socket) {
                act(&mut store.lock().unwrap(), most, &text, descriptors);
            }
        });
        Self { path, stored }
    }

    fn stored(&self) -> MutexGuard<'_, Stored> {
        self.stored.lock().unwrap()
    }

    /// Waits until what is stored has these names, which are in their order.
    pub fn wait_for(&self, names: &[&str]) {
        wait_until("the supervisor", || {
            let mut stored: Vec<String> =
                self.stored().iter().map(|(name, _)| name.clone()).collect();
            stored.sort();
            stored == names
        });
    }

    /// Puts something else in the place of what has a name.
    pub fn replace(&self, name: &str, descriptor: OwnedFd) {
        let mut stored = self.stored();
        let place = stored.iter_mut().find(|(known, _)| known == name).unwrap();
        place.1 = descriptor;
    }

    /// Starts a command with these descriptors and those that are stored.
    pub fn spawn(&self, mut command: Command, more: &[(BorrowedFd<'_>, &str)]) -> Listening {
        command.env("NOTIFY_SOCKET", &self.path);
        let stored = self.stored();
        let stored = stored.iter().map(|(name, descriptor)| (descriptor.as_fd(), name.as_str()));
        let passed: Vec<(BorrowedFd<'_>, &str)> = more.iter().copied().chain(stored).collect();
        let (command, kept) = pass(&command, &passed);
        let listening = Listening::spawn(command);
        drop(kept);
        listening
    }
}

/// Waits for a message.
fn receive(socket: &UnixDatagram) -> Option<(String, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut text = vec![0; 4096];
    let read = &mut [IoSliceMut::new(&mut text)];
    let received = recvmsg(socket, read, &mut ancillary, RecvFlags::CMSG_CLOEXEC).ok()?;
    let mut descriptors = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    text.truncate(received.bytes);
    Some((String::from_utf8(text).unwrap(), descriptors))
}

/// Does what a message says; see sd_notify(3).
fn act(stored: &mut Stored, most: usize, text: &str, descriptors: Vec<OwnedFd>) {
    let name = text.lines().find_map(|line| line.strip_prefix("FDNAME=")).unwrap_or("stored");
    let says = |what: &str| text.lines().any(|line| line == what);
    if says("FDSTOREREMOVE=1") {
        stored.retain(|(known, _)| known != name);
    } else if says("FDSTORE=1") {
        assert!(says("FDPOLL=0"), "systemd would drop sockets of which both directions have ended");
        let room = most.saturating_sub(stored.len());
        stored.extend(descriptors.into_iter().take(room).map(|each| (name.to_owned(), each)));
    }
}
