//! Serves the site over HTTP/3.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use sutura::http::Extension;
use sutura::{Connection, ConnectionError, Endpoint, Incoming, http};
use sutura_research::marx::Resource;
use time::OffsetDateTime;
use time::format_description::StaticFormatDescription;
use time::macros::format_description;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::reply::Reply;
use super::service::{Access, Service};
use crate::content_type;

/// The IMF-fixdate format of HTTP (RFC 9110 section 5.6.7).
const IMF_FIXDATE: StaticFormatDescription = format_description!(
    "[weekday repr:short], [day] [month repr:short] [year] [hour]:[minute]:[second] GMT"
);

/// Polling interval for whether everything was sent and acknowledged, before a connection is
/// closed.
const DRAIN_POLL: Duration = Duration::from_millis(10);

/// Serves connections until `endpoint` accepts no more, then waits for open ones to end. With `early`,
/// requests are answered before the handshake is complete. Calls `accepted` with each connection.
pub async fn accept(
    endpoint: Endpoint,
    service: Arc<Service>,
    shutdown: watch::Receiver<bool>,
    early: bool,
    accepted: impl Fn(&Connection) + Clone + Send + 'static,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            incoming = endpoint.accept() => {
                let Some(incoming) = incoming else { break };
                let (service, shutdown) = (service.clone(), shutdown.clone());
                let accepted = accepted.clone();
                connections.spawn(async move {
                    let remote = incoming.remote_address();
                    match open(incoming, early).await {
                        Ok(connection) => {
                            accepted(&connection);
                            serve(connection, service, shutdown).await;
                        }
                        Err(error) => service.log.connection(remote, &error),
                    }
                });
            }
            Some(_) = connections.join_next() => {}
        }
    }
    while connections.join_next().await.is_some() {}
}

/// Accepts a client; with `early`, does not wait until the handshake is complete.
async fn open(incoming: Incoming, early: bool) -> Result<Connection, ConnectionError> {
    let connecting = incoming.accept()?;
    if !early {
        return connecting.await;
    }
    match connecting.into_0rtt() {
        Ok((connection, _)) => Ok(connection),
        Err(connecting) => connecting.await,
    }
}

/// Answers the requests of a connection until it ends. Once `shutdown` is true, new requests are no
/// longer accepted, and the connection is closed when the last one has been answered.
///
/// When the connection ends, so do its requests: each learns the reason and logs it.
async fn serve(connection: Connection, service: Arc<Service>, mut shutdown: watch::Receiver<bool>) {
    let remote = connection.remote_address();
    let mut server = http::Server::new(connection.clone(), service.http.clone());
    let log = service.log;
    server.on_refused(move |refused| log.connection(remote, &refused));
    let mut requests = JoinSet::new();
    let mut draining = false;
    loop {
        tokio::select! {
            accepted = server.accept() => match accepted {
                Ok(Some((request, stream))) => {
                    // Resources are described in the order of the requests, before any request is answered.
                    let likely = content_type::guess(&request.path);
                    describe(&service, &request.path, likely, &stream);
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

/// Tells the scheduler the properties of a response, and returns them.
fn describe(
    service: &Service,
    target: &str,
    content_type: &str,
    stream: &http::RequestStream,
) -> Option<Resource> {
    let resource = service.resource(target, content_type, stream.id().index() == 0)?;
    // An error means that the response is no longer wanted, and needs no report.
    let _ = stream.set_extension(Some(Extension::new(resource)));
    Some(resource)
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
    if let Ok(date) = OffsetDateTime::from(SystemTime::now()).format(IMF_FIXDATE) {
        reply.fields.push(("date", date));
    }
    let content_type = reply.fields.iter().find(|(name, _)| *name == "content-type");
    let content_type = content_type.map_or("", |(_, value)| value.as_str());
    let resource = describe(&service, &request.path, content_type, &stream);
    if let Some(own) = service.rules.find(&request.path, content_type) {
        // The rule overrides the priority of the request (RFC 9218 section 8).
        reply.fields.push(("priority", own.to_string()));
    }
    let mut access = Access {
        log: service.log,
        remote,
        version: "h3",
        method: request.method,
        target: request.path,
        start,
        status: reply.status,
        bytes: 0,
        priority: None,
        resource,
        protection: None,
        end: None,
    };
    access.end = Some(send(&mut stream, reply, &mut access).await);
}

async fn send(
    stream: &mut http::RequestStream,
    mut reply: Reply,
    access: &mut Access,
) -> Result<(), String> {
    let broken = |error: http::Error| error.to_string();
    let fields: Vec<(&str, &[u8])> =
        reply.fields.iter().map(|(name, value)| (*name, value.as_bytes())).collect();
    stream.send_response(reply.status.as_u16(), &fields).await.map_err(broken)?;
    access.priority = stream.priority();
    access.protection = stream.default_protection();
    while let Some(body) = &mut reply.body {
        // Data for which there is no room is not read either, so that a client that does not take it costs no
        // memory.
        let room = if body.is_at_end() { 0 } else { stream.body_room().await.map_err(broken)? };
        match body.next_chunk(room).await {
            Ok(Some(chunk)) => {
                let length = chunk.len();
                let sent = stream.try_send_data(chunk).map_err(broken)?;
                // Another answer has taken the room: the rest is read again when there is room.
                body.give_back(length - sent);
                access.bytes += sent as u64;
            }
            Ok(None) => break,
            Err(error) => {
                stream.reset(http::Code::INTERNAL_ERROR);
                return Err(format!("cannot read: {error}"));
            }
        }
    }
    stream.finish().await.map_err(broken)
}
