//! Rectangles of few colours, such as text and windows, in few bytes.
//!
//! All drawings of a piece are one string of bits for a [range coder](super::code), whose probabilities begin
//! anew with each piece and follow what was coded. A drawing is
//!
//! - its place, as differences from the one before it;
//! - its colours, the most frequent first: their number less 1, and for each whether it is one of the recent
//!   colours of the piece and which, or red, green and blue, or one byte if these are equal;
//! - if they are more than one, for each row whether it is like the row above, and otherwise its pixels: whether a
//!   pixel is like the one to its left, above, above on the right, above on the left, as far as these differ,
//!   and otherwise the bits of its place among the colours. The probabilities are those that the colours of
//!   the pixels around it had before, in smaller and larger neighbourhoods.

use super::code::{
    Adaptive, Coder, Contexts, Mixer, Number, RangeDecoder, RangeEncoder, Table, raw,
};
use super::tile::TileError;
use crate::framebuffer::Framebuffer;
use crate::rect::Rect;

/// Most colours of a drawing.
pub const MAX_COLOURS: usize = 64;
/// Most pixels of a drawing that has more than one colour.
pub const MAX_PIXELS: usize = 1 << 15;
/// Most drawings of a piece.
pub const MAX_DRAWINGS: usize = 256;
/// Colours of a piece that are remembered.
const RECENT: usize = 64;
/// Pixels around a drawing that are taken to have its first colour.
const MARGIN: usize = 3;

/// Writes the drawings of a piece.
#[derive(Debug)]
pub struct DrawingWriter {
    coder: RangeEncoder,
    state: DrawingState,
    count: usize,
}

impl DrawingWriter {
    pub fn new() -> Self {
        Self { coder: RangeEncoder::new(), state: DrawingState::default(), count: 0 }
    }

    /// Bytes so far.
    pub fn len(&self) -> usize {
        self.coder.len()
    }

    pub fn is_full(&self) -> bool {
        self.count == MAX_DRAWINGS
    }

    /// Appends a rectangle of the screen, which has these colours, the most frequent first.
    pub fn push(&mut self, screen: &Framebuffer, rect: Rect, colours: &[u32]) {
        debug_assert!(self.count < MAX_DRAWINGS && !colours.is_empty());
        self.count += 1;
        let coder = &mut self.coder;
        self.state.more.code(coder, true);
        self.state.place(coder, rect);
        let mut colours = colours.to_vec();
        self.state.colours(coder, &mut colours);
        if colours.len() > 1 {
            let mut canvas = Canvas::of(screen, rect, &colours);
            self.state.pixels(coder, &mut canvas, colours.len());
        }
    }

    /// All drawings.
    pub fn finish(mut self) -> Vec<u8> {
        self.state.more.code(&mut self.coder, false);
        self.coder.finish()
    }
}

/// Paints the drawings of a piece, and returns their places. They have no more than `limit` pixels.
///
/// # Errors
/// They are malformed, not within the screen, or too many. What was painted before the fault stays.
pub fn paint(data: &[u8], screen: &mut Framebuffer, limit: usize) -> Result<Vec<Rect>, TileError> {
    let mut coder = RangeDecoder::new(data);
    let (mut state, mut places, mut left) = (DrawingState::default(), Vec::new(), limit);
    while state.more.code(&mut coder, false) {
        let rect = state.place(&mut coder, Rect::default());
        if places.len() == MAX_DRAWINGS || rect.is_empty() || !screen.bounds().contains(rect) {
            return Err(TileError::Outside(rect));
        }
        left = left.checked_sub(rect.area()).ok_or(TileError::Overdraw)?;
        let mut colours = Vec::new();
        state.colours(&mut coder, &mut colours);
        match colours[..] {
            [colour] => screen.fill(rect, colour),
            _ if rect.area() > MAX_PIXELS => return Err(TileError::Outside(rect)),
            _ => {
                let mut canvas = Canvas::new(rect);
                state.pixels(&mut coder, &mut canvas, colours.len());
                canvas.paint(screen, rect, &colours);
            }
        }
        if coder.is_short() {
            return Err(TileError::Short);
        }
        places.push(rect);
    }
    Ok(places)
}

