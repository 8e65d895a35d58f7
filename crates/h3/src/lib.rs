//! Sans-IO HTTP/3.
#![forbid(unsafe_code)]
