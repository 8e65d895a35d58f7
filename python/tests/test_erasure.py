"""Codes: what is lost comes back, and nothing that is given to them is worse than a ValueError."""

import inspect
import random

import numpy
import pytest

from sutura import erasure

CODES = {
    "reed-solomon": lambda k, r: erasure.ReedSolomon(k, r),
    "random-linear": lambda k, r: erasure.RandomLinear(k, r, key=7),
    "ldpc": lambda k, r: erasure.LdpcStaircase(k, max(r, 4)),
    "xor": lambda k, r: erasure.Xor2d(k, min(k, 5)),
}


@pytest.mark.parametrize("name", CODES)
@pytest.mark.parametrize("seed", range(20))
def test_what_a_block_code_returns_is_right(name, seed):
    rng = random.Random(f"{name} {seed}")
    code = CODES[name](rng.randint(4, 40), rng.randint(1, 20))
    size = rng.choice([1, 2, 17, 1200])
    sources = [rng.randbytes(size) for _ in range(code.sources)]
    symbols = sources + code.encode(sources)
    assert len(symbols) == code.sources + code.repairs
    lost = rng.sample(range(len(symbols)), rng.randint(0, code.repairs))
    arrived = {place: symbol for place, symbol in enumerate(symbols) if place not in lost}
    decoded = code.decode(arrived)
    for source, found in zip(sources, decoded):
        assert found in (source, None)
    if name == "reed-solomon" or not any(place < code.sources for place in lost):
        assert decoded == sources
    # One loss is within what each of them can do.
    assert code.decode([None, *symbols[1:]]) == sources


@pytest.mark.parametrize("seed", range(20))
def test_packets_in_any_order_are_the_data(seed):
    rng = random.Random(seed)
    data = rng.randbytes(rng.choice([1, 999, 40_000, 200_000]))
    mtu = rng.choice([5, 104, 1200] if len(data) < 1000 else [304, 1200])
    packets = erasure.Encoder.with_defaults(data, mtu).get_encoded_packets(16)
    assert max(map(len, packets)) <= mtu
    blocks = {}
    for packet in packets:
        blocks.setdefault(packet[:3], []).append(packet)
    # 16 packets of each block are lost.
    arrived = [packet for block in blocks.values() for packet in rng.sample(block, len(block) - 16)]
    rng.shuffle(arrived)
    decoder = erasure.Decoder.with_defaults(len(data), mtu)
    found = [decoder.decode(packet) for packet in arrived]
    assert found[-1] == data
    assert all(early is None for early in found[:-1])
    assert decoder.decode(arrived[0]) == data


@pytest.mark.parametrize("seed", range(20))
def test_a_window_recovers_what_is_lost(seed):
    rng = random.Random(seed)
    encoder, decoder = erasure.WindowEncoder(), erasure.WindowDecoder()
    sent, got = {}, {}
    for key in range(60):
        for _ in range(rng.randint(1, 8)):
            symbol = rng.randbytes(rng.randint(1, 1500))
            number = encoder.push(symbol)
            sent[number] = symbol
            if rng.random() > 0.1:
                got[number] = symbol
                got.update(decoder.source(number, symbol))
        first, end = encoder.window
        if rng.random() > 0.1:
            got.update(decoder.repair(first, end, key, encoder.repair(first, end, key)))
    first, end = encoder.window
    # Over all of it, so that nothing is missing at the end: each symbol more is worth a lost one.
    for key in range(1000, 1000 + len(sent)):
        got.update(decoder.repair(first, end, key, encoder.repair(first, end, key)))
    assert (got, decoder.missing()) == (sent, [])
    assert decoder.symbol(0) == sent[0]
    encoder.release_below(5)
    decoder.release_below(5)
    assert (encoder.window, decoder.symbol(0)) == ((5, end), None)


def test_arrays_and_buffers_are_bytes():
    code = erasure.ReedSolomon(3, 2)
    array = numpy.arange(30, dtype=numpy.uint8).reshape(3, 10)
    plain = [row.tobytes() for row in array]
    repairs = code.encode(plain)
    assert code.encode(array) == repairs
    assert code.encode([bytearray(plain[0]), memoryview(plain[1]), array[2]]) == repairs
    # Arrays of other types and with gaps count as their bytes in the order of C.
    wide = numpy.arange(20, dtype=numpy.int16)[::2]
    assert code.encode([wide] * 3) == code.encode([wide.tobytes()] * 3)
    decoded = code.decode([None, array[1], array[2], repairs[0], None])
    assert numpy.array_equal(numpy.frombuffer(decoded[0], numpy.uint8), array[0])
    encoder = erasure.WindowEncoder()
    assert encoder.push(array) == 0
    assert erasure.Encoder(array, 10).get_encoded_packets(0)[1] == b"\0\0\0\1" + plain[1]


