//! The fuzz targets on seeded, mutated valid input: for machines without a fuzzer.
//!
//! `FUZZ_ITERATIONS` sets how many inputs each target gets.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, also in helpers")]

use sutura_random::fuzz::{input, replay, run};
use sutura_vnc::bridge::{End, Source, ToServer, ToViewer};
use sutura_vnc::rfb::{
    ClientMessage, ClipboardMessage, Cursor, Fence, PixelFormat, Screen, encoding,
};
use sutura_vnc::{Framebuffer, Rect, fuzz};

fn rectangle(rect: Rect, encoding: i32, body: &[u8]) -> Vec<u8> {
    let numbers = [rect.x, rect.y, rect.width, rect.height].map(u16::to_be_bytes);
    [numbers.as_flattened(), &encoding.to_be_bytes(), body].concat()
}

/// Input from servers: every encoding, every message.
fn from_servers() -> Vec<Vec<u8>> {
    let at = |width, height| Rect::new(1, 2, width, height);
    let layout = [&[1, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 40, 0, 30][..], &[0; 4]].concat();
    let rre =
        [&[0, 0, 0, 2, 1, 2, 3, 0][..], &[9, 9, 9, 0, 0, 1, 0, 1, 0, 2, 0, 2].repeat(2)].concat();
    let hextile = [
        &[2 | 4 | 8, 1, 1, 1, 0, 2, 2, 2, 0, 2, 0x12, 0x11, 0x34, 0x20][..],
        &[8 | 16, 1, 5, 5, 5, 0, 0x00, 0x10, 0, 1],
        &[7; 4 * 4 * 4],
    ];
    let rectangles = [
        rectangle(at(3, 2), encoding::RAW, &[5; 24]),
        rectangle(at(3, 2), encoding::COPY_RECT, &[0, 9, 0, 9]),
        rectangle(at(5, 5), encoding::RRE, &rre),
        rectangle(at(52, 4), encoding::HEXTILE, &hextile.concat()),
        rectangle(at(9, 2), encoding::CURSOR, &[6; 4 * 18 + 4]),
        rectangle(Rect::new(0, 0, 60, 50), encoding::DESKTOP_SIZE, &[]),
        rectangle(Rect::new(1, 0, 40, 30), encoding::EXTENDED_DESKTOP_SIZE, &layout),
        rectangle(Rect::default(), encoding::DESKTOP_NAME, b"\0\0\0\x04name"),
        rectangle(Rect::default(), encoding::EXTENDED_KEYS, &[]),
        rectangle(Rect::default(), encoding::LAST_RECT, &[]),
    ];
    let mut seeds: Vec<Vec<u8>> =
        rectangles.iter().map(|one| [&[0, 3, 0, 0, 0, 1][..], one].concat()).collect();
    seeds.push([&[0, 0, 0, 0, 0xff, 0xff][..], &rectangles.concat()].concat());
    let map = [&[0, 4, 1, 0, 0, 1, 0, 2][..], &[3; 12]].concat();
    seeds.push([&map[..], b"\x02\x03\0\0\0\0\0\0\x02ab\x03\0\0\0\xff\xff\xff\xfecd"].concat());
    seeds.push(b"\x96\xf8\0\0\0\x80\0\0\x07\x04data\x96\0\0\0\0".to_vec());
    let init = b"\0\x20\0\x20\x20\x18\0\x01\0\xff\0\xff\0\xff\x10\x08\0\0\0\0\0\0\0\x04desk";
    for handshake in [
        b"RFB 003.003\n\0\0\0\x01".to_vec(),
        b"RFB 003.007\n\x01\x01".to_vec(),
        b"RFB 003.008\n\x02\x13\x01\0\0\0\0".to_vec(),
        b"RFB 003.008\n\x01\x02a challenge of 16\0\0\0\0".to_vec(),
        b"RFB 003.008\n\0\0\0\0\x06reason".to_vec(),
    ] {
        seeds.push([&[1, 2], &handshake[..], init, &seeds[0][2..]].concat());
    }
    // X509None, X509Vnc, X509Plain and Plain, for a client with all that these want.
    let vencrypt = b"RFB 003.008\n\x01\x13\0\x02\0\x01\0\0\x01";
    for subtype in [&b"\x04\x01"[..], b"\x05\x01a challenge of 16", b"\x06\x01", b"\0"] {
        seeds.push([&[0x0b, 2], &vencrypt[..], subtype, &[0; 4], init, &seeds[0][2..]].concat());
    }
    seeds.push(clipboard(3));
    seeds
}

