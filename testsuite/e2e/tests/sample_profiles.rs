//! `pleach import` of sample profiles: what other tools made of the same branches gives nearly the same counts.

use crate::support::*;
use pleach_facilities::has_program;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

const LINES: [&str; 2] = ["-g1", "-fdebug-info-for-profiling"];

struct Recorded {
    dir: tempfile::TempDir,
    binary: PathBuf,
    profile: PathBuf,
}

/// A recording of an annotated program, with lines.
fn recorded() -> Recorded {
    let dir = scratch();
    let (binary, profile) = (dir.path().join("annotated"), dir.path().join("app.pleach"));
    compile(
        &binary,
        &[flags(&["annotate"]), LINES.map(str::to_owned).to_vec()].concat(),
        &[program("exported.c")],
    );
    let mut record = Command::new(pleach());
    record.args(["record", "--quiet", "--overhead", "20%", "--keep-vectors", "-o"]);
    stdout(record.arg(&profile).arg("--").arg(&binary));
    Recorded { dir, binary, profile }
}

impl Recorded {
    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// What llvm-profgen makes of the recording.
    fn profgen(&self, name: &str, options: &[&str]) -> PathBuf {
        let (script, out) = (self.path("script"), self.path(name));
        let mut export = Command::new(pleach());
        export
            .arg("export")
            .arg(&self.profile)
            .args(["-q", "--format", "perfscript", "-o"]);
        stdout(export.arg(&script));
        let mut profgen = Command::new("llvm-profgen-22");
        profgen.arg(format!("--binary={}", self.binary.display()));
        profgen.arg(format!("--perfscript={}", script.display()));
        profgen
            .arg(format!("--output={}", out.display()))
            .arg("--format=text")
            .args(options);
        assert!(output(&mut profgen).status.success());
        out
    }

    fn import(&self, samples: &Path, binary: &Path) -> Command {
        let mut import = Command::new(pleach());
        import.arg("import").arg(samples).arg("--binary").arg(binary);
        import.arg("-o").arg(self.path("imported.pleach"));
        import
    }

    /// The overlap of blocks with the recording.
    fn overlap(&self) -> f64 {
        let mut overlap = Command::new(pleach());
        overlap
            .args(["overlap", "--json"])
            .arg(self.path("imported.pleach"))
            .arg(&self.profile);
        let overlap: Value = serde_json::from_str(&stdout(&mut overlap)).expect("JSON");
        overlap["blocks"].as_f64().expect("a number")
    }
}

#[test]
fn profiles_of_probes_and_of_lines_are_read() {
    if !has_program("llvm-profgen-22") {
        return;
    }
    let recorded = recorded();
    for (name, options, least) in [("probes", &[][..], 0.97), ("lines", &["--use-dwarf-correlation"], 0.93)] {
        let samples = recorded.profgen(name, options);
        stdout(&mut recorded.import(&samples, &recorded.binary));
        let overlap = recorded.overlap();
        assert!(overlap > least, "{name}: {overlap}");

        let fast = recorded.path("fast");
        let imported = recorded.path("imported.pleach");
        compile(&fast, &with(&imported, &[]), &[program("exported.c")]);
        assert_eq!(run(&fast), run(&recorded.binary), "{name}");
    }
}

