//! Entry point for fuzzing.

use super::{Painter, ToServer, ToViewer};
use crate::framebuffer::Framebuffer;
use bytes::BytesMut;

/// Reads `data` as control messages of either end, and paints it as pieces of a small screen, each after its
/// number and its length, a byte each. Decoded messages are encoded again.
pub fn bridge(data: &[u8]) {
    let mut input = BytesMut::from(data);
    while let Ok(Some(message)) = ToServer::decode(&mut input) {
        let mut again = Vec::new();
        message.encode(&mut again);
        assert_eq!(ToServer::decode(&mut BytesMut::from(&again[..])), Ok(Some(message)));
    }
    let mut input = BytesMut::from(data);
    while let Ok(Some(message)) = ToViewer::decode(&mut input) {
        let mut again = Vec::new();
        message.encode(&mut again);
        let read = ToViewer::decode(&mut BytesMut::from(&again[..]));
        // A text that was cut stays the same.
        let mut third = Vec::new();
        read.ok().flatten().into_iter().for_each(|message| message.encode(&mut third));
        assert_eq!(again, third);
    }
    let Ok(screen) = Framebuffer::new(100, 80) else { return };
    let (mut painter, mut pieces) = (Painter::new(screen), data);
    while let Some((&[number, length], rest)) = pieces.split_first_chunk() {
        let (piece, rest) = rest.split_at(rest.len().min(length.into()));
        pieces = rest;
        // A refused piece may have been painted in part, but has no other effect.
        let _ = painter.paint(number.into(), piece);
        // The size of a screen is limited, but even so a fuzzer would spend all its time clearing it.
        if painter.screen().bounds().area() > 1 << 16 {
            return;
        }
    }
}
