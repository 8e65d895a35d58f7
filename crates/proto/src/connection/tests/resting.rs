//! Memory that is given back when nothing happens.

use super::pair::{Pair, SECOND};
use crate::Side;

/// What the lists of an end hold for the next burst, in elements.
fn held(pair: &mut Pair, side: Side) -> usize {
    let connection = pair.end(side).conn();
    connection.events.capacity() + connection.settled.acked.capacity()
}

#[test]
fn silence_gives_back_what_a_burst_needed_each_time() {
    let mut pair = Pair::connected();
    for _ in 0..2 {
        pair.carry(Side::Client, 200_000);
        assert!(held(&mut pair, Side::Client) > 0);
        pair.run_for(5 * SECOND);
        assert_eq!(held(&mut pair, Side::Client), 0);
        for side in [Side::Client, Side::Server] {
            // A connection that rests is not woken for it again and again.
            assert_eq!(pair.end(side).conn().rest.timeout(), None);
        }
    }
}
