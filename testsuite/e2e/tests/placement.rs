//! Placement: hot code together, cold code apart, and the same program behaviour.

use crate::support::*;
use object::{Object, ObjectSymbol};
use pleach_profile::file::ProfileFile;
use pleach_store::write_profile;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCE: &str = "placement.cpp";

/// A recording of the program as it is built with these flags. Its samples are multiplied: a short recording alone
/// does not prove what never runs.
fn recorded(dir: &Path, level: &[&str], factor: u64) -> PathBuf {
    let (binary, profile) = (dir.join("annotated"), dir.join("app.pleach"));
    build(&binary, &[level, &words(&flags(&["annotate"]))].concat());
    stdout(
        Command::new(pleach())
            .args(["record", "--quiet", "--overhead", "1000%", "-o"])
            .arg(&profile)
            .arg("--")
            .arg(&binary),
    );
    let mut read = ProfileFile::open(&profile)
        .and_then(|file| file.read_all())
        .expect("a profile");
    for function in &mut read.functions {
        function.samples *= factor;
    }
    read.provenance.bursts *= factor;
    write_profile(&profile, &read).expect("written");
    profile
}

fn words(flags: &[String]) -> Vec<&str> {
    flags.iter().map(String::as_str).collect()
}

fn build(out: &Path, flags: &[&str]) {
    stdout(clangxx().args(flags).arg(program(SOURCE)).arg("-o").arg(out));
}

fn use_flags(profile: &Path, options: &[&str]) -> Vec<String> {
    let mut all = flags(&["use", profile.to_str().expect("UTF-8")]);
    for option in options {
        all.extend(["-Xclang", "-mllvm", "-Xclang", option].map(str::to_owned));
    }
    all
}

/// Addresses of a program's own functions and of what was split off them.
fn symbols(binary: &Path) -> BTreeMap<String, u64> {
    let data = std::fs::read(binary).expect("the file exists");
    let file = object::File::parse(&*data).expect("an ELF file");
    let named = |s: object::Symbol<'_, '_>| Some((s.name().ok()?.to_owned(), s.address()));
    file.symbols().filter(|s| s.is_definition()).filter_map(named).collect()
}

fn address(symbols: &BTreeMap<String, u64>, name: &str) -> u64 {
    *symbols.get(name).unwrap_or_else(|| panic!("no {name} in {symbols:?}"))
}

const HOT: &str = "_Z3hotjjRj";
const SPLIT_OFF: &str = "_Z3hotjjRj.cold";
const LEAF: &str = "_Z4leafj";
const UNUSED: &str = "_Z6unusedj";

#[test]
fn hot_code_is_together_and_what_never_ran_is_apart_with_every_linker() {
    let dir = scratch();
    let profile = recorded(dir.path(), &["-O2"], 1000);
    let plain = dir.path().join("plain");
    build(&plain, &["-O2"]);
    let expected = run(&plain);
    let with_profile = use_flags(&profile, &[]);
    for linker in ["bfd", "gold", "lld", "mold"] {
        for more in [&[][..], &["-fno-pic", "-no-pie"], &["-g", "-Wl,--gc-sections"]] {
            let binary = dir.path().join(linker);
            let linker = format!("-fuse-ld={linker}");
            build(&binary, &[&["-O2", &linker], more, &words(&with_profile)].concat());
            assert_eq!(run(&binary), expected, "{linker} {more:?}");
            // mold keeps the order of its input unless it is told `-z keep-text-section-prefix`.
            if linker.ends_with("mold") {
                continue;
            }
            let symbols = symbols(&binary);
            let (hot, leaf) = (address(&symbols, HOT), address(&symbols, LEAF));
            let between = hot.min(leaf)..hot.max(leaf);
            assert!(!between.contains(&address(&symbols, SPLIT_OFF)), "{linker} {symbols:?}");
            assert!(!between.contains(&address(&symbols, UNUSED)), "{linker} {symbols:?}");
        }
    }
}

