//! Sans-IO HTTP/3 (RFC 9114) with QPACK (RFC 9204), extensible priorities (RFC 9218), and priority
//! parameters for hierarchical sharing and erasure coding.
//!
//! [`Connection`] is either end of one connection. It does not own a transport: every method that
//! moves bytes takes a [`Transport`]. It uses no clock: the transport knows the
//! time. To drive it:
//!
//! 1. tell it of the events of streams ([`Connection::readable`], [`Connection::writable`],
//!    [`Connection::stopped`]),
//! 2. call [`Connection::process`],
//! 3. take events out of [`Connection::poll_event`] until there are none,
//! 4. send and read messages with the other methods.
//!
//! Server push is not supported. This crate does not buffer bodies: they move directly between the
//! transport and the caller's memory, apart from the first kilobyte of a stream.
//!
//! # Example
//!
//! A request and its response over [`Quic`], the [`Transport`] of `sutura_proto`. The application tells
//! HTTP/3 of the events of streams, lets it process them, and handles HTTP/3's own events:
//!
//! ```
//! use std::time::Instant;
//! use sutura_h3::{Config, Connection, Event, Fields, Priority, Quic};
//! use sutura_proto::{Event as QuicEvent, StreamEvent};
//! # use std::sync::Arc;
//! # use sutura_proto::crypto::null::{NullClientConfig, NullServerConfig};
//! # use sutura_proto::{ClientConfig, DatagramEvent, Endpoint, ServerConfig, TransportConfig};
//!
//! /// Works on what happened and returns HTTP/3's events.
//! fn process(http: &mut Connection, quic: &mut Quic<'_>) -> Result<Vec<Event>, sutura_h3::Error> {
//!     while let Some(event) = quic.connection.poll_event() {
//!         match event {
//!             QuicEvent::Stream(StreamEvent::Readable { id }) => http.readable(id),
//!             QuicEvent::Stream(StreamEvent::Writable { id }) => http.writable(id),
//!             QuicEvent::Stream(StreamEvent::Stopped { id, code }) => {
//!                 http.stopped(id, sutura_h3::Code(code));
//!             }
//!             _ => {}
//!         }
//!     }
//!     http.process(quic)?;
//!     Ok(std::iter::from_fn(|| http.poll_event()).collect())
//! }
//!
//! # fn exchange(
//! #     now: Instant,
//! #     client: &mut sutura_proto::Connection,
//! #     endpoint: &mut Endpoint,
//! #     server: &mut Option<Box<sutura_proto::Connection>>,
//! # ) {
//! #     let (at_client, at_server) = (([192, 0, 2, 1], 4000).into(), ([192, 0, 2, 2], 443).into());
//! #     loop {
//! #         let (mut up, mut down) = (Vec::new(), Vec::new());
//! #         if client.poll_transmit(now, 1, &mut up).is_some() {
//! #             let event = endpoint.handle(now, at_client, &up);
//! #             if let DatagramEvent::NewConnection(incoming) = event {
//! #                 *server = endpoint.accept(now, incoming);
//! #             }
//! #             if let Some(server) = server {
//! #                 server.handle_datagram(now, at_client, None, &mut up);
//! #             }
//! #         } else if let Some(server) = server
//! #             && server.poll_transmit(now, 1, &mut down).is_some()
//! #         {
//! #             client.handle_datagram(now, at_server, None, &mut down);
//! #         } else {
//! #             return;
//! #         }
//! #     }
//! # }
//! # let now = Instant::now();
//! # let transport = Arc::new(TransportConfig::default());
//! # let crypto = Arc::new(NullServerConfig::new(vec![sutura_h3::ALPN.to_vec()]));
//! # let config = Arc::new(ServerConfig::new(crypto, transport.clone()));
//! # let mut endpoint = Endpoint::new(Arc::default(), Some(config), [1; 32]);
//! # let crypto = Arc::new(NullClientConfig::new(vec![sutura_h3::ALPN.to_vec()]));
//! # let (_, mut client) = Endpoint::new(Arc::default(), None, [2; 32]).connect(
//! #     now,
//! #     ClientConfig::new(crypto, transport),
//! #     ([192, 0, 2, 2], 443).into(),
//! #     "example.org",
//! # )?;
//! # let mut server = None;
//! # exchange(now, &mut client, &mut endpoint, &mut server);
//! // `client` and `server` are connections of `sutura_proto` whose handshake is complete.
//! let mut asks = Connection::client(Config::default());
//! let request = Fields::request("GET", "https", "example.org", "/");
//! let priority = Priority::default().with_urgency(1);
//! let mut quic = Quic { now, connection: &mut client };
//! process(&mut asks, &mut quic)?;
//! let stream = asks.send_request(&mut quic, &request, Some(&priority), true)?;
//! # exchange(now, &mut client, &mut endpoint, &mut server);
//!
//! let mut answers = Connection::server(Config::default());
//! # let mut server_end = server.as_mut().ok_or("no connection")?;
//! let mut quic = Quic { now, connection: &mut server_end };
//! for event in process(&mut answers, &mut quic)? {
//!     if let Event::Headers { stream, fields } = event {
//!         assert_eq!(fields.get(":path"), Some(&b"/"[..]));
//!         assert_eq!(answers.priority(stream).map(|p| p.urgency), Some(1));
//!         answers.send_response(&mut quic, stream, &Fields::response(200), false)?;
//!         answers.send_body(&mut quic, stream, b"hello")?;
//!         answers.finish(&mut quic, stream)?;
//!     }
//! }
//! # exchange(now, &mut client, &mut endpoint, &mut server);
//!
//! let mut quic = Quic { now, connection: &mut client };
//! let events = process(&mut asks, &mut quic)?;
//! assert!(events.iter().any(|event| {
//!     matches!(event, Event::Headers { fields, .. } if fields.status() == Some(200))
//! }));
//! let mut buffer = [0; 16];
//! let bytes = asks.read_body(&mut quic, stream, &mut buffer)?;
//! assert_eq!(&buffer[..bytes], b"hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod capsule;
mod codec;
mod config;
mod connection;
mod error;
mod event;
mod fields;
mod frame;
mod message;
mod observe;
mod priority;
mod qpack;
mod quic;
mod settings;
mod transport;
mod webtransport;

