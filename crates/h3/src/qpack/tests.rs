use bytes::Bytes;
use proptest::prelude::*;
use sutura_proto::StreamId;

use super::*;
use crate::error::Code;
use crate::fields::{Field, Fields};

const LIMITS: FieldLimits = FieldLimits { size: 4096, lines: 16 };

fn decode_within(block: &[u8], limits: FieldLimits) -> Result<Fields, SectionError> {
    Decoder::new(0, 0).section(StreamId(0), &Bytes::copy_from_slice(block), limits)
}

fn decode(block: &[u8]) -> Result<Fields, SectionError> {
    decode_within(block, LIMITS)
}

/// A section without a dynamic table.
fn encoded(fields: &Fields) -> Vec<u8> {
    let mut out = Vec::new();
    Encoder::default().section(StreamId(0), fields, true, &mut out);
    out
}

/// RFC 9204 appendix B.1.
#[test]
fn rfc9204_b1_literal_with_name_reference() {
    let fields = Fields::new().with(":path", "/index.html");
    assert_eq!(decode(b"\x00\x00\x51\x0b/index.html"), Ok(fields.clone()));
    // Our encoder makes the same line, Huffman coded because that is shorter.
    assert_eq!(encoded(&fields)[..3], [0, 0, 0x51]);
    assert_eq!(decode(&encoded(&fields)), Ok(fields));
}

/// RFC 9204 appendix B.2 to B.5, as the decoder sees them.
#[test]
fn rfc9204_b2_to_b5_dynamic_table() {
    let mut decoder = Decoder::new(220, 1);
    let section = |decoder: &mut Decoder, stream, block: &'static [u8]| {
        decoder.section(StreamId(stream), &Bytes::from_static(block), LIMITS)
    };
    // B.2: the section arrives before the instructions.
    let block = b"\x03\x81\x10\x11";
    assert_eq!(section(&mut decoder, 4, block), Err(SectionError::Blocked));
    decoder.receive(b"\x3f\xbd\x01\xc0\x0fwww.example.com").unwrap();
    assert_eq!(decoder.unblocked(), None);
    decoder.receive(b"\xc1\x0c/sample/path").unwrap();
    assert_eq!((decoder.unblocked(), decoder.unblocked()), (Some(StreamId(4)), None));
    let fields = Fields::new().with(":authority", "www.example.com").with(":path", "/sample/path");
    assert_eq!(section(&mut decoder, 4, block), Ok(fields));
    assert_eq!(std::mem::take(decoder.instructions()), b"\x84");
    // B.3.
    decoder.receive(b"\x4acustom-key\x0ccustom-value").unwrap();
    assert_eq!(std::mem::take(decoder.instructions()), b"\x01");
    // B.4: one stream is cancelled before its section arrives; the section of another stream is decoded.
    decoder.receive(b"\x02").unwrap();
    decoder.cancel(StreamId(8));
    assert_eq!(std::mem::take(decoder.instructions()), b"\x48\x01");
    let fields = Fields::new()
        .with(":authority", "www.example.com")
        .with(":path", "/")
        .with("custom-key", "custom-value");
    assert_eq!(section(&mut decoder, 12, b"\x05\x00\x80\xc1\x81"), Ok(fields));
    assert_eq!(std::mem::take(decoder.instructions()), b"\x8c");
    // B.5: the first entry is evicted.
    decoder.receive(b"\x81\x0dcustom-value2").unwrap();
    let block = b"\x06\x00\x80";
    let fields = Fields::new().with("custom-key", "custom-value2");
    assert_eq!(section(&mut decoder, 16, block), Ok(fields));
    let evicted = section(&mut decoder, 20, b"\x06\x00\x84");
    assert!(matches!(evicted, Err(SectionError::Malformed(_))));
}

