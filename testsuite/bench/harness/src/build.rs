//! Building: one compilation per file, like a real build, kept until anything that goes into it changes.

use crate::fetch::{Packages, matching_files};
use crate::parallel;
use crate::process::{Usage, run_measured};
use crate::sources::Sources;
use crate::tools::{Tool, version_line};
use crate::workload::Workload;
use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use xxhash_rust::xxh3::Xxh3;

/// Options of builds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BuildConfig {
    /// C compiler.
    pub cc: PathBuf,
    /// C++ compiler, also for linking where there is C++.
    pub cxx: PathBuf,
    /// Flags of every compilation, and of the link.
    pub cflags: Vec<String>,
    /// Flags of the link alone.
    pub ldflags: Vec<String>,
    /// The folder of builds.
    pub out_dir: PathBuf,
    /// Short name of the variant, for people; the key of a build covers all of its inputs.
    pub label: String,
    /// Compilations at a time.
    pub jobs: usize,
    /// Files whose contents shape the result though no flag names them, for instance a compiler plugin's library.
    pub extra_files: Vec<PathBuf>,
}

impl BuildConfig {
    /// clang with the given flags.
    pub fn new(out_dir: &Path, label: &str, cflags: &[&str]) -> Result<Self> {
        Tool::Lld.find()?;
        Ok(Self {
            cc: Tool::Clang.find()?,
            cxx: Tool::ClangCxx.find()?,
            cflags: cflags.iter().map(|&flag| flag.to_owned()).collect(),
            ldflags: Vec::new(),
            out_dir: out_dir.to_path_buf(),
            label: label.to_owned(),
            jobs: parallel::default_jobs(),
            extra_files: Vec::new(),
        })
    }
}

/// A built workload.
#[derive(Clone, Debug)]
pub struct Binary {
    /// The executable.
    pub path: PathBuf,
    /// The workload's name.
    pub workload: String,
    /// The variant's name.
    pub label: String,
    /// Costs of building it, also where it was built earlier.
    pub report: BuildReport,
}

/// Costs of a build.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct BuildReport {
    /// Each compilation.
    pub compilations: Vec<Compilation>,
    /// The link.
    pub link: Usage,
}

/// One compilation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Compilation {
    /// The source file's name.
    pub source: String,
    /// Its cost.
    pub usage: Usage,
}

impl BuildReport {
    /// CPU-seconds of all compilations and the link.
    pub fn cpu(&self) -> f64 {
        self.compile_cpu() + self.link.cpu
    }

    /// CPU-seconds of all compilations, without the link.
    pub fn compile_cpu(&self) -> f64 {
        self.compilations.iter().map(|compilation| compilation.usage.cpu).sum()
    }
}

/// The files and flags of a recipe.
struct Plan {
    sources: Vec<PathBuf>,
    flags: Vec<String>,
    libs: Vec<String>,
    cxx: bool,
}

const REPORT_FILE: &str = "build.json";

/// Builds a workload, or returns what an earlier build with the same key left.
pub fn build(workload: &Workload, packages: &Packages, common: &Path, config: &BuildConfig) -> Result<Binary> {
    let plan = plan(workload, packages, common)?;
    let key = key(workload, &plan, common, config)?;
    kept(workload, &config.out_dir, &config.label, key, |folder| {
        compile_and_link(workload, &plan, config, folder)
    })
}

/// Makes a binary from existing files with a tool other than a compiler, or returns the binary that an earlier call
/// made from the same files and options. `make` writes it, under the workload's name, into the folder it is given.
pub fn derive(
    workload: &Workload,
    out_dir: &Path,
    label: &str,
    from: &[&Path],
    options: &[&str],
    make: impl FnOnce(&Path) -> Result<BuildReport>,
) -> Result<Binary> {
    let mut hasher = Xxh3::new();
    hasher.update(options.join(" ").as_bytes());
    for file in from {
        hasher.update(&fs::read(file).with_context(|| format!("cannot read {}", file.display()))?);
    }
    kept(workload, out_dir, label, hasher.digest(), make)
}

