//! Handshakes of rustls with itself, as QUIC carries them, without packets.

use crate::Error;
use crate::job::{Done, Usage};
use crate::usage;
use rustls::pki_types::ServerName;
use rustls::quic::{ClientConnection, Connection, ServerConnection, Version};
use std::sync::Arc;
use std::time::{Duration, Instant};
use sutura_benches::cpu;
use sutura_benches::tls::{self, Identity};

/// About as many bytes of transport parameters as a stack sends.
const PARAMETERS: usize = 64;

/// An end, and the CPU time that it has taken.
struct End {
    connection: Connection,
    cpu: Duration,
}

impl End {
    fn start(make: impl FnOnce() -> Result<Connection, rustls::Error>) -> Result<Self, Error> {
        let before = cpu::now();
        let connection = make()?;
        Ok(Self { connection, cpu: cpu::now() - before })
    }

    /// Processes the messages of the other end, one for each level of encryption, and returns its own.
    fn turn(&mut self, messages: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, Error> {
        let before = cpu::now();
        for message in messages {
            self.connection.read_hs(message)?;
        }
        let mut answers = Vec::new();
        loop {
            let mut answer = Vec::new();
            let keys = self.connection.write_hs(&mut answer);
            if !answer.is_empty() {
                answers.push(answer);
            }
            if keys.is_none() {
                break;
            }
        }
        self.cpu += cpu::now() - before;
        Ok(answers)
    }

    fn is_busy(&self) -> bool {
        match &self.connection {
            Connection::Client(client) => client.is_handshaking(),
            Connection::Server(server) => server.is_handshaking(),
        }
    }
}

/// Handshakes of both ends in this thread, one after another.
pub fn both(identity: &Identity, count: u64) -> Result<Done, Error> {
    let client_tls = Arc::new(identity.client_tls(tls::aes_128_gcm())?);
    let server_tls = Arc::new(identity.server_tls(tls::aes_128_gcm())?);
    let handshake = || {
        let parameters = || vec![0; PARAMETERS];
        let name = ServerName::try_from("localhost")?;
        let mut client = End::start(|| {
            ClientConnection::new(client_tls.clone(), Version::V1, name, parameters())
                .map(Connection::from)
        })?;
        let mut server = End::start(|| {
            ServerConnection::new(server_tls.clone(), Version::V1, parameters())
                .map(Connection::from)
        })?;
        let mut messages = client.turn(&[])?;
        while client.is_busy() || server.is_busy() {
            messages = server.turn(&messages)?;
            messages = client.turn(&messages)?;
        }
        Ok::<_, Error>((client.cpu, server.cpu))
    };
    handshake()?;
    let mut times = Vec::with_capacity(usize::try_from(count)?);
    let (mut client_cpu, mut server_cpu) = (Duration::ZERO, Duration::ZERO);
    let start = Instant::now();
    for _ in 0..count {
        let start = Instant::now();
        let (client, server) = handshake()?;
        client_cpu += client;
        server_cpu += server;
        times.push(start.elapsed());
    }
    let seconds = start.elapsed().as_secs_f64();
    let usage = Usage { cpu_seconds: client_cpu.as_secs_f64(), ..usage::now()? };
    let done = Done::of_many(seconds, count, usage, times);
    Ok(Done { server_cpu: Some(server_cpu.as_secs_f64()), ..done })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_finish_each_handshake() {
        let done = both(&Identity::new().expect("an identity"), 2).expect("two handshakes");
        assert_eq!(done.amount, 2);
        assert!(done.server_cpu.is_some_and(|cpu| cpu > 0.0) && done.usage.cpu_seconds > 0.0);
    }
}
