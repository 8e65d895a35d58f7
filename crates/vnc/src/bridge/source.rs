//! The sending end, which finds the parts of the screen that the other end does not show yet.

use super::WINDOW;
use super::cells::{Cell, Cells, TILE};
use super::drawing::DrawingWriter;
use super::order::{Footprint, Order, Plan, UpdateOrder};
use super::parts::{CellChange, Part, join};
use super::piece::{MAX_COPIES, Piece, PieceBody, Pixels, Tiles};
use super::scroll;
use super::tile;
use crate::framebuffer::{Framebuffer, TooLarge};
use crate::rect::Rect;
use std::collections::VecDeque;

/// A smaller copy is sent as pixels.
const MIN_COPY: usize = 1024;
/// Tiles are collected in a piece until they have this many bytes, which makes about one packet of them.
const PIECE: usize = 4096;
/// Drawings are collected in a piece until they have this many bytes: with what the last one adds they are to
/// fit in a packet.
const DRAWINGS: usize = 700;
/// Of what need not wait for a copy, so many pixels go along with it: a packet of their own would cost more bytes.
const GOES_ALONG: usize = 256;
/// Parts are looked for until they have this many pixels.
const GATHERED: usize = 1 << 15;
/// Pixels of an update that are sent as drawings. Those take much longer than tiles, which are made of the rest.
const MAX_DRAWN: usize = 1 << 18;
const LEVEL: i32 = 1;
/// Where nothing scrolls, one update in 2 to the power of this is searched for what has.
const MOST_RARE: u32 = 4;

/// A piece to send.
#[derive(Debug)]
pub struct Outgoing {
    /// Its bytes.
    pub data: Vec<u8>,
    /// The update that it is part of.
    pub update: u32,
    /// Whether a fence comes before it.
    pub fence: bool,
    /// Whether a fence comes behind it.
    pub then_fence: bool,
    footprint: Footprint,
    plan: Plan,
}

impl Outgoing {
    /// The numbers of the pieces that come before it; at most 32.
    #[must_use]
    pub fn after(&self) -> &[u64] {
        &self.plan.after
    }

    /// The rectangles that it writes.
    #[must_use]
    pub fn writes(&self) -> &[Rect] {
        &self.footprint.writes
    }

    /// The rectangle that it copies from.
    #[must_use]
    pub fn reads(&self) -> Option<Rect> {
        self.footprint.reads
    }
}

/// The sending end: compares the screen with the other end's screen as it will be once all sent pieces are
/// painted.
///
/// Pieces are numbered 0, 1, 2, ... in the order in which [`next`](Self::next) returns them.
#[derive(Debug)]
pub struct Source {
    shown: Framebuffer,
    cells: Cells,
    copies: VecDeque<(Rect, Rect)>,
    /// The other end must be told the size of the screen.
    resized: bool,
    /// The last piece that told it.
    size_piece: Option<u64>,
    quality: Option<u8>,
    order: Order,
    number: u64,
    update: u32,
    /// Pixels of the update that are sent as drawings.
    drawn: usize,
    /// Whether to look for what has scrolled in this update.
    looks: bool,
    /// How often nothing was found.
    misses: u32,
}

/// What a piece is made of.
#[derive(Debug)]
struct Content {
    copies: Vec<(Rect, Rect)>,
    drawings: Option<DrawingWriter>,
    tiles: Vec<u8>,
    footprint: Footprint,
    /// Pixels that may be added: no piece has more than the screen, apart from its copies.
    left: usize,
}

impl Content {
    fn new(copies: Vec<(Rect, Rect)>, screen: &Framebuffer) -> Self {
        // All that lies between what copies read counts as read, which orders more than necessary.
        let reads = copies.iter().map(|&(from, _)| from).reduce(Rect::around);
        let footprint = Footprint { writes: copies.iter().map(|&(_, to)| to).collect(), reads };
        let left = screen.bounds().area();
        Self { copies, drawings: None, tiles: Vec::new(), footprint, left }
    }

    fn has_room(&self, part: &Part) -> bool {
        let is_full = |drawings: &DrawingWriter| drawings.is_full() || drawings.len() >= DRAWINGS;
        self.tiles.len() < PIECE
            && !self.drawings.as_ref().is_some_and(is_full)
            && part.rect.area() <= self.left
    }

    /// Whether a rectangle waits for the same pieces as a copy, or for a copy.
    fn goes_with_copies(&self, rect: Rect) -> bool {
        self.copies.is_empty() || touches(&self.copies, rect)
    }