/// The colours of a rectangle, the most frequent first; `None` if it has more than `most`.
pub fn colours(screen: &Framebuffer, rect: Rect, most: usize) -> Option<Vec<u32>> {
    let mut counts: Vec<(u32, usize)> = Vec::new();
    let mut last = 0;
    for &pixel in screen.rows(rect).flatten() {
        match counts.get_mut(last) {
            // Most pixels are like the previous one.
            Some((colour, count)) if *colour == pixel => *count += 1,
            _ => {
                last =
                    counts.iter().position(|&(colour, _)| colour == pixel).unwrap_or(counts.len());
                if last == most {
                    return None;
                }
                if last == counts.len() {
                    counts.push((pixel, 0));
                }
                counts[last].1 += 1;
            }
        }
    }
    counts.sort_unstable_by_key(|&(colour, count)| (std::cmp::Reverse(count), colour));
    Some(counts.into_iter().map(|(colour, _)| colour).collect())
}

/// The places among the colours of a drawing's pixels, with a margin on the left, the right and above.
#[derive(Debug)]
struct Canvas {
    width: usize,
    height: usize,
    cells: Vec<u8>,
}

impl Canvas {
    fn new(rect: Rect) -> Self {
        let (width, height) = (usize::from(rect.width), usize::from(rect.height));
        Self { width, height, cells: vec![0; (width + 2 * MARGIN) * (height + MARGIN)] }
    }

    fn of(screen: &Framebuffer, rect: Rect, colours: &[u32]) -> Self {
        let mut canvas = Self::new(rect);
        let (mut known, mut place) = (colours[0], 0);
        for (row, pixels) in screen.rows(rect).enumerate() {
            for (cell, &pixel) in canvas.row_mut(row).iter_mut().zip(pixels) {
                if pixel != known {
                    known = pixel;
                    place = colours.iter().position(|&colour| colour == pixel).unwrap_or_default();
                }
                *cell = place as u8;
            }
        }
        canvas
    }

    fn stride(&self) -> usize {
        self.width + 2 * MARGIN
    }

    /// Where the pixels of a row begin.
    fn start(&self, row: usize) -> usize {
        (row + MARGIN) * self.stride() + MARGIN
    }

    fn row_mut(&mut self, row: usize) -> &mut [u8] {
        let start = self.start(row);
        &mut self.cells[start..start + self.width]
    }

    /// Whether a row is like the one above it.
    fn repeats(&self, row: usize) -> bool {
        let start = self.start(row);
        let above = start - self.stride();
        self.cells[start..start + self.width] == self.cells[above..above + self.width]
    }

    fn repeat(&mut self, row: usize) {
        let start = self.start(row);
        let above = start - self.stride();
        self.cells.copy_within(above..above + self.width, start);
    }

    fn paint(&mut self, screen: &mut Framebuffer, rect: Rect, colours: &[u32]) {
        for (row, y) in (rect.y..).take(rect.height.into()).enumerate() {
            let cells = self.row_mut(row);
            for (pixel, &cell) in screen.columns_mut(rect.x, y, rect.width).iter_mut().zip(&*cells)
            {
                *pixel = colours.get(usize::from(cell)).copied().unwrap_or_default();
            }
        }
    }
}

/// The pixels around a pixel that are known before it.
struct Around {
    /// Left, above, above on the right, above on the left.
    next: [u8; 4],
    /// Hashes of neighbourhoods, the smallest first.
    contexts: Contexts,
}

