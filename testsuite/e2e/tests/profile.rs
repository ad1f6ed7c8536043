//! Build, record and build again, on programs small enough to check by hand.

use crate::support::*;
use pleach_annotate::binary::Binary;
use pleach_collector::vector::{CodeAddress, ModuleId, VectorSet};
use pleach_profile::file::ProfileFile;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Annotates, records and returns (annotated binary, profile).
pub fn record(dir: &Path, sources: &[&str]) -> (PathBuf, PathBuf) {
    record_with(dir, &[], sources)
}

/// The same with more options of the compiler.
fn record_with(dir: &Path, options: &[&str], sources: &[&str]) -> (PathBuf, PathBuf) {
    let (binary, profile) = (dir.join("annotated"), dir.join("app.pleach"));
    let sources: Vec<_> = sources.iter().map(|s| program(s)).collect();
    let mut all = flags(&["annotate"]);
    all.extend(options.iter().map(|option| option.to_string()));
    compile(&binary, &all, &sources);
    stdout(
        Command::new(pleach())
            .args(["record", "--overhead", "1000%", "--repeat", "3", "-o"])
            .arg(&profile)
            .arg("--")
            .arg(&binary),
    );
    (binary, profile)
}

pub fn show(profile: &Path) -> Value {
    let text = stdout(Command::new(pleach()).args(["show", "--json"]).arg(profile));
    serde_json::from_str(&text).expect("JSON")
}

pub fn function<'v>(shown: &'v Value, name: &str) -> &'v Value {
    let functions = shown["details"].as_array().expect("functions");
    functions
        .iter()
        .find(|f| f["name"] == name)
        .unwrap_or_else(|| panic!("{name} is not in the profile"))
}

pub fn use_flags(profile: &Path) -> Vec<String> {
    flags(&["use", profile.to_str().expect("UTF-8")])
}

/// LLVM IR of a source compiled with a profile.
pub fn ir(profile: &Path, source: &str) -> String {
    stdout(
        clang()
            .args(["-O2", "-S", "-emit-llvm", "-o", "-"])
            .args(use_flags(profile))
            .arg(program(source)),
    )
}

#[test]
fn counts_are_what_the_program_does() {
    let dir = scratch();
    let (_, profile) = record(dir.path(), &["loops.c"]);
    let shown = show(&profile);
    let mix = function(&shown, "mix");
    let blocks: Vec<f64> = mix["blocks"]
        .as_array()
        .expect("blocks")
        .iter()
        .map(|b| b["count"].as_f64().expect("a count"))
        .collect();
    // A hundred rounds a call, a third of them through `square`, and `puts` never.
    let (entry, hottest) = (blocks[0], blocks.iter().copied().fold(0.0, f64::max));
    assert!(
        (60.0..150.0).contains(&(hottest / entry)),
        "loop count {} of {blocks:?}",
        hottest / entry
    );
    let square = function(&shown, "square")["blocks"][0]["count"]
        .as_f64()
        .expect("a count");
    assert!(
        (0.25..0.45).contains(&(square / hottest)),
        "square {square} of {hottest}"
    );
}

/// The steps after a recursive call are those of the activation that made it.
#[test]
fn what_follows_recursive_calls_is_counted() {
    let dir = scratch();
    let (_, profile) = record(dir.path(), &["traversal.c"]);
    let shown = show(&profile);
    let edges = function(&shown, "visit")["edges"].as_array().expect("edges").clone();
    // After the left subtree, the traversal ends at 4 % of the nodes, and 29 % of the others keep it from the right one.
    for (from, to, expected) in [(2, 3, 0.02..0.08), (4, 5, 0.2..0.4)] {
        let edge = edges.iter().find(|edge| edge["from"] == from && edge["to"] == to);
        let edge = edge.expect("known");
        let probability = edge["probability"].as_f64().expect("executed");
        assert!(expected.contains(&probability), "{edge} of {edges:?}");
    }
}

