//! Processes that load no sampler: the stub is small, counts them, and leaves them as they are.

#![allow(unsafe_code, reason = "bytes of an account are read")]

use crate::common::{FIXTURES, fixture, sampler};
use object::read::elf::{Dyn, ElfFile64, FileHeader};
use object::{Endianness, Object, ObjectSection, elf};
use pleach_facilities::{DEADLINE, output_within};
use pleach_wire::account::{Account, FILE};
use pleach_wire::settings::Settings;
use pleach_wire::shard::{DIRECTORY_VARIABLE, SETTINGS_VARIABLE};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tempfile::TempDir;

/// A folder of shards with an account, but without a recorder.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        std::fs::write(folder.page(), Account::new_page()).unwrap();
        folder
    }

    fn page(&self) -> PathBuf {
        self.0.path().join(OsStr::from_bytes(FILE.to_bytes()))
    }

    /// What processes told so far.
    fn account(&self) -> Account {
        let mut account = Account::default();
        let bytes = std::fs::read(self.page()).unwrap();
        // SAFETY: all of it is atomic numbers, and the page is at least as large.
        unsafe {
            (&raw mut account)
                .cast::<u8>()
                .copy_from_nonoverlapping(bytes.as_ptr(), size_of::<Account>());
        }
        account
    }

    /// Runs a command in the recording, in which no process but the first is chosen for sampling.
    fn run(&self, command: &mut Command, settings: &Settings) -> Output {
        command
            .env("LD_PRELOAD", sampler())
            .env(DIRECTORY_VARIABLE, self.0.path())
            .env(SETTINGS_VARIABLE, settings.to_text());
        output_within(command, Stdio::null(), DEADLINE).unwrap()
    }

    fn shards(&self) -> usize {
        std::fs::read_dir(self.0.path()).unwrap().count() - 1
    }
}

fn unsampled() -> Settings {
    Settings {
        samples: false,
        ..Settings::default()
    }
}

