//! The client.

use std::future;

use bytes::Buf;
use quinn::{ClientConfig, Connection, Endpoint};
use sutura_interop_endpoint::{
    Environment, Error, Request, SERVER, TestCase, UPDATE_AFTER, http09,
};
use tokio::fs::File;
use tokio::io::AsyncWriteExt;
use tokio::task::JoinSet;

use crate::config;

/// Fetches the requested files.
pub async fn run(environment: &Environment) -> Result<(), Error> {
    let endpoint = Endpoint::client(environment.any_address())?;
    let fetcher =
        Fetcher { environment, endpoint: &endpoint, config: config::client(environment)? };
    for (requests, early) in environment.connections() {
        fetcher.connection(requests, early).await?;
    }
    endpoint.wait_idle().await;
    Ok(())
}

struct Fetcher<'a> {
    environment: &'a Environment,
    endpoint: &'a Endpoint,
    config: ClientConfig,
}

impl Fetcher<'_> {
    /// Fetches `requests` on one connection.
    async fn connection(&self, requests: &[Request], early: bool) -> Result<(), Error> {
        let address = self.environment.address;
        let connecting = self.endpoint.connect_with(self.config.clone(), address, SERVER)?;
        let connection = if early {
            let (connection, _) = connecting.into_0rtt().map_err(|_| "there is no ticket")?;
            connection
        } else {
            connecting.await?
        };
        if self.environment.http3 {
            http3(self.environment, connection.clone(), requests).await?;
        } else {
            http09(self.environment, &connection, requests).await?;
        }
        connection.close(0u32.into(), b"");
        Ok(())
    }
}

async fn http09(
    environment: &Environment,
    connection: &Connection,
    requests: &[Request],
) -> Result<(), Error> {
    let update = environment.case == TestCase::KeyUpdate;
    let mut fetches = JoinSet::new();
    for request in requests {
        let to = environment.downloads.join(&request.name);
        let (connection, path) = (connection.clone(), request.path.clone());
        fetches.spawn(async move {
            let (mut send, mut recv) = connection.open_bi().await?;
            send.write_all(&http09::request(&path)).await?;
            send.finish()?;
            let mut file = File::create(to).await?;
            let (mut received, mut updated) = (0, !update);
            while let Some(chunk) = recv.read_chunk(64 << 10, true).await? {
                file.write_all(&chunk.bytes).await?;
                received += chunk.bytes.len();
                if !updated && received > UPDATE_AFTER {
                    connection.force_key_update();
                    updated = true;
                }
            }
            file.flush().await?;
            Ok::<(), Error>(())
        });
    }
    while let Some(fetch) = fetches.join_next().await {
        fetch??;
    }
    Ok(())
}

async fn http3(
    environment: &Environment,
    connection: Connection,
    requests: &[Request],
) -> Result<(), Error> {
    let (mut driver, sender) = h3::client::new(h3_quinn::Connection::new(connection)).await?;
    let driving = tokio::spawn(async move { future::poll_fn(|cx| driver.poll_close(cx)).await });
    let mut fetches = JoinSet::new();
    for request in requests {
        let to = environment.downloads.join(&request.name);
        let uri = format!("https://{}{}", request.authority, request.path);
        let mut sender = sender.clone();
        fetches.spawn(async move {
            let mut stream = sender.send_request(http::Request::get(uri).body(())?).await?;
            stream.finish().await?;
            let response = stream.recv_response().await?;
            if response.status() != http::StatusCode::OK {
                return Err(Error::from(format!("status {}", response.status())));
            }
            let mut file = File::create(to).await?;
            while let Some(mut data) = stream.recv_data().await? {
                file.write_all(&data.copy_to_bytes(data.remaining())).await?;
            }
            file.flush().await?;
            Ok(())
        });
    }
    while let Some(fetch) = fetches.join_next().await {
        fetch??;
    }
    drop(sender);
    driving.await?;
    Ok(())
}
