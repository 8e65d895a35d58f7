//! A perfect sliding-window code: any equations that suffice by their number and their spans do suffice.

use std::collections::VecDeque;

/// The symbols that a receiver can decode in order with a perfect code.
///
/// Each repair symbol covers all source symbols that were sent before it. A narrower span never brings the
/// bytes of a stream sooner: a symbol that is left out but still missing holds back all symbols after it, and
/// once it has arrived the wider repair symbol is worth as much as the narrower one.
///
/// Symbols are numbered in the order in which they are sent, and arrive in the order in which they are sent.
#[derive(Clone, Debug, Default)]
pub struct PerfectDecoder {
    /// Source symbols that were sent and are not known, ascending.
    missing: VecDeque<u64>,
    /// For each repair symbol that may still help, the first symbol that it does not cover; ascending.
    repairs: VecDeque<u64>,
    /// Number of source symbols sent.
    sent: u64,
}

impl PerfectDecoder {
    /// The next source symbol was sent; `lost` if it does not arrive. Returns its number.
    pub fn source(&mut self, lost: bool) -> u64 {
        let id = self.sent;
        self.sent += 1;
        if lost {
            self.missing.push_back(id);
        }
        id
    }

    /// A repair symbol over all source symbols so far arrives. Calls `known` with each symbol that
    /// becomes known.
    pub fn repair(&mut self, known: impl FnMut(u64)) {
        if !self.missing.is_empty() {
            self.repairs.push_back(self.sent);
            self.solve(known);
        }
    }

    /// A copy of source symbol `id` arrives. Calls `known` with each symbol that becomes known.
    pub fn copy(&mut self, id: u64, mut known: impl FnMut(u64)) {
        if let Ok(index) = self.missing.binary_search(&id) {
            self.missing.remove(index);
            known(id);
            self.solve(known);
        }
    }

    /// The first symbol that cannot be handed out yet.
    #[must_use]
    pub fn in_order(&self) -> u64 {
        self.missing.front().copied().unwrap_or(self.sent)
    }

    /// Solves for the oldest missing symbols as long as there are as many repair symbols that cover no other
    /// missing ones.
    ///
    /// This is exact: among the fewest symbols for which there are, fewer than the first `j` repair symbols
    /// are confined to the first `j` symbols, so each symbol can be given a repair symbol that covers it, and
    /// with general coefficients such equations are independent.
    fn solve(&mut self, mut known: impl FnMut(u64)) {
        let mut size = 0;
        while size <= self.missing.len() {
            let beyond = self.missing.get(size).copied().unwrap_or(u64::MAX);
            let within = self.repairs.partition_point(|end| *end <= beyond);
            if within >= size {
                self.missing.drain(..size).for_each(&mut known);
                self.repairs.drain(..within);
                // The search among the remaining symbols begins anew. Without missing symbols no equations
                // remain.
                if self.missing.is_empty() {
                    return;
                }
                size = 0;
            }
            size += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sutura_random::Rng;

    use super::*;

    /// A prime, so that numbers below it form a field.
    const PRIME: u64 = 2_147_483_647;

    fn inverse(a: u64) -> u64 {
        let (mut base, mut exponent, mut result) = (a % PRIME, PRIME - 2, 1);
        while exponent > 0 {
            if exponent & 1 == 1 {
                result = result * base % PRIME;
            }
            base = base * base % PRIME;
            exponent >>= 1;
        }
        result
    }

    /// Which unknowns random equations determine, by elimination. Each covers the unknowns below its
    /// end.
    fn determined(unknowns: &[u64], ends: &[u64], rng: &mut Rng) -> Vec<u64> {
        let mut rows: Vec<Vec<u64>> = ends
            .iter()
            .map(|end| {
                unknowns.iter().map(|u| if u < end { rng.range(1..PRIME) } else { 0 }).collect()
            })
            .collect();
        let mut rank = 0;
        for column in 0..unknowns.len() {
            let Some(pivot) = (rank..rows.len()).find(|row| rows[*row][column] != 0) else {
                continue;
            };
            rows.swap(rank, pivot);
            let scale = inverse(rows[rank][column]);
            let lead: Vec<u64> = rows[rank].iter().map(|v| v * scale % PRIME).collect();
            for (index, row) in rows.iter_mut().enumerate() {
                if index != rank && row[column] != 0 {
                    let factor = row[column];
                    for (value, lead) in row.iter_mut().zip(&lead) {
                        *value = (*value + (PRIME - factor) * lead) % PRIME;
                    }
                }
            }
            rows[rank] = lead;
            rank += 1;
        }
        let alone = |row: &Vec<u64>| row.iter().filter(|v| **v != 0).count() == 1;
        let mut known: Vec<u64> = rows
            .iter()
            .filter(|row| alone(row))
            .filter_map(|row| row.iter().position(|v| *v != 0).map(|column| unknowns[column]))
            .collect();
        known.sort_unstable();
        known
    }

    #[derive(Clone, Debug)]
    enum Step {
        Source(bool),
        Repair,
        Copy(prop::sample::Index),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => any::<bool>().prop_map(Step::Source),
            2 => Just(Step::Repair),
            1 => any::<prop::sample::Index>().prop_map(Step::Copy),
        ]
    }

    proptest! {
        /// All symbols before the first one that random equations leave open are handed out.
        #[test]
        fn it_hands_out_what_elimination_determines(
            steps in prop::collection::vec(step(), 1..40), seed: u64,
        ) {
            let mut rng = Rng::new(seed);
            let mut decoder = PerfectDecoder::default();
            let (mut unknowns, mut ends): (Vec<u64>, Vec<u64>) = Default::default();
            for step in steps {
                match step {
                    Step::Source(lost) => {
                        let id = decoder.source(lost);
                        unknowns.extend(lost.then_some(id));
                    }
                    Step::Repair => {
                        ends.push(decoder.sent);
                        decoder.repair(|_| {});
                    }
                    Step::Copy(index) if !unknowns.is_empty() => {
                        let id = unknowns.remove(index.index(unknowns.len()));
                        decoder.copy(id, |_| {});
                    }
                    Step::Copy(_) => {}
                }
                let known = determined(&unknowns, &ends, &mut rng);
                let first = unknowns.iter().copied().find(|id| !known.contains(id));
                prop_assert_eq!(decoder.in_order(), first.unwrap_or(decoder.sent));
                unknowns.retain(|id| !known.contains(id));
            }
        }
    }
}
