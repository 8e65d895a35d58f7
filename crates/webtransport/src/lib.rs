//! WebTransport over HTTP/3 (draft-ietf-webtrans-http3) on Sutura: many streams and datagrams in both directions
//! between a server and a browser, or another client.
//!
//! A server takes sessions from a [`Server`], a client begins one with [`connect`]. Streams have the priorities and
//! the protection by erasure coding of any stream of [`sutura`]; datagrams have those of
//! [`DatagramOptions`](sutura::DatagramOptions).
//!
//! ```no_run
//! # async fn run(config: sutura::ServerConfig) -> Result<(), Box<dyn std::error::Error>> {
//! use sutura_webtransport::Server;
//!
//! // `config` offers the protocol `sutura::http::ALPN`.
//! let endpoint = sutura::Endpoint::server(config, "[::]:443".parse()?)?;
//! while let Some(incoming) = endpoint.accept().await {
//!     tokio::spawn(async move {
//!         let mut server = Server::new(incoming.await?);
//!         while let Some(request) = server.accept().await? {
//!             if request.path() != "/echo" {
//!                 request.reject(404).await?;
//!                 continue;
//!             }
//!             let session = request.ok().await?;
//!             tokio::spawn(async move {
//!                 while let Ok((mut send, mut recv)) = session.accept_bi().await {
//!                     send.write_all(&recv.read_to_end(1 << 20).await?).await?;
//!                     send.finish()?;
//!                 }
//!                 Ok::<_, sutura_webtransport::Error>(())
//!             });
//!         }
//!         Ok::<_, sutura_webtransport::Error>(())
//!     });
//! }
//! # Ok(()) }
//! ```
//!
//! The ends speak the newest draft that both know: 15 and 16, or 14, 07 or 02, as browsers do. A connection has one
//! session at a time, and there is no flow control of sessions beside that of the connection.
#![forbid(unsafe_code)]

mod client;
mod error;
mod protocols;
mod recv_stream;
mod send_stream;
mod server;
mod session;
#[cfg(feature = "web-transport-trait")]
pub mod traits;

pub use client::{Connect, connect};
pub use error::Error;
pub use recv_stream::RecvStream;
pub use send_stream::SendStream;
pub use server::{Request, Server};
pub use session::Session;
pub use sutura::http::WebTransportDraft;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
