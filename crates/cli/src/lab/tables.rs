//! Tables of reports, and results of jobs, as files for other programs.

use std::path::Path;

use sutura_analysis::report::Report;
use sutura_lab::columns::JobResults;
#[cfg(feature = "parquet")]
use sutura_lab::columns::{Columns, ParquetError};

#[cfg(feature = "parquet")]
use crate::failure::Exit;
use crate::failure::Failure;
use crate::file;
#[cfg(feature = "parquet")]
use crate::file::{Readers, cannot_write};
use crate::output;

/// Writes the tables of a report into a directory: as CSV, and as Parquet.
///
/// # Errors
/// A file cannot be written.
pub fn write(report: &Report, directory: &Path) -> Result<(), Failure> {
    file::make_directory(directory)?;
    for (name, table) in report.named_tables() {
        let file = |extension: &str| directory.join(format!("{}-{name}.{extension}", report.name));
        output::write_file(&file("csv"), &table.to_csv())?;
        #[cfg(feature = "parquet")]
        write_parquet(&file("parquet"), Columns::of(table).to_parquet())?;
    }
    Ok(())
}

/// Writes what is in the results of jobs into a Parquet file.
///
/// # Errors
/// A result cannot be taken apart, the file cannot be written, or the program has no Parquet.
pub fn write_results(results: &JobResults, path: &Path) -> Result<(), Failure> {
    #[cfg(feature = "parquet")]
    {
        let long = results.long();
        let long = long.map_err(|error| Failure::new(Exit::Other, error.to_string()))?;
        write_parquet(path, long.to_parquet())
    }
    #[cfg(not(feature = "parquet"))]
    {
        let _ = (results, path);
        Err(Failure::usage("--results needs a program that was built with the feature `parquet`"))
    }
}

#[cfg(feature = "parquet")]
fn write_parquet(path: &Path, content: Result<Vec<u8>, ParquetError>) -> Result<(), Failure> {
    let content = content.map_err(|error| Failure::new(Exit::Other, error.to_string()))?;
    file::write(path, &content, Readers::Usual).map_err(|error| cannot_write(path, &error))
}
