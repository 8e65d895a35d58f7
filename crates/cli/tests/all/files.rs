//! The places that `get` writes to, and the files that `serve` shows.

use std::fs;
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::*;

fn make_fifo(path: &Path) {
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
}

/// A server of one file, its URL, the content, and a directory to write to.
fn server() -> (Scratch, Listening, String, Vec<u8>, std::path::PathBuf) {
    let (scratch, site, out) = Scratch::with_site();
    let data = noise(300_000);
    fs::write(site.join("data"), &data).unwrap();
    let server = Listening::serve(&site, &scratch, &[]);
    let url = server.url("/data");
    (scratch, server, url, data, out)
}

/// `sutura get` into a place.
fn get_to(place: &Path, url: &str) -> Command {
    let mut command = sutura(["get", "--insecure", url, "--out"]);
    command.arg(place);
    command
}

#[test]
fn a_response_goes_through_pipes_and_devices() {
    let (_scratch, _server, url, data, out) = server();
    let (pipe, link) = (out.join("pipe"), out.join("link"));
    make_fifo(&pipe);
    symlink("pipe", &link).unwrap();
    for place in [&pipe, &link] {
        // The client waits for a reader.
        let client = Process::spawn(get_to(place, &url));
        let mut received = Vec::new();
        fs::File::open(&pipe).unwrap().read_to_end(&mut received).unwrap();
        success(&client.output());
        assert!(received == data);
    }
    assert!(fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo());
    // A pipe whose reader goes.
    let client = Process::spawn(get_to(&pipe, &url));
    drop(fs::File::open(&pipe).unwrap());
    let text = complaint(&client.output(), 3);
    assert!(text.contains("nobody reads it any more"), "{text}");
    success(&Process::spawn(get_to(Path::new("/dev/null"), &url)).output());
    assert!(fs::symlink_metadata("/dev/null").unwrap().file_type().is_char_device());
    let full = Path::new("/dev/full");
    if full.exists() {
        let text = complaint(&Process::spawn(get_to(full, &url)).output(), 3);
        assert!(text.contains("cannot write /dev/full: "), "{text}");
    }
    let output = Process::spawn(get_to(Path::new("/dev/stdout"), &url)).output();
    success(&output);
    assert!(output.stdout == data);
    assert_eq!(names(&out), ["link", "pipe"]);
}

#[test]
fn a_response_goes_behind_symbolic_links() {
    let (_scratch, _server, url, data, out) = server();
    let (file, link) = (out.join("file"), out.join("link"));
    symlink("file", &link).unwrap();
    fs::write(&file, "old").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    success(&Process::spawn(get_to(&link, &url)).output());
    assert!(fs::read(&file).unwrap() == data);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
    fs::remove_file(&file).unwrap();
    success(&Process::spawn(get_to(&link, &url)).output());
    assert!(fs::read(&file).unwrap() == data);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(names(&out), ["file", "link"]);
    // A failed request does not touch its file.
    fs::write(&file, "old").unwrap();
    let none = url.replace("/data", "/none");
    complaint(&Process::spawn(get_to(&link, &none)).output(), 7);
    assert_eq!(fs::read(&file).unwrap(), b"old");
}

/// A command of a user who is not root, to whom permissions matter. The command is run from a copy, as other
/// users may not be permitted to reach the original.
fn unprivileged(scratch: &Scratch, command: Command) -> Command {
    if !rustix::process::geteuid().is_root() {
        return command;
    }
    let copy = scratch.path().join("sutura");
    fs::copy(env!("CARGO_BIN_EXE_sutura"), &copy).unwrap();
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let mut other = Command::new(copy);
    other.args(command.get_args()).stdin(Stdio::null());
    other.stdout(Stdio::piped()).stderr(Stdio::piped()).uid(65_534).gid(65_534);
    other
}

