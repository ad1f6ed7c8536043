//! Instrumented builds: signals, threads, processes, and places where counts cannot be written.

use crate::support::counted::*;
use crate::support::*;
use pleach_facilities::skip;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const SOURCE: &[&str] = &["count_tasks.c"];

/// Runs the program in one way, in all builds that matter.
fn each(ways: &[&str], mut test: impl FnMut(&Path, &Path, &str, &str, bool)) {
    Cases::run(|cases| {
        let dir = scratch();
        let plain = plain(dir.path(), SOURCE, &[]);
        for build in builds(&["-O0", "-O2"]) {
            for edges in [false, true] {
                let build = if edges { build.what(&["--edges"]) } else { build.clone() };
                let program = build.program(dir.path(), SOURCE);
                for &how in ways {
                    let what = format!("{how}: {build:?}");
                    cases.case("", || test(&plain, &program, how, &what, edges));
                }
            }
        }
    });
}

fn check_all(program: &Path, ran: &Run, what: &str, edges: bool) {
    if edges {
        check(program, ran, what);
    } else {
        check_paths(program, ran, what);
    }
}

fn assert_same(ran: &Run, expected: &Run, what: &str) {
    let seen = |run: &Run| (run.code(), run.stdout.clone(), run.stderr.clone());
    assert_eq!(seen(ran), seen(expected), "{what}");
}

#[test]
fn handlers_and_threads_lose_no_count() {
    each(
        &["timers", "raises", "threads", "sequence", "running", "chdir", "closes"],
        |plain, program, how, what, edges| {
            let expected = run_counted(plain, &[how]);
            let ran = run_counted(program, &[how]);
            assert_same(&ran, &expected, what);
            if how != "timers" {
                assert_eq!(ran.marks, expected.marks, "{what}");
            }
            let size = fs::metadata(ran.file()).expect("a file").len();
            assert!(size < 64 << 20, "{what}: {size} bytes");
            if how == "sequence" {
                assert!(size < 4 << 20, "{what}: {size} bytes");
            }
            check_all(program, &ran, what, edges);
        },
    );
}

#[test]
fn processes_are_told_apart() {
    each(&["forks", "daemon", "spawns"], |plain, program, how, what, edges| {
        let expected = run_counted(plain, &[how]);
        let ran = run_counted(program, &[how]);
        assert_same(&ran, &expected, what);
        assert_eq!(ran.marks, expected.marks, "{what}");
        let names: Vec<_> = ran
            .files
            .iter()
            .map(|f| f.file_name().expect("a name").to_owned())
            .collect();
        assert!(
            names.iter().all(|n| {
                let name = n.to_str().expect("UTF-8");
                let pid = name.strip_prefix("default-").and_then(|n| n.strip_suffix(".plcnt"));
                pid.is_some_and(|p| p.parse::<u32>().is_ok())
            }),
            "{what}: {names:?}"
        );
        check_all(program, &ran, what, edges);
        let files = match how {
            "forks" => 5,
            "daemon" => 3,
            _ => 1,
        };
        assert_eq!(names.len(), files, "{what}: {names:?}");
        if how == "forks" {
            let known = graphs(program);
            let is_parent = |file: &PathBuf| counted_marks(&flows(std::slice::from_ref(file)), &known)[21] == 1;
            let (parents, children): (Vec<_>, Vec<_>) = ran.files.iter().cloned().partition(is_parent);
            assert_eq!(parents.len(), 1, "{what}");
            check_files(&[program], &parents, &ran.marks[0], what);
            check_files(&[program], &children, &ran.marks[1], what);
        }

        let one = run_with(program, &[how], |command| {
            command.env("PLEACH_COUNTS", "all.plcnt");
        });
        assert_same(&one, &expected, what);
        assert_eq!(one.file().file_name().expect("a name"), "all.plcnt", "{what}");
        assert_eq!(one.marks, ran.marks, "{what}");
        check_all(program, &one, what, edges);
        if !edges {
            assert_eq!(flows(&one.files), flows(&ran.files), "{what}");
        }
    });
}

/// The counts of a file although some activations never ended: marks of those that did.
fn loosely_counted(program: &Path, file: &Path) -> Vec<u64> {
    let mut command = Command::new(pleach());
    let out = output(command.arg("paths").arg(file).args(["--edges", "--json"]));
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let rows: Vec<FunctionRow> = serde_json::from_slice(&out.stdout).expect("JSON");
    let key = |row: FunctionRow| ((row.function_id.clone(), row.cfg_hash.clone()), row);
    counted_marks(&rows.into_iter().map(key).collect(), &graphs(program))
}

#[test]
fn a_killed_program_keeps_what_it_counted() {
    each(&["killed"], |_, program, how, what, _| {
        let (dir, marks) = (scratch(), scratch());
        let file = marks.path().join("marks");
        fs::write(&file, vec![0; 4096]).expect("written");
        let mut child = Command::new(program)
            .arg(how)
            .current_dir(dir.path())
            .env("COUNT_MARKS", &file)
            .stdout(Stdio::piped())
            .spawn()
            .expect("it runs");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped"))
            .read_line(&mut line)
            .expect("read");
        child.kill().expect("killed");
        child.wait().expect("ended");
        let counts = dir.path().join(format!("default-{}.plcnt", child.id()));
        let bytes = fs::read(&file).expect("marks");
        let marks: Vec<u64> = bytes
            .chunks_exact(8)
            .map(|c| u64::from_ne_bytes(c.try_into().expect("eight bytes")))
            .take(MARKS)
            .collect();
        assert!(marks[3] == 500 && marks[4] == 500, "{what}: {marks:?}");
        assert_eq!(loosely_counted(program, &counts), marks, "{what}");
    });
    Cases::run(|cases| {
        let dir = scratch();
        for build in builds(&["-O0", "-O2"]) {
            let program = build.program(dir.path(), &["count_ends.c"]);
            // By number: marks of activations that the signal or the end of the process cut short.
            for (how, code, cut) in [("crash", 139, 41), ("kill", 137, 63), ("thread_exits", 7, 16)] {
                cases.case(&format!("{how}: {build:?}"), || {
                    let ran = run_counted(&program, &[how]);
                    assert_eq!((ran.code(), ran.stdout.as_str(), ran.stderr.as_str()), (code, "", ""));
                    let mut marks = ran.all_marks();
                    marks[cut] = 0;
                    assert_eq!(loosely_counted(&program, ran.file()), marks);
                });
            }
        }
    });
}

