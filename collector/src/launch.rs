//! Examines a command before it is run: programs that cannot be sampled are refused with a reason.

#![allow(unsafe_code, reason = "system calls")]

use object::Endianness;
use object::elf;
use object::read::elf::{FileHeader, ProgramHeader};
use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Why a command is not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// There is no such command.
    #[error("{0}: command not found")]
    NotFound(String),
    /// It exists, but cannot be executed.
    #[error("{path}: {reason}")]
    NotExecutable {
        /// The file.
        path: PathBuf,
        /// Why it cannot be executed.
        reason: String,
    },
    /// It can be executed, but not sampled.
    #[error("{path} cannot be sampled: {reason}\n  {advice}")]
    Unsampled {
        /// The file.
        path: PathBuf,
        /// Why it cannot be sampled.
        reason: &'static str,
        /// Advice for the user.
        advice: &'static str,
    },
}

impl LaunchError {
    /// The exit status of shells in this case.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::NotFound(_) => 127,
            _ => 126,
        }
    }
}

/// Nested `#!` lines that the kernel follows.
const MAX_INTERPRETERS: usize = 5;

/// Finds a command as `execvp` does, and checks that the sampler can be loaded into it.
///
/// # Errors
/// The command does not exist, or cannot be executed or sampled.
pub fn examine(command: &OsStr) -> Result<PathBuf, LaunchError> {
    examine_with(command, check_format)
}

/// As [`examine`], for engines outside of the program: static programs are accepted, but no programs that gain
/// privileges.
///
/// # Errors
/// As for [`examine`].
pub fn examine_outside(command: &OsStr) -> Result<PathBuf, LaunchError> {
    examine_with(command, |path| Ok(interpreter(path)?.0))
}

/// Whether a command is a program that is linked statically, so that nothing can be preloaded into it.
pub fn is_static(command: &OsStr) -> bool {
    matches!(examine(command), Err(LaunchError::Unsampled { reason, .. }) if reason == STATIC)
}

/// Why nothing can be preloaded into a program without a dynamic loader.
const STATIC: &str = "it is statically linked, so that nothing can be preloaded into it";

fn examine_with(
    command: &OsStr,
    check_format: impl Fn(&Path) -> Result<Option<PathBuf>, LaunchError>,
) -> Result<PathBuf, LaunchError> {
    let path = find(command)?;
    let mut program = path.clone();
    for _ in 0..MAX_INTERPRETERS {
        check_privileges(&program)?;
        match check_format(&program)? {
            None => return Ok(path),
            Some(interpreter) => program = interpreter,
        }
    }
    Err(refuse(&path, "too many interpreters of interpreters"))
}

fn refuse(path: &Path, reason: impl Into<String>) -> LaunchError {
    LaunchError::NotExecutable {
        path: path.to_owned(),
        reason: reason.into(),
    }
}

fn find(command: &OsStr) -> Result<PathBuf, LaunchError> {
    let not_found = || LaunchError::NotFound(command.to_string_lossy().into_owned());
    if command.is_empty() {
        return Err(not_found());
    }
    if command.as_bytes().contains(&b'/') {
        let path = PathBuf::from(command);
        return is_executable(&path)
            .map(|()| path.clone())
            .map_err(|error| match error {
                Some(reason) => refuse(&path, reason),
                None => not_found(),
            });
    }
    let search = std::env::var_os("PATH").unwrap_or_else(|| OsString::from("/bin:/usr/bin"));
    let mut denied = None;
    for directory in std::env::split_paths(&search) {
        let path = if directory.as_os_str().is_empty() {
            PathBuf::from(".")
        } else {
            directory
        }
        .join(command);
        match is_executable(&path) {
            Ok(()) => return Ok(path),
            Err(Some(reason)) => denied = denied.or(Some(refuse(&path, reason))),
            Err(None) => {}
        }
    }
    Err(denied.unwrap_or_else(not_found))
}

/// Whether the file can be executed. The error is the reason, `None` if the file does not exist.
fn is_executable(path: &Path) -> Result<(), Option<String>> {
    let metadata = match std::fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Err(None),
        Err(error) if error.raw_os_error() == Some(libc::ENOTDIR) => return Err(None),
        Err(error) => return Err(Some(error.to_string())),
    };
    if metadata.is_dir() {
        return Err(Some("is a directory".to_owned()));
    }
    let name = CString::new(path.as_os_str().as_bytes()).map_err(|_| None)?;
    // SAFETY: the name is terminated.
    let allowed = unsafe { libc::faccessat(libc::AT_FDCWD, name.as_ptr(), libc::X_OK, libc::AT_EACCESS) } == 0;
    if !allowed || metadata.permissions().mode() & 0o111 == 0 {
        return Err(Some("permission denied".to_owned()));
    }
    Ok(())
}