impl Around {
    fn new(cells: &[u8], stride: usize, at: usize) -> Self {
        let above = &cells[at - stride - 3..at - stride + 4];
        let second = &cells[at - 2 * stride - 2..at - 2 * stride + 3];
        let [www, ww, w] = [cells[at - 3], cells[at - 2], cells[at - 1]];
        let [nwww, nww, nw, n, ne, nee, neee] = *above else { return Self::nothing() };
        let [nnww, nnw, nn, nne, nnee] = *second else { return Self::nothing() };
        let nnn = cells[at - 3 * stride];
        let alike = [w == n, w == nw, n == nw, n == ne, w == ww, n == nn, w == ne, nw == nn];
        let alike = alike.iter().fold(1, |all, &same| all << 1 | u32::from(same));
        let small = hash(2, &[w, n, nw, ne]);
        let middle = hash(small, &[ww, nn, nee, nww]);
        let large = hash(middle, &[www, nnw, nne, nnn, nwww, neee, nnww, nnee]);
        Self { next: [w, n, ne, nw], contexts: [alike, small, middle, large] }
    }

    fn nothing() -> Self {
        Self { next: [0; 4], contexts: [0; 4] }
    }

    /// The contexts of one of several questions about a pixel.
    fn ask(&self, question: u32) -> Contexts {
        self.contexts.map(|context| context.wrapping_add(question).wrapping_mul(0x2545_f491))
    }
}

fn hash(start: u32, values: &[u8]) -> u32 {
    values.iter().fold(start, |all, &value| {
        (all ^ u32::from(value)).wrapping_add(0x7f4a_7c15).wrapping_mul(0x85eb_ca6b).rotate_left(13)
    })
}

/// What both ends know of the drawings of a piece so far.
#[derive(Debug)]
struct DrawingState {
    more: Adaptive,
    last: Rect,
    x: Number,
    y: Number,
    width: Number,
    height: Number,
    count: Number,
    recent: Vec<u32>,
    is_recent: Adaptive,
    which: Number,
    is_grey: Adaptive,
    repeats: [Adaptive; 2],
    /// Only for drawings that have pixels.
    table: Option<Table>,
    /// For each question about a pixel, and for its bits.
    mixers: [Mixer; 5],
}

impl Default for DrawingState {
    fn default() -> Self {
        Self {
            more: Adaptive::EVEN,
            last: Rect::default(),
            x: Number::default(),
            y: Number::default(),
            width: Number::default(),
            height: Number::default(),
            count: Number::default(),
            recent: vec![0xff_ffff, 0],
            is_recent: Adaptive::EVEN,
            which: Number::default(),
            is_grey: Adaptive::EVEN,
            repeats: [Adaptive::EVEN; 2],
            table: None,
            mixers: [Mixer::default(); 5],
        }
    }
}

impl DrawingState {
    fn place(&mut self, coder: &mut impl Coder, rect: Rect) -> Rect {
        let last = self.last;
        let mut side = |number: &mut Number, new: u16, old: u16| {
            let by = number.signed(coder, i32::from(new) - i32::from(old));
            // What does not fit is outside of any screen.
            u16::try_from(i32::from(old) + by).unwrap_or(u16::MAX)
        };
        let (x, y) = (side(&mut self.x, rect.x, last.x), side(&mut self.y, rect.y, last.y));
        let width = side(&mut self.width, rect.width, last.width);
        let height = side(&mut self.height, rect.height, last.height);
        self.last = Rect { x, y, width, height };
        self.last
    }

    /// Codes at most [`MAX_COLOURS`] colours, and one at least.
    fn colours(&mut self, coder: &mut impl Coder, colours: &mut Vec<u32>) {
        let count = self.count.code(coder, (colours.len() as u32).saturating_sub(1)) as usize + 1;
        colours.resize(count.min(MAX_COLOURS), 0);
        for colour in colours {
            *colour = self.colour(coder, *colour);
        }
    }

