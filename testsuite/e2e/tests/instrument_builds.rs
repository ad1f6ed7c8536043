//! Instrumented builds: every linker, library, language and option that a user's build may have.

use crate::support::counted::*;
use crate::support::*;
use pleach_facilities::{has_program, skip};
use std::path::{Path, PathBuf};
use std::process::Command;

const UNITS: &[&str] = &["count_unit_a.cpp", "count_unit_b.cpp"];

/// Compiles and links in one step. At link time, the late anchor needs the plugin in the linker.
fn build(compiler: &str, out: &Path, args: &[&str], flags: &[String], sources: &[&str]) {
    let mut command = Command::new(compiler);
    command
        .args(["-w", "-pthread"])
        .args(flags)
        .args(args)
        .args(sources.iter().map(|s| program(s)));
    let has = |word: &str| flags.iter().any(|f| f == word);
    if args.iter().any(|a| a.starts_with("-flto")) && has("-pleach-anchor=late") {
        let plugin = built().join("libpleach_pass.so");
        let mode = if has("-pleach-instrument=edges") {
            "edges"
        } else {
            "paths"
        };
        command.arg(format!("-Wl,--load-pass-plugin={}", plugin.display()));
        command.env("PLEACH_INSTRUMENT", mode).env("PLEACH_ANCHOR", "late");
    }
    stdout(command.arg(marks_object()).arg("-o").arg(out));
}

/// Builds a program in one way for both anchors, and checks its counts.
fn executables(compiler: &str, sources: &[&str], options: &[&[&str]]) {
    let dir = scratch();
    let language: &[&str] = if compiler.contains("++") { &["-std=c++20"] } else { &[] };
    let expected = run(&plain(dir.path(), sources, language));
    Cases::run(|cases| {
        for anchor in ["early", "late"] {
            let flags = flags(&["instrument", "--anchor", anchor]);
            let edge_flags = crate::support::flags(&["instrument", "--edges", "--anchor", anchor]);
            for options in options {
                let linker = options.iter().find_map(|option| option.strip_prefix("-fuse-ld="));
                if linker.is_some_and(|linker| !has_linker(linker)) {
                    continue;
                }
                let what = format!("{anchor} {compiler} {options:?}");
                cases.case(&what, || {
                    let out = dir.path().join("program");
                    let options = [options, language].concat();
                    build(compiler, &out, &options, &flags, sources);
                    let ran = run_counted(&out, &[]);
                    let seen = (ran.code(), ran.stdout.as_str(), ran.stderr.as_str());
                    assert_eq!(seen, (0, expected.as_str(), ""), "{what}");
                    let (by_paths, _) = check_paths(&out, &ran, &what);
                    if language.is_empty() {
                        build(compiler, &out, &options, &edge_flags, sources);
                        let ran = run_counted(&out, &[]);
                        assert_eq!(check(&out, &ran, &what), by_paths, "{what}");
                    }
                });
            }
        }
    });
}

const COLLECTED: [&str; 3] = ["-O2", "-ffunction-sections", "-Wl,--gc-sections"];

#[test]
fn kinds_of_executables_count_the_same() {
    let linker = |linker| [COLLECTED[0], COLLECTED[1], COLLECTED[2], linker];
    executables(
        "clang-22",
        &["count_flow.c"],
        &[
            &["-O2", "-g"],
            &["-O2", "-fPIE", "-pie"],
            &["-O2", "-fno-pie", "-no-pie"],
            &["-O2", "-static"],
            &["-O1", "-static-pie"],
            &linker("-fuse-ld=bfd"),
            &linker("-fuse-ld=gold"),
            &linker("-fuse-ld=lld"),
            &linker("-fuse-ld=mold"),
            &["-O2", "-flto", "-fuse-ld=lld"],
            &["-O2", "-flto=thin", "-fuse-ld=lld"],
            &["-O3", "-march=x86-64-v3", "-fomit-frame-pointer"],
            &["-O1", "-fsanitize=address"],
            &["-O1", "-fsanitize=undefined"],
            &[
                "-O2",
                "-fstack-protector-all",
                "-fcf-protection=full",
                "-D_FORTIFY_SOURCE=2",
            ],
            &["-O2", "-mcmodel=large"],
            &["-O0", "-fno-inline"],
            &["-Oz"],
        ],
    );
}

#[test]
fn several_units_count_as_one() {
    executables(
        "clang++-22",
        UNITS,
        &[
            &["-O0", "-g"],
            &["-O2", "-static", "-fuse-ld=mold"],
            &[
                "-O2",
                "-ffunction-sections",
                "-Wl,--gc-sections,--icf=all",
                "-fuse-ld=lld",
            ],
            &["-O2", "-flto", "-fuse-ld=lld"],
            &["-O2", "-flto=thin", "-fuse-ld=lld"],
            &["-O1", "-fsanitize=address"],
        ],
    );
}

#[test]
fn coroutines_are_counted() {
    let dir = scratch();
    let source = &["count_generator.cpp"];
    let plain = plain(dir.path(), source, &["-std=c++20"]);
    let expected = run_counted(&plain, &[]);
    Cases::run(|cases| {
        for build in builds(&["-O0", "-O1", "-O2"]) {
            let what = format!("{build:?}");
            cases.case(&what, || {
                let binary = build.extra(&["-std=c++20"]).program(dir.path(), source);
                let ran = run_counted(&binary, &[]);
                assert_eq!(
                    (ran.code(), &ran.stdout, ran.stderr.as_str()),
                    (0, &expected.stdout, ""),
                    "{what}"
                );
                assert_eq!(ran.marks, expected.marks, "{what}");
                let _ = flows(&ran.files);
            });
        }
    });
}

