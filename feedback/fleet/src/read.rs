//! Reads Parquet files of a table, whichever engine wrote them: columns are found by name, and numbers may have any of
//! the types that engines write them as.

use crate::columns::{Rows, Values};
use crate::error::FleetError;
use crate::schema::{Column, Kind, Table};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::DataType;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use std::fs::File;
use std::path::Path;

/// Reads all rows of a file.
///
/// # Errors
/// It cannot be read, is damaged, or lacks columns of the table.
pub(crate) fn read(path: &Path, table: Table) -> std::result::Result<Rows, FleetError> {
    // Parquet has no checksum of its metadata, and the reader panics on some that are damaged.
    let read = std::panic::catch_unwind(|| read_file(path, table));
    read.unwrap_or_else(|_| Err(damaged(path, "its metadata are impossible")))
}

fn damaged(path: &Path, what: &str) -> FleetError {
    FleetError::parquet(path)(ParquetError::General(what.into()))
}

/// Whether the parts of a row group are in the file.
fn is_inside(group: &RowGroupMetaData, length: u64) -> bool {
    let is_inside = |start: Option<i64>, bytes: i64| {
        let end = start
            .unwrap_or(0)
            .checked_add(bytes)
            .and_then(|end| u64::try_from(end).ok());
        start.unwrap_or(0) >= 0 && bytes >= 0 && end.is_some_and(|end| end <= length)
    };
    group.num_rows() >= 0
        && group.columns().iter().all(|column| {
            let bytes = column.compressed_size();
            column.num_values() == group.num_rows()
                && is_inside(Some(column.data_page_offset()), 0)
                && is_inside(
                    column.dictionary_page_offset().or(Some(column.data_page_offset())),
                    bytes,
                )
        })
}

fn read_file(path: &Path, table: Table) -> std::result::Result<Rows, FleetError> {
    let file = File::open(path).map_err(FleetError::io(path, "open"))?;
    let bytes = file.metadata().map_err(FleetError::io(path, "read"))?.len();
    let reader = SerializedFileReader::new(file).map_err(FleetError::parquet(path))?;
    let mut rows = Rows::new(table);
    let groups = reader.num_row_groups();
    let schema = reader.metadata().file_metadata().schema_descr_ptr();
    for group in 0..groups {
        if !is_inside(reader.metadata().row_group(group), bytes) {
            return Err(damaged(path, "a row group is outside the file"));
        }
        let group = reader.get_row_group(group).map_err(FleetError::parquet(path))?;
        let length = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
        for (column, values) in table.columns.iter().zip(&mut rows.columns) {
            let missing = || FleetError::Column {
                path: path.into(),
                table: table.name,
                column: column.name,
            };
            let at = (0..schema.num_columns())
                .find(|&at| schema.column(at).path().parts() == [column.name.to_owned()])
                .ok_or_else(missing)?;
            let found = schema.column(at);
            if found.max_rep_level() > 0 || found.max_def_level() > 1 {
                return Err(missing());
            }
            let before = values.len();
            let is_known = read_column(column, &*group, at, length, values).map_err(FleetError::parquet(path))?;
            let has_null = !column.is_optional && values.has_null_from(before);
            if !is_known || has_null || values.len() - before != length {
                return Err(missing());
            }
        }
        rows.len += length;
    }
    Ok(rows)
}

impl Values {
    fn len(&self) -> usize {
        match self {
            Self::Bytes(all) => all.len(),
            Self::Integer(all) => all.len(),
            Self::Decimal(all) => all.len(),
            Self::Real(all) => all.len(),
            Self::Flag(all) => all.len(),
        }
    }

    fn has_null_from(&self, first: usize) -> bool {
        match self {
            Self::Bytes(all) => all[first..].iter().any(Option::is_none),
            Self::Integer(all) => all[first..].iter().any(Option::is_none),
            Self::Decimal(all) => all[first..].iter().any(Option::is_none),
            Self::Real(all) => all[first..].iter().any(Option::is_none),
            Self::Flag(all) => all[first..].iter().any(Option::is_none),
        }
    }
}

