//! `sutura vnc` between a small RFB server and small viewers.

use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use crate::support::bridge::{bridge, bridged, connect, connect_at, lossy, serve, serve_at, watch};
use crate::support::screen::{Screen, right_answer};
use crate::support::watcher::Watcher;
use crate::support::{Listening, Process, Scratch, complaint, run, sutura, wait_until};
use sutura_vnc::Rect;
use sutura_vnc::rfb::{ClientMessage, Cursor};

/// Things that happen on a screen of 400x300 pixels.
fn happen(screen: &Screen, seed: u32) {
    let at = |salt: u32, limit: u32| {
        (seed.wrapping_mul(2_654_435_761).wrapping_add(salt * 977) >> 7) % limit
    };
    let rect = Rect::new(
        at(1, 300) as u16,
        at(2, 200) as u16,
        1 + at(3, 100) as u16,
        1 + at(4, 100) as u16,
    );
    match at(5, 4) {
        0 => screen.noise(rect, seed),
        1 => screen.copy(rect, Rect { x: at(6, 300) as u16, y: at(7, 200) as u16, ..rect }),
        _ => screen.fill(rect, seed & 0x00ff_ffff),
    }
}

#[test]
fn a_viewer_sees_the_screen_and_is_heard() {
    let (screen, _scratch, server, bridge) = bridged(400, 300, &[]);
    screen.fill(Rect::new(10, 20, 300, 200), 0x0012_3456);
    let viewer = watch(&bridge, &screen);
    assert_eq!(viewer.name(), "test desk");
    // Scrolling is a copy all the way.
    screen.noise(Rect::new(0, 0, 400, 300), 7);
    viewer.wait_for(&screen);
    let before = viewer.copies();
    screen.copy(Rect::new(0, 20, 400, 280), Rect::new(0, 0, 400, 280));
    viewer.wait_for(&screen);
    assert!(viewer.copies() > before);
    screen.resize(500, 100);
    screen.fill(Rect::new(450, 0, 50, 100), 0x00ff_ffff);
    viewer.wait_for(&screen);
    let (pixels, mask) = (vec![0x00ff_0000, 0], vec![true, false]);
    let cursor = Cursor { width: 2, height: 1, hotspot_x: 1, hotspot_y: 0, pixels, mask };
    screen.cursor(cursor.clone());
    viewer.wait_for_cursor(&cursor);
    screen.say(b"from the server");
    viewer.wait_for_text(b"from the server");
    screen.ring();
    viewer.wait_for_bells(1);
    let said = [
        ClientMessage::Key { down: true, keysym: 0x61 },
        ClientMessage::Key { down: false, keysym: 0x61 },
        ClientMessage::Pointer { buttons: 1, x: 30, y: 40 },
        ClientMessage::CutText((&b"from the \xe9iewer"[..]).into()),
    ];
    said.iter().for_each(|message| viewer.say(message));
    wait_until("what the viewer said", || screen.heard() == said);
    viewer.say(&ClientMessage::SetDesktopSize { width: 320, height: 240, screens: vec![] });
    wait_until("the new size", || screen.picture().bounds() == Rect::new(0, 0, 320, 240));
    viewer.wait_for(&screen);
    // When the viewer goes, the keys that it held down are released, and both ends report.
    drop(viewer);
    let (_, report) = bridge.interrupt();
    assert!(report.unwrap()["screen"]["pieces"].as_u64() > Some(0));
    let (_, report) = server.interrupt();
    assert!(report.unwrap()["screen"]["updates"].as_u64() > Some(0));
}

#[test]
fn the_picture_is_right_in_the_end_whatever_is_lost() {
    let (screen, scratch) = (Screen::start(400, 300, false), Scratch::new());
    let server = serve(&screen, &scratch, &["--quality", "50"]);
    let link = lossy(&server);
    let bridge = connect_at(&link.address, &server, &[]);
    let viewers = [(); 2].map(|()| Watcher::start(&bridge.address, [0; 16]));
    for seed in 0..200 {
        happen(&screen, seed);
        if seed % 10 == 0 {
            std::thread::sleep(Duration::from_millis(5));
        }
        if seed % 100 == 99 {
            viewers.iter().for_each(|viewer| viewer.wait_for(&screen));
        }
    }
    assert_eq!(screen.connections(), 2);
}

