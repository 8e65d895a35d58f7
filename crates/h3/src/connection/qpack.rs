//! The connection's use of QPACK (RFC 9204): its streams, and what ends references to the dynamic
//! table.

use sutura_proto::StreamId;

use super::Connection;
use super::incoming::{DECODER, ENCODER};
use super::outgoing::MAX_CONTROL_BACKLOG;
use crate::config::{Config, MAX_TABLE_CAPACITY};
use crate::error::{Code, Error};
use crate::fields::Field;
use crate::frame::HeadersFrame;
use crate::observe::{FrameAction, FrameContent, FrameEvent};
use crate::qpack::Decoder;
use crate::settings::Settings;
use crate::transport::Transport;

/// The decoder that `config` announces.
pub(super) fn decoder(config: &Config) -> Decoder {
    let settings = config.settings();
    Decoder::new(settings.qpack_max_table_capacity, settings.qpack_blocked_streams)
}

impl Connection {
    /// Begins to use the table that the peer's SETTINGS announce.
    pub(super) fn use_peers_table(&mut self, peer: &Settings) {
        let blocked = peer.qpack_blocked_streams.min(self.config.qpack_encoder_blocked_streams);
        let wanted = self.config.qpack_encoder_capacity.min(MAX_TABLE_CAPACITY);
        self.encoder.configure(peer.qpack_max_table_capacity, wanted, blocked);
    }

    /// Puts a HEADERS frame with a section of the message on `stream` into memory for a frame, sends the
    /// section's additions to the peer's table, and reports them. The memory is to be given back.
    pub(super) fn encode<'a, T: Transport>(
        &mut self,
        quic: &mut T,
        stream: StreamId,
        fields: impl IntoIterator<Item = &'a Field> + Clone,
    ) -> HeadersFrame {
        let mut frame = HeadersFrame::within(std::mem::take(&mut self.memory));
        // As long as earlier instructions wait, more would not arrive any sooner.
        let insert = self.outgoing.backlog(ENCODER) == Some(0);
        self.encoder.section(stream, fields.clone(), insert, frame.payload());
        frame.complete();
        if let Err(error) = self.send_instructions(quic) {
            self.error.get_or_insert(error);
        }
        quic.observe(|| FrameEvent {
            action: FrameAction::Created,
            stream,
            content: FrameContent::headers(fields),
        });
        frame
    }

    /// Sends the pending instructions of encoder and decoder.
    pub(super) fn send_instructions<T: Transport>(&mut self, quic: &mut T) -> Result<(), Error> {
        self.outgoing.send(quic, ENCODER, self.encoder.instructions())?;
        let Some(unsent) = self.outgoing.backlog(DECODER) else {
            return check_backlog(self.decoder.backlog());
        };
        let instructions = self.decoder.instructions();
        if instructions.is_empty() && unsent == 0 {
            return Ok(());
        }
        self.outgoing.send(quic, DECODER, instructions)?;
        check_backlog(self.outgoing.backlog(DECODER).unwrap_or(0))
    }

    /// Asks the peer to stop sending on a stream, and releases its references to the table.
    pub(super) fn stop_reading<T: Transport>(&mut self, quic: &mut T, id: StreamId, code: Code) {
        quic.stop(id, code);
        self.decoder.cancel(id);
    }
}

/// Checks how many bytes of the decoder stream wait.
fn check_backlog(bytes: usize) -> Result<(), Error> {
    if bytes > MAX_CONTROL_BACKLOG {
        return Err(Error::new(Code::EXCESSIVE_LOAD, "QPACK decoder stream is not read"));
    }
    Ok(())
}
