//! Columns in memory.

use crate::schema::{Kind, Table};

/// The values of a column, one for each row.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Values {
    /// Text, or bytes.
    Bytes(Vec<Option<Vec<u8>>>),
    Integer(Vec<Option<i64>>),
    /// Unsigned numbers and sums.
    Decimal(Vec<Option<u128>>),
    Real(Vec<Option<f64>>),
    Flag(Vec<Option<bool>>),
}

/// A value of a row.
pub(crate) enum Value<'v> {
    Null,
    Text(&'v str),
    Bytes(&'v [u8]),
    Integer(i64),
    Decimal(u128),
    Real(f64),
    Flag(bool),
}

impl From<u64> for Value<'_> {
    fn from(value: u64) -> Self {
        Self::Decimal(value.into())
    }
}

impl From<u128> for Value<'_> {
    fn from(value: u128) -> Self {
        Self::Decimal(value)
    }
}

impl From<f64> for Value<'_> {
    fn from(value: f64) -> Self {
        Self::Real(value)
    }
}

impl From<bool> for Value<'_> {
    fn from(value: bool) -> Self {
        Self::Flag(value)
    }
}

impl From<i64> for Value<'_> {
    fn from(value: i64) -> Self {
        Self::Integer(value)
    }
}

impl From<u32> for Value<'_> {
    fn from(value: u32) -> Self {
        Self::Integer(value.into())
    }
}

impl From<usize> for Value<'_> {
    fn from(value: usize) -> Self {
        Self::Integer(value as i64)
    }
}

impl<'v> From<&'v str> for Value<'v> {
    fn from(value: &'v str) -> Self {
        Self::Text(value)
    }
}

/// Rows of a table.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Rows {
    pub table: Table,
    /// As many as the table has.
    pub columns: Vec<Values>,
    pub len: usize,
}

impl Rows {
    pub fn new(table: Table) -> Self {
        let empty = |kind| match kind {
            Kind::Text | Kind::Bytes => Values::Bytes(Vec::new()),
            Kind::Integer => Values::Integer(Vec::new()),
            Kind::Unsigned | Kind::Wide => Values::Decimal(Vec::new()),
            Kind::Real => Values::Real(Vec::new()),
            Kind::Flag => Values::Flag(Vec::new()),
        };
        Self {
            columns: table.columns.iter().map(|column| empty(column.kind)).collect(),
            table,
            len: 0,
        }
    }

    /// Appends a row, with a value for each column.
    pub fn push<const N: usize>(&mut self, row: [Value<'_>; N]) {
        debug_assert_eq!(N, self.columns.len(), "{}", self.table.name);
        for (column, value) in self.columns.iter_mut().zip(row) {
            match (column, value) {
                (Values::Bytes(all), Value::Text(text)) => all.push(Some(text.as_bytes().to_vec())),
                (Values::Bytes(all), Value::Bytes(bytes)) => all.push(Some(bytes.to_vec())),
                (Values::Integer(all), Value::Integer(value)) => all.push(Some(value)),
                (Values::Decimal(all), Value::Decimal(value)) => all.push(Some(value)),
                (Values::Real(all), Value::Real(value)) => all.push(Some(value)),
                (Values::Flag(all), Value::Flag(value)) => all.push(Some(value)),
                (Values::Bytes(all), _) => all.push(None),
                (Values::Integer(all), _) => all.push(None),
                (Values::Decimal(all), _) => all.push(None),
                (Values::Real(all), _) => all.push(None),
                (Values::Flag(all), _) => all.push(None),
            }
        }
        self.len += 1;
    }
}
