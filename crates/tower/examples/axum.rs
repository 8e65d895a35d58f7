//! An axum application over HTTP/3, with a temporary certificate.
//!
//! ```sh
//! cargo run -p sutura-tower --example axum -- 127.0.0.1:4433
//! sutura get --insecure https://127.0.0.1:4433/hello/world
//! ```

use std::error::Error;

use axum::Router;
use axum::extract::Path;
use axum::routing::{get, post};
use rustls::pki_types::PrivatePkcs8KeyDer;
use sutura::http::{self, Priority};
use sutura::{Endpoint, ServerConfig};

fn router() -> Router {
    Router::new()
        .route(
            "/hello/{name}",
            get(|Path(name): Path<String>| async move { format!("hello {name}\n") }),
        )
        // What the client asked for is among the extensions.
        .route(
            "/priority",
            get(|axum::Extension(priority): axum::Extension<Priority>| async move {
                format!("{priority}\n")
            }),
        )
        .route("/echo", post(|body: axum::body::Bytes| async move { body }))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:4433".into());
    let signed = rcgen::generate_simple_self_signed(vec!["localhost".into()])?;
    let key = PrivatePkcs8KeyDer::from(signed.signing_key.serialize_der());
    let config =
        ServerConfig::with_single_cert(vec![signed.cert.into()], key.into(), &[http::ALPN])?;
    let endpoint = Endpoint::server(config, address.parse()?)?;
    println!("{}", endpoint.local_addr()?);
    sutura_tower::serve(&endpoint, http::Config::default(), router()).await;
    Ok(())
}
