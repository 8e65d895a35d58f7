//! Serves files over HTTP/3.
//!
//! ```sh
//! cargo run -p sutura --example file_server -- DIR 127.0.0.1:4433 cert.pem key.pem
//! ```
//!
//! The address is printed once the server is listening. The `priority` field of a request, such as
//! `u=1, i, exp_b=3`, decides how its response is sent and protected.

use std::error::Error;
use std::path::{Component, Path, PathBuf};

use bytes::Bytes;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sutura::http::{self, Request, RequestStream, Server};
use sutura::{Endpoint, Incoming, ServerConfig};
use tokio::fs::File;
use tokio::io::AsyncReadExt;

const CHUNK: usize = 64 * 1024;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, address, certificate, key] = &arguments[..] else {
        return Err("usage: file_server DIR ADDRESS CERT.pem KEY.pem".into());
    };
    let chain = CertificateDer::pem_file_iter(certificate)?.collect::<Result<_, _>>()?;
    let key = PrivateKeyDer::from_pem_file(key)?;
    let config = ServerConfig::with_single_cert(chain, key, &[http::ALPN])?;
    let endpoint = Endpoint::server(config, address.parse()?)?;
    println!("{}", endpoint.local_addr()?);
    let directory = PathBuf::from(directory);
    while let Some(incoming) = endpoint.accept().await {
        let directory = directory.clone();
        tokio::spawn(async move {
            if let Err(error) = serve(incoming, &directory).await {
                eprintln!("connection: {error}");
            }
        });
    }
    Ok(())
}

async fn serve(incoming: Incoming, directory: &Path) -> Result<(), Box<dyn Error + Send + Sync>> {
    let connection = incoming.await?;
    let remote = connection.remote_address();
    let mut server = Server::new(connection, http::Config::default());
    while let Some((request, stream)) = server.accept().await? {
        let file = locate(directory, &request);
        tokio::spawn(async move {
            let Request { method, path, .. } = &request;
            match answer(file, stream).await {
                Ok(status) => eprintln!("{remote} {method} {path} {status}"),
                Err(error) => eprintln!("{remote} {method} {path}: {error}"),
            }
        });
    }
    let fec = server.connection().stats().fec;
    eprintln!("{remote} closed; coding negotiated: {}, {fec:?}", fec.negotiated);
    Ok(())
}

/// The file for a request, if the request may have it.
fn locate(directory: &Path, request: &Request) -> Option<PathBuf> {
    let path = Path::new(request.path.split('?').next()?.strip_prefix('/')?);
    let inside = path.components().all(|part| matches!(part, Component::Normal(_)));
    (request.method == "GET" && inside).then(|| directory.join(path))
}

async fn answer(
    file: Option<PathBuf>,
    mut stream: RequestStream,
) -> Result<u16, Box<dyn Error + Send + Sync>> {
    let file = match file {
        Some(path) => File::open(path).await.ok(),
        None => None,
    };
    let Some(mut file) = file else {
        stream.send_response(404, &[]).await?;
        stream.finish().await?;
        return Ok(404);
    };
    let length = file.metadata().await?.len().to_string();
    stream.send_response(200, &[("content-length", length.as_bytes())]).await?;
    loop {
        let mut chunk = vec![0; CHUNK];
        let length = file.read(&mut chunk).await?;
        if length == 0 {
            break;
        }
        chunk.truncate(length);
        stream.send_data(Bytes::from(chunk)).await?;
    }
    stream.finish().await?;
    Ok(200)
}
