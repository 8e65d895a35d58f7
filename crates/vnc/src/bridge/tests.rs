//! Both ends together: random changes, delivered in any order that an ordered group allows.

use super::model::{Bridge, Habits};
use super::piece::{Piece, PieceBody};
use super::{Outgoing, UpdateOrder};
use crate::framebuffer::{MAX_FRAMEBUFFER, MAX_PIXELS};
use crate::rect::Rect;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Rounds of random steps, after each of which both ends must show the same screen.
fn both_ends_agree(mut bridge: Bridge, rounds: usize, steps: usize) {
    for round in 0..rounds {
        (0..steps).for_each(|_| bridge.step());
        bridge.settle();
        assert!(bridge.painter.screen() == &bridge.screen, "round {round} differs");
        assert!(!bridge.source.has_changes() && !bridge.source.is_blurred());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn both_ends_show_the_same_in_the_end(seed: u64, lossy: bool, fences: bool) {
        let order = if fences { UpdateOrder::Fences } else { UpdateOrder::Geometry };
        both_ends_agree(Bridge::with_order(seed, lossy.then_some(30), order), 3, 200);
    }
}

/// A piece of a new size has arrived when the connection is lost, and waits behind a fence for word of a piece that
/// was cancelled before it.
#[test]
fn a_size_that_waited_for_word_of_a_cancelled_piece_is_told_again() {
    let mut bridge = with_a_picture();
    bridge.noise(LEFT);
    bridge.send_next();
    bridge.noise(LEFT);
    let second = bridge.send_next();
    bridge.receive(second);
    bridge.resize(120, 90);
    let size = bridge.send_next();
    bridge.receive(size);
    bridge.report_all();
    bridge.reconnect();
    assert_same_in_the_end(&mut bridge);
}

/// Sessions in which pieces are given up.
fn both_ends_agree_though_pieces_are_lost(sessions: u64, cancels: bool) {
    for seed in 0..sessions {
        let order = if seed % 4 == 0 { UpdateOrder::Fences } else { UpdateOrder::Geometry };
        let quality = (seed % 3 == 0).then_some(30);
        let bridge = Bridge::with_order(seed, quality, order);
        let bridge = bridge.with_habits(Habits { loses: true, cancels });
        both_ends_agree(bridge, 1, 150);
    }
}

#[test]
fn both_ends_show_the_same_though_pieces_are_lost() {
    both_ends_agree_though_pieces_are_lost(1000, false);
}

#[test]
fn both_ends_show_the_same_though_pieces_are_lost_and_others_cancelled() {
    both_ends_agree_though_pieces_are_lost(300, true);
}

const LEFT: Rect = Rect::new(0, 0, 40, 40);
const MIDDLE: Rect = Rect::new(70, 0, 40, 40);
const RIGHT: Rect = Rect::new(140, 0, 40, 40);

/// Both ends show a picture on the left, and nothing is on its way.
fn with_a_picture() -> Bridge {
    let mut bridge = Bridge::new(4, None);
    bridge.noise(LEFT);
    bridge.settle();
    bridge
}

fn assert_same_in_the_end(bridge: &mut Bridge) {
    bridge.settle();
    assert!(bridge.painter.screen() == &bridge.screen);
}

/// The second of two copies reads the pixels that the first writes. `fate` is the fate of the first while the
/// second waits.
fn copies_of_a_copy(fate: impl FnOnce(&mut Bridge, Outgoing)) {
    let mut bridge = with_a_picture();
    bridge.copy(LEFT, MIDDLE);
    let first = bridge.source.next(&bridge.screen).unwrap();
    assert_eq!(first.reads(), Some(LEFT));
    bridge.copy(MIDDLE, RIGHT);
    fate(&mut bridge, first);
    let rest = bridge.source.next(&bridge.screen).unwrap();
    assert_eq!(rest.reads(), None, "its source is unknown");
    bridge.transmit(rest);
    assert_same_in_the_end(&mut bridge);
}

#[test]
fn a_copy_of_what_was_taken_back_is_sent_as_pixels() {
    copies_of_a_copy(|bridge, first| bridge.source.unsent(first));
}

#[test]
fn a_copy_of_what_is_lost_is_sent_as_pixels() {
    copies_of_a_copy(|bridge, first| {
        let number = bridge.transmit(first);
        bridge.lose(number);
        bridge.tell(number);
        bridge.report_all();
    });
}

#[test]
fn a_copy_of_what_a_lost_connection_carried_is_sent_as_pixels() {
    copies_of_a_copy(|bridge, first| {
        bridge.transmit(first);
        bridge.reconnect();
    });
}

/// The first of three pieces is lost, the others are a copy of its pixels and a copy of the copy. They come
/// before the source hears of the loss, or later.
fn copies_that_were_sent_of_what_is_lost(have_come: bool) {
    let mut bridge = with_a_picture();
    bridge.noise(LEFT);
    let lost = bridge.send_next();
    // As far as the source knows, the copies read from a place that the other end has.
    let copies = [(LEFT, MIDDLE), (MIDDLE, RIGHT)].map(|(from, to)| {
        bridge.copy(from, to);
        bridge.send_next()
    });
    if have_come {
        copies.into_iter().for_each(|copy| bridge.receive(copy));
        bridge.report_all();
    }
    bridge.lose(lost);
    bridge.tell(lost);
    bridge.report_all();
    assert_same_in_the_end(&mut bridge);
}

#[test]
fn what_copies_have_written_that_read_what_is_lost_is_sent_as_pixels() {
    copies_that_were_sent_of_what_is_lost(false);
}

#[test]
fn what_copies_will_write_that_have_come_and_wait_for_what_is_lost_is_sent_as_pixels() {
    copies_that_were_sent_of_what_is_lost(true);
}

#[test]
fn a_copy_that_was_taken_before_its_source_was_lost_is_sent_as_pixels_behind_it() {
    let mut bridge = with_a_picture();
    bridge.noise(LEFT);
    let lost = bridge.send_next();
    bridge.copy(LEFT, MIDDLE);
    let copy = bridge.source.next(&bridge.screen).unwrap();
    assert_eq!(copy.reads(), Some(LEFT));
    bridge.lose(lost);
    bridge.tell(lost);
    bridge.report_all();
    bridge.transmit(copy);
    assert_same_in_the_end(&mut bridge);
}

#[test]
fn what_a_lost_piece_superseded_is_not_painted_over_what_is_sent_for_it() {
    let mut bridge = with_a_picture();
    bridge.fill(MIDDLE, 1);
    let first = bridge.send_next();
    bridge.fill(MIDDLE, 2);
    let lost = bridge.send_next();
    bridge.lose(lost);
    bridge.tell(lost);
    bridge.report_all();
    let again = bridge.send_next();
    bridge.receive(again);
    // The piece was on its way when it was cancelled.
    bridge.receive(first);
    assert_same_in_the_end(&mut bridge);
}

#[test]
fn what_is_lost_and_comes_all_the_same_is_not_painted_over_what_is_sent_for_it() {
    let mut bridge = with_a_picture();
    bridge.fill(MIDDLE, 1);
    let lost = bridge.send_next();
    bridge.fill(MIDDLE, 2);
    bridge.lose(lost);
    bridge.report_all();
    let again = bridge.send_next();
    bridge.receive(again);
    bridge.receive(lost);
    assert_same_in_the_end(&mut bridge);
}

#[test]
fn a_part_that_was_painted_over_before_a_piece_was_lost_is_sent_with_the_rest() {
    let mut bridge = with_a_picture();
    bridge.noise(MIDDLE);
    let lost = bridge.send_next();
    bridge.fill(Rect { width: 10, ..MIDDLE }, 7);
    let over = bridge.send_next();
    bridge.receive(over);
    bridge.lose(lost);
    bridge.tell(lost);
    bridge.report_all();
    assert_same_in_the_end(&mut bridge);
}

#[test]
fn what_a_copy_reads_that_has_come_and_waits_is_not_painted_over_before() {
    let mut bridge = with_a_picture();
    bridge.noise(Rect { width: 20, ..LEFT });
    let first = bridge.send_next();
    bridge.copy(LEFT, MIDDLE);
    let copy = bridge.send_next();
    bridge.receive(copy);
    bridge.report_all();
    // The half that the first piece does not write.
    bridge.noise(Rect { x: 20, width: 20, ..LEFT });
    let over = bridge.send_next();
    bridge.receive(over);
    bridge.receive(first);
    assert_same_in_the_end(&mut bridge);
}

#[test]
fn what_a_copy_reads_that_has_come_and_waits_is_not_superseded() {
    let mut bridge = with_a_picture();
    bridge.noise(LEFT);
    let first = bridge.send_next();
    bridge.copy(LEFT, MIDDLE);
    let copy = bridge.send_next();
    bridge.receive(copy);
    bridge.report_all();
    bridge.noise(LEFT);
    let over = bridge.send_next();
    bridge.receive(over);
    bridge.receive(first);
    assert_same_in_the_end(&mut bridge);
}

#[test]
fn a_new_size_that_has_come_and_waits_is_told_again_to_the_next_connection() {
    let mut bridge = with_a_picture();
    bridge.noise(LEFT);
    bridge.send_next();
    bridge.screen.resize(300, 20).unwrap();
    bridge.source.resize(&bridge.screen).unwrap();
    let size = bridge.send_next();
    bridge.receive(size);
    bridge.report_all();
    bridge.reconnect();
    assert_same_in_the_end(&mut bridge);
}

#[test]
fn what_has_come_and_waits_for_what_is_painted_over_is_not_painted_late() {
    let mut bridge = with_a_picture();
    let at = |x, width| Rect { x, width, ..LEFT };
    bridge.noise(at(0, 30));
    let first = bridge.send_next();
    bridge.noise(at(20, 30));
    let second = bridge.send_next();
    // The third piece writes over all of the first piece and a part of the second, so the second must come
    // first.
    bridge.noise(at(0, 30));
    bridge.send_next();
    bridge.receive(second);
    bridge.report_all();
    bridge.noise(at(40, 10));
    let over = bridge.send_next();
    bridge.receive(over);
    bridge.tell_or_receive(first);
    assert_same_in_the_end(&mut bridge);
}

#[test]
fn a_flood_of_new_sizes_keeps_framebuffers_within_their_bound() {
    let (mut bridge, mut refused) = (Bridge::new(6, None), 0);
    for _ in 0..40 {
        let width = 1 + bridge.below(65_535);
        let height = bridge.below((2 * MAX_PIXELS as u64 / width).min(65_536));
        let is_too_large = width * height > MAX_PIXELS as u64;
        let (width, height) = (width as u16, height as u16);
        let size =
            Piece { update: 0, superseded: Vec::new(), body: PieceBody::Size { width, height } };
        assert_eq!(bridge.painter.paint(0, &size.encode()).is_err(), is_too_large);
        assert_eq!(bridge.screen.resize(width, height).is_err(), is_too_large);
        bridge.source.resize(&bridge.screen).unwrap();
        for held in [bridge.painter.screen(), &bridge.screen, bridge.source.shown()] {
            assert!(held.bytes() <= MAX_FRAMEBUFFER, "{} bytes", held.bytes());
        }
        refused += usize::from(is_too_large);
    }
    assert!((1..40).contains(&refused), "{refused}");
}

#[test]
fn what_did_not_change_is_not_sent() {
    let mut bridge = Bridge::new(1, None);
    bridge.settle();
    bridge.source.painted(Rect::new(0, 0, 200, 150));
    assert!(!bridge.send());
    // The change of one pixel, for which the whole screen was reported.
    bridge.screen.fill(Rect::new(70, 80, 1, 1), 0x00ff_0000);
    bridge.source.painted(Rect::new(0, 0, 200, 150));
    let piece = bridge.source.next(&bridge.screen).unwrap();
    assert!(piece.data.len() < 30, "{} bytes", piece.data.len());
    assert!(bridge.source.next(&bridge.screen).is_none());
}

#[test]
fn scrolling_is_sent_as_a_copy() {
    let mut bridge = Bridge::new(2, None);
    for row in 0..150 {
        bridge.screen.fill(Rect::new(0, row, 200, 1), u32::from(row) * 77_777);
    }
    bridge.source.painted(bridge.screen.bounds());
    bridge.settle();
    let (from, to) = (Rect::new(0, 10, 200, 140), Rect::new(0, 0, 200, 140));
    bridge.screen.copy(from, to);
    bridge.source.copied(from, to);
    let piece = bridge.source.next(&bridge.screen).unwrap();
    assert!(piece.data.len() < 30, "{} bytes", piece.data.len());
    bridge.transmit(piece);
    assert!(!bridge.send());
    bridge.settle();
    assert!(bridge.painter.screen() == &bridge.screen);
}

#[test]
fn a_part_that_changes_all_the_time_does_not_hold_up_the_rest() {
    let mut bridge = Bridge::new(3, None);
    bridge.settle();
    let rest = Rect::new(128, 128, 1, 1);
    bridge.fill(rest, 5);
    for round in 0..20 {
        // Noise in four cells, which takes more than one piece.
        bridge.noise(Rect::new(0, 0, 100, 100));
        bridge.send();
        while !bridge.is_settled() {
            bridge.deliver();
        }
        if bridge.painter.screen().pixel(128, 128) == Some(5) {
            assert!(round < 10);
            return;
        }
    }
    panic!("the rest is never sent");
}

/// The colours that a viewer sees at once while five updates of the whole screen are on their way, each of
/// pieces in four places.
fn colours_at_once(order: UpdateOrder, seed: u64) -> BTreeSet<Vec<u32>> {
    const PLACES: [(u16, u16); 4] = [(0, 0), (64, 0), (0, 64), (64, 64)];
    let mut bridge = Bridge::with_order(seed, None, order);
    bridge.settle();
    for update in 1..=5 {
        bridge.source.begin_update();
        for (x, y) in PLACES {
            let rect = Rect::new(x, y, 64, 64);
            bridge.fill(rect, update);
            bridge.send_next();
        }
    }
    let mut seen = BTreeSet::new();
    while !bridge.is_settled() {
        bridge.deliver();
        let colours = PLACES.map(|(x, y)| bridge.painter.screen().pixel(x, y).unwrap());
        seen.insert(BTreeSet::from(colours).into_iter().collect());
    }
    seen
}

#[test]
fn fences_let_nobody_see_a_part_of_an_update_before_all_of_the_former() {
    let mut torn = 0;
    for seed in 0..50 {
        for colours in colours_at_once(UpdateOrder::Fences, seed) {
            let [first, .., last] = colours[..] else { continue };
            assert_eq!((colours.len(), last - first), (2, 1), "{colours:?}");
        }
        let torn_by = |colours: &Vec<u32>| colours[colours.len() - 1] - colours[0] > 1;
        torn += colours_at_once(UpdateOrder::Geometry, seed).iter().filter(|c| torn_by(c)).count();
    }
    assert!(torn > 0, "geometry alone tears too");
}

/// A line of text below what has scrolled waits for the scrolling in any case, and a mark elsewhere is not worth a
/// packet.
#[test]
fn what_must_come_after_a_copy_is_in_its_piece_and_what_is_small() {
    let mut bridge = with_a_picture();
    bridge.copy(LEFT, MIDDLE);
    let (line, mark) = (Rect { y: 30, height: 10, ..MIDDLE }, Rect::new(0, 100, 8, 8));
    bridge.fill(line, 7);
    bridge.fill(mark, 7);
    bridge.noise(Rect { y: 100, ..RIGHT });
    let both = bridge.source.next(&bridge.screen).unwrap();
    assert_eq!(both.reads(), Some(LEFT));
    assert_eq!(both.writes(), [MIDDLE, line, mark]);
    bridge.transmit(both);
    let apart = bridge.source.next(&bridge.screen).unwrap();
    assert_eq!((apart.reads(), apart.after()), (None, &[][..]));
    bridge.transmit(apart);
    assert_same_in_the_end(&mut bridge);
}

/// Were the new pixels below painted with the first copy, the second would copy them.
#[test]
fn pixels_that_a_later_copy_reads_are_not_painted_before_it() {
    let mut bridge = with_a_picture();
    let below = Rect { y: 100, ..LEFT };
    bridge.noise(below);
    bridge.settle();
    bridge.copy(LEFT, MIDDLE);
    bridge.copy(below, RIGHT);
    bridge.fill(below, 9);
    bridge.fill(LEFT, 9);
    let first = bridge.send_next();
    let second = bridge.source.next(&bridge.screen).unwrap();
    assert_eq!(second.writes(), [RIGHT, LEFT, below]);
    let second = bridge.transmit(second);
    assert_eq!(bridge.source.shown().pixel(RIGHT.x, 0), bridge.screen.pixel(RIGHT.x, 0));
    bridge.receive(second);
    bridge.receive(first);
    assert_same_in_the_end(&mut bridge);
}

#[test]
fn copies_that_depend_on_each_other_are_one_piece() {
    let mut bridge = with_a_picture();
    bridge.copy(LEFT, MIDDLE);
    bridge.copy(MIDDLE, RIGHT);
    bridge.fill(LEFT, 9);
    let all = bridge.source.next(&bridge.screen).unwrap();
    assert_eq!(all.writes(), [MIDDLE, RIGHT, LEFT]);
    assert_eq!(all.reads(), Some(LEFT.around(MIDDLE)));
    bridge.transmit(all);
    assert!(!bridge.source.has_changes());
    assert_same_in_the_end(&mut bridge);
}

/// However much changes, a bounded part of it is sent in the form that takes long.
#[test]
fn most_of_a_large_update_is_sent_as_tiles() {
    let mut bridge = Bridge::new(5, None);
    bridge.resize(2000, 1000);
    bridge.settle();
    let bounds = bridge.screen.bounds();
    for y in 0..bounds.height {
        let row = bridge.screen.columns_mut(0, y, bounds.width);
        for (x, pixel) in (0_u32..).zip(row) {
            *pixel = (x * x + 7 * u32::from(y)) / 5 % 3;
        }
    }
    bridge.source.painted(bounds);
    bridge.source.begin_update();
    let (mut drawn, mut tiles) = (0, 0);
    while let Some(piece) = bridge.source.next(&bridge.screen) {
        let area: usize = piece.writes().iter().map(|rect| rect.area()).sum();
        let PieceBody::Pixels(pixels) = Piece::decode(&piece.data).unwrap().body else { continue };
        drawn += if pixels.drawings.is_some() { area } else { 0 };
        tiles += if pixels.tiles.is_some() { area } else { 0 };
        bridge.transmit(piece);
    }
    assert!((1 << 17..1 << 19).contains(&drawn), "{drawn}");
    assert!(tiles > 1_000_000, "{tiles}");
    assert_same_in_the_end(&mut bridge);
}

/// A terminal of an RFB server that sends pixels only.
#[test]
fn what_scrolls_is_copied_though_nobody_says_so() {
    let mut bridge = Bridge::new(8, None);
    let line = |number: u32, bridge: &mut Bridge| {
        for y in 0..8 {
            for (x, pixel) in (0_u32..).zip(bridge.screen.columns_mut(0, 140 + y, 200)) {
                let row = number * 8 + u32::from(y) + 11;
                *pixel = (row * (x / 4 + 7)).wrapping_mul(0x9e37_79b1) >> 31;
            }
        }
    };
    for number in 0..30 {
        line(number, &mut bridge);
        bridge.screen.copy(Rect::new(0, 10, 200, 140), Rect::new(0, 0, 200, 140));
    }
    bridge.source.painted(bridge.screen.bounds());
    bridge.settle();
    line(31, &mut bridge);
    bridge.screen.copy(Rect::new(0, 10, 200, 140), Rect::new(0, 0, 200, 140));
    bridge.source.painted(bridge.screen.bounds());
    bridge.source.begin_update();
    let piece = bridge.source.next(&bridge.screen).unwrap();
    assert!(piece.reads().is_some_and(|read| read.height > 100), "{piece:?}");
    bridge.transmit(piece);
    assert!(bridge.source.next(&bridge.screen).is_none());
    assert_same_in_the_end(&mut bridge);
}
