//! Fetches files over HTTP/3, concurrently on one connection, and asks for protection.
//!
//! ```sh
//! cargo run -p sutura --example file_client -- OUT_DIR localhost 127.0.0.1:4433 cert.pem /a /b
//! ```
//!
//! `cert.pem` holds the certificates to trust. Each file is saved under its last path segment.

use std::error::Error;
use std::path::{Path, PathBuf};

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use sutura::http::{self, Client, Priority};
use sutura::{ClientConfig, Endpoint};
use tokio::fs::File;
use tokio::io::AsyncWriteExt;
use tokio::task::JoinSet;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, name, address, certificates, paths @ ..] = &arguments[..] else {
        return Err("usage: file_client OUT_DIR NAME ADDRESS CERT.pem PATH...".into());
    };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(certificates)? {
        roots.add(certificate?)?;
    }
    let config = ClientConfig::with_root_certificates(roots, &[http::ALPN])?;
    let endpoint = Endpoint::client("[::]:0".parse()?)?;
    let connection = endpoint.connect_with(config, address.parse()?, name)?.await?;
    let client = Client::new(connection.clone(), http::Config::default()).await?;
    let mut transfers = JoinSet::new();
    for path in paths {
        let to = Path::new(directory).join(path.rsplit('/').next().unwrap_or_default());
        transfers.spawn(fetch(client.clone(), name.clone(), path.clone(), to));
    }
    let mut result = Ok(());
    while let Some(transfer) = transfers.join_next().await {
        result = transfer?.and(result);
    }
    let fec = connection.stats().fec;
    println!("coding negotiated: {}, recovered symbols: {}", fec.negotiated, fec.recovered);
    connection.close(http::Code::NO_ERROR.0, b"");
    endpoint.wait_idle().await;
    result
}

/// Saves one file.
async fn fetch(
    client: Client,
    authority: String,
    path: String,
    to: PathBuf,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    // Up to three lost packets at the end of the response are recovered without retransmission.
    let priority = Priority::default().with_burst(Some(3));
    let mut stream = client.request("GET", &authority, &path, &[], Some(priority)).await?;
    stream.finish().await?;
    let response = stream.recv_response().await?;
    if response.status != 200 {
        return Err(format!("{path}: status {}", response.status).into());
    }
    let mut file = File::create(to).await?;
    let mut length = 0;
    while let Some(data) = stream.recv_data().await? {
        length += data.len();
        file.write_all(&data).await?;
    }
    file.flush().await?;
    println!("{path} {length} bytes");
    Ok(())
}
