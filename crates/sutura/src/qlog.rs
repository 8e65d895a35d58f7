//! qlog.
