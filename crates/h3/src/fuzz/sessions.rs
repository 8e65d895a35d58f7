//! Streams and capsules of WebTransport sessions.

use std::collections::BTreeSet;

use sutura_proto::{Dir, Side, StreamId};

use super::Feed;
use crate::connection::MAX_BUFFERED_SESSION_STREAMS;
use crate::frame::{FrameType, put_frame};
use crate::qpack::Encoder;
use crate::{Config, Connection, Event, Fields, SessionClose, Transport, WebTransportDraft};

/// Feeds a connection with a session. The first byte picks the side, the most bytes that a read returns, and whether the
/// session is accepted; the second says which of the streams are unidirectional. Each stream follows its length.
pub fn sessions(data: &[u8]) {
    let [first, dirs, rest @ ..] = data else { return };
    let side = if first & 1 == 0 { Side::Server } else { Side::Client };
    let mut feed = Feed::new(side, usize::from(first >> 2) + 1);
    let mut connection = match side {
        Side::Client => Connection::client(Config::for_webtransport()),
        Side::Server => Connection::server(Config::for_webtransport()),
    };
    let mut control = vec![0];
    let mut settings = Vec::new();
    Config::for_webtransport().settings().encode(None, &mut settings);
    put_frame(&mut control, FrameType::SETTINGS, &settings);
    feed.offer(StreamId::new(side.peer(), Dir::Uni, 0), &control);
    let head = Fields::request("CONNECT", "https", "a", "/")
        .with(":protocol", WebTransportDraft::Draft15.protocol());
    let answer = Fields::response(if first & 2 == 0 { 200 } else { 404 });
    // The control stream must not end.
    feed.streams
        .entry(StreamId::new(side.peer(), Dir::Uni, 0))
        .or_default()
        .push(super::Cell::Missing(0));
    if connection.process(&mut feed).is_err() {
        return;
    }
    let session = StreamId(0);
    let mut body = section(if side.is_server() { &head } else { &answer });
    let mut pieces = pieces(rest);
    body.extend(pieces.pop().unwrap_or_default());
    if side.is_client() {
        assert_eq!(connection.send_request(&mut feed, &head, None, false), Ok(session));
    }
    offer(&mut feed, *dirs, &pieces);
    // Streams that come before their session, in half of all inputs.
    let mut taken = BTreeSet::new();
    if first & 4 == 0 && !work(&mut connection, &mut feed, session, &mut taken) {
        return;
    }
    assert!(taken.len() <= MAX_BUFFERED_SESSION_STREAMS);
    feed.offer(session, &body);
    for _ in 0..3 {
        if !work(&mut connection, &mut feed, session, &mut taken) {
            return;
        }
        if side.is_server() {
            let _ = connection.send_response(&mut feed, session, &answer, false);
        }
    }
    let _ = connection.open_session_stream(&mut feed, session, Dir::Bi);
    let close = SessionClose { code: 1, reason: "over".to_owned() };
    let _ = connection.close_session(&mut feed, session, &close);
    assert!(connection.accept_session_stream(session, Dir::Uni).is_none());
    work(&mut connection, &mut feed, session, &mut taken);
}

/// A HEADERS frame.
fn section(fields: &Fields) -> Vec<u8> {
    let (mut payload, mut frame) = (Vec::new(), Vec::new());
    Encoder::default().section(StreamId(0), fields.iter(), false, &mut payload);
    put_frame(&mut frame, FrameType::HEADERS, &payload);
    frame
}

/// The pieces of an input, each of which follows its length.
fn pieces(mut rest: &[u8]) -> Vec<Vec<u8>> {
    let mut pieces = Vec::new();
    while let [length, behind @ ..] = rest {
        let (piece, later) = behind.split_at(usize::from(*length).min(behind.len()));
        pieces.push(piece.to_vec());
        rest = later;
    }
    pieces
}

/// Offers streams beside the control stream and the session's.
fn offer(feed: &mut Feed, dirs: u8, pieces: &[Vec<u8>]) {
    let peer = feed.side.peer();
    // The first bidirectional stream of a client is the session's.
    let mut next = [u64::from(peer.is_client()), 1];
    for (at, piece) in pieces.iter().enumerate() {
        let dir = if dirs >> (at % 8) & 1 == 1 { Dir::Uni } else { Dir::Bi };
        let index = &mut next[dir.index()];
        feed.offer(StreamId::new(peer, dir, *index), piece);
        *index += 1;
    }
}

/// Lets the connection work, and takes the session's streams. Returns whether the connection goes on.
fn work(
    connection: &mut Connection,
    feed: &mut Feed,
    session: StreamId,
    taken: &mut BTreeSet<StreamId>,
) -> bool {
    for id in feed.streams.keys() {
        connection.readable(*id);
    }
    if connection.process(feed).is_err() {
        return false;
    }
    while let Some(event) = connection.poll_event() {
        if let Event::SessionClosed { session: closed, .. } = event {
            assert_eq!(closed, session);
        }
    }
    for dir in [Dir::Bi, Dir::Uni] {
        while let Some(stream) = connection.accept_session_stream(session, dir) {
            assert_eq!((stream.dir(), stream.initiator()), (dir, feed.side().peer()));
            assert!(taken.insert(stream), "a stream came twice");
        }
    }
    true
}
