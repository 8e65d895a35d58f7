//! `sutura vnc` with what RFB servers and viewers have beyond RFC 6143: TLS, users, UNIX sockets, clipboards in
//! UTF-8, extended keys.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use sutura_vnc::Rect;
use sutura_vnc::rfb::ClientMessage;

use crate::support::bridge::{connect, serve, serve_at, watch};
use crate::support::screen::{Door, Screen, right_answer};
use crate::support::tls_door::{TLS_VNC, TlsDoor, X509_NONE, X509_PLAIN, X509_VNC};
use crate::support::watcher::Watcher;
use crate::support::{Listening, Scratch, complaint, sutura, wait_until};

/// What a user says within TLS.
const USER: &[u8] = b"\0\0\0\x03\0\0\0\x06annsecret";

/// What a viewer is told that connects to a server by these options.
fn refusal(screen: &Screen, more: &[&str]) -> String {
    let scratch = Scratch::new();
    let server = serve(screen, &scratch, more);
    let bridge = connect(&server, &[]);
    Watcher::start(&bridge.address, right_answer()).wait_for_end()
}

#[test]
fn servers_with_tls_show_their_screen_to_who_trusts_them() {
    let scratch = Scratch::new();
    let (ca, password) = (scratch.path().join("ca.pem"), scratch.path().join("password"));
    fs::write(&password, "secret\n").unwrap();
    let (ca, password) = (ca.to_str().unwrap(), password.to_str().unwrap());
    let user = ["--server-user", "ann", "--server-password-file", password];
    let answer = right_answer();
    let cases: [(&[u32], &[u8], &[&str]); 3] = [
        (&[TLS_VNC, X509_NONE], b"", &[]),
        (&[X509_PLAIN], USER, &user),
        // The challenge goes to the viewer and its answer back.
        (&[X509_VNC], &answer, &[]),
    ];
    for (offered, expected, options) in cases {
        let door = TlsDoor::new(offered, expected);
        fs::write(ca, &door.pem).unwrap();
        let screen = Screen::with_door(200, 100, Door::Tls(door.clone()));
        screen.noise(Rect::new(0, 0, 200, 100), 3);
        let fingerprint = ["--server-fingerprint", &door.fingerprint];
        for trusted in [&["--server-ca", ca], &fingerprint, &["--server-insecure"][..]] {
            let scratch = Scratch::new();
            let server = serve(&screen, &scratch, &[options, trusted].concat());
            let bridge = connect(&server, &[]);
            let viewer = watch(&bridge, &screen);
            screen.noise(Rect::new(10, 10, 100, 50), 4);
            viewer.wait_for(&screen);
        }
        // The system does not trust it.
        let why = refusal(&screen, options);
        let advice = format!("--server-fingerprint {}", door.fingerprint);
        assert!(
            why.contains("its certificate is not trusted: it") && why.contains(&advice),
            "{why}"
        );
        let other = ["--server-fingerprint", &"00".repeat(32)];
        let why = refusal(&screen, &[options, &other].concat());
        assert!(why.contains("and not 0000"), "{why}");
    }
}

#[test]
fn who_cannot_log_in_by_tls_is_told_what_to_do() {
    let with = |offered: &[u32], more: &[&str]| {
        let screen = Screen::with_door(64, 64, Door::Tls(TlsDoor::new(offered, USER)));
        refusal(&screen, more)
    };
    let why = with(&[TLS_VNC], &["--server-insecure"]);
    assert!(why.contains("258 (TLSVnc)") && why.contains("-SecurityTypes X509Vnc"), "{why}");
    let why = with(&[X509_PLAIN], &["--server-insecure"]);
    assert!(why.contains("--server-user and --server-password-file"), "{why}");
    let scratch = Scratch::new();
    let password = scratch.path().join("password");
    fs::write(&password, "a guess").unwrap();
    let user = ["--server-user", "ann", "--server-password-file", password.to_str().unwrap()];
    let why = with(&[X509_PLAIN], &[&user[..], &["--server-insecure"]].concat());
    assert!(why.contains("not you!"), "{why}");
    // A server without TLS is none for who insists on it.
    let why = refusal(&Screen::start(64, 64, true), &["--server-insecure"]);
    assert!(why.contains("does not encrypt: it offers 2 (VNC Authentication)"), "{why}");
    let alone = sutura(["vnc", "serve", "--server-user", "ann"]).output().unwrap();
    assert_eq!(alone.status.code(), Some(2));
    let missing = ["vnc", "serve", "--server-password-file", "/nowhere/at/all"];
    complaint(&sutura(missing).output().unwrap(), 3);
}

/// The server's own challenge is answered for viewers, which are not asked.
#[test]
fn a_password_can_stay_with_the_servers_end() {
    let scratch = Scratch::new();
    let password = scratch.path().join("password");
    fs::write(&password, "secret").unwrap();
    let answer = {
        // DES of the server's challenge, by `openssl enc -des-ecb -nopad`.
        let mut answer = [0; 16];
        hex::decode_to_slice("752440ee2bfcc2a0d9013fd20371e23b", &mut answer).unwrap();
        answer
    };
    let screen = Screen::with_door(64, 64, Door::Tls(TlsDoor::new(&[X509_VNC], &answer)));
    let file = ["--server-insecure", "--server-password-file", password.to_str().unwrap()];
    let server = serve(&screen, &scratch, &file);
    // A viewer that was asked would never answer.
    Watcher::silent(&connect(&server, &[]).address).wait_for(&screen);
}

