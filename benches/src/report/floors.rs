//! What the stacks do over the least that any of them has to do, round by round.

use super::{Bulk, Figure, Load, Measurements, SmallFigure};
use crate::Options;
use crate::job::Subject;
use sutura_analysis::statistics::Spread;
use sutura_analysis::table::Cell;
use sutura_benches::stack::Name;

impl Measurements {
    /// A figure of downloads over that of the floor with the same size of datagrams, or with the first if the stack has
    /// found its own.
    pub(super) fn bulk_over_floor(
        &self,
        options: &Options,
        (payload, subject): &(Option<u16>, Subject),
        figure: Figure<'_>,
    ) -> Cell {
        let floor = self.of_floor(payload.or(options.payload.first().copied()));
        let ratios = self.of(subject, *payload).zip(floor).map(|(a, b)| figure(a) / figure(b));
        Cell::spread((!subject.is_floor()).then(|| Spread::of(ratios)).flatten(), 2)
    }

    fn of_floor(&self, payload: Option<u16>) -> impl Iterator<Item = &Bulk> {
        self.bulk.iter().filter(move |b| b.subject.is_floor() && b.payload == payload)
    }

    /// A figure of a small load over that of the floor, if there is one.
    pub(super) fn small_over_floor(
        &self,
        (load, subject): &(Load, Subject),
        figure: SmallFigure<'_>,
    ) -> Cell {
        let floor = Subject::from(Name::Floor);
        let both = self.small_of(*load, subject).zip(self.small_of(*load, &floor));
        let ratios = both.map(|(a, b)| figure(&a.costs) / figure(&b.costs));
        Cell::spread((!subject.is_floor()).then(|| Spread::of(ratios)).flatten(), 2)
    }
}
