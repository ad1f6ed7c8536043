//! A second profile: of code that a first one optimised, recorded at the late anchor.

use crate::support::*;
use pleach_annotate::manifest::Anchor;
use pleach_profile::file::ProfileFile;
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCE: &str = "small_callees.c";

fn build(out: &Path, flags: &[String], debug: bool) -> String {
    let mut command = clang();
    command.arg("-O2").args(flags).args(debug.then_some("-g"));
    let built = output(command.arg(program(SOURCE)).arg("-o").arg(out));
    String::from_utf8_lossy(&built.stderr).into_owned()
}

fn record(binary: &Path, profile: &Path) {
    let mut record = Command::new(pleach());
    record
        .args(["record", "--quiet", "--overhead", "50%", "-o"])
        .arg(profile);
    stdout(record.arg("--").arg(binary));
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

#[test]
fn the_optimised_code_is_recorded_and_placed() {
    for debug in [false, true] {
        let dir = scratch();
        let at = |name: &str| -> PathBuf { dir.path().join(name) };
        let [plain, annotated, after, second] = ["plain", "annotated", "after", "second"].map(at);
        let [first_profile, second_profile] = ["first.pleach", "second.pleach"].map(at);
        build(&plain, &[], debug);
        build(&annotated, &flags(&["annotate"]), debug);
        record(&annotated, &first_profile);
        build(&after, &flags(&["annotate", "--after", text(&first_profile)]), debug);
        record(&after, &second_profile);
        assert_eq!(
            ProfileFile::open(&second_profile).expect("opened").anchor(),
            Anchor::Late
        );
        let summary = build(
            &second,
            &flags(&["use", "--summary", text(&first_profile), text(&second_profile)]),
            debug,
        );
        let line = summary.lines().find(|line| line.contains("second profile used for "));
        let line = line.unwrap_or_else(|| panic!("debug {debug}: {summary}"));
        // The same decisions give the same code.
        assert!(!line.contains("used for 0 functions"), "debug {debug}: {line}");
        assert!(
            line.ends_with(" 0 differ from the recorded code"),
            "debug {debug}: {line}"
        );
        let expected = stdout(&mut Command::new(&plain));
        for built in [&after, &second] {
            assert_eq!(stdout(&mut Command::new(built)), expected, "debug {debug}");
        }
        // `run` is called once, which was in doubt where inlined code made several functions of it.
        let shown = stdout(Command::new(pleach()).args(["show", "--json"]).arg(&second_profile));
        let shown: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
        let functions = shown["functions"].as_array().expect("functions");
        let run = functions
            .iter()
            .find(|function| function["name"] == "run")
            .expect("run");
        let [calls, all] = ["entry_count", "total_count"].map(|of| run[of].as_f64().expect("a number"));
        assert!(calls < 1e-4 * all, "debug {debug}: {run}");
    }
}

#[test]
fn profiles_have_their_places() {
    let dir = scratch();
    let [early, late] = ["early", "late"].map(|anchor| {
        let [binary, profile] = [anchor.to_owned(), format!("{anchor}.pleach")].map(|name| dir.path().join(name));
        build(&binary, &flags(&["annotate", "--anchor", anchor]), false);
        record(&binary, &profile);
        profile
    });
    let refused = |args: &[&Path], what: &str| {
        let mut command = Command::new(pleach());
        command.args(["flags", what]).args(args);
        let refused = command.output().expect("run");
        assert!(!refused.status.success());
        String::from_utf8_lossy(&refused.stderr).into_owned()
    };
    let twice = refused(&[&early, &early], "use");
    assert!(
        twice.contains("early.pleach: recorded at the early anchor") && twice.contains("--after"),
        "{twice}"
    );
    let turned = refused(&[&late, &early], "use");
    assert!(turned.contains("late.pleach: recorded at the late anchor"), "{turned}");
    let after = refused(&[Path::new("--after"), &late], "annotate");
    assert!(after.contains("late.pleach: recorded at the late anchor"), "{after}");
    // A second profile of another build has no effect but a word.
    let out = dir.path().join("other");
    let summary = build(&out, &flags(&["use", "--summary", text(&early), text(&late)]), false);
    assert!(summary.contains("differ from the recorded code"), "{summary}");
    let lto = [flags(&["use", text(&early), text(&late)]), vec!["-flto=thin".into()]].concat();
    let mut command = clang();
    command.args(["-O2", "-c"]).args(&lto).arg(program(SOURCE));
    let refused = command.arg("-o").arg(&out).output().expect("run");
    let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        !refused.status.success() && stderr.contains("compile without -flto"),
        "{stderr}"
    );
}