#[test]
fn placed_programs_do_the_same_at_every_level_and_after_linking() {
    let levels: [&[&str]; 6] = [
        &["-O0"],
        &["-O1"],
        &["-O3"],
        &["-Os"],
        &["-O2", "-flto", "-fuse-ld=lld"],
        &["-O2", "-flto=thin", "-fuse-ld=lld"],
    ];
    let dir = scratch();
    let plugin = format!("-Wl,--load-pass-plugin={}", built().join("libpleach_pass.so").display());
    for level in levels {
        let plain = dir.path().join("plain");
        build(&plain, level);
        let expected = run(&plain);
        let profile = recorded(dir.path(), level, 1000);
        let with_profile = use_flags(&profile, &[]);
        let binary = dir.path().join("placed");
        build(&binary, &[level, &words(&with_profile)].concat());
        assert_eq!(run(&binary), expected, "{level:?}");
        if level.iter().any(|word| word.starts_with("-flto")) {
            build(&binary, &[level, &words(&with_profile), &[&plugin]].concat());
            assert_eq!(run(&binary), expected, "{level:?} {plugin}");
            let symbols = symbols(&binary);
            let (hot, leaf) = (address(&symbols, HOT), address(&symbols, LEAF));
            let between = hot.min(leaf)..hot.max(leaf);
            assert!(
                !between.contains(&address(&symbols, SPLIT_OFF)),
                "{level:?} {symbols:?}"
            );
            assert!(!between.contains(&address(&symbols, UNUSED)), "{level:?} {symbols:?}");
        }
    }
}

#[test]
fn without_placement_code_generation_is_the_hosts_own() {
    let dir = scratch();
    let profile = recorded(dir.path(), &["-O2"], 1000);
    let off = use_flags(&profile, &["-pleach-placement=0"]);
    let object = |name: &str| dir.path().join(name);
    build(&object("off.o"), &[&["-O2", "-c"], &words(&off)[..]].concat());
    build(
        &object("off.bc"),
        &[&["-O2", "-c", "-emit-llvm"], &words(&off)[..]].concat(),
    );
    let generate = ["-O2", "-c", "-Xclang", "-disable-llvm-passes", "-o"];
    stdout(clang().args(generate).arg(object("host.o")).arg(object("off.bc")));
    let read = |name| std::fs::read(object(name)).expect("compiled");
    assert!(read("off.o") == read("host.o"), "the objects differ");
    let on = use_flags(&profile, &[]);
    build(&object("on.o"), &[&["-O2", "-c"], &words(&on)[..]].concat());
    assert!(read("on.o") != read("host.o"), "placement has no effect");
}

#[test]
fn what_the_user_says_stands() {
    let dir = scratch();
    let profile = recorded(dir.path(), &["-O2"], 1000);
    let object = dir.path().join("user.o");
    let with = |options: &[&str]| {
        let all = use_flags(&profile, options);
        build(&object, &[&["-O2", "-c"], &words(&all)[..]].concat());
        (sections(&object), std::fs::read(&object).expect("compiled"))
    };
    let (ours, code) = with(&[]);
    assert!(ours.iter().any(|s| s == ".text.unlikely._Z3hotjjRj"), "{ours:?}");
    let (mine, _) = with(&["-bbsections-cold-text-prefix=.text.mine."]);
    assert!(mine.iter().any(|s| s == ".text.mine._Z3hotjjRj"), "{mine:?}");
    let (same, again) = with(&["-enable-ext-tsp-block-placement=1"]);
    assert_eq!(same, ours);
    assert!(again == code, "what is the default anyway changed something");
}

/// The messages and the assembly of clang for `placed.ll`, whose functions have counts.
fn placed(options: &[&str]) -> (String, String) {
    let mut command = clang();
    let plugin = built().join("libpleach_pass.so");
    command.arg(format!("-fpass-plugin={}", plugin.display())).args(options);
    let out = output(command.args(["-O1", "-S", "-o", "-"]).arg(program("placed.ll")));
    let [remarks, made] = [out.stderr, out.stdout].map(|text| String::from_utf8(text).expect("UTF-8"));
    assert!(out.status.success(), "{command:?}\n{remarks}");
    (remarks, made)
}

/// Functions and the alignment of the loop in each, as a power of two.
fn alignments(assembly: &str) -> BTreeMap<&str, &str> {
    let (mut all, mut function, mut aligned) = (BTreeMap::new(), "", "");
    for line in assembly.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [name, "#", ..] if name.ends_with(':') && !name.starts_with('.') => function = name.trim_end_matches(':'),
            [".p2align", power, ..] => aligned = power,
            [label, "#", "%loop", ..] if label.starts_with(".LBB") => {
                all.insert(function, std::mem::take(&mut aligned));
            }
            // Other directives, and instructions: what was aligned is not the loop.
            [..] if !line.trim_start().starts_with('#') => aligned = "",
            _ => {}
        }
    }
    all
}

const NO_LOOPS: [&str; 4] = ["-Xclang", "-mllvm", "-Xclang", "-pleach-align-loops=0"];

