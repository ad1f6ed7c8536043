//! Estimated paths as metadata: through clang, opt and the linker, with profiles made by hand.

use crate::support::*;
use pleach_annotate::binary::Binary;
use pleach_annotate::cfg::Cfg;
use pleach_annotate::manifest::{self, Anchor};
use pleach_ball_larus::NumberingOptions;
use pleach_ball_larus::graph::PathGraph;
use pleach_profile::{EstimatedPath, FunctionProfile, Profile};
use pleach_store::write_profile;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The graphs of annotated sources.
fn graphs(dir: &Path, anchor: &str, sources: &[&str]) -> Vec<Cfg> {
    let binary = dir.join("annotated");
    let sources: Vec<_> = sources.iter().map(|s| program(s)).collect();
    compile(&binary, &flags(&["annotate", "--anchor", anchor]), &sources);
    let (entries, errors) = manifest::decode(&Binary::open(&binary).expect("a binary").manifest);
    assert!(errors.is_empty(), "{errors:?}");
    entries.into_iter().map(|e| e.cfg).collect()
}

/// All of a function's paths, at most `most`, the first 1000 times, the second 500 times, …
fn paths(cfg: &Cfg, most: u64) -> Vec<EstimatedPath> {
    let graph = PathGraph::new(cfg, &NumberingOptions::default());
    let path = |number: u64| {
        let count = 1000.0 / (number + 1) as f64;
        EstimatedPath {
            path: graph.path(number).expect("a path"),
            count,
            low: count / 2.0,
            high: count * 2.0,
            effective: 1.0,
        }
    };
    (0..graph.numbers().min(most)).map(path).collect()
}

/// A profile of these functions, each with what `paths` says.
fn profile(
    dir: &Path,
    name: &str,
    anchor: Anchor,
    cfgs: &[Cfg],
    paths: impl Fn(&Cfg) -> Vec<EstimatedPath>,
) -> PathBuf {
    let function = |cfg: &Cfg| FunctionProfile {
        id: cfg.id,
        cfg_hash: cfg.hash(),
        name: cfg.name.clone(),
        samples: 1000,
        blocks: vec![1000; cfg.blocks.len()],
        edges: vec![500; cfg.edge_count()],
        paths: paths(cfg),
        ..FunctionProfile::default()
    };
    let profile = Profile {
        scale: 1.0,
        anchor,
        functions: cfgs.iter().map(function).collect(),
        ..Profile::default()
    };
    let path = dir.join(name);
    write_profile(&path, &profile).expect("written");
    path
}

fn with(profile: &Path, anchor: &str) -> Vec<String> {
    let mut words = flags(&["use", profile.to_str().expect("UTF-8"), "--anchor", anchor]);
    // Nothing may be printed.
    words.push("-Werror".into());
    words
}

fn ir(flags: &[String], source: &str) -> String {
    let mut command = clang();
    stdout(
        command
            .args(["-O2", "-S", "-emit-llvm", "-o", "-"])
            .args(flags)
            .arg(program(source)),
    )
}

/// The node that a number like `!12` names, without its number.
fn node<'t>(text: &'t str, number: &str) -> &'t str {
    let start = format!("{number} = ");
    text.lines()
        .find_map(|line| line.strip_prefix(&start))
        .unwrap_or_else(|| panic!("no {number} in\n{text}"))
}

/// The text between the braces, split at its commas.
fn parts(node: &str) -> Vec<&str> {
    let inner = node.strip_prefix("!{").and_then(|n| n.strip_suffix('}'));
    inner.expect("a node").split(", ").collect()
}

/// The nodes of a function's list, if it has one.
fn list<'t>(text: &'t str, function: &str) -> Option<Vec<&'t str>> {
    let name = format!("@{function}(");
    let define = text.lines().find(|l| l.starts_with("define") && l.contains(&name))?;
    let number = define.split("!pleach.paths ").nth(1)?.split(' ').next()?;
    Some(
        parts(node(text, number))
            .into_iter()
            .map(|path| node(text, path))
            .collect(),
    )
}