    fn colour(&mut self, coder: &mut impl Coder, colour: u32) -> u32 {
        let place = self.recent.iter().rposition(|&recent| recent == colour);
        let back = place.map(|place| self.recent.len() - 1 - place);
        let colour = if self.is_recent.code(coder, back.is_some()) {
            let back = self.which.code(coder, back.unwrap_or_default() as u32) as usize;
            let place = (self.recent.len() - 1).saturating_sub(back);
            self.recent.remove(place)
        } else {
            let byte = colour & 0xff;
            if self.is_grey.code(coder, colour == byte * 0x0001_0101) {
                raw(coder, byte, 8) * 0x0001_0101
            } else {
                raw(coder, colour, 24)
            }
        };
        if self.recent.len() == RECENT {
            self.recent.remove(0);
        }
        self.recent.push(colour);
        colour
    }

    fn pixels(&mut self, coder: &mut impl Coder, canvas: &mut Canvas, colours: usize) {
        let mut repeated = false;
        for row in 0..canvas.height {
            let repeats = &mut self.repeats[usize::from(repeated)];
            repeated = repeats.code(coder, canvas.repeats(row));
            if repeated {
                canvas.repeat(row);
            } else {
                self.row(coder, canvas, row, colours);
            }
        }
    }

    fn row(&mut self, coder: &mut impl Coder, canvas: &mut Canvas, row: usize, colours: usize) {
        let table = self.table.get_or_insert_with(Table::new);
        let (start, stride) = (canvas.start(row), canvas.stride());
        for at in start..start + canvas.width {
            let around = Around::new(&canvas.cells, stride, at);
            let cell = canvas.cells[at];
            canvas.cells[at] = pixel(&mut self.mixers, table, coder, &around, cell, colours);
        }
    }
}

