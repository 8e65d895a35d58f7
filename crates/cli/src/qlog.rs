//! The option for recording connections.

use std::path::PathBuf;

use sutura::Endpoint;
use sutura::qlog::QlogWriter;

use crate::failure::Failure;
use crate::file;
use crate::output;

#[derive(Debug, Clone, Default, clap::Args)]
pub struct QlogArgs {
    /// Record every connection as a qlog file in this directory
    #[arg(long, value_name = "DIR")]
    qlog: Option<PathBuf>,
}

impl QlogArgs {
    /// Creates the directory, if recording is enabled.
    ///
    /// # Errors
    /// It cannot be created.
    pub fn prepare(&self) -> Result<(), Failure> {
        let Some(directory) = &self.qlog else { return Ok(()) };
        file::make_directory(directory)
    }

    /// Records every connection of `endpoint` from now on, if recording is enabled. A record that
    /// cannot be written is reported, but does not affect the connection.
    pub fn watch(&self, endpoint: &Endpoint, title: &'static str) {
        let Some(directory) = self.qlog.clone() else { return };
        endpoint.observe_with(move |side| {
            let writer = QlogWriter::create(&directory, side, title);
            writer
                .inspect_err(|error| {
                    let place = directory.display();
                    output::complain(&format!("cannot record in {place}: {error}"));
                })
                .ok()
        });
    }
}
