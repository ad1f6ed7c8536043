//! Recipes: which sources of a package are compiled.

use serde::Deserialize;

/// C sources taken from one folder of one package.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sources {
    /// A package of `workloads/Cargo.toml`.
    pub package: String,
    /// The folder inside it.
    pub folder: String,
    /// Patterns of files to compile, relative to the folder.
    pub files: Vec<String>,
    /// Patterns of file names to leave out.
    #[serde(default)]
    pub exclude: Vec<String>,
    /// Include directories, relative to the folder.
    #[serde(default)]
    pub include: Vec<String>,
}