#[test]
fn libraries_count_too() {
    let dir = scratch();
    let at = |name: &str| dir.path().join(name);
    let library = |name: &str, function: &str, first: &str, flags: &[String]| -> PathBuf {
        let out = at(name);
        let mut command = clang();
        command.args([
            "-w",
            "-O2",
            "-fPIC",
            "-shared",
            &format!("-DNAME={function}"),
            &format!("-DFIRST={first}"),
        ]);
        stdout(command.args(flags).arg(program("count_lib.c")).arg("-o").arg(&out));
        out
    };
    let user = |name: &str, flags: &[String], linked: &Path| -> PathBuf {
        let out = at(name);
        let mut command = clang();
        command
            .args(["-w", "-O2", "-rdynamic"])
            .args(flags)
            .arg(program("count_user.c"));
        stdout(command.arg(linked).arg(marks_object()).arg("-ldl").arg("-o").arg(&out));
        out
    };
    Cases::run(|cases| {
        for anchor in ["early", "late"] {
            let flags = flags(&["instrument", "--anchor", anchor]);
            for (program, linked, opened) in [
                (true, true, true),
                (true, true, false),
                (true, false, true),
                (true, false, false),
                (false, true, true),
                (false, true, false),
                (false, false, true),
            ] {
                let what = format!("{anchor}: counted: program {program}, linked {linked}, opened {opened}");
                cases.case(&what, || {
                    let chosen = |counted: bool| if counted { &flags[..] } else { &[] };
                    let one = library("liblinked.so", "linked", "0", chosen(linked));
                    let two = library("libopened.so", "opened", "1", chosen(opened));
                    let user = user("user", chosen(program), &one);
                    let ran = run_counted(&user, &[two.to_str().expect("UTF-8")]);
                    assert_eq!(
                        (ran.code(), ran.stdout.as_str(), ran.stderr.as_str()),
                        (0, "272\n", ""),
                        "{what}"
                    );
                    let mut marks = ran.all_marks();
                    for (is_counted, of) in [(linked, 0..2), (opened, 8..10), (program, 20..22)] {
                        if !is_counted {
                            of.for_each(|i| marks[i] = 0);
                        }
                    }
                    let counted = [(program, &user), (linked, &one), (opened, &two)];
                    let binaries: Vec<&Path> = counted.iter().filter(|c| c.0).map(|c| c.1.as_path()).collect();
                    check_files(&binaries, &ran.files, &marks, &what);
                    assert!(ran.files.len() == 1, "{what}: {:?}", ran.files);
                });
            }
        }
    });
}

#[test]
fn random_programs_count_the_same() {
    random_programs(1..=8);
}

/// The same for many.
#[test]
#[ignore = "takes minutes: cargo test --release -p pleach-e2e -- --ignored"]
fn many_random_programs_count_the_same() {
    random_programs(100..=200);
}

fn random_programs(seeds: std::ops::RangeInclusive<u32>) {
    if !has_program("csmith") {
        return;
    }
    let dir = scratch();
    let include = ["/usr/include/csmith", "/usr/include/csmith-2.3.0"]
        .iter()
        .find(|path| Path::new(path).join("csmith.h").exists());
    let Some(include) = include else {
        skip("csmith.h is not installed");
        return;
    };
    let mut tested = 0;
    Cases::run(|cases| {
        for seed in seeds {
            let source = dir.path().join(format!("{seed}.c"));
            let mut command = Command::new("timeout");
            command.args(["20", "csmith", "--no-argc", "--max-funcs", "6", "--seed"]);
            // It leaves `platform.info` where it runs.
            let text = stdout(command.arg(seed.to_string()).current_dir(dir.path()));
            std::fs::write(&source, text).expect("written");
            let compile = |level: &str, flags: &[String]| {
                let out = dir.path().join("random");
                let mut command = clang();
                command.args(["-w", level, "-I", include]).args(flags).arg(&source);
                stdout(command.arg("-o").arg(&out));
                out
            };
            let expected = output(Command::new("timeout").arg("2").arg(compile("-O1", &[])));
            if !expected.status.success() {
                continue;
            }
            tested += 1;
            for level in ["-O0", "-O2"] {
                for anchor in ["early", "late"] {
                    let mut known = None;
                    for what in [&[][..], &["--edges"], &["--iterations", "2"]] {
                        let name = format!("seed {seed} {level} {anchor} {what:?}");
                        cases.case(&name, || {
                            let flags = flags(&[&["instrument", "--anchor", anchor], what].concat());
                            let binary = compile(level, &flags);
                            let ran = run_counted(&binary, &[]);
                            let stdout = String::from_utf8_lossy(&expected.stdout);
                            assert_eq!(
                                (ran.code(), ran.stdout.as_str(), ran.stderr.as_str()),
                                (0, &*stdout, "")
                            );
                            let flows = check(&binary, &ran, &name);
                            match &known {
                                None => {
                                    check_paths(&binary, &ran, &name);
                                    known = Some(flows);
                                }
                                Some(known) => assert_eq!(known, &flows),
                            }
                        });
                    }
                }
            }
        }
    });
    assert!(tested >= 3, "{tested}");
}
