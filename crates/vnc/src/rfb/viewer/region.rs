//! A part of the screen.

use crate::rect::Rect;

/// The number of rectangles by which a part of the screen is described. With more, two of them are replaced
/// by the rectangle around both.
pub const MAX_DIRTY: usize = 64;

/// A set of pixels, as at most [`MAX_DIRTY`] rectangles. The rectangles may overlap a little.
#[derive(Debug, Default)]
pub(super) struct Region {
    rects: Vec<Rect>,
}

impl Region {
    pub(super) fn add(&mut self, rect: Rect) {
        if rect.is_empty() {
            return;
        }
        let mut new = rect;
        while let Some(at) = self.partner(new) {
            new = new.around(self.rects.swap_remove(at));
        }
        self.rects.push(new);
    }

    /// The rectangle that is best joined with `new`, if joining adds no pixels or there is no room.
    fn partner(&self, new: Rect) -> Option<usize> {
        let waste = |rect: Rect| {
            let both = rect.area() + new.area();
            rect.around(new).area().saturating_sub(both)
        };
        let (least, at) = self.rects.iter().zip(0..).map(|(&rect, at)| (waste(rect), at)).min()?;
        (least == 0 || self.rects.len() >= MAX_DIRTY).then_some(at)
    }

    pub(super) fn overlaps(&self, rect: Rect) -> bool {
        self.rects.iter().any(|known| known.overlaps(rect))
    }

    /// Removes the part within `rect` and returns it.
    pub(super) fn take(&mut self, rect: Rect) -> Vec<Rect> {
        let mut taken = Vec::new();
        for known in std::mem::take(&mut self.rects) {
            taken.extend(known.intersection(rect));
            known.without(rect).for_each(|rest| self.add(rest));
        }
        taken
    }

    /// Makes it one rectangle.
    pub(super) fn set(&mut self, rect: Rect) {
        self.rects.clear();
        self.add(rect);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn any_rect() -> impl Strategy<Value = Rect> {
        (0..40u16, 0..40u16, 0..12u16, 0..12u16).prop_map(|(x, y, w, h)| Rect::new(x, y, w, h))
    }

    fn has(rects: &[Rect], x: u16, y: u16) -> bool {
        rects.iter().any(|rect| rect.overlaps(Rect::new(x, y, 1, 1)))
    }

    proptest! {
        #[test]
        fn no_pixel_is_forgotten(rects in vec(any_rect(), 0..90), window in any_rect()) {
            let mut region = Region::default();
            rects.iter().for_each(|&rect| region.add(rect));
            prop_assert!(region.rects.len() <= MAX_DIRTY);
            let before = region.rects.clone();
            let taken = region.take(window);
            prop_assert!(region.rects.len() <= MAX_DIRTY);
            for (x, y) in (0..60).flat_map(|x| (0..60).map(move |y| (x, y))) {
                prop_assert!(!has(&rects, x, y) || has(&before, x, y));
                prop_assert_eq!(has(&taken, x, y), has(&before, x, y) && has(&[window], x, y));
                let left = has(&before, x, y) && !has(&[window], x, y);
                prop_assert!(!left || has(&region.rects, x, y));
            }
        }
    }

    #[test]
    fn a_flood_of_rectangles_keeps_the_bound() {
        let mut region = Region::default();
        for at in 0..10_000u16 {
            region.add(Rect::new(at % 100 * 7, at / 100 * 7, 2, 2));
            assert!(region.rects.len() <= MAX_DIRTY);
        }
        assert!(region.overlaps(Rect::new(99 * 7, 99 * 7, 1, 1)));
    }

    #[test]
    fn neighbours_become_one_rectangle() {
        let mut region = Region::default();
        (0..100).for_each(|row| region.add(Rect::new(5, row, 10, 1)));
        assert_eq!(region.rects, [Rect::new(5, 0, 10, 100)]);
        assert_eq!(region.take(Rect::new(0, 0, 50, 100)).len(), 1);
        assert!(region.rects.is_empty());
    }
}