/// Codes a pixel's place among the colours.
fn pixel(
    mixers: &mut [Mixer; 5],
    table: &mut Table,
    coder: &mut impl Coder,
    around: &Around,
    cell: u8,
    colours: usize,
) -> u8 {
    let [bits, questions @ ..] = mixers;
    let mut excluded = 0_u64;
    for (question, (mixer, &other)) in (1..).zip(questions.iter_mut().zip(&around.next)) {
        if excluded >> other & 1 == 1 {
            continue;
        }
        if mixer.code(table, coder, &around.ask(question), cell == other) {
            return other;
        }
        excluded |= 1 << other;
        // One colour is left.
        if excluded.count_ones() as usize + 1 == colours {
            return (!excluded).trailing_zeros() as u8;
        }
    }
    let places = usize::BITS - (colours - 1).leading_zeros();
    let mut node = 1;
    for place in (0..places).rev() {
        let contexts = around.ask(node << 8);
        let bit = bits.code(table, coder, &contexts, cell >> place & 1 == 1);
        node = 2 * node + u32::from(bit);
    }
    (node - (1 << places)).min(colours as u32 - 1) as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Fills a rectangle with some of these colours, in a pattern or at random.
    fn picture(screen: &mut Framebuffer, rect: Rect, colours: u32, seed: u32, random: bool) {
        let mut state = seed | 1;
        for (row, y) in (rect.y..).take(rect.height.into()).enumerate() {
            for (column, pixel) in screen.columns_mut(rect.x, y, rect.width).iter_mut().enumerate()
            {
                state = state.wrapping_mul(0x2c92_77b5).wrapping_add(0x0ac5_64b1);
                let number =
                    if random { state >> 16 } else { (row * 7 + column * column) as u32 + seed };
                *pixel = (number % colours).wrapping_mul(0x0005_0b17) & 0x00ff_ffff;
            }
        }
    }

    fn any_drawings() -> impl Strategy<Value = Vec<(Rect, u32, u32, bool)>> {
        let rect = (0..60u16, 0..20u16, 1..=140u16, 1..=100u16)
            .prop_map(|(x, y, w, h)| Rect::new(x, y, w, h));
        proptest::collection::vec((rect, 1..=64u32, any::<u32>(), any::<bool>()), 1..6)
    }

    fn blank() -> Framebuffer {
        Framebuffer::new(200, 120).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        #[test]
        fn drawings_are_painted_as_they_were(drawings in any_drawings()) {
            let (mut screen, mut writer, mut expected) = (blank(), DrawingWriter::new(), Vec::new());
            for (rect, number, seed, random) in drawings {
                picture(&mut screen, rect, number, seed, random);
                let colours = colours(&screen, rect, MAX_COLOURS).unwrap();
                writer.push(&screen, rect, &colours);
                expected.push(rect);
            }
            let bytes = writer.finish();
            let mut copy = blank();
            prop_assert_eq!(paint(&bytes, &mut copy, usize::MAX), Ok(expected));
            prop_assert!(copy == screen, "the pictures differ");
        }

        #[test]
        fn any_bytes_paint_no_more_than_they_may(bytes: Vec<u8>, limit in 0..30_000_usize) {
            let mut screen = blank();
            if let Ok(places) = paint(&bytes, &mut screen, limit) {
                prop_assert!(places.len() <= MAX_DRAWINGS);
                prop_assert!(places.iter().map(|place| place.area()).sum::<usize>() <= limit);
            }
        }

        #[test]
        fn drawings_that_are_cut_off_are_refused_or_other_pixels(end in 0..60_usize) {
            let mut screen = blank();
            let rect = Rect::new(3, 4, 64, 48);
            picture(&mut screen, rect, 8, 77, true);
            let mut writer = DrawingWriter::new();
            writer.push(&screen, rect, &colours(&screen, rect, 8).unwrap());
            let bytes = writer.finish();
            prop_assert!(bytes.len() > 1000);
            let mut copy = blank();
            prop_assert!(paint(&bytes[..end], &mut copy, usize::MAX).is_err());
        }
    }

    #[test]
    fn colours_are_counted_up_to_a_number_of_them() {
        let mut screen = blank();
        screen.fill(Rect::new(0, 0, 3, 1), 5);
        screen.fill(Rect::new(3, 0, 1, 1), 6);
        let rect = Rect::new(0, 0, 10, 1);
        assert_eq!(colours(&screen, rect, 3), Some(vec![0, 5, 6]));
        assert_eq!(colours(&screen, rect, 2), None);
    }

    #[test]
    fn too_many_or_too_large_drawings_are_refused() {
        let mut screen = Framebuffer::new(300, 300).unwrap();
        let mut writer = DrawingWriter::new();
        (0..MAX_DRAWINGS).for_each(|_| writer.push(&screen, Rect::new(0, 0, 1, 1), &[1]));
        assert!(writer.is_full());
        // One more than a writer may write.
        writer.count = 0;
        writer.push(&screen, Rect::new(0, 0, 1, 1), &[1]);
        let refused = paint(&writer.finish(), &mut screen, usize::MAX);
        assert_eq!(refused, Err(TileError::Outside(Rect::new(0, 0, 1, 1))));
        let whole = screen.bounds();
        screen.fill(Rect::new(0, 0, 1, 1), 5);
        for (rect, colours) in [(whole, vec![0, 5]), (Rect::new(299, 0, 2, 1), vec![0])] {
            let mut writer = DrawingWriter::new();
            writer.push(&screen, rect, &colours);
            let refused = paint(&writer.finish(), &mut screen, usize::MAX);
            assert_eq!(refused, Err(TileError::Outside(rect)));
        }
    }

    /// Text is small: glyphs that come again are known.
    #[test]
    fn glyphs_that_come_again_take_few_bytes() {
        let mut screen = Framebuffer::new(640, 16).unwrap();
        let line = screen.bounds();
        for (place, x) in (0..640).step_by(8).enumerate() {
            picture(&mut screen, Rect::new(x, 3, 6, 9), 2, (place % 5) as u32 * 9, true);
        }
        let mut writer = DrawingWriter::new();
        writer.push(&screen, line, &colours(&screen, line, MAX_COLOURS).unwrap());
        let bytes = writer.finish().len();
        let mut bitmap = Vec::new();
        crate::bridge::tile::encode(&screen, Rect { width: 64, ..line }, None, &mut bitmap);
        assert!(bytes < 4 * bitmap.len(), "{bytes}");
    }
}
