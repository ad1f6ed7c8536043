//! The guide's script for continuous integration runs where a container without privileges would run it.

use crate::support::{clang, pleach, program, scratch, stdout};
use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The script of the guide.
fn script() -> String {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../feedback/cli/GUIDE.md");
    let guide = fs::read_to_string(&guide).unwrap_or_else(|error| panic!("{}: {error}", guide.display()));
    let begin = guide.find("# ci/optimise.sh").expect("the guide has the script");
    let script = &guide[begin..];
    script[..script.find("```").expect("the script ends")].to_owned()
}

#[test]
fn the_script_of_the_guide_works_without_privileges() {
    let dir = scratch();
    let file = |name: &str| dir.path().join(name);
    stdout(clang().arg(program("confined.c")).arg("-o").arg(file("confined")));
    fs::write(file("optimise.sh"), script()).expect("written");
    fs::write(
        file("Makefile"),
        format!(
            "app: {source}\n\t$(CC) -O2 -o $@ $<\nclean:\n\trm -f app\n",
            source = program("indirect.c").display()
        ),
    )
    .expect("written");

    let path = env::var_os("PATH").unwrap_or_default();
    let own = pleach().parent().expect("a folder").to_owned();
    let paths = env::join_paths([own].into_iter().chain(env::split_paths(&path))).expect("paths");
    // Without capabilities, even if the tests run as root.
    let mut job = Command::new("setpriv");
    job.args(["--inh-caps=-all", "--bounding-set=-all", "--no-new-privs"]);
    job.arg(file("confined")).args(["sh", "optimise.sh"]);
    stdout(job.current_dir(dir.path()).env("PATH", paths));

    let shown = stdout(Command::new(pleach()).args(["show", "--json"]).arg(file("app.pleach")));
    let shown: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
    let bursts = shown["provenance"]["bursts"].as_u64().expect("a number of bursts");
    assert!(bursts > 0, "{shown:#}");
    // The last build is the optimised one, which is not annotated.
    let sections = stdout(Command::new("llvm-readelf-22").arg("--sections").arg(file("app")));
    assert!(sections.contains(".text") && !sections.contains("pleach"), "{sections}");
}
