//! The C functions of ISA-L behind safe functions.
//!
//! A coefficient is a table of 32 bytes for ISA-L. Regions are all of one length, which is at least 64 and a
//! multiple of 64 here, and they are aligned to 64 bytes. No function keeps a pointer.
#![allow(unsafe_code, reason = "functions in C")]

use std::{
    ffi::{c_int, c_uchar, c_void},
    marker::PhantomData,
};

unsafe extern "C" {
    fn ec_init_tables(k: c_int, rows: c_int, a: *mut c_uchar, tables: *mut c_uchar);
    fn gf_gen_cauchy1_matrix(a: *mut c_uchar, m: c_int, k: c_int);
    fn gf_invert_matrix(matrix: *mut c_uchar, out: *mut c_uchar, n: c_int) -> c_int;
    fn xor_gen(vectors: c_int, len: c_int, array: *mut *mut c_void) -> c_int;
    fn ec_encode_data_update(
        len: c_int,
        k: c_int,
        rows: c_int,
        index: c_int,
        tables: *mut c_uchar,
        data: *mut c_uchar,
        coding: *mut *mut c_uchar,
    );
    fn ec_encode_data(
        len: c_int,
        k: c_int,
        rows: c_int,
        tables: *mut c_uchar,
        data: *mut *mut c_uchar,
        coding: *mut *mut c_uchar,
    );
    fn gf_vect_mad(
        len: c_int,
        vec: c_int,
        index: c_int,
        tables: *mut c_uchar,
        src: *mut c_uchar,
        dest: *mut c_uchar,
    );
    #[cfg(target_arch = "x86_64")]
    fn gf_vect_mad_avx2(
        len: c_int,
        vec: c_int,
        index: c_int,
        tables: *mut c_uchar,
        src: *mut c_uchar,
        dest: *mut c_uchar,
    );
    #[cfg(target_arch = "x86_64")]
    fn ec_encode_data_avx2(
        len: c_int,
        k: c_int,
        rows: c_int,
        tables: *mut c_uchar,
        data: *mut *mut c_uchar,
        coding: *mut *mut c_uchar,
    );
}

/// The choice of ISA-L's kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The kernels that ISA-L chooses by itself.
    Best,
    /// The kernels with AVX2, on a CPU that has it.
    #[cfg(target_arch = "x86_64")]
    Avx2,
}

impl Form {
    /// The kernels with AVX2, if they run here.
    pub fn avx2() -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        if std::is_x86_feature_detected!("avx2") {
            return Some(Self::Avx2);
        }
        None
    }
}

/// The most destinations in a call.
const DESTINATIONS: usize = 128;

/// The length of regions as C wants it.
///
/// # Panics
///
/// If the regions are not all of one length that every kernel takes.
fn length<'a>(regions: impl IntoIterator<Item = &'a [u8]>) -> c_int {
    let mut lengths = regions.into_iter().map(<[u8]>::len);
    let len = lengths.next().unwrap_or(64);
    assert!(len >= 64 && len.is_multiple_of(64) && lengths.all(|other| other == len));
    int(len)
}

/// A number as C wants it.
fn int(n: usize) -> c_int {
    c_int::try_from(n).unwrap_or(c_int::MAX)
}

/// Tables of a matrix of coefficients.
#[derive(Clone)]
pub struct Tables {
    bytes: Vec<u8>,
    rows: usize,
    columns: usize,
}

impl Tables {
    pub fn new(rows: usize, columns: usize, coefficients: &[u8]) -> Self {
        assert_eq!(coefficients.len(), rows * columns);
        let mut bytes = vec![0; 32 * coefficients.len()];
        // SAFETY: reads rows times columns bytes, writes 32 for each.
        unsafe {
            let coefficients = coefficients.as_ptr().cast_mut();
            ec_init_tables(int(columns), int(rows), coefficients, bytes.as_mut_ptr());
        }
        Self { bytes, rows, columns }
    }