/// The same recording of a program with clang's own probes, through llvm-profgen and without it.
#[test]
fn probes_of_stock_clang_are_counted_as_llvm_profgen_does() {
    if !has_program("llvm-profgen-22") {
        return;
    }
    const PROBES: [&str; 2] = ["-fpseudo-probe-for-profiling", "-g1"];
    let dir = scratch();
    let (binary, profile) = (dir.path().join("stock"), dir.path().join("app.pleach"));
    compile(&binary, &PROBES.map(str::to_owned), &[program("exported.c")]);
    let mut record = Command::new(pleach());
    record.args(["record", "--quiet", "--overhead", "20%", "--keep-vectors", "-o"]);
    stdout(record.arg(&profile).arg("--").arg(&binary));
    let recorded = Recorded { dir, binary, profile };
    let samples = recorded.path("samples");
    let export = |profile: &Path| {
        let mut export = Command::new(pleach());
        export.arg("export").arg(profile);
        export.args(["-q", "--format", "llvm-sample-probe", "-o"]).arg(&samples);
        export
    };
    stdout(&mut export(&recorded.profile));
    // Bursts of some hundred branches are cut into stacks of 32: what is between two of them is lost.
    let theirs = recorded.profgen("theirs", &[]);
    let overlap = |a: &Path, b: &Path| {
        let mut overlap = Command::new("llvm-profdata-22");
        let text = stdout(overlap.args(["overlap", "--sample"]).arg(a).arg(b));
        let line = text
            .lines()
            .find_map(|line| line.trim().strip_prefix("Whole program profile similarity:"));
        let percent = line.and_then(|line| line.trim().strip_suffix('%')?.parse::<f64>().ok());
        percent.unwrap_or_else(|| panic!("no similarity in {text}"))
    };
    let similarity = overlap(&theirs, &samples);
    assert!(similarity > 95.0, "{similarity}");

    let fast = recorded.path("fast");
    let using = format!("-fprofile-sample-use={}", samples.display());
    let using: Vec<String> = PROBES
        .iter()
        .chain(&[&*using, "-S", "-emit-llvm"])
        .map(|&flag| flag.to_owned())
        .collect();
    compile(&fast, &using, &[program("exported.c")]);
    let ir = std::fs::read_to_string(&fast).expect("IR");
    assert!(
        ir.contains("!\"branch_weights\"") && ir.contains("function_entry_count"),
        "{ir}"
    );

    let annotated = self::recorded();
    let (_, message) = failure(&mut export(&annotated.profile));
    assert!(message.contains("its probes are pleach's"), "{message}");
}

#[test]
fn own_exports_come_back() {
    let recorded = recorded();
    let samples = recorded.path("samples");
    let mut export = Command::new(pleach());
    export
        .arg("export")
        .arg(&recorded.profile)
        .args(["-q", "--format", "llvm-sample", "-o"]);
    stdout(export.arg(&samples));
    stdout(&mut recorded.import(&samples, &recorded.binary));
    let overlap = recorded.overlap();
    assert!(overlap > 0.95, "{overlap}");
}

#[test]
fn what_does_not_fit_is_said() {
    let recorded = recorded();
    let without_lines = recorded.path("without-lines");
    compile(&without_lines, &flags(&["annotate"]), &[program("exported.c")]);
    let samples = recorded.path("samples");
    let refused = |text: &str, binary: &Path, says: &str| {
        std::fs::write(&samples, text).expect("writable");
        let (status, message) = failure(&mut recorded.import(&samples, binary));
        assert_eq!(status, 1, "{message}");
        assert!(message.contains(says), "{message}");
    };
    refused(
        "main:12:1\n 2: 12\n",
        &without_lines,
        "1 function without lines in the binary",
    );
    refused(
        "main:12:1\n 1: 12\n !CFGChecksum: 7\n",
        &recorded.binary,
        "1 function with probes of another graph",
    );
    refused("other:12:1\n 1: 12\n", &recorded.binary, "1 function not in the binary");
    refused(
        "main:12:1\n x\n",
        &recorded.binary,
        "line 2 is not a line of a sample profile: x",
    );
    let mut unnamed = Command::new(pleach());
    let (_, message) = failure(
        unnamed
            .arg("import")
            .arg(&samples)
            .arg("-o")
            .arg(recorded.path("imported.pleach")),
    );
    assert!(
        message.contains("name the annotated program with --binary"),
        "{message}"
    );
    // LLVM's extensible binary format.
    std::fs::write(&samples, b"\xff24FORPS\x00").expect("writable");
    let (_, message) = failure(&mut recorded.import(&samples, &recorded.binary));
    assert!(message.contains("llvm-profdata-22 merge --sample --text"), "{message}");
}
