//! Codes for blocks of a known number of symbols.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use sutura_erasure::block::{
    self, BlockError, LdpcStaircase, ParameterError, RandomLinear, ReedSolomon, Xor2d,
};

use crate::size::Fits;

/// A code that makes repair symbols of a block of source symbols of equal length.
#[pyclass(frozen, module = "sutura._native")]
pub(crate) struct BlockCode(Box<dyn block::BlockCode + Send + Sync>);

fn wrong(error: ParameterError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

fn unusable(error: BlockError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

#[pymethods]
impl BlockCode {
    #[staticmethod]
    fn reed_solomon(sources: Fits<usize>, repairs: Fits<usize>) -> PyResult<Self> {
        Ok(Self(Box::new(ReedSolomon::new(sources.0, repairs.0).map_err(wrong)?)))
    }

    #[staticmethod]
    fn random_linear(sources: Fits<usize>, repairs: Fits<usize>, key: Fits<u32>) -> PyResult<Self> {
        Ok(Self(Box::new(RandomLinear::new(sources.0, repairs.0, key.0).map_err(wrong)?)))
    }

    #[staticmethod]
    fn ldpc_staircase(
        sources: Fits<usize>,
        repairs: Fits<usize>,
        degree: Fits<usize>,
        seed: Fits<u32>,
    ) -> PyResult<Self> {
        let code = LdpcStaircase::new(sources.0, repairs.0, degree.0, seed.0);
        Ok(Self(Box::new(code.map_err(wrong)?)))
    }

    #[staticmethod]
    fn xor_2d(sources: Fits<usize>, columns: Fits<usize>) -> PyResult<Self> {
        Ok(Self(Box::new(Xor2d::new(sources.0, columns.0).map_err(wrong)?)))
    }

    #[getter]
    fn sources(&self) -> usize {
        self.0.sources()
    }

    #[getter]
    fn repairs(&self) -> usize {
        self.0.repairs()
    }

    fn encode<'py>(
        &self,
        py: Python<'py>,
        sources: Vec<PyBackedBytes>,
    ) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let length = sources.first().map_or(0, |first| first.len());
        let made = py.detach(|| {
            let mut repairs = vec![vec![0; length]; self.0.repairs()];
            let sources: Vec<&[u8]> = sources.iter().map(|source| &source[..]).collect();
            let mut places: Vec<&mut [u8]> = repairs.iter_mut().map(Vec::as_mut_slice).collect();
            self.0.encode(&sources, &mut places).map(|()| repairs)
        });
        let made = made.map_err(unusable)?;
        Ok(made.iter().map(|symbol| PyBytes::new(py, symbol)).collect())
    }

    /// The source symbols, `None` where one stays missing.
    fn decode<'py>(
        &self,
        py: Python<'py>,
        symbols: Vec<Option<PyBackedBytes>>,
    ) -> PyResult<Vec<Option<Bound<'py, PyBytes>>>> {
        let length = symbols.iter().flatten().next().map_or(0, |first| first.len());
        let decoded = py.detach(|| {
            let mut present: Vec<bool> = symbols.iter().map(Option::is_some).collect();
            let copy = |symbol: &Option<PyBackedBytes>| {
                symbol.as_ref().map_or_else(|| vec![0; length], |symbol| symbol.to_vec())
            };
            let mut all: Vec<Vec<u8>> = symbols.iter().map(copy).collect();
            let mut places: Vec<&mut [u8]> = all.iter_mut().map(Vec::as_mut_slice).collect();
            self.0.decode(&mut places, &mut present)?;
            Ok((all, present))
        });
        let (all, present) = decoded.map_err(unusable)?;
        let symbols = all.iter().zip(present).take(self.0.sources());
        let given = |(symbol, present): (&Vec<u8>, bool)| present.then(|| PyBytes::new(py, symbol));
        Ok(symbols.map(given).collect())
    }
}
