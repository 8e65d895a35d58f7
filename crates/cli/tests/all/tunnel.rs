//! `sutura tunnel` between programs.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::process::Command;
use std::thread;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::supervisor::Supervisor;
use crate::support::{Listening, Scratch, complaint, noise, run, sutura, wait_until};

/// A server that sends back what it gets, in each direction until its end.
fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    thread::spawn(move || {
        for tcp in listener.incoming() {
            let (mut from, mut to) = (tcp.as_ref().unwrap().try_clone().unwrap(), tcp.unwrap());
            thread::spawn(move || {
                let _ = std::io::copy(&mut from, &mut to);
                let _ = to.shutdown(Shutdown::Write);
            });
        }
    });
    at
}

/// The same for datagrams.
fn echo_udp() -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let at = socket.local_addr().unwrap();
    thread::spawn(move || {
        let mut buffer = [0; 2048];
        while let Ok((size, from)) = socket.recv_from(&mut buffer) {
            socket.send_to(&buffer[..size], from).unwrap();
        }
    });
    at
}

fn serve(scratch: &Scratch, more: &[&str]) -> Listening {
    serve_at("127.0.0.1:0", scratch, more)
}

fn serve_at(listen: &str, scratch: &Scratch, more: &[&str]) -> Listening {
    let mut command = sutura(["tunnel", "serve", "--json", "--listen", listen, "--state-dir"]);
    command.arg(scratch.dir("state")).args(more);
    Listening::spawn(command)
}

/// The other end, not started yet.
fn connect(server: &Listening, more: &[&str]) -> Command {
    let mut command = sutura(["tunnel", "connect", &server.address, "--json"]);
    command.args(["--fingerprint", server.fingerprint()]).args(more);
    command.env("SUTURA_TUNNEL_TOKEN", server.hello["token"].as_str().unwrap_or_default());
    command
}

/// Sends bytes and the end, and returns what comes back.
fn converse(mut tcp: TcpStream, bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut write = tcp.try_clone().unwrap();
    let bytes = bytes.to_vec();
    let sending = thread::spawn(move || {
        write.write_all(&bytes)?;
        write.shutdown(Shutdown::Write)
    });
    let mut back = Vec::new();
    tcp.read_to_end(&mut back)?;
    sending.join().unwrap()?;
    Ok(back)
}

/// The address at which a kind of programs come in.
fn port(end: &Listening, kind: &str) -> String {
    let ports = end.hello["ports"].as_array().unwrap();
    let port = ports.iter().find(|port| port["kind"] == kind).unwrap();
    port["listening"].as_str().unwrap().to_owned()
}

#[test]
fn programs_come_in_by_every_door() {
    let (scratch, target, udp) = (Scratch::new(), echo(), echo_udp());
    let audit = scratch.path().join("audit.jsonl");
    let audit_option = audit.to_str().unwrap();
    let server = serve(&scratch, &["--allow", "127.0.0.1:*", "--audit", audit_option]);
    let (forward, datagrams) = (format!("0:{target}"), format!("0:{udp}"));
    let options = ["-L", &forward, "-U", &datagrams, "-D", "0", "--http", "0"];
    let end = Listening::spawn(connect(&server, &options));
    let bytes = noise(300_000);
    let tcp = TcpStream::connect(port(&end, "local")).unwrap();
    assert!(converse(tcp, &bytes).unwrap() == bytes);

    let mut tcp = TcpStream::connect(port(&end, "http")).unwrap();
    tcp.write_all(format!("CONNECT {target} HTTP/1.1\r\n\r\n").as_bytes()).unwrap();
    let mut head = [0; 12];
    tcp.read_exact(&mut head).unwrap();
    assert_eq!(&head, b"HTTP/1.1 200");
    assert!(converse(tcp, b"x").unwrap().ends_with(b"\r\n\r\nx"));

    let mut tcp = TcpStream::connect(port(&end, "socks")).unwrap();
    tcp.write_all(b"\x05\x01\x00\x05\x01\x00\x01\x7f\0\0\x01").unwrap();
    tcp.write_all(&target.port().to_be_bytes()).unwrap();
    let mut reply = [0; 12];
    tcp.read_exact(&mut reply).unwrap();
    assert_eq!(&reply[..4], b"\x05\x00\x05\x00");
    assert_eq!(converse(tcp, b"y").unwrap(), b"y");

    let program = UdpSocket::bind("127.0.0.1:0").unwrap();
    program.send_to(b"datagram", port(&end, "udp")).unwrap();
    let mut buffer = [0; 100];
    let (size, _) = program.recv_from(&mut buffer).unwrap();
    assert_eq!(&buffer[..size], b"datagram");

    let (_, report) = end.interrupt();
    let tunnel = &report.unwrap()["tunnel"];
    assert_eq!((&tunnel["tcp"], &tunnel["udp"]), (&3.into(), &1.into()));
    let read = || std::fs::read_to_string(&audit).unwrap();
    wait_until("the records of all", || read().matches("\"ended\"").count() == 4);
    let first = read().lines().find(|line| line.contains("\"ended\"")).unwrap().to_owned();
    let first: Value = serde_json::from_str(&first).unwrap();
    assert_eq!(
        (&first["target"], &first["bytes_to_target"]),
        (&target.to_string().into(), &300_000.into())
    );
    assert_eq!((&first["client"], &first["complete"]), (&"client".into(), &true.into()));
}