    /// Adds a part; returns whether it is exact.
    fn add(&mut self, screen: &Framebuffer, part: &Part, quality: Option<u8>) -> bool {
        self.footprint.writes.push(part.rect);
        self.left = self.left.saturating_sub(part.rect.area());
        match &part.colours {
            Some(colours) => {
                let drawings = self.drawings.get_or_insert_with(DrawingWriter::new);
                drawings.push(screen, part.rect, colours);
                true
            }
            None => tile::encode(screen, part.rect, quality, &mut self.tiles),
        }
    }
}

/// Whether copies read or write pixels of a rectangle.
fn touches(copies: &[(Rect, Rect)], rect: Rect) -> bool {
    copies.iter().any(|(from, to)| rect.overlaps(*from) || rect.overlaps(*to))
}

impl Source {
    /// A source of everything that `screen` shows. With a `quality` from 1 to 100, pictures with many colours
    /// are sent lossy first, and exactly once no other part is to be sent.
    ///
    /// # Errors
    /// The screen is too large.
    pub fn new(screen: &Framebuffer, quality: Option<u8>) -> Result<Self, TooLarge> {
        let mut source = Self {
            shown: Framebuffer::new(0, 0)?,
            cells: Cells::new(Rect::default()),
            copies: VecDeque::new(),
            resized: true,
            size_piece: None,
            quality,
            order: Order::default(),
            number: 0,
            update: 0,
            drawn: 0,
            looks: true,
            misses: 0,
        };
        source.resize(screen)?;
        Ok(source)
    }

    /// Has the pieces of different updates ordered otherwise than by geometry. With [`UpdateOrder::Fences`],
    /// the caller must show the source whole updates only, and the next update once all pieces of the last
    /// one are taken.
    #[must_use]
    pub fn with_order(mut self, order: UpdateOrder) -> Self {
        self.order = Order::new(order);
        self
    }

    /// The screen that the other end shows once it has painted all sent pieces, as far as that is known.
    #[must_use]
    pub fn shown(&self) -> &Framebuffer {
        &self.shown
    }

    /// Notes that a rectangle may have changed.
    pub fn painted(&mut self, rect: Rect) {
        self.cells.each(rect, |cell| cell.changed = true);
    }

    /// Notes that `from` was copied to `to`.
    pub fn copied(&mut self, from: Rect, to: Rect) {
        // A copy of pixels that the other end does not show yet would have to be mended afterwards.
        let worth = to.area() >= MIN_COPY && self.copies.len() < MAX_COPIES;
        if worth && self.cells.is_clean(from) {
            self.copies.push_back((from, to));
        } else {
            self.painted(to);
        }
    }

    /// Notes that the screen has another size.
    ///
    /// # Errors
    /// It is too large.
    pub fn resize(&mut self, screen: &Framebuffer) -> Result<(), TooLarge> {
        self.shown.resize(screen.width(), screen.height())?;
        self.cells = Cells::new(screen.bounds());
        self.begin_screen();
        Ok(())
    }

    /// The other end begins with a screen whose contents it lacks.
    fn begin_screen(&mut self) {
        self.copies.clear();
        (self.resized, self.size_piece) = (true, None);
        self.forget(self.shown.bounds());
    }

    /// Begins another update, and returns its number: pieces sent from now on are part of it.
    pub fn begin_update(&mut self) -> u32 {
        self.update = self.update.wrapping_add(1);
        self.drawn = 0;
        // A film does not scroll.
        self.looks = self.update.is_multiple_of(1 << (self.misses / 4).min(MOST_RARE));
        self.update
    }

    /// Whether changes are to be sent, apart from blurred cells.
    #[must_use]
    pub fn has_changes(&self) -> bool {
        self.resized || !self.copies.is_empty() || self.cells.any(|cell| cell.changed)
    }

    /// Whether the other end shows blurred cells.
    #[must_use]
    pub fn is_blurred(&self) -> bool {
        self.cells.any(|cell| cell.blurred)
    }

