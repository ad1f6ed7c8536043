//! `pleach paths`, `merge` and `flags instrument` as commands, on exact counts.

mod support;

use pleach_annotate::manifest::{self, Anchor};
use pleach_ball_larus::counts::file::CountFile;
use pleach_profile::Profile;
use pleach_store::write_counts;
use std::fs;
use std::process::Command;
use support::{binary, cfg, counts, error, folder, pleach, stderr, stdout};

#[test]
fn files_are_summed_and_printed() {
    let dir = folder("summed");
    write_counts(&dir.join("a.plcnt"), &counts(&[("f", 2), ("g", 1)])).unwrap();
    write_counts(&dir.join("b.plcnt"), &counts(&[("f", 40)])).unwrap();
    let output = pleach(&["paths", "a.plcnt", "b.plcnt", "--json"], &dir);
    assert!(output.status.success() && output.stderr.is_empty());
    let paths: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!((&paths[0]["count"], &paths[1]["count"]), (&42.into(), &1.into()));
    let text = stdout(&pleach(&["paths", "a.plcnt", "--top", "1"], &dir));
    assert!(
        text.contains("66.67 %") && text.contains("33.33 %") && text.contains("1 other path"),
        "{text}"
    );
    let edges = stdout(&pleach(&["paths", "a.plcnt", "--edges", "--function", "f"], &dir));
    assert!(edges.contains("0→1") && !edges.contains(" g "), "{edges}");
    assert_eq!(
        error(&["paths", "a.plcnt", "--function", "h"], &dir),
        "pleach: error: no function h was counted: `pleach paths` without --function lists all\n"
    );
    // What is lost is said, and nothing else is lost.
    let mut bytes = fs::read(dir.join("a.plcnt")).unwrap();
    bytes.extend([7; 100]);
    fs::write(dir.join("c.plcnt"), bytes).unwrap();
    let output = pleach(&["paths", "c.plcnt", "--json"], &dir);
    assert!(output.status.success() && stdout(&output).matches("\"count\"").count() == 2);
    assert_eq!(
        stderr(&output),
        "pleach: warning: c.plcnt: no segment begins at offset 0x2000: the counts in the next 100 bytes are left out\n"
    );
}

#[test]
fn another_builds_counts_are_told() {
    let dir = folder("binary");
    write_counts(&dir.join("a.plcnt"), &counts(&[("f", 2), ("g", 1)])).unwrap();
    let entries = ["f", "g"].map(|name| manifest::encode(&cfg(name), Anchor::Early));
    binary(&dir.join("same"), &entries.concat());
    binary(&dir.join("other"), &entries[0]);
    binary(&dir.join("library"), &entries[1]);
    binary(&dir.join("bare"), &[]);
    let output = pleach(&["paths", "a.plcnt", "--binary", "same", "--json"], &dir);
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let output = pleach(&["paths", "a.plcnt", "--binary", "other", "--json"], &dir);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        stderr(&output),
        "pleach: error: counts of function g are from another build, or from a library: the binary has no such function; they \
         are left out\n"
    );
    let paths: Vec<serde_json::Value> = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!((paths.len(), &paths[0]["function"]), (1, &"f".into()));
    let both = ["paths", "a.plcnt", "--binary", "other", "--binary", "library"];
    assert!(pleach(&both, &dir).status.success());
    let bare = error(&["paths", "a.plcnt", "--binary", "bare"], &dir);
    assert!(bare.starts_with("pleach: error: bare: has no manifest"), "{bare}");
}