/// Messages of the extended clipboard, behind the two bytes with which a target begins.
fn clipboard(kind: u8) -> Vec<u8> {
    let messages = [
        ClipboardMessage::Caps { unasked: 9 },
        ClipboardMessage::Request,
        ClipboardMessage::Peek,
        ClipboardMessage::Notify { text: true },
        ClipboardMessage::Provide(Some("téxt\n".repeat(9))),
    ];
    let written = messages.map(|message| {
        let mut bytes = Vec::new();
        ClientMessage::Clipboard(message).write(&mut bytes);
        bytes[0] = kind;
        bytes
    });
    [&[0, 3], &written.concat()[..]].concat()
}

/// Input from viewers: every message, some handshakes.
fn from_viewers() -> Vec<Vec<u8>> {
    let rect = Rect::new(0, 0, 64, 48);
    let all = ClientMessage::SetEncodings(encoding::WANTED.to_vec());
    let ask = |incremental| ClientMessage::UpdateRequest { incremental, rect };
    let copy = ClientMessage::Key { down: true, keysym: 0x0202_1010 };
    let paint = ClientMessage::Pointer { buttons: 0x55, x: 0x305, y: 5 };
    let screens = vec![Screen { id: 1, rect, flags: 0 }];
    let resize = ClientMessage::SetDesktopSize { width: 33, height: 44, screens };
    let other = [
        ClientMessage::SetPixelFormat(PixelFormat::RGB32),
        ClientMessage::Key { down: false, keysym: 66 },
        ClientMessage::CutText("text".into()),
        ClientMessage::Clipboard(ClipboardMessage::Provide(Some("téxt\n".into()))),
        ClientMessage::Clipboard(ClipboardMessage::Notify { text: true }),
        ClientMessage::ExtendedKey { down: true, keysym: 66, code: 30 },
        ClientMessage::EnableContinuousUpdates { enable: true, rect },
        ClientMessage::Fence(Fence { flags: 1 << 31 | 4, payload: "fence".into() }),
    ];
    let listed = [&encoding::WANTED[..], &encoding::CONTINUOUS, &encoding::INPUT].concat();
    let unasked = [
        ClientMessage::SetEncodings(listed),
        ClientMessage::EnableContinuousUpdates { enable: true, rect },
        paint.clone(),
        copy.clone(),
        ClientMessage::Fence(Fence { flags: 1, payload: [0, 0, 0, 1].to_vec().into() }),
        resize.clone(),
        paint.clone(),
        ClientMessage::EnableContinuousUpdates { enable: false, rect },
    ];
    let sessions = [
        [&[all.clone(), ask(false), ask(true), paint.clone(), copy.clone(), ask(true)][..], &other]
            .concat(),
        vec![all.clone(), ask(true), resize.clone(), ask(true), copy.clone(), ask(true)],
        vec![
            ask(false),
            paint,
            ask(true),
            ClientMessage::SetEncodings(vec![1, 5]),
            copy,
            ask(true),
        ],
        vec![resize, all, ask(false)],
        unasked.into(),
    ];
    let mut seeds = Vec::new();
    for session in sessions {
        let mut bytes = vec![0];
        session.iter().for_each(|message| message.write(&mut bytes));
        for handshake in [
            &b"\x03RFB 003.008\n\x01\x01"[..],
            b"\x05RFB 003.007\n\x02an answer of 16 \0",
            b"\x03RFB 003.003\n\x01",
            b"\x01RFB 003.008\n",
        ] {
            seeds.push([handshake, &bytes[1..]].concat());
        }
        seeds.push(bytes);
    }
    seeds
}

