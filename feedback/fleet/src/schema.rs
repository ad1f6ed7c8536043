//! The tables and their columns. README.md describes what they hold.

/// Version of the tables. It changes when a table or column is removed or changes its meaning.
pub const SCHEMA_VERSION: i64 = 2;

/// What a column holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// UTF-8 text.
    Text,
    /// Bytes.
    Bytes,
    /// A small number, or the bits of a hash: `BIGINT`.
    Integer,
    /// A number of 64 bits without sign: `DECIMAL(20)`.
    Unsigned,
    /// An exact sum: `DECIMAL(38)`.
    Wide,
    /// `DOUBLE`.
    Real,
    /// `BOOLEAN`.
    Flag,
}

/// A column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// Whether it may be null.
    pub is_optional: bool,
}

/// A table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Table {
    /// Its name, which is that of its folder.
    pub name: &'static str,
    /// Its columns, in order.
    pub columns: &'static [Column],
}

const fn column(name: &'static str, kind: Kind) -> Column {
    Column {
        name,
        kind,
        is_optional: false,
    }
}

const fn optional(name: &'static str, kind: Kind) -> Column {
    Column {
        name,
        kind,
        is_optional: true,
    }
}

const RUN: Column = column("run", Kind::Text);
const GUID: Column = column("guid", Kind::Integer);
const MODULE: Column = column("module", Kind::Integer);
const CFG_HASH: Column = column("cfg_hash", Kind::Integer);
const IS_SUM: Column = column("is_sum", Kind::Flag);

macro_rules! table {
    ($(#[$doc:meta])* $constant:ident, $name:literal, [$($column:expr),* $(,)?]) => {
        $(#[$doc])*
        pub const $constant: Table = Table { name: $name, columns: &[$($column),*] };
    };
}

table!(
    /// One row for each profile.
    RUNS, "runs", [
        RUN,
        column("schema_version", Kind::Integer),
        column("anchor", Kind::Text),
        IS_SUM,
        column("scale", Kind::Real),
        column("samples", Kind::Unsigned),
        column("executions", Kind::Wide),
        column("program_cpu_seconds", Kind::Real),
        column("own_cpu_seconds", Kind::Real),
        column("program_nanoseconds", Kind::Unsigned),
        column("own_nanoseconds", Kind::Unsigned),
        column("bursts", Kind::Unsigned),
        column("taken_branches", Kind::Unsigned),
        column("hot_instance_count", Kind::Unsigned),
    ]
);
table!(
    /// Commands, engines and modules of a profile.
    ORIGINS, "origins", [
        RUN,
        column("kind", Kind::Text),
        column("position", Kind::Integer),
        column("value", Kind::Text),
        column("build", Kind::Text),
        column("times", Kind::Unsigned),
    ]
);
table!(
    /// Functions, each with one graph.
    FUNCTIONS, "functions", [
        RUN,
        GUID,
        MODULE,
        CFG_HASH,
        column("name", Kind::Text),
        column("samples", Kind::Unsigned),
        column("blocks", Kind::Integer),
        column("edges", Kind::Integer),
        optional("graph", Kind::Bytes),
        column("has_coverage", Kind::Flag),
        column("has_counted", Kind::Flag),
    ]
);
table!(
    /// Executed blocks.
    BLOCKS, "blocks", [RUN, GUID, MODULE, CFG_HASH, column("block", Kind::Integer), column("count", Kind::Unsigned)]
);
table!(
    /// Executed edges.
    EDGES, "edges", [RUN, GUID, MODULE, CFG_HASH, column("edge", Kind::Integer), column("count", Kind::Unsigned)]
);
table!(
    /// What is known about the execution of blocks.
    COVERAGE, "coverage", [
        RUN,
        GUID,
        MODULE,
        CFG_HASH,
        column("block", Kind::Integer),
        column("state", Kind::Integer),
        column("at_least", Kind::Unsigned),
        optional("at_most", Kind::Unsigned),
    ]
);
table!(
    /// Targets of indirect calls.
    CALLS, "calls", [
        RUN,
        GUID,
        MODULE,
        CFG_HASH,
        column("call", Kind::Integer),
        optional("target", Kind::Integer),
        column("count", Kind::Unsigned),
    ]
);
table!(
    /// Operands with observed values.
    VALUE_SITES, "value_sites", [
        RUN,
        GUID,
        MODULE,
        CFG_HASH,
        column("site", Kind::Integer),
        column("bursts", Kind::Unsigned),
        column("others", Kind::Unsigned),
    ]
);
table!(
    /// Values of these operands.
    SITE_VALUES, "site_values", [
        RUN,
        GUID,
        MODULE,
        CFG_HASH,
        column("site", Kind::Integer),
        column("value", Kind::Unsigned),
        column("count", Kind::Unsigned),
    ]
);
table!(
    /// Estimated paths.
    PATHS, "paths", [
        RUN,
        GUID,
        MODULE,
        CFG_HASH,
        column("path", Kind::Text),
        IS_SUM,
        column("count", Kind::Real),
        column("low", Kind::Real),
        column("high", Kind::Real),
        column("effective", Kind::Real),
        column("sum_count", Kind::Wide),
        column("sum_low", Kind::Wide),
        column("sum_high", Kind::Wide),
        column("sum_effective", Kind::Wide),
        column("certain", Kind::Unsigned),
        column("sum_kish", Kind::Wide),
    ]
);
table!(
    /// Windows of consecutive paths.
    WINDOWS, "windows", [
        RUN,
        GUID,
        MODULE,
        CFG_HASH,
        column("paths", Kind::Text),
        IS_SUM,
        column("count", Kind::Real),
        column("sum_count", Kind::Wide),
    ]
);
table!(
    /// Paths from a function's entry, with their callers.
    CALLED, "called", [
        RUN,
        GUID,
        MODULE,
        CFG_HASH,
        column("caller_guid", Kind::Integer),
        column("caller_module", Kind::Integer),
        column("caller_cfg_hash", Kind::Integer),
        column("before", Kind::Text),
        column("path", Kind::Text),
        IS_SUM,
        column("count", Kind::Real),
        column("sum_count", Kind::Wide),
    ]
);
table!(
    /// Predictions of branches.
    PREDICTIONS, "predictions", [
        RUN,
        GUID,
        MODULE,
        CFG_HASH,
        column("block", Kind::Integer),
        IS_SUM,
        column("watched", Kind::Real),
        column("mispredicted", Kind::Real),
        column("low", Kind::Real),
        column("sum_watched", Kind::Wide),
        column("sum_mispredicted", Kind::Wide),
        column("sum_low", Kind::Wide),
    ]
);
table!(
    /// Raw vectors.
    VECTORS, "vectors", [RUN, column("bytes", Kind::Bytes)]
);

/// All tables. The last one is written last, so that a run that it names is complete.
pub const TABLES: [Table; 14] = [
    ORIGINS,
    FUNCTIONS,
    BLOCKS,
    EDGES,
    COVERAGE,
    CALLS,
    VALUE_SITES,
    SITE_VALUES,
    PATHS,
    WINDOWS,
    CALLED,
    PREDICTIONS,
    VECTORS,
    RUNS,
];
