//! Records what the bridge would send of an RFB server's screen over a path that carries everything at once.
//!
//! ```sh
//! cargo run --release -p sutura-vnc --example record -- localhost:5901 15 >scene.csv
//! ```
//!
//! A line is a piece: milliseconds since the first, update, bytes, the rectangle that it copies from (empty
//! if it paints), and those that it writes: `x:y:width:height` each, with blanks between. `sutura lab
//! vnc-scenes` replays such recordings.

use std::error::Error;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use sutura_vnc::bridge::{Outgoing, Source};
use sutura_vnc::rfb::{
    ClientMessage, Decoder, PixelFormat, ServerEvent, ServerHandshake, ServerStep, encoding,
};
use sutura_vnc::{Framebuffer, Rect};

/// The shortest time from one question to the next: 60 a second.
const INTERVAL: Duration = Duration::from_micros(16_667);

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(server), Some(seconds)) = (arguments.next(), arguments.next()) else {
        return Err("usage: record HOST:PORT SECONDS".into());
    };
    let end = Instant::now() + Duration::from_secs(seconds.parse()?);
    let mut tcp = TcpStream::connect(server)?;
    tcp.set_nodelay(true)?;
    let mut input = BytesMut::new();
    let mut screen = log_in(&mut tcp, &mut input)?;
    tcp.set_read_timeout(Some(INTERVAL))?;
    let mut source = Source::new(&screen, None)?;
    let mut decoder = Decoder::new();
    let (mut incremental, mut number, mut began) = (false, 0, None);
    while Instant::now() < end {
        let asked = Instant::now();
        let mut ask = Vec::new();
        ClientMessage::UpdateRequest { incremental, rect: screen.bounds() }.write(&mut ask);
        tcp.write_all(&ask)?;
        if !answer(&mut tcp, &mut input, &mut decoder, &mut screen, &mut source, end)? {
            break;
        }
        let at = Instant::now();
        let update = source.begin_update();
        while let Some(piece) = source.next(&screen) {
            // The first piece only tells the size of the screen.
            if !piece.writes().is_empty() {
                print(at - *began.get_or_insert(at), update, &piece);
            }
            source.sent(piece);
            // Everything arrives at once.
            source.arrived(number);
            number += 1;
        }
        incremental = true;
        std::thread::sleep(INTERVAL.saturating_sub(asked.elapsed()));
    }
    Ok(())
}

fn print(at: Duration, update: u32, piece: &Outgoing) {
    let rect = |rect: &Rect| format!("{}:{}:{}:{}", rect.x, rect.y, rect.width, rect.height);
    let reads = piece.reads().as_ref().map(rect).unwrap_or_default();
    let writes: Vec<String> = piece.writes().iter().map(rect).collect();
    println!("{},{update},{},{reads},{}", at.as_millis(), piece.data.len(), writes.join(" "));
}

fn log_in(tcp: &mut TcpStream, input: &mut BytesMut) -> Result<Framebuffer, Box<dyn Error>> {
    let (mut handshake, mut out) = (ServerHandshake::new(true), Vec::new());
    loop {
        match handshake.receive(input, &mut out)? {
            ServerStep::Done(init) => {
                ClientMessage::SetPixelFormat(PixelFormat::RGB32).write(&mut out);
                ClientMessage::SetEncodings(encoding::WANTED.to_vec()).write(&mut out);
                tcp.write_all(&out)?;
                return Ok(Framebuffer::new(init.width, init.height)?);
            }
            ServerStep::Challenge(_) | ServerStep::User => {
                return Err("the server wants a password".into());
            }
            ServerStep::StartTls => return Err("the server wants TLS".into()),
            ServerStep::More => {
                tcp.write_all(&out)?;
                out.clear();
                read(tcp, input)?;
            }
        }
    }
}

fn read(tcp: &mut TcpStream, input: &mut BytesMut) -> Result<(), Box<dyn Error>> {
    let mut chunk = [0; 65536];
    match tcp.read(&mut chunk) {
        Ok(0) => Err("the server has closed the connection".into()),
        Ok(size) => {
            input.extend_from_slice(&chunk[..size]);
            Ok(())
        }
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Waits for the end of the server's next update; returns whether it came before `end`.
fn answer(
    tcp: &mut TcpStream,
    input: &mut BytesMut,
    decoder: &mut Decoder,
    screen: &mut Framebuffer,
    source: &mut Source,
    end: Instant,
) -> Result<bool, Box<dyn Error>> {
    while Instant::now() < end {
        while let Some(event) = decoder.next(input, screen)? {
            match event {
                ServerEvent::Painted(rect) => source.painted(rect),
                ServerEvent::Copied { from, to } => source.copied(from, to),
                ServerEvent::Resized { .. } => source.resize(screen)?,
                ServerEvent::UpdateEnd => return Ok(true),
                _ => {}
            }
        }
        read(tcp, input)?;
    }
    Ok(false)
}