/// Refuses programs that gain privileges: the loader ignores preloads in them.
fn check_privileges(path: &Path) -> Result<(), LaunchError> {
    let Ok(metadata) = std::fs::metadata(path) else {
        return Ok(());
    };
    // SAFETY: no arguments.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    let mode = metadata.mode();
    let unsampled = |reason, advice| {
        Err(LaunchError::Unsampled {
            path: path.to_owned(),
            reason,
            advice,
        })
    };
    if mode & 0o4000 != 0 && metadata.uid() != user {
        return unsampled(
            "it is set-user-ID",
            "Run it as its owner, or record a copy without the set-user-ID bit.",
        );
    }
    if mode & 0o2010 == 0o2010 && metadata.gid() != group {
        return unsampled(
            "it is set-group-ID",
            "Run it as its group, or record a copy without the set-group-ID bit.",
        );
    }
    if let Ok(name) = CString::new(path.as_os_str().as_bytes()) {
        let attribute = c"security.capability";
        // SAFETY: both names are terminated; the size 0 requests no value.
        let size = unsafe { libc::getxattr(name.as_ptr(), attribute.as_ptr(), std::ptr::null_mut(), 0) };
        if size > 0 && user != 0 {
            return unsampled("it has file capabilities", "Record a copy of the file, which has none.");
        }
    }
    Ok(())
}

/// The interpreter if it is a script, else the head of an ELF file, which is empty if it may not be read.
fn interpreter(path: &Path) -> Result<(Option<PathBuf>, Vec<u8>), LaunchError> {
    // Linkers place the program headers right after the header.
    let mut head = Vec::new();
    match File::open(path) {
        Ok(file) => drop(
            file.take(64 * 1024)
                .read_to_end(&mut head)
                .map_err(|e| refuse(path, e.to_string()))?,
        ),
        // Executable but not readable: only the loader can examine it.
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => return Ok((None, head)),
        Err(error) => return Err(refuse(path, error.to_string())),
    }
    if let Some(line) = head.strip_prefix(b"#!") {
        let line = line.split(|b| *b == b'\n').next().unwrap_or_default().trim_ascii();
        let interpreter = line.split(|b| b.is_ascii_whitespace()).next().unwrap_or_default();
        let interpreter = PathBuf::from(OsStr::from_bytes(interpreter));
        if !interpreter.is_file() {
            return Err(refuse(
                path,
                format!("its interpreter {} does not exist", interpreter.display()),
            ));
        }
        return Ok((Some(interpreter), Vec::new()));
    }
    if !head.starts_with(&elf::ELFMAG) {
        return Err(refuse(
            path,
            "exec format error (neither an ELF file nor a script with #!)",
        ));
    }
    Ok((None, head))
}

/// Parts of the names of other C libraries' dynamic loaders: musl's and Android's.
const OTHER_LOADERS: [&str; 2] = ["/ld-musl-", "/linker64"];

/// Checks the file format. Returns the interpreter if the file is a script.
fn check_format(path: &Path) -> Result<Option<PathBuf>, LaunchError> {
    let (interpreter, head) = interpreter(path)?;
    if interpreter.is_some() || head.is_empty() {
        return Ok(interpreter);
    }
    let unsampled = |reason, advice| {
        Err(LaunchError::Unsampled {
            path: path.to_owned(),
            reason,
            advice,
        })
    };
    let file = match elf::FileHeader64::<Endianness>::parse(head.as_slice()) {
        Ok(file) => file,
        Err(_) if head.get(4) == Some(&elf::ELFCLASS32.0) => {
            return unsampled("it is a 32-bit program", "Build it for x86-64.");
        }
        Err(error) => return Err(refuse(path, error.to_string())),
    };
    let Ok(endian) = file.endian() else {
        return Err(refuse(path, "unknown byte order"));
    };
    if file.e_machine(endian) != elf::EM_X86_64 {
        return unsampled("it is for another architecture", "Build it for x86-64.");
    }
    let segments = file
        .program_headers(endian, head.as_slice())
        .map_err(|error| refuse(path, error.to_string()))?;
    if !segments.iter().any(|segment| segment.p_type(endian) == elf::PT_INTERP) {
        return unsampled(
            STATIC,
            "Sample it from outside (`--engine ptrace`), or link it dynamically for the recording.",
        );
    }
    if let Some(loader) = segments
        .iter()
        .find_map(|segment| segment.interpreter(endian, head.as_slice()).ok()?)
        && OTHER_LOADERS
            .iter()
            .any(|other| String::from_utf8_lossy(loader).contains(other))
    {
        return unsampled(
            "its C library is not glibc",
            "Sample it from outside (`--engine ptrace`), or build it with glibc for the recording.",
        );
    }
    Ok(None)
}