/// Each mark is one update of the whole screen, in a dozen pieces. Pieces of more than two of them are seen
/// at once if geometry alone orders them.
#[test]
fn fences_let_nobody_see_parts_of_three_updates() {
    for more in [&["--order", "fences"][..], &["--order", "fences", "--continuous-updates"]] {
        let (screen, scratch) = (Screen::start(200, 150, false), Scratch::new());
        let server = serve(&screen, &scratch, more);
        let link = lossy(&server);
        let bridge = connect_at(&link.address, &server, &[]);
        let viewer = watch(&bridge, &screen);
        for mark in 1..=60 {
            screen.mark(Rect::new(0, 0, 200, 150), mark);
            std::thread::sleep(Duration::from_millis(5));
        }
        viewer.wait_for(&screen);
        assert!(viewer.marks() <= 2, "{more:?}: {}", viewer.marks());
    }
}

#[test]
fn whoever_wants_updates_continuously_need_not_ask() {
    let (screen, _scratch, _server, bridge) = bridged(400, 300, &["--continuous-updates"]);
    let viewer = Watcher::continuous(&bridge.address);
    // More than may be under way without an answer to the fences behind them.
    for seed in 0..100 {
        happen(&screen, seed);
        viewer.wait_for(&screen);
    }
    // The first picture was asked for, and is after each change of the size.
    assert_eq!(screen.asked(), 1);
    screen.resize(500, 100);
    screen.fill(Rect::new(450, 0, 50, 100), 0x00ff_ffff);
    viewer.wait_for(&screen);
    assert_eq!(screen.asked(), 2);
}

/// Viewers share the memory of their server as the clients of other commands do.
#[test]
fn viewers_are_served_with_the_memory_that_there_is() {
    let (screen, _scratch, _server, bridge) = bridged(400, 300, &["--memory", "1MiB"]);
    let viewers = [(); 4].map(|()| Watcher::start(&bridge.address, [0; 16]));
    for seed in 0..10 {
        screen.noise(Rect::new(0, 0, 400, 300), seed);
        viewers.iter().for_each(|viewer| viewer.wait_for(&screen));
    }
}

#[test]
fn the_servers_password_is_passed_through() {
    let (screen, scratch) = (Screen::start(64, 64, true), Scratch::new());
    let server = serve(&screen, &scratch, &[]);
    let bridge = connect(&server, &[]);
    let wrong = Watcher::start(&bridge.address, [1; 16]);
    let reason = wrong.wait_for_end();
    assert!(reason.contains("not this one"), "{reason}");
    Watcher::start(&bridge.address, right_answer()).wait_for(&screen);
}

#[test]
fn nobody_connects_without_the_token_or_the_certificate() {
    let (screen, scratch) = (Screen::start(64, 64, false), Scratch::new());
    let server = serve(&screen, &scratch, &["--max-viewers", "1"]);
    let end = |arguments: &[&str]| {
        let bridge = Listening::spawn(bridge(&server.address, arguments));
        Watcher::start(&bridge.address, [0; 16]).wait_for_end()
    };
    let fingerprint = server.fingerprint();
    let reason = end(&["--fingerprint", fingerprint, "--token", "a guess of 16 bytes"]);
    assert!(reason.contains("the token is wrong"), "{reason}");
    let reason = end(&["--fingerprint", fingerprint, "--no-token"]);
    assert!(reason.contains("the token is wrong"), "{reason}");
    let reason = end(&["--fingerprint", &"00".repeat(32), "--no-token"]);
    assert!(reason.contains("is not trusted") && reason.contains(fingerprint), "{reason}");
    assert_eq!(screen.connections(), 0);
    // With the kept token, one viewer is let in; the second is too many.
    let bridge = connect(&server, &[]);
    let first = watch(&bridge, &screen);
    let reason = Watcher::start(&bridge.address, [0; 16]).wait_for_end();
    assert!(reason.contains("too many viewers"), "{reason}");
    drop(first);
    wait_until("the next viewer", || {
        let next = Watcher::start(&bridge.address, [0; 16]);
        wait_until("its end", || next.end().is_some() || next.name() == "test desk");
        next.end().is_none()
    });
    // The token is kept for the next start.
    let token = server.hello["token"].clone();
    drop(server);
    assert_eq!(serve(&screen, &scratch, &[]).hello["token"], token);
}