fn kept(
    workload: &Workload,
    out_dir: &Path,
    label: &str,
    key: u64,
    make: impl FnOnce(&Path) -> Result<BuildReport>,
) -> Result<Binary> {
    let parent = out_dir.join(&workload.name);
    let folder = parent.join(format!("{label}-{key:016x}"));
    if !folder.join(REPORT_FILE).is_file() {
        fs::create_dir_all(&parent).with_context(|| format!("cannot create {}", parent.display()))?;
        // Built in a temporary folder and renamed when complete: an interrupted build never looks finished, and two
        // benches that build the same do not disturb each other.
        let unfinished = tempfile::Builder::new().prefix(".unfinished-").tempdir_in(&parent)?;
        let report = make(unfinished.path()).with_context(|| format!("building {} as '{label}'", workload.name))?;
        fs::write(unfinished.path().join(REPORT_FILE), serde_json::to_vec_pretty(&report)?)?;
        if let Err(error) = fs::rename(unfinished.path(), &folder) {
            ensure!(
                folder.join(REPORT_FILE).is_file(),
                "cannot create {}: {error}",
                folder.display()
            );
        }
    }
    let report = fs::read(folder.join(REPORT_FILE))?;
    Ok(Binary {
        path: folder.join(&workload.name),
        workload: workload.name.clone(),
        label: label.to_owned(),
        report: serde_json::from_slice(&report).with_context(|| format!("in {}", folder.display()))?,
    })
}

/// The files that a workload is compiled from, the driver's first.
pub fn sources(workload: &Workload, packages: &Packages) -> Result<Vec<PathBuf>> {
    let mut sources: Vec<PathBuf> = workload.driver.iter().map(|file| workload.dir.join(file)).collect();
    for part in &workload.sources {
        sources.extend(part_sources(part, packages)?);
    }
    Ok(sources)
}

/// The files of one part of a workload.
pub fn part_sources(part: &Sources, packages: &Packages) -> Result<Vec<PathBuf>> {
    let folder = packages.folder(&part.package)?.join(&part.folder);
    let excluded = part
        .exclude
        .iter()
        .map(|p| glob::Pattern::new(p))
        .collect::<Result<Vec<_>, _>>()?;
    let is_excluded = |file: &PathBuf| {
        let name = file.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        excluded.iter().any(|pattern| pattern.matches(&name))
    };
    let mut sources = matching_files(&folder, &part.files)?;
    sources.retain(|file| !is_excluded(file));
    Ok(sources)
}

fn plan(workload: &Workload, packages: &Packages, common: &Path) -> Result<Plan> {
    let sources = sources(workload, packages)?;
    let mut include: Vec<PathBuf> = workload
        .include
        .iter()
        .map(|folder| workload.dir.join(folder))
        .collect();
    for part in &workload.sources {
        let folder = packages.folder(&part.package)?.join(&part.folder);
        include.extend(part.include.iter().map(|sub| folder.join(sub)));
    }
    include.push(common.to_path_buf());

    let defines = workload.defines.iter().map(|define| format!("-D{define}"));
    let includes = include.iter().map(|folder| format!("-I{}", folder.display()));
    Ok(Plan {
        flags: defines.chain(includes).collect(),
        libs: workload.libs.clone(),
        cxx: sources.iter().any(|source| is_cxx(source)),
        sources,
    })
}

/// Whether a file is C++, by its name.
pub fn is_cxx(source: &Path) -> bool {
    source
        .extension()
        .is_some_and(|extension| ["cc", "cpp", "cxx"].iter().any(|cxx| extension == *cxx))
}

/// Everything that shapes the result, except the packages' files, which their versions fix.
fn key(workload: &Workload, plan: &Plan, common: &Path, config: &BuildConfig) -> Result<u64> {
    let mut hasher = Xxh3::new();
    let mut add = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    add(version_line(&config.cc)?.as_bytes());
    for text in plan
        .flags
        .iter()
        .chain(&plan.libs)
        .chain(&config.cflags)
        .chain(&config.ldflags)
    {
        add(text.as_bytes());
    }
    for source in &plan.sources {
        add(source.as_os_str().as_encoded_bytes());
    }
    // Plugins and profiles: their contents, wherever a flag names them. Sorted, because folders list in any order.
    let named = config
        .cflags
        .iter()
        .chain(&config.ldflags)
        .filter_map(|flag| file_of_flag(flag));
    let mut files: Vec<PathBuf> = named.chain(config.extra_files.iter().cloned()).collect();
    for folder in [common, workload.dir.as_path()] {
        files.extend(own_sources(folder)?);
    }
    for file in files {
        add(&fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?);
    }
    Ok(hasher.digest())
}

/// The project's own sources and headers in a folder and the folders below it, sorted.
fn own_sources(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(own_sources(&path)?);
        } else if is_cxx(&path) || path.extension().is_some_and(|ext| ext == "c" || ext == "h") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The existing file that a flag such as `-fpass-plugin=FILE` or a bare `FILE` names.
fn file_of_flag(flag: &str) -> Option<PathBuf> {
    let candidates = [Some(flag), flag.split_once('=').map(|(_, value)| value)];
    candidates
        .into_iter()
        .flatten()
        .map(PathBuf::from)
        .find(|path| path.is_file())
}