    /// `ec_encode_data`: destination i becomes the sum of row i times the sources.
    pub fn encode(&self, form: Form, sources: &Sources<'_>, dsts: &mut [&mut [u8]]) {
        assert_eq!((self.columns, self.rows), (sources.pointers.len(), dsts.len()));
        let len = length(dsts.iter().map(|dst| &**dst));
        assert_eq!(len, sources.len);
        let mut coding = pointers(dsts);
        let encode = match form {
            Form::Best => ec_encode_data,
            #[cfg(target_arch = "x86_64")]
            Form::Avx2 => ec_encode_data_avx2,
        };
        // SAFETY: tables, sources and destinations are as many and as long as said, sources and tables are
        // only read, and callers ask only for a form that the CPU can run.
        unsafe {
            let (tables, data) = (self.bytes.as_ptr().cast_mut(), sources.pointers.as_ptr());
            let (k, rows) = (int(self.columns), int(self.rows));
            encode(len, k, rows, tables, data.cast_mut(), coding.as_mut_ptr());
        }
    }

    /// `ec_encode_data_update`: adds to each destination its coefficient times source `index`.
    pub fn update(&self, index: usize, source: &[u8], dsts: &mut [&mut [u8]]) {
        assert!(index < self.columns && self.rows == dsts.len());
        let len = length(dsts.iter().map(|dst| &**dst).chain([source]));
        let mut coding = pointers(dsts);
        // SAFETY: as in `encode`, for one source.
        unsafe {
            let (tables, data) = (self.bytes.as_ptr().cast_mut(), source.as_ptr().cast_mut());
            let (k, rows) = (int(self.columns), int(self.rows));
            ec_encode_data_update(len, k, rows, int(index), tables, data, coding.as_mut_ptr());
        }
    }

    /// `gf_vect_mad`: adds to `dst` coefficient `index` of the first row times `source`.
    pub fn mad(&self, form: Form, index: usize, source: &[u8], dst: &mut [u8]) {
        assert!(index < self.columns);
        let len = length([source, &*dst]);
        let mad = match form {
            Form::Best => gf_vect_mad,
            #[cfg(target_arch = "x86_64")]
            Form::Avx2 => gf_vect_mad_avx2,
        };
        // SAFETY: as in `encode`, for one source and one destination.
        unsafe {
            let (tables, data) = (self.bytes.as_ptr().cast_mut(), source.as_ptr().cast_mut());
            mad(len, int(self.columns), int(index), tables, data, dst.as_mut_ptr());
        }
    }
}

fn pointers(dsts: &mut [&mut [u8]]) -> [*mut u8; DESTINATIONS] {
    assert!(dsts.len() <= DESTINATIONS);
    let mut pointers = [std::ptr::null_mut(); DESTINATIONS];
    for (pointer, dst) in pointers.iter_mut().zip(dsts) {
        *pointer = dst.as_mut_ptr();
    }
    pointers
}

/// Source regions of one length.
#[derive(Clone)]
pub struct Sources<'a> {
    pointers: Vec<*mut u8>,
    len: c_int,
    borrow: PhantomData<&'a [u8]>,
}

impl<'a> Sources<'a> {
    pub fn new(sources: &[&'a [u8]]) -> Self {
        let len = length(sources.iter().copied());
        let pointers = sources.iter().map(|source| source.as_ptr().cast_mut()).collect();
        Self { pointers, len, borrow: PhantomData }
    }

    /// `xor_gen`: `dst` becomes the sum of the sources. `false` if ISA-L refuses.
    pub fn xor(&self, dst: &mut [u8]) -> bool {
        assert_eq!(length([&*dst]), self.len);
        let mut array = self.pointers.clone();
        array.push(dst.as_mut_ptr());
        // SAFETY: all regions are as long as said, and only the last region is written to.
        unsafe { xor_gen(int(array.len()), self.len, array.as_mut_ptr().cast()) == 0 }
    }
}

/// `gf_gen_cauchy1_matrix`: the identity of k columns, then rows of a Cauchy matrix.
pub fn cauchy(rows: usize, k: usize) -> Vec<u8> {
    let mut matrix = vec![0; (k + rows) * k];
    // SAFETY: writes m times k bytes, m being all rows.
    unsafe { gf_gen_cauchy1_matrix(matrix.as_mut_ptr(), int(k + rows), int(k)) };
    matrix.split_off(k * k)
}

/// `gf_invert_matrix`; `None` if there is no inverse.
pub fn invert(mut matrix: Vec<u8>, n: usize) -> Option<Vec<u8>> {
    assert_eq!(matrix.len(), n * n);
    let mut inverse = vec![0; n * n];
    // SAFETY: both are n times n bytes.
    let failed = unsafe { gf_invert_matrix(matrix.as_mut_ptr(), inverse.as_mut_ptr(), int(n)) };
    (failed == 0).then_some(inverse)
}
