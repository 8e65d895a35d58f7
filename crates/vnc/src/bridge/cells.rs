//! A grid over the screen that tells which parts of it are to be sent.

use crate::rect::Rect;

/// Columns and rows of a cell, and of the largest tile.
pub const TILE: u16 = 64;

/// The work to be done for a cell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cell {
    /// A pixel of the cell may have changed.
    pub changed: bool,
    /// Whether the contents at the other end are unknown.
    pub unknown: bool,
    /// The other end shows a lossy picture of it.
    pub blurred: bool,
}

/// The cells of a screen, and where the search for the next one begins, so that none waits for ever.
#[derive(Debug)]
pub struct Cells {
    bounds: Rect,
    columns: usize,
    cells: Vec<Cell>,
    position: usize,
}

impl Cells {
    pub fn new(bounds: Rect) -> Self {
        let columns = usize::from(bounds.width.div_ceil(TILE));
        let rows = usize::from(bounds.height.div_ceil(TILE));
        Self { bounds, columns, cells: vec![Cell::default(); columns * rows], position: 0 }
    }

    /// Applies `change` to all cells that a rectangle touches.
    pub fn each(&mut self, rect: Rect, mut change: impl FnMut(&mut Cell)) {
        for index in self.touched(rect) {
            change(&mut self.cells[index]);
        }
    }

    /// Whether nothing is to be sent for the cells that a rectangle touches.
    pub fn is_clean(&self, rect: Rect) -> bool {
        self.all(rect, |cell| !cell.changed && !cell.unknown)
    }

    /// Whether `condition` holds for all cells that a rectangle touches.
    pub fn all(&self, rect: Rect, condition: impl Fn(Cell) -> bool) -> bool {
        self.touched(rect).all(|index| condition(self.cells[index]))
    }

    fn touched(&self, rect: Rect) -> impl Iterator<Item = usize> + use<> {
        let rect = self.bounds.intersection(rect).unwrap_or_default();
        let side = u32::from(TILE);
        let rows = u32::from(rect.y) / side..rect.bottom().div_ceil(side);
        let across = u32::from(rect.x) / side..rect.right().div_ceil(side);
        let (columns, empty) = (self.columns, rect.is_empty());
        rows.filter(move |_| !empty).flat_map(move |row| {
            across.clone().map(move |column| row as usize * columns + column as usize)
        })
    }

    /// The first cell, from where the last search ended, for which `wanted` holds.
    pub fn find(&self, wanted: impl Fn(Cell) -> bool) -> Option<usize> {
        let (before, behind) = self.cells.split_at(self.position.min(self.cells.len()));
        let behind =
            behind.iter().position(|&cell| wanted(cell)).map(|found| found + self.position);
        behind.or_else(|| before.iter().position(|&cell| wanted(cell)))
    }

    /// The rectangle around the most cells for which `wanted` holds that touch each other, also at corners.
    pub fn largest(&self, wanted: impl Fn(Cell) -> bool) -> Option<Rect> {
        let mut left: Vec<bool> = self.cells.iter().map(|&cell| wanted(cell)).collect();
        let mut best = (0, None);
        while let Some(first) = left.iter().position(|&is_left| is_left) {
            let (mut count, mut around, mut open) = (0, Rect::default(), vec![first]);
            left[first] = false;
            while let Some(index) = open.pop() {
                let rect = self.rect(index);
                (count, around) = (count + 1, around.around(rect));
                let (x, y) = (rect.x.saturating_sub(1), rect.y.saturating_sub(1));
                for index in self.touched(Rect::new(x, y, TILE + 2, TILE + 2)) {
                    if std::mem::take(&mut left[index]) {
                        open.push(index);
                    }
                }
            }
            if count > best.0 {
                best = (count, Some(around));
            }
        }
        best.1
    }

    pub fn any(&self, wanted: impl Fn(Cell) -> bool) -> bool {
        self.cells.iter().any(|&cell| wanted(cell))
    }

    /// Takes a cell's state, and goes on behind it.
    pub fn take(&mut self, index: usize) -> Cell {
        self.position = index + 1;
        self.cells.get_mut(index).map(std::mem::take).unwrap_or_default()
    }

    /// Where the search for the next cell begins.
    pub fn position(&self) -> usize {
        self.position
    }

    /// Takes cells back that were found from `start` on, so that the first of them is found first.
    pub fn give_back(&mut self, start: usize, cells: impl Iterator<Item = (usize, Cell)>) {
        let count = self.cells.len().max(1);
        let from_start = |index: usize| (index + count - start.min(count)) % count;
        let mut first = None;
        for (index, cell) in cells {
            self.set(index, cell);
            let before = first.is_none_or(|first| from_start(index) < from_start(first));
            first = if before { Some(index) } else { first };
        }
        self.position = first.unwrap_or(self.position);
    }

    /// Sets a cell's state.
    pub fn set(&mut self, index: usize, cell: Cell) {
        if let Some(slot) = self.cells.get_mut(index) {
            *slot = cell;
        }
    }

    /// The pixels of a cell.
    pub fn rect(&self, index: usize) -> Rect {
        let columns = self.columns.max(1);
        let at = |number: usize| u16::try_from(number * usize::from(TILE)).unwrap_or(u16::MAX);
        let cell = Rect::new(at(index % columns), at(index / columns), TILE, TILE);
        self.bounds.intersection(cell).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_cells_of_a_rectangle_are_those_that_overlap_it(
            (w, h) in (0..300u16, 0..300u16),
            (x, y, width, height) in (0..320u16, 0..320u16, 0..200u16, 0..200u16),
        ) {
            let mut cells = Cells::new(Rect::new(0, 0, w, h));
            let rect = Rect::new(x, y, width, height);
            cells.each(rect, |cell| cell.changed = true);
            let mut area = 0;
            for index in 0..cells.cells.len() {
                area += cells.rect(index).area();
                prop_assert_eq!(cells.cells[index].changed, cells.rect(index).overlaps(rect));
            }
            prop_assert_eq!(area, usize::from(w) * usize::from(h));
            prop_assert_eq!(cells.is_clean(rect), !cells.any(|cell| cell.changed));
        }
    }

    #[test]
    fn cells_that_touch_are_found_together() {
        let mut cells = Cells::new(Rect::new(0, 0, 300, 200));
        assert_eq!(cells.largest(|cell| cell.changed), None);
        for (x, y) in [(0, 0), (128, 64), (192, 128), (256, 64)] {
            cells.each(Rect::new(x, y, 1, 1), |cell| cell.changed = true);
        }
        assert_eq!(cells.largest(|cell| cell.changed), Some(Rect::new(128, 64, 172, 128)));
    }

    #[test]
    fn the_search_goes_round() {
        let mut cells = Cells::new(Rect::new(0, 0, 256, 64));
        let mut found = Vec::new();
        for _ in 0..6 {
            cells.each(Rect::new(0, 0, 200, 1), |cell| cell.changed = true);
            let index = cells.find(|cell| cell.changed).unwrap();
            cells.take(index);
            found.push(index);
        }
        assert_eq!(found, [0, 1, 2, 3, 0, 1]);
        // The search that began at 2 found 2, 3, 0 and 1.
        let changed = Cell { changed: true, ..Cell::default() };
        cells.give_back(2, [0, 1, 3].map(|index| (index, changed)).into_iter());
        assert_eq!(cells.find(|cell| cell.changed), Some(3));
        cells.give_back(2, std::iter::empty());
        assert_eq!(cells.position(), 3);
        assert_eq!(Cells::new(Rect::default()).find(|_| true), None);
    }
}
