//! The messages of pprof's `proto/profile.proto`, as far as they are written here.

use prost::Message;

/// A profile.
#[derive(Clone, PartialEq, Message)]
pub struct Profile {
    /// What the values of samples are.
    #[prost(message, repeated, tag = "1")]
    pub sample_type: Vec<ValueType>,
    /// Call stacks.
    #[prost(message, repeated, tag = "2")]
    pub sample: Vec<Sample>,
    /// Files that were mapped.
    #[prost(message, repeated, tag = "3")]
    pub mapping: Vec<Mapping>,
    /// Places in functions.
    #[prost(message, repeated, tag = "4")]
    pub location: Vec<Location>,
    /// Functions.
    #[prost(message, repeated, tag = "5")]
    pub function: Vec<Function>,
    /// All strings; the first is empty.
    #[prost(string, repeated, tag = "6")]
    pub string_table: Vec<String>,
    /// From the first sample to the last.
    #[prost(int64, tag = "10")]
    pub duration_nanos: i64,
    /// What is between two samples.
    #[prost(message, optional, tag = "11")]
    pub period_type: Option<ValueType>,
    /// How much of it.
    #[prost(int64, tag = "12")]
    pub period: i64,
}

/// Kind and unit of a value: numbers of strings.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct ValueType {
    /// What is counted.
    #[prost(int64, tag = "1")]
    pub r#type: i64,
    /// In what.
    #[prost(int64, tag = "2")]
    pub unit: i64,
}

/// A call stack with its values.
#[derive(Clone, PartialEq, Message)]
pub struct Sample {
    /// Locations, the called function first.
    #[prost(uint64, repeated, tag = "1")]
    pub location_id: Vec<u64>,
    /// One for each of [`Profile::sample_type`].
    #[prost(int64, repeated, tag = "2")]
    pub value: Vec<i64>,
}

/// A mapped file.
#[derive(Clone, PartialEq, Message)]
pub struct Mapping {
    /// Not 0.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// First address.
    #[prost(uint64, tag = "2")]
    pub memory_start: u64,
    /// Address after the last one.
    #[prost(uint64, tag = "3")]
    pub memory_limit: u64,
    /// What the first address maps.
    #[prost(uint64, tag = "4")]
    pub file_offset: u64,
    /// The file: number of a string.
    #[prost(int64, tag = "5")]
    pub filename: i64,
    /// Its build-id in hexadecimal: number of a string.
    #[prost(int64, tag = "6")]
    pub build_id: i64,
    /// Locations have functions.
    #[prost(bool, tag = "7")]
    pub has_functions: bool,
    /// Functions have files.
    #[prost(bool, tag = "8")]
    pub has_filenames: bool,
    /// Locations have lines.
    #[prost(bool, tag = "9")]
    pub has_line_numbers: bool,
    /// Inlined functions are there.
    #[prost(bool, tag = "10")]
    pub has_inline_frames: bool,
}

/// A place in a function.
#[derive(Clone, PartialEq, Message)]
pub struct Location {
    /// Not 0.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// The mapped file.
    #[prost(uint64, tag = "2")]
    pub mapping_id: u64,
    /// Function and line.
    #[prost(message, repeated, tag = "4")]
    pub line: Vec<Line>,
}

/// A line of a function.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct Line {
    /// The function.
    #[prost(uint64, tag = "1")]
    pub function_id: u64,
    /// Its number in the file.
    #[prost(int64, tag = "2")]
    pub line: i64,
}

/// A function.
#[derive(Clone, PartialEq, Message)]
pub struct Function {
    /// Not 0.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// Name for people: number of a string.
    #[prost(int64, tag = "2")]
    pub name: i64,
    /// Linkage name: number of a string.
    #[prost(int64, tag = "3")]
    pub system_name: i64,
    /// Source file: number of a string.
    #[prost(int64, tag = "4")]
    pub filename: i64,
    /// First line.
    #[prost(int64, tag = "5")]
    pub start_line: i64,
}
