//! The qlog file: header, events, buffering.

use serde::{Serialize, Serializer};
use std::any::Any;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use sutura_proto::policy::LossFloor;
use sutura_proto::wire_format::{Carrier, TransportParameters};
use sutura_proto::{
    ConnectionId, Metrics, Observation, Observer, Protection, Reason, Side, SpaceId,
};

use super::application::ApplicationEvent;
use super::frames::{self, FrameEntry, hexadecimal};
use super::http;
use super::parameters::ParametersSet;
use super::path::{EcnStateUpdated, MtuUpdated, PathAssigned};

/// Bytes written to the file at a time.
const BUFFER_SIZE: usize = 64 * 1024;

/// Starts every record of a JSON text sequence (RFC 7464).
const RECORD_SEPARATOR: u8 = 0x1e;

/// Milliseconds with microsecond resolution.
pub(super) fn milliseconds(duration: Duration) -> f64 {
    duration.as_micros() as f64 / 1000.0
}

#[derive(Debug, Serialize)]
struct Header<'a> {
    qlog_version: &'static str,
    qlog_format: &'static str,
    title: &'a str,
    trace: Trace<'a>,
}

#[derive(Debug, Serialize)]
struct Trace<'a> {
    vantage_point: VantagePoint<'a>,
    title: &'a str,
    common_fields: CommonFields,
}

#[derive(Debug, Serialize)]
struct VantagePoint<'a> {
    name: &'a str,
    #[serde(rename = "type")]
    side: &'static str,
}

#[derive(Debug, Serialize)]
struct CommonFields {
    #[serde(rename = "ODCID", serialize_with = "hexadecimal")]
    odcid: ConnectionId,
    #[serde(serialize_with = "hexadecimal")]
    group_id: ConnectionId,
    time_format: &'static str,
    /// Milliseconds since 1970.
    reference_time: f64,
    protocol_type: [&'static str; 1],
}

#[derive(Debug, Serialize)]
struct Event<D> {
    /// Milliseconds since the reference time.
    time: f64,
    name: &'static str,
    data: D,
}

#[derive(Debug, Serialize)]
struct Packet<'a> {
    header: PacketHeader,
    raw: Raw,
    #[serde(skip_serializing_if = "Option::is_none")]
    frames: Option<Vec<FrameEntry<'a>>>,
}

#[derive(Debug, Serialize)]
struct PacketHeader {
    packet_type: &'static str,
    packet_number: u64,
}

#[derive(Debug, Serialize)]
struct Raw {
    length: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_length: Option<usize>,
}

#[derive(Debug, Serialize)]
struct ConnectionStarted {
    #[serde(serialize_with = "hexadecimal")]
    original_destination_connection_id: ConnectionId,
}

#[derive(Debug, Serialize)]
struct ConnectionClosed<'a> {
    reason: &'a str,
}

/// Contains only metrics that changed.
#[derive(Debug, Default, PartialEq, Serialize)]
struct MetricsUpdated {
    #[serde(skip_serializing_if = "Option::is_none")]
    min_rtt: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    smoothed_rtt: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    latest_rtt: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    congestion_window: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_in_flight: Option<u64>,
    /// Bits per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pacing_rate: Option<u64>,
}

#[derive(Debug, Serialize)]
struct SymbolRecovered<'a> {
    session: u16,
    symbol_id: u64,
    length: usize,
    frames: Vec<FrameEntry<'a>>,
}

#[derive(Debug, Serialize)]
struct RecoveredByPeer {
    session: u16,
    count: u32,
}

#[derive(Debug, Serialize)]
struct RedundancyUpdated<'a> {
    /// Name and parameters of the policy.
    #[serde(serialize_with = "text")]
    name: &'a Protection,
    session: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    /// Repair symbols on each occasion.
    #[serde(skip_serializing_if = "Option::is_none")]
    repairs: Option<u32>,
    /// How long they wait, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    wait: Option<f64>,
}

/// Writes the text that `value` displays.
fn text<T: Display, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

