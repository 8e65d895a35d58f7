//! A network link.
#![forbid(unsafe_code)]
