//! Connections to the proxy that are handed on to a target beside this end.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use bytes::Bytes;
use sutura::http::Response;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::link::{Link, Unanswered, answered, field};
use super::tcp::Wish;
use super::{Refusal, TcpTunnel, Tunnel};
use crate::access::{Target, Transport};
use crate::masque::{ACCEPT, LISTENING, PEER, accept_path};

/// Requests that wait at the proxy for connections, so that several may come at once.
pub const WAITING_REQUESTS: usize = 4;
/// How long to wait before asking again, after the proxy has refused.
const RETRY: Duration = Duration::from_secs(10);
/// How long to wait for a connection to the proxy.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Where a proxy is to listen, and where connections go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reverse {
    /// The address of the proxy.
    pub listen: Target,
    /// Where connections to there are handed on to, from this end.
    pub to: Target,
}

impl Tunnel {
    /// Has the proxy listen, and hands connections on, for ever. Calls `listening` with the address whenever the proxy
    /// has begun to listen.
    pub async fn reverse(
        &self,
        reverse: Reverse,
        listening: impl Fn(&str) + Send + Sync + 'static,
    ) {
        let (reverse, listening) = (Arc::new(reverse), Arc::new(listening));
        let mut waiting = JoinSet::new();
        loop {
            while waiting.len() < WAITING_REQUESTS {
                let (tunnel, reverse, listening) =
                    (self.clone(), reverse.clone(), listening.clone());
                waiting.spawn(async move { tunnel.wait(&reverse, &*listening).await });
            }
            let Some(Ok(Err(refusal))) = waiting.join_next().await else { continue };
            let Reverse { listen, to } = &*reverse;
            self.0.totals.refused.fetch_add(1, Relaxed);
            self.0.notices.complain(&format!("-R {listen}:{to}: {refusal}"));
            waiting.shutdown().await;
            sleep(RETRY).await;
        }
    }

    /// Waits for one connection, and begins to hand it on.
    async fn wait(
        &self,
        reverse: &Reverse,
        listening: &(dyn Fn(&str) + Sync),
    ) -> Result<(), Refusal> {
        let link = self.link(Instant::now() + PATIENCE).await?;
        let wish = Wish::new();
        let (stream, response) = match ask(&link, &reverse.listen, &wish, listening).await {
            Ok(answered) => answered,
            Err(Unanswered::Refused(refusal)) => return Err(refusal),
            Err(Unanswered::Lost(_)) => return Ok(()),
        };
        let token = wish.granted(&response);
        let peer = field(&response, PEER).map(String::from_utf8_lossy).unwrap_or_default();
        let (tunnel, to) = (self.clone(), reverse.to.to_string());
        let flow = self.flow(Transport::Tcp, &reverse.to);
        tracing::debug!(%peer, %to, "handed on");
        tokio::spawn(async move {
            match TcpStream::connect(&to).await {
                Ok(tcp) => {
                    let carried = TcpTunnel { tunnel, link, stream, token, target: to, flow };
                    carried.carry(tcp, Bytes::new()).await;
                }
                Err(error) => {
                    tunnel.0.notices.complain(&format!("cannot connect to {to}: {error}"));
                    let mut stream = stream;
                    stream.reset(sutura::http::Code::CONNECT_ERROR);
                }
            }
        });
        Ok(())
    }
}

/// Asks for a connection.
async fn ask(
    link: &Arc<Link>,
    listen: &Target,
    wish: &Wish,
    listening: &(dyn Fn(&str) + Sync),
) -> Result<(sutura::http::RequestStream, Response), Unanswered> {
    let fields = wish.fields(link);
    let mut stream = link.begin(ACCEPT, &accept_path(listen), &fields).await?;
    while let Some(interim) = stream.recv_interim().await? {
        if let Some(at) = field(&interim, LISTENING) {
            listening(String::from_utf8_lossy(at).trim_matches('"'));
        }
    }
    answered(stream, "a request to listen").await
}
