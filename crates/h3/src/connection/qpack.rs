//! The connection's use of QPACK (RFC 9204): its streams, and what ends references to the dynamic
//! table.

use sutura_proto::StreamId;

use super::Connection;
use super::incoming::{DECODER, ENCODER};
use super::outgoing::MAX_CONTROL_BACKLOG;
use crate::config::{Config, MAX_TABLE_CAPACITY};
use crate::error::{Code, Error};
use crate::fields::Field;
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

    /// Encodes a section of the message on `stream`, sends its additions to the peer's table, and reports
    /// them.
    pub(super) fn encode<'a, T: Transport>(
        &mut self,
        quic: &mut T,
        stream: StreamId,
        fields: impl IntoIterator<Item = &'a Field> + Clone,
    ) -> Vec<u8> {
        let mut block = Vec::with_capacity(256);
        // As long as earlier instructions wait, more would not arrive any sooner.
        let insert = self.outgoing.backlog(ENCODER) == Some(0);
        self.encoder.section(stream, fields.clone(), insert, &mut block);
        if let Err(error) = self.send_instructions(quic) {
            self.error.get_or_insert(error);
        }
        quic.observe(|| FrameEvent {
            action: FrameAction::Created,
            stream,
            content: FrameContent::headers(fields),
        });
        block
    }

    /// Sends the pending instructions of encoder and decoder.
    pub(super) fn send_instructions<T: Transport>(&mut self, quic: &mut T) -> Result<(), Error> {
        if self.outgoing.backlog(ENCODER).is_some() {
            self.outgoing.send(quic, ENCODER, &self.encoder.take_instructions())?;
        }
        if self.outgoing.backlog(DECODER).is_some() {
            self.outgoing.send(quic, DECODER, &self.decoder.take_instructions())?;
        }
        let backlog = self.outgoing.backlog(DECODER).unwrap_or(0) + self.decoder.backlog();
        if backlog > MAX_CONTROL_BACKLOG {
            return Err(Error::new(Code::EXCESSIVE_LOAD, "QPACK decoder stream is not read"));
        }
        Ok(())
    }

    /// Asks the peer to stop sending on a stream, and releases its references to the table.
    pub(super) fn stop_reading<T: Transport>(&mut self, quic: &mut T, id: StreamId, code: Code) {
        quic.stop(id, code);
        self.decoder.cancel(id);
    }
}
