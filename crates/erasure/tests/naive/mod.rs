//! A reference solver, implemented from the specification and sharing no code with the crate:
//! products bit by bit, the whole system solved from scratch each time.
#![allow(dead_code, reason = "each test binary uses a part of it")]

mod field;

use std::{collections::BTreeMap, ops::Range};

pub use field::{coefficient, inverse, mul};

/// The coded form of a symbol, padded to `size`.
pub fn framed(bytes: &[u8], size: usize) -> Vec<u8> {
    let mut coded = (bytes.len() as u16).to_be_bytes().to_vec();
    coded.extend_from_slice(bytes);
    assert!(coded.len() <= size);
    coded.resize(size, 0);
    coded
}

/// The length of all payloads here.
const SIZE: usize = 26;

/// Which unknowns are determined by equations, given by their coefficients.
pub fn determined(equations: impl Iterator<Item = Vec<u8>>, unknowns: usize) -> Vec<bool> {
    let equations = equations.map(|coefficients| (coefficients, Vec::new())).collect();
    let solved = Naive { equations }.solve();
    (0..unknowns as u64).map(|unknown| solved.contains_key(&unknown)).collect()
}

/// All received symbols, as equations over all symbols.
#[derive(Default)]
pub struct Naive {
    /// Coefficients from symbol 0 on, and payload.
    equations: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Naive {
    pub fn source(&mut self, id: u64, bytes: &[u8]) {
        let mut coefficients = vec![0; id as usize + 1];
        coefficients[id as usize] = 1;
        self.equations.push((coefficients, framed(bytes, SIZE)));
    }

    pub fn repair(&mut self, span: Range<u64>, key: u32, payload: &[u8]) {
        let coefficients =
            (0..span.end).map(|id| if id < span.start { 0 } else { coefficient(key, id) });
        let mut payload = payload.to_vec();
        payload.resize(SIZE, 0);
        self.equations.push((coefficients.collect(), payload));
    }

    /// The number of independent equations.
    pub fn rank(&self) -> usize {
        self.eliminate().len()
    }

    /// The symbols that are determined, in coded form.
    pub fn solve(&self) -> BTreeMap<u64, Vec<u8>> {
        let rows = self.eliminate().into_iter();
        rows.filter(|(_, coefficients, _)| coefficients.iter().filter(|&&c| c != 0).count() == 1)
            .map(|(pivot, _, payload)| (pivot as u64, payload))
            .collect()
    }

    /// Gauss-Jordan elimination: pivot, coefficients and payload of each row.
    fn eliminate(&self) -> Vec<(usize, Vec<u8>, Vec<u8>)> {
        let columns = self.equations.iter().map(|(c, _)| c.len()).max().unwrap_or(0);
        let mut rest: Vec<_> = self.equations.clone();
        for (coefficients, _) in &mut rest {
            coefficients.resize(columns, 0);
        }
        let mut done: Vec<(usize, Vec<u8>, Vec<u8>)> = Vec::new();
        for column in 0..columns {
            let Some(index) = rest.iter().position(|(c, _)| c[column] != 0) else {
                continue;
            };
            let (mut coefficients, mut payload) = rest.swap_remove(index);
            let factor = inverse(coefficients[column]);
            for byte in coefficients.iter_mut().chain(&mut payload) {
                *byte = mul(*byte, factor);
            }
            let done_rows = done.iter_mut().map(|(_, c, p)| (c, p));
            for (c, p) in rest.iter_mut().map(|(c, p)| (c, p)).chain(done_rows) {
                let factor = c[column];
                if factor != 0 {
                    add(c, &coefficients, factor);
                    add(p, &payload, factor);
                }
            }
            done.push((column, coefficients, payload));
        }
        assert!(rest.iter().all(|(_, payload)| payload.iter().all(|&byte| byte == 0)));
        done
    }
}

fn add(dst: &mut [u8], src: &[u8], factor: u8) {
    for (d, s) in dst.iter_mut().zip(src) {
        *d ^= mul(*s, factor);
    }
}
