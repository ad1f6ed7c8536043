//! `pleach summary`: what `flags use` did in real builds, from their optimisation records.

use crate::support::*;
use std::path::Path;
use std::process::Command;

/// A build of these sources with the profile, with optimisation records in a folder.
fn build(dir: &Path, profile: &Path, sources: &[&str]) {
    std::fs::create_dir_all(dir).expect("a folder");
    for source in sources {
        let mut clang = clang();
        clang.args(["-O2", "-g", "-c", "-fsave-optimization-record"]);
        clang.args(flags(&["use", profile.to_str().expect("UTF-8")]));
        let object = dir
            .join(Path::new(source).file_name().expect("a name"))
            .with_extension("o");
        stdout(clang.arg(program(source)).arg("-o").arg(object));
    }
}

fn summary(folder: &Path, more: &[&str]) -> String {
    stdout(Command::new(pleach()).arg("summary").arg(folder).args(more))
}

#[test]
fn a_build_is_summed_up_by_optimisation_and_function() {
    let dir = scratch();
    let profile = counted_profile(dir.path(), &["superblocks.c"], &[]);
    let folder = dir.path().join("build");
    build(&folder, &profile, &["superblocks.c"]);
    let text = summary(&folder, &[]);
    let is_formed = |line: &str| line.contains("superblock") && line.ends_with(" formed");
    let forms_superblocks = text.lines().any(is_formed);
    assert!(
        text.contains("profile used: the graph is unchanged") && forms_superblocks,
        "{text}"
    );
    let json: serde_json::Value = serde_json::from_str(&summary(&folder, &["--json"])).expect("JSON");
    let functions = json["functions"].as_array().expect("functions");
    let with = |of: &str| {
        functions
            .iter()
            .map(|f| f["done"][of].as_u64().unwrap_or(0))
            .sum::<u64>()
    };
    assert_eq!(
        json["totals"]["done"]["superblocks"].as_u64(),
        Some(with("superblocks"))
    );
    assert!(
        with("superblocks") > 0 && with("copied") >= with("superblocks"),
        "{json}"
    );
    // The blocks of superblocks are those of the recorded graph.
    let formed = functions
        .iter()
        .find(|f| f["done"]["superblocks"].as_u64() > Some(0))
        .expect("one has superblocks");
    assert!(
        formed["superblocks"].as_array().is_some_and(|all| !all.is_empty()),
        "{formed}"
    );
    let name = formed["function"].as_str().expect("a name");
    let detail = summary(&folder, &["-f", name]);
    assert!(
        detail.contains(" formed: ") && detail.contains("profile used"),
        "{detail}"
    );
}

#[test]
fn a_function_of_the_same_name_is_not_called_changed() {
    let dir = scratch();
    // Both files have a local function `step`; the profile has only one of them.
    let source = dir.path().join("other.c");
    std::fs::write(
        &source,
        "int step(int x) { for (int i = 0; i < x; i++) x ^= i * x; return x; }",
    )
    .expect("written");
    let profile = counted_profile(dir.path(), &["twins_a.c", "twins_b.c"], &[]);
    let folder = dir.path().join("build");
    build(&folder, &profile, &["twins_a.c", source.to_str().expect("UTF-8")]);
    let text = summary(&folder, &["-f", "step"]);
    assert!(
        text.contains("functions of this name from other source files only"),
        "{text}"
    );
    assert!(!text.contains("changed too much"), "{text}");
    let all = summary(&folder, &[]);
    assert!(all.contains("another function of this name"), "{all}");
}

#[test]
fn what_is_no_record_is_named() {
    let dir = scratch();
    let (_, text) = failure(Command::new(pleach()).arg("summary").arg(dir.path()));
    assert!(text.contains("no *.opt.yaml"), "{text}");
    let file = dir.path().join("a.opt.yaml");
    for content in [
        "{]",
        "--- !Passed\nPass: pleach\nName: [\n",
        "--- !Passed\nPass: pleach\nName: X\n...\n",
        "\0\0",
    ] {
        std::fs::write(&file, content).expect("written");
        let (code, text) = failure(Command::new(pleach()).arg("summary").arg(dir.path()));
        assert!(
            code == 1 && text.contains("a.opt.yaml") && text.contains("-fsave-optimization-record"),
            "{content}: {text}"
        );
    }
    std::fs::write(&file, "--- !Passed\nPass: licm\nName: Hoisted\nFunction: f\n...\n").expect("written");
    let (_, text) = failure(Command::new(pleach()).arg("summary").arg(&file));
    assert!(text.contains("no remarks of pleach"), "{text}");
}