#[test]
fn paths_are_in_the_ir_hottest_first() {
    let dir = scratch();
    for (anchor, name) in [(Anchor::Early, "early"), (Anchor::Late, "late")] {
        let cfgs = graphs(dir.path(), name, &["loops.c"]);
        let mix = cfgs.iter().find(|c| c.name == "mix").expect("mix");
        let only_mix = |cfg: &Cfg| if cfg.name == "mix" { paths(cfg, 5) } else { vec![] };
        let flags = with(&profile(dir.path(), "p.pleach", anchor, &cfgs, only_mix), name);
        let text = ir(&flags, "loops.c");
        let expected: Vec<String> = paths(mix, 5).iter().map(written).collect();
        assert!(expected.len() > 3 && expected[0].starts_with("!{i64 1000, i64 500, i64 2000, !\"entry\", "));
        assert_eq!(list(&text, "mix").expect("a list"), expected);
        assert_eq!(list(&text, "main"), None);
        let profile = parts(node(&text, "!pleach.profile"));
        let flow: f64 = paths(mix, 5).iter().map(|p| p.count).sum();
        let expected = format!("!{{i32 1, !\"{name}\", i64 {flow:.0}}}");
        assert_eq!(profile.iter().map(|n| node(&text, n)).collect::<Vec<_>>(), [expected]);
        // Others can read it and write it.
        let file = dir.path().join("p.ll");
        std::fs::write(&file, &text).expect("written");
        let again = stdout(
            Command::new("opt-22")
                .args([
                    "-passes=verify,inline,deadargelim,globalopt,function(simplifycfg,instcombine)",
                    "-S",
                ])
                .arg(&file),
        );
        assert_eq!(list(&again, "mix"), list(&text, "mix"));
    }
}

/// A path as its node is printed.
fn written(path: &EstimatedPath) -> String {
    use pleach_ball_larus::{End, Start};
    let start = match path.path.start {
        Start::Entry => "entry",
        Start::Inside => "inside",
    };
    let end = match path.path.end {
        End::Exit => "exit".to_owned(),
        End::Back(to) => format!("back {}", to.0),
        End::Cut(to) => format!("cut {}", to.0),
        End::Call => "call".to_owned(),
    };
    let [count, low, high] = [path.count, path.low, path.high].map(|n| n.round());
    let blocks: String = path.path.blocks.iter().map(|b| format!(", i32 {}", b.0)).collect();
    format!("!{{i64 {count}, i64 {low}, i64 {high}, !\"{start}\", !\"{end}\"{blocks}}}")
}

#[test]
fn object_code_is_the_same_with_and_without() {
    let dir = scratch();
    let cfgs = graphs(dir.path(), "early", &["loops.c"]);
    let object = |name: &str, paths: &dyn Fn(&Cfg) -> Vec<EstimatedPath>| {
        let mut flags = with(&profile(dir.path(), name, Anchor::Early, &cfgs, paths), "early");
        // Those are what paths are for.
        flags.extend(["-Xclang", "-mllvm", "-Xclang", "-pleach-superblocks=0"].map(str::to_owned));
        let out = dir.path().join(name).with_extension("o");
        stdout(
            clang()
                .args(["-O2", "-g", "-c"])
                .args(flags)
                .arg(program("loops.c"))
                .arg("-o")
                .arg(&out),
        );
        std::fs::read(out).expect("an object file")
    };
    let without = object("without.pleach", &|_| vec![]);
    let ir = ir(&with(&dir.path().join("without.pleach"), "early"), "loops.c");
    assert!(!ir.contains("pleach.paths") && !ir.contains("pleach.profile"), "{ir}");
    assert!(
        without == object("with.pleach", &|cfg| paths(cfg, 100)),
        "object files differ"
    );
}

