//! Where the files of runs are: `TABLE/build_id=BUILD/day=YYYY-MM-DD/RUN.parquet`.
//!
//! Each file appears under its name when it is complete, and a run's row in `runs` last. Names that begin with a dot or
//! an underscore are no tables, as engines have it.

use crate::columns::Rows;
use crate::error::FleetError;
use crate::rows;
use crate::schema::{RUNS, TABLES, Table};
use crate::write;
use pleach_profile::Profile;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// The build of a profile whose modules have no build-id.
pub const UNKNOWN_BUILD: &str = "unknown";

/// A folder of tables.
#[derive(Clone, Debug)]
pub struct Folder {
    root: PathBuf,
}

/// What an export wrote.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Exported {
    /// Rows of all tables.
    pub rows: u64,
    /// Bytes of all files.
    pub bytes: u64,
}

/// Where a run belongs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Partition {
    /// The build-id of the program: of the first recorded module that has one.
    pub build: String,
    /// The day, as YYYY-MM-DD.
    pub day: String,
}

impl Partition {
    /// Of a profile that was written at this time.
    pub fn of_profile(profile: &Profile, written: SystemTime) -> Self {
        let builds = profile.provenance.modules.iter().map(|module| &module.build_id);
        let build = builds.into_iter().find(|build| !build.is_empty());
        Self {
            build: build.cloned().unwrap_or_else(|| UNKNOWN_BUILD.into()),
            day: day(written),
        }
    }
}

/// A day in UTC, as YYYY-MM-DD.
pub fn day(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    // Days from March 1 of year 0, in eras of 400 years.
    let days = seconds / 86_400 + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Whether text is a day.
pub fn is_day(text: &str) -> bool {
    text.len() == 10
        && text.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        })
}

impl Folder {
    /// A folder that exists, or that an export makes.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Where it is.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Whether there are tables of profiles.
    pub fn has_tables(&self) -> bool {
        self.root.join(RUNS.name).is_dir()
    }

    /// Writes a profile's tables. An earlier export of the same run to the same partition is replaced.
    ///
    /// # Errors
    /// A file cannot be written, or the run is in another partition already.
    pub fn export(&self, profile: &Profile, run: &str, partition: &Partition) -> Result<Exported, FleetError> {
        let name = format!("{run}.parquet");
        let place = Path::new(&format!("build_id={}", partition.build)).join(format!("day={}", partition.day));
        let runs = self.root.join(RUNS.name);
        let own = runs.join(&place).join(&name);
        let files = if runs.is_dir() { self.files(RUNS)? } else { Vec::new() };
        if let Some(other) = files
            .into_iter()
            .find(|file| file.file_name() == own.file_name() && *file != own)
        {
            return Err(FleetError::Run {
                path: other,
                run: run.into(),
                what: "the same profile is there already: name that day with --day, or remove its files",
            });
        }
        let mut exported = Exported::default();
        for rows in rows::of_profile(profile, run) {
            let folder = self.root.join(rows.table.name).join(&place);
            let target = folder.join(&name);
            if rows.len == 0 {
                // Not even an empty file, of which a fleet would have many.
                match fs::remove_file(&target) {
                    Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                        return Err(FleetError::io(&target, "remove")(error));
                    }
                    _ => continue,
                }
            }
            fs::create_dir_all(&folder).map_err(FleetError::io(&folder, "make"))?;
            exported.bytes += write_file(&rows, &folder, &target)?;
            exported.rows += rows.len as u64;
        }
        Ok(exported)
    }

    /// The files of a table, sorted; none if there is no such table.
    ///
    /// # Errors
    /// A folder cannot be read.
    pub fn files(&self, table: Table) -> Result<Vec<PathBuf>, FleetError> {
        let mut files = Vec::new();
        let mut folders = vec![self.root.join(table.name)];
        if !folders[0].is_dir() {
            return Ok(files);
        }
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).map_err(FleetError::io(&folder, "read"))? {
                let path = entry.map_err(FleetError::io(&folder, "read"))?.path();
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                if name.starts_with(['.', '_']) {
                    continue;
                }
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "parquet") {
                    files.push(path);
                }
            }
        }
        files.sort_unstable();
        Ok(files)
    }

    /// The files of all tables, in the order of [`TABLES`].
    ///
    /// # Errors
    /// A folder cannot be read, or there are no tables.
    pub(crate) fn all_files(&self) -> Result<Vec<(Table, Vec<PathBuf>)>, FleetError> {
        if !self.has_tables() {
            return Err(FleetError::Foreign {
                path: self.root.clone(),
                missing: RUNS.name,
            });
        }
        TABLES.iter().map(|&table| Ok((table, self.files(table)?))).collect()
    }
}

/// Writes a file that appears when it is complete. Returns its length.
fn write_file(rows: &Rows, folder: &Path, target: &Path) -> Result<u64, FleetError> {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let temporary = folder.join(format!(".{name}.{}", std::process::id()));
    let written = || {
        let mut file = File::create(&temporary).map_err(FleetError::io(&temporary, "create"))?;
        write::write(rows, &mut file).map_err(FleetError::parquet(&temporary))?;
        let length = file.metadata().map_err(FleetError::io(&temporary, "read"))?.len();
        fs::rename(&temporary, target).map_err(FleetError::io(target, "write"))?;
        Ok(length)
    };
    written().inspect_err(|_| {
        let _ = fs::remove_file(&temporary);
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn days_are_those_of_the_calendar() {
        let at = |seconds| day(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01");
        assert_eq!(at(951_782_400 - 1), "2000-02-28");
        assert_eq!(at(951_782_400), "2000-02-29");
        assert_eq!(at(1_798_761_599), "2026-12-31");
        assert_eq!(at(1_798_761_600), "2027-01-01");
        assert!(is_day("2026-11-26") && !is_day("2026-11-2") && !is_day("26/11/2026"));
    }
}
