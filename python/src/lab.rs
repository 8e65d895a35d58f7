//! Experiments as jobs whose results are passed in and out.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::create_exception;
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict};
use sutura_lab::columns::Columns;
use sutura_lab::results::{JobId, ResultError, ResultStore, Results, Share};
use sutura_lab::{EXPERIMENTS, Error, Options};

use crate::options::options;
use crate::table::Table;

create_exception!(sutura._native, LabError, PyRuntimeError, "An experiment fails.");
create_exception!(
    sutura._native,
    MissingResults,
    LabError,
    "Results of jobs are missing that the rest of the experiment needs."
);

/// The results of jobs by their names.
type Given = HashMap<String, PyBackedBytes>;

/// The results that a run makes, by the names of their jobs.
type Made = BTreeMap<String, Vec<u8>>;
/// What comes of a run of an experiment.
type Outcome = Result<sutura_analysis::report::Report, Error>;

/// Results that were passed in, and those that a job makes.
#[derive(Debug)]
struct Passed {
    given: Given,
    made: Mutex<Made>,
}

impl ResultStore for Passed {
    fn load(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        Ok(self.given.get(name).map(|result| result.to_vec()))
    }

    fn save(&self, name: &str, result: &[u8]) -> io::Result<()> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.insert(name.to_owned(), result.to_vec());
        Ok(())
    }
}

/// Runs a share of an experiment, while other threads of Python go on. Also what it made. An exception of a policy is
/// that of the run.
fn run_share(
    py: Python<'_>,
    name: &str,
    given: Given,
    settings: &Bound<'_, PyDict>,
    share: Share,
) -> PyResult<(Outcome, Made)> {
    let (options, raised) = options(settings)?;
    let store = Arc::new(Passed { given, made: Mutex::default() });
    let results = Results::kept_in(store.clone()).share(share);
    let outcome = py.detach(|| sutura_lab::run(name, &Options { results, ..options }));
    let made = std::mem::take(&mut *store.made.lock().unwrap_or_else(PoisonError::into_inner));
    match raised.take() {
        Some(error) => Err(error),
        None => Ok((outcome, made)),
    }
}

/// What Python gets to know of an error.
fn raised(error: Error) -> PyErr {
    let text = error.to_string();
    match error {
        Error::NotTaken { .. } => PyTypeError::new_err(text),
        Error::Unknown { .. }
        | Error::Link(_)
        | Error::Policy(_)
        | Error::LinkTrace(_)
        | Error::Pages(_) => PyValueError::new_err(text),
        Error::Result(ResultError::NoSuchJob { .. }) => PyValueError::new_err(text),
        Error::Result(ResultError::Missing { .. }) => MissingResults::new_err(text),
        _ => LabError::new_err(text),
    }
}

#[pyfunction]
pub(crate) fn experiments() -> Vec<(&'static str, &'static str)> {
    EXPERIMENTS.iter().map(|experiment| (experiment.name, experiment.about)).collect()
}

/// The first round with jobs that have no result: its number, these jobs, and how many it has.
#[pyfunction]
pub(crate) fn jobs(
    py: Python<'_>,
    name: &str,
    given: Given,
    settings: &Bound<'_, PyDict>,
) -> PyResult<Option<(usize, Vec<String>, usize)>> {
    match run_share(py, name, given, settings, Share::Nothing)?.0 {
        Ok(_) => Ok(None),
        Err(Error::Result(ResultError::Missing { round, missing, of })) => {
            Ok(Some((round, missing.iter().map(ToString::to_string).collect(), of)))
        }
        Err(error) => Err(raised(error)),
    }
}

#[pyfunction]
pub(crate) fn run<'py>(
    py: Python<'py>,
    name: &str,
    job: &str,
    given: Given,
    settings: &Bound<'_, PyDict>,
) -> PyResult<Bound<'py, PyBytes>> {
    let id: JobId = job.parse().map_err(|error| PyValueError::new_err(format!("{error}")))?;
    let (outcome, made) = run_share(py, name, given, settings, Share::One(id))?;
    match outcome {
        Ok(_) => Err(PyValueError::new_err(format!("there is no job {job}: no such round"))),
        Err(Error::Result(ResultError::Done(_))) => match made.get(&id.to_string()) {
            Some(result) => Ok(PyBytes::new(py, result)),
            None => Err(LabError::new_err(format!("job {job} has no result"))),
        },
        Err(error) => Err(raised(error)),
    }
}

#[pyfunction]
pub(crate) fn merge(
    py: Python<'_>,
    name: &str,
    given: Given,
    settings: &Bound<'_, PyDict>,
) -> PyResult<Report> {
    let outcome = run_share(py, name, given, settings, Share::Nothing)?.0;
    outcome.map(Report).map_err(raised)
}

/// The report of an experiment.
#[pyclass(frozen, module = "sutura._native")]
pub(crate) struct Report(sutura_analysis::report::Report);

#[pymethods]
impl Report {
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    #[getter]
    fn title(&self) -> &str {
        &self.0.title
    }

    #[getter]
    fn failures(&self) -> Vec<&str> {
        self.0.failures.iter().map(String::as_str).collect()
    }

    #[getter]
    fn markdown(&self) -> String {
        self.0.to_markdown()
    }

    #[getter]
    fn json(&self) -> PyResult<String> {
        serde_json::to_string(&self.0).map_err(|error| LabError::new_err(error.to_string()))
    }

    /// By caption. One that is there already gets a number behind it.
    #[getter]
    fn tables<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let tables = PyDict::new(py);
        for table in &self.0.tables {
            let mut caption = table.caption.clone();
            let mut number = 1;
            while tables.contains(&caption)? {
                number += 1;
                caption = format!("{} {number}", table.caption);
            }
            tables.set_item(caption, Table::try_from(Columns::of(table))?)?;
        }
        Ok(tables)
    }

    #[getter]
    fn data(&self) -> PyResult<Option<Table>> {
        self.0.data.as_ref().map(|data| Columns::of(data).try_into()).transpose()
    }

    fn __repr__(&self) -> String {
        format!("<sutura.lab.Report of {}: {}>", self.0.name, self.0.title)
    }
}
