//! Hands flows over to the process that follows, through the supervisor's store of descriptors (systemd's
//! `FileDescriptorStoreMax=`): the socket of each, and one file in memory with their states.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, IntoInnerError, Read, Seek, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::net::sockopt::socket_cookie;
use sd_notify::{NotifyState, notify, notify_with_fds};
use sutura_tunnel::server::{FlowAtRest, MAX_FLOW_STATE};
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::output;
use crate::passed::Stored;

/// The name of the sockets in the store.
const SOCKET: &str = "sutura-flow";
/// The name of the file of states.
const STATES: &str = "sutura-flows";
/// The names in the store of what [`read`] wants.
pub const NAMES: [&str; 2] = [SOCKET, STATES];
/// How the file begins. What follows is, for each flow, the number by which the kernel knows its socket (SO_COOKIE, 8
/// bytes), the length of its state (4 bytes), and the state.
const MAGIC: &[u8] = b"sutura flows 1\n";
/// Bytes before a state.
const HEAD: u64 = 12;
/// Most flows that are handed over: their names come to the next process in one variable, which has 128 KiB at most.
const MAX_FLOWS: usize = 8192;
/// Longest file of states, in bytes. It is held in memory beside what the flows keep.
const MAX_STATES: u64 = 256 << 20;
/// Sockets in one message to the supervisor. The kernel permits 253.
const MAX_IN_MESSAGE: usize = 128;
/// How long the supervisor may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Whether there is a supervisor that may store descriptors. That it does not is found out by the next process.
pub fn is_possible() -> bool {
    std::env::var_os("NOTIFY_SOCKET").is_some() && places() > 0
}

/// How many descriptors the supervisor stores: systemd says so since version 254.
fn places() -> usize {
    let told = std::env::var("FDSTORE").ok().and_then(|places| places.parse().ok());
    told.unwrap_or(MAX_FLOWS + 1)
}

/// Leaves flows with the supervisor, and says how many. Those that find no place there are reset.
pub async fn store(flows: Vec<FlowAtRest>) {
    let all = flows.len();
    if all == 0 {
        return;
    }
    let (done, stored) = oneshot::channel();
    // The supervisor may keep it waiting. A thread of its own ends with the process in any case.
    std::thread::spawn(move || done.send(try_store(flows)));
    match timeout(PATIENCE, stored).await {
        Ok(Ok(Ok(stored))) => {
            output::note(&format!("flows left for the next process: {stored}"));
            if stored < all {
                let rest = all - stored;
                output::complain(&format!(
                    "flows that are reset, as there is no more room (FileDescriptorStoreMax=, \
                     {MAX_FLOWS} flows, {} MiB): {rest}",
                    MAX_STATES >> 20
                ));
            }
        }
        Ok(Ok(Err(error))) => {
            output::complain(&format!("flows that cannot be handed over are reset: {error}"));
        }
        Ok(Err(_)) | Err(_) => output::complain("the supervisor does not take all flows"),
    }
}

fn try_store(flows: Vec<FlowAtRest>) -> io::Result<usize> {
    let most = places().saturating_sub(1).min(MAX_FLOWS);
    // What an earlier process may have left.
    forget()?;
    let (states, sockets) = write(flows, most)?;
    leave(STATES, &[states.as_fd()])?;
    for some in sockets.chunks(MAX_IN_MESSAGE) {
        let some: Vec<BorrowedFd<'_>> = some.iter().map(AsFd::as_fd).collect();
        leave(SOCKET, &some)?;
    }
    Ok(sockets.len())
}

fn leave(name: &str, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    // Without the second line, systemd would drop the socket of a flow of which both ends have said their last word,
    // though some of that is still to be carried.
    let message =
        [NotifyState::FdStore, NotifyState::Custom("FDPOLL=0"), NotifyState::FdName(name)];
    notify_with_fds(&message, descriptors)
}

/// Has the supervisor close its copies.
fn forget() -> io::Result<()> {
    NAMES
        .iter()
        .try_for_each(|name| notify(&[NotifyState::FdStoreRemove, NotifyState::FdName(name)]))
}