/// The difference of a build from an existing one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change<'a> {
    /// Short name of the build.
    pub label: &'a str,
    /// The name of the source files that are compiled again.
    pub source: &'a str,
    /// More flags of these compilations.
    pub cflags: &'a [String],
    /// More flags of the link.
    pub ldflags: &'a [String],
}

/// Builds a workload from the objects of `base`, which was built as `config` says, with some compiled again.
pub fn rebuild(
    workload: &Workload,
    packages: &Packages,
    common: &Path,
    (base, config): (&Binary, &BuildConfig),
    change: &Change<'_>,
) -> Result<Binary> {
    let plan = plan(workload, packages, common)?;
    let old = base.path.parent().context("a binary has a folder")?;
    let config = BuildConfig {
        cflags: [&config.cflags, change.cflags].concat(),
        ldflags: [&config.ldflags, change.ldflags].concat(),
        ..config.clone()
    };
    let options = [&config.cflags[..], &config.ldflags, &[change.source.to_owned()]].concat();
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    derive(
        workload,
        &config.out_dir,
        change.label,
        &[&base.path],
        &options,
        |folder| {
            let objects: Vec<(PathBuf, PathBuf)> =
                objects(&plan, old).into_iter().zip(objects(&plan, folder)).collect();
            let mut compilations = Vec::new();
            let mut linked = Vec::new();
            for (source, (old, new)) in plan.sources.iter().zip(objects) {
                if source.file_name().is_some_and(|name| name == change.source) {
                    let usage = compile(&plan, &config, source, &new, folder)?;
                    let source = change.source.to_owned();
                    compilations.push(Compilation { source, usage });
                    linked.push(new);
                } else {
                    linked.push(old);
                }
            }
            let link = link(workload, &plan, &config, &linked, folder)?;
            Ok(BuildReport { compilations, link })
        },
    )
}

/// The objects of a build in a folder.
fn objects(plan: &Plan, folder: &Path) -> Vec<PathBuf> {
    let object = |(index, source): (usize, &PathBuf)| {
        let stem = source
            .file_stem()
            .map(|stem| stem.to_string_lossy())
            .unwrap_or_default();
        // Two folders may have files of one name.
        folder.join(format!("{index:03}-{stem}.o"))
    };
    plan.sources.iter().enumerate().map(object).collect()
}

fn compile_and_link(workload: &Workload, plan: &Plan, config: &BuildConfig, folder: &Path) -> Result<BuildReport> {
    let objects = objects(plan, folder);
    let jobs: Vec<(&PathBuf, &PathBuf)> = plan.sources.iter().zip(&objects).collect();
    let compilations = parallel::map(&jobs, config.jobs, |(source, object)| {
        let name = source.file_name().map(|name| name.to_string_lossy().into_owned());
        let usage = compile(plan, config, source, object, folder)?;
        Ok(Compilation {
            source: name.unwrap_or_default(),
            usage,
        })
    })?;

    let link = link(workload, plan, config, &objects, folder)?;
    Ok(BuildReport { compilations, link })
}

fn link(workload: &Workload, plan: &Plan, config: &BuildConfig, objects: &[PathBuf], folder: &Path) -> Result<Usage> {
    let mut link = Command::new(if plan.cxx { &config.cxx } else { &config.cc });
    link.args(&config.cflags)
        .args(objects)
        .arg("-fuse-ld=lld")
        .args(&config.ldflags)
        .args(&plan.libs);
    link.arg("-o").arg(folder.join(&workload.name)).current_dir(folder);
    Ok(run_measured(&mut link)?.expect_success("linking")?.usage)
}

fn compile(plan: &Plan, config: &BuildConfig, source: &Path, object: &Path, folder: &Path) -> Result<Usage> {
    let mut command = Command::new(if is_cxx(source) { &config.cxx } else { &config.cc });
    // `-w`: the programs' own warnings are not ours to fix, and pleach's are remarks or errors.
    command
        .args(&config.cflags)
        .arg("-w")
        .args(&plan.flags)
        .arg("-c")
        .arg(source)
        .arg("-o")
        .arg(object);
    command.current_dir(folder);
    let what = format!("compiling {}", source.display());
    Ok(run_measured(&mut command)?.expect_success(&what)?.usage)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_in_flags() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().display().to_string();
        assert_eq!(
            file_of_flag(&format!("-fprofile-use={path}")).as_deref(),
            Some(file.path())
        );
        assert_eq!(file_of_flag(&path).as_deref(), Some(file.path()));
        assert_eq!(file_of_flag("-O2"), None);
        assert_eq!(file_of_flag("-ffile=/nowhere"), None);
    }
}