/// Sutura's proxy has the well-known path, so that another one is not found.
#[test]
fn a_proxy_may_be_given_by_its_template() {
    let (scratch, udp) = (Scratch::new(), echo_udp());
    let server = serve(&scratch, &["--allow", "127.0.0.1:*"]);
    let at = |path: &str| {
        let template = format!("https://{}{path}", server.address);
        let mut command = sutura(["tunnel", "connect", &template, "--json"]);
        command.args(["--fingerprint", server.fingerprint(), "-U", &format!("0:{udp}")]);
        command.env("SUTURA_TUNNEL_TOKEN", server.hello["token"].as_str().unwrap());
        command
    };
    let end = Listening::spawn(at("/.well-known/masque/udp/{target_host}/{target_port}/"));
    let program = UdpSocket::bind("127.0.0.1:0").unwrap();
    program.send_to(b"datagram", &end.address).unwrap();
    let mut buffer = [0; 100];
    let (size, _) = program.recv_from(&mut buffer).unwrap();
    assert_eq!(&buffer[..size], b"datagram");

    let mut end = Listening::spawn(at("/masque{?target_host,target_port}"));
    program.send_to(b"datagram", &end.address).unwrap();
    let mut lines = BufReader::new(end.process.take_stderr()).lines();
    assert!(lines.any(|line| line.unwrap().contains("there is nothing at this path")));

    let template = "https://127.0.0.1/masque{?target_host}";
    let output = run(["tunnel", "connect", template, "-D", "0"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("the variables target_host and target_port"), "{said}");
}

#[test]
fn the_proxy_may_be_killed_and_started_again() {
    let (scratch, target) = (Scratch::new(), echo());
    let allow = ["--allow", "127.0.0.1:*"];
    let mut server = serve(&scratch, &allow);
    let end = Listening::spawn(connect(&server, &["-L", &format!("0:{target}")]));
    let mut old = TcpStream::connect(&end.address).unwrap();
    old.write_all(b"x").unwrap();
    let mut byte = [0];
    old.read_exact(&mut byte).unwrap();
    server.process.signal(Signal::KILL);
    let address = server.address.clone();
    drop(server);
    let _server = serve_at(&address, &scratch, &allow);
    // The flow of before is reset at once, and does not hang.
    assert_eq!(old.read(&mut byte).unwrap_err().kind(), ErrorKind::ConnectionReset);
    let tcp = TcpStream::connect(&end.address).unwrap();
    assert_eq!(converse(tcp, b"again").unwrap(), b"again");
}

#[test]
fn connections_to_the_proxy_come_to_this_side() {
    let (scratch, target) = (Scratch::new(), echo());
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let server = serve(&scratch, &["--allow-listen", "127.0.0.1:*"]);
    let backward = format!("{free}:{target}");
    let _end = Listening::spawn(connect(&server, &["-R", &backward, "-D", "0"]));
    let mut tcp = None;
    wait_until("the proxy to listen", || {
        tcp = TcpStream::connect(free).ok();
        tcp.is_some()
    });
    assert_eq!(converse(tcp.unwrap(), b"hello").unwrap(), b"hello");
}

#[test]
fn what_is_wrong_is_told() {
    let scratch = Scratch::new();
    let server = serve(&scratch, &["--allow", "*"]);
    let mut wrong = connect(&server, &["-D", "0"]);
    wrong.env("SUTURA_TUNNEL_TOKEN", "0123456789abcdef");
    let output = crate::support::Process::spawn(wrong).output();
    let text = complaint(&output, 5);
    assert!(text.contains("does not let us in") && text.contains("--token-file"), "{text}");
    let text = complaint(&run(["tunnel", "connect", "localhost"]), 2);
    assert!(text.contains("say -L, -R, -D, --http, -U or --tun"), "{text}");
    let output = run(["tunnel", "serve", "--allow", "10.0.0.0/99:22"]);
    assert_eq!(output.status.code(), Some(2));
}

/// What needs a device, and so root, is in `interop/tun.sh`.
#[test]
fn packets_are_refused_by_a_proxy_without_a_device() {
    let scratch = Scratch::new();
    let audit = scratch.path().join("audit.jsonl");
    let server = serve(&scratch, &["--allow", "*", "--audit", audit.to_str().unwrap()]);
    let config = scratch.path().join("tunnel.toml");
    std::fs::write(&config, "tun = true\nroute = [\"10.0.0.0/8\"]\n").unwrap();
    let command = connect(&server, &["--config", config.to_str().unwrap()]);
    let text = complaint(&crate::support::Process::spawn(command).output(), 5);
    assert!(text.contains("carries no IP packets (--tun"), "{text}");
    let read = || std::fs::read_to_string(&audit).unwrap();
    wait_until("the record", || read().contains("\"kind\":\"ip\""));
}

#[test]
fn options_for_packets_are_checked() {
    for (arguments, text) in [
        (vec!["tunnel", "serve", "--tun", "10.77.0.0/24"], "10.77.0.1/24"),
        (vec!["tunnel", "serve", "--tun-name", "tun9"], "--tun"),
        (vec!["tunnel", "connect", "localhost", "--route", "10.0.0.0/8"], "--tun"),
        (vec!["tunnel", "connect", "localhost", "--tun", "--route", "10.0.0.1/8"], "10.0.0.0/8"),
    ] {
        let output = run(arguments.clone());
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.contains(text), "{arguments:?}: {told}");
    }
    let scratch = Scratch::new();
    let mut command = sutura(["tunnel", "serve", "--tun", "10.77.0.1/24,10.78.0.1/24"]);
    command.arg("--state-dir").arg(scratch.dir("state"));
    let text = complaint(&crate::support::Process::spawn(command).output(), 2);
    assert!(text.contains("one network of each"), "{text}");
}