#[test]
fn permissions_are_respected_and_explained() {
    let (scratch, _server, url, data, out) = server();
    let (open, shut) = (out.join("open"), out.join("shut"));
    for (path, mode) in [(&open, 0o666), (&shut, 0o444)] {
        fs::write(path, "old").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    let go = |place: &Path| Process::spawn(unprivileged(&scratch, get_to(place, &url))).output();
    // The file may be written, though no file may be created beside it.
    fs::set_permissions(&out, fs::Permissions::from_mode(0o555)).unwrap();
    success(&go(&open));
    assert!(fs::read(&open).unwrap() == data);
    let text = complaint(&go(&out.join("new")), 3);
    let directory = out.display();
    assert!(text.contains(&format!("no permission to create files in {directory}")), "{text}");
    let text = complaint(&go(&shut), 3);
    assert!(text.contains("no permission to write it"), "{text}");
    // Nor is a file replaced that may not be written.
    fs::set_permissions(&out, fs::Permissions::from_mode(0o777)).unwrap();
    complaint(&go(&shut), 3);
    assert_eq!(fs::read(&shut).unwrap(), b"old");
    let text = complaint(&go(&out.join("none/new")), 3);
    assert!(text.contains(&format!("the directory {directory}/none does not exist")), "{text}");
    assert_eq!(names(&out), ["open", "shut"]);
}

#[test]
fn hidden_files_are_not_served() {
    let (scratch, site, out) = Scratch::with_site();
    for directory in [".git", ".well-known/acme", "a/.b"] {
        fs::create_dir_all(site.join(directory)).unwrap();
    }
    for file in [".env", ".git/config", ".git/index.html", "a/.b/c", ".well-known/acme/x"] {
        fs::write(site.join(file), "secret").unwrap();
    }
    // As mounted from Kubernetes: a name without a dot leads through a name with a dot.
    symlink(".git/config", site.join("shown")).unwrap();
    let server = Listening::serve(&site, &scratch, &[]);
    for path in ["/.env", "/%2eenv", "/.git/config", "/.git/", "/.git", "/a/.b/c", "/a/%2Eb/c"] {
        let output = Process::spawn(get(&server, &[server.url(path)], &out, &[])).output();
        let text = complaint(&output, 7);
        assert!(text.contains("status 404"), "{path}: {text}");
    }
    let urls = ["/.well-known/acme/x", "/shown"].map(|path| server.url(path));
    get_report(&server, &urls, &out, &[]);
    assert_eq!(names(&out), ["shown", "x"]);
}

#[test]
fn by_default_a_server_is_reached_at_all_addresses_and_says_so() {
    let (scratch, site, out) = Scratch::with_site();
    fs::write(site.join("data"), "data").unwrap();
    // The default names a port only; the port here is free.
    let mut command = sutura(["serve", "--listen", "0", "--json", "--state-dir"]);
    command.arg(scratch.dir("state")).arg(&site);
    let server = Listening::spawn(command);
    let port = &server.hello["port"];
    let mut hosts = vec!["127.0.0.1"];
    if cfg!(target_os = "linux") {
        hosts.push("127.0.0.2");
    }
    if server.address.starts_with("[::]") {
        hosts.push("[::1]");
    } else {
        assert!(server.address.starts_with("0.0.0.0:"), "{}", server.address);
    }
    for host in hosts {
        get_report(&server, &[format!("https://{host}:{port}/data")], &out, &[]);
    }
    let help = success(&run(["serve", "--help"]));
    assert!(help.contains("everybody who reaches this machine") && help.contains("4433"), "{help}");
    let mut command = sutura(["serve", "--listen", ":0", "--state-dir"]);
    command.arg(scratch.dir("state")).arg(&site);
    let mut server = Process::spawn(command);
    let mut said = String::new();
    let mut out = server.take_stdout();
    wait_until("the greeting", || {
        let mut byte = [0];
        out.read_exact(&mut byte).unwrap();
        said.push(byte[0].into());
        said.ends_with("\nfingerprint ")
    });
    assert!(said.contains("\nlistening on port ") && said.contains(" of all "), "{said}");
}
