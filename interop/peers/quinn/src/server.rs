//! The server.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use quinn::{Connecting, Connection, Endpoint, RecvStream, SendStream};
use sutura_interop_endpoint::{Environment, Error, TestCase, http09};
use tokio::signal::unix::{SignalKind, signal};

use crate::config;

/// Serves until SIGTERM.
pub async fn run(environment: Environment) -> Result<(), Error> {
    let endpoint = Endpoint::server(config::server(&environment)?, environment.address)?;
    let environment = Arc::new(environment);
    let mut terminated = signal(SignalKind::terminate())?;
    loop {
        tokio::select! {
            _ = terminated.recv() => break,
            incoming = endpoint.accept() => {
                let Some(incoming) = incoming else { break };
                if environment.case == TestCase::Retry && !incoming.remote_address_validated() {
                    incoming.retry()?;
                    continue;
                }
                match incoming.accept() {
                    Ok(connecting) => drop(tokio::spawn(serve(connecting, environment.clone()))),
                    Err(error) => eprintln!("connection: {error}"),
                }
            }
        }
    }
    endpoint.close(0u32.into(), b"");
    endpoint.wait_idle().await;
    Ok(())
}

async fn serve(connecting: Connecting, environment: Arc<Environment>) {
    let early = environment.case == TestCase::ZeroRtt;
    let result = async {
        let connection = if early {
            let (connection, _) = connecting.into_0rtt().map_err(|_| "no early data")?;
            connection
        } else {
            connecting.await?
        };
        if environment.http3 {
            serve_http3(connection, &environment.www).await
        } else {
            serve_http09(connection, &environment.www).await
        }
    };
    if let Err(error) = result.await {
        eprintln!("connection: {error}");
    }
}

async fn serve_http09(connection: Connection, www: &Path) -> Result<(), Error> {
    while let Ok((send, recv)) = connection.accept_bi().await {
        let www = www.to_owned();
        tokio::spawn(async move {
            if let Err(error) = answer_http09(send, recv, &www).await {
                eprintln!("request: {error}");
            }
        });
    }
    Ok(())
}

async fn answer_http09(
    mut send: SendStream,
    mut recv: RecvStream,
    www: &Path,
) -> Result<(), Error> {
    let request = recv.read_to_end(http09::MAX_REQUEST).await?;
    let file = http09::file(www, &request).ok_or("no such file")?;
    send.write_all(&tokio::fs::read(file).await?).await?;
    send.finish()?;
    Ok(())
}

async fn serve_http3(connection: Connection, www: &Path) -> Result<(), Error> {
    let mut server = h3::server::Connection::new(h3_quinn::Connection::new(connection)).await?;
    while let Ok(Some(resolver)) = server.accept().await {
        let www = www.to_owned();
        tokio::spawn(async move {
            let answer = async {
                let (request, mut stream) = resolver.resolve_request().await?;
                let path = request.uri().path().strip_prefix('/').unwrap_or_default();
                let file = http09::locate(&www, path).ok_or("no such file")?;
                let contents = Bytes::from(tokio::fs::read(file).await?);
                stream.send_response(http::Response::new(())).await?;
                stream.send_data(contents).await?;
                stream.finish().await?;
                Ok::<(), Error>(())
            };
            if let Err(error) = answer.await {
                eprintln!("request: {error}");
            }
        });
    }
    Ok(())
}