#[derive(Debug, Serialize)]
struct LossEstimateUpdated {
    rate: f64,
    low: f64,
    high: f64,
    /// Packets lost in a row.
    burst: f64,
    /// Milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    burst_time: Option<f64>,
    /// The parameters of the Gilbert model.
    p: f64,
    r: f64,
    /// Share of packets that are lost in addition while the queue is not empty.
    excess: f64,
    /// How many packets with repair symbols there is room for, for each of the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    room: Option<f64>,
}

impl<'a> RedundancyUpdated<'a> {
    fn new(session: u16, name: &'a Protection, reason: Option<Reason>) -> Self {
        let (repairs, wait) = match reason {
            Some(Reason::Protects { repairs, wait }) => (Some(repairs), Some(milliseconds(wait))),
            _ => (None, None),
        };
        Self { name, session, reason: reason.map(|reason| reason.name()), repairs, wait }
    }
}

impl LossEstimateUpdated {
    fn new(floor: &LossFloor) -> Self {
        let (p, r) = floor.gilbert();
        let &LossFloor { rate, low, high, burst, burst_time, excess, room, .. } = floor;
        let room = room.is_finite().then_some(room);
        let burst_time = (!burst_time.is_zero()).then(|| milliseconds(burst_time));
        Self { rate, low, high, burst, burst_time, p, r, excess, room }
    }
}

/// Bytes that moved between the application and the transport.
#[derive(Debug, Serialize)]
struct DataMoved {
    stream_id: u64,
    length: usize,
    from: &'static str,
    to: &'static str,
}

impl MetricsUpdated {
    fn between(old: Option<&Metrics>, new: &Metrics) -> Self {
        fn changed<T: PartialEq>(
            old: Option<&Metrics>,
            new: &Metrics,
            field: impl Fn(&Metrics) -> T,
        ) -> Option<T> {
            let value = field(new);
            (old.map(field).as_ref() != Some(&value)).then_some(value)
        }
        Self {
            min_rtt: changed(old, new, |m| milliseconds(m.min_rtt)),
            smoothed_rtt: changed(old, new, |m| milliseconds(m.smoothed_rtt)),
            latest_rtt: changed(old, new, |m| milliseconds(m.latest_rtt)),
            congestion_window: changed(old, new, |m| m.congestion_window),
            bytes_in_flight: changed(old, new, |m| m.bytes_in_flight),
            pacing_rate: changed(old, new, |m| m.pacing_rate.map(|r| r.saturating_mul(8)))
                .flatten(),
        }
    }
}

/// Writes a connection's qlog file. After a file system error it stops writing; the connection is
/// not affected.
#[derive(Debug)]
pub struct QlogWriter {
    directory: PathBuf,
    side: Side,
    title: String,
    /// `None` until the connection reports its identifier, and after an error.
    file: Option<BufWriter<File>>,
    recorder: Recorder,
}

impl QlogWriter {
    /// An observer that writes `<original destination connection id>_<client|server>.sqlog` in
    /// `directory`, starting when the connection reports its identifier. An existing file is not
    /// overwritten. `side` is the connection's; `title` may be any text.
    ///
    /// # Errors
    /// The directory does not exist.
    pub fn create(directory: &Path, side: Side, title: &str) -> io::Result<Box<dyn Observer>> {
        if !std::fs::metadata(directory)?.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Box::new(Self {
            directory: directory.to_owned(),
            side,
            title: title.to_owned(),
            file: None,
            recorder: Recorder::default(),
        }))
    }

    fn start(&mut self, now: Instant, odcid: ConnectionId) -> io::Result<()> {
        let name = format!("{odcid}_{}.sqlog", side_name(self.side));
        let file = File::create_new(self.directory.join(name))?;
        let file = self.file.insert(BufWriter::with_capacity(BUFFER_SIZE, file));
        self.recorder.start(now, self.side, &self.title, odcid, file)
    }
}

const fn side_name(side: Side) -> &'static str {
    match side {
        Side::Client => "client",
        Side::Server => "server",
    }
}

