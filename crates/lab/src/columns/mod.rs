//! The tables of a report, and the results of jobs, as columns with types, for programs that query them: as record
//! batches of Arrow with the feature `arrow`, as Parquet files with the feature `parquet`.

#[cfg(feature = "arrow")]
mod arrow;
#[cfg(feature = "parquet")]
mod parquet;
mod results;
mod table;

#[cfg(feature = "parquet")]
pub use self::parquet::ParquetError;
pub use results::{JobResults, Remembering, WalkError};

/// Columns of equal length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Columns(pub(crate) Vec<TypedColumn>);

/// A column.
#[derive(Clone, Debug, PartialEq)]
pub struct TypedColumn {
    /// Its name, which no other column of the same table has.
    pub name: String,
    /// The unit of its numbers: `ms`, or `share` for shares from 0 to 1. `None` for counts, ratios and text.
    pub unit: Option<&'static str>,
    /// Its cells.
    pub cells: Cells,
}

/// The cells of a column, `None` where there is nothing.
#[derive(Clone, Debug, PartialEq)]
pub enum Cells {
    /// Counts.
    Counts(Vec<Option<i64>>),
    /// Other numbers.
    Numbers(Vec<Option<f64>>),
    /// Text.
    Texts(Vec<Option<String>>),
    /// Bytes.
    Bytes(Vec<Option<Vec<u8>>>),
}

impl Columns {
    /// The columns, in their order.
    #[must_use]
    pub fn all(&self) -> &[TypedColumn] {
        &self.0
    }

    /// How many rows there are.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.0.first().map_or(0, |column| column.cells.len())
    }
}

impl Cells {
    /// How many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        match self {
            Self::Counts(cells) => cells.len(),
            Self::Numbers(cells) => cells.len(),
            Self::Texts(cells) => cells.len(),
            Self::Bytes(cells) => cells.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl TypedColumn {
    /// A column whose numbers, if it has some, have no unit.
    fn plain(name: &str, cells: Cells) -> Self {
        Self { name: name.to_owned(), unit: None, cells }
    }
}
