//! The connection.
