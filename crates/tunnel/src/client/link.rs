//! One connection to a proxy.

use std::sync::Arc;
use std::time::Duration;

use sutura::Connection;
use sutura::http::{self, Code, Priority, RequestStream, Response, SendError};
use tokio::time::timeout;

use super::Dialled;
use super::refusal::Refusal;
use crate::access::Target;
use crate::masque::{
    AUTHORIZATION, CAPSULE_PROTOCOL, CONNECT_UDP, Cause, FLOWS, FLOWS_PATH, UdpTemplate,
};
use crate::server::http_config;
use crate::stream::Ledger;

/// How long a proxy may take to say whether it knows flows that can be resumed.
const HELLO_TIMEOUT: Duration = Duration::from_secs(10);

/// What a proxy lacks that takes no datagrams.
const NO_DATAGRAMS: &str = "it has not announced datagrams of both HTTP (SETTINGS_H3_DATAGRAM, RFC 9297 section 2.1.1) \
     and QUIC (max_datagram_frame_size, RFC 9221)";

/// A connection to a proxy.
#[derive(Debug)]
pub(super) struct Link {
    http: http::Client,
    authority: String,
    udp: UdpTemplate,
    authorization: Option<Arc<str>>,
    /// What both ends tell each other of flows, if the proxy knows that.
    ledger: Option<Arc<Ledger>>,
}

/// A request that was not answered with success.
#[derive(Debug)]
pub(super) enum Unanswered {
    /// The proxy refuses.
    Refused(Refusal),
    /// The connection is lost.
    Lost(String),
}

impl From<http::Error> for Unanswered {
    fn from(error: http::Error) -> Self {
        match &error {
            http::Error::Connection(_)
            | http::Error::Protocol(_)
            | http::Error::GoingAway
            | http::Error::ZeroRttRejected => Self::Lost(error.to_string()),
            http::Error::Invalid(SendError::InvalidState(why)) => {
                Self::Refused(Refusal::lacking(why))
            }
            error => Self::Refused(Refusal::new(Cause::Internal, error.to_string())),
        }
    }
}

impl Link {
    /// Speaks to a proxy, and finds out what it knows.
    ///
    /// # Errors
    /// It does not let this end in, or the connection is lost.
    pub(super) async fn open(
        dialled: Dialled,
        authorization: Option<Arc<str>>,
    ) -> Result<Arc<Self>, Unanswered> {
        let Dialled { connection, authority, udp } = dialled;
        let http = http::Client::new(connection, http_config()).await?;
        let mut link = Self { http, authority, udp, authorization, ledger: None };
        let hello = link.extended(FLOWS, FLOWS_PATH, &[CAPSULE_PROTOCOL]);
        match timeout(HELLO_TIMEOUT, hello).await {
            Ok(Ok((stream, _))) => {
                let ledger = Arc::new(Ledger::default());
                link.ledger = Some(ledger.clone());
                tokio::spawn(async move { ledger.run(stream).await });
            }
            Ok(Err(Unanswered::Refused(refusal))) if refusal.cause() == Some(Cause::Denied) => {
                return Err(Unanswered::Refused(refusal));
            }
            Ok(Err(Unanswered::Lost(why))) => return Err(Unanswered::Lost(why)),
            // Another proxy than Sutura's: flows end with their connection.
            Ok(Err(Unanswered::Refused(_))) | Err(_) => {}
        }
        Ok(Arc::new(link))
    }

    pub(super) fn connection(&self) -> &Connection {
        self.http.connection()
    }

    /// What both ends tell each other of flows, if they can be resumed.
    pub(super) const fn ledger(&self) -> Option<&Arc<Ledger>> {
        self.ledger.as_ref()
    }

    /// Asks for a TCP connection by CONNECT.
    pub(super) async fn tcp(
        &self,
        target: &str,
        fields: &[(&str, &[u8])],
        priority: Priority,
    ) -> Result<(RequestStream, Response), Unanswered> {
        let fields = self.authorized(fields);
        let stream = self.http.tunnel(target, &fields, Some(priority)).await?;
        answered(stream, target).await
    }

    /// Asks for something else by extended CONNECT.
    pub(super) async fn extended(
        &self,
        protocol: &str,
        path: &str,
        fields: &[(&str, &[u8])],
    ) -> Result<(RequestStream, Response), Unanswered> {
        let stream = self.begin(protocol, path, fields).await?;
        answered(stream, path).await
    }

    /// Asks for UDP to a target by CONNECT-UDP.
    pub(super) async fn udp(&self, target: &Target) -> Result<RequestStream, Unanswered> {
        self.datagrams(CONNECT_UDP, &self.udp.path(target)).await
    }

    /// Asks for an exchange of datagrams by extended CONNECT.
    pub(super) async fn datagrams(
        &self,
        protocol: &str,
        path: &str,
    ) -> Result<RequestStream, Unanswered> {
        let (stream, _) = self.extended(protocol, path, &[CAPSULE_PROTOCOL]).await?;
        match (stream.max_datagram_size(), self.connection().close_reason()) {
            (Some(_), _) => Ok(stream),
            (None, Some(why)) => Err(Unanswered::Lost(why.to_string())),
            (None, None) => Err(Unanswered::Refused(Refusal::lacking(NO_DATAGRAMS))),
        }
    }

    /// Begins an extended CONNECT, without waiting for an answer.
    pub(super) async fn begin(
        &self,
        protocol: &str,
        path: &str,
        fields: &[(&str, &[u8])],
    ) -> Result<RequestStream, Unanswered> {
        let fields = self.authorized(fields);
        Ok(self.http.connect(protocol, &self.authority, path, &fields, None).await?)
    }

    fn authorized<'a>(&'a self, fields: &[(&'a str, &'a [u8])]) -> Vec<(&'a str, &'a [u8])> {
        let shown = self.authorization.as_deref().map(|shown| (AUTHORIZATION, shown.as_bytes()));
        shown.into_iter().chain(fields.iter().copied()).collect()
    }

    /// Says goodbye: the proxy ends the flows.
    pub(super) fn close(&self) {
        self.connection().close(Code::NO_ERROR.0, b"");
    }
}

/// Waits for the answer to a request.
pub(super) async fn answered(
    mut stream: RequestStream,
    what: &str,
) -> Result<(RequestStream, Response), Unanswered> {
    let response = stream.recv_response().await?;
    if (200..300).contains(&response.status) {
        return Ok((stream, response));
    }
    Err(Unanswered::Refused(Refusal::of(&response, what)))
}

/// The value of a field of a response.
pub(super) fn field<'a>(response: &'a Response, name: &str) -> Option<&'a [u8]> {
    response.fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_slice())
}
