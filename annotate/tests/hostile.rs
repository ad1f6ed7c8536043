//! Maliciously malformed ELF files, and paths that are no regular files.

#![allow(unsafe_code, reason = "system calls")]

use pleach_annotate::binary::Binary;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

const HEADER: usize = 64;
const SEGMENT: usize = 56;
const SHF_COMPRESSED: u64 = 1 << 11;

/// A section: name, flags, contents.
type Section<'a> = (&'a str, u64, Vec<u8>);

/// An x86-64 program with executable segments (offset and length in the file) and sections.
fn elf(segments: &[(u64, u64)], sections: &[Section]) -> Vec<u8> {
    let mut names = b"\0".to_vec();
    let mut bodies: Vec<u8> = Vec::new();
    let mut table = vec![0; 64];
    let begin = HEADER + SEGMENT * segments.len();
    let mut section = |name: &str, kind: u32, flags: u64, body: &[u8]| {
        table.extend((names.len() as u32).to_le_bytes());
        table.extend(kind.to_le_bytes());
        for word in [flags, 0, (begin + bodies.len()) as u64, body.len() as u64, 0, 1, 0] {
            table.extend(word.to_le_bytes());
        }
        names.extend(name.as_bytes());
        names.push(0);
        bodies.extend(body);
    };
    for (name, flags, body) in sections {
        section(name, 1, *flags, body);
    }
    let mut all: Vec<&str> = sections.iter().map(|(name, ..)| *name).collect();
    all.push(".names");
    let text: Vec<u8> = all
        .iter()
        .flat_map(|name| [b"\0", name.as_bytes()].concat())
        .chain([0])
        .collect();
    section(".names", 3, 0, &text);
    let mut out = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x3e\0\x01\0\0\0".to_vec();
    for word in [0, HEADER as u64, (begin + bodies.len()) as u64] {
        out.extend(word.to_le_bytes());
    }
    out.extend(0u32.to_le_bytes());
    for half in [
        64,
        56,
        segments.len() as u16,
        64,
        all.len() as u16 + 1,
        all.len() as u16,
    ] {
        out.extend(half.to_le_bytes());
    }
    for (offset, length) in segments {
        out.extend([1, 0, 0, 0, 5, 0, 0, 0]);
        for word in [*offset, 0x1000, 0x1000, *length, *length, 4096] {
            out.extend(word.to_le_bytes());
        }
    }
    out.extend(bodies);
    out.extend(table);
    out
}

fn written(directory: &Path, bytes: &[u8]) -> std::path::PathBuf {
    let path = directory.join("program");
    std::fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn a_section_that_claims_to_grow_beyond_measure_is_not_read() {
    let directory = tempfile::tempdir().unwrap();
    for claimed in [1u64 << 40, u64::MAX / 2, 100_000] {
        let mut body = 1u32.to_le_bytes().to_vec();
        body.extend(0u32.to_le_bytes());
        body.extend(claimed.to_le_bytes());
        body.extend(1u64.to_le_bytes());
        body.extend([0x78, 0x9c, 3, 0, 0, 0, 0, 1]);
        let sections = [(".pleach_cfg", SHF_COMPRESSED, body), (".pseudo_probe", 0, vec![7; 9])];
        let binary = Binary::open(&written(directory.path(), &elf(&[], &sections))).unwrap();
        assert_eq!((binary.manifest.len(), binary.probes.len()), (0, 9));
    }
}

#[test]
fn segments_that_overlap_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let many = elf(&[(0, 300); 40], &[]);
    let error = Binary::open(&written(directory.path(), &many)).unwrap_err().to_string();
    assert!(error.contains("executable segments overlap"), "{error}");
    let apart = elf(&[(0, 64), (64, 56)], &[]);
    assert_eq!(Binary::open(&written(directory.path(), &apart)).unwrap().code.len(), 2);
}

#[test]
fn devices_and_pipes_are_not_read() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe");
    let name = CString::new(pipe.as_os_str().as_bytes()).unwrap();
    // SAFETY: the name is terminated.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    let paths = [pipe, "/dev/zero".into()];
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for path in &paths {
            let error = Binary::open(path).unwrap_err().to_string();
            sender.send(error).unwrap();
        }
    });
    for _ in 0..2 {
        let error = receiver.recv_timeout(Duration::from_secs(60)).expect("reading ends");
        assert!(error.contains("not a file"), "{error}");
    }
}

#[test]
fn the_debug_file_is_beside_the_program() {
    let directory = tempfile::tempdir().unwrap();
    let beside = elf(&[], &[(".pleach_cfg", 0, vec![1, 2, 3])]);
    std::fs::write(directory.path().join("other"), beside).unwrap();
    let absolute = directory.path().join("other");
    for (link, found) in [
        ("other", true),
        ("/dev/zero", false),
        (absolute.to_str().unwrap(), false),
    ] {
        let mut body = link.as_bytes().to_vec();
        body.resize((link.len() + 4) / 4 * 4 + 4, 0);
        let program = elf(&[], &[(".gnu_debuglink", 0, body)]);
        let binary = Binary::open(&written(directory.path(), &program)).unwrap();
        assert_eq!(binary.debug_file.is_some(), found, "{link}");
        assert_eq!(binary.manifest.is_empty(), !found, "{link}");
    }
}
