//! A request and its response.

use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use sutura::{ConnectionError, http};

use super::sink::{Sink, Target};
use crate::failure::{Exit, Failure};
use crate::url::Url;

/// The status with which a server declines to answer a request in 0-RTT (RFC 8470 section 5.2).
const TOO_EARLY: u16 = 425;

/// A URL to fetch and its destination.
#[derive(Debug, Clone)]
pub struct Job {
    pub url: Url,
    pub target: Target,
    pub priority: http::Priority,
}

/// A complete response.
#[derive(Debug, Clone, Copy)]
pub struct Outcome {
    pub status: u16,
    pub bytes: u64,
    /// Time from the request to the response's head.
    pub first_byte: Duration,
    /// Time from the request to the response's end.
    pub total: Duration,
}

/// A request that was sent.
#[derive(Debug)]
pub struct Asked {
    stream: http::RequestStream,
    start: Instant,
}

/// Sends the job's request, waiting until the server permits one more.
///
/// # Errors
/// The connection is over, or the server accepts no more requests.
pub async fn ask(client: &http::Client, job: &Job) -> Result<Asked, Failure> {
    let start = Instant::now();
    let mut sent = send(client, job).await;
    if matches!(sent, Err(http::Error::ZeroRttRejected)) {
        sent = send(client, job).await;
    }
    let stream = sent.map_err(|error| broken(&job.url.to_string(), &error))?;
    Ok(Asked { stream, start })
}

async fn send(client: &http::Client, job: &Job) -> Result<http::RequestStream, http::Error> {
    let user_agent = concat!("sutura/", env!("CARGO_PKG_VERSION"));
    let fields = [("user-agent", user_agent.as_bytes()), ("accept", b"*/*")];
    let authority = job.url.authority.to_string();
    let priority = Some(job.priority.clone());
    let mut stream = client.request("GET", &authority, &job.url.path, &fields, priority).await?;
    stream.finish().await?;
    Ok(stream)
}

/// Receives the response. Leaves no file behind unless it is complete.
///
/// # Errors
/// The response is not a success, does not arrive completely, or cannot be written.
pub async fn receive(
    client: &http::Client,
    Asked { mut stream, start }: Asked,
    job: &Job,
    progress: &ProgressBar,
) -> Result<Outcome, Failure> {
    let name = job.url.to_string();
    let failed = |error: http::Error| broken(&name, &error);
    let mut response = final_response(&mut stream).await;
    if is_too_early(&response) {
        client.connection().handshake_complete().await.map_err(|e| failed(e.into()))?;
        stream = send(client, job).await.map_err(failed)?;
        response = final_response(&mut stream).await;
    }
    let response = response.map_err(failed)?;
    let first_byte = start.elapsed();
    if !(200..300).contains(&response.status) {
        return Err(Failure::new(Exit::Status, format!("{name}: {}", describe(&response))));
    }
    let length = content_length(&response);
    progress.set_length(length.unwrap_or(0));
    let mut sink = Sink::open(&job.target).await?;
    let mut bytes = 0;
    loop {
        let data = stream.recv_data().await.map_err(|error| {
            let of = length.map(|length| format!(" of {length}")).unwrap_or_default();
            broken(&format!("{name} broke off after {bytes}{of} bytes"), &error)
        })?;
        let Some(data) = data else { break };
        bytes += data.len() as u64;
        sink.write(&data).await?;
        progress.set_position(bytes);
    }
    if let Some(length) = length
        && length != bytes
    {
        let message = format!("{name} ended after {bytes} of {length} bytes");
        return Err(Failure::new(Exit::Broken, message));
    }
    sink.finish().await?;
    Ok(Outcome { status: response.status, bytes, first_byte, total: start.elapsed() })
}

/// The response that follows interim ones (RFC 9110 section 15.2).
async fn final_response(stream: &mut http::RequestStream) -> Result<http::Response, http::Error> {
    loop {
        let response = stream.recv_response().await?;
        if !(100..200).contains(&response.status) {
            return Ok(response);
        }
    }
}

/// Whether a request was sent in 0-RTT and the server rejects 0-RTT, or demands the request after the
/// handshake (RFC 8470 section 5.2).
fn is_too_early(response: &Result<http::Response, http::Error>) -> bool {
    match response {
        Ok(response) => response.status == TOO_EARLY,
        Err(error) => *error == http::Error::ZeroRttRejected,
    }
}

fn field<'a>(response: &'a http::Response, name: &str) -> Option<&'a [u8]> {
    response.fields.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_slice())
}

fn content_length(response: &http::Response) -> Option<u64> {
    std::str::from_utf8(field(response, "content-length")?).ok()?.trim().parse().ok()
}

/// Describes a response that is not a success.
fn describe(response: &http::Response) -> String {
    match field(response, "location") {
        Some(location) if (300..400).contains(&response.status) => format!(
            "status {}, moved to {} (redirections are not followed)",
            response.status,
            String::from_utf8_lossy(location)
        ),
        _ => format!("status {}", response.status),
    }
}

/// The failure for a transfer or a connection that broke.
pub fn broken(what: &str, error: &http::Error) -> Failure {
    let message = match error {
        http::Error::Connection(ConnectionError::TimedOut) => {
            format!("{what}: the server fell silent")
        }
        error => format!("{what}: {error}"),
    };
    Failure::new(Exit::Broken, message)
}