#[test]
fn options_come_from_a_file() {
    let (scratch, target) = (Scratch::new(), echo());
    let config = scratch.path().join("tunnel.toml");
    let tokens = scratch.path().join("tokens");
    std::fs::write(&tokens, "ann 0123456789abcdef\n").unwrap();
    let text = format!("allow = [\"127.0.0.1:*\"]\ntoken-file = {:?}\n", tokens.to_str().unwrap());
    std::fs::write(&config, text).unwrap();
    let server = serve(&scratch, &["--config", config.to_str().unwrap()]);
    let mut command = connect(&server, &["-L", &format!("0:{target}")]);
    command.env("SUTURA_TUNNEL_TOKEN", "0123456789abcdef");
    let end = Listening::spawn(command);
    let tcp = TcpStream::connect(&end.address).unwrap();
    assert_eq!(converse(tcp, b"hello").unwrap(), b"hello");
}

#[test]
fn files_are_fetched_through_the_proxy() {
    let (scratch, site, out) = Scratch::with_site();
    let big = noise(2_000_000);
    std::fs::write(site.join("big.bin"), &big).unwrap();
    let web = Listening::serve(&site, &scratch, &[]);
    let proxy = serve(&scratch, &["--allow", "udp/127.0.0.1:*", "--allow", "udp/localhost:*"]);
    let through = |fingerprint: &str, url: &str, token: &str| {
        let mut command = sutura(["get", "--proxy", &proxy.address]);
        command.args(["--proxy-fingerprint", fingerprint, "--fingerprint", web.fingerprint()]);
        command.args(["-v", "--out"]).args([&*out]).arg(url);
        command.env("SUTURA_TUNNEL_TOKEN", token);
        crate::support::Process::spawn(command).output()
    };
    let token = proxy.hello["token"].as_str().unwrap();
    let output = through(proxy.fingerprint(), &web.url("/big.bin"), token);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    assert!(told.contains("(through the proxy)"), "{told}");
    assert!(std::fs::read(out.join("big.bin")).unwrap() == big);
    // A name is the proxy's to resolve, and what is wrong is told by whoever knows it.
    let (elsewhere, nobody) = ("https://nowhere.invalid/", "00".repeat(32));
    for (fingerprint, url, token, expected) in [
        (proxy.fingerprint(), elsewhere, token, "(dns_error)"),
        (proxy.fingerprint(), "https://127.0.0.2:9/", token, "--allow"),
        (proxy.fingerprint(), elsewhere, "0123456789abcdef", "does not let us in"),
        (&*nobody, elsewhere, token, "not trusted"),
    ] {
        let text = complaint(&through(fingerprint, url, token), 5);
        assert!(text.contains("through the proxy") && text.contains(expected), "{text}");
    }
}

