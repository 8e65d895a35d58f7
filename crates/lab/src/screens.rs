//! Recordings of remote desktops: the pieces of a screen that the bridge of `sutura vnc` sends, with their
//! times.
//!
//! A line is a piece of an update: milliseconds since the first, the number of the update, bytes, the
//! rectangle that it copies from (empty if it paints), and the rectangles that it writes; a rectangle is
//! `x:y:width:height`. `interop/vnc.sh --record` makes them of a TigerVNC server.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use sutura_sim::{Before, Update};

/// Columns and rows of the cells in which pieces are taken to meet.
const CELL: u32 = 64;
/// Most messages that one can name.
const MAX_AFTER: usize = 32;

/// The recordings, by name.
pub const SCENES: [(&str, &str); 4] = [
    ("typing", include_str!("../data/screens/typing.csv")),
    ("scrolling", include_str!("../data/screens/scrolling.csv")),
    ("film", include_str!("../data/screens/film.csv")),
    ("dragging", include_str!("../data/screens/dragging.csv")),
];

/// Why a recording cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the recording is not a piece of a screen: `{text}`")]
pub struct RecordingError {
    /// The number of the line, from 1.
    pub line: usize,
    /// Its text.
    pub text: String,
}

type Cell = (u32, u32);

/// The last accesses to a cell.
#[derive(Clone, Debug, Default)]
struct Touched {
    writer: Option<u64>,
    readers: Vec<u64>,
}

/// A piece of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Piece {
    at: Duration,
    update: u64,
    size: usize,
    reads: Vec<Cell>,
    writes: Vec<Cell>,
}

/// Reads a recording. The pieces that a piece comes after follow from the cells that it writes and copies
/// from.
///
/// # Errors
/// A line is not in the format.
pub fn parse(text: &str) -> Result<Vec<Update>, RecordingError> {
    let mut updates: Vec<Update> = Vec::new();
    let mut cells = HashMap::<Cell, Touched>::new();
    let (mut number, mut fence, mut last) = (0, 0, None);
    for (index, line) in text.lines().enumerate() {
        let piece =
            piece(line).ok_or_else(|| RecordingError { line: index + 1, text: line.to_owned() })?;
        if last.replace(piece.update) != Some(piece.update) {
            updates.push(Update { at: piece.at, ..Update::default() });
        }
        let mut before = order(&piece, number, &mut cells);
        before.after.retain(|&first| first >= fence);
        if before.after.len() > MAX_AFTER {
            before = Before { fence: true, after: Vec::new() };
            fence = number;
        }
        if let Some(update) = updates.last_mut() {
            update.messages.push(piece.size);
            update.before.push(before);
        }
        number += 1;
    }
    Ok(updates)
}

/// The pieces that a piece comes after: the last writers of cells that it reads or writes, and the readers of
/// cells that it writes.
fn order(piece: &Piece, number: u64, cells: &mut HashMap<Cell, Touched>) -> Before {
    let mut after = BTreeSet::new();
    for cell in &piece.reads {
        let touched = cells.entry(*cell).or_default();
        after.extend(touched.writer);
        touched.readers.push(number);
    }
    for cell in &piece.writes {
        let touched = cells.entry(*cell).or_default();
        after.extend(touched.writer);
        after.extend(touched.readers.drain(..));
        touched.writer = Some(number);
    }
    after.remove(&number);
    Before { after: after.into_iter().collect(), fence: false }
}

fn piece(line: &str) -> Option<Piece> {
    let mut fields = line.split(',');
    let mut next = || fields.next();
    let (millis, update, size) =
        (next()?.parse().ok()?, next()?.parse().ok()?, next()?.parse().ok()?);
    let (reads, writes) = (touched(next()?)?, touched(next()?)?);
    let complete = !writes.is_empty() && next().is_none();
    complete.then_some(Piece { at: Duration::from_millis(millis), update, size, reads, writes })
}

/// The cells that rectangles touch.
fn touched(text: &str) -> Option<Vec<Cell>> {
    let mut cells = BTreeSet::new();
    for rect in text.split_whitespace() {
        let numbers: Vec<u16> = rect.split(':').map(str::parse).collect::<Result<_, _>>().ok()?;
        let [x, y, width, height] = *numbers.iter().map(|&n| u32::from(n)).collect::<Vec<_>>()
        else {
            return None;
        };
        let (right, bottom) = ((x + width).div_ceil(CELL), (y + height).div_ceil(CELL));
        let rows = y / CELL..bottom;
        cells.extend(rows.flat_map(|row| (x / CELL..right).map(move |column| (column, row))));
    }
    Some(cells.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_that_meet_are_in_order() {
        let text = "\
0,1,100,,0:0:64:64
0,1,200,,64:0:64:64
16,2,20,0:0:60:60,64:10:60:50
33,3,30,,0:0:10:10
33,3,40,,0:70:10:10 70:0:1:1
";
        let updates = parse(text).unwrap();
        let at: Vec<u128> = updates.iter().map(|update| update.at.as_millis()).collect();
        assert_eq!(at, [0, 16, 33]);
        assert_eq!(updates[0].messages, [100, 200]);
        let after: Vec<Vec<u64>> =
            updates.iter().flat_map(|u| &u.before).map(|b| b.after.clone()).collect();
        // The copy comes after the pieces that wrote its source and its target; then the source may change.
        assert_eq!(after, [vec![], vec![], vec![0, 1], vec![0, 2], vec![2]]);
    }

    #[test]
    fn a_piece_that_meets_too_many_is_behind_a_fence() {
        let mut text: String = (0..40).map(|x| format!("0,1,9,,{}:0:64:64\n", 64 * x)).collect();
        text += "5,2,9,,0:0:2560:1\n9,3,9,,0:0:1:1\n";
        let updates = parse(&text).unwrap();
        assert_eq!(updates[1].before, [Before { after: vec![], fence: true }]);
        assert_eq!(updates[2].before, [Before { after: vec![40], fence: false }]);
    }

    #[test]
    fn a_line_that_is_no_piece_is_named() {
        for line in ["", "1", "1,2,3,,", "1,2,3,,4:5:6", "1,2,x,,0:0:1:1", "1,2,3,,0:0:1:1,4"] {
            let error = parse(&format!("0,1,100,,0:0:64:64\n{line}\n")).unwrap_err();
            assert_eq!(error, RecordingError { line: 2, text: line.to_owned() });
        }
    }

    #[test]
    fn the_recordings_are_whole() {
        for (name, text) in SCENES {
            let updates = parse(text).unwrap();
            let last = updates.last().unwrap().at;
            assert!(updates.len() > 50 && last > Duration::from_secs(5), "{name}");
            assert!(updates.windows(2).all(|two| two[0].at <= two[1].at), "{name}");
        }
    }
}
