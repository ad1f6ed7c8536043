//! Processes that still run when the command has ended, as daemons do.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Processes that the recording does not see the end of.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Running {
    /// Their names.
    processes: BTreeMap<u32, String>,
    /// Files that they have mapped.
    pub(super) files: BTreeSet<PathBuf>,
}

impl Running {
    /// Processes that have files of this directory mapped, as all sampled processes have. Processes that are about to
    /// end get a short grace period.
    pub(super) fn find(folder: &Path) -> Self {
        const MOMENT: Duration = Duration::from_millis(50);
        let found = Self::now(folder);
        if found.processes.is_empty() {
            return found;
        }
        std::thread::sleep(MOMENT);
        Self::now(folder)
    }

    fn now(folder: &Path) -> Self {
        let mut found = Self::default();
        let began = |stat: Vec<u8>| start_time(&stat);
        let since = fs::read("/proc/self/stat").ok().and_then(began);
        let Ok(entries) = fs::read_dir("/proc") else {
            return found;
        };
        for entry in entries.flatten() {
            let process = entry.file_name().to_str().and_then(|name| name.parse().ok());
            let Some(process) = process.filter(|&process| process != std::process::id()) else {
                continue;
            };
            // Most are older than this one. To read all their mappings takes a while on a large machine.
            if fs::read(entry.path().join("stat")).ok().and_then(began) < since {
                continue;
            }
            // Those of other users cannot be read, and are not ours.
            let Ok(maps) = fs::read(entry.path().join("maps")) else {
                continue;
            };
            if let Some(files) = files_of(&maps, folder) {
                let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
                found.processes.insert(process, name.trim_end().to_owned());
                found.files.extend(files);
            }
        }
        found
    }

    /// Adds those of another run.
    pub(super) fn add(&mut self, other: Self) {
        self.processes.extend(other.processes);
        self.files.extend(other.files);
    }

    /// A note for the user.
    pub(super) fn note(&self) -> Option<String> {
        let (process, name) = self.processes.iter().next()?;
        let others = match self.processes.len() - 1 {
            0 => "still runs".to_owned(),
            1 => "and another process still run".to_owned(),
            more => format!("and {more} others still run"),
        };
        Some(format!(
            "{name} (process {process}) {others}: what it does from now on is not recorded. Start a daemon in the \
             foreground, or record it with `--env`"
        ))
    }
}

/// When a process began, in clock ticks since the machine did, by its `/proc/PID/stat`.
fn start_time(stat: &[u8]) -> Option<u64> {
    // The name before it, in parentheses, may have spaces.
    let rest = stat.rsplit(|&byte| byte == b')').next()?;
    let field = rest.split(|&byte| byte == b' ').nth(20)?;
    std::str::from_utf8(field).ok()?.parse().ok()
}

/// The files that a process has mapped, by its `/proc/PID/maps`; `None` if there is none of the folder. Code with
/// breakpoints is a copy in another file, but the rest of its module is not.
fn files_of(maps: &[u8], folder: &Path) -> Option<BTreeSet<PathBuf>> {
    // Addresses, permissions, offset, device, inode, spaces, path.
    let path = |line: &[u8]| line.splitn(6, |&byte| byte == b' ').nth(5).map(<[u8]>::to_vec);
    let paths = maps.split(|&byte| byte == b'\n').filter_map(path);
    let paths = paths.map(|path| PathBuf::from(OsString::from_vec(path.trim_ascii_start().to_vec())));
    let files: BTreeSet<PathBuf> = paths.filter(|path| path.is_absolute()).collect();
    files.iter().any(|file| file.starts_with(folder)).then_some(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_tell_whose_process_it_is() {
        let maps = b"1000-2000 r-xp 00000000 08:01 7      /usr/bin/a daemon\n\
                     2000-3000 rw-p 00001000 08:01 7      /usr/bin/a daemon\n\
                     3000-4000 rw-s 00000000 08:01 9      /tmp/pleach-1-x/account (deleted)\n\
                     4000-5000 r-xp 00000000 08:01 8      /lib/libc.so\n\
                     5000-6000 rw-p 00000000 00:00 0\n\
                     6000-7000 r-xp 00000000 00:00 0      [vdso]\n";
        let files = ["/usr/bin/a daemon", "/tmp/pleach-1-x/account (deleted)", "/lib/libc.so"];
        let files = files.map(PathBuf::from).into();
        assert_eq!(files_of(maps, Path::new("/tmp/pleach-1-x")), Some(files));
        assert_eq!(files_of(maps, Path::new("/tmp/pleach-1")), None);
        assert_eq!(files_of(b"", Path::new("/tmp")), None);
    }

    #[test]
    fn the_time_of_the_start() {
        let stat = b"7 (a) b) S 1 7 7 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 998877 2568192 221 0";
        assert_eq!(start_time(stat), Some(998_877));
        assert_eq!(start_time(b"7 (a"), None);
        assert!(start_time(&fs::read("/proc/self/stat").unwrap()) >= start_time(&fs::read("/proc/1/stat").unwrap()));
    }

    #[test]
    fn notes() {
        let running = |processes: &[(u32, &str)]| Running {
            processes: processes
                .iter()
                .map(|&(number, name)| (number, name.to_owned()))
                .collect(),
            files: BTreeSet::new(),
        };
        assert_eq!(running(&[]).note(), None);
        let note = |processes: &[(u32, &str)]| running(processes).note().unwrap_or_default();
        assert!(note(&[(7, "dm")]).starts_with("dm (process 7) still runs: "));
        assert!(note(&[(7, "dm"), (8, "x")]).contains("and another process still run"));
        assert!(note(&[(7, "dm"), (8, "x"), (9, "y")]).contains("and 2 others still run"));
    }
}
