//! Parity symbols after each block of data.

mod policy;
mod rate;
#[cfg(test)]
mod tests;

pub use rate::BlockRate;

use super::{PathView, Reason, Redundancy, RedundancyFactory, SHORT_KEYS, Terms};
use crate::fec::code::{LdpcStaircase, Parity2d};
use crate::wire::code_id::CodeId;
use policy::BlockPolicy;
use std::ops::Range;
use std::sync::Arc;
use sutura_schedule::registry::{Entry, Parameters, UnknownPolicy};

pub(super) const ENTRY: Entry<dyn RedundancyFactory> = Entry::with_parameters(
    "block",
    "parity symbols after each block, by number or n/k: Reed-Solomon, LDPC, or 2D",
    "source=20,parity=2,rate=off,code=rs,rows=0,columns=0,shared=off",
    |parameters| Ok(Arc::new(parse(parameters)?)),
);

fn parse(parameters: &mut Parameters<'_>) -> Result<Block, UnknownPolicy> {
    let code = match parameters.take("code").unwrap_or("rs") {
        "rs" => CodeId::REED_SOLOMON,
        "ldpc" => CodeId::LDPC_STAIRCASE,
        "2d" => CodeId::PARITY_2D,
        "window" => CodeId::SLIDING_WINDOW,
        code => {
            let text = format!("code: `{code}` is none of rs, ldpc, 2d and window");
            return Err(UnknownPolicy::new(text));
        }
    };
    let shared = parameters.switch("shared", false)?;
    let (rows, columns) = (parameters.number("rows", 0)?, parameters.number("columns", 0)?);
    let block = match (rate(parameters)?, rows, columns) {
        (None, 0, 0) => by_number(code, parameters)?,
        (Some(rate), 0, 0) => {
            let source = parameters.number("source", 0)?;
            Block::rated(code, rate, Some(source).filter(|source| *source > 0))
        }
        (None, rows, columns) if code == CodeId::PARITY_2D => Block::matrix(rows, columns),
        _ => return Err(UnknownPolicy::new("rows and columns are for code=2d, without rate")),
    };
    let block = block.ok_or_else(|| {
        UnknownPolicy::new(
            "a block has 1 to 255 symbols, source and parity together; with ldpc, 2 to 1024 \
             source and 3 to 256 parity symbols; with a rate, enough for one parity symbol; with \
             2d, n/k follows from rows and columns",
        )
    })?;
    Ok(if shared { block.shared() } else { block })
}

/// The parameter `rate`; `None` if the parameter is missing or `off`.
fn rate(parameters: &mut Parameters<'_>) -> Result<Option<BlockRate>, UnknownPolicy> {
    let Some(text) = parameters.take("rate").filter(|text| *text != "off") else {
        return Ok(None);
    };
    let rate = text.parse().ok().and_then(BlockRate::new);
    let wrong = || UnknownPolicy::new(format!("rate: `{text}` is not n/k, from 1.0001 to 4"));
    rate.map(Some).ok_or_else(wrong)
}

/// Blocks of a number of source and parity symbols.
fn by_number(
    code: CodeId,
    parameters: &mut Parameters<'_>,
) -> Result<Option<Block>, UnknownPolicy> {
    let source = parameters.number("source", 20)?;
    Ok(match code {
        CodeId::PARITY_2D => Block::parity_2d(source),
        CodeId::LDPC_STAIRCASE => Block::ldpc(source, parameters.number("parity", 3)?),
        CodeId::SLIDING_WINDOW => Block::window(source, parameters.number("parity", 2)?),
        _ => Block::new(source, parameters.number("parity", 2)?),
    })
}

/// Maximum number of source and parity symbols of a block together, as for Reed-Solomon codes over
/// GF(256).
pub const MAX_BLOCK: u32 = 255;

/// The most columns of a matrix whose keys are short.
const MAX_COLUMNS: u32 = (SHORT_KEYS >> 8) - 1;
/// The most parity symbols by rate of a staircase whose keys are short. A block may get one parity symbol
/// more.
const MAX_STEPS: u32 = (SHORT_KEYS >> 8) - 1;

/// Blocks: after `source` symbols, at the end of the session's data and at
/// [fences](https://docs.rs/sutura-groups), sends parity symbols. If the peer does not accept the code, repair symbols of the sliding window over the
/// same blocks are sent instead.
///
/// A block keeps its symbols until its parity symbols have been sent, even if the peer has some of the
/// symbols already; once the peer has the whole block, no more parity symbols follow. Streams of the protocol
/// itself, such as HTTP/3's control stream, are not protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    source: u32,
    parities: Parities,
    shared: bool,
}

