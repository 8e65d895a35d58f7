use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::error::Code;
use crate::fields::{Field, Fields};

const LIMITS: FieldLimits = FieldLimits { size: 4096, lines: 16 };

fn decode(block: &[u8]) -> Result<Fields, SectionError> {
    Decoder::decode(&Bytes::copy_from_slice(block), LIMITS)
}

fn encoded(fields: &Fields) -> Vec<u8> {
    let mut out = Vec::new();
    encode(fields, &mut out);
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

/// RFC 9204 appendix B.2 to B.5 use a dynamic table, which was not offered.
#[test]
fn rfc9204_b2_to_b5_need_a_dynamic_table() {
    for section in [&b"\x03\x81\x10\x11"[..], b"\x05\x00\x80\xc1\x81"] {
        assert!(matches!(decode(section), Err(SectionError::Malformed(_))), "{section:x?}");
    }
    for stream in [
        &b"\x3f\xbd\x01"[..],
        b"\xc0\x0fwww.example.com",
        b"\x4acustom-key\x0ccustom-value",
        b"\x02",
        b"\x81\x0dcustom-value2",
    ] {
        let error = EncoderStream::default().receive(stream).unwrap_err();
        assert_eq!(error.code, Code::QPACK_ENCODER_STREAM_ERROR, "{stream:x?}");
    }
    for stream in [&b"\x84"[..], b"\x01", b"\x00"] {
        let error = DecoderStream::default().receive(stream).unwrap_err();
        assert_eq!(error.code, Code::QPACK_DECODER_STREAM_ERROR, "{stream:x?}");
    }
    // B.4: a cancellation is harmless.
    assert_eq!(DecoderStream::default().receive(b"\x48"), Ok(()));
}

#[test]
fn instructions_may_be_split_and_are_checked_to_the_end() {
    let mut encoder = EncoderStream::default();
    assert_eq!(encoder.receive(b"\x20\x20"), Ok(()));
    assert_eq!(encoder.receive(b"\x3f"), Ok(()));
    assert_eq!(encoder.receive(b"\x00").unwrap_err().code, Code::QPACK_ENCODER_STREAM_ERROR);
    assert!(EncoderStream::default().receive(&[0x3f; 16]).is_err());

    let mut decoder = DecoderStream::default();
    for byte in b"\x7f\x80\x80\x01\x48" {
        assert_eq!(decoder.receive(&[*byte]), Ok(()));
    }
    assert_eq!(decoder.receive(&[0xff]).unwrap_err().code, Code::QPACK_DECODER_STREAM_ERROR);
    assert!(DecoderStream::default().receive(&[&[0x7f][..], &[0xff; 16]].concat()).is_err());
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
        let block = Bytes::from(encoded(&fields));
        let size = fields.size();
        let decode = |size, lines| Decoder::decode(&block, FieldLimits { size, lines });
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
        prop_assert_eq!(Decoder::decode(&block.into(), limits), Ok(fields));
    }
}