/// A proxy at a socket that a supervisor has opened, which gets what an earlier one has stored there.
fn supervised(supervisor: &Supervisor, socket: &UdpSocket, scratch: &Scratch) -> Listening {
    let mut command = sutura(["tunnel", "serve", "--json", "--allow", "127.0.0.1:*"]);
    command.arg("--state-dir").arg(scratch.dir("state"));
    supervisor.spawn(command, &[(socket.as_fd(), "sutura-tunnel.socket")])
}

#[test]
fn a_planned_restart_keeps_the_socket_and_the_flows() {
    let (scratch, target) = (Scratch::new(), echo());
    let supervisor = Supervisor::start(&scratch, 100);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let proxy = supervised(&supervisor, &socket, &scratch);
    assert_eq!(proxy.address, socket.local_addr().unwrap().to_string());
    let end = Listening::spawn(connect(&proxy, &["-L", &format!("0:{target}")]));
    let mut flow = TcpStream::connect(&end.address).unwrap();
    flow.write_all(b"x").unwrap();
    flow.read_exact(&mut [0]).unwrap();
    // A flow in the midst of its bytes, more than all buffers on the way have.
    let (mut busy, bytes) = (TcpStream::connect(&end.address).unwrap(), noise(48 << 20));
    let mut sending = busy.try_clone().unwrap();
    let whole = bytes.clone();
    let writing = thread::spawn(move || {
        sending.write_all(&whole).unwrap();
        sending.shutdown(Shutdown::Write).unwrap();
    });
    let mut back = vec![0; 4 << 20];
    busy.read_exact(&mut back).unwrap();

    let said = proxy.terminate();
    assert!(said.contains("flows left for the next process: 2"), "{said}");
    // What comes in the meantime waits in the sockets.
    supervisor.wait_for(&["sutura-flow", "sutura-flow", "sutura-flows"]);
    let proxy = supervised(&supervisor, &socket, &scratch);
    supervisor.wait_for(&[]);
    busy.read_to_end(&mut back).unwrap();
    writing.join().unwrap();
    assert!(back == bytes, "{} of {} bytes", back.len(), bytes.len());
    assert!(converse(flow, b"after").unwrap() == b"after");
    let tcp = TcpStream::connect(&end.address).unwrap();
    assert_eq!(converse(tcp, b"new").unwrap(), b"new");
    // Those that have ended are not handed over.
    let (_, report) = end.interrupt();
    let tunnel = &report.unwrap()["tunnel"];
    assert_eq!((&tunnel["resumed"], &tunnel["lost"]), (&2.into(), &0.into()));
    let said = proxy.terminate();
    assert!(said.contains("flows of the earlier process that wait for their clients: 2"), "{said}");
    supervisor.wait_for(&[]);
}