/// The number of parity symbols.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Amount {
    /// The same number for each block, however short.
    Each(u32),
    /// A number in proportion to the update: see [`Block::rated`].
    Rate(BlockRate),
}

/// The parity symbols of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Parities {
    /// Parity symbols of a Reed-Solomon code.
    ReedSolomon(Amount),
    /// A parity symbol for each row and each column of a matrix with this many columns; 0 for a square.
    Lines(u32),
    /// Parity symbols of an LDPC-Staircase code.
    Staircase(Amount),
    /// Repair symbols of the sliding window's code.
    Window(Amount),
}

impl Parities {
    fn code(self) -> CodeId {
        match self {
            Self::ReedSolomon(_) => CodeId::REED_SOLOMON,
            Self::Lines(_) => CodeId::PARITY_2D,
            Self::Staircase(_) => CodeId::LDPC_STAIRCASE,
            Self::Window(_) => CodeId::SLIDING_WINDOW,
        }
    }

    /// The rate, if the number of parity symbols goes by a rate.
    fn rate(self) -> Option<BlockRate> {
        match self {
            Self::ReedSolomon(Amount::Rate(rate))
            | Self::Staircase(Amount::Rate(rate))
            | Self::Window(Amount::Rate(rate)) => Some(rate),
            Self::ReedSolomon(_) | Self::Staircase(_) | Self::Window(_) | Self::Lines(_) => None,
        }
    }

    /// The number of parity symbols of a block with this span, where `share` is the block's share of the
    /// update's parity symbols.
    fn count(self, span: &Range<u64>, share: u32) -> u32 {
        match self {
            Self::ReedSolomon(amount) | Self::Staircase(amount) | Self::Window(amount) => {
                match amount {
                    Amount::Each(count) => count,
                    Amount::Rate(_) => share,
                }
            }
            Self::Lines(columns) => {
                let symbols = span.end.saturating_sub(span.start);
                Parity2d::lines_in(symbols, columns.into()) as u32
            }
        }
    }

    /// The key of parity symbol `index` of the block with this span, which has `count` parity symbols; `None`
    /// for any key that was not used before.
    fn key(self, span: &Range<u64>, count: u32, index: u32) -> Option<u32> {
        match self {
            Self::ReedSolomon(_) | Self::Lines(0) => Some(index),
            Self::Lines(columns) => {
                Parity2d::key(span.end.saturating_sub(span.start), columns, index)
            }
            Self::Staircase(_) => LdpcStaircase::key(LdpcStaircase::rows(count), index),
            Self::Window(_) => None,
        }
    }

    /// The largest key of any block; it may be 0 if all keys are short.
    fn largest_key(self) -> u32 {
        match self {
            Self::Staircase(Amount::Each(count)) => {
                self.key(&(0..0), count, count.saturating_sub(1)).unwrap_or(0)
            }
            Self::ReedSolomon(_)
            | Self::Lines(_)
            | Self::Staircase(Amount::Rate(_))
            | Self::Window(_) => 0,
        }
    }
}

impl Block {
    fn of(source: u32, parities: Parities) -> Self {
        Self { source, parities, shared: false }
    }

    /// Reed-Solomon blocks of `source` symbols (k) and `parity` parity symbols (n - k), of which any
    /// set recovers as many losses in its block. `None` if there are no source symbols, or more than
    /// [`MAX_BLOCK`] symbols in all.
    #[must_use]
    pub fn new(source: u32, parity: u32) -> Option<Self> {
        let fits = source.checked_add(parity).is_some_and(|n| n <= MAX_BLOCK);
        let parities = Parities::ReedSolomon(Amount::Each(parity));
        (source > 0 && fits).then_some(Self::of(source, parities))
    }

    /// Blocks of `source` symbols with a parity symbol for each row and each column of the square that
    /// they fill: of 25 symbols, ten (Eghbal and Lu 2022). `None` if there are no source symbols, or
    /// more than [`MAX_BLOCK`] symbols in all.
    #[must_use]
    pub fn parity_2d(source: u32) -> Option<Self> {
        let lines = Parity2d::lines(source.into());
        let fits = u64::from(source) + lines <= u64::from(MAX_BLOCK);
        (source > 0 && fits).then_some(Self::of(source, Parities::Lines(0)))
    }

