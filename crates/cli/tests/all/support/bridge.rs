//! Both ends of `sutura vnc`.

use std::process::Command;

use super::screen::{Screen, right_answer};
use super::watcher::Watcher;
use super::{Listening, Scratch, sutura};

/// The end beside a server, which listens at an address.
pub fn serve_at(listen: &str, to: &str, scratch: &Scratch, more: &[&str]) -> Listening {
    let mut command = sutura(["vnc", "serve", "--json", "--listen", listen, "--to", to]);
    command.arg("--state-dir").arg(scratch.dir("state")).args(more);
    Listening::spawn(command)
}

pub fn serve(screen: &Screen, scratch: &Scratch, more: &[&str]) -> Listening {
    serve_at("127.0.0.1:0", &screen.address, scratch, more)
}

/// A screen, the directory of its end, and both ends.
pub fn bridged(width: u16, height: u16, more: &[&str]) -> (Screen, Scratch, Listening, Listening) {
    let (screen, scratch) = (Screen::start(width, height, false), Scratch::new());
    let server = serve(&screen, &scratch, more);
    let bridge = connect(&server, &[]);
    (screen, scratch, server, bridge)
}

/// A viewer that has seen the screen.
pub fn watch(bridge: &Listening, screen: &Screen) -> Watcher {
    let viewer = Watcher::start(&bridge.address, right_answer());
    viewer.wait_for(screen);
    viewer
}

/// The command of an end beside viewers.
pub fn bridge(address: &str, arguments: &[&str]) -> Command {
    bridge_at("127.0.0.1:0", address, arguments)
}

/// The same, which viewers find at an address.
fn bridge_at(listen: &str, address: &str, arguments: &[&str]) -> Command {
    let mut command = sutura(["vnc", "connect", address, "--json", "--listen", listen]);
    command.args(arguments);
    command
}

/// A link to the server that loses a tenth of what is sent.
pub fn lossy(server: &Listening) -> Listening {
    let mut link = sutura(["link", "--listen", "127.0.0.1:0", "--json", "--to", &server.address]);
    link.args(["--profile", "delay=5ms loss=bern:0.1", "--seed", "3"]);
    Listening::spawn(link)
}

/// The end beside viewers, which reaches the other end at an address.
pub fn connect_at(address: &str, server: &Listening, more: &[&str]) -> Listening {
    connect_on("127.0.0.1:0", address, server, more)
}

/// The same, which viewers find at an address.
pub fn connect_on(listen: &str, address: &str, server: &Listening, more: &[&str]) -> Listening {
    let mut command = bridge_at(listen, address, &[]);
    command.args(["--fingerprint", server.fingerprint()]);
    command.env("SUTURA_VNC_TOKEN", server.hello["token"].as_str().unwrap_or_default()).args(more);
    Listening::spawn(command)
}

pub fn connect(server: &Listening, more: &[&str]) -> Listening {
    connect_at(&server.address, server, more)
}
