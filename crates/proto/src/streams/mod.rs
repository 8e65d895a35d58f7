//! Streams and flow control.
