//! Where connections are recorded.

use std::path::PathBuf;

use sutura::qlog::QlogWriter;
use sutura::{Connection, Side};

use crate::failure::Failure;
use crate::output;

#[derive(Debug, Clone, clap::Args)]
pub struct QlogArgs {
    /// Record every connection as a qlog file in this directory
    #[arg(long, value_name = "DIR")]
    qlog: Option<PathBuf>,
}

impl QlogArgs {
    /// Makes the directory, if any is wanted.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn prepare(&self) -> Result<(), Failure> {
        let Some(directory) = &self.qlog else { return Ok(()) };
        std::fs::create_dir_all(directory)
            .map_err(|e| Failure::local(format!("cannot make {}: {e}", directory.display())))
    }

    /// Records the connection, if that is wanted. A record that cannot be written is complained
    /// about, but does not stop the connection.
    pub fn record(&self, connection: &Connection, side: Side, title: &str) {
        let Some(directory) = &self.qlog else { return };
        match QlogWriter::create(directory, side, title) {
            Ok(observer) => connection.observe(observer),
            Err(error) => {
                output::complain(&format!("cannot record in {}: {error}", directory.display()));
            }
        }
    }
}
