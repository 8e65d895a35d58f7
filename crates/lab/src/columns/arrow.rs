//! Columns as a record batch of Arrow.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BinaryArray, Float64Array, Int64Array, RecordBatch, RecordBatchOptions, StringArray,
};
use arrow_schema::{ArrowError, DataType, Field, Schema};

use super::{Cells, Columns, TypedColumn};

impl TypedColumn {
    fn to_array(&self) -> ArrayRef {
        match &self.cells {
            Cells::Counts(cells) => Arc::new(cells.iter().copied().collect::<Int64Array>()),
            Cells::Numbers(cells) => Arc::new(cells.iter().copied().collect::<Float64Array>()),
            Cells::Texts(cells) => Arc::new(cells.iter().collect::<StringArray>()),
            Cells::Bytes(cells) => Arc::new(cells.iter().collect::<BinaryArray>()),
        }
    }

    fn to_field(&self) -> Field {
        let of = match &self.cells {
            Cells::Counts(_) => DataType::Int64,
            Cells::Numbers(_) => DataType::Float64,
            Cells::Texts(_) => DataType::Utf8,
            Cells::Bytes(_) => DataType::Binary,
        };
        let unit = self.unit.map(|unit| ("unit".to_owned(), unit.to_owned()));
        Field::new(&self.name, of, true).with_metadata(HashMap::from_iter(unit))
    }
}

impl Columns {
    /// The columns as a record batch. The metadata of a field has its `unit`, if it has one.
    ///
    /// # Errors
    /// The columns differ in length, which those of a table and of results never do.
    pub fn to_batch(&self) -> Result<RecordBatch, ArrowError> {
        let fields: Vec<_> = self.0.iter().map(TypedColumn::to_field).collect();
        let arrays = self.0.iter().map(TypedColumn::to_array).collect();
        // A table without columns has no array that tells the number of its rows.
        let rows = RecordBatchOptions::new().with_row_count(Some(self.rows()));
        RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &rows)
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::Array;
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float64Type, Int64Type};
    use sutura_analysis::table::{Cell, Table};

    use super::*;

    #[test]
    fn columns_have_the_types_of_arrow() {
        let mut table = Table::new("x", ["name", "n", "time"]);
        table.row([Cell::from("a"), Cell::Count(7), Cell::Millis(1.5)]);
        table.row([Cell::none(), Cell::none(), Cell::Millis(2.5)]);
        let batch = Columns::of(&table).to_batch().unwrap();
        assert_eq!((batch.num_rows(), batch.num_columns()), (2, 3));
        let schema = batch.schema();
        assert_eq!(schema.field(2).metadata().get("unit").map(String::as_str), Some("ms"));
        let [name, n, time] = [0, 1, 2].map(|column| batch.column(column));
        assert_eq!((name.as_string::<i32>().value(0), name.null_count()), ("a", 1));
        assert_eq!((n.as_primitive::<Int64Type>().value(0), n.is_null(1)), (7, true));
        assert_eq!(time.as_primitive::<Float64Type>().values().as_ref(), [1.5, 2.5]);
        assert_eq!(Columns::default().to_batch().unwrap().num_rows(), 0);
    }
}
