//! The test vectors of `docs/extension.md`.

use super::*;
use crate::ids::Side;
use std::collections::HashMap;

const VECTORS: &str = include_str!("../../../../tests/data/fec-frames.txt");

fn hex(text: &str) -> Vec<u8> {
    let digits: String = text.split_whitespace().collect();
    (0..digits.len())
        .step_by(2)
        .map(|i| u8::from_str_radix(&digits[i..i + 2], 16).unwrap())
        .collect()
}

struct Fields<'a>(HashMap<&'a str, &'a str>);

impl<'a> Fields<'a> {
    fn new(text: &'a str) -> Self {
        Self(text.split_whitespace().map(|field| field.split_once('=').unwrap()).collect())
    }

    fn number<T: TryFrom<u64>>(&self, name: &str) -> T {
        let value: u64 = self.0[name].parse().unwrap();
        T::try_from(value).ok().expect("a value in range")
    }

    /// The codes that are listed in addition to the sliding window.
    fn codes(&self, name: &str) -> CodeSet {
        let named = self.0.get(name).copied().into_iter().flat_map(|list| list.split(','));
        let ids = named.map(|number| CodeId::new(number.parse().unwrap()).unwrap());
        ids.fold(CodeSet::default(), CodeSet::with)
    }

    fn ranges(&self, name: &str) -> RangeSet {
        let ranges = self.0[name].split(',').filter(|range| *range != "-");
        ranges
            .map(|range| {
                let (start, end) = range.split_once("..").unwrap();
                start.parse().unwrap()..end.parse().unwrap()
            })
            .collect()
    }
}

/// Checks one frame's test vector in both directions.
fn check_frame(kind: &str, fields: &Fields<'_>, bytes: &[u8]) {
    let decoded = only(bytes);
    assert_eq!(decoded.kind().info().name, kind);
    assert_eq!(encoded(&decoded), bytes);
    let session = fields.number("session");
    match decoded {
        Frame::SourceSymbol(SourceSymbol { symbol, frames }) => {
            assert_eq!(symbol, SymbolRef { session, id: fields.number("id") });
            assert_eq!(frames, hex(fields.0["frames"]));
            let inner: Result<Vec<_>, _> = FrameIter::new(frames, Carrier::SourceSymbol).collect();
            assert!(!inner.unwrap().is_empty());
        }
        Frame::Repair(Repair { header, payload }) => {
            let (first, count) = (fields.number("first"), fields.number("count"));
            let key = fields.number("key");
            let code: u64 = fields.0.get("code").map_or(0, |code| code.parse().unwrap());
            let code = CodeId::new(code).unwrap();
            assert_eq!(header, RepairHeader { session, code, first, count, key });
            assert_eq!(header, RepairHeader::new(session, code, &header.span(), key));
            assert_eq!(header.size() + payload.len(), bytes.len());
            assert_eq!(header.span(), first..first + count);
            assert_eq!(payload, hex(fields.0["payload"]));
        }
        Frame::SymbolAck(ack) => {
            let lower_bound = fields.number("lower_bound");
            let ranges = fields.ranges("ranges");
            assert_eq!((ack.session, ack.lower_bound), (session, lower_bound));
            assert!(ack.ranges().eq(ranges.iter()));
            let mut out = Vec::new();
            encode_symbol_ack(session, lower_bound, &ranges, usize::MAX, &mut out).unwrap();
            assert_eq!(out, bytes);
        }
        Frame::SymbolWindow(window) => {
            let lower_bound = fields.number("lower_bound");
            assert_eq!(window, SymbolWindow { session, lower_bound });
        }
        other => panic!("no frame of the extension: {other:?}"),
    }
}

fn check_parameter(fields: &Fields<'_>, bytes: &[u8]) {
    let fec = FecParameters {
        max_sessions: fields.number("max_sessions"),
        max_window_symbols: fields.number("max_window_symbols"),
        max_window_bytes: fields.number("max_window_bytes"),
        max_symbol_size: fields.number("max_symbol_size"),
        codes: fields.codes("codes"),
    };
    let parameters = TransportParameters { fec: Some(fec), ..Default::default() };
    let mut out = Vec::new();
    parameters.encode(Side::Client, &mut out);
    assert_eq!(out, bytes);
    assert_eq!(TransportParameters::decode(bytes, Side::Client), Ok(parameters));
}

#[test]
fn published_vectors_hold() {
    let mut checked: HashMap<&str, usize> = HashMap::new();
    for line in VECTORS.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (text, bytes) = line.split_once(" : ").expect("a colon");
        let (kind, rest) = text.split_once(' ').expect("fields");
        let bytes = hex(bytes);
        match kind {
            "invalid" => {
                let error = error(&bytes, Carrier::OneRtt);
                let expected = rest.split_whitespace().next().unwrap();
                assert_eq!(error.code.to_string(), expected, "{line}");
            }
            "parameter" => check_parameter(&Fields::new(rest), &bytes),
            _ => check_frame(kind, &Fields::new(rest), &bytes),
        }
        *checked.entry(kind).or_default() += 1;
    }
    for &kind in FrameKind::ALL.iter().filter(|k| k.is_fec()) {
        assert!(checked[kind.info().name] >= 3, "{kind:?}");
    }
    assert!(checked["invalid"] >= 10 && checked["parameter"] >= 3);
}