#[test]
fn each_end_says_what_is_missing() {
    let scratch = Scratch::new();
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut screen = Screen::start(64, 64, false);
    screen.address = nobody.to_string();
    let server = serve(&screen, &scratch, &[]);
    let bridge = connect(&server, &[]);
    let reason = Watcher::start(&bridge.address, [0; 16]).wait_for_end();
    assert!(reason.contains("cannot connect to the RFB server"), "{reason}");
    // No RFB server at all: this one speaks QUIC over UDP, and TCP to nobody.
    let arguments = ["vnc", "connect", "localhost", "--insecure", "--listen", &bridge.address];
    let taken = complaint(&run([&arguments[..], &["--no-token"]].concat()), 3);
    assert!(taken.contains("cannot listen"), "{taken}");
    let output = Process::spawn(sutura(arguments)).output();
    let text = complaint(&output, 2);
    for said in ["no token: ", "--token-file FILE", "SUTURA_VNC_TOKEN", "--no-token"] {
        assert!(text.contains(said), "{text}");
    }
    complaint_of(&["vnc", "serve", "--to", "a:b"]);
    complaint_of(&["vnc", "connect"]);
}

fn complaint_of(arguments: &[&str]) {
    let output = Process::spawn(sutura(arguments)).output();
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_viewer_is_told_when_the_server_goes_away() {
    let (screen, _scratch, server, bridge) = bridged(64, 64, &[]);
    let viewer = watch(&bridge, &screen);
    screen.hang_up();
    assert_eq!(viewer.wait_for_end(), "closed");
    let viewer = watch(&bridge, &screen);
    let (output, _) = server.interrupt();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(viewer.wait_for_end(), "closed");
    let (output, _) = bridge.interrupt();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    for reason in ["the RFB server has closed the connection", "sutura vnc serve was stopped"] {
        assert!(said.contains(reason), "{said}");
    }
}

#[test]
fn a_viewer_stays_while_the_connection_is_lost() {
    let (screen, scratch) = (Screen::start(400, 300, true), Scratch::new());
    let server = serve(&screen, &scratch, &[]);
    let link = |listen: &str| {
        Listening::spawn(sutura(["link", "--json", "--listen", listen, "--to", &server.address]))
    };
    let first = link("127.0.0.1:0");
    let address = first.address.clone();
    let bridge = connect_at(&address, &server, &[]);
    let viewer = watch(&bridge, &screen);
    let key = |down| ClientMessage::Key { down, keysym: 0x62 };
    viewer.say(&key(true));
    wait_until("the key", || screen.heard() == [key(true)]);
    drop(first);
    // Nobody can release the key any more: the server's end does, once it knows.
    viewer.say(&key(false));
    (0..50).for_each(|seed| happen(&screen, seed));
    wait_until("the release", || screen.heard().contains(&key(false)));
    let _second = link(&address);
    viewer.wait_for(&screen);
    (50..100).for_each(|seed| happen(&screen, seed));
    viewer.wait_for(&screen);
    // The password was not asked for again, as the session went on.
    assert_eq!(screen.connections(), 1);
    drop(viewer);
    let (_, report) = bridge.interrupt();
    assert_eq!(report.unwrap()["screen"]["reconnections"], 1);
}

#[test]
fn a_server_that_was_started_again_goes_on_with_its_viewers_at_once() {
    use rustix::process::Signal;
    let (screen, scratch) = (Screen::start(400, 300, false), Scratch::new());
    let mut server = serve(&screen, &scratch, &[]);
    let address = server.address.clone();
    // The address must be known beforehand: viewers cannot find a server again that takes another free port.
    server.process.signal(Signal::KILL);
    server.process.output();
    let start = || serve_at(&address, &screen.address, &scratch, &[]);
    let mut server = start();
    let bridge = connect(&server, &[]);
    let viewer = watch(&bridge, &screen);
    // The server is killed, or ended with a signal that it can handle.
    for (colour, signal) in [(0x0065_4321, Signal::KILL), (0x0012_3456, Signal::TERM)] {
        server.process.signal(signal);
        server.process.output();
        screen.fill(Rect::new(0, 0, 400, 300), colour);
        server = start();
        viewer.wait_for(&screen);
    }
    assert_eq!(screen.connections(), 3);
    drop(viewer);
    let (output, report) = bridge.interrupt();
    assert_eq!(report.unwrap()["screen"]["reconnections"], 2);
    // The viewer was told, and did not have to wait for 10 s of silence.
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("reset") && said.contains("serve was stopped"), "{said}");
    assert!(!said.contains("timed out"), "{said}");
}

