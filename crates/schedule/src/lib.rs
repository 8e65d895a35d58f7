//! Stream schedulers.
#![forbid(unsafe_code)]
