//! The fuzz targets on seeded, mutated valid input: for machines without a fuzzer.
//!
//! `FUZZ_ITERATIONS` sets how many inputs each gets.

use sutura_random::fuzz::{input, replay, run};
use sutura_tunnel::fuzz;

fn packets() -> Vec<Vec<u8>> {
    let syn = [0, 9, 0, 22, 0, 0, 0, 1, 0, 0, 0, 0, 0x60, 2, 1, 0, 0, 0, 0, 0, 2, 4, 5, 0xb4];
    let v4 = [0x45, 0, 0, 44, 0, 1, 0x40, 0, 64, 6, 0x26, 0xc9, 10, 0, 0, 1, 10, 0, 0, 2];
    let v6 = |next: u8, payload: &[u8]| {
        let mut packet = vec![0x60, 0, 0, 0, 0, payload.len() as u8, next, 64];
        packet.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        packet.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
        packet.extend_from_slice(payload);
        packet
    };
    let options = [44, 0, 1, 4, 0, 0, 0, 0];
    let fragment = [17, 0, 0, 1, 0, 0, 0, 7, 0, 9, 0, 53, 0, 8, 0, 0];
    vec![
        [&v4[..], &syn].concat(),
        v6(6, &syn),
        v6(0, &[&options[..], &fragment].concat()),
        v6(58, &[128, 0, 0, 0, 0, 0, 0, 0]),
        v6(51, &[17, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 53]),
    ]
}

fn capsules() -> Vec<Vec<u8>> {
    vec![
        vec![
            1, 0, 4, 10, 77, 0, 2, 32, 2, 6, 0xfd, 0x77, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2,
            128,
        ],
        vec![2, 1, 4, 0, 0, 0, 0, 32, 0x40, 2, 4, 10, 0, 0, 0, 8],
        vec![3, 4, 10, 0, 0, 0, 10, 255, 255, 255, 0, 4, 11, 0, 0, 0, 11, 0, 0, 1, 17],
    ]
}

fn texts() -> Vec<&'static [u8]> {
    vec![
        b"db.example.org:5432",
        b"[2001:db8::1]:443",
        b"/.well-known/masque/ip/192.0.2.0%2F24/17/",
        b"udp/*.example.org:5000-5100",
        b"udp:51820,dscp=ef,from=10.77.0.2 real-time deadline=100ms u=1 protect tail:burst=1\n# no\n",
    ]
}

#[test]
fn packets_of_both_versions() {
    for seed in packets() {
        sutura_tunnel::ip::Header::parse(&seed).unwrap_or_else(|e| panic!("{seed:?}: {e}"));
    }
    run(60_000, &packets(), fuzz::packet);
}

#[test]
fn capsules_of_both_ends() {
    run(60_000, &capsules(), fuzz::capsule);
}

#[test]
fn texts_of_clients_and_operators() {
    run(20_000, &texts(), fuzz::text);
}

#[test]
fn stored_inputs() {
    replay("tunnel_packet", |rng| input(rng, &packets()), fuzz::packet);
    replay("tunnel_capsule", |rng| input(rng, &capsules()), fuzz::capsule);
    replay("tunnel_text", |rng| input(rng, &texts()), fuzz::text);
}
