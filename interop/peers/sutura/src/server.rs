//! The server.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use sutura::http::{Config, RequestStream, Server};
use sutura::{Connecting, Connection, Endpoint, RecvStream, SendStream};
use sutura_interop_endpoint::{Environment, Error, TestCase, http09};
use tokio::io::AsyncReadExt;
use tokio::signal::unix::{SignalKind, signal};

use crate::{boxed, config, record, report};

/// Bytes read from a file at a time.
const CHUNK: usize = 64 << 10;

/// Serves until SIGTERM.
pub async fn run(environment: Environment) -> Result<(), Error> {
    let endpoint = Endpoint::bind(
        config::server_endpoint(&environment),
        Some(config::server(&environment)?),
        environment.address,
    )?;
    record(&endpoint, &environment);
    let environment = Arc::new(environment);
    let mut terminated = signal(SignalKind::terminate())?;
    loop {
        tokio::select! {
            _ = terminated.recv() => break,
            incoming = endpoint.accept() => {
                let Some(incoming) = incoming else { break };
                match incoming.accept() {
                    Ok(connecting) => drop(tokio::spawn(serve(connecting, environment.clone()))),
                    Err(error) => eprintln!("connection: {error}"),
                }
            }
        }
    }
    endpoint.close(0, b"");
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
    report(&connection);
    Ok(())
}

async fn answer_http09(
    mut send: SendStream,
    mut recv: RecvStream,
    www: &Path,
) -> Result<(), Error> {
    let request = recv.read_to_end(http09::MAX_REQUEST).await?;
    let file = http09::file(www, &request).ok_or("no such file")?;
    let mut file = tokio::fs::File::open(file).await?;
    let mut chunk = vec![0; CHUNK];
    loop {
        let length = file.read(&mut chunk).await?;
        if length == 0 {
            break;
        }
        send.write_all(chunk.get(..length).unwrap_or_default()).await?;
    }
    send.finish()?;
    Ok(())
}

async fn serve_http3(connection: Connection, www: &Path) -> Result<(), Error> {
    let mut server = Server::new(connection.clone(), Config::default());
    while let Ok(Some((request, stream))) = server.accept().await {
        let file = request.path.strip_prefix('/').and_then(|path| http09::locate(www, path));
        tokio::spawn(async move {
            if let Err(error) = answer_http3(file.as_deref(), stream).await {
                eprintln!("request: {error}");
            }
        });
    }
    report(&connection);
    Ok(())
}

async fn answer_http3(file: Option<&Path>, mut stream: RequestStream) -> Result<(), Error> {
    let Some(contents) = (match file {
        Some(file) => tokio::fs::read(file).await.ok(),
        None => None,
    }) else {
        stream.send_response(404, &[]).await.map_err(boxed)?;
        return stream.finish().await.map_err(boxed);
    };
    let length = contents.len().to_string();
    stream.send_response(200, &[("content-length", length.as_bytes())]).await.map_err(boxed)?;
    stream.send_data(Bytes::from(contents)).await.map_err(boxed)?;
    stream.finish().await.map_err(boxed)
}
