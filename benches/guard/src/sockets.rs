//! Exchanges over real sockets: what the async layer, its runtime and TLS add to connections in memory.
//!
//! Both ends are in one thread, which does one thing after another, so that the same happens each time. What the kernel
//! does is not counted.

use crate::Error;
use crate::gauge::Meter;
use crate::load::{ANSWER, REQUESTS};
use std::net::{Ipv4Addr, SocketAddr};
use sutura::{ClientConfig, Connection, Endpoint, RecvStream, SendStream, ServerConfig};
use sutura_proto::Side;
use tokio::runtime::Builder;

const PROTOCOL: &[&[u8]] = &[b"guard"];

/// Reads a stream to its end. Returns how many bytes came.
async fn read(stream: &mut RecvStream) -> Result<usize, Error> {
    let mut bytes = 0;
    while let Some(chunk) = stream.read_chunk(usize::MAX, true).await? {
        bytes += chunk.bytes.len();
    }
    Ok(bytes)
}

/// Answers a request that has arrived as a whole.
async fn answer((mut send, mut recv): (SendStream, RecvStream)) -> Result<(), Error> {
    read(&mut recv).await?;
    send.write_all(&[b'x'; ANSWER]).await?;
    Ok(send.finish()?)
}

/// Answers the requests of one client, one after another.
async fn serve(endpoint: Endpoint) -> Result<(), Error> {
    let incoming = endpoint.accept().await.ok_or("the endpoint is closed")?;
    let connection = incoming.await?;
    loop {
        answer(connection.accept_bi().await?).await?;
    }
}

/// A server, and a client that is connected to it.
async fn connect() -> Result<(Endpoint, Connection), Error> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let key = made.signing_key.serialize_der().try_into()?;
    let config = ServerConfig::with_single_cert(vec![made.cert.der().clone()], key, PROTOCOL)?;
    let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let server = Endpoint::server(config, local)?;
    let address = server.local_addr()?;
    // It ends with the runtime.
    tokio::task::spawn_local(async move { serve(server).await.map_err(|error| error.to_string()) });
    let mut client = Endpoint::client(local)?;
    client.set_default_client_config(ClientConfig::without_verification(PROTOCOL)?);
    let connection = client.connect(address, "localhost")?.await?;
    Ok((client, connection))
}

/// Sends requests, each after the answer to the one before.
async fn ask(connection: &Connection, requests: usize) -> Result<(), Error> {
    for _ in 0..requests {
        let (mut send, mut recv) = connection.open_bi().await?;
        send.write_all(&[0; 8]).await?;
        send.finish()?;
        if read(&mut recv).await? != ANSWER {
            return Err("not all of an answer arrived".into());
        }
    }
    Ok(())
}

/// Exchanges, one after another, at both ends together. The first half is a warm-up. Returns how many were measured.
pub fn exchanges(meter: Meter) -> Result<u64, Error> {
    let runtime = Builder::new_current_thread().enable_all().build_local(Default::default())?;
    let (_client, connection) = runtime.block_on(connect())?;
    runtime.block_on(ask(&connection, REQUESTS))?;
    let measured = meter.run(Side::Client, || Some(runtime.block_on(ask(&connection, REQUESTS))));
    measured.ok_or("nothing was measured")??;
    Ok(REQUESTS as u64)
}
