//! Profiles as Parquet tables, and back, so that engines for tables merge and question the profiles of a fleet.
//! README.md describes the tables.
//!
//! In phase order:
//!
//! 1. [`schema`]: the tables and their columns.
//! 2. `rows`: a profile becomes rows of all tables; `path_text`: paths as text.
//! 3. `columns`: columns in memory; `write`, `read`: Parquet files of them.
//! 4. [`folder`]: where the files of a run are; [`export`](folder::Folder::export) puts a profile there.
//! 5. `assemble`: rows become a profile again; [`import`] does that for a folder, and merges its runs.
//! 6. [`error`]: what can be wrong with a folder, with advice.

mod assemble;
mod columns;
pub mod error;
pub mod folder;
pub mod import;
mod path_text;
mod read;
mod rows;
pub mod schema;
mod write;
