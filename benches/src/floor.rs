//! The least that any stack has to do for a task: the kernel's part of a download, one cipher and one system call for
//! each direction of a request, TLS for a handshake. Everything else that a stack takes is its own.

mod bulk;
mod handshake;
mod request;

use crate::job::{Account, Job, Listening, Role, Task, say};
use crate::{Error, usage};
use std::io::BufRead;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::thread;
use std::time::Duration;

/// The buffers of the sockets: enough for everything that is under way.
const SOCKET_BUFFER: usize = 4 << 20;
/// How long to wait for a datagram before it counts as lost, after which nothing goes on.
const PATIENCE: Duration = Duration::from_secs(5);
/// More bytes than a datagram has, or datagrams that the kernel has put together.
const LARGEST: usize = 1 << 16;

/// Does the job in blocking calls.
pub fn work(job: &Job) -> Result<(), Error> {
    let payload = job.settings.payload.ok_or("the payload has to be given")?;
    match job.role {
        Role::Server => {
            let (socket, address) = socket()?;
            say(&Listening { address })?;
            thread::spawn(move || serve(&socket, usize::from(payload)));
            for line in std::io::stdin().lock().lines() {
                line?;
                say(&Account { usage: usage::now()?, repairs: 0 })?;
            }
            Ok(())
        }
        Role::Client { server, task } => {
            let done = match task {
                Task::Bulk { bytes } => bulk::download(server, bytes)?,
                Task::Requests { count, at_once: 1 } => request::ask(server, count)?,
                Task::Handshakes { count } => handshake::both(&job.settings.identity, count)?,
                _ => return Err("no floor is known of this".into()),
            };
            say(&done)
        }
        Role::Workers { .. } | Role::Clients { .. } => Err("no floor has workers".into()),
    }
}

/// A socket of our own, and its address.
fn socket() -> Result<(UdpSocket, SocketAddr), Error> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let options = socket2::SockRef::from(&socket);
    options.set_recv_buffer_size(SOCKET_BUFFER)?;
    options.set_send_buffer_size(SOCKET_BUFFER)?;
    let address = socket.local_addr()?;
    Ok((socket, address))
}

/// A client's socket, which gives up when nothing comes.
fn client(server: SocketAddr) -> Result<UdpSocket, Error> {
    let (socket, _) = socket()?;
    socket.connect(server)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    Ok(socket)
}

/// Serves whatever is asked for; clients notice when it fails.
fn serve(socket: &UdpSocket, payload: usize) -> Result<(), Error> {
    let mut answers = request::Answers::new()?;
    let mut buffer = vec![0; LARGEST];
    loop {
        let (len, client) = socket.recv_from(&mut buffer)?;
        match bulk::wanted(&buffer[..len]) {
            Some(bytes) => bulk::upload(socket, client, payload, bytes)?,
            None => answers.answer(socket, client, &mut buffer[..len])?,
        }
    }
}