#[test]
fn both_ends_take_unix_sockets() {
    let scratch = Scratch::new();
    let (theirs, ours) = (scratch.path().join("rfb"), scratch.path().join("viewers"));
    let screen = Screen::at(&theirs, 200, 100);
    screen.noise(Rect::new(0, 0, 200, 100), 5);
    for to in [screen.address.clone(), theirs.to_str().unwrap().to_owned()] {
        let server = serve_at("127.0.0.1:0", &to, &scratch, &[]);
        let listen = format!("unix:{}", ours.display());
        let token = server.hello["token"].as_str().unwrap();
        let arguments = ["--fingerprint", server.fingerprint(), "--token", token];
        let mut command =
            sutura(["vnc", "connect", &server.address, "--json", "--listen", &listen]);
        command.args(arguments);
        let bridge = Listening::spawn(command);
        assert_eq!(bridge.address, listen);
        assert_eq!(fs::metadata(&ours).unwrap().permissions().mode() & 0o777, 0o600);
        watch(&bridge, &screen);
        // A second one does not take the socket away.
        let mut again = sutura(["vnc", "connect", &server.address, "--listen", &listen]);
        let said = complaint(&again.args(arguments).output().unwrap(), 3);
        assert!(said.contains("cannot listen on unix:"), "{said}");
        bridge.interrupt();
        assert!(!ours.exists());
    }
    fs::write(&ours, "kept").unwrap();
    let arguments = ["vnc", "connect", "127.0.0.1:9", "--no-token", "--insecure", "--listen"];
    let said = complaint(&sutura(arguments).arg(&ours).output().unwrap(), 3);
    assert!(said.contains("no socket"), "{said}");
    assert_eq!(fs::read_to_string(&ours).unwrap(), "kept");
}

#[test]
fn clipboards_are_in_utf8_where_both_sides_have_that() {
    let (plain, rich) = (Screen::start(64, 64, false), Screen::rich(64, 64));
    let scratch = Scratch::new();
    let server = serve(&rich, &scratch, &[]);
    let bridge = connect(&server, &[]);
    let (new, old) = (Watcher::rich(&bridge.address), watch(&bridge, &rich));
    new.wait_for(&rich);
    rich.copy_text("žluť\n€");
    new.wait_for_utf8("žluť\n€");
    old.wait_for_text(b"?lu?\n?");
    new.copy_text("naïve ✓");
    wait_until("the text", || rich.texts().contains(&"naïve ✓".to_owned()));
    old.say(&ClientMessage::CutText((&b"na\xefve"[..]).into()));
    wait_until("the text", || rich.texts().contains(&"naïve".to_owned()));
    // A long text is asked for.
    let long = "€".repeat(300_000);
    new.copy_text(&long);
    wait_until("the long text", || rich.texts().contains(&long));
    // A server without the extension.
    let scratch = Scratch::new();
    let server = serve(&plain, &scratch, &[]);
    let bridge = connect(&server, &[]);
    let new = Watcher::rich(&bridge.address);
    new.wait_for(&plain);
    new.copy_text("é€");
    let said = [ClientMessage::CutText((&b"\xe9?"[..]).into())];
    wait_until("the text", || plain.heard() == said);
    plain.say(b"\xe9");
    new.wait_for_utf8("é");
}

#[test]
fn keys_keep_their_places_if_the_server_takes_them() {
    let (plain, rich) = (Screen::start(64, 64, false), Screen::rich(64, 64));
    let key = ClientMessage::ExtendedKey { down: true, keysym: 0x71, code: 0x10 };
    let up = ClientMessage::ExtendedKey { down: false, keysym: 0x71, code: 0x10 };
    let scratch = Scratch::new();
    let server = serve(&rich, &scratch, &[]);
    let bridge = connect(&server, &[]);
    let viewer = Watcher::rich(&bridge.address);
    wait_until("word of extended keys", || viewer.takes_extended_keys());
    viewer.say(&key);
    viewer.say(&up);
    wait_until("the keys", || rich.heard() == [key.clone(), up.clone()]);
    // A viewer that does not wait for word of it; the server has none.
    let scratch = Scratch::new();
    let server = serve(&plain, &scratch, &[]);
    let bridge = connect(&server, &[]);
    let viewer = Watcher::rich(&bridge.address);
    viewer.wait_for(&plain);
    assert!(!viewer.takes_extended_keys());
    viewer.say(&key);
    viewer.say(&ClientMessage::ExtendedKey { down: true, keysym: 0, code: 0x10 });
    viewer.say(&ClientMessage::Key { down: true, keysym: 0x72 });
    let heard = [0x71, 0x72].map(|keysym| ClientMessage::Key { down: true, keysym });
    wait_until("the keys", || plain.heard() == heard);
}
