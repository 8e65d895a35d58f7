//! The code over a sliding window.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use sutura_erasure::{Decoder, DecoderLimits, Encoder, WindowLimits};

use crate::size::Fits;

fn wrong(error: impl ToString) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Bytes of a source symbol under its number.
type Numbered<'py> = (u64, Bound<'py, PyBytes>);

/// Holds source symbols and makes repair symbols over runs of them.
#[pyclass(module = "sutura._native")]
pub(crate) struct WindowEncoder(Encoder);

#[pymethods]
impl WindowEncoder {
    #[new]
    fn new(symbols: Fits<usize>, symbol_size: Fits<usize>, bytes: Fits<usize>) -> Self {
        let limits =
            WindowLimits { symbols: symbols.0, symbol_size: symbol_size.0, bytes: bytes.0 };
        Self(Encoder::new(limits))
    }

    fn push(&mut self, symbol: &[u8]) -> PyResult<u64> {
        self.0.push(symbol).map_err(wrong)
    }

    #[getter]
    fn window(&self) -> (u64, u64) {
        let window = self.0.window();
        (window.start, window.end)
    }

    fn repair<'py>(
        &self,
        py: Python<'py>,
        first: Fits<u64>,
        end: Fits<u64>,
        key: Fits<u32>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let mut symbol = Vec::new();
        let made = py.detach(|| self.0.repair(first.0..end.0, key.0, &mut symbol));
        made.map_err(wrong)?;
        Ok(PyBytes::new(py, &symbol))
    }

    fn release_below(&mut self, first: Fits<u64>) {
        self.0.release_below(first.0);
    }
}

/// Takes source and repair symbols, and finds those that were lost.
#[pyclass(module = "sutura._native")]
pub(crate) struct WindowDecoder(Decoder);

impl WindowDecoder {
    fn recovered<'py>(&mut self, py: Python<'py>) -> Vec<Numbered<'py>> {
        let mut found = Vec::new();
        while let Some(id) = self.0.pop_recovered() {
            if let Some(bytes) = self.0.symbol(id) {
                found.push((id, PyBytes::new(py, bytes)));
            }
        }
        found
    }
}

#[pymethods]
impl WindowDecoder {
    #[new]
    fn new(
        symbols: Fits<usize>,
        symbol_size: Fits<usize>,
        bytes: Fits<usize>,
        repairs: Fits<usize>,
    ) -> Self {
        let limits = DecoderLimits {
            symbols: symbols.0,
            symbol_size: symbol_size.0,
            bytes: bytes.0,
            repairs: repairs.0,
        };
        Self(Decoder::new(limits))
    }

    fn source<'py>(
        &mut self,
        py: Python<'py>,
        id: Fits<u64>,
        symbol: &[u8],
    ) -> PyResult<Vec<Numbered<'py>>> {
        self.0.source(id.0, symbol).map_err(wrong)?;
        Ok(self.recovered(py))
    }

    fn repair<'py>(
        &mut self,
        py: Python<'py>,
        first: Fits<u64>,
        end: Fits<u64>,
        key: Fits<u32>,
        symbol: &[u8],
    ) -> PyResult<Vec<Numbered<'py>>> {
        self.0.repair(first.0..end.0, key.0, symbol).map_err(wrong)?;
        Ok(self.recovered(py))
    }

    fn symbol<'py>(&self, py: Python<'py>, id: Fits<u64>) -> Option<Bound<'py, PyBytes>> {
        self.0.symbol(id.0).map(|bytes| PyBytes::new(py, bytes))
    }

    fn missing(&self) -> Vec<u64> {
        self.0.missing().collect()
    }

    fn release_below(&mut self, first: Fits<u64>) {
        self.0.release_below(first.0);
    }
}