fn maps(settings: &Settings) -> String {
    let output = Folder::new().run(Command::new("cat").arg("/proc/self/maps"), settings);
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_sampler_is_loaded_where_it_is_needed() {
    let (with, without) = (maps(&Settings::default()), maps(&unsampled()));
    assert!(with.contains("libpleach_stub.so") && with.contains("libpleach_preload.so"));
    assert!(without.contains("libpleach_stub.so") && !without.contains("libpleach_preload.so"));
    // A recording that is over, for instance a detached one that nobody collected.
    let over = Settings {
        deadline_ns: Some(1),
        ..Settings::default()
    };
    assert!(!maps(&over).contains("libpleach_preload.so"));
    let covered = Settings {
        coverage_advance_ns: Some(1_000_000),
        ..unsampled()
    };
    assert!(maps(&covered).contains("libpleach_preload.so"));
}

#[test]
fn a_process_without_the_sampler_tells_its_time() {
    let folder = Folder::new();
    let script = "true; /bin/true; (/bin/true); exec /bin/sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done'";
    assert!(
        folder
            .run(Command::new("sh").args(["-c", script]), &unsampled())
            .status
            .success()
    );
    let account = folder.account();
    let (started, ended) = (account.started.load(Relaxed), account.unsampled.load(Relaxed));
    // The shell, the programs it starts, and its next image; children that it forks have no start of their own, and its
    // first image no end.
    assert_eq!(started, 4, "{account:?}");
    assert!(ended >= 3, "{account:?}");
    assert_eq!(folder.shards(), 0);
    let cpu = Duration::from_nanos(account.cpu_ns.load(Relaxed));
    assert!(cpu > Duration::from_millis(20), "{cpu:?}");
    assert_eq!(
        account.cpu_ns.load(Relaxed),
        account.unsampled_cpu_ns.load(Relaxed),
        "{account:?}"
    );
    let own = account.own_ns.load(Relaxed);
    assert!(own > 0 && own < account.cpu_ns.load(Relaxed), "{account:?}");
}

#[test]
fn programs_without_the_sampler_behave_as_ever() {
    let scratch = tempfile::tempdir().unwrap();
    for (name, arguments) in FIXTURES {
        let program = fixture(scratch.path(), name, &[]);
        let plain = output_within(Command::new(&program).args(arguments), Stdio::null(), DEADLINE).unwrap();
        let folder = Folder::new();
        let output = folder.run(Command::new(&program).args(arguments), &unsampled());
        let what = format!("{name} {arguments:?}");
        assert_eq!(output.status, plain.status, "{what}");
        assert_eq!(output.stdout, plain.stdout, "{what}");
        assert_eq!(output.stderr, plain.stderr, "{what}");
        let account = folder.account();
        assert!(account.started.load(Relaxed) > 0, "{what}");
        // Who is killed tells nothing; all others do, those included that confine themselves.
        let is_killed = plain.status.code().is_none();
        assert!(is_killed || account.unsampled.load(Relaxed) > 0, "{what}: {account:?}");
        assert_eq!(folder.shards(), 0, "{what}");
    }
}

#[test]
fn a_sampler_that_is_missing_or_of_another_kind_does_no_harm() {
    let scratch = tempfile::tempdir().unwrap();
    let stub = scratch.path().join("libpleach_stub.so");
    std::fs::copy(sampler(), &stub).unwrap();
    for sampler in [None, Some("no library")] {
        if let Some(text) = sampler {
            std::fs::write(scratch.path().join("libpleach_preload.so"), text).unwrap();
        }
        let folder = Folder::new();
        let mut command = Command::new("sh");
        command.args(["-c", "/bin/true; echo done"]).env("LD_PRELOAD", &stub);
        command
            .env(DIRECTORY_VARIABLE, folder.0.path())
            .env(SETTINGS_VARIABLE, Settings::default().to_text());
        let output = output_within(&mut command, Stdio::null(), DEADLINE).unwrap();
        assert!(output.status.success() && output.stdout == b"done\n" && output.stderr.is_empty());
        assert_eq!(folder.account().unsampled.load(Relaxed), 2);
    }
}

#[test]
fn long_variables_are_passed_on() {
    let scratch = tempfile::tempdir().unwrap();
    let mut directory = scratch.path().to_owned();
    while directory.as_os_str().len() < 900 {
        directory.push("a_folder_with_a_long_name");
    }
    std::fs::create_dir_all(&directory).unwrap();
    let page = directory.join(OsStr::from_bytes(FILE.to_bytes()));
    std::fs::write(&page, Account::new_page()).unwrap();
    let mut command = Command::new("env");
    // The variables that the child gets come from the stub.
    command.args(["-i", "/bin/sh", "-c", "/bin/true; env"]);
    command
        .env("LD_PRELOAD", sampler())
        .env(DIRECTORY_VARIABLE, &directory)
        .env(SETTINGS_VARIABLE, unsampled().to_text());
    let output = output_within(&mut command, Stdio::null(), DEADLINE).unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains(directory.to_str().unwrap()), "{text}");
    let started = std::fs::read(page).unwrap()[8];
    assert_eq!(started, 4, "env, sh, true, env");
}

/// Dynamic relocations, and whether the linker is LLVM's, which knows all options of the stub's build.
fn relocations(library: &Path) -> (usize, bool) {
    let bytes = std::fs::read(library).unwrap();
    let file = ElfFile64::<Endianness>::parse(&*bytes).unwrap();
    let entries = file.elf_section_table().dynamic(Endianness::Little, &*bytes).unwrap();
    let (entries, _) = entries.expect("a dynamic section");
    let size = |tag: elf::DynamicTag| {
        let entry = entries.iter().find(|entry| entry.tag(Endianness::Little) == tag);
        entry.map_or(0, |entry| entry.d_val(Endianness::Little) as usize)
    };
    let comment = file.section_by_name(".comment").and_then(|section| section.data().ok());
    let is_llvm = comment.is_some_and(|text| text.windows(3).any(|part| part == b"LLD"));
    ((size(elf::DT_RELASZ) + size(elf::DT_PLTRELSZ)) / 24, is_llvm)
}

#[test]
fn the_stub_is_small() {
    let (relocations, is_llvm) = relocations(&sampler());
    if cfg!(debug_assertions) || !is_llvm {
        println!("an unoptimised stub, or another linker's: {relocations} relocations");
        return;
    }
    // A thousand, if anything of it could panic.
    assert!(relocations < 40, "{relocations} relocations");
    let bytes = std::fs::read(sampler()).unwrap();
    let header = elf::FileHeader64::<Endianness>::parse(&*bytes).unwrap();
    let segments = header.program_headers(Endianness::Little, &*bytes).unwrap();
    let loaded = segments
        .iter()
        .filter(|segment| segment.p_type.get(Endianness::Little) == elf::PT_LOAD);
    assert_eq!(loaded.count(), 2);
}