    /// Matrices of `rows` rows and `columns` columns, with a parity symbol for each row and each column, as
    /// the user of Eghbal and Lu 2022, section 2, sets them. The last matrix of the data has as many rows as
    /// its symbols fill: k symbols get k / `columns` parity symbols, rounded up, and one for each column that
    /// is not empty. `None` if the matrix is empty, has more than 63 columns, or more than [`MAX_BLOCK`]
    /// symbols in all.
    #[must_use]
    pub fn matrix(rows: u32, columns: u32) -> Option<Self> {
        let source = rows.checked_mul(columns).filter(|source| *source > 0)?;
        let all = u64::from(source) + u64::from(rows) + u64::from(columns);
        let fits = columns <= MAX_COLUMNS && all <= u64::from(MAX_BLOCK);
        fits.then_some(Self::of(source, Parities::Lines(columns)))
    }

    /// LDPC-Staircase blocks of `source` symbols (k) and `parity` parity symbols (n - k). `None` unless
    /// `source` is from 2 to 1024 and `parity` from 3 to 256.
    #[must_use]
    pub fn ldpc(source: u32, parity: u32) -> Option<Self> {
        let fits = (2..=LdpcStaircase::MAX_SOURCES).contains(&source.into())
            && LdpcStaircase::key(parity, 0).is_some();
        let parities = Parities::Staircase(Amount::Each(parity));
        fits.then_some(Self::of(source, parities))
    }

    /// Blocks of `source` symbols followed by `parity` repair symbols of the sliding window over the same
    /// symbols, which every peer accepts. `None` if there are no source symbols.
    #[must_use]
    pub fn window(source: u32, parity: u32) -> Option<Self> {
        let parities = Parities::Window(Amount::Each(parity));
        (source > 0).then_some(Self::of(source, parities))
    }

    /// Parity in proportion to the protected data (Eghbal and Lu 2025, section 4.2): the block is the
    /// *update*, all data up to the next fence or to the end of the session's data, and k symbols get,
    /// rounded up, k (n/k - 1) parity symbols. An update with more symbols than a block of the code, the
    /// coding window or `source` allow is split into several blocks, which share the parity symbols of the
    /// update. A pause of the application also ends a block, unless all parity symbols for the data so far
    /// were sent already.
    ///
    /// The codes are Reed-Solomon, LDPC-Staircase and the sliding window. `None` for another code, or if
    /// `source` is more than a block with this rate can have, or so few that a block would get no parity
    /// symbol of its own.
    #[must_use]
    pub fn rated(code: CodeId, rate: BlockRate, source: Option<u32>) -> Option<Self> {
        let amount = Amount::Rate(rate);
        let (parities, most) = match code {
            CodeId::REED_SOLOMON => {
                let most = rate.most(MAX_BLOCK, |k, parity| k + parity <= MAX_BLOCK);
                (Parities::ReedSolomon(amount), most)
            }
            CodeId::LDPC_STAIRCASE => {
                let fits = |_, parity| parity <= MAX_STEPS;
                let most = rate.most(LdpcStaircase::MAX_SOURCES as u32, fits);
                (Parities::Staircase(amount), most)
            }
            CodeId::SLIDING_WINDOW => (Parities::Window(amount), u32::MAX),
            _ => return None,
        };
        let source = source.unwrap_or(most);
        let fits = source <= most && rate.whole_parity(source.into()) > 0;
        fits.then_some(Self::of(source, parities))
    }

    /// Makes all streams with this protection share their blocks, in the order in which they are sent: a
    /// block spans several streams, as the matrix of Eghbal and Lu 2022, section 3, spans all urgent
    /// resources.
    #[must_use]
    pub fn shared(self) -> Self {
        Self { shared: true, ..self }
    }
}

impl RedundancyFactory for Block {
    fn name(&self) -> &str {
        ENTRY.name
    }

    fn parameters(&self) -> String {
        let source = self.source;
        let amount = |amount, code: &str| match amount {
            Amount::Each(parity) => format!("source={source}, parity={parity}{code}"),
            Amount::Rate(rate) => format!("source={source}, rate={rate}{code}"),
        };
        let mut text = match self.parities {
            Parities::ReedSolomon(parity) => amount(parity, ""),
            Parities::Lines(0) => format!("source={source}, code=2d"),
            Parities::Lines(columns) => {
                format!("rows={}, columns={columns}, code=2d", source / columns)
            }
            Parities::Staircase(parity) => amount(parity, ", code=ldpc"),
            Parities::Window(parity) => amount(parity, ", code=window"),
        };
        if self.shared {
            text.push_str(", shared=on");
        }
        text
    }

    fn sleeps(&self, _path: &PathView, terms: Terms) -> Option<Reason> {
        terms.control.then_some(Reason::Control)
    }

    fn stays_awake(&self) -> bool {
        true
    }

    fn shares_session(&self) -> bool {
        self.shared
    }

    fn build(&self) -> Box<dyn Redundancy> {
        Box::new(BlockPolicy::new(*self))
    }
}
