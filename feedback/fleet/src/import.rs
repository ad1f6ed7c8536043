//! A folder of tables becomes one profile: the sum of its runs.
//!
//! An export has files of its own for each run, which are read one run at a time. Other files, which an engine wrote,
//! are read as a whole.

use crate::assemble::{Assembly, Problem};
use crate::error::FleetError;
use crate::folder::Folder;
use crate::read::read;
use crate::schema::{RUNS, Table};
use pleach_profile::Profile;
use pleach_profile::merge::{Merged, Merger};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The files of each table.
type Files = Vec<(Table, PathBuf)>;

/// Reads all runs and merges them. `watch` is told how many of how many are done.
///
/// One recording comes back as it was, except that its functions are in order.
///
/// # Errors
/// The folder has no tables, or they are damaged, incomplete or of profiles that do not fit each other.
pub fn import(folder: &Folder, watch: &dyn Fn(u64, u64)) -> Result<Merged, FleetError> {
    let (own, shared) = files(folder)?;
    let of = own.len() as u64;
    let mut profiles = Profiles::default();
    for (done, (run, files)) in own.into_iter().enumerate() {
        watch(done as u64, of);
        let mut assembly = Assembly::default();
        add_files(&mut assembly, &files)?;
        let path = files.first().map_or(folder.root(), |(_, path)| path.as_path());
        if let Some(other) = assembly.names().find(|name| *name != run) {
            return Err(FleetError::Run {
                path: path.into(),
                run: other.into(),
                what: "it is in a file that is named after another run: give the file another name",
            });
        }
        profiles.add(assembly, path)?;
    }
    let mut assembly = Assembly::default();
    add_files(&mut assembly, &shared)?;
    profiles.add(assembly, folder.root())?;
    watch(of, of);
    profiles.finish()
}

/// The files of each run, and those of no run in particular.
fn files(folder: &Folder) -> Result<(BTreeMap<String, Files>, Files), FleetError> {
    let stem = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let (mut own, mut shared): (BTreeMap<String, Files>, Files) = Default::default();
    for (table, files) in folder.all_files()? {
        for path in files {
            let name = stem(&path);
            if !is_run(&name) {
                shared.push((table, path));
                continue;
            }
            let files = own.entry(name.clone()).or_default();
            if files.iter().any(|(known, _)| *known == table) {
                return Err(FleetError::Run {
                    path,
                    run: name,
                    what: "it is in two partitions, and would count twice: remove one of them",
                });
            }
            files.push((table, path));
        }
    }
    for (run, files) in &own {
        // It is written last.
        if !files.iter().any(|(table, _)| *table == RUNS) {
            return Err(FleetError::Run {
                path: files[0].1.clone(),
                run: run.clone(),
                what: "its export did not end: export the profile again, or remove the run's files",
            });
        }
    }
    Ok((own, shared))
}

/// Whether a file's name is that of a run: 16 hexadecimal digits.
fn is_run(name: &str) -> bool {
    name.len() == 16 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn add_files(assembly: &mut Assembly, files: &Files) -> Result<(), FleetError> {
    for (table, path) in files {
        assembly.add(&read(path, *table)?).map_err(content(path))?;
    }
    Ok(())
}

fn content(path: &Path) -> impl FnOnce(Problem) -> FleetError {
    move |Problem { table, what }| FleetError::Content {
        path: path.into(),
        table,
        what,
    }
}

/// Profiles so far: the first one is kept as it is, for it may be the only one.
#[derive(Default)]
struct Profiles {
    first: Option<(Profile, bool)>,
    merger: Merger,
    runs: usize,
}

impl Profiles {
    fn add(&mut self, assembly: Assembly, path: &Path) -> Result<(), FleetError> {
        for (profile, is_sum) in assembly.finish().map_err(content(path))? {
            self.runs += 1;
            match self.runs {
                1 => {
                    self.first = Some((profile, is_sum));
                    continue;
                }
                2 => self.add_first()?,
                _ => {}
            }
            self.merger.add(profile, 1)?;
        }
        Ok(())
    }

    fn add_first(&mut self) -> Result<(), FleetError> {
        if let Some((profile, _)) = self.first.take() {
            self.merger.add(profile, 1)?;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Merged, FleetError> {
        match self.first.take() {
            Some((profile, false)) => Ok(Merged::of_one(profile)),
            // Its estimates follow from its sums.
            Some((profile, true)) => {
                self.merger.add(profile, 1)?;
                Ok(self.merger.finish()?)
            }
            None => Ok(self.merger.finish()?),
        }
    }
}