    /// Whether more pieces may be sent now; false while the oldest piece on its way is too far behind.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !self.order.is_full()
    }

    /// Bytes of pieces on their way.
    #[must_use]
    pub fn bytes_open(&self) -> usize {
        self.order.bytes()
    }

    /// Takes the next piece. Send it before you take another, and then call [`sent`](Self::sent), or
    /// [`unsent`](Self::unsent) if it cannot be sent.
    pub fn next(&mut self, screen: &Framebuffer) -> Option<Outgoing> {
        if std::mem::take(&mut self.resized) {
            let size = PieceBody::Size { width: screen.width(), height: screen.height() };
            let mut piece = self.piece(&size, Footprint::default());
            (piece.fence, piece.plan.fence, piece.then_fence) = (true, true, true);
            return Some(piece);
        }
        let mut copies = self.next_copies();
        // What later copies read must not be written before.
        if !copies.is_empty() && !self.copies.is_empty() {
            return self.finish(Content::new(copies, screen));
        }
        if copies.is_empty() {
            copies.extend(self.find_scrolled(screen));
        }
        self.pixels(screen, |cell| cell.changed, self.quality, copies)
    }

    /// The first copies that wait, as far as they must be made one after the other: a window that is moved may be
    /// several. Those whose source became unknown meanwhile, because a piece that wrote there was not sent or is
    /// lost, are left out: their targets are sent as pixels.
    fn next_copies(&mut self) -> Vec<(Rect, Rect)> {
        let (mut copies, mut left) = (Vec::new(), self.shown.bounds().area());
        while let Some(&(from, to)) = self.copies.front() {
            if !self.cells.all(from, |cell| !cell.unknown) {
                self.copies.pop_front();
                self.forget(to);
                continue;
            }
            let goes_along = copies.is_empty() || touches(&copies, from) || touches(&copies, to);
            if !goes_along || to.area() > left {
                break;
            }
            left -= to.area();
            self.copies.pop_front();
            self.shown.copy(from, to);
            // If the source of a copy is blurred, its target is, too.
            if !self.cells.all(from, |cell| !cell.blurred) {
                self.cells.each(to, |cell| cell.blurred = true);
            }
            copies.push((from, to));
        }
        copies
    }

    /// A copy that nobody reported: the server has sent the pixels.
    fn find_scrolled(&mut self, screen: &Framebuffer) -> Option<(Rect, Rect)> {
        if !std::mem::take(&mut self.looks) {
            return None;
        }
        let region = self.cells.largest(|cell| cell.changed && !cell.unknown && !cell.blurred)?;
        let rect = difference(screen, &self.shown, region)?;
        let found = scroll::find(screen, &self.shown, rect);
        let found =
            found.filter(|&(from, _)| self.cells.all(from, |cell| !cell.unknown && !cell.blurred));
        self.misses = if found.is_some() { 0 } else { self.misses.saturating_add(1) };
        let (from, to) = found?;
        self.shown.copy(from, to);
        Some((from, to))
    }

    /// Takes a piece that makes blurred cells exact, as [`next`](Self::next) does.
    pub fn sharpen(&mut self, screen: &Framebuffer) -> Option<Outgoing> {
        self.pixels(screen, |cell| cell.blurred, None, Vec::new())
    }

    /// A piece of copies and the next cells for which `wanted` holds. With copies, only of those that must come
    /// after one of them in any case, and of small ones.
    fn pixels(
        &mut self,
        screen: &Framebuffer,
        wanted: impl Fn(Cell) -> bool,
        quality: Option<u8>,
        copies: Vec<(Rect, Rect)>,
    ) -> Option<Outgoing> {
        let mut content = Content::new(copies, screen);
        let start = self.cells.position();
        let (parts, mut others) = self.gather(screen, wanted, quality, &content);
        for part in join(parts, screen) {
            if !content.has_room(&part) {
                others.extend(part.changes);
                continue;
            }
            let is_exact = content.add(screen, &part, quality);
            self.drawn += if part.colours.is_some() { part.weight() } else { 0 };
            self.shown.take(screen, part.rect);
            for CellChange { index, cell, rect } in part.changes {
                let blurred = !is_exact || (cell.blurred && rect != self.cells.rect(index));
                self.cells.set(index, Cell { blurred, ..Cell::default() });
            }
        }
        self.cells.give_back(start, others.iter().map(|change| (change.index, change.cell)));
        self.finish(content)
    }

    /// Takes cells for which `wanted` holds, and finds out what differs in them; also returns those that do not
    /// go with the copies.
    fn gather(
        &mut self,
        screen: &Framebuffer,
        wanted: impl Fn(Cell) -> bool,
        quality: Option<u8>,
        content: &Content,
    ) -> (Vec<Part>, Vec<CellChange>) {
        let (mut parts, mut others) = (Vec::new(), Vec::new());
        let (mut pixels, mut apart) = (0, 0);
        while pixels < GATHERED {
            let Some(index) = self.cells.find(&wanted) else { break };
            let cell = self.cells.take(index);
            let whole = self.cells.rect(index);
            // Which pixels of a blurred cell differ from the screen is unknown here.
            let rect = if cell.unknown || (cell.blurred && quality.is_none()) {
                Some(whole)
            } else {
                difference(screen, &self.shown, whole)
            };
            let Some(rect) = rect else {
                self.cells.set(index, Cell { blurred: cell.blurred, ..Cell::default() });
                continue;
            };
            let change = CellChange { index, cell, rect };
            let draws = self.drawn + pixels < MAX_DRAWN;
            let part = if draws { Part::new(screen, change) } else { Part::undrawn(change) };
            let is_small = apart + part.weight() <= GOES_ALONG;
            let must_wait = content.goes_with_copies(rect);
            let goes_along = part.colours.is_some() && (must_wait || is_small);
            if !content.copies.is_empty() && !goes_along {
                others.push(change);
                continue;
            }
            pixels += part.weight();
            apart += if must_wait { 0 } else { part.weight() };
            parts.push(part);
        }
        (parts, others)
    }

    /// The piece of this content, unless there is none.
    fn finish(&mut self, content: Content) -> Option<Outgoing> {
        if content.footprint.writes.is_empty() {
            return None;
        }
        let drawings = content.drawings.map(DrawingWriter::finish);
        // Most pieces have drawings alone.
        let plain = (!content.tiles.is_empty()).then_some(&content.tiles[..]);
        let compressed = plain.and_then(|plain| zstd::bulk::compress(plain, LEVEL).ok());
        let compressed = compressed.as_deref().and_then(|all| all.strip_prefix(&tile::ZSTD_MAGIC));
        let tiles = plain.map(|plain| match compressed {
            Some(compressed) if compressed.len() < plain.len() => Tiles::Compressed(compressed),
            _ => Tiles::Plain(plain),
        });
        let pixels = Pixels { copies: content.copies, drawings: drawings.as_deref(), tiles };
        Some(self.piece(&PieceBody::Pixels(pixels), content.footprint))
    }

    fn piece(&mut self, body: &PieceBody<'_>, footprint: Footprint) -> Outgoing {
        let plan = self.order.plan(&footprint, self.update);
        let back = |&number: &u64| u16::try_from(self.number - number).ok();
        let superseded = plan.superseded.iter().filter_map(back).collect();
        let piece = Piece { update: self.update, superseded, body: body.clone() };
        let (data, fence) = (piece.encode(), plan.fence);
        Outgoing { data, update: self.update, fence, then_fence: false, footprint, plan }
    }

    /// Notes that a piece was sent; returns the numbers of the pieces that are to be cancelled because of it.
    pub fn sent(&mut self, piece: Outgoing) -> Vec<u64> {
        let cancel = piece.plan.cancel.clone();
        let size = piece.data.len();
        // The source of the copy was lost after the piece was taken.
        if piece.footprint.reads.is_some_and(|read| self.order.is_unknown(read)) {
            piece.footprint.writes.iter().for_each(|&rect| self.forget(rect));
        }
        self.order.sent(self.number, piece.update, piece.footprint, piece.plan, size);
        if piece.then_fence {
            self.order.fence();
            self.size_piece = Some(self.number);
        }
        self.number += 1;
        cancel
    }

    /// Takes back the last piece, which could not be sent.
    pub fn unsent(&mut self, piece: Outgoing) {
        for rect in piece.footprint.writes {
            self.forget(rect);
        }
        if piece.then_fence {
            self.begin_screen();
        }
    }

    /// Notes that a piece has arrived. It need not be painted yet.
    pub fn arrived(&mut self, number: u64) {
        self.order.arrived(number);
    }

    /// Notes that a piece may never arrive, though nothing superseded it: its pixels are sent again, and the
    /// targets of copies from there. A piece of a new size must not be given up while other pieces are behind
    /// it, since these do not fit the old size.
    pub fn lost(&mut self, number: u64) {
        for rect in self.order.lost(number) {
            self.forget(rect);
        }
        if self.size_piece == Some(number) {
            self.begin_screen();
        }
    }

    /// Begins again with a new connection after the last one was lost. Pieces on their way may or may not
    /// have been painted, and are sent again.
    pub fn resume(&mut self) {
        self.number = 0;
        let size_piece = self.size_piece.take();
        let has_size = size_piece.is_none_or(|size| !self.order.may_be_painted(size));
        for rect in self.order.abandon() {
            self.forget(rect);
        }
        if !has_size {
            self.begin_screen();
        }
    }

    fn forget(&mut self, rect: Rect) {
        self.cells.each(rect, |cell| (cell.changed, cell.unknown) = (true, true));
    }
}

/// The smallest rectangle within `rect` around all pixels that differ.
fn difference(new: &Framebuffer, old: &Framebuffer, rect: Rect) -> Option<Rect> {
    let mut found: Option<Rect> = None;
    for (y, (new, old)) in (rect.y..).zip(new.rows(rect).zip(old.rows(rect))) {
        if new == old {
            continue;
        }
        let differs = |(new, old): (&u32, &u32)| new != old;
        let first = new.iter().zip(old).position(differs)? as u16;
        let last = new.iter().zip(old).rposition(differs)? as u16;
        let row = Rect::new(rect.x + first, y, last - first + 1, 1);
        found = Some(found.map_or(row, |all| all.around(row)));
    }
    found
}

// Distances between pieces on their way fit 16 bits, and a tile's sides fit a byte.
const _: () = assert!(WINDOW <= u16::MAX as u64 && TILE <= 256);
