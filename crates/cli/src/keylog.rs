//! The file of secrets that SSLKEYLOGFILE names, with which programs such as Wireshark decrypt what they recorded.

use std::env;
use std::fs::OpenOptions;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::{KeyLog, KeyLogFile};
use sutura::{ClientConfig, ServerConfig};

use crate::failure::Failure;

/// The variable that names the file, as in other programs.
const VARIABLE: &str = "SSLKEYLOGFILE";

/// The log, if the variable names one.
///
/// # Errors
/// The file cannot be written. rustls would log nothing without a word.
pub fn key_log() -> Result<Option<Arc<dyn KeyLog>>, Failure> {
    let Some(path) = env::var_os(VARIABLE).filter(|path| !path.is_empty()) else { return Ok(None) };
    let path = PathBuf::from(path);
    OpenOptions::new().create(true).append(true).open(&path).map_err(|e| {
        Failure::local(format!("cannot write {}, which {VARIABLE} names: {e}", path.display()))
    })?;
    Ok(Some(Arc::new(KeyLogFile::new())))
}

/// Logs the secrets of a client, if that is wanted.
///
/// # Errors
/// As for [`key_log`].
pub fn client(config: ClientConfig) -> Result<ClientConfig, Failure> {
    Ok(key_log()?.iter().fold(config, |config, log| config.key_log(log)))
}

/// Logs the secrets of a server, if that is wanted.
///
/// # Errors
/// As for [`key_log`].
pub fn server(config: ServerConfig) -> Result<ServerConfig, Failure> {
    Ok(key_log()?.iter().fold(config, |config, log| config.key_log(log)))
}