#[test]
fn weights_reach_the_optimiser() {
    let dir = scratch();
    let (_, profile) = record(dir.path(), &["loops.c"]);
    let text = ir(&profile, "loops.c");
    for needle in ["function_entry_count", "branch_weights", "ProfileSummary", "InstrProf"] {
        assert!(text.contains(needle), "no {needle} in\n{text}");
    }
    // LLVM's use of the profile: the loop has about a hundred iterations for each call.
    let file = dir.path().join("loops.ll");
    std::fs::write(&file, &text).expect("written");
    let out = output(
        Command::new("opt-22")
            .args(["-passes=print<block-freq>", "-disable-output"])
            .arg(&file),
    );
    let printed = String::from_utf8_lossy(&out.stderr).into_owned();
    let mix = printed
        .split("block-frequency-info: ")
        .find(|part| part.starts_with("mix"))
        .expect("mix is printed");
    let hottest = mix
        .lines()
        .filter_map(|line| line.split("float = ").nth(1)?.split(',').next()?.parse::<f64>().ok())
        .fold(0.0, f64::max);
    assert!((50.0..200.0).contains(&hottest), "{hottest} in {mix}");
}

#[test]
fn only_calls_are_inlined_though_a_small_recording_never_saw_them() {
    let dir = scratch();
    let (annotated, profile) = record(dir.path(), &["unseen.c"]);
    // Enough to place code apart that was never sampled, too few to optimise it for size.
    edit_profile(&profile, |read| read.provenance.bursts = 400);
    let defined = |name: &str| {
        let start = format!("@{name}(");
        let ir = ir(&profile, "unseen.c");
        ir.lines().any(|l| l.starts_with("define") && l.contains(&start))
    };
    assert!(!defined("many"));
    assert!(defined("wide") && defined("deep"));
    // Its loop was sampled, but not its entry: the copy in a caller without samples would not be hot.
    edit_profile(&profile, |read| {
        let many = read.functions.iter_mut().find(|f| f.name == "many").expect("recorded");
        many.samples = 100;
        many.coverage.clear();
        many.blocks[1..].fill(100_000);
    });
    assert!(defined("many"));
    let used = dir.path().join("used");
    compile(&used, &use_flags(&profile), &[program("unseen.c")]);
    for mode in ["0", "1", "3"] {
        assert_eq!(
            stdout(Command::new(&used).arg(mode)),
            stdout(Command::new(&annotated).arg(mode))
        );
    }
}

/// One sample of a function must not make the calls below it hot: a recursive parser would be copied into itself.
#[test]
fn a_sample_does_not_make_calls_hot_in_code_without_samples() {
    let dir = scratch();
    let (_, profile) = record(dir.path(), &["recursive.c"]);
    // As many bursts as support every decision but size, and one sample in `parse` and `parse_expression`.
    edit_profile(&profile, |read| {
        read.provenance.bursts = 400;
        for function in read.functions.iter_mut().filter(|f| f.name != "main") {
            let is_sampled = ["parse", "parse_expression"].contains(&function.name.as_str());
            function.samples = is_sampled.into();
            function.blocks.fill(0);
            function.edges.fill(0);
            function.coverage.clear();
            if is_sampled {
                function.blocks[0] = 1000;
            }
        }
    });
    let size = |flags: &[String]| {
        let object = dir.path().join("recursive.o");
        compile(
            &object,
            &[flags, &["-c".to_owned()]].concat(),
            &[program("recursive.c")],
        );
        let sections = stdout(Command::new("llvm-size-22").arg("-A").arg(&object));
        let of_text = sections.lines().filter(|line| line.starts_with(".text"));
        of_text
            .filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok())
            .sum::<u64>()
    };
    let (plain, used) = (size(&[]), size(&use_flags(&profile)));
    assert!(used < 2 * plain, "{used} bytes in place of {plain}");
}

