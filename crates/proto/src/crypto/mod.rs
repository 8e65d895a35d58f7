//! Packet protection and the handshake.
