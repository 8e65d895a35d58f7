//! The options of experiments.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use sutura_lab::Options;
use sutura_lab::link_trace::LinkTrace;
use sutura_lab::own::OwnPath;

use crate::policy::{PolicyClass, Raised};
use crate::size::Fits;

const NAMES: &str = "seed, reduce, seeds, paths, only, seconds, policies, own, pages, corpus, traces, \
                     links, apps";

/// A number from `low` on.
fn from<T>(value: &Bound<'_, PyAny>, low: T) -> PyResult<T>
where
    T: PartialOrd + std::fmt::Display + for<'a, 'py> FromPyObject<'a, 'py, Error = PyErr>,
{
    let Fits(number) = value.extract()?;
    if number < low {
        return Err(PyValueError::new_err(format!("{number} is less than {low}")));
    }
    Ok(number)
}

/// Sets one option. `None` leaves it to the experiment.
fn set(
    options: &mut Options,
    raised: &Raised,
    name: &str,
    value: &Bound<'_, PyAny>,
) -> PyResult<()> {
    match name {
        "seed" => options.seed = from(value, 0)?,
        "reduce" => options.reduce = from(value, 1)?,
        "seeds" => options.seeds = Some(from(value, 1)?),
        "paths" => options.paths = Some(from(value, 1)?),
        "only" => options.only = Some(from(value, 0)?),
        "seconds" => options.seconds = Some(from(value, 1)?),
        "pages" => options.pages = Some(from(value, 1)?),
        "corpus" => options.corpus = Some(value.extract()?),
        "policies" | "links" | "apps" if value.is_instance_of::<PyString>() => {
            return Err(PyTypeError::new_err("it is a list of texts, not a text"));
        }
        "policies" => options.policies = value.extract()?,
        "own" => {
            for class in value.try_iter()? {
                let policy = PolicyClass::of(&class?, raised)?;
                options.own = std::mem::take(&mut options.own).with_redundancy(policy);
            }
        }
        "apps" => options.apps = value.extract()?,
        "links" => {
            let texts: Vec<String> = value.extract()?;
            let links = texts.iter().map(|text| OwnPath::read(text)).collect();
            let links: Result<Vec<_>, _> = links;
            options.links = links.map_err(|error| PyValueError::new_err(error.to_string()))?;
        }
        "traces" => {
            let files: Vec<std::path::PathBuf> = value.extract()?;
            let traces = files.iter().map(|file| LinkTrace::read(file)).collect();
            let traces: Result<Vec<_>, _> = traces;
            options.traces = traces.map_err(|error| PyValueError::new_err(error.to_string()))?;
        }
        _ => {
            let unknown = format!("experiments have no such option: there are {NAMES}");
            return Err(PyTypeError::new_err(unknown));
        }
    }
    Ok(())
}

/// The options of these names and values, for one thread, and what their own policies raise.
pub(crate) fn options(given: &Bound<'_, PyDict>) -> PyResult<(Options, Raised)> {
    let raised = Raised::default();
    let mut options = Options { threads: 1, ..Options::default() };
    for (name, value) in given {
        let name: String = name.extract()?;
        if !value.is_none() {
            set(&mut options, &raised, &name, &value).map_err(|error| {
                let text = format!("{name}: {}", error.value(given.py()));
                PyErr::from_type(error.get_type(given.py()), text)
            })?;
        }
    }
    Ok((options, raised))
}
