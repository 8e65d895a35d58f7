//! Finds what has scrolled, for RFB servers that send pixels and do not say so.

use crate::framebuffer::Framebuffer;
use crate::rect::Rect;
use std::collections::HashMap;

/// Rows that a copy has at least.
const MIN_ROWS: usize = 32;
/// Columns that a copy has at least.
const MIN_COLUMNS: u16 = 64;
/// Rows that tell by how far a picture has moved: those of several colours that the old picture has once.
const MIN_VOTES: usize = 8;

/// The largest run of rows of `rect` that `old` shows above or below, as where it is in `old` and where it is in
/// `new`. All pixels of both are the same. `None` if little has moved.
pub fn find(new: &Framebuffer, old: &Framebuffer, rect: Rect) -> Option<(Rect, Rect)> {
    if rect.width < MIN_COLUMNS || usize::from(rect.height) < 2 * MIN_ROWS {
        return None;
    }
    let (news, olds): (Vec<&[u32]>, Vec<&[u32]>) =
        (new.rows(rect).collect(), old.rows(rect).collect());
    let by = distance(&news, &olds)?;
    let is_same = |row: usize| {
        let from = row.checked_add_signed(by);
        from.and_then(|from| olds.get(from)) == news.get(row)
    };
    let (mut best, mut start) = (0..0, 0);
    for row in 0..=news.len() {
        if row == news.len() || !is_same(row) {
            if row - start > best.len() {
                best = start..row;
            }
            start = row + 1;
        }
    }
    if best.len() < MIN_ROWS {
        return None;
    }
    let at = |row: usize| Rect { y: rect.y + row as u16, height: best.len() as u16, ..rect };
    Some((at(best.start.checked_add_signed(by)?), at(best.start)))
}

/// From how many rows below the new picture's rows come, if most say the same and it is not 0.
fn distance(news: &[&[u32]], olds: &[&[u32]]) -> Option<isize> {
    // `None` for what is there more than once.
    let mut places: HashMap<u64, Option<usize>> = HashMap::new();
    for (row, pixels) in olds.iter().enumerate() {
        if let Some(hash) = hash(pixels) {
            places.entry(hash).and_modify(|place| *place = None).or_insert(Some(row));
        }
    }
    let mut votes: HashMap<isize, usize> = HashMap::new();
    for (row, pixels) in news.iter().enumerate() {
        let place = hash(pixels).and_then(|hash| places.get(&hash).copied().flatten());
        if let Some(place) = place {
            *votes.entry(place as isize - row as isize).or_default() += 1;
        }
    }
    let all: usize = votes.values().sum();
    // The smallest of equals, whatever the order of the map.
    let (by, most) = votes.into_iter().max_by_key(|&(by, count)| (count, -by.abs(), by))?;
    (by != 0 && most >= MIN_VOTES && 2 * most > all).then_some(by)
}

/// A hash of a row, unless it has one colour.
fn hash(pixels: &[u32]) -> Option<u64> {
    let first = *pixels.first()?;
    let mix = |hash: u64, &pixel: &u32| {
        (hash.rotate_left(5) ^ u64::from(pixel)).wrapping_mul(0x517c_c1b7_2722_0a95)
    };
    let is_plain = pixels.iter().all(|&pixel| pixel == first);
    (!is_plain).then(|| pixels.iter().fold(0, mix))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Rows in a pattern of their own, or plain ones in between.
    fn picture(seed: u32, plain: u32) -> Framebuffer {
        let mut screen = Framebuffer::new(200, 150).unwrap();
        for y in 0..150 {
            let row = u32::from(y) + seed;
            for (x, pixel) in (0..).zip(screen.columns_mut(0, y, 200)) {
                *pixel = if row.is_multiple_of(plain) { 7 } else { (row * 77 + x * row) % 251 };
            }
        }
        screen
    }

    proptest! {
        #[test]
        fn what_has_scrolled_is_found(
            (seed, plain) in (0..999_u32, 2..20_u32),
            (by, down) in (1..40_u16, any::<bool>()),
            (x, y) in (0..90_u16, 0..20_u16),
        ) {
            let old = picture(seed, plain);
            let mut new = old.clone();
            let rect = Rect::new(x, y, 100, 120);
            let (upper, lower) = (Rect { height: 120 - by, ..rect }, Rect { y: y + by, height: 120 - by, ..rect });
            let (from, to) = if down { (upper, lower) } else { (lower, upper) };
            new.copy(from, to);
            let found = find(&new, &old, rect).unwrap();
            // Plain rows beside it may look as if they had moved, too.
            prop_assert!(found.0.contains(from) && found.1.contains(to));
            prop_assert_eq!(i32::from(found.0.y) - i32::from(found.1.y), i32::from(from.y) - i32::from(to.y));
        }

        #[test]
        fn all_that_is_found_is_the_same(
            moves in proptest::collection::vec((0..140_u16, 0..90_u16, 0..90_u16, 1..100_u16), 0..4),
            rect in (0..100_u16, 0..50_u16, 0..120_u16, 0..120_u16),
        ) {
            let old = picture(3, 9);
            let mut new = old.clone();
            for (x, from, to, height) in moves {
                let at = |y| Rect::new(x, y, 60, height.min(60));
                new.copy(at(from), at(to));
            }
            let (x, y, width, height) = rect;
            if let Some((from, to)) = find(&new, &old, Rect::new(x, y, width, height)) {
                prop_assert!(Rect::new(x, y, width, height).contains(from));
                prop_assert!(Rect::new(x, y, width, height).contains(to));
                prop_assert!(old.rows(from).eq(new.rows(to)));
                prop_assert!(from.y != to.y);
            }
        }
    }

    #[test]
    fn what_did_not_move_is_not_found() {
        let (old, whole) = (picture(1, 9), Rect::new(0, 0, 200, 150));
        assert_eq!(find(&old, &old, whole), None);
        assert_eq!(find(&picture(700, 9), &old, whole), None);
        let mut plain = old.clone();
        plain.fill(whole, 7);
        assert_eq!(find(&plain, &old, whole), None);
    }
}