impl Observer for QlogWriter {
    fn observe(&mut self, now: Instant, observation: &Observation<'_>) {
        let result = match (&mut self.file, observation) {
            (None, &Observation::Started { original_dcid, .. }) => self.start(now, original_dcid),
            (Some(file), observation) => self.recorder.record(now, observation, file),
            (None, _) => Ok(()),
        };
        if let Err(error) = result {
            tracing::debug!(%error, directory = %self.directory.display(), "qlog ends");
            self.file = None;
        }
    }
}

/// Turns observations into records.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    start: Option<Instant>,
    /// The time of the newest event: qvis needs events in order of time.
    newest: Duration,
    local_ack_delay_exponent: u8,
    remote_ack_delay_exponent: u8,
    metrics: Option<Metrics>,
    closed: bool,
}

impl Recorder {
    /// Writes the header.
    pub(super) fn start(
        &mut self,
        now: Instant,
        side: Side,
        title: &str,
        odcid: ConnectionId,
        out: &mut impl Write,
    ) -> io::Result<()> {
        self.start = Some(now);
        let default = TransportParameters::default().ack_delay_exponent;
        self.local_ack_delay_exponent = default;
        self.remote_ack_delay_exponent = default;
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let header = Header {
            qlog_version: "0.3",
            qlog_format: "JSON-SEQ",
            title,
            trace: Trace {
                vantage_point: VantagePoint { name: "sutura", side: side_name(side) },
                title,
                common_fields: CommonFields {
                    odcid,
                    group_id: odcid,
                    time_format: "relative",
                    reference_time: milliseconds(since_1970),
                    protocol_type: ["QUIC"],
                },
            },
        };
        write_record(out, &header)?;
        let started = ConnectionStarted { original_destination_connection_id: odcid };
        self.event(now, "connectivity:connection_started", started, out)
    }

    /// Writes the event for `observation`.
    pub(super) fn record(
        &mut self,
        now: Instant,
        observation: &Observation<'_>,
        out: &mut impl Write,
    ) -> io::Result<()> {
        match *observation {
            Observation::Parameters { local, parameters } => {
                self.parameters_set(now, local, parameters, out)
            }
            Observation::PacketSent { space, early, pn, size, payload } => {
                let packet =
                    packet(carrier(space, early), pn, size, payload, self.local_ack_delay_exponent);
                self.event(now, "transport:packet_sent", packet, out)?;
                // A closed connection continues to send for a while, and nobody flushes the buffer
                // when the process exits.
                if self.closed { out.flush() } else { Ok(()) }
            }
            Observation::PacketReceived { space, early, pn, size, payload } => {
                let packet = packet(
                    carrier(space, early),
                    pn,
                    size,
                    payload,
                    self.remote_ack_delay_exponent,
                );
                self.event(now, "transport:packet_received", packet, out)
            }
            Observation::PacketLost { space, pn, size } => {
                self.event(now, "recovery:packet_lost", lost_packet(space, pn, size), out)
            }
            Observation::Metrics(metrics) => self.metrics_updated(now, metrics, out),
            Observation::SymbolRecovered { session, id, frames } => {
                let mut entries = Vec::new();
                frames::list(frames, Carrier::SourceSymbol, 0, &mut entries);
                let length = frames.len();
                let data = SymbolRecovered { session, symbol_id: id, length, frames: entries };
                self.event(now, "fec:symbol_recovered", data, out)
            }
            Observation::SymbolsRecoveredByPeer { count: 0, .. } => Ok(()),
            Observation::SymbolsRecoveredByPeer { session, count } => {
                self.event(now, "fec:recovered_by_peer", RecoveredByPeer { session, count }, out)
            }
            Observation::RedundancyUpdated { session, protection, reason } => {
                let data = RedundancyUpdated::new(session, protection, reason);
                self.event(now, "sutura:redundancy_updated", data, out)
            }
            Observation::LossEstimateUpdated(ref floor) => {
                let data = LossEstimateUpdated::new(floor);
                self.event(now, "sutura:loss_estimate_updated", data, out)
            }
            Observation::PathChanged { remote } => {
                self.event(now, "connectivity:path_assigned", PathAssigned::new(remote), out)
            }
            Observation::MtuUpdated { old, new } => {
                self.event(now, "connectivity:mtu_updated", MtuUpdated { old, new }, out)
            }
            Observation::EcnStateUpdated(state) => {
                let data = EcnStateUpdated::new(state);
                self.event(now, "recovery:ecn_state_updated", data, out)
            }
            Observation::Written { stream, length } => {
                let (from, to) = ("application", "transport");
                let data = DataMoved { stream_id: stream.0, length, from, to };
                self.event(now, "transport:data_moved", data, out)
            }
            Observation::Application(event) => self.application(now, event, out),
            Observation::Closed { reason } => {
                self.closed = true;
                let data = ConnectionClosed { reason };
                self.event(now, "connectivity:connection_closed", data, out)?;
                out.flush()
            }
            _ => Ok(()),
        }
    }