/// Sections that no encoder sends, for a table with three entries of which the first was evicted.
#[test]
fn malformed_references() {
    let mut decoder = Decoder::new(100, 1);
    decoder.receive(b"\x3f\x45\x41a\x01b\x41a\x01c\x41a\x01d").unwrap();
    for (section, what) in [
        (&b"\x08\x00\x80"[..], "Required Insert Count beyond the range"),
        (b"\x04\x83\x80", "negative Base"),
        (b"\x04\x00\x82", "evicted"),
        (b"\x04\x00\x83", "before the first"),
        (b"\x03\x00\x10", "post-Base, beyond the Required Insert Count"),
        (b"\x03\x01\x80", "beyond the Required Insert Count"),
        (b"\x00\x03\x80", "not announced at all"),
        (b"\x04\x00\x42\x00", "name, evicted"),
        (b"\x03\x00\x00\x00", "name, post-Base, beyond the Required Insert Count"),
        (b"\x04\x00\xbf\xff\xff\xff\xff\xff\xff\xff\xff\x3f", "index near 2^62"),
    ] {
        let section = decoder.section(StreamId(0), &Bytes::from_static(section), LIMITS);
        assert!(matches!(section, Err(SectionError::Malformed(_))), "{what}: {section:?}");
    }
    let two = Fields::new().with("a", "c").with("a", "d");
    for section in [&b"\x04\x00\x81\x80"[..], b"\x04\x80\x80\x10", b"\x04\x81\x10\x11"] {
        let section = Bytes::from_static(section);
        assert_eq!(decoder.section(StreamId(0), &section, LIMITS), Ok(two.clone()));
    }
}