#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod fuzz;

pub use capsule::{Capsule, CapsuleError, CapsuleReader, MAX_CAPSULE_SIZE};
pub use config::{CancelLimit, Config, MAX_BLOCKED_STREAMS, MAX_TABLE_CAPACITY};
pub use connection::{
    BodyPiece, Connection, MAX_BUFFERED_SESSION_STREAMS, MAX_CONTROL_BACKLOG, MAX_CONTROL_PAYLOAD,
    MAX_DATA_COPY, MAX_INTERIM_RESPONSES, MAX_PRIORITY_OVERRIDES, MAX_PRIORITY_UPDATES,
    MAX_QUEUED_DATAGRAM_BYTES, MAX_QUEUED_DATAGRAM_BYTES_IN_ALL, MAX_QUEUED_DATAGRAMS,
    MAX_QUEUED_DATAGRAMS_IN_ALL, MAX_UNTYPED_STREAMS, OpenedStream,
};
pub use error::{Code, Error, ReceiveError, SendDatagramError, SendError};
pub use event::Event;
pub use fields::{FIELD_OVERHEAD, Field, Fields};
pub use message::MessageError;
pub use observe::{FrameAction, FrameContent, FrameEvent};
pub use priority::{
    DefaultProtection, DefaultProtections, MAX_BURST, MAX_CLASS_NAME, MAX_DELAY, MAX_PRIORITY_SIZE,
    Priority, PriorityError, PriorityParameters,
};
pub use qpack::MAX_UNACKNOWLEDGED_SECTIONS;
pub use quic::Quic;
pub use settings::{MAX_SETTINGS, Settings};
pub use sutura_schedule::{Class, Extension, MAX_DEPTH, Urgency, Weight};
pub use transport::{Read, ReadError, Transport, WriteError};
pub use webtransport::{
    MAX_CLOSE_REASON, SessionClose, WebTransportDraft, WebTransportDrafts, is_webtransport,
};

/// The ALPN protocol identifier of HTTP/3 (RFC 9114 section 3.1).
pub const ALPN: &[u8] = b"h3";

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