#[test]
fn hot_loops_begin_with_a_window() {
    let (_, assembly) = placed(&[]);
    // The author's word stands; what hardly runs is not padded at all; and without counts all is as ever.
    let expected = BTreeMap::from([("asked", "6"), ("often", "5"), ("seldom", ""), ("unknown", "4")]);
    assert_eq!(alignments(&assembly), expected, "{assembly}");
    let (_, assembly) = placed(&NO_LOOPS);
    assert_eq!(alignments(&assembly)["often"], "4", "{assembly}");
    let (_, assembly) = placed(&["-falign-loops=16"]);
    assert_eq!(alignments(&assembly)["often"], "4", "{assembly}");
}

/// Functions and the alignment of their entries, as a power of two.
fn entry_alignments(assembly: &str) -> BTreeMap<&str, &str> {
    let (mut all, mut aligned) = (BTreeMap::new(), "");
    for line in assembly.lines() {
        match line.split_whitespace().collect::<Vec<_>>()[..] {
            [".p2align", power, ..] => aligned = power.trim_end_matches(','),
            [label, "#", name] if name.starts_with('@') && label.ends_with(':') => {
                all.insert(label.trim_end_matches(':'), std::mem::take(&mut aligned));
            }
            _ => {}
        }
    }
    all
}

#[test]
fn hot_functions_begin_at_a_line() {
    let alignments = |options: &[&str]| {
        let (_, assembly) = placed(options);
        ["often", "seldom", "unknown"].map(|name| entry_alignments(&assembly)[name].to_owned())
    };
    assert_eq!(alignments(&[]), ["6", "4", "4"]);
    let off = ["-Xclang", "-mllvm", "-Xclang", "-pleach-align-entries=0"];
    assert_eq!(alignments(&off), ["4", "4", "4"]);
}

#[test]
fn remarks_say_what_was_placed_where() {
    let (remarks, _) = placed(&["-Rpass=pleach"]);
    insta::assert_snapshot!(remarks, @"
    remark: <unknown>:0:0: asked: placed 1 of 3; entry aligned to 64 bytes [-Rpass=pleach]
    remark: <unknown>:0:0: often: placed 2 of 3, after asked, which calls it; entry aligned to 64 bytes; loops aligned to 32 bytes: 1 [-Rpass=pleach]
    remark: <unknown>:0:0: seldom: placed 3 of 3, after often; unsampled blocks split off: 1 [-Rpass=pleach]
    ");
    let (nothing, _) = placed(&[]);
    assert_eq!(nothing, "");
}

#[test]
fn a_small_profile_splits_nothing_off() {
    let dir = scratch();
    let profile = recorded(dir.path(), &["-O2"], 1);
    let mut few = ProfileFile::open(&profile)
        .and_then(|file| file.read_all())
        .expect("a profile");
    for function in &mut few.functions {
        function.samples = function.samples.min(1000);
        // What breakpoints prove does not depend on the number of samples.
        function.coverage.clear();
    }
    write_profile(&profile, &few).expect("written");
    let all = use_flags(&profile, &[]);
    let object = dir.path().join("few.o");
    build(&object, &[&["-O2", "-c"], &words(&all)[..]].concat());
    let found = sections(&object);
    assert!(!found.iter().any(|s| s.contains("text.unlikely")), "{found:?}");
    assert!(
        found.iter().any(|s| s.ends_with("_Z3hotjjRj")),
        "no sections of functions: {found:?}"
    );
}

#[test]
fn the_order_of_functions_can_be_printed() {
    let dir = scratch();
    let profile = recorded(dir.path(), &["-O2"], 1);
    let annotated = dir.path().join("annotated");
    let order = |binary: &Path| {
        let mut command = Command::new(pleach());
        command.arg("order").arg(&profile).arg("--binary").arg(binary);
        command
    };
    let printed = stdout(&mut order(&annotated));
    let names: Vec<&str> = printed.lines().collect();
    let place = |name| names.iter().position(|&n| n == name);
    // The loop in `hot` calls `leaf`.
    assert_eq!(place(LEAF), place(HOT).map(|at| at + 1), "{printed}");
    assert_eq!(place(UNUSED), None, "{printed}");
    let list = dir.path().join("order.txt");
    std::fs::write(&list, &printed).expect("written");
    let binary = dir.path().join("ordered");
    let linked = format!(
        "-Wl,--symbol-ordering-file={},--no-warn-symbol-ordering",
        list.display()
    );
    build(&binary, &["-O2", "-ffunction-sections", "-fuse-ld=lld", &linked]);
    let symbols = symbols(&binary);
    assert!(address(&symbols, HOT) < address(&symbols, LEAF));
    assert!(address(&symbols, LEAF) < address(&symbols, UNUSED));
    let plain = dir.path().join("plain");
    build(&plain, &["-O2"]);
    let (_, remarks) = failure(&mut order(&plain));
    assert!(remarks.contains("has no manifest"), "{remarks}");
}
