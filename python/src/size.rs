//! Numbers from Python that may be anything.

use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::prelude::*;

/// A number that fits into `T`. Another one is a `ValueError`, and what is no whole number a `TypeError`.
pub(crate) struct Fits<T>(pub(crate) T);

impl<'a, 'py, T> FromPyObject<'a, 'py> for Fits<T>
where
    T: FromPyObject<'a, 'py, Error = PyErr>,
{
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        object.extract().map(Self).map_err(|error: PyErr| {
            if error.is_instance_of::<PyOverflowError>(object.py()) {
                PyValueError::new_err("the number is out of range")
            } else {
                error
            }
        })
    }
}