RS = erasure.ReedSolomon(3, 2)
HUGE = 1 << 100


@pytest.mark.parametrize(
    "call",
    [
        lambda: erasure.ReedSolomon(0, 1),
        lambda: erasure.ReedSolomon(200, 57),
        lambda: erasure.ReedSolomon(-1, 1),
        lambda: erasure.ReedSolomon(HUGE, 1),
        lambda: erasure.RandomLinear(5000, 1),
        lambda: erasure.RandomLinear(5, 1, key=1 << 32),
        lambda: erasure.LdpcStaircase(5, 5, degree=0),
        lambda: erasure.LdpcStaircase(5, 5, seed=0),
        lambda: erasure.LdpcStaircase(HUGE, 5),
        lambda: erasure.Xor2d(0, 1),
        lambda: erasure.Xor2d(5, 0),
        lambda: RS.encode([]),
        lambda: RS.encode([b"a", b"b"]),
        lambda: RS.encode([b"a", b"b", b"cc"]),
        lambda: RS.decode([b"a"]),
        lambda: RS.decode([b"a", b"bb", None, None, None]),
        lambda: RS.decode({5: b"a"}),
        lambda: RS.decode({-1: b"a"}),
        lambda: RS.decode({"0": b"a"}),
        lambda: erasure.WindowEncoder(symbols=HUGE),
        lambda: erasure.WindowEncoder(symbols=-1),
        lambda: erasure.WindowEncoder().push(b""),
        lambda: erasure.WindowEncoder(symbol_size=3).push(b"abcd"),
        lambda: erasure.WindowEncoder().repair(0, 0, 1),
        lambda: erasure.WindowEncoder().repair(5, 2, 1),
        lambda: erasure.WindowEncoder().repair(0, HUGE, 1),
        lambda: erasure.WindowDecoder(repairs=-1),
        lambda: erasure.WindowDecoder().source(1 << 63, b"a"),
        lambda: erasure.WindowDecoder().source(-1, b"a"),
        lambda: erasure.WindowDecoder().repair(5, 2, 1, b"abc"),
        lambda: erasure.WindowDecoder().repair(0, 2, 1, b""),
        lambda: erasure.Encoder(b"", 10),
        lambda: erasure.Encoder(b"abc", 0),
        lambda: erasure.Encoder(b"abc", 70_000),
        lambda: erasure.Encoder.with_defaults(b"abc", 4),
        lambda: erasure.Encoder(b"abc", 1).get_encoded_packets(129),
        lambda: erasure.Encoder(b"abc", 1).get_encoded_packets(-1),
        lambda: erasure.Decoder(-5, 10),
        lambda: erasure.Decoder(10, 10).decode(b"x"),
        lambda: erasure.Decoder(10, 10).decode(b"\0\0\1\0" + bytes(10)),
        lambda: erasure.Decoder(10, 10).decode(b"\0\0\0\xff" + bytes(10)),
    ],
)
def test_what_cannot_be_is_a_value_error(call):
    with pytest.raises(ValueError):
        call()


@pytest.mark.parametrize("seed", range(200))
def test_noise_is_never_worse_than_a_value_error(seed):
    rng = random.Random(seed)
    number = lambda: rng.choice([0, 1, 2, 3, rng.randint(0, 300), (1 << 62) - 1, 1 << 62, (1 << 64) - 1])
    decoder = erasure.WindowDecoder(symbols=number(), symbol_size=number(), bytes=rng.randint(0, 10_000), repairs=9)
    packets = erasure.Decoder(50, 10)
    for _ in range(50):
        noise = rng.randbytes(rng.choice([0, 1, 14, 30]))
        for call in [
            lambda: decoder.source(number(), noise),
            lambda: decoder.repair(number(), number(), rng.getrandbits(32), noise),
            lambda: decoder.release_below(number()) if rng.random() < 0.1 else None,
            lambda: packets.decode(noise),
        ]:
            try:
                call()
            except ValueError:
                pass


def test_what_is_public_is_documented():
    for name in erasure.__all__:
        public = getattr(erasure, name)
        assert inspect.getdoc(public), name
        for method, value in inspect.getmembers(public, inspect.isfunction):
            assert method.startswith("_") or inspect.getdoc(value), (name, method)
