//! The site over HTTP/3.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use sutura::{Connection, http};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::date::http_date;
use super::reply::{Body, Reply};
use super::service::{Access, Service};

/// How often is looked whether everything has been acknowledged, before a connection is closed.
const DRAIN_POLL: Duration = Duration::from_millis(10);

/// Answers the requests of a connection until it ends. Once `shutdown` is true, no new ones are
/// taken, and the connection is closed when the last one is answered.
pub async fn serve(
    connection: Connection,
    service: Arc<Service>,
    mut shutdown: watch::Receiver<bool>,
) {
    let remote = connection.remote_address();
    let mut server = http::Server::new(connection.clone(), http::Config::default());
    let mut requests = JoinSet::new();
    let mut draining = false;
    loop {
        tokio::select! {
            accepted = server.accept() => match accepted {
                Ok(Some((request, stream))) => {
                    requests.spawn(respond(request, stream, service.clone(), remote));
                }
                Ok(None) => break,
                Err(error) => {
                    service.log.connection(remote, &error);
                    break;
                }
            },
            Some(_) = requests.join_next() => {}
            _ = shutdown.wait_for(|&stop| stop), if !draining => {
                draining = true;
                server.goaway();
            }
            () = tokio::time::sleep(DRAIN_POLL), if draining && requests.is_empty() => {
                if connection.stats().bytes_in_flight == 0 {
                    connection.close(http::Code::NO_ERROR.0, b"");
                    break;
                }
            }
        }
    }
}

/// Answers a request.
async fn respond(
    request: http::Request,
    mut stream: http::RequestStream,
    service: Arc<Service>,
    remote: SocketAddr,
) {
    let start = Instant::now();
    let mut reply = Reply::to(&service.site, &request.method, &request.path).await;
    reply.fields.push(("date", http_date(SystemTime::now())));
    if let Some(fec) = service.fec
        && !asks_for_protection(&request)
    {
        // What a response says about its own priority overrides the request (RFC 9218 section 8).
        reply.fields.push(("priority", fec.parameters()));
    }
    let status = reply.status;
    let mut bytes = 0;
    let result = send(&mut stream, reply, &mut bytes).await;
    service.log.access(&Access {
        remote,
        version: "h3",
        method: &request.method,
        target: &request.path,
        status,
        bytes,
        start,
        error: result.as_ref().err().map(ToString::to_string),
    });
}

/// Whether the request says itself how its response is to be protected.
fn asks_for_protection(request: &http::Request) -> bool {
    let names_burst = |value: &[u8]| {
        String::from_utf8_lossy(value)
            .split(',')
            .any(|member| member.split(['=', ';']).next().is_some_and(|key| key.trim() == "exp_b"))
    };
    request.fields.iter().any(|(name, value)| name == "priority" && names_burst(value))
}

async fn send(
    stream: &mut http::RequestStream,
    reply: Reply,
    bytes: &mut u64,
) -> Result<(), String> {
    let broken = |error: http::Error| error.to_string();
    let fields: Vec<(&str, &[u8])> =
        reply.fields.iter().map(|(name, value)| (*name, value.as_bytes())).collect();
    stream.send_response(reply.status, &fields).await.map_err(broken)?;
    match reply.body {
        Body::Empty => {}
        Body::Text(text) => {
            *bytes = text.len() as u64;
            stream.send_data(Bytes::from(text)).await.map_err(broken)?;
        }
        Body::Resource(mut resource) => loop {
            match resource.next_chunk().await {
                Ok(Some(chunk)) => {
                    let length = chunk.len() as u64;
                    stream.send_data(chunk).await.map_err(broken)?;
                    *bytes += length;
                }
                Ok(None) => break,
                Err(error) => {
                    stream.reset(http::Code::INTERNAL_ERROR);
                    return Err(format!("cannot read: {error}"));
                }
            }
        },
    }
    stream.finish().await.map_err(broken)
}
