//! ISA-L's ways of doing our work.

use super::{
    bindings::{self, Form, Sources, Tables},
    parities::Parities,
};
use crate::{
    Error,
    buffers::Symbols,
    cases::{
        block::{DATA, PARITY, lost},
        decode::Losses,
        sums::Sums,
    },
    clock,
    measure::{Decoded, Kind, Race},
};
use sutura_erasure::{Coefficients, kernel::Kernel};

/// Several repair symbols, with tables that are ready.
pub fn product<'a>(race: &mut Race<'a>, job: &'a Sums<'a>) -> Result<(), Error> {
    let tables = Tables::new(job.expected.len(), job.sources.len(), &job.coefficients);
    encode(race, tables.clone(), job)?;
    let entry = ("isal-update", "ISA-L ec_encode_data_update", Kind::Peer);
    race.add(entry, &job.expected, move |dsts| {
        for (index, source) in job.sources.iter().enumerate() {
            tables.update(index, source, dsts);
        }
    })
}

fn encode<'a>(race: &mut Race<'a>, tables: Tables, job: &'a Sums<'a>) -> Result<(), Error> {
    let sources = Sources::new(&job.sources);
    let entry = ("isal-encode", "ISA-L ec_encode_data", Kind::Peer);
    race.add(entry, &job.expected, move |dsts| tables.encode(Form::Best, &sources, dsts))
}

/// One repair symbol, with tables that are ready.
pub fn single<'a>(race: &mut Race<'a>, job: &'a Sums<'a>) -> Result<(), Error> {
    mad(race, ("isal-mad", "ISA-L gf_vect_mad"), Form::Best, job)?;
    encode(race, Tables::new(1, job.sources.len(), &job.coefficients), job)
}

/// One repair symbol with AVX2.
pub fn narrow<'a>(race: &mut Race<'a>, job: &'a Sums<'a>) -> Result<(), Error> {
    let Some(form) = Form::avx2() else { return Ok(()) };
    mad(race, ("isal-mad-avx2", "ISA-L gf_vect_mad_avx2"), form, job)
}

fn mad<'a>(
    race: &mut Race<'a>,
    (id, label): (&'static str, &str),
    form: Form,
    job: &'a Sums<'a>,
) -> Result<(), Error> {
    let tables = Tables::new(1, job.sources.len(), &job.coefficients);
    race.add((id, label, Kind::Peer), &job.expected, move |dsts| {
        for (index, source) in job.sources.iter().enumerate() {
            tables.mad(form, index, source, dsts[0]);
        }
    })
}

/// A window with losses: product, sum, inverse, product. Coefficients are fresh in each decode, so making
/// their tables is part of the measured time.
pub fn decode<'a>(race: &mut Race<'a>, job: &'a Losses<'a>) -> Result<(), Error> {
    let count = job.missing.len();
    let sources = Sources::new(&job.known_slots);
    let (mut residuals, mut recovered) = (Symbols::zeroed(count), Symbols::zeroed(count));
    let entry = ("isal-batch", "ISA-L batch: ec_encode_data, gf_invert_matrix", Kind::Peer);
    race.add_decode(entry, move || {
        let work = || {
            let (known, missing) = coefficients(job);
            Tables::new(count, job.known.len(), &known).encode(
                Form::Best,
                &sources,
                &mut residuals.slots_mut(),
            );
            for (residual, repair) in residuals.slots_mut().into_iter().zip(job.repairs.iter()) {
                Kernel::best().xor(residual, repair);
            }
            let inverse = bindings::invert(missing, count)?;
            let residuals = Sources::new(&residuals.slots(count));
            let tables = Tables::new(count, count, &inverse);
            tables.encode(Form::Best, &residuals, &mut recovered.slots_mut());
            Some(())
        };
        let (total, (last, solved)) = job.clock.time(|| clock::wall(work));
        solved.ok_or("no inverse")?;
        job.check(recovered.iter())?;
        Ok(Decoded { total, last })
    })
}

/// Coefficients of all repair symbols: the coefficients of known symbols, and the coefficients of missing
/// symbols.
fn coefficients(job: &Losses<'_>) -> (Vec<u8>, Vec<u8>) {
    let mut known = Vec::with_capacity(job.keys.len() * job.known.len());
    let mut missing = Vec::with_capacity(job.keys.len() * job.missing.len());
    let mut row = vec![0; job.n];
    for &key in &job.keys {
        Coefficients::new(key).fill(0, &mut row);
        known.extend(job.known.iter().map(|&id| row[id]));
        missing.extend(job.missing.iter().map(|&id| row[id]));
    }
    (known, missing)
}

/// Reed-Solomon encoding with the same matrix.
pub fn rs_encode<'a>(race: &mut Race<'a>, sources: &'a Symbols) -> Result<(), Error> {
    let parities = Parities::new(sources);
    if bindings::cauchy(PARITY, DATA) != parities.matrix {
        return Err("gf_gen_cauchy1_matrix makes another matrix".into());
    }
    let forms = [
        ("isal", "ISA-L ec_encode_data", Some(Form::Best)),
        ("isal-avx2", "ISA-L ec_encode_data_avx2", Form::avx2()),
    ];
    for (id, label, form) in forms {
        let Some(form) = form else { continue };
        let tables = Tables::new(PARITY, DATA, &parities.matrix);
        let sources = Sources::new(&parities.data);
        let entry = (id, label, Kind::Peer);
        race.add(entry, &parities.parity, move |dsts| tables.encode(form, &sources, dsts))?;
    }
    Ok(())
}

/// Reed-Solomon decoding that inverts only a matrix of as many rows as losses, as ours does.
pub fn rs_decode<'a>(race: &mut Race<'a>, sources: &'a Symbols) -> Result<(), Error> {
    let parities = Parities::new(sources);
    let mut recovered = Symbols::zeroed(PARITY);
    let entry = ("isal", "ISA-L ec_encode_data and the inverse of what is lost", Kind::Peer);
    race.add_block_decode(entry, move |turn| {
        let lost = lost(turn);
        let (time, solved) = clock::wall(|| {
            let rows = parities.decoding_rows(&lost, |matrix| bindings::invert(matrix, PARITY))?;
            let tables = Tables::new(PARITY, DATA, &rows);
            let sources = Sources::new(&parities.received(&lost));
            tables.encode(Form::Best, &sources, &mut recovered.slots_mut());
            Some(())
        });
        solved.ok_or("no inverse")?;
        sources.check(&lost, recovered.iter())?;
        Ok(time)
    })
}

/// One XOR parity.
pub fn xor<'a>(race: &mut Race<'a>, job: &'a Sums<'a>) -> Result<(), Error> {
    let sources = Sources::new(&job.sources);
    let entry = ("isal", "ISA-L xor_gen", Kind::Peer);
    race.add(entry, &job.expected, move |dsts| {
        // A refusal leaves zeros, which the check notices.
        sources.xor(dsts[0]);
    })
}
