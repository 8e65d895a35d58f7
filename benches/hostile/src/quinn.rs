//! quinn with the crate h3: serves a directory as `sutura serve` does, with the limits that quinn has
//! by default.

use bytes::Bytes;
use quinn::crypto::rustls::QuicServerConfig;
use quinn::{Endpoint, Incoming, ServerConfig};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use sutura_benches::Error;
use sutura_benches::tls::defaults;
use tokio::fs::File;
use tokio::io::AsyncReadExt;

/// Bytes of a file that are read at a time, as `sutura serve` does.
const CHUNK: usize = 64 * 1024;

/// Serves the site in this directory until the process ends.
pub fn serve(site: &Path, retry: bool) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut tls = rustls::ServerConfig::builder_with_provider(defaults())
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_no_client_auth()
            .with_single_cert(
                vec![CertificateDer::from_pem_file(site.join("certificate.pem"))?],
                PrivateKeyDer::from_pem_file(site.join("key.pem"))?,
            )?;
        tls.alpn_protocols = vec![b"h3".to_vec()];
        let crypto = Arc::new(QuicServerConfig::try_from(tls)?);
        let endpoint =
            Endpoint::server(ServerConfig::with_crypto(crypto), (Ipv4Addr::LOCALHOST, 0).into())?;
        println!("{}", serde_json::json!({ "listening": endpoint.local_addr()?.to_string() }));
        let www = Arc::new(site.join("www"));
        while let Some(incoming) = endpoint.accept().await {
            if retry && !incoming.remote_address_validated() {
                incoming.retry()?;
                continue;
            }
            let www = www.clone();
            // The clients themselves see how they fare.
            tokio::spawn(async move { drop(connection(incoming, &www).await) });
        }
        Ok(())
    })
}

async fn connection(incoming: Incoming, www: &Arc<PathBuf>) -> Result<(), Error> {
    let connection = incoming.accept()?.await?;
    let mut server = h3::server::Connection::new(h3_quinn::Connection::new(connection)).await?;
    while let Some(resolver) = server.accept().await? {
        let www = www.clone();
        tokio::spawn(async move {
            let answer = async {
                let (request, mut stream) = resolver.resolve_request().await?;
                let name = request.uri().path().trim_start_matches('/').replace('/', "_");
                let mut file = File::open(www.join(name)).await?;
                stream.send_response(http::Response::new(())).await?;
                loop {
                    let mut buffer = vec![0; CHUNK];
                    let size = file.read(&mut buffer).await?;
                    if size == 0 {
                        break;
                    }
                    buffer.truncate(size);
                    stream.send_data(Bytes::from(buffer)).await?;
                }
                stream.finish().await?;
                Ok::<(), Error>(())
            };
            drop(answer.await);
        });
    }
    Ok(())
}
