//! Serves the site over HTTP/3.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http_body_util::BodyExt;
use hyper::body::Body as _;
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, DATE, HeaderName, HeaderValue};
use hyper::{Method, Request, StatusCode, Uri};
use sutura::http::{Body, Extension, SendHalf};
use sutura::{Connection, ConnectionError, Endpoint, Incoming, http};
use sutura_research::marx::Resource;
use time::OffsetDateTime;
use time::format_description::StaticFormatDescription;
use time::macros::format_description;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::access::Access;
use super::disk::Room;
use super::message::Reply;
use super::service::Service;
use crate::content_type;

/// The IMF-fixdate format of HTTP (RFC 9110 section 5.6.7).
const IMF_FIXDATE: StaticFormatDescription = format_description!(
    "[weekday repr:short], [day] [month repr:short] [year] [hour]:[minute]:[second] GMT"
);
const PRIORITY: HeaderName = HeaderName::from_static("priority");

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
    let mut server = http::Server::new(connection.clone(), service.http_config());
    let log = service.log.clone();
    server.on_refused(move |refused| log.connection(remote, &refused));
    let mut requests = JoinSet::new();
    let mut draining = false;
    loop {
        tokio::select! {
            accepted = server.accept_http() => match accepted {
                Ok(Some((request, responder))) => {
                    // Resources are described in the order of the requests, before any request is answered.
                    let likely = content_type::guess(request.uri().path());
                    let half = responder.into_half();
                    describe(&service, target(request.uri()), likely, &half);
                    requests.spawn(respond(request, half, service.clone(), connection.clone()));
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
            () = drain_poll(), if draining && requests.is_empty() => {
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

/// Waits for the next look whether everything was sent. The timer is in a box, so that the tasks of connections that are
/// not drained have no room for it.
async fn drain_poll() {
    Box::pin(tokio::time::sleep(DRAIN_POLL)).await;
}

/// The path and the query of a request.
fn target(uri: &Uri) -> &str {
    uri.path_and_query().map_or("", |target| target.as_str())
}

/// Tells the scheduler the properties of a response, and returns them.
fn describe(
    service: &Service,
    target: &str,
    content_type: &str,
    half: &SendHalf,
) -> Option<Resource> {
    let resource = service.resource(target, content_type, half.id().index() == 0)?;
    // An error means that the response is no longer wanted, and needs no report.
    let _ = half.set_extension(Some(Extension::new(resource)));
    Some(resource)
}

/// Answers a request.
async fn respond(
    request: Request<Body>,
    mut half: SendHalf,
    service: Arc<Service>,
    connection: Connection,
) {
    let (mut request, body) = request.into_parts();
    let mut access = Access::of(service.log.clone(), connection.remote_address(), &request);
    // A request in 0-RTT may be a copy that an attacker has sent again (RFC 8470 section 3).
    if !request.method.is_safe()
        && let Err(error) = connection.handshake_complete().await
    {
        access.end = Some(Err(error.to_string()));
        return;
    }
    let room = Room::default();
    request.extensions.insert(room.clone());
    let (remote, uri) = (connection.remote_address(), request.uri.clone());
    let is_head = request.method == Method::HEAD;
    let body = body.map_err(Into::into).boxed_unsync();
    let mut reply = service.answer(remote, request, body).await;
    let target = target(&uri);
    complete(&service, target, is_head, &mut reply);
    let content_type = reply.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    access.resource = describe(&service, target, content_type.unwrap_or(""), &half);
    access.status = reply.status();
    access.end = Some(send(&mut half, reply, is_head, &room, &mut access).await);
}

/// Adds what hyper adds to responses of the other versions, and the priority.
fn complete(service: &Service, target: &str, is_head: bool, reply: &mut Reply) {
    let length = reply.body().size_hint().exact();
    let headers = reply.headers_mut();
    let now = OffsetDateTime::from(SystemTime::now()).format(IMF_FIXDATE);
    if let Some(now) = now.ok().and_then(|now| HeaderValue::try_from(now).ok()) {
        headers.entry(DATE).or_insert(now);
    }
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("");
    if let Some(own) = service.priorities.rules().find(target, kind)
        && let Ok(own) = HeaderValue::try_from(own.to_string())
    {
        // The rule overrides the priority of the request (RFC 9218 section 8).
        headers.insert(PRIORITY, own);
    }
    // A body that is left out says nothing of its length.
    let is_known = !is_head && reply.status() != StatusCode::NOT_MODIFIED;
    if let Some(length) = length.filter(|_| is_known) {
        reply.headers_mut().entry(CONTENT_LENGTH).or_insert_with(|| length.into());
    }
}

async fn send(
    half: &mut SendHalf,
    reply: Reply,
    is_head: bool,
    room: &Room,
    access: &mut Access,
) -> Result<(), String> {
    let broken = |error: http::Error| error.to_string();
    let (head, mut body) = reply.into_parts();
    half.send_head(&head).await.map_err(broken)?;
    access.priority = half.priority();
    access.protection = half.default_protection();
    while !is_head && !body.is_end_stream() {
        // Data for which there is no room is not read either, so that a client that does not take it costs no
        // memory.
        room.set(half.body_room().await.map_err(broken)?);
        match body.frame().await {
            Some(Ok(frame)) => {
                let data = match frame.into_data() {
                    Ok(data) => data,
                    Err(frame) => match frame.into_trailers() {
                        Ok(trailers) => return half.send_trailers(&trailers).await.map_err(broken),
                        Err(_) => continue,
                    },
                };
                let length = data.len() as u64;
                half.send_data(data).await.map_err(broken)?;
                access.bytes += length;
            }
            Some(Err(error)) => {
                half.reset(http::Code::INTERNAL_ERROR);
                return Err(format!("cannot read: {error}"));
            }
            None => break,
        }
    }
    half.finish().await.map_err(broken)
}
