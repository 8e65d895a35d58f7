//! The parts of the screen that go into a piece.

use super::cells::Cell;
use super::drawing::{MAX_COLOURS, colours};
use crate::framebuffer::Framebuffer;
use crate::rect::Rect;

/// Most pixels of a part that is made of others, so that a piece does not become much larger than a packet.
const MAX_JOINED: usize = 8192;
/// Pixels that are sent again rather than as much as another part's place costs.
const SLACK: usize = 512;

/// What is to be sent for a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CellChange {
    /// The number of the cell.
    pub index: usize,
    /// The cell before it was taken.
    pub cell: Cell,
    /// What differs.
    pub rect: Rect,
}

/// A rectangle that is to be sent, for one cell or for several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    pub rect: Rect,
    /// Its colours, the most frequent first, if they are so few that it is a drawing.
    pub colours: Option<Vec<u32>>,
    pub changes: Vec<CellChange>,
}

impl Part {
    pub fn new(screen: &Framebuffer, change: CellChange) -> Self {
        let colours = colours(screen, change.rect, MAX_COLOURS);
        Self { rect: change.rect, colours, changes: vec![change] }
    }

    /// A part that is not drawn, whatever colours it has.
    pub fn undrawn(change: CellChange) -> Self {
        Self { rect: change.rect, colours: None, changes: vec![change] }
    }

    /// Pixels that take time and bytes.
    pub fn weight(&self) -> usize {
        if self.colour().is_some() { SLACK / 8 } else { self.rect.area() }
    }

    /// Its colour, if it has only one.
    fn colour(&self) -> Option<u32> {
        let [colour] = self.colours.as_deref()? else { return None };
        Some(*colour)
    }

    /// The smallest part around both, if that takes less bytes than both.
    fn joined(&self, other: &Self, screen: &Framebuffer) -> Option<Self> {
        let (mine, others) = (self.colours.as_deref()?, other.colours.as_deref()?);
        let rect = self.rect.around(other.rect);
        let area = self.rect.area() + other.rect.area();
        let colours = if mine.len() == 1 && others.len() == 1 {
            let fits = mine == others && rect.area() <= area;
            fits.then(|| colours(screen, rect, 1))?
        } else {
            let is_worth = rect.area() <= (area + area / 4 + SLACK).min(MAX_JOINED);
            is_worth.then(|| colours(screen, rect, MAX_COLOURS / 2))?
        };
        let changes = [&self.changes[..], &other.changes].concat();
        Some(Self { rect, colours: Some(colours?), changes })
    }
}

/// Joins parts where that takes less bytes.
pub fn join(mut parts: Vec<Part>, screen: &Framebuffer) -> Vec<Part> {
    loop {
        let before = parts.len();
        let mut joined: Vec<Part> = Vec::new();
        for part in parts {
            let found = joined.iter_mut().rev().find_map(|other| {
                let both = other.joined(&part, screen)?;
                Some((other, both))
            });
            match found {
                Some((other, both)) => *other = both,
                None => joined.push(part),
            }
        }
        if joined.len() == before {
            return joined;
        }
        parts = joined;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn part(screen: &Framebuffer, index: usize, rect: Rect) -> Part {
        Part::new(screen, CellChange { index, cell: Cell::default(), rect })
    }

    proptest! {
        #[test]
        fn all_that_changed_is_in_what_was_joined(
            rects in proptest::collection::vec((0..80u16, 0..40u16, 1..=64u16, 1..=64u16), 0..20),
            boxes in proptest::collection::vec((0..140u16, 0..100u16, 1..90u16, 1..90u16, 0..90u32), 0..8),
        ) {
            let mut screen = Framebuffer::new(150, 110).unwrap();
            for (x, y, width, height, colour) in boxes {
                screen.fill(Rect::new(x, y, width, height), colour);
            }
            let parts: Vec<Part> = rects
                .iter()
                .enumerate()
                .map(|(index, &(x, y, width, height))| part(&screen, index, Rect::new(x, y, width, height)))
                .collect();
            let joined = join(parts.clone(), &screen);
            prop_assert!(joined.len() <= parts.len());
            let mut changes: Vec<CellChange> = joined.iter().flat_map(|part| part.changes.clone()).collect();
            changes.sort_by_key(|change| change.index);
            let before: Vec<CellChange> = parts.iter().flat_map(|part| part.changes.clone()).collect();
            prop_assert_eq!(changes, before);
            for part in joined {
                prop_assert!(part.changes.iter().all(|change| part.rect.contains(change.rect)));
                prop_assert_eq!(colours(&screen, part.rect, MAX_COLOURS), part.colours.clone());
                let is_one = part.changes.len() == 1 || part.colour().is_some();
                prop_assert!(is_one || part.rect.area() <= MAX_JOINED);
            }
        }
    }

    #[test]
    fn cells_of_one_colour_are_one_rectangle() {
        let screen = Framebuffer::new(256, 256).unwrap();
        let cells = (0..16_u16).map(|cell| Rect::new(cell % 4 * 64, cell / 4 * 64, 64, 64));
        let parts = cells.enumerate().map(|(index, rect)| part(&screen, index, rect)).collect();
        let joined = join(parts, &screen);
        assert_eq!(joined.len(), 1);
        assert_eq!(joined[0].rect, screen.bounds());
    }

    #[test]
    fn what_is_far_apart_stays_apart() {
        let mut screen = Framebuffer::new(256, 256).unwrap();
        let (letter, mark) = (Rect::new(0, 0, 6, 9), Rect::new(200, 200, 6, 9));
        screen.fill(Rect::new(1, 1, 3, 3), 7);
        screen.fill(Rect::new(201, 201, 3, 3), 7);
        let parts = vec![part(&screen, 0, letter), part(&screen, 1, mark)];
        assert_eq!(join(parts.clone(), &screen), parts);
    }
}