    fn parameters_set(
        &mut self,
        now: Instant,
        local: bool,
        parameters: &TransportParameters,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let exponent = match local {
            true => &mut self.local_ack_delay_exponent,
            false => &mut self.remote_ack_delay_exponent,
        };
        *exponent = parameters.ack_delay_exponent;
        let data = ParametersSet::new(local, parameters);
        self.event(now, "transport:parameters_set", data, out)
    }

    fn metrics_updated(
        &mut self,
        now: Instant,
        metrics: Metrics,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let data = MetricsUpdated::between(self.metrics.as_ref(), &metrics);
        self.metrics = Some(metrics);
        if data == MetricsUpdated::default() {
            return Ok(());
        }
        self.event(now, "recovery:metrics_updated", data, out)
    }

    /// Writes an event of HTTP/3 or of the application, and ignores events of other types.
    fn application(
        &mut self,
        now: Instant,
        event: &dyn Any,
        out: &mut impl Write,
    ) -> io::Result<()> {
        if let Some((name, data)) = event.downcast_ref().map(http::event) {
            self.event(now, name, data, out)
        } else if let Some(event) = event.downcast_ref::<ApplicationEvent>() {
            self.event(now, event.name, &event.data, out)
        } else {
            Ok(())
        }
    }

    fn event(
        &mut self,
        now: Instant,
        name: &'static str,
        data: impl Serialize,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let time = now.saturating_duration_since(self.start.unwrap_or(now));
        self.newest = self.newest.max(time);
        write_record(out, &Event { time: milliseconds(self.newest), name, data })
    }
}

fn write_record(out: &mut impl Write, record: &impl Serialize) -> io::Result<()> {
    out.write_all(&[RECORD_SEPARATOR])?;
    serde_json::to_writer(&mut *out, record)?;
    out.write_all(b"\n")
}

/// The packets of a space; `early` if they are 0-RTT packets.
const fn carrier(space: SpaceId, early: bool) -> Carrier {
    match space {
        SpaceId::Initial => Carrier::Initial,
        SpaceId::Handshake => Carrier::Handshake,
        SpaceId::Data if early => Carrier::ZeroRtt,
        SpaceId::Data => Carrier::OneRtt,
    }
}

const fn packet_type(carrier: Carrier) -> &'static str {
    match carrier {
        Carrier::Initial => "initial",
        Carrier::ZeroRtt => "0RTT",
        Carrier::Handshake => "handshake",
        Carrier::OneRtt | Carrier::SourceSymbol => "1RTT",
    }
}

fn packet(
    carrier: Carrier,
    pn: u64,
    size: usize,
    payload: &[u8],
    ack_delay_exponent: u8,
) -> Packet<'_> {
    let mut entries = Vec::new();
    frames::list(payload, carrier, ack_delay_exponent, &mut entries);
    Packet {
        header: PacketHeader { packet_type: packet_type(carrier), packet_number: pn },
        raw: Raw { length: size, payload_length: Some(payload.len()) },
        frames: Some(entries),
    }
}

fn lost_packet(space: SpaceId, pn: u64, size: usize) -> Packet<'static> {
    let packet_type = packet_type(carrier(space, false));
    Packet {
        header: PacketHeader { packet_type, packet_number: pn },
        raw: Raw { length: size, payload_length: None },
        frames: None,
    }
}
