//! Programs that a recorded command starts where the sampler's library is not.

use crate::support::{compile, flags, output, pleach, program, scratch};
use pleach_facilities::skip;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// Copies a program and the libraries that it needs below another root, where it is `/program`.
fn copy_below(root: &Path, executable: &Path) {
    let libraries = output(Command::new("ldd").arg(executable));
    let libraries = String::from_utf8_lossy(&libraries.stdout).into_owned();
    let paths = libraries.split_whitespace().filter(|word| word.starts_with('/'));
    for path in paths {
        let target = root.join(&path[1..]);
        fs::create_dir_all(target.parent().expect("a directory")).expect("a directory");
        fs::copy(path, target).expect("a copy");
    }
    fs::copy(executable, root.join("program")).expect("a copy");
}

/// The dynamic linker would complain of a library that it cannot preload on the program's standard error.
#[test]
fn what_runs_in_another_root_does_the_same_and_is_not_sampled() {
    let folder = scratch();
    let (root, executable) = (folder.path().join("root"), folder.path().join("stacks"));
    compile(&executable, &flags(&["annotate"]), &[program("small_stacks.c")]);
    copy_below(&root, &executable);
    let run = |words: &[&Path], preloaded: Option<&str>| -> Output {
        let mut command = Command::new("env");
        // A library of the user's, which is not there either, is named as without a recorder.
        command.args(preloaded.map(|library| format!("LD_PRELOAD={library}")));
        command
            .args(words)
            .args(["unshare", "--user", "--map-root-user", "chroot"]);
        output(command.arg(&root).args(["/program", "signals"]))
    };
    let alone = run(&[], None);
    if alone.status.code() != Some(5) {
        skip("no user namespaces");
        return;
    }
    let out = folder.path().join("a.pleach");
    let tool = pleach();
    let record = [&tool, Path::new("record"), Path::new("-o"), &out, Path::new("--")];
    let recorded = run(&record, None);
    let text = String::from_utf8_lossy(&recorded.stderr);
    assert_eq!(recorded.status.code(), Some(5), "{text}");
    assert_eq!(recorded.stdout, alone.stdout);
    assert!(text.lines().all(|line| line.starts_with("pleach: ")), "{text}");

    let library = folder.path().join("none.so");
    let library = library.to_str().expect("UTF-8");
    let complaints = |run: &Output| String::from_utf8_lossy(&run.stderr).matches("none.so").count();
    let (alone, recorded) = (run(&[], Some(library)), run(&record, Some(library)));
    assert_eq!(recorded.status.code(), Some(5));
    assert!(complaints(&alone) > 0);
    let text = String::from_utf8_lossy(&recorded.stderr);
    assert!(complaints(&recorded) >= complaints(&alone), "{text}");
    assert!(!text.contains("pleach_stub"), "{text}");
}
