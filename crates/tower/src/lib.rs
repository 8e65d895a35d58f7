//! Serves a [`Service`] of HTTP requests over Sutura's HTTP/3, so that applications written for tower,
//! such as axum routers, work unchanged.
//!
//! A request's body is a [`sutura::http::Body`]. Its extensions have the
//! [`Priority`](sutura::http::Priority) that the client asks for; the response is sent with that priority, or
//! as the `priority` field of the response says. Trailers are passed on in both directions. A service's
//! future is dropped when the client does not want the response any more. Requests that came in 0-RTT are
//! served at once only if their method is safe; others wait for the end of the handshake.
#![forbid(unsafe_code)]

use std::error::Error as StdError;
use std::fmt::Display;
use std::future::poll_fn;

use http::{Request, Response};
use sutura::http::{Body, Config, Error, Responder, Server};
use sutura::{Connection, Endpoint};
use tower_service::Service;

/// Serves all connections of `endpoint`, each with clones of `service`, until the endpoint accepts no
/// more. The endpoint must have been set up for the protocol [`sutura::http::ALPN`].
///
/// Connections that are open when this returns are served further.
pub async fn serve<S, B>(endpoint: &Endpoint, config: Config, service: S)
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Error: Into<Box<dyn StdError + Send + Sync>> + Send,
    S::Future: Send,
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Display + Send,
{
    while let Some(incoming) = endpoint.accept().await {
        let (service, config) = (service.clone(), config.clone());
        tokio::spawn(async move {
            let outcome = match incoming.await {
                Ok(connection) => serve_connection(connection, config, service).await,
                Err(error) => Err(error.into()),
            };
            if let Err(error) = outcome {
                tracing::debug!(%error, "connection ended");
            }
        });
    }
}

/// Serves the requests on one connection, each by a task of its own, until it ends. Their number at a
/// time is limited by the connection's
/// [`max_concurrent_bidi_streams`](sutura::TransportConfig::max_concurrent_bidi_streams).
///
/// # Errors
/// The connection ended with an error.
pub async fn serve_connection<S, B>(
    connection: Connection,
    config: Config,
    service: S,
) -> Result<(), Error>
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Error: Into<Box<dyn StdError + Send + Sync>> + Send,
    S::Future: Send,
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Display + Send,
{
    let mut server = Server::new(connection.clone(), config);
    while let Some((request, responder)) = server.accept_http().await? {
        let (service, connection) = (service.clone(), connection.clone());
        tokio::spawn(async move {
            // A request in 0-RTT may be a copy that an attacker has sent again (RFC 8470 section 3).
            if request.method().is_safe() || connection.handshake_complete().await.is_ok() {
                answer(service, request, responder).await;
            }
        });
    }
    Ok(())
}

/// Answers one request. If the service fails, the request is abandoned.
async fn answer<S, B>(mut service: S, request: Request<Body>, responder: Responder)
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Error: Into<Box<dyn StdError + Send + Sync>> + Send,
    B: http_body::Body,
    B::Error: Display,
{
    let call = async {
        poll_fn(|cx| service.poll_ready(cx)).await?;
        service.call(request).await
    };
    let response = tokio::select! {
        response = call => response,
        () = responder.unwanted() => return,
    };
    match response {
        Ok(response) => {
            if let Err(error) = responder.respond(response).await {
                tracing::debug!(%error, "response abandoned");
            }
        }
        Err(error) => {
            let error = error.into();
            tracing::warn!(error = &*error, "service failed");
        }
    }
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
