//! The part of the Python package `sutura` that is Rust: `sutura._native`. What users see is in `sutura/*.py`, and the
//! types of this module are in `sutura/_native.pyi`.

mod block;
mod lab;
mod options;
mod policy;
mod size;
mod table;
mod window;

use pyo3::prelude::*;

#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::block::BlockCode;
    #[pymodule_export]
    use crate::lab::{LabError, MissingResults, Report, experiments, jobs, merge, run};
    #[pymodule_export]
    use crate::policy::View;
    #[pymodule_export]
    use crate::table::{Table, long, raw};
    #[pymodule_export]
    use crate::window::{WindowDecoder, WindowEncoder};
}