/// Appends a column of a row group. Returns whether its type is one that the table's column may have.
fn read_column(
    column: &Column,
    group: &dyn RowGroupReader,
    at: usize,
    length: usize,
    values: &mut Values,
) -> Result<bool> {
    let reader = group.get_column_reader(at)?;
    let is_nullable = group.metadata().column(at).column_descr().max_def_level() > 0;
    match (values, reader, column.kind) {
        (Values::Bytes(all), ColumnReader::ByteArrayColumnReader(reader), _) => {
            append(reader, is_nullable, length, all, |bytes| Some(bytes.data().to_vec()))
        }
        (Values::Integer(all), ColumnReader::Int64ColumnReader(reader), _) => {
            append(reader, is_nullable, length, all, |value| Some(*value))
        }
        (Values::Integer(all), ColumnReader::Int32ColumnReader(reader), _) => {
            append(reader, is_nullable, length, all, |value| Some(i64::from(*value)))
        }
        (Values::Real(all), ColumnReader::DoubleColumnReader(reader), _) => {
            append(reader, is_nullable, length, all, |value| Some(*value))
        }
        (Values::Flag(all), ColumnReader::BoolColumnReader(reader), _) => {
            append(reader, is_nullable, length, all, |value| Some(*value))
        }
        (Values::Decimal(all), ColumnReader::Int64ColumnReader(reader), _) => {
            append(reader, is_nullable, length, all, |value| u128::try_from(*value).ok())
        }
        (Values::Decimal(all), ColumnReader::Int32ColumnReader(reader), _) => {
            append(reader, is_nullable, length, all, |value| u128::try_from(*value).ok())
        }
        (Values::Decimal(all), ColumnReader::FixedLenByteArrayColumnReader(reader), kind) => {
            append(reader, is_nullable, length, all, |bytes| unsigned(bytes.data(), kind))
        }
        (Values::Decimal(all), ColumnReader::ByteArrayColumnReader(reader), kind) => {
            append(reader, is_nullable, length, all, |bytes| unsigned(bytes.data(), kind))
        }
        _ => Ok(false),
    }
}

/// Appends `length` values. Returns whether all that are present could be converted.
fn append<T: DataType, V>(
    mut reader: ColumnReaderImpl<T>,
    is_nullable: bool,
    length: usize,
    all: &mut Vec<Option<V>>,
    convert: impl Fn(&T::T) -> Option<V>,
) -> Result<bool> {
    let (mut left, mut is_known) = (length, true);
    while left > 0 {
        let (mut levels, mut values) = (Vec::new(), Vec::new());
        let (records, ..) = reader.read_records(left, is_nullable.then_some(&mut levels), None, &mut values)?;
        if records == 0 {
            break;
        }
        let mut values = values.iter();
        for row in 0..records {
            let is_present = !is_nullable || levels.get(row).is_some_and(|&level| level > 0);
            let value = if is_present { values.next() } else { None };
            let converted = value.and_then(&convert);
            is_known &= converted.is_some() == is_present;
            all.push(converted);
        }
        left -= records;
    }
    Ok(is_known)
}

/// A decimal without sign, if it is in the column's range.
fn unsigned(bytes: &[u8], kind: Kind) -> Option<u128> {
    let (sign, rest) = bytes.split_at(bytes.len().saturating_sub(16));
    if sign.iter().any(|&byte| byte != 0) {
        return None;
    }
    let value = rest.iter().fold(0u128, |value, &byte| value << 8 | u128::from(byte));
    let most = match kind {
        Kind::Unsigned => u64::MAX.into(),
        _ => pleach_profile::sums::MAX_SUM,
    };
    (value <= most).then_some(value)
}
