//! Support for the tests of the command: directories, processes, and timeouts.

pub mod bridge;
pub mod screen;
pub mod scripted;
pub mod supervisor;
pub mod tls_door;
pub mod upstream;
pub mod watcher;
pub mod web;
pub mod wire;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// When a test counts as hanging. Nothing takes this long on any machine.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// A directory that is removed when the test ends.
#[derive(Debug)]
pub struct Scratch(TempDir);

impl Scratch {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// A new directory with one subdirectory to serve and one for fetched files.
    pub fn with_site() -> (Self, PathBuf, PathBuf) {
        let scratch = Self::new();
        let (site, out) = (scratch.dir("site"), scratch.dir("out"));
        (scratch, site, out)
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// A subdirectory.
    pub fn dir(&self, name: &str) -> PathBuf {
        let path = self.path().join(name);
        fs::create_dir_all(&path).unwrap();
        path
    }
}

/// The names in a directory, including hidden ones.
pub fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> =
        entries.map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Creates a file of zeros that takes hours to send at the rates of these tests, and exceeds every
/// buffer on the way.
pub fn endless(path: &Path) {
    fs::File::create(path).unwrap().set_len(4 << 30).unwrap();
}

/// Whether a file has begun to arrive and still has its temporary name.
pub fn has_partial(directory: &Path) -> bool {
    let partial = names(directory).into_iter().find(|name| name.ends_with(".part"));
    partial.is_some_and(|name| {
        fs::metadata(directory.join(name)).is_ok_and(|metadata| metadata.len() > 0)
    })
}

/// Bytes without short repetitions.
pub fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    })
    .take(length)
    .collect()
}

/// The command under test, not started yet.
pub fn sutura<I, S>(args: I) -> Command
where
    I: IntoIterator<Item = S>,
    S: AsRef<std::ffi::OsStr>,
{
    let mut command = Command::new(env!("CARGO_BIN_EXE_sutura"));
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs the command to its end.
pub fn run<I, S>(args: I) -> Output
where
    I: IntoIterator<Item = S>,
    S: AsRef<std::ffi::OsStr>,
{
    let process = Process::spawn(sutura(args));
    process.output()
}

/// Asserts that the command exited with `code` and one line on standard error, and returns the
/// line.
pub fn complaint(output: &Output, code: i32) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{text}");
    assert_eq!(text.trim_end().lines().count(), 1, "{text}");
    assert!(text.starts_with("sutura: "), "{text}");
    text
}

/// Asserts that the command succeeded, and returns its standard output.
pub fn success(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{text}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A process that is killed when the test ends.
#[derive(Debug)]
pub struct Process {
    child: Option<Child>,
}

impl Process {
    pub fn spawn(mut command: Command) -> Self {
        Self { child: Some(command.spawn().unwrap()) }
    }

    fn child(&mut self) -> &mut Child {
        self.child.as_mut().unwrap()
    }

    pub fn id(&mut self) -> u32 {
        self.child().id()
    }

    pub fn take_stdout(&mut self) -> ChildStdout {
        self.child().stdout.take().unwrap()
    }

    pub fn take_stderr(&mut self) -> ChildStderr {
        self.child().stderr.take().unwrap()
    }

    pub fn signal(&mut self, signal: Signal) {
        let pid = Pid::from_child(self.child());
        kill_process(pid, signal).unwrap();
    }

    /// Waits for the process to end.
    pub fn output(mut self) -> Output {
        let child = self.child.take().unwrap();
        let pid = Pid::from_child(&child);
        let (done, watched) = std::sync::mpsc::channel::<()>();
        let watchdog = std::thread::spawn(move || {
            let late = watched.recv_timeout(PATIENCE).is_err();
            if late {
                let _ = kill_process(pid, Signal::KILL);
            }
            late
        });
        let output = child.wait_with_output().unwrap();
        let _ = done.send(());
        assert!(!watchdog.join().unwrap(), "the command does not end");
        output
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Waits until a condition holds.
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "waiting for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A command that announces its address in a line of JSON.
#[derive(Debug)]
pub struct Listening {
    pub process: Process,
    pub address: String,
    pub hello: Value,
    out: BufReader<ChildStdout>,
}

impl Listening {
    pub fn spawn(command: Command) -> Self {
        let mut process = Process::spawn(command);
        let mut out = BufReader::new(process.take_stdout());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        let hello: Value = serde_json::from_str(&line).unwrap_or_else(|e| {
            let mut complaint = String::new();
            let _ = process.take_stderr().read_to_string(&mut complaint);
            panic!("{e}: {line}{complaint}")
        });
        let address = hello["listening"].as_str().unwrap().to_owned();
        Self { process, address, hello, out }
    }

    /// `sutura serve` of a directory on loopback.
    pub fn serve(directory: &Path, scratch: &Scratch, more: &[&str]) -> Self {
        Self::serve_with(&scratch.dir("state"), directory, "127.0.0.1:0", more)
    }

    pub fn serve_with(state: &Path, directory: &Path, listen: &str, more: &[&str]) -> Self {
        let mut command = sutura(["serve", "--listen", listen, "--json", "--state-dir"]);
        command.arg(state).arg(directory).args(more);
        Self::spawn(command)
    }

    /// `sutura link` to a server on loopback.
    pub fn link(to: &Self, profile: &str) -> Self {
        let args = ["link", "--listen", "127.0.0.1:0", "--json", "--profile", profile, "--to"];
        let mut command = sutura(args);
        command.arg(&to.address);
        Self::spawn(command)
    }

    pub fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.address)
    }

    pub fn fingerprint(&self) -> &str {
        self.hello["fingerprint"].as_str().unwrap()
    }

    /// Ends the command as a supervisor does, and returns what it has said on standard error.
    pub fn terminate(mut self) -> String {
        self.process.signal(Signal::TERM);
        let output = self.process.output();
        String::from_utf8(output.stderr).unwrap()
    }

    /// Interrupts the command. Returns its output and the line of JSON that it ended with, if any.
    pub fn interrupt(mut self) -> (Output, Option<Value>) {
        self.process.signal(Signal::INT);
        let output = self.process.output();
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).unwrap();
        let last = rest.lines().last().map(|line| serde_json::from_str(line).unwrap());
        (output, last)
    }
}