#[test]
fn malformed_instructions() {
    for (stream, what) in [
        (&b"\x3f\x46"[..], "capacity above the limit"),
        (b"\x3f\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "capacity beyond 62 bits"),
        (b"\x00", "duplicate of nothing"),
        (b"\x80\x00", "name of nothing"),
        (b"\xff\x24\x00", "static index 99"),
        (b"\x41a\x00", "capacity zero"),
        (b"\x3f\x45\x5f\x80\x10", "name too long"),
        (b"\x3f\x45\x41a\x7f\xe6\x7f", "value too long, announced only"),
        (b"\x3f\x45\x41a\x44aaaa", "cut Huffman code"),
        (b"\x3f\x45\x41a\x84\xff\xff\xff\xff", "Huffman EOS"),
        (b"\x3f\x45\x41a\x01b\x01", "duplicate of what is not there"),
    ] {
        let outcome = Decoder::new(100, 1).receive(stream);
        if what == "cut Huffman code" {
            assert_eq!(outcome, Ok(()), "it may go on");
            continue;
        }
        let code = outcome.map_err(|error| error.code);
        assert_eq!(code, Err(Code::QPACK_ENCODER_STREAM_ERROR), "{what}");
    }
    for stream in [&b"\x3f\xbd\x01"[..], b"\xc0\x0fwww", b"\x4acu", b"\x02", b"\x81\x0d"] {
        let error = Decoder::new(0, 0).receive(stream).unwrap_err();
        assert_eq!(error.code, Code::QPACK_ENCODER_STREAM_ERROR, "{stream:x?}");
    }
    assert_eq!(Decoder::new(0, 0).receive(b"\x20\x20"), Ok(()));
}

#[test]
fn malformed_feedback() {
    let encoder = || {
        let mut encoder = Encoder::default();
        encoder.configure(4096, 4096, 1);
        let mut block = Vec::new();
        encoder.section(StreamId(4), &Fields::new().with("a", "b"), true, &mut block);
        encoder
    };
    for (stream, what) in [
        (&b"\x00"[..], "increment of zero"),
        (b"\x02", "increment beyond what was inserted"),
        (b"\x01\x01", "the same in two steps"),
        (b"\x80", "no section on the stream"),
        (b"\x84\x84", "acknowledged twice"),
        (b"\x48\x84\x44\x84", "acknowledged after its cancellation"),
        (b"\x84\x01", "increment after an acknowledgement"),
        (b"\x7f\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "stream beyond 62 bits"),
    ] {
        let code = encoder().receive(stream).map_err(|error| error.code);
        assert_eq!(code, Err(Code::QPACK_DECODER_STREAM_ERROR), "{what}");
    }
    for stream in [&b"\x84"[..], b"\x01\x84", b"\x44", b"\x44\x44\x01", b"\x7f\x80\x80\x01\x48"] {
        assert_eq!(encoder().receive(stream), Ok(()), "{stream:x?}");
    }
}

/// The sections of two requests with a field that repeats, with the encoder's instructions before each.
fn twice(blocked: u64, fields: &Fields) -> [(Vec<u8>, Vec<u8>); 2] {
    let mut encoder = Encoder::default();
    encoder.configure(4096, 4096, blocked);
    [0, 4].map(|stream| {
        let mut block = Vec::new();
        encoder.section(StreamId(stream), fields, true, &mut block);
        (std::mem::take(encoder.instructions()), block)
    })
}

#[test]
fn nobody_is_made_to_wait_who_does_not_want_to() {
    let fields = Fields::new().with("x-name", "value");
    let [first, second] = twice(0, &fields);
    assert_eq!(first.1, second.1);
    assert_eq!((decode(&first.1), second.0), (Ok(fields.clone()), Vec::new()));
    // One stream may wait for the table, a second stream may not.
    let [first, second] = twice(1, &fields);
    assert_eq!(first.1, b"\x02\x80\x10");
    assert_eq!(decode(&second.1), Ok(fields.clone()));
    let [first, second] = twice(2, &fields);
    assert_eq!((&first.1[..], &second.1[..]), (&b"\x02\x80\x10"[..], &b"\x02\x00\x80"[..]));
    assert!(second.0.is_empty());
}

#[test]
fn secrets_and_what_never_repeats_are_not_inserted() {
    let mut fields = Fields::new().with("authorization", "x").with("content-length", "12345");
    fields.push(Field { sensitive: true, ..Field::new("x-secret", "y") });
    fields.push(Field::new("x-large", vec![b'a'; 2100]));
    let capacity = b"\x3f\xe1\x1f".to_vec();
    let [first, second] = twice(2, &fields);
    assert_eq!((first.0, second.0), (capacity, Vec::new()));
    assert_eq!(first.1, second.1);
}

/// A busy table makes room for new entries, and keeps entries in use.
#[test]
fn entries_in_use_stay_and_others_make_room() {
    let mut encoder = Encoder::default();
    encoder.configure(400, 400, 100);
    let mut decoder = Decoder::new(400, 100);
    for n in 0..1000 {
        let stream = StreamId(n * 4);
        let fields = Fields::new().with("x-often", "same").with("x-new", n.to_string());
        let mut block = Vec::new();
        encoder.section(stream, &fields, true, &mut block);
        decoder.receive(&std::mem::take(encoder.instructions())).unwrap();
        assert_eq!(decoder.section(stream, &block.clone().into(), LIMITS), Ok(fields));
        encoder.receive(&std::mem::take(decoder.instructions())).unwrap();
        assert!(n == 0 || block.len() <= 4, "{n}: {block:x?}");
    }
    assert!(encoder.is_settled() && decoder.is_within_bounds());
}

/// A peer that acknowledges nothing gets sections without references in the end.
#[test]
fn a_flood_of_sections_without_acknowledgement() {
    let mut encoder = Encoder::default();
    encoder.configure(4096, 4096, u64::MAX);
    let fields = Fields::new().with("x-name", "value");
    for n in 0..2 * MAX_UNACKNOWLEDGED_SECTIONS {
        let mut block = Vec::new();
        encoder.section(StreamId(n as u64 * 4), &fields, true, &mut block);
        assert_eq!(block[0] != 0, n < MAX_UNACKNOWLEDGED_SECTIONS, "{n}");
    }
    encoder.receive(b"\x80").unwrap();
    let mut block = Vec::new();
    encoder.section(StreamId(1 << 20), &fields, true, &mut block);
    assert_eq!(block, b"\x02\x00\x80");
}

/// Announced strings that arrive slowly are not held beyond the size of the table.
#[test]
fn a_flood_of_announcements_is_not_held() {
    let mut decoder = Decoder::new(4096, 1);
    decoder.receive(b"\x3f\xe1\x1f\x41a\x7f\x80\x7f").unwrap();
    for _ in 0..4 {
        decoder.receive(&[b'x'; 4000]).unwrap();
    }
    let error = decoder.receive(&[b'x'; 400]).unwrap_err();
    assert_eq!(error.code, Code::QPACK_ENCODER_STREAM_ERROR);
    let error = Decoder::new(4096, 1).receive(b"\x3f\xe1\x1f\x41a\x7f\x82\x7f").unwrap_err();
    assert_eq!(error.code, Code::QPACK_ENCODER_STREAM_ERROR);
}

#[test]
fn malformed_sections() {
    for (section, what) in [
        (&b""[..], "no prefix"),
        (b"\x00", "half a prefix"),
        (b"\x01\x00", "Required Insert Count"),
        (b"\x00\x80", "negative Base"),
        (b"\x00\x00\x80", "indexed, dynamic"),
        (b"\x00\x00\x10", "indexed, post-Base"),
        (b"\x00\x00\x40\x00", "name reference, dynamic"),
        (b"\x00\x00\x00\x00", "name reference, post-Base"),
        (b"\x00\x00\xff\x24", "static index 99"),
        (b"\x00\x00\x5f\x54\x00", "static name index 99"),
        (b"\x00\x00\xff", "index cut"),
        (b"\x00\x00\x51", "value missing"),
        (b"\x00\x00\x51\x02a", "value cut"),
        (b"\x00\x00\x23ab", "name cut"),
        (b"\x00\x00\x21a", "no value"),
        (b"\x00\x00\x51\x81\x00", "Huffman padding"),
        (b"\x00\x00\x51\x84\xff\xff\xff\xff", "Huffman EOS"),
        (b"\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "integer overflow"),
        (b"\x00\x00\x51\x7f\xff\xff\xff\xff\xff\xff\xff\xff\x3f", "length near 2^62"),
    ] {
        assert!(matches!(decode(section), Err(SectionError::Malformed(_))), "{what}");
    }
    assert_eq!(decode(b"\x00\x7f\x05").unwrap().len(), 0, "any Base goes with no references");
}

#[test]
fn limits_are_exact_for_every_representation() {
    for fields in [
        Fields::new().with(":method", "GET"),
        Fields::new().with(":path", "/0000"),
        Fields::new().with(":path", "\u{1}\u{2}"),
        Fields::new().with("x-0000", "\u{1}\u{2}"),
        Fields::new().with("x-\u{1}", "0000"),
    ] {
        let block = encoded(&fields);
        let size = fields.size();
        let decode = |size, lines| decode_within(&block, FieldLimits { size, lines });
        assert_eq!(decode(size, 1), Ok(fields.clone()));
        assert_eq!(decode(size - 1, 1), Err(SectionError::TooLarge));
        assert_eq!(decode(size, 0), Err(SectionError::TooLarge));
    }
}

#[test]
fn the_never_indexed_bit_survives_and_forbids_indexing() {
    for (name, value) in [(":method", "GET"), ("authorization", "secret"), ("x-key", "secret")] {
        let mut fields = Fields::new();
        fields.push(Field { sensitive: true, ..Field::new(name, value) });
        assert_eq!(decode(&encoded(&fields)), Ok(fields));
    }
}

fn field() -> impl Strategy<Value = Field> {
    let known = (0u64..99).prop_map(|index| static_table::get(index).unwrap());
    let bytes = || prop::collection::vec(any::<u8>(), 0..40);
    prop_oneof![
        (known.clone(), any::<bool>())
            .prop_map(|((n, v), sensitive)| Field { sensitive, ..Field::new(n, v) }),
        (known, bytes()).prop_map(|((name, _), value)| Field::new(name, value)),
        (bytes(), bytes(), any::<bool>())
            .prop_map(|(n, v, sensitive)| Field { sensitive, ..Field::new(n, v) }),
    ]
}

proptest! {
    #[test]
    fn round_trip(lines in prop::collection::vec(field(), 0..16)) {
        let fields: Fields = lines.into_iter().collect();
        let block = encoded(&fields);
        // The size limit of the decoded section bounds the encoded block too.
        prop_assert!(block.len() as u64 <= fields.size() + 2);
        let limits = FieldLimits { size: fields.size(), lines: fields.len() };
        prop_assert_eq!(decode_within(&block, limits), Ok(fields));
    }

    #[test]
    fn an_encoder_and_a_decoder_agree_whatever_the_order(
        operations in prop::collection::vec(any::<u8>(), 2..400),
    ) {
        crate::fuzz::qpack_pair(&operations);
    }
}