#[test]
fn a_server_says_at_the_start_that_there_is_nothing_to_show() {
    let scratch = Scratch::new();
    let said = |to: &str| {
        let (output, _) = serve_at("127.0.0.1:0", to, &scratch, &[]).interrupt();
        assert_eq!(output.status.code(), Some(0));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let text = said(&nobody.to_string());
    assert!(text.contains(&format!("cannot connect to the RFB server at {nobody}")), "{text}");
    assert!(text.contains("viewers are told so until there is one"), "{text}");
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let (mut tcp, _) = other.accept().unwrap();
        tcp.write_all(b"220 this is something else\r\n").unwrap();
    });
    let text = said(&address);
    assert!(text.contains("viewers are told so"), "{text}");
    assert_eq!(said(&Screen::start(64, 64, false).address), "");
}

/// Viewers that say nothing take no place from viewers that do, neither at the end beside them nor at the
/// other.
#[test]
fn silent_viewers_keep_nobody_out() {
    let (screen, scratch) = (Screen::start(64, 64, true), Scratch::new());
    let server = serve(&screen, &scratch, &["--max-viewers", "4"]);
    let bridge = connect(&server, &[]);
    // More silent viewers than there are places; some send half of the version.
    let silent: Vec<TcpStream> = (0..100)
        .map(|n| {
            let mut tcp = TcpStream::connect(&bridge.address).unwrap();
            tcp.write_all(&b"RFB 003.008"[..n % 12]).unwrap();
            tcp
        })
        .collect();
    let first = watch(&bridge, &screen);
    // Viewers whose user never types the password: all but one of the places.
    let typing: Vec<Watcher> = (0..8).map(|_| Watcher::silent(&bridge.address)).collect();
    wait_until("the server to be full", || {
        typing.iter().filter(|w| w.end().is_some()).count() >= 5
    });
    let _second = watch(&bridge, &screen);
    // A viewer that was let in stays in.
    screen.fill(Rect::new(0, 0, 64, 64), 0x0012_3456);
    first.wait_for(&screen);
    drop(silent);
}

#[test]
fn who_guesses_tokens_is_made_to_wait() {
    let (screen, scratch) = (Screen::start(64, 64, false), Scratch::new());
    let server = serve(&screen, &scratch, &[]);
    let fingerprint = server.fingerprint();
    let arguments = ["--fingerprint", fingerprint, "--token", "a guess of 16 bytes"];
    let guessing = Listening::spawn(bridge(&server.address, &arguments));
    let guess = |times: usize| -> Vec<Watcher> {
        (0..times).map(|_| Watcher::start(&guessing.address, [0; 16])).collect()
    };
    // Some guesses are judged, one after the other.
    let first = guess(10);
    first.iter().for_each(|guess| {
        let end = guess.wait_for_end();
        assert!(end.contains("the token is wrong"), "{end}");
    });
    // Of the guesses that follow, only few wait.
    let next = guess(20);
    wait_until("refusals", || {
        let ends = next.iter().filter_map(Watcher::end);
        ends.filter(|end| end.contains("too many wrong tokens from this address")).count() > 0
    });
    assert_eq!(screen.connections(), 0);
}
