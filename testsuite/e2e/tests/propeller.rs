//! `pleach export --format propeller`: stock clang and lld place blocks and functions by it.

use crate::support::*;
use pleach_annotate::binary::Binary;
use pleach_export::propeller::address_map::decode;
use pleach_facilities::has_program;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

const MAPPED: [&str; 4] = [
    "-O2",
    "-fbasic-block-address-map",
    "-ffunction-sections",
    "-fuse-ld=lld",
];

fn mapped(dir: &Path, source: &str) -> PathBuf {
    let binary = dir.join("mapped");
    compile(&binary, &MAPPED, &[program(source)]);
    binary
}

/// Blocks as (identifier, size), by the addresses of functions.
type Functions = BTreeMap<u64, Vec<(u64, u64)>>;

/// As LLVM's own tool reads the map.
fn read_by_llvm(binary: &Path) -> Functions {
    let text = stdout(Command::new("llvm-readobj-22").arg("--bb-addr-map").arg(binary));
    let mut functions = Functions::new();
    let (mut entry, mut id) = (0, 0);
    for line in text.lines() {
        let Some((key, value)) = line.trim().split_once(": ") else {
            continue;
        };
        let number = || match value.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).expect("a number"),
            None => value.parse().expect("a number"),
        };
        match key {
            "At" => entry = number(),
            "ID" => id = number(),
            "Size" => functions.entry(entry).or_default().push((id, number())),
            _ => {}
        }
    }
    functions
}

#[test]
fn the_map_of_blocks_is_as_llvm_reads_it() {
    if !has_linker("lld") || !has_program("llvm-readobj-22") {
        return;
    }
    for source in ["exported.c", "phases.c", "switch_dispatch.c"] {
        let dir = scratch();
        let path = mapped(dir.path(), source);
        let section = Binary::open(&path).expect("a program").block_addresses;
        let functions = decode(&section).expect("a map").into_iter().map(|blocks| {
            let block = |block: &pleach_export::propeller::address_map::Block| {
                (u64::from(block.id), block.code.end - block.code.start)
            };
            (blocks[0].code.start, blocks.iter().map(block).collect())
        });
        let functions: Functions = functions.collect();
        assert!(!functions.is_empty());
        assert_eq!(functions, read_by_llvm(&path), "{source}");
    }
}

#[test]
fn stock_clang_places_blocks_by_it() {
    if !has_linker("lld") {
        return;
    }
    let dir = scratch();
    let binary = mapped(dir.path(), "exported.c");
    let (profile, folder) = (dir.path().join("app.pleach"), dir.path().join("propeller"));
    let mut record = Command::new(pleach());
    record.args(["record", "--quiet", "--overhead", "20%", "--keep-vectors", "-o"]);
    stdout(record.arg(&profile).arg("--").arg(&binary));
    let export = |binary: &Path| {
        let mut export = Command::new(pleach());
        export
            .arg("export")
            .arg(&profile)
            .args(["--format", "propeller", "--binary"]);
        export.arg(binary).arg("-o").arg(&folder);
        export
    };
    let output = output(&mut export(&binary));
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.success() && told.contains("wrote cc_profile.txt and ld_profile.txt to"),
        "{told}"
    );
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect("written");
    let (clusters, order) = (read("cc_profile.txt"), read("ld_profile.txt"));
    let mut lines = clusters.lines();
    assert_eq!(lines.next(), Some("v1"));
    let named: Vec<&str> = clusters.lines().filter_map(|line| line.strip_prefix("f ")).collect();
    assert_eq!(named, order.lines().collect::<Vec<_>>());
    assert!(named.contains(&"work"), "{clusters}");
    assert!(
        lines
            .filter(|line| line.starts_with('c'))
            .all(|line| line == "c 0" || line.starts_with("c 0 "))
    );

    let placed = dir.path().join("placed");
    let options = [
        format!(
            "-fbasic-block-sections=list={}",
            folder.join("cc_profile.txt").display()
        ),
        format!(
            "-Wl,--symbol-ordering-file={},--no-warn-symbol-ordering",
            folder.join("ld_profile.txt").display()
        ),
    ];
    let flags: Vec<String> = MAPPED.map(str::to_owned).into_iter().chain(options).collect();
    compile(&placed, &flags, &[program("exported.c")]);
    assert_eq!(stdout(&mut Command::new(&placed)), stdout(&mut Command::new(&binary)));
    // Functions are in the order that was asked for.
    let symbols = Binary::open(&placed).expect("a program").symbols;
    let at = |name: &str| symbols.iter().position(|symbol| symbol.name == name);
    let places: Vec<usize> = named.iter().filter_map(|name| at(name)).collect();
    assert!(places.len() > 1 && places.is_sorted(), "{places:?} {named:?}");

    // Another build is not what was recorded; one without a map has nothing to say.
    let (_, text) = failure(&mut export(&placed));
    assert!(
        text.contains("not among the recorded files, or changed since"),
        "{text}"
    );
    let plain = dir.path().join("plain");
    compile(&plain, &["-O2"], &[program("exported.c")]);
    stdout(
        Command::new(pleach())
            .args(["record", "--quiet", "--overhead", "20%", "--keep-vectors", "-o"])
            .arg(&profile)
            .arg("--")
            .arg(&plain),
    );
    let (_, text) = failure(&mut export(&plain));
    assert!(
        text.contains("no basic-block address map: build it with -fbasic-block-address-map"),
        "{text}"
    );
}
