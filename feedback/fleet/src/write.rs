//! Writes rows as a Parquet file.

use crate::columns::{Rows, Values};
use crate::schema::{Column, Kind, Table};
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::{ByteArray, FixedLenByteArray};
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type, TypePtr};
use std::io::Write;
use std::sync::Arc;

/// Rows of a row group.
const GROUP: usize = 1 << 20;

/// Digits of a decimal column, and the bytes that hold them.
pub(crate) fn decimal(kind: Kind) -> Option<(i32, usize)> {
    match kind {
        Kind::Unsigned => Some((20, 9)),
        Kind::Wide => Some((38, 16)),
        _ => None,
    }
}

/// The type of a column's values in the file.
pub(crate) fn physical(kind: Kind) -> Physical {
    match kind {
        Kind::Text | Kind::Bytes => Physical::BYTE_ARRAY,
        Kind::Integer => Physical::INT64,
        Kind::Unsigned | Kind::Wide => Physical::FIXED_LEN_BYTE_ARRAY,
        Kind::Real => Physical::DOUBLE,
        Kind::Flag => Physical::BOOLEAN,
    }
}

fn column_type(column: &Column) -> Result<TypePtr> {
    let repetition = if column.is_optional {
        Repetition::OPTIONAL
    } else {
        Repetition::REQUIRED
    };
    let mut builder = Type::primitive_type_builder(column.name, physical(column.kind)).with_repetition(repetition);
    if column.kind == Kind::Text {
        builder = builder.with_logical_type(Some(LogicalType::String));
    }
    if let Some((precision, length)) = decimal(column.kind) {
        builder = builder
            .with_logical_type(Some(LogicalType::decimal(0, precision)))
            .with_length(length as i32)
            .with_precision(precision)
            .with_scale(0);
    }
    Ok(Arc::new(builder.build()?))
}

fn table_type(table: &Table) -> Result<TypePtr> {
    let fields: Result<Vec<TypePtr>> = table.columns.iter().map(column_type).collect();
    Ok(Arc::new(
        Type::group_type_builder(table.name).with_fields(fields?).build()?,
    ))
}

/// Writes rows as a Parquet file.
///
/// # Errors
/// The output cannot be written.
pub(crate) fn write(rows: &Rows, output: impl Write + Send) -> Result<()> {
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut file = SerializedFileWriter::new(output, table_type(&rows.table)?, Arc::new(properties))?;
    let mut first = 0;
    while first < rows.len {
        let range = first..rows.len.min(first + GROUP);
        let mut group = file.next_row_group()?;
        for (column, values) in rows.table.columns.iter().zip(&rows.columns) {
            let mut writer = group
                .next_column()?
                .ok_or_else(|| ParquetError::General("a column has no writer".into()))?;
            write_column(column, values, range.clone(), &mut writer)?;
            writer.close()?;
        }
        group.close()?;
        first = range.end;
    }
    file.close()?;
    Ok(())
}

fn write_column(
    column: &Column,
    values: &Values,
    range: std::ops::Range<usize>,
    writer: &mut SerializedColumnWriter<'_>,
) -> Result<()> {
    /// Values that are present, and for each row whether one is.
    fn split<V, T>(values: &[Option<V>], convert: impl Fn(&V) -> T) -> (Vec<T>, Vec<i16>) {
        let levels = values.iter().map(|value| i16::from(value.is_some())).collect();
        (values.iter().flatten().map(convert).collect(), levels)
    }
    fn levels(column: &Column, levels: &[i16]) -> Option<Vec<i16>> {
        column.is_optional.then(|| levels.to_vec())
    }
    match (values, writer.untyped()) {
        (Values::Bytes(all), ColumnWriter::ByteArrayColumnWriter(writer)) => {
            let (values, present) = split(&all[range], |bytes| ByteArray::from(bytes.clone()));
            writer.write_batch(&values, levels(column, &present).as_deref(), None)?;
        }
        (Values::Integer(all), ColumnWriter::Int64ColumnWriter(writer)) => {
            let (values, present) = split(&all[range], |value| *value);
            writer.write_batch(&values, levels(column, &present).as_deref(), None)?;
        }
        (Values::Real(all), ColumnWriter::DoubleColumnWriter(writer)) => {
            let (values, present) = split(&all[range], |value| *value);
            writer.write_batch(&values, levels(column, &present).as_deref(), None)?;
        }
        (Values::Flag(all), ColumnWriter::BoolColumnWriter(writer)) => {
            let (values, present) = split(&all[range], |value| *value);
            writer.write_batch(&values, levels(column, &present).as_deref(), None)?;
        }
        (Values::Decimal(all), ColumnWriter::FixedLenByteArrayColumnWriter(writer)) => {
            let length = decimal(column.kind).map_or(0, |(_, length)| length);
            let (values, present) = split(&all[range], |value| {
                FixedLenByteArray::from(value.to_be_bytes()[16 - length..].to_vec())
            });
            writer.write_batch(&values, levels(column, &present).as_deref(), None)?;
        }
        _ => {
            return Err(ParquetError::General(format!(
                "column {} has another type",
                column.name
            )));
        }
    }
    Ok(())
}
