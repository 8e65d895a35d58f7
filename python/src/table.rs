//! Tables that other libraries read by the PyCapsule interface of Arrow, without copies.

use std::collections::HashMap;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchIterator};
use arrow_schema::ffi::FFI_ArrowSchema;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyCapsule, PyDict, PyList};
use sutura_lab::columns::{Cells, Columns, JobResults};

/// Columns of equal length, with names and types.
#[pyclass(frozen, module = "sutura._native")]
pub(crate) struct Table {
    columns: Columns,
    batch: RecordBatch,
}

impl TryFrom<Columns> for Table {
    type Error = PyErr;

    fn try_from(columns: Columns) -> PyResult<Self> {
        let batch = columns.to_batch().map_err(unusable)?;
        Ok(Self { columns, batch })
    }
}

fn unusable(error: impl ToString) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

#[pymethods]
impl Table {
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface permits to ignore which types are preferred.
        drop(requested_schema);
        let batches = RecordBatchIterator::new([Ok(self.batch.clone())], self.batch.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.batch.schema().as_ref()).map_err(unusable)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    fn __len__(&self) -> usize {
        self.columns.rows()
    }

    #[getter]
    fn column_names(&self) -> Vec<&str> {
        self.columns.all().iter().map(|column| column.name.as_str()).collect()
    }

    #[getter]
    fn units(&self) -> HashMap<&str, &str> {
        let unit = |column: &'_ sutura_lab::columns::TypedColumn| column.unit;
        let columns = self.columns.all().iter();
        columns.filter_map(|column| Some((column.name.as_str(), unit(column)?))).collect()
    }

    fn to_pydict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let lists = PyDict::new(py);
        for column in self.columns.all() {
            let bytes = |cell: &Option<Vec<u8>>| cell.as_ref().map(|cell| PyBytes::new(py, cell));
            let list = match &column.cells {
                Cells::Counts(cells) => PyList::new(py, cells)?,
                Cells::Numbers(cells) => PyList::new(py, cells)?,
                Cells::Texts(cells) => PyList::new(py, cells)?,
                Cells::Bytes(cells) => PyList::new(py, cells.iter().map(bytes))?,
            };
            lists.set_item(&column.name, list)?;
        }
        Ok(lists)
    }

    fn to_parquet<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let file = py.detach(|| self.columns.to_parquet()).map_err(unusable)?;
        Ok(PyBytes::new(py, &file))
    }

    fn __repr__(&self) -> String {
        format!("<sutura.lab.Table of {} rows: {}>", self.__len__(), self.column_names().join(", "))
    }
}

fn results(given: &HashMap<String, PyBackedBytes>) -> PyResult<JobResults> {
    let entry = |(job, result): (&String, &PyBackedBytes)| {
        let job = job.parse().map_err(|error| PyValueError::new_err(format!("{error}")))?;
        Ok((job, result.to_vec()))
    };
    Ok(JobResults(given.iter().map(entry).collect::<PyResult<_>>()?))
}

#[pyfunction]
pub(crate) fn raw(given: HashMap<String, PyBackedBytes>) -> PyResult<Table> {
    results(&given)?.raw().try_into()
}

#[pyfunction]
pub(crate) fn long(given: HashMap<String, PyBackedBytes>) -> PyResult<Table> {
    let long = results(&given)?.long();
    long.map_err(|error| PyValueError::new_err(error.to_string()))?.try_into()
}