/// Numbers of a function's branches with weights of the profile, and with weights of the source.
fn weighted_branches(ir: &str, function: &str) -> (usize, usize) {
    let weights: Vec<_> = ir
        .lines()
        .filter_map(|line| line.split_once(" = !{!\"branch_weights\""))
        .map(|(name, weights)| (name, weights.contains("expected")))
        .collect();
    let start = format!("@{function}(");
    let body = ir
        .split("define ")
        .find(|body| body.lines().next().is_some_and(|line| line.contains(&start)))
        .expect("the function");
    let of = |expected: bool| {
        let names = weights.iter().filter(|(_, is_expected)| *is_expected == expected);
        names
            .filter(|(name, _)| body.contains(&format!("!prof {name},")) || body.contains(&format!("!prof {name}\n")))
            .count()
    };
    (of(false), of(true))
}

fn has_marks(ir: &str) -> bool {
    ["pleach.sampled", "pleach-unsampled", "pleach-keeps-weights"]
        .iter()
        .any(|mark| ir.contains(mark))
}

#[test]
fn code_inlined_into_functions_without_samples_brings_no_weights() {
    let dir = scratch();
    let (_, profile) = record(dir.path(), &["inherited.c"]);
    let ir = ir(&profile, "inherited.c");
    assert!(weighted_branches(&ir, "recorded").0 >= 2, "{ir}");
    assert_eq!(weighted_branches(&ir, "never_recorded").0, 0, "{ir}");
    assert!(weighted_branches(&ir, "never_recorded").1 >= 1, "{ir}");
    assert!(!has_marks(&ir), "{ir}");
}

#[test]
fn code_inlined_into_its_only_caller_keeps_its_weights() {
    let dir = scratch();
    let (_, profile) = record(dir.path(), &["called_once.c"]);
    edit_profile(&profile, |read| {
        for function in read.functions.iter_mut().filter(|f| f.name == "drive") {
            function.samples = 0;
            function.blocks.fill(0);
            function.edges.fill(0);
        }
    });
    let ir = ir(&profile, "called_once.c");
    assert!(!ir.contains("@expand("), "the test needs it inlined:\n{ir}");
    assert!(weighted_branches(&ir, "drive").0 >= 3, "{ir}");
    assert!(!has_marks(&ir), "{ir}");
}

#[test]
fn indirect_calls_are_promoted() {
    let dir = scratch();
    let (binary, profile) = record(dir.path(), &["indirect.c"]);
    let drive = |text: &str| {
        text.split("define ")
            .find(|f| f.contains("@drive("))
            .expect("drive")
            .to_owned()
    };
    let plain = stdout(
        clang()
            .args(["-O2", "-S", "-emit-llvm", "-o", "-"])
            .arg(program("indirect.c")),
    );
    assert!(
        drive(&plain).contains("call i32 %"),
        "the test needs an indirect call:\n{plain}"
    );
    // Every target is known and small: promoted, then inlined.
    let promoted = drive(&ir(&profile, "indirect.c"));
    assert!(
        promoted.contains("xor i32") && promoted.contains("shl i32"),
        "not promoted:\n{promoted}"
    );
    let optimised = dir.path().join("optimised");
    compile(&optimised, &use_flags(&profile), &[program("indirect.c")]);
    assert_eq!(run(&binary), run(&optimised));
}

#[test]
fn exceptions_are_of_the_call_that_threw() {
    let dir = scratch();
    let (_, profile) = record_with(dir.path(), &["-lstdc++"], &["throws.cpp"]);
    let shown = show(&profile);
    let edges = function(&shown, "run")["edges"].as_array().expect("a list").clone();
    let number = |edge: &Value, key: &str| edge[key].as_f64().unwrap_or_default();
    // The landing pad has three predecessors, of which the first is the call that throws once in eight calls.
    let to_pad = |pad: f64| edges.iter().filter(move |edge| number(edge, "to") == pad);
    let pad = (edges.iter().map(|edge| number(edge, "to")))
        .find(|&to| to_pad(to).count() == 3)
        .expect("a landing pad");
    let of_first = to_pad(pad).next().expect("an edge");
    let all: f64 = to_pad(pad).map(|edge| number(edge, "count")).sum();
    assert!(number(of_first, "count") >= 0.95 * all, "{edges:?}");
    assert!((0.09..0.16).contains(&number(of_first, "probability")), "{of_first}");
}

