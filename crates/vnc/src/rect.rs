//! Rectangles of pixels.

use std::fmt;

/// A rectangle of pixels; `x` and `y` are its left and top edge. RFC 6143 has 16 bits for each number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Rect {
    /// The first column.
    pub x: u16,
    /// The first row.
    pub y: u16,
    /// The number of columns.
    pub width: u16,
    /// The number of rows.
    pub height: u16,
}

impl Rect {
    /// A rectangle.
    #[must_use]
    pub const fn new(x: u16, y: u16, width: u16, height: u16) -> Self {
        Self { x, y, width, height }
    }

    /// The rectangle between four edges, of which the right and the bottom one are outside. Edges that are
    /// beyond 65535 are moved there.
    fn between(x: u32, y: u32, right: u32, bottom: u32) -> Self {
        let clamp = |edge: u32| u16::try_from(edge).unwrap_or(u16::MAX);
        Self::new(
            clamp(x),
            clamp(y),
            clamp(right.saturating_sub(x)),
            clamp(bottom.saturating_sub(y)),
        )
    }

    /// The column behind the last.
    #[must_use]
    pub fn right(self) -> u32 {
        u32::from(self.x) + u32::from(self.width)
    }

    /// The row below the last.
    #[must_use]
    pub fn bottom(self) -> u32 {
        u32::from(self.y) + u32::from(self.height)
    }

    /// The number of pixels.
    #[must_use]
    pub fn area(self) -> usize {
        usize::from(self.width) * usize::from(self.height)
    }

    /// Whether there is no pixel in it.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.width == 0 || self.height == 0
    }

    /// The pixels of both, if there are any.
    #[must_use]
    pub fn intersection(self, other: Self) -> Option<Self> {
        let (x, y) = (self.x.max(other.x), self.y.max(other.y));
        let right = self.right().min(other.right());
        let bottom = self.bottom().min(other.bottom());
        let common = Self::between(x.into(), y.into(), right, bottom);
        (!common.is_empty()).then_some(common)
    }

    /// Whether both have a pixel in common.
    #[must_use]
    pub fn overlaps(self, other: Self) -> bool {
        self.intersection(other).is_some()
    }

    /// Whether all pixels of `other` are in this one.
    #[must_use]
    pub fn contains(self, other: Self) -> bool {
        other.is_empty()
            || (self.x <= other.x
                && self.y <= other.y
                && self.right() >= other.right()
                && self.bottom() >= other.bottom())
    }

    /// The smallest rectangle around both.
    #[must_use]
    pub fn around(self, other: Self) -> Self {
        if self.is_empty() {
            return other;
        }
        if other.is_empty() {
            return self;
        }
        let right = self.right().max(other.right());
        let bottom = self.bottom().max(other.bottom());
        Self::between(self.x.min(other.x).into(), self.y.min(other.y).into(), right, bottom)
    }

    /// The parts of it without `hole`: at most four rectangles, none of which overlap.
    pub fn without(self, hole: Self) -> impl Iterator<Item = Self> {
        let (x, y, right, bottom) =
            (u32::from(self.x), u32::from(self.y), self.right(), self.bottom());
        let parts = match self.intersection(hole) {
            None => [self, Self::default(), Self::default(), Self::default()],
            Some(hole) => {
                let (top, low) = (u32::from(hole.y), hole.bottom());
                [
                    Self::between(x, y, right, top),
                    Self::between(x, top, hole.x.into(), low),
                    Self::between(hole.right(), top, right, low),
                    Self::between(x, low, right, bottom),
                ]
            }
        };
        parts.into_iter().filter(|part| !part.is_empty())
    }
}

impl fmt::Display for Rect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{} at {},{}", self.width, self.height, self.x, self.y)
    }
}

impl fmt::Debug for Rect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_rect() -> impl Strategy<Value = Rect> {
        (0..12u16, 0..12u16, 0..9u16, 0..9u16).prop_map(|(x, y, w, h)| Rect::new(x, y, w, h))
    }

    fn has(rect: Rect, x: u16, y: u16) -> bool {
        u32::from(x) < rect.right() && x >= rect.x && u32::from(y) < rect.bottom() && y >= rect.y
    }

    proptest! {
        #[test]
        fn the_geometry_is_that_of_sets_of_pixels(a in any_rect(), b in any_rect()) {
            let common = a.intersection(b);
            prop_assert_eq!(a.overlaps(b), common.is_some());
            let parts: Vec<_> = a.without(b).collect();
            prop_assert!(parts.len() <= 4);
            for (x, y) in (0..24).flat_map(|x| (0..24).map(move |y| (x, y))) {
                let both = has(a, x, y) && has(b, x, y);
                prop_assert_eq!(common.is_some_and(|common| has(common, x, y)), both);
                let left = parts.iter().filter(|&&part| has(part, x, y)).count();
                prop_assert_eq!(left, usize::from(has(a, x, y) && !has(b, x, y)));
                if has(a, x, y) || has(b, x, y) {
                    prop_assert!(has(a.around(b), x, y));
                }
            }
            let all = (0..24).all(|x| (0..24).all(|y| !has(b, x, y) || has(a, x, y)));
            prop_assert_eq!(a.contains(b), all);
        }
    }

    #[test]
    fn numbers_do_not_overflow_at_the_last_column() {
        let last = Rect::new(u16::MAX, u16::MAX, u16::MAX, u16::MAX);
        assert_eq!((last.right(), last.bottom()), (131_070, 131_070));
        assert!(last.overlaps(last));
        assert_eq!(last.without(Rect::new(0, 0, u16::MAX, u16::MAX)).next(), Some(last));
    }
}