#[test]
fn a_functions_hottest_are_listed_and_all_that_are_hot() {
    let dir = scratch();
    let source = dir.path().join("many.c");
    let branches: String = (0..7).map(|i| format!("if (x & {}) f({i});\n", 1 << i)).collect();
    std::fs::write(&source, format!("void f(int);\nvoid many(int x) {{\n{branches}}}\n")).expect("written");
    let object = dir.path().join("many.o");
    stdout(
        clang()
            .args(["-O2", "-c"])
            .args(flags(&["annotate"]))
            .arg(&source)
            .arg("-o")
            .arg(&object),
    );
    let (entries, _) = manifest::decode(&Binary::open(&object).expect("an object").manifest);
    let cfgs: Vec<Cfg> = entries.into_iter().map(|e| e.cfg).collect();
    let listed = |count: fn(usize) -> f64| {
        let paths = |cfg: &Cfg| {
            let mut paths = paths(cfg, 120);
            for (rank, path) in paths.iter_mut().enumerate() {
                path.count = count(rank);
            }
            paths
        };
        let flags = with(&profile(dir.path(), "p.pleach", Anchor::Early, &cfgs, paths), "early");
        let mut command = clang();
        let text = stdout(
            command
                .args(["-O2", "-S", "-emit-llvm", "-o", "-"])
                .args(flags)
                .arg(&source),
        );
        list(&text, "many").expect("a list").len()
    };
    assert_eq!(listed(|_| 1.0), 120);
    assert_eq!(listed(|rank| if rank < 30 { 1e6 } else { 1.0 }), 30);
    assert_eq!(listed(|rank| if rank < 3 { 1e6 } else { 1.0 }), 16);
}

#[test]
fn lists_survive_the_linker() {
    let dir = scratch();
    let sources = ["twins_a.c", "twins_b.c"];
    let cfgs = graphs(dir.path(), "early", &sources);
    let flags = with(
        &profile(dir.path(), "p.pleach", Anchor::Early, &cfgs, |cfg| paths(cfg, 100)),
        "early",
    );
    let reference = run(&dir.path().join("annotated"));
    let steps: Vec<_> = cfgs.iter().filter(|c| c.name == "step").collect();
    assert_eq!(steps.len(), 2);
    for mode in ["full", "thin"] {
        let folder = dir.path().join(mode);
        std::fs::create_dir(&folder).expect("a folder");
        let mut objects = Vec::new();
        for source in sources {
            objects.push(folder.join(source).with_extension("o"));
            let mut command = clang();
            command.args(["-O2", "-c", &format!("-flto={mode}")]).args(&flags);
            stdout(command.arg(program(source)).arg("-o").arg(&objects[objects.len() - 1]));
        }
        let linked = folder.join("linked");
        let mut command = clang();
        command.args(["-O2", &format!("-flto={mode}"), "-fuse-ld=lld", "-Wl,--save-temps"]);
        stdout(command.args(&objects).arg("-o").arg(&linked).current_dir(&folder));
        assert_eq!(run(&linked), reference);
        // Code generation's input.
        let files = std::fs::read_dir(&folder)
            .expect("a folder")
            .map(|f| f.expect("a file").path());
        let last = files.filter(|f| f.to_string_lossy().ends_with(".5.precodegen.bc"));
        let texts: Vec<_> = last
            .map(|file| stdout(Command::new("llvm-dis-22").arg(file).args(["-o", "-"])))
            .collect();
        assert!(!texts.is_empty());
        let mut found = 0;
        for text in &texts {
            let defined = text.lines().filter(|l| l.starts_with("define") && l.contains("@step"));
            for define in defined {
                let name = define
                    .split('@')
                    .nth(1)
                    .expect("a name")
                    .split('(')
                    .next()
                    .expect("a name");
                let listed = list(text, name).unwrap_or_else(|| panic!("{name} lost its paths:\n{text}"));
                let is_one = |cfg: &&&Cfg| {
                    paths(cfg, 100)
                        .iter()
                        .map(written)
                        .eq(listed.iter().map(|l| l.to_string()))
                };
                assert_eq!(steps.iter().filter(is_one).count(), 1, "{listed:?}");
                found += 1;
            }
            // A node for each module that was linked in, all the same.
            let profiles = parts(node(text, "!pleach.profile"));
            assert!(profiles.iter().all(|p| *p == profiles[0]), "{profiles:?}");
        }
        assert_eq!(found, 2, "{mode}");
    }
}