/// One line that says what is wrong and what to do.
fn assert_one_error(stderr: &str, what: &str) {
    let lines: Vec<&str> = stderr.lines().collect();
    assert!(
        lines.len() == 1 && lines[0].starts_with("pleach: error: ") && lines[0].contains("PLEACH_COUNTS"),
        "{what}: {stderr:?}"
    );
}

#[test]
fn a_program_runs_on_where_counts_cannot_be_written() {
    each(&["some"], |plain, program, how, what, _| {
        let expected = run_counted(plain, &[how]);
        let places = scratch();
        let foreign = places.path().join("foreign");
        fs::write(&foreign, "precious").expect("written");
        let short = places.path().join("short");
        fs::write(&short, "PLEACHC1").expect("written");
        let long = "x".repeat(5000);
        for place in [
            "/nonexistent/x.plcnt",
            "/proc/x.plcnt",
            "/",
            "/dev/full",
            "/dev/null",
            foreign.to_str().expect("UTF-8"),
            short.to_str().expect("UTF-8"),
            &long,
        ] {
            let ran = run_with(program, &[how], |command| {
                command.env("PLEACH_COUNTS", place);
            });
            let what = format!("{place:.50}: {what}");
            assert_eq!((ran.code(), &ran.stdout), (expected.code(), &expected.stdout), "{what}");
            assert_eq!(ran.marks, expected.marks, "{what}");
            assert_one_error(&ran.stderr, &what);
            assert_eq!(ran.files, Vec::<PathBuf>::new(), "{what}");
        }
        assert_eq!(fs::read(&foreign).expect("still there"), b"precious", "{what}");
        assert_eq!(fs::read(&short).expect("still there"), b"PLEACHC1", "{what}");
        // An old file of counts is replaced.
        let ran = run_counted(program, &[how]);
        let size = fs::metadata(ran.file()).expect("a file").len();
        let again = run_with(program, &[how], |command| {
            fs::copy(
                ran.file(),
                command.get_current_dir().expect("a folder").join("again.plcnt"),
            )
            .expect("copied");
            command.env("PLEACH_COUNTS", "again.plcnt");
        });
        assert_same(&again, &expected, what);
        assert_eq!(flows(&again.files), flows(&ran.files), "{what}");
        assert_eq!(fs::metadata(again.file()).expect("a file").len(), size, "{what}");
        // An empty name is none.
        let empty = run_with(program, &[how], |command| {
            command.env("PLEACH_COUNTS", "");
        });
        assert_eq!(flows(&empty.files), flows(&ran.files), "{what}");
    });
}

#[test]
fn limits_do_not_change_what_a_program_does() {
    each(&["limited", "descriptors"], |plain, program, how, what, edges| {
        let expected = run_counted(plain, &[how]);
        let ran = run_counted(program, &[how]);
        assert_eq!((ran.code(), &ran.stdout), (expected.code(), &expected.stdout), "{what}");
        if edges && ran.stderr.is_empty() {
            check(program, &ran, what);
        } else {
            assert_one_error(&ran.stderr, what);
        }
    });
    // No error stream, or none of the three.
    each(&["some"], |plain, program, how, what, edges| {
        let shell = |program: &Path, how: &str, closed: &str| {
            let script = format!("exec '{}' {how} {closed}", program.display());
            run_with(Path::new("/bin/sh"), &["-c", &script], |_| {})
        };
        for closed in ["2>&-", "<&- >&- 2>&-", "<&-"] {
            let expected = shell(plain, how, closed);
            let ran = shell(program, how, closed);
            assert_same(&ran, &expected, what);
            check_all(program, &ran, what, edges);
        }
    });
}

#[test]
fn a_full_disk_is_said_once() {
    // Only root mounts.
    let place = scratch();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=100k", "tmpfs"])
        .arg(place.path())
        .output()
        .is_ok_and(|out| out.status.success());
    if !mounted {
        skip("only root can mount a small file system");
        return;
    }
    let result = std::panic::catch_unwind(|| {
        each(&["chdir"], |plain, program, how, what, edges| {
            let expected = run_counted(plain, &[how]);
            let file = place.path().join("x.plcnt");
            let ran = run_with(program, &[how], |command| {
                command.env("PLEACH_COUNTS", &file);
            });
            assert_eq!((ran.code(), &ran.stdout), (expected.code(), &expected.stdout), "{what}");
            if !edges {
                assert_one_error(&ran.stderr, what);
            }
            // The part that fitted can be read.
            loosely_counted(program, &file);
        });
    });
    Command::new("umount").arg(place.path()).output().expect("unmounted");
    result.expect("see above");
}
