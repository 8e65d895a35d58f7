//! The defaults of ten stacks, as they were in January 2020 (Marx 2020, section 2.3).

use std::sync::Arc;

use sutura_proto::TransportConfig;
use sutura_proto::policy::{First, FirstBy, InTurn, ResendOrderFactory};
use sutura_schedule::registry::Entry;
use sutura_schedule::{Scheduler, SchedulerFactory};

use super::{Block, Discipline, Multiplexer};
use crate::marx::{fifo, rr};

/// The defaults of a stack: the order in which it sends streams, and its reaction to losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Preset {
    /// The name of the stack in the paper.
    pub name: &'static str,
    /// The defaults in a line.
    pub summary: &'static str,
    /// The order of service of new data.
    pub discipline: Discipline,
    /// The retransmission approach, 1 to 3 (section 2.1). 1: lost data is sent when its stream is
    /// next served. 2: streams with lost data go first, in the usual order. 3: they go first, in another
    /// order; for `mvfst`, one stream after the other.
    pub retransmission: u8,
    /// Whether the paper names the approach of this stack. It says of the other stacks only that approaches 1
    /// and 2 are evenly spread; they are taken to use approach 1, as too few of the named stacks do.
    pub retransmission_named: bool,
    /// Whether a packet carries data of one stream only.
    pub one_stream_per_packet: bool,
    /// The receive window of a connection in windows of a stream, in the measurement: small windows
    /// of streams let a stack that fills its buffers first look sequential at the start.
    pub stream_window: u32,
}

impl Preset {
    /// Every preset, in the order in which they are listed.
    pub const ALL: &[Self] = &[
        Self::new("aioquic", "aioquic in 2020: turns of one packet", ROUND_ROBIN, None),
        Self::new("quiche", "quiche in 2020: turns of one packet", ROUND_ROBIN, None),
        Self::new("quicly", "quicly in 2020: turns of one packet", ROUND_ROBIN, Some(1)),
        Self::new("ngtcp2", "ngtcp2 in 2020: turns of one packet", ROUND_ROBIN, Some(2)),
        Self::MVFST,
        Self {
            name: "mvfst-alt",
            summary: "mvfst in 2020, with small stream windows",
            stream_window: 4,
            ..Self::MVFST
        },
        Self::new("msquic", "msquic in 2020: turns of 4 packets", in_turns_of(4), None),
        Self::new("google", "Google's stack in 2020: turns of 14 packets", in_turns_of(14), None),
        Self::new(
            "lsquic",
            "lsquic in 2020: turns of a congestion window",
            Discipline::RoundRobin(Block::Window),
            Some(2),
        ),
        Self::new("ats", "Traffic Server in 2020: the youngest first", Discipline::Lifo, Some(2)),
        Self::new("picoquic", "picoquic in 2020: the youngest first", Discipline::Lifo, Some(2)),
        Self::new("picoquic-alt", "picoquic, the oldest first", Discipline::Fifo, Some(2)),
    ];

    const MVFST: Self = Self {
        one_stream_per_packet: false,
        ..Self::new(
            "mvfst",
            "mvfst in 2020: streams share a packet, in turns",
            ROUND_ROBIN,
            Some(3),
        )
    };

    const fn new(
        name: &'static str,
        summary: &'static str,
        discipline: Discipline,
        approach: Option<u8>,
    ) -> Self {
        let (retransmission, retransmission_named) = match approach {
            Some(approach) => (approach, true),
            None => (1, false),
        };
        Self {
            name,
            summary,
            discipline,
            retransmission,
            retransmission_named,
            one_stream_per_packet: true,
            stream_window: 1,
        }
    }

    /// The preset with this name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<&'static Self> {
        Self::ALL.iter().find(|preset| preset.name == name)
    }

    /// Configures a sender like the stack: sets its scheduler, its order of resending, and whether
    /// streams share packets.
    pub fn apply(&self, config: &mut TransportConfig) {
        config.scheduler = Arc::new(*self);
        config.resend_order = resend_order(self.retransmission, self.discipline.is_sequential());
        config.mix_streams = !self.one_stream_per_packet;
    }

    /// Configures the client with which the stack was measured: sets the receive windows of a stream to its
    /// part of the connection's.
    pub fn apply_to_client(&self, config: &mut TransportConfig) {
        let streams = u64::from(self.stream_window.max(1));
        config.stream_receive_window = config.receive_window / streams;
        config.max_stream_receive_window = config.max_receive_window / streams;
    }

    /// The preset as it is listed among schedulers.
    pub(crate) fn entry(&self) -> Entry<dyn SchedulerFactory> {
        Entry::made(self.name, self.summary, Arc::new(*self))
    }
}

impl SchedulerFactory for Preset {
    fn name(&self) -> &str {
        self.name
    }

    fn build(&self) -> Box<dyn Scheduler> {
        Box::new(Multiplexer::new(self.discipline))
    }
}

/// Retransmission approach 1, 2 or 3 (section 2.1). Approach 3 resends in another order than that of new
/// data: in turns if new data is `sequential`, and else one stream after the other.
#[must_use]
pub fn resend_order(approach: u8, sequential: bool) -> Arc<dyn ResendOrderFactory> {
    match approach {
        1 => Arc::new(InTurn),
        2 => Arc::new(First),
        _ if sequential => Arc::new(FirstBy(Arc::new(rr::SCHEME))),
        _ => Arc::new(FirstBy(Arc::new(fifo::SCHEME))),
    }
}

/// In turns of one packet.
const ROUND_ROBIN: Discipline = in_turns_of(1);

const fn in_turns_of(packets: u32) -> Discipline {
    Discipline::RoundRobin(Block::Packets(packets))
}