/// Writes the states of as many flows as there is room for, and returns their sockets.
fn write(flows: Vec<FlowAtRest>, most: usize) -> io::Result<(File, Vec<TcpStream>)> {
    let (mut states, mut sockets) = (States::new()?, Vec::new());
    for flow in flows {
        if sockets.len() < most
            && let Some((socket, state)) = flow.into_parts()
            && states.add(socket_cookie(&socket)?, &state)?
        {
            sockets.push(socket);
        }
    }
    Ok((states.seal()?, sockets))
}

/// The file of states, while it is written.
struct States {
    file: BufWriter<File>,
    room: u64,
}

impl States {
    fn new() -> io::Result<Self> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let mut file = BufWriter::new(File::from(memfd_create(STATES, flags)?));
        file.write_all(MAGIC)?;
        Ok(Self { file, room: MAX_STATES - MAGIC.len() as u64 })
    }

    /// Adds the state of the flow whose socket has this number, if there is room.
    fn add(&mut self, cookie: u64, state: &[u8]) -> io::Result<bool> {
        let Some(room) = self.room.checked_sub(HEAD + state.len() as u64) else {
            return Ok(false);
        };
        self.room = room;
        self.file.write_all(&cookie.to_be_bytes())?;
        self.file.write_all(&(state.len() as u32).to_be_bytes())?;
        self.file.write_all(state)?;
        Ok(true)
    }

    /// The file, which nobody can change any more.
    fn seal(self) -> io::Result<File> {
        let file = self.file.into_inner().map_err(IntoInnerError::into_error)?;
        let all = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
        fcntl_add_seals(&file, all)?;
        Ok(file)
    }
}

/// Reads what an earlier process has stored under [`NAMES`]: the flows, and why not all are among them.
pub fn read(stored: Vec<Stored>) -> (Vec<FlowAtRest>, Vec<String>) {
    let (mut sockets, mut files) = (HashMap::new(), Vec::new());
    for (name, descriptor) in stored {
        if name == STATES {
            files.push(File::from(descriptor));
        } else if let Ok(cookie) = socket_cookie(&descriptor) {
            sockets.insert(cookie, TcpStream::from(descriptor));
        }
    }
    let (mut flows, mut complaints) = (Vec::new(), Vec::new());
    let mut failed = HashMap::<String, usize>::new();
    let mut fail = |why: String| *failed.entry(why).or_default() += 1;
    for file in files {
        let read = for_each_state(file, |cookie, state| {
            let Some(socket) = sockets.remove(&cookie) else {
                return fail("the supervisor has not stored them (FileDescriptorStoreMax=)".into());
            };
            match FlowAtRest::from_parts(socket, state.into()) {
                Ok(flow) => flows.push(flow),
                Err(error) => fail(format!("their state is not understood ({error})")),
            }
        });
        if let Err(error) = read {
            complaints.push(format!("what the earlier process has left is not usable: {error}"));
        }
    }
    if !sockets.is_empty() {
        failed.insert("their states are missing".into(), sockets.len());
    }
    complaints.extend(failed.into_iter().map(|(why, flows)| {
        format!("flows of the earlier process that are reset, as {why}: {flows}")
    }));
    (flows, complaints)
}

/// Has the supervisor forget what it has stored, as it is this process's now.
pub fn taken() {
    if let Err(error) = forget() {
        output::complain(&format!("the supervisor keeps the flows of before: {error}"));
    }
}

