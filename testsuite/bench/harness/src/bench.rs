//! A set of workloads ready to use: recipes, fetched sources, inputs, and the folder for results.

use crate::build::{self, Binary, BuildConfig, BuildReport, Change};
use crate::count_cache::CountCache;
use crate::counts::{Counts, Simulation};
use crate::fetch::Packages;
use crate::inputs::InputList;
use crate::paired::{Paired, paired};
use crate::parallel;
use crate::run::{Invocation, RunResult, run};
use crate::workload::{InputKind, Workload, load_all};
use anyhow::{Context, Result, ensure};
use std::env;
use std::path::{Path, PathBuf};

/// Workloads that are ready to be built and run.
#[derive(Clone, Debug)]
pub struct Bench {
    workloads_dir: PathBuf,
    work_dir: PathBuf,
    packages: Packages,
    /// The packages that inputs are made from.
    input_packages: Packages,
    inputs: InputList,
    workloads: Vec<Workload>,
    jobs: usize,
    /// The workloads that profiles are recorded on, if they are others.
    trained_on: Option<Box<Bench>>,
}

impl Bench {
    /// The project's own workloads: see [`Bench::open_dir`].
    pub fn open(work_dir: Option<&Path>) -> Result<Self> {
        Self::open_dir(&workloads_dir(), work_dir)
    }

    /// Reads the recipes in a folder and fetches the sources; builds and inputs go below `work_dir`.
    pub fn open_dir(workloads_dir: &Path, work_dir: Option<&Path>) -> Result<Self> {
        let workloads_dir = std::path::absolute(workloads_dir).context("the workloads have no path")?;
        let workloads = load_all(&workloads_dir)?;
        let inputs = InputList::load(&workloads_dir)?;
        let packages = Packages::fetch(&workloads_dir)?;
        let work_dir = work_dir.map_or_else(default_work_dir, Path::to_path_buf);
        let work_dir = std::path::absolute(work_dir).context("the build directory has no path")?;
        Ok(Self {
            workloads_dir,
            work_dir,
            input_packages: packages.clone(),
            packages,
            inputs,
            workloads,
            jobs: parallel::default_jobs(),
            trained_on: None,
        })
    }

    /// The same bench with profiles of other workloads of the same names, such as older versions. Their inputs are the
    /// same.
    pub fn trained_on(self, other: Self) -> Self {
        let other = Self {
            inputs: self.inputs.clone(),
            input_packages: self.input_packages.clone(),
            ..other
        };
        Self {
            trained_on: Some(Box::new(other)),
            ..self
        }
    }