/// Messages between the ends of the bridge: every message, every kind of piece and tile.
fn from_bridges() -> Vec<Vec<u8>> {
    let mut server = Vec::new();
    let key = ClientMessage::Key { down: true, keysym: 66 };
    for message in [
        ToServer::Hello { token: "token".into(), resume: Some([5; 16]) },
        ToServer::Response([6; 16]),
        ToServer::Input(key),
        ToServer::Painted { update: 1, pieces: 2, age: 3 },
        ToServer::Text("téxt".into()),
    ] {
        message.encode(&mut server);
    }
    let (pixels, mask) = (vec![1, 2], vec![true, false]);
    let cursor = Cursor { width: 2, height: 1, hotspot_x: 1, hotspot_y: 0, pixels, mask };
    let mut viewer = Vec::new();
    for message in [
        ToViewer::Welcome { session: [7; 16], resumed: false, taken: 3 },
        ToViewer::Challenge([8; 16]),
        ToViewer::Ended { why: End::Server, reason: "gone".into() },
        ToViewer::Screen { width: 100, height: 80, name: "desk".into() },
        ToViewer::Cursor(cursor),
        ToViewer::Named("name".into()),
        ToViewer::ResizeResult(1),
        ToViewer::Text("téxt".into()),
        ToViewer::Bell,
        ToViewer::ExtendedKeys,
        ToViewer::Delivered(5),
    ] {
        message.encode(&mut viewer);
    }
    [vec![server, viewer], [None, Some(50)].map(pieces).into()].concat()
}

/// Pieces of a small screen, each after its number and its length.
fn pieces(quality: Option<u8>) -> Vec<u8> {
    let mut screen = Framebuffer::new(100, 80).unwrap();
    let mut source = Source::new(&screen, quality).unwrap();
    let mut bytes = Vec::new();
    for step in 0..6_u8 {
        let rect = Rect::new(10 * u16::from(step), 8, 7, 6);
        let pixels = (0..).map(|number: u32| number.wrapping_mul(u32::from(step) * 0x03_5791));
        screen
            .columns_mut(0, step.into(), 90)
            .iter_mut()
            .zip(pixels)
            .for_each(|(old, new)| *old = new);
        screen.fill(rect, step.into());
        source.painted(Rect::new(0, 0, 100, 20));
        let (from, to) = (Rect::new(0, 0, 60, 40), Rect::new(20, 30, 60, 40));
        if step == 4 {
            while let Some(piece) = source.next(&screen) {
                source.sent(piece);
            }
            screen.copy(from, to);
            source.copied(from, to);
        }
        while let Some(piece) = source.next(&screen) {
            if let Ok(length) = u8::try_from(piece.data.len()) {
                bytes.extend([step, length]);
                bytes.extend(&piece.data);
            }
            source.sent(piece);
        }
    }
    bytes
}

#[test]
fn what_ends_of_the_bridge_send() {
    run(20_000, &from_bridges(), fuzz::bridge);
}

#[test]
fn what_servers_send() {
    run(20_000, &from_servers(), fuzz::server);
}

#[test]
fn what_viewers_send() {
    run(20_000, &from_viewers(), fuzz::viewer);
}

#[test]
fn stored_inputs() {
    replay("vnc_bridge", |rng| input(rng, &from_bridges()), fuzz::bridge);
    replay("vnc_server", |rng| input(rng, &from_servers()), fuzz::server);
    replay("vnc_viewer", |rng| input(rng, &from_viewers()), fuzz::viewer);
}
