//! A request and its answer in a datagram each, which the sender seals and the receiver opens.

use super::{LARGEST, client};
use crate::Error;
use crate::job::{ANSWER, Done};
use crate::usage::{self, since};
use ring::aead::{AES_128_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use std::net::{SocketAddr, UdpSocket};
use std::time::Instant;

/// Bytes in front of what is sealed: the number of the datagram.
const HEADER: usize = size_of::<u32>();
/// Bytes of a request: the length of the answer.
const REQUEST: usize = size_of::<u64>();

/// The keys of both ends; each has its own for what it sends.
const CLIENT: [u8; 16] = [1; 16];
const SERVER: [u8; 16] = [2; 16];

fn key(bytes: &[u8]) -> Result<LessSafeKey, Error> {
    let key = UnboundKey::new(&AES_128_GCM, bytes).map_err(|_| "no key")?;
    Ok(LessSafeKey::new(key))
}

fn nonce(header: &[u8]) -> Nonce {
    let mut nonce = [0; NONCE_LEN];
    nonce[NONCE_LEN - HEADER..].copy_from_slice(header);
    Nonce::assume_unique_for_key(nonce)
}

/// Makes a datagram of `number` and `len` zero bytes in `datagram`.
fn seal(key: &LessSafeKey, number: u32, len: usize, datagram: &mut Vec<u8>) -> Result<(), Error> {
    datagram.clear();
    datagram.extend_from_slice(&number.to_be_bytes());
    datagram.resize(HEADER + len, 0);
    let (header, body) = datagram.split_at_mut(HEADER);
    let (nonce, aad) = (nonce(header), Aad::from(&*header));
    let tag = key.seal_in_place_separate_tag(nonce, aad, body).map_err(|_| "not sealed")?;
    datagram.extend_from_slice(tag.as_ref());
    Ok(())
}

/// Opens a datagram in place. Returns its number and the length of its contents.
fn open(key: &LessSafeKey, datagram: &mut [u8]) -> Result<(u32, usize), Error> {
    let (header, body) = datagram.split_at_mut_checked(HEADER).ok_or("too short")?;
    let (nonce, aad) = (nonce(header), Aad::from(&*header));
    let body = key.open_in_place(nonce, aad, body).map_err(|_| "not opened")?;
    Ok((u32::from_be_bytes((&*header).try_into()?), body.len()))
}

/// The server's end.
pub struct Answers {
    client: LessSafeKey,
    server: LessSafeKey,
    datagram: Vec<u8>,
}

impl Answers {
    pub fn new() -> Result<Self, Error> {
        Ok(Self { client: key(&CLIENT)?, server: key(&SERVER)?, datagram: Vec::new() })
    }

    /// Answers the request in `datagram`.
    pub fn answer(
        &mut self,
        socket: &UdpSocket,
        client: SocketAddr,
        datagram: &mut [u8],
    ) -> Result<(), Error> {
        let (number, _) = open(&self.client, datagram)?;
        seal(&self.server, number, usize::try_from(ANSWER)?, &mut self.datagram)?;
        socket.send_to(&self.datagram, client)?;
        Ok(())
    }
}

/// Sends requests one after another, a tenth of them as a warm-up.
pub fn ask(server: SocketAddr, count: u64) -> Result<Done, Error> {
    let socket = client(server)?;
    let (sealing, opening) = (key(&CLIENT)?, key(&SERVER)?);
    let (mut request, mut answer) = (Vec::new(), vec![0; LARGEST]);
    let mut numbers = 0..;
    let mut exchange = || {
        let number = numbers.next().ok_or("too many requests")?;
        seal(&sealing, number, REQUEST, &mut request)?;
        socket.send(&request)?;
        let len = socket.recv(&mut answer)?;
        let opened = open(&opening, &mut answer[..len])?;
        let expected = (number, usize::try_from(ANSWER)?);
        if opened == expected { Ok(()) } else { Err(Error::from("another answer")) }
    };
    for _ in 0..count / 10 {
        exchange()?;
    }
    let mut times = Vec::with_capacity(usize::try_from(count)?);
    let (before, start) = (usage::now()?, Instant::now());
    for _ in 0..count {
        let start = Instant::now();
        exchange()?;
        times.push(start.elapsed());
    }
    let (seconds, usage) = (start.elapsed().as_secs_f64(), since(before)?);
    Ok(Done::of_many(seconds, count * ANSWER, usage, times))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_is_opened_with_the_same_key_only() {
        let (client, server) = (key(&CLIENT).expect("a key"), key(&SERVER).expect("a key"));
        let mut datagram = Vec::new();
        seal(&client, 7, 100, &mut datagram).expect("sealed");
        assert_eq!(datagram.len(), HEADER + 100 + AES_128_GCM.tag_len());
        assert!(open(&server, &mut datagram.clone()).is_err());
        assert_eq!(open(&client, &mut datagram).expect("opened"), (7, 100));
    }
}
