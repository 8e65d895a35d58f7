//! Columns as a Parquet file.

use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type, TypePtr};

use super::{Cells, Columns, TypedColumn};

/// A Parquet file cannot be made, which is a bug.
#[derive(Debug, thiserror::Error)]
#[error("cannot write Parquet: {0}")]
pub struct ParquetError(#[from] parquet::errors::ParquetError);

impl Columns {
    /// The columns as a Parquet file, compressed with Snappy. Equal columns are equal files. The metadata of the file
    /// has the unit of each column that has one, as `unit of COLUMN`.
    ///
    /// # Errors
    /// The columns differ in length, which those of a table and of results never do.
    pub fn to_parquet(&self) -> Result<Vec<u8>, ParquetError> {
        let fields = self.0.iter().map(TypedColumn::to_type).collect::<Result<_, _>>()?;
        let schema = Type::group_type_builder("table").with_fields(fields).build()?;
        let unit = |column: &TypedColumn| {
            Some(KeyValue::new(format!("unit of {}", column.name), column.unit?.to_owned()))
        };
        let units = self.0.iter().filter_map(unit).collect();
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_key_value_metadata(Some(units))
            .build();
        let mut file = SerializedFileWriter::new(Vec::new(), Arc::new(schema), properties.into())?;
        if self.rows() > 0 {
            let mut group = file.next_row_group()?;
            for column in &self.0 {
                if let Some(mut writer) = group.next_column()? {
                    column.write(&mut writer)?;
                    writer.close()?;
                }
            }
            group.close()?;
        }
        Ok(file.into_inner()?)
    }
}

impl TypedColumn {
    fn to_type(&self) -> Result<TypePtr, ParquetError> {
        let (physical, logical) = match &self.cells {
            Cells::Counts(_) => (Physical::INT64, None),
            Cells::Numbers(_) => (Physical::DOUBLE, None),
            Cells::Texts(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Cells::Bytes(_) => (Physical::BYTE_ARRAY, None),
        };
        let column = Type::primitive_type_builder(&self.name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical);
        Ok(Arc::new(column.build()?))
    }

    fn write(&self, writer: &mut SerializedColumnWriter<'_>) -> Result<(), ParquetError> {
        let bytes = |bytes: &[u8]| ByteArray::from(bytes.to_vec());
        match &self.cells {
            Cells::Counts(cells) => write::<Int64Type, _>(writer, cells, |cell| *cell),
            Cells::Numbers(cells) => write::<DoubleType, _>(writer, cells, |cell| *cell),
            Cells::Texts(cells) => {
                write::<ByteArrayType, _>(writer, cells, |cell| bytes(cell.as_bytes()))
            }
            Cells::Bytes(cells) => write::<ByteArrayType, _>(writer, cells, |cell| bytes(cell)),
        }
    }
}

/// Writes the cells that are there, and which are: level 1 is a value, level 0 none.
fn write<P: DataType, T>(
    writer: &mut SerializedColumnWriter<'_>,
    cells: &[Option<T>],
    value: impl Fn(&T) -> P::T,
) -> Result<(), ParquetError> {
    let levels: Vec<i16> = cells.iter().map(|cell| i16::from(cell.is_some())).collect();
    let values: Vec<P::T> = cells.iter().flatten().map(value).collect();
    writer.typed::<P>().write_batch(&values, Some(&levels), None)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use sutura_analysis::table::{Cell, Table};

    use super::*;

    fn read(file: Vec<u8>) -> (SerializedFileReader<bytes::Bytes>, Vec<String>) {
        let reader = SerializedFileReader::new(bytes::Bytes::from(file)).unwrap();
        let rows = reader.get_row_iter(None).unwrap().map(|row| row.unwrap().to_string());
        let rows = rows.collect();
        (reader, rows)
    }

    #[test]
    fn a_file_has_types_units_and_empty_cells() {
        let mut table = Table::new("x", ["name", "n", "time"]);
        table.row([Cell::from("a"), Cell::Count(7), Cell::Millis(1.5)]);
        table.row([Cell::none(), Cell::none(), Cell::Millis(2.5)]);
        let columns = Columns::of(&table);
        let file = columns.to_parquet().unwrap();
        assert_eq!(columns.to_parquet().unwrap(), file);
        let (reader, rows) = read(file);
        let expected = ["{name: \"a\", n: 7, time: 1.5}", "{name: null, n: null, time: 2.5}"];
        assert_eq!(rows, expected);
        let units = reader.metadata().file_metadata().key_value_metadata().unwrap();
        assert_eq!(units[..], [KeyValue::new("unit of time".to_owned(), "ms".to_owned())]);
    }

    #[test]
    fn nothing_is_a_file_too() {
        assert!(read(Columns::of(&Table::new("x", ["a"])).to_parquet().unwrap()).1.is_empty());
        assert!(read(Columns::default().to_parquet().unwrap()).1.is_empty());
    }

    #[test]
    fn many_rows_are_read_back() {
        let numbers: Vec<_> = (0..300_000).map(|n| (n % 3 > 0).then_some(f64::from(n))).collect();
        let column = TypedColumn::plain("number", Cells::Numbers(numbers));
        let (_, rows) = read(Columns(vec![column]).to_parquet().unwrap());
        assert_eq!((rows.len(), rows[299_997].as_str()), (300_000, "{number: null}"));
        assert_eq!(rows[299_998], "{number: 299998.0}");
    }
}