    /// The workload that a workload's profile is recorded on, and its bench.
    ///
    /// # Errors
    /// The other workloads have none of this name.
    pub fn training<'b>(&'b self, workload: &'b Workload) -> Result<(&'b Self, &'b Workload)> {
        match &self.trained_on {
            Some(other) => Ok((other, other.workload(&workload.name)?)),
            None => Ok((self, workload)),
        }
    }

    /// Whether profiles are of other workloads.
    pub fn is_trained_on_others(&self) -> bool {
        self.trained_on.is_some()
    }

    /// The workload of a name.
    pub fn workload(&self, name: &str) -> Result<&Workload> {
        self.workloads
            .iter()
            .find(|workload| workload.name == name)
            .with_context(|| {
                let known: Vec<&str> = self.workloads.iter().map(|workload| workload.name.as_str()).collect();
                format!("no workload is called '{name}' (there are {})", known.join(", "))
            })
    }

    /// The workloads named, or all of them where none is.
    pub fn select(&self, names: &[String]) -> Result<Vec<&Workload>> {
        if names.is_empty() {
            return Ok(self.workloads.iter().collect());
        }
        names.iter().map(|name| self.workload(name)).collect()
    }

    /// The fetched packages.
    pub fn packages(&self) -> &Packages {
        &self.packages
    }

    /// The inputs that are made, not written.
    pub fn inputs(&self) -> &InputList {
        &self.inputs
    }

    /// The folder with all recipes.
    pub fn workloads_dir(&self) -> &Path {
        &self.workloads_dir
    }

    /// The folder for profiles and other files of a workload.
    pub fn scratch_dir(&self, workload: &Workload) -> Result<PathBuf> {
        let folder = self.work_dir.join("profiles").join(&workload.name);
        std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        Ok(folder)
    }

    /// The same bench with another number of compilations at a time, one where several workloads are built at once.
    pub fn with_jobs(&self, jobs: usize) -> Self {
        Self { jobs, ..self.clone() }
    }

    /// A configuration with clang and the given flags.
    pub fn config(&self, label: &str, cflags: &[&str]) -> Result<BuildConfig> {
        let config = BuildConfig::new(&self.work_dir.join("builds"), label, cflags)?;
        Ok(BuildConfig {
            jobs: self.jobs,
            ..config
        })
    }

    /// Builds a workload, or finds it built.
    pub fn build(&self, workload: &Workload, config: &BuildConfig) -> Result<Binary> {
        build::build(workload, &self.packages, &workloads_dir().join("common"), config)
    }

    /// Builds a workload from the objects of another build: see [`build::rebuild`].
    pub fn rebuild(&self, workload: &Workload, base: (&Binary, &BuildConfig), change: &Change<'_>) -> Result<Binary> {
        build::rebuild(workload, &self.packages, &workloads_dir().join("common"), base, change)
    }

    /// Makes a binary with a tool other than a compiler, or finds it made: see [`build::derive`].
    pub fn derive(
        &self,
        workload: &Workload,
        label: &str,
        from: &[&Path],
        options: &[&str],
        make: impl FnOnce(&Path) -> Result<BuildReport>,
    ) -> Result<Binary> {
        build::derive(workload, &self.work_dir.join("builds"), label, from, options, make)
    }

    /// The files that a workload is compiled from, the driver's first.
    pub fn sources(&self, workload: &Workload) -> Result<Vec<PathBuf>> {
        build::sources(workload, &self.packages)
    }

    /// The arguments of an input, with its files made.
    pub fn invocation(&self, workload: &Workload, kind: InputKind) -> Result<Invocation> {
        let input = workload.input(kind)?;
        let args = input
            .args
            .iter()
            .map(|arg| self.expand(workload, arg))
            .collect::<Result<_>>()?;
        Ok(Invocation {
            args,
            checksum: input.checksum.clone(),
        })
    }

    /// Runs a binary on an input of its workload.
    pub fn run(&self, binary: &Binary, kind: InputKind) -> Result<RunResult> {
        run(binary, &self.invocation(self.workload(&binary.workload)?, kind)?)
    }

    /// Counts a binary's instructions on an input of its workload, or finds them counted.
    pub fn counts(&self, binary: &Binary, kind: InputKind, simulation: Simulation) -> Result<Counts> {
        let invocation = self.invocation(self.workload(&binary.workload)?, kind)?;
        self.count_cache().counts(binary, &invocation, simulation)
    }

    /// Counts the branches that a binary takes on an input of its workload, or finds them counted.
    pub fn taken_branches(&self, binary: &Binary, kind: InputKind) -> Result<u64> {
        let invocation = self.invocation(self.workload(&binary.workload)?, kind)?;
        self.count_cache().taken_branches(binary, &invocation)
    }

    fn count_cache(&self) -> CountCache {
        CountCache::new(self.work_dir.join("counts"))
    }

    /// Times two binaries of one workload in `n` pairs.
    pub fn paired(&self, a: &Binary, b: &Binary, kind: InputKind, n: usize) -> Result<Paired> {
        ensure!(
            a.workload == b.workload,
            "{} and {} cannot be compared",
            a.workload,
            b.workload
        );
        paired(a, b, &self.invocation(self.workload(&a.workload)?, kind)?, n)
    }

    fn expand(&self, workload: &Workload, arg: &str) -> Result<String> {
        if let Some(file) = arg.strip_prefix("{dir}/") {
            return Ok(workload.dir.join(file).display().to_string());
        }
        if let Some(name) = arg.strip_prefix("{input:").and_then(|rest| rest.strip_suffix('}')) {
            let path = self
                .inputs
                .get(name)?
                .materialise(&self.input_packages, &self.work_dir.join("inputs"))?;
            return Ok(path.display().to_string());
        }
        Ok(arg.to_owned())
    }
}

/// The folder with the recipes of the project's own workloads, and with what all drivers include.
pub fn workloads_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../workloads")
}

/// The folder with the tuning programs, disjoint from the workloads: constants are chosen on these.
pub fn tuning_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tuning")
}

/// `pleach-bench` in cargo's target folder.
fn default_work_dir() -> PathBuf {
    let target = env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    target
        .unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../target"))
        .join("pleach-bench")
}