#[test]
fn statics_of_one_name_get_their_own_counts() {
    let dir = scratch();
    let (_, profile) = record(dir.path(), &["twins_a.c", "twins_b.c"]);
    let shown = show(&profile);
    let twins: Vec<_> = shown["details"]
        .as_array()
        .expect("functions")
        .iter()
        .filter(|f| f["name"] == "step")
        .collect();
    assert_eq!(twins.len(), 2);
    for twin in twins {
        assert!(twin["blocks"][0]["count"].as_f64().expect("a count") > 0.0, "{twin}");
    }
}

#[test]
fn symbols_within_a_function_in_assembly_are_no_change_of_the_binary() {
    let dir = scratch();
    let (binary, profile) = (dir.path().join("annotated"), dir.path().join("app.pleach"));
    let sources = ["symbols_within.c", "symbols_within.S"].map(program);
    compile(&binary, &flags(&["annotate"]), &sources);
    let mut record = Command::new(pleach());
    record.args(["record", "--overhead", "100%", "-o"]).arg(&profile);
    let out = output(record.arg("--").arg(&binary));
    let text = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success() && !text.contains("do not match"), "{text}");
}

/// The beginning of a function that is nothing like `mix`, and keeps its code from being executed.
const MANY_TESTS: &str = "int mix(int n, int seed) {
    if (n & 1) return puts(\"a\") + printf(\"%d\", n);
    if (n & 2) return puts(\"b\") * 3;
    switch (seed) { case 3: return putchar(n); case 5: return putchar(3); case 11: return puts(\"c\"); case 19: puts(\"d\"); }
    for (int i = 0; i < 7; i++) { printf(\"%d\", i); if (getchar() == i) return i; }
    return getchar();
}
int other(int n, int seed) {";

#[test]
fn remarks_say_what_was_done_and_why_not() {
    let dir = scratch();
    let (_, profile) = record(dir.path(), &["loops.c"]);
    let remarks = |source: &Path| {
        let mut command = clang();
        command.args(["-O2", "-c", "-Rpass=pleach", "-Rpass-missed=pleach", "-o", "/dev/null"]);
        let out = output(command.args(use_flags(&profile)).arg(source));
        assert!(out.status.success());
        String::from_utf8_lossy(&out.stderr).into_owned()
    };
    let used = remarks(&program("loops.c"));
    assert!(
        used.contains("profile used") && used.contains("; blocks: ") && used.contains("-Rpass=pleach"),
        "{used}"
    );
    // An edit that changes the control flow of `mix` only.
    let edited = dir.path().join("loops.c");
    let text = std::fs::read_to_string(program("loops.c")).expect("source");
    std::fs::write(
        &edited,
        text.replace("sum ^= sum << 1;", "while (sum & 4) sum ^= sum << 1;"),
    )
    .expect("written");
    let older = remarks(&edited);
    assert!(
        older.contains("of an older version: ") && older.contains(" blocks matched"),
        "{older}"
    );
    assert_eq!(
        older.matches("profile used").count(),
        3,
        "the others' profiles are still good: {older}"
    );
    // Another function of that name.
    std::fs::write(&edited, text.replace("int mix(int n, int seed) {", MANY_TESTS)).expect("written");
    let stale = remarks(&edited);
    assert!(stale.contains("control flow changed too much"), "{stale}");
    // `mix` is called something else, and is local to its file.
    let renamed = text
        .replace("mix(", "blend(")
        .replace("int blend(int n", "static int blend(int n");
    std::fs::write(&edited, renamed).expect("written");
    let renamed = remarks(&edited);
    assert!(renamed.contains("recorded as mix: "), "{renamed}");
    let off = output(
        clang()
            .args(["-O2", "-c", "-Rpass=pleach", "-o", "/dev/null"])
            .args(use_flags(&profile))
            .args(["-Xclang", "-mllvm", "-Xclang", "-pleach-salvage=0"])
            .arg(&edited),
    );
    let off = String::from_utf8_lossy(&off.stderr).into_owned();
    assert!(
        off.contains("profile used") && !off.contains("recorded as mix"),
        "{off}"
    );
    let foreign = remarks(&program("twins_b.c"));
    assert!(
        foreign.contains("not in the profile") && !foreign.contains("profile used"),
        "{foreign}"
    );
}

#[test]
fn a_bad_profile_stops_the_build_with_a_reason() {
    let dir = scratch();
    let (_, profile) = record(dir.path(), &["loops.c"]);
    let good = std::fs::read(&profile).expect("profile");
    let compile_with = |path: &Path| {
        let plugin = built().join("libpleach_pass.so");
        failure(
            clang()
                .args(["-O2", "-c", "-o", "/dev/null"])
                .arg(format!("-fpass-plugin={}", plugin.display()))
                .args(["-Xclang", "-mllvm", "-Xclang"])
                .arg(format!("-pleach-use={}", path.display()))
                .arg(program("loops.c")),
        )
    };
    let bad = dir.path().join("bad.pleach");
    let mut cases: Vec<(&str, Vec<u8>)> = vec![
        ("empty", Vec::new()),
        ("half", good[..good.len() / 2].to_vec()),
        ("an ELF file", std::fs::read("/bin/true").expect("a file")),
    ];
    let mut flipped = good.clone();
    flipped[good.len() / 3] ^= 0x10;
    cases.push(("a flipped bit", flipped));
    for (what, bytes) in cases {
        std::fs::write(&bad, bytes).expect("written");
        let (code, text) = compile_with(&bad);
        assert_eq!(code, 1, "{what}");
        assert!(text.contains("bad.pleach") && text.contains("error:"), "{what}: {text}");
        // `pleach flags use` finds out before the build does, except for damage that only a record shows.
        if what != "a flipped bit" {
            failure(Command::new(pleach()).args(["flags", "use"]).arg(&bad));
        }
    }
    let (_, text) = compile_with(&dir.path().join("missing.pleach"));
    assert!(text.contains("missing.pleach"), "{text}");
}

#[test]
fn a_binary_without_annotations_keeps_its_vectors() {
    let dir = scratch();
    let (binary, profile) = (dir.path().join("plain"), dir.path().join("plain.pleach"));
    compile(&binary, &[] as &[&str], &[program("loops.c")]);
    let out = output(
        Command::new(pleach())
            .args(["record", "--overhead", "500%", "-o"])
            .arg(&profile)
            .arg("--")
            .arg(&binary),
    );
    assert!(out.status.success());
    let text = String::from_utf8_lossy(&out.stderr);
    assert!(text.contains("raw vectors are kept"), "{text}");
    let shown = show(&profile);
    assert_eq!(shown["functions"].as_array().map(Vec::len), Some(0));
}

#[test]
fn stripped_binaries_map_through_their_debug_file_or_say_so() {
    let dir = scratch();
    let annotated = dir.path().join("annotated");
    // Exported functions keep their names, which is not enough either.
    let extra = ["-Wl,--build-id".into(), "-rdynamic".into()];
    compile(
        &annotated,
        &[&flags(&["annotate"])[..], &extra].concat(),
        &[program("loops.c")],
    );
    let stripped = dir.path().join("stripped");
    stdout(Command::new("strip").arg(&annotated).arg("-o").arg(&stripped));
    let profile = dir.path().join("stripped.pleach");
    let record = |extra: &[&std::ffi::OsStr]| {
        let mut command = Command::new(pleach());
        command
            .args(["record", "--overhead", "1000%", "-o"])
            .arg(&profile)
            .args(extra)
            .arg("--")
            .arg(&stripped);
        let out = output(&mut command);
        assert!(out.status.success());
        String::from_utf8_lossy(&out.stderr).into_owned()
    };
    let text = record(&[]);
    assert!(
        text.contains("no symbols") && text.contains("none of the sampled files that are annotated"),
        "{text}"
    );
    record(&["--binary".as_ref(), annotated.as_os_str()]);
    let shown = show(&profile);
    assert!(function(&shown, "mix")["blocks"][0]["count"].as_f64().expect("a count") > 0.0);
}

/// As tests and build systems do that clean up after themselves.
#[test]
fn a_program_that_is_deleted_can_be_named_later() {
    let dir = scratch();
    let (kept, run) = (dir.path().join("kept"), dir.path().join("run"));
    compile(&kept, &flags(&["annotate"]), &[program("loops.c")]);
    std::fs::copy(&kept, &run).expect("copied");
    let profile = dir.path().join("gone.pleach");
    let mut record = Command::new(pleach());
    record.args(["record", "--overhead", "1000%", "-o"]).arg(&profile);
    record.args(["--", "sh", "-c", "\"$0\" && rm \"$0\""]).arg(&run);
    let told = output(&mut record);
    let told = String::from_utf8_lossy(&told.stderr);
    assert!(told.contains("some of the sampled files are gone"), "{told}");
    assert_eq!(told.matches("cannot read").count(), 1, "{told}");

    let analysed = dir.path().join("analysed.pleach");
    let mut analyse = Command::new(pleach());
    analyse.arg("analyse").arg(&profile).arg("--binary").arg(&kept);
    stdout(analyse.arg("-o").arg(&analysed));
    let shown = show(&analysed);
    assert!(function(&shown, "mix")["blocks"][0]["count"].as_f64().expect("a count") > 0.0);
}

#[test]
fn an_existing_profile_survives_a_failed_recording() {
    let dir = scratch();
    let profile = dir.path().join("kept.pleach");
    let kept = b"\x89PLEACH\nprecious";
    std::fs::write(&profile, kept).expect("written");
    let (code, text) = failure(
        Command::new(pleach())
            .args(["record", "-o"])
            .arg(&profile)
            .args(["--", "/nonexistent/program"]),
    );
    assert_eq!(code, 127, "{text}");
    assert!(text.contains("/nonexistent/program"), "{text}");
    assert_eq!(std::fs::read(&profile).expect("still there"), kept);
    let (_, text) =
        failure(Command::new(pleach()).args(["record", "-o", "/proc/no/such/folder.pleach", "--", "/bin/true"]));
    assert!(text.contains("/proc/no/such"), "{text}");
}

/// The name of a program or of a source is a mistake.
#[test]
fn what_is_no_profile_is_not_replaced() {
    let dir = scratch();
    let notes = dir.path().join("notes.txt");
    std::fs::write(&notes, "precious").expect("written");
    let (code, text) = failure(
        Command::new(pleach())
            .args(["record", "-o"])
            .arg(&notes)
            .args(["--", "true"]),
    );
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("is no profile"), "{text}");
    assert_eq!(std::fs::read_to_string(&notes).expect("still there"), "precious");
}

#[test]
fn each_run_reads_its_standard_input_from_the_beginning() {
    let dir = scratch();
    let (input, profile) = (dir.path().join("input"), dir.path().join("out.pleach"));
    std::fs::write(&input, "skipped\nread\n").expect("written");
    let mut file = std::fs::File::open(&input).expect("readable");
    std::io::Read::read_exact(&mut file, &mut [0; 8]).expect("a line");
    let mut record = Command::new(pleach());
    record.args(["record", "--quiet", "--repeat", "3", "-o"]).arg(&profile);
    let out = output_reading(record.args(["--", "cat"]), file);
    assert_eq!(String::from_utf8_lossy(&out.stdout), "read\n".repeat(3), "{out:?}");
}

/// One instruction as `llvm-objdump` prints it.
struct Printed {
    mnemonic: String,
    /// Target of a direct branch.
    target: Option<u64>,
}

fn disassembly(binary: &Path) -> BTreeMap<u64, Printed> {
    let text = stdout(
        Command::new("llvm-objdump-22")
            .args(["-d", "--no-show-raw-insn"])
            .arg(binary),
    );
    let instruction = |line: &str| {
        let (address, rest) = line.trim().split_once(':')?;
        let address = u64::from_str_radix(address, 16).ok()?;
        let mut words = rest.split_whitespace();
        let mnemonic = words.next()?.to_owned();
        let target = words
            .next()
            .and_then(|w| u64::from_str_radix(w.strip_prefix("0x")?, 16).ok());
        Some((address, Printed { mnemonic, target }))
    };
    text.lines().filter_map(instruction).collect()
}

#[test]
fn vectors_agree_with_llvm_objdump() {
    let dir = scratch();
    let (binary, profile) = (dir.path().join("binary"), dir.path().join("vectors.pleach"));
    compile(&binary, &flags(&["annotate"]), &[program("indirect.c")]);
    let mut command = Command::new(pleach());
    command
        .args(["record", "--overhead", "1000%", "--keep-vectors", "-o"])
        .arg(&profile)
        .arg("--")
        .arg(&binary);
    stdout(&mut command);

    let file = ProfileFile::open(&profile).expect("a profile");
    let bytes = file.vectors().expect("intact").expect("kept").to_vec();
    let set = VectorSet::from_bytes(&bytes).expect("vectors");
    let module = set
        .modules
        .iter()
        .position(|m| m.path.ends_with("binary"))
        .expect("the program was sampled");
    let module = ModuleId(module as u32);
    let elf = Binary::open(&binary).expect("an ELF file");
    let listing = disassembly(&binary);
    let address = |place: CodeAddress| elf.address_of_offset(place.offset).map(|a| a.0);
    let (mut branches, mut fall_throughs) = (0, 0);
    for burst in &set.bursts {
        for pair in burst.branches.windows(2) {
            let (branch, next) = (pair[0], pair[1]);
            if branch.from.module == module {
                let from = address(branch.from).expect("in the file");
                let printed = &listing[&from];
                assert!(
                    printed.mnemonic.starts_with(['j', 'c', 'r']),
                    "{from:#x} is a {}",
                    printed.mnemonic
                );
                if let Some(target) = printed.target.filter(|_| branch.to.module == module) {
                    assert_eq!(address(branch.to), Some(target), "{from:#x} {}", printed.mnemonic);
                }
                branches += 1;
            }
            if branch.to.module == module && next.from.module == module {
                let (to, end) = (
                    address(branch.to).expect("in the file"),
                    address(next.from).expect("in the file"),
                );
                assert!(to <= end, "{to:#x}..{end:#x}");
                for (at, printed) in listing.range(to..end) {
                    let leaves = ["jmp", "call", "ret"].iter().any(|m| printed.mnemonic.starts_with(m));
                    assert!(!leaves, "{at:#x} {} inside {to:#x}..{end:#x}", printed.mnemonic);
                }
                fall_throughs += 1;
            }
        }
    }
    assert!(
        branches > 1000 && fall_throughs > 1000,
        "{branches} branches, {fall_throughs} fall-through ranges"
    );
}

#[test]
fn local_functions_keep_their_profile_when_their_file_gets_another_function() {
    let dir = scratch();
    let (_, profile) = record(dir.path(), &["twins_a.c", "twins_b.c"]);
    let edited = dir.path().join("twins_b.c");
    let text = std::fs::read_to_string(program("twins_b.c")).expect("source");
    std::fs::write(&edited, text + "\nint another(int x) { return x + 1; }\n").expect("written");
    let mut command = clang();
    command
        .args(["-O2", "-c", "-Rpass=pleach", "-o", "/dev/null"])
        .args(use_flags(&profile))
        .arg(&edited);
    let out = output(&mut command);
    let text = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(text.matches("profile used").count(), 2, "step and run_b: {text}");
}

#[test]
fn what_is_hot_is_told_by_inlined_copies() {
    let dir = scratch();
    let profile = recorded("hot_copies.c", dir.path());
    let shown = stdout(Command::new(pleach()).args(["show", "--json"]).arg(&profile));
    let shown: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
    let cutoffs = shown["summary"]["cutoffs"].as_array().expect("cut-offs");
    let summed = cutoffs.iter().find(|c| c["ppm"] == 990_000).expect("99 %");
    let summed = summed["min_count"].as_u64().expect("a count");
    let hot = shown["provenance"]["hot_instance_count"].as_u64().expect("a count");
    // An eighth, where all copies were sampled as often.
    assert!(hot > 0 && 4 * hot < summed, "{hot} of {summed}");
}