/// Calls a function with the number of each socket and the state of its flow.
///
/// # Errors
/// The file cannot be read, or does not go on as it must. What was read before that is right.
fn for_each_state(mut file: File, mut each: impl FnMut(u64, Vec<u8>)) -> io::Result<()> {
    let damaged = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why.to_owned());
    // An attempt to start that has failed may have read it.
    file.rewind()?;
    let mut rest = file.metadata()?.len();
    if rest > MAX_STATES {
        return Err(damaged("it is too long"));
    }
    let mut file = BufReader::new(file);
    let mut magic = vec![0; MAGIC.len()];
    file.read_exact(&mut magic)?;
    if magic != MAGIC {
        return Err(damaged("another version has written it"));
    }
    rest = rest.saturating_sub(MAGIC.len() as u64);
    while rest > 0 {
        let (mut cookie, mut length) = ([0; 8], [0; 4]);
        file.read_exact(&mut cookie)?;
        file.read_exact(&mut length)?;
        let length = u32::from_be_bytes(length) as usize;
        if length > MAX_FLOW_STATE {
            return Err(damaged("it is damaged"));
        }
        let mut state = vec![0; length];
        file.read_exact(&mut state)?;
        rest = rest.saturating_sub(HEAD + length as u64);
        each(u64::from_be_bytes(cookie), state);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Numbers of sockets, and states.
    type Pairs = Vec<(u64, Vec<u8>)>;

    /// What is read of a file, also if it is damaged further on.
    fn pairs(file: &File) -> (Pairs, bool) {
        let mut all = Vec::new();
        let read = for_each_state(file.try_clone().unwrap(), |cookie, state| {
            all.push((cookie, state));
        });
        (all, read.is_ok())
    }

    fn written(all: &[(u64, Vec<u8>)]) -> File {
        let mut states = States::new().unwrap();
        all.iter().for_each(|(cookie, state)| assert!(states.add(*cookie, state).unwrap()));
        states.seal().unwrap()
    }

    fn file(bytes: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    fn bytes(all: &[(u64, Vec<u8>)]) -> Vec<u8> {
        let (mut file, mut bytes) = (written(all), Vec::new());
        file.rewind().unwrap();
        file.read_to_end(&mut bytes).unwrap();
        bytes
    }

    proptest! {
        #[test]
        fn states_there_and_back(all: Pairs) {
            let file = written(&all);
            // An attempt to start may fail, and the next one reads them again.
            prop_assert_eq!(pairs(&file), (all.clone(), true));
            prop_assert_eq!(pairs(&file), (all, true));
        }

        #[test]
        fn what_is_cut_is_an_error_and_what_stands_before_is_right(
            all: Pairs,
            cut: prop::sample::Index,
        ) {
            let whole = bytes(&all);
            let cut = cut.index(whole.len());
            let (some, is_whole) = pairs(&file(&whole[..cut]));
            prop_assert_eq!(&some[..], &all[..some.len()]);
            let ends = bytes(&some).len() == cut;
            prop_assert_eq!(is_whole, ends);
        }

        #[test]
        fn garbage_is_an_error(garbage: Vec<u8>) {
            prop_assert_eq!(pairs(&file(&garbage)), (Vec::new(), false));
            let _ = pairs(&file(&[MAGIC, &garbage].concat()));
        }
    }

    #[test]
    fn a_file_of_states_cannot_be_changed() {
        let mut file = written(&[(7, b"state".to_vec())]);
        assert!(file.write_all(b"x").is_err() && file.set_len(0).is_err());
    }

    #[test]
    fn states_beyond_the_bounds_are_left_out_or_refused() {
        let mut states = States::new().unwrap();
        states.room = HEAD + 5;
        let added: Vec<bool> =
            [6, 5, 0].iter().map(|&size| states.add(1, &vec![0; size]).unwrap()).collect();
        assert_eq!(added, [false, true, false]);
        let length = (MAX_FLOW_STATE as u32 + 1).to_be_bytes();
        let long = [MAGIC, &[0; 8], &length, &vec![0; MAX_FLOW_STATE + 1]].concat();
        assert_eq!(pairs(&file(&long)), (Vec::new(), false));
        let huge = file(MAGIC);
        huge.set_len(MAX_STATES + 1).unwrap();
        assert_eq!(pairs(&huge), (Vec::new(), false));
    }

    #[test]
    fn what_is_left_without_states_is_reset_and_told() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (flows, complaints) = read(vec![(SOCKET, socket.into())]);
        assert!(flows.is_empty());
        assert!(complaints[0].contains("states are missing"), "{complaints:?}");
        let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let cookie = socket_cookie(&socket).unwrap();
        let states = written(&[(cookie, vec![9; 40]), (cookie + 1, vec![9; 40])]);
        let (flows, told) = read(vec![(SOCKET, socket.into()), (STATES, states.into())]);
        let told = told.join("\n");
        assert!(flows.is_empty());
        assert!(told.contains("another version") && told.contains("not stored them"), "{told}");
    }
}
