//! The site over HTTP/3.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use sutura::http::PriorityParameters;
use sutura::{Connection, http};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::date::http_date;
use super::reply::{Body, Reply};
use super::service::{Access, Service};

/// How often is looked whether everything was sent and acknowledged, before a connection is closed.
const DRAIN_POLL: Duration = Duration::from_millis(10);

/// Answers the requests of a connection until it ends. Once `shutdown` is true, no new ones are
/// taken, and the connection is closed when the last one is answered.
///
/// When the connection is over, so are its requests: each finds out why, and writes it to the log.
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
                let stats = connection.stats();
                if stats.streams.send_buffered == 0 && stats.bytes_in_flight == 0 {
                    connection.close(http::Code::NO_ERROR.0, b"");
                    break;
                }
            }
        }
    }
    while requests.join_next().await.is_some() {}
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
    if let Some(priority) = own_priority(&service, &request, &reply) {
        reply.fields.push(("priority", priority));
    }
    let mut access = Access {
        log: service.log,
        remote,
        version: "h3",
        method: &request.method,
        target: &request.path,
        start,
        status: reply.status,
        bytes: 0,
        priority: None,
        end: None,
    };
    access.end = Some(send(&mut stream, reply, &mut access).await);
}

/// What a response says about its own priority, which overrides what the request asked for (RFC
/// 9218 section 8): what the rules say, and protection if neither they nor the request do.
fn own_priority(service: &Service, request: &http::Request, reply: &Reply) -> Option<String> {
    let field = |wanted: &str| {
        let found = reply.fields.iter().find(|(name, _)| *name == wanted);
        found.map_or("", |(_, value)| value.as_str())
    };
    let ruled = service.rules.find(&request.path, field("content-type")).cloned();
    let mut own = ruled.unwrap_or_default();
    if let Some(fec) = service.fec
        && own.burst.is_none()
        && wishes(request).burst.is_none()
    {
        own = fec.parameters().overridden_by(&own);
    }
    Some(own.to_string()).filter(|field| !field.is_empty())
}

/// What the request says about its priority.
fn wishes(request: &http::Request) -> PriorityParameters {
    let lines = request.fields.iter().filter(|(name, _)| name == "priority");
    let lines: Vec<&[u8]> = lines.map(|(_, value)| value.as_slice()).collect();
    PriorityParameters::parse(&lines.join(&b", "[..])).unwrap_or_default()
}

async fn send(
    stream: &mut http::RequestStream,
    reply: Reply,
    access: &mut Access<'_>,
) -> Result<(), String> {
    let broken = |error: http::Error| error.to_string();
    let fields: Vec<(&str, &[u8])> =
        reply.fields.iter().map(|(name, value)| (*name, value.as_bytes())).collect();
    stream.send_response(reply.status, &fields).await.map_err(broken)?;
    access.priority = stream.priority();
    match reply.body {
        Body::Empty => {}
        Body::Text(text) => {
            let length = text.len() as u64;
            stream.send_data(Bytes::from(text)).await.map_err(broken)?;
            access.bytes += length;
        }
        Body::Resource(mut resource) => loop {
            match resource.next_chunk().await {
                Ok(Some(chunk)) => {
                    let length = chunk.len() as u64;
                    stream.send_data(chunk).await.map_err(broken)?;
                    access.bytes += length;
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
