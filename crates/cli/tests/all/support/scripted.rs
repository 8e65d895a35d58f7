//! A server that answers as a test says, in a thread of its own.

use std::net::SocketAddr;
use std::process::Output;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use bytes::Bytes;
use rustls::pki_types::PrivatePkcs8KeyDer;
use sutura::http::{self, RequestStream, Server};
use sutura::{Connection, Endpoint, ServerConfig};

use super::{Process, sutura};

/// How often it looks whether a client has everything.
const TICK: Duration = Duration::from_millis(2);
/// Bodies longer than this are counted, and not kept.
const MAX_KEPT: usize = 1 << 20;

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    pub method: String,
    pub authority: String,
    pub path: String,
    pub fields: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// Bytes of the body.
    pub length: usize,
    /// How many requests for the same path came before.
    pub earlier: usize,
}

impl Told {
    /// The values of a field.
    pub fn all(&self, name: &str) -> Vec<&str> {
        self.fields.iter().filter(|(n, _)| n == name).map(|(_, value)| value.as_str()).collect()
    }

    /// The only value of a field, if there is one.
    pub fn field(&self, name: &str) -> Option<&str> {
        let all = self.all(name);
        assert!(all.len() < 2, "{name}: {all:?}");
        all.first().copied()
    }
}

/// A response.
#[derive(Debug, Clone)]
pub struct Answer {
    status: u16,
    fields: Vec<(String, String)>,
    body: Vec<u8>,
    /// After how many bytes of the body the connection ends.
    cut: Option<usize>,
}

impl Answer {
    pub fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, fields: Vec::new(), body: body.into(), cut: None }
    }

    pub fn field(mut self, name: &str, value: &str) -> Self {
        self.fields.push((name.into(), value.into()));
        self
    }

    /// With a `content-length`.
    pub fn with_length(self) -> Self {
        let length = self.body.len().to_string();
        self.field("content-length", &length)
    }

    /// Ends the connection when the client has so many bytes of the body.
    pub fn cut(mut self, at: usize) -> Self {
        self.cut = Some(at);
        self
    }
}

type Script = Arc<dyn Fn(&Told) -> Answer + Send + Sync>;

/// The server.
#[derive(Debug)]
pub struct Scripted {
    pub address: SocketAddr,
    told: Arc<Mutex<Vec<Told>>>,
}

impl Scripted {
    /// Starts a server on loopback.
    pub fn start(script: impl Fn(&Told) -> Answer + Send + Sync + 'static) -> Self {
        let told = Arc::<Mutex<Vec<Told>>>::default();
        let (kept, script): (_, Script) = (told.clone(), Arc::new(script));
        let (sender, address) = mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async move {
                let endpoint = Endpoint::server(config(), ([127, 0, 0, 1], 0).into()).unwrap();
                sender.send(endpoint.local_addr().unwrap()).unwrap();
                while let Some(incoming) = endpoint.accept().await {
                    let (kept, script) = (kept.clone(), script.clone());
                    tokio::spawn(async move {
                        let Ok(connection) = incoming.await else { return };
                        serve(connection, kept, script).await;
                    });
                }
            });
        });
        Self { address: address.recv().unwrap(), told }
    }

    pub fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.address)
    }

    /// What was asked so far.
    pub fn told(&self) -> Vec<Told> {
        self.told.lock().unwrap().clone()
    }

    /// What was asked by one `sutura get` with these arguments, and its output.
    pub fn get(&self, path: &str, args: &[&str]) -> (Output, Vec<Told>) {
        let before = self.told().len();
        let output =
            Process::spawn(sutura(["get", "-k", &self.url(path)].iter().chain(args))).output();
        (output, self.told()[before..].to_vec())
    }
}

fn config() -> ServerConfig {
    let signed = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    let key = PrivatePkcs8KeyDer::from(signed.signing_key.serialize_der());
    ServerConfig::with_single_cert(vec![signed.cert.into()], key.into(), &[http::ALPN]).unwrap()
}

async fn serve(connection: Connection, told: Arc<Mutex<Vec<Told>>>, script: Script) {
    let mut server = Server::new(connection, http::Config::default());
    while let Ok(Some((request, stream))) = server.accept().await {
        // A client may go at any time.
        tokio::spawn(answer(request, stream, told.clone(), script.clone()));
    }
}

async fn answer(
    request: http::Request,
    mut stream: RequestStream,
    told: Arc<Mutex<Vec<Told>>>,
    script: Script,
) -> Result<(), http::Error> {
    let (mut body, mut length) = (Vec::new(), 0);
    while let Some(data) = stream.recv_data().await? {
        length += data.len();
        if length <= MAX_KEPT {
            body.extend_from_slice(&data);
        }
    }
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    let fields = request.fields.iter().map(|(name, value)| (name.clone(), text(value))).collect();
    let http::Request { method, authority, path, .. } = request;
    let mut now = Told { method, authority, path, fields, body, length, earlier: 0 };
    {
        let mut told = told.lock().unwrap();
        now.earlier = told.iter().filter(|earlier| earlier.path == now.path).count();
        told.push(now.clone());
    }
    let Answer { status, fields, body, cut } = script(&now);
    let fields: Vec<_> = fields.iter().map(|(n, v)| (n.as_str(), v.as_bytes())).collect();
    stream.send_response(status, &fields).await?;
    if now.method != "HEAD" {
        let some = cut.map_or(&body[..], |cut| &body[..cut]);
        stream.send_data(Bytes::copy_from_slice(some)).await?;
    }
    if cut.is_none() {
        return stream.finish().await;
    }
    let connection = stream.connection();
    loop {
        let stats = connection.stats();
        if stats.streams.send_buffered == 0 && stats.bytes_in_flight == 0 {
            connection.close(http::Code::INTERNAL_ERROR.0, b"cut");
            return Ok(());
        }
        tokio::time::sleep(TICK).await;
    }
}
