//! The client.

use sutura::http::{Client, Config};
use sutura::{ClientConfig, Connection, Endpoint};
use sutura_interop_endpoint::{
    Environment, Error, Request, SERVER, TestCase, UPDATE_AFTER, http09,
};
use tokio::fs::File;
use tokio::io::AsyncWriteExt;
use tokio::task::JoinSet;

use crate::{config, record, report};

/// Fetches the requested files.
pub async fn run(environment: &Environment) -> Result<(), Error> {
    let endpoint =
        Endpoint::bind(config::client_endpoint(environment), None, environment.any_address())?;
    record(&endpoint, environment);
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
            self.http3(&connection, requests).await?;
        } else {
            self.http09(&connection, requests).await?;
        }
        connection.close(0, b"");
        report(&connection);
        Ok(())
    }

    async fn http09(&self, connection: &Connection, requests: &[Request]) -> Result<(), Error> {
        let update = self.environment.case == TestCase::KeyUpdate;
        let mut fetches = JoinSet::new();
        for request in requests {
            let to = self.environment.downloads.join(&request.name);
            let (connection, path) = (connection.clone(), request.path.clone());
            fetches.spawn(async move {
                let (mut send, mut recv) = connection.open_bi().await?;
                send.write_all(&http09::request(&path)).await?;
                send.finish()?;
                let mut file = File::create(to).await?;
                let (mut chunk, mut received, mut updated) = (vec![0; 64 << 10], 0, !update);
                while let Some(length) = recv.read(&mut chunk).await? {
                    file.write_all(chunk.get(..length).unwrap_or_default()).await?;
                    received += length;
                    if !updated && received > UPDATE_AFTER {
                        updated = connection.update_keys();
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

    async fn http3(&self, connection: &Connection, requests: &[Request]) -> Result<(), Error> {
        let client = Client::new(connection.clone(), Config::default()).await?;
        let update = self.environment.case == TestCase::KeyUpdate;
        let mut fetches = JoinSet::new();
        for request in requests {
            let to = self.environment.downloads.join(&request.name);
            let (client, request) = (client.clone(), request.clone());
            let connection = connection.clone();
            fetches.spawn(async move {
                let Request { path, authority, .. } = &request;
                let mut stream = client.request("GET", authority, path, &[], None).await?;
                stream.finish().await?;
                let response = stream.recv_response().await?;
                if response.status != 200 {
                    return Err(Error::from(format!("{path}: status {}", response.status)));
                }
                let mut file = File::create(to).await?;
                let (mut received, mut updated) = (0, !update);
                while let Some(data) = stream.recv_data().await? {
                    file.write_all(&data).await?;
                    received += data.len();
                    if !updated && received > UPDATE_AFTER {
                        updated = connection.update_keys();
                    }
                }
                file.flush().await?;
                Ok(())
            });
        }
        while let Some(fetch) = fetches.join_next().await {
            fetch??;
        }
        Ok(())
    }
}