#[test]
fn profiles_and_counts_are_told_apart() {
    let dir = folder("kinds");
    write_counts(&dir.join("a.plcnt"), &counts(&[("f", 2)])).unwrap();
    write_counts(&dir.join("b.plcnt"), &counts(&[("f", 3)])).unwrap();
    pleach_store::write_profile(&dir.join("p.pleach"), &Profile::default()).unwrap();
    assert_eq!(
        error(&["paths", "p.pleach", "a.plcnt"], &dir),
        "pleach: error: a.plcnt holds exact counts, p.pleach does not: name either files of exact counts (.plcnt) or sampled \
         profiles (.pleach)\n"
    );
    let edges = error(&["paths", "p.pleach", "--edges"], &dir);
    assert!(edges.contains("`pleach show --function NAME --binary FILE`"), "{edges}");
    for command in [&["paths", "/dev/null"][..], &["overlap", "p.pleach", "/etc/passwd"]] {
        assert!(error(command, &dir).starts_with("pleach: error: "));
    }
    let mixed = error(&["merge", "p.pleach", "a.plcnt", "-o", "m.plcnt"], &dir);
    assert_eq!(
        mixed,
        "pleach: error: a.plcnt holds exact counts, p.pleach is a sampled profile: they cannot be added up; merge files of \
         one kind\n"
    );
    let weighted = error(&["merge", "a.plcnt", "-w", "2,b.plcnt", "-o", "m.plcnt"], &dir);
    assert!(weighted.contains("b.plcnt: exact counts have no weight"), "{weighted}");
    fs::write(dir.join("text"), "x").unwrap();
    let foreign = error(&["merge", "a.plcnt", "text", "-o", "m.plcnt"], &dir);
    assert!(foreign.contains("text: not a count file"), "{foreign}");
    assert!(!dir.join("m.plcnt").exists());
    assert!(
        pleach(&["merge", "a.plcnt", "b.plcnt", "-o", "m.plcnt"], &dir)
            .status
            .success()
    );
    assert_eq!(CountFile::open(dir.join("m.plcnt")).unwrap(), counts(&[("f", 5)]));
    assert!(pleach(&["merge", "p.pleach", "-o", "m.pleach"], &dir).status.success());
}

#[test]
fn flags_say_what_to_count() {
    let dir = folder("flags");
    // Beside the plugin, as it is installed.
    let installed = dir.join("pleach");
    // By another process: commands that other tests start while this one had it open for writing would keep it so, and
    // nothing could run it.
    let copied = Command::new("cp")
        .arg(env!("CARGO_BIN_EXE_pleach"))
        .arg(&installed)
        .status();
    assert!(copied.unwrap().success());
    fs::write(dir.join("libpleach_pass.so"), "").unwrap();
    pleach_store::write_profile(&dir.join("p.pleach"), &Profile::default()).unwrap();
    let flags = |args: &[&str]| {
        let mut command = Command::new(&installed);
        command
            .args(["flags", "instrument"])
            .args(args)
            .current_dir(&dir)
            .output()
            .unwrap()
    };
    let options = |args: &[&str]| {
        let output = flags(args);
        assert!(output.status.success(), "{output:?}");
        let text = stdout(&output);
        let is_own = |word: &&str| word.starts_with("-pleach-") && !word.starts_with("-pleach-id=");
        let own = text.split_whitespace().filter(is_own);
        own.map(str::to_owned).collect::<Vec<_>>()
    };
    let plugin = dir.join("libpleach_pass.so").canonicalize().unwrap();
    let printed = stdout(&flags(&[]));
    let (words, id) = printed
        .split_once(" -Xclang -mllvm -Xclang -pleach-id=")
        .expect("an identifier");
    assert_eq!(
        words,
        format!(
            "--start-no-unused-arguments -fpass-plugin={} -Xclang -mllvm -Xclang -pleach-instrument=paths",
            plugin.display()
        )
    );
    assert_eq!(
        id[16..],
        format!(
            " -Xpreprocessor -fdepfile-entry={} --end-no-unused-arguments\n",
            plugin.display()
        )
    );
    let without = stdout(&flags(&["--no-depfile"]));
    assert_eq!(
        without.trim_end(),
        format!(
            "{words} -Xclang -mllvm -Xclang -pleach-id={} --end-no-unused-arguments",
            &id[..16]
        )
    );
    assert_eq!(
        options(&["--edges", "--anchor", "late"]),
        ["-pleach-instrument=edges", "-pleach-anchor=late"]
    );
    let weights = format!(
        "-pleach-weights={}",
        dir.join("p.pleach").canonicalize().unwrap().display()
    );
    assert_eq!(
        options(&["--iterations", "3", "--weights", "p.pleach", "--config"]),
        ["-pleach-instrument=paths", "-pleach-iterations=3", &weights]
    );
    for (args, expected) in [
        (&["--edges", "--iterations", "2"][..], "--edges counts no paths"),
        (&["--iterations", "5"], "5 is not in 1..=4"),
        (&["--weights", "missing"], "No such file"),
    ] {
        let output = flags(args);
        assert!(
            !output.status.success() && stderr(&output).contains(expected),
            "{output:?}"
        );
    }
    let help = stdout(&flags(&["--help"]));
    assert!(
        help.contains("PLEACH_COUNTS") && help.contains("pleach paths default-*.plcnt"),
        "{help}"
    );
}
