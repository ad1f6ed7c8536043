//! Sources: downloaded by cargo, pinned by `workloads/Cargo.lock`, used where cargo keeps them.

use crate::process::run_measured;
use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of each package's sources.
#[derive(Clone, Debug)]
pub struct Packages {
    folders: BTreeMap<String, PathBuf>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    manifest_path: PathBuf,
    /// Absent for the list of packages itself.
    source: Option<String>,
    dependencies: Vec<Dependency>,
    metadata: Option<PackageMetadata>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
}

#[derive(Deserialize)]
struct PackageMetadata {
    #[serde(default, rename = "data-packages")]
    data_packages: BTreeMap<String, String>,
}

impl Packages {
    /// Finds the packages that `workloads/Cargo.toml` lists, downloading what is missing.
    pub fn fetch(workloads: &Path) -> Result<Self> {
        let manifest = workloads.join("Cargo.toml");
        // Without the network where possible: the registry is asked only for what is not there yet.
        let metadata = match read_metadata(&manifest, true) {
            Ok(metadata) => metadata,
            Err(_) => read_metadata(&manifest, false)?,
        };

        let (list, fetched): (Vec<_>, Vec<_>) = metadata.packages.into_iter().partition(|p| p.source.is_none());
        let list = list
            .into_iter()
            .next()
            .context("cargo metadata does not tell of the workloads' Cargo.toml itself")?;
        // Only the packages listed, not what they depend on in turn.
        let is_listed = |package: &Package| list.dependencies.iter().any(|listed| listed.name == package.name);
        let mut folders: BTreeMap<String, PathBuf> = fetched
            .into_iter()
            .filter(is_listed)
            .filter_map(|package| Some((package.name, package.manifest_path.parent()?.to_path_buf())))
            .collect();
        let data_packages = list.metadata.map(|metadata| metadata.data_packages).unwrap_or_default();
        // Cargo unpacks all packages of a registry side by side.
        let side_by_side = folders
            .values()
            .next()
            .and_then(|folder| folder.parent())
            .map(Path::to_path_buf);
        for (name, version) in data_packages {
            let side_by_side = side_by_side.as_deref().context("no package comes from the registry")?;
            let folder = fetch_alone(side_by_side, &name, &version)?;
            // Another version of a package that is listed already.
            let key = if folders.contains_key(&name) {
                format!("{name}@{version}")
            } else {
                name
            };
            folders.insert(key, folder);
        }
        Ok(Self { folders })
    }

    /// The folder of a package.
    pub fn folder(&self, package: &str) -> Result<&Path> {
        self.folders
            .get(package)
            .map(PathBuf::as_path)
            .with_context(|| format!("the workloads' Cargo.toml does not list the package '{package}'"))
    }

    /// Names and folders of all packages.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Path)> {
        self.folders
            .iter()
            .map(|(name, folder)| (name.as_str(), folder.as_path()))
    }
}

fn cargo() -> Command {
    Command::new(env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")))
}

fn read_metadata(manifest: &Path, offline: bool) -> Result<Metadata> {
    let mut command = cargo();
    command
        .args(["metadata", "--format-version=1", "--locked", "--manifest-path"])
        .arg(manifest);
    if offline {
        command.arg("--offline");
    }
    let finished = run_measured(&mut command)?.expect_success("cargo metadata")?;
    serde_json::from_str(&finished.stdout).context("cargo metadata printed something else than its JSON")
}

/// Downloads one package without what it depends on.
///
/// As dependencies of `workloads/Cargo.toml`, the packages of which only data files are used would bring several
/// hundred others. `cargo info` loads and verifies just the one.
fn fetch_alone(side_by_side: &Path, name: &str, version: &str) -> Result<PathBuf> {
    let folder = side_by_side.join(format!("{name}-{version}"));
    if !folder.join("Cargo.toml").is_file() {
        // Outside of any workspace, where the name could mean another version.
        let elsewhere = tempfile::tempdir()?;
        let mut command = cargo();
        command
            .args(["info", "--quiet", &format!("{name}@{version}")])
            .current_dir(elsewhere.path());
        run_measured(&mut command)?.expect_success("cargo info")?;
    }
    ensure!(
        folder.join("Cargo.toml").is_file(),
        "cargo did not unpack {name} {version} at {}; is the registry replaced by another source?",
        folder.display()
    );
    Ok(folder)
}

/// Files of a folder that match any of the patterns, sorted; fails where a pattern matches nothing.
pub fn matching_files(folder: &Path, patterns: &[String]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for pattern in patterns {
        let prefix = glob::Pattern::escape(folder.to_str().context("a package's folder is not UTF-8")?);
        let before = files.len();
        for path in glob::glob(&format!("{prefix}/{pattern}"))? {
            files.push(path?);
        }
        ensure!(
            files.len() > before,
            "nothing matches {pattern} in {}",
            folder.display()
        );
    }
    files.sort();
    files.dedup();
    Ok(files)
}