/// `sutura get` from a server whose fingerprint is known, into a directory, with JSON output.
pub fn get(server: &Listening, urls: &[String], out: &Path, more: &[&str]) -> Command {
    let mut command = sutura(["get", "--json", "--fingerprint", server.fingerprint(), "--out"]);
    command.arg(out.join("")).args(urls).args(more);
    command
}

/// Runs a `get` with `--json` and returns its report.
pub fn get_report(server: &Listening, urls: &[String], out: &Path, more: &[&str]) -> Value {
    let output = Process::spawn(get(server, urls, out, more)).output();
    serde_json::from_str(&success(&output)).unwrap()
}

/// Whether any response of such a report was protected. Repair symbols would depend on how fast
/// this machine acknowledges; the data of protected streams comes as source symbols in any case.
/// A download of a file that does not end, over a slow link.
#[derive(Debug)]
pub struct Endless {
    pub scratch: Scratch,
    pub site: PathBuf,
    pub out: PathBuf,
    pub server: Listening,
    pub client: Process,
    _link: Listening,
}

impl Endless {
    /// Waits until it has begun.
    pub fn begun(profile: &str, more: &[&str]) -> Self {
        let (scratch, site, out) = Scratch::with_site();
        endless(&site.join("a.bin"));
        let server = Listening::serve(&site, &scratch, &[]);
        let link = Listening::link(&server, profile);
        let client = Process::spawn(get(&server, &[link.url("/a.bin")], &out, more));
        wait_until("the transfer to begin", || has_partial(&out));
        Self { scratch, site, out, server, client, _link: link }
    }
}

pub fn is_protected(report: &Value) -> bool {
    report["connections"][0]["fec"]["source_symbols_received"].as_u64() > Some(0)
}

/// A command to which descriptors are passed as systemd does, each with a name. They must be kept until it was started.
pub fn pass(command: &Command, passed: &[(BorrowedFd<'_>, &str)]) -> (Command, Vec<OwnedFd>) {
    // Far from those that systemd uses, so that none is closed before it was copied to its place.
    const FIRST: i32 = 200;
    let copy = |(descriptor, _): &(BorrowedFd<'_>, _)| {
        let copy = fcntl_dupfd_cloexec(descriptor, FIRST).unwrap();
        fcntl_setfd(&copy, FdFlags::empty()).unwrap();
        copy
    };
    let copies: Vec<OwnedFd> = passed.iter().map(copy).collect();
    let moves = copies.iter().zip(3..).map(|(copy, place)| {
        let number = copy.as_raw_fd();
        format!("{place}<&{number} {number}<&-")
    });
    let moves: Vec<String> = moves.collect();
    let names: Vec<&str> = passed.iter().map(|(_, name)| *name).collect();
    let script = format!("export LISTEN_PID=$$; exec \"$@\" {}", moves.join(" "));
    let mut wrapped = Command::new("bash");
    wrapped.args(["-c", &script, "bash"]).arg(command.get_program()).args(command.get_args());
    wrapped.env("LISTEN_FDS", passed.len().to_string()).env("LISTEN_FDNAMES", names.join(":"));
    for (name, value) in command.get_envs() {
        wrapped.env(name, value.unwrap_or_default());
    }
    wrapped.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    (wrapped, copies)
}