#[test]
fn flows_for_which_the_supervisor_has_no_room_are_reset() {
    let (scratch, target) = (Scratch::new(), echo());
    // The states and one flow.
    let supervisor = Supervisor::start(&scratch, 2);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let proxy = supervised(&supervisor, &socket, &scratch);
    let end = Listening::spawn(connect(&proxy, &["-L", &format!("0:{target}")]));
    let mut flows = Vec::new();
    for _ in 0..3 {
        let mut flow = TcpStream::connect(&end.address).unwrap();
        flow.write_all(b"x").unwrap();
        flow.read_exact(&mut [0]).unwrap();
        flows.push(flow);
    }
    let said = proxy.terminate();
    assert!(said.contains("flows left for the next process: 3"), "{said}");
    supervisor.wait_for(&["sutura-flow", "sutura-flows"]);
    let proxy = supervised(&supervisor, &socket, &scratch);
    let went_on = flows.into_iter().filter_map(|flow| converse(flow, b"y").ok());
    assert_eq!(went_on.collect::<Vec<_>>(), [b"y"]);
    let said = proxy.terminate();
    assert!(said.contains("stored them (FileDescriptorStoreMax=): 2"), "{said}");
}

#[test]
fn states_that_are_not_understood_are_told_and_the_proxy_starts() {
    let (scratch, target) = (Scratch::new(), echo());
    let supervisor = Supervisor::start(&scratch, 100);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let proxy = supervised(&supervisor, &socket, &scratch);
    let end = Listening::spawn(connect(&proxy, &["-L", &format!("0:{target}")]));
    let mut flow = TcpStream::connect(&end.address).unwrap();
    flow.write_all(b"x").unwrap();
    flow.read_exact(&mut [0]).unwrap();
    proxy.terminate();
    supervisor.wait_for(&["sutura-flow", "sutura-flows"]);
    let states = scratch.path().join("states");
    std::fs::write(&states, "sutura flows 0\nwhatever that was").unwrap();
    supervisor.replace("sutura-flows", std::fs::File::open(&states).unwrap().into());
    let proxy = supervised(&supervisor, &socket, &scratch);
    assert_eq!(flow.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    let tcp = TcpStream::connect(&end.address).unwrap();
    assert_eq!(converse(tcp, b"new").unwrap(), b"new");
    let said = proxy.terminate();
    assert!(said.contains("another version has written it"), "{said}");
    assert!(said.contains("states are missing: 1"), "{said}");
}

/// Begun by root, it goes on without its rights; begun by others, it says that it cannot.
#[cfg(target_os = "linux")]
#[test]
fn root_is_given_up_for_good() {
    let scratch = Scratch::new();
    let no_one = run(["tunnel", "serve", "--user", "no-such-user", "--listen", "127.0.0.1:0"]);
    let said = complaint(&no_one, 2);
    if !rustix::process::geteuid().is_root() {
        assert!(said.contains("only root can go on as another user"), "{said}");
        return;
    }
    assert!(said.contains("there is no user no-such-user"), "{said}");
    let state = scratch.dir("theirs");
    // They are to come to their directory.
    let passage = std::os::unix::fs::PermissionsExt::from_mode(0o711);
    std::fs::set_permissions(scratch.path(), passage).unwrap();
    if std::os::unix::fs::chown(&state, Some(65_534), Some(65_534)).is_err() {
        // A namespace of users has no other than root.
        return;
    }
    let mut command =
        sutura(["tunnel", "serve", "--listen", "127.0.0.1:0", "--json", "--allow", "*"]);
    command.args(["--user", "nobody", "--state-dir"]).arg(&state);
    let mut server = Listening::spawn(command);
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.process.id())).unwrap();
    let line = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim();
    assert_eq!(line("Uid:").split_whitespace().collect::<Vec<_>>(), ["65534"; 4]);
    for set in ["CapEff:", "CapPrm:", "CapAmb:"] {
        assert_eq!(u64::from_str_radix(line(set), 16).unwrap(), 0, "{set}");
    }
    assert_eq!(line("NoNewPrivs:"), "1");
}
