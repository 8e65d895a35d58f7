//! A request on its way, and its response.

use std::time::Instant;

use bytes::Bytes;
use indicatif::ProgressBar;
use sutura::{ConnectionError, http};
use tokio::task::JoinSet;

use super::head::Head;
use super::payload::Upload;
use crate::failure::{Exit, Failure};

/// The status with which a server declines to answer a request in 0-RTT (RFC 8470 section 5.2).
const TOO_EARLY: u16 = 425;

/// A request to be sent.
#[derive(Debug)]
pub struct Outgoing {
    pub method: String,
    pub authority: String,
    pub path: String,
    pub fields: Vec<(String, String)>,
    pub priority: http::Priority,
}

/// A request that was sent, or of which the rest is being sent. If dropped before that is complete, it is cancelled.
#[derive(Debug)]
pub struct Asked {
    client: http::Client,
    response: http::RecvHalf,
    /// Sends the body, if there is one.
    sending: JoinSet<Result<(), Failure>>,
    pub start: Instant,
}

impl Asked {
    /// Sends a request, waiting until the server permits one more; its body follows while the response is awaited.
    ///
    /// # Errors
    /// The connection is over, or the server accepts no more requests.
    pub async fn send(
        client: &http::Client,
        outgoing: &Outgoing,
        body: Option<Upload>,
        progress: &ProgressBar,
    ) -> Result<Self, http::Error> {
        let start = Instant::now();
        let Outgoing { method, authority, path, fields, priority } = outgoing;
        let fields: Vec<(&str, &[u8])> =
            fields.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
        let begin = || client.request(method, authority, path, &fields, Some(priority.clone()));
        let mut begun = begin().await;
        if matches!(begun, Err(http::Error::ZeroRttRejected)) {
            begun = begin().await;
        }
        let (mut sender, response) = begun?.split();
        let mut sending = JoinSet::new();
        match body {
            None => sender.finish().await?,
            Some(source) => {
                let progress = progress.clone();
                sending.spawn(send_body(sender, source, progress));
            }
        }
        Ok(Self { client: client.clone(), response, sending, start })
    }

    /// Waits for the head of the final response.
    ///
    /// # Errors
    /// The server abandons the response or the connection is over, or what is to be sent cannot be read.
    pub async fn head(&mut self) -> Result<Head, Lost> {
        loop {
            tokio::select! {
                response = self.response.recv_response() => return Ok(response?.into()),
                Some(Ok(sent)) = self.sending.join_next() => sent?,
            }
        }
    }

    /// Waits for the next part of the body.
    ///
    /// # Errors
    /// As for [`head`](Self::head).
    pub async fn data(&mut self) -> Result<Option<Bytes>, Lost> {
        loop {
            tokio::select! {
                data = self.response.recv_data() => return Ok(data?),
                Some(Ok(sent)) = self.sending.join_next() => sent?,
            }
        }
    }

    /// Waits until the request was sent, too: a server that is content may still read it.
    ///
    /// # Errors
    /// What is to be sent cannot be read.
    pub async fn sent(&mut self) -> Result<(), Failure> {
        while let Some(sent) = self.sending.join_next().await {
            sent.unwrap_or(Ok(()))?;
        }
        Ok(())
    }

    /// Waits until a request that came too early can be sent again.
    ///
    /// # Errors
    /// The connection is over.
    pub async fn later(&self) -> Result<(), http::Error> {
        Ok(self.client.connection().handshake_complete().await?)
    }

    /// The connection that it goes over.
    pub fn client(&self) -> &http::Client {
        &self.client
    }
}

/// Sends a body. The response tells why a server does not want it.
async fn send_body(
    mut sender: http::SendHalf,
    mut source: Upload,
    progress: ProgressBar,
) -> Result<(), Failure> {
    progress.set_length(source.length.unwrap_or(0));
    while let Some(data) = source.next().await? {
        let count = data.len() as u64;
        if sender.send_data(data).await.is_err() {
            return Ok(());
        }
        progress.inc(count);
    }
    let _ = sender.finish().await;
    Ok(())
}

/// Why a response does not come.
#[derive(Debug)]
pub enum Lost {
    /// What is to be sent cannot be read.
    Local(Failure),
    /// The exchange broke off.
    Exchange(http::Error),
}

impl From<Failure> for Lost {
    fn from(failure: Failure) -> Self {
        Self::Local(failure)
    }
}

impl From<http::Error> for Lost {
    fn from(error: http::Error) -> Self {
        Self::Exchange(error)
    }
}

/// Whether a request was sent in 0-RTT and the server rejects 0-RTT, or demands the request after the
/// handshake (RFC 8470 section 5.2).
pub fn is_too_early(response: &Result<Head, Lost>) -> bool {
    match response {
        Ok(response) => response.status == TOO_EARLY,
        Err(Lost::Exchange(error)) => *error == http::Error::ZeroRttRejected,
        Err(Lost::Local(_)) => false,
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
