//! Annotated builds: users' build options keep working, and LLVM's tools read the same probes as pleach.

use crate::support::*;
use pleach_annotate::cfg::ProbeTarget;
use pleach_annotate::map::{AddressMap, Losses};
use pleach_harness::Bench;
use pleach_harness::pleach_command::Pleach;
use pleach_harness::variant::Variant;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

const CARRIED: [&str; 3] = [".pleach_cfg", ".pseudo_probe", ".pseudo_probe_desc"];

fn assert_annotated(path: &Path) {
    let names = sections(path);
    for name in CARRIED {
        assert!(
            names.iter().any(|n| n == name),
            "{} lacks {name}: {names:?}",
            path.display()
        );
    }
}

#[test]
fn another_assembler_is_refused_with_the_reason() {
    let dir = scratch();
    let object = dir.path().join("loops.o");
    let compile = |flags: &[String]| {
        let mut command = clang();
        command.args(["-O1", "-c", "-fno-integrated-as"]).args(flags);
        command.arg(program("loops.c")).arg("-o").arg(&object);
        command
    };
    stdout(&mut compile(&[]));
    let (_, message) = failure(&mut compile(&flags(&["annotate"])));
    assert!(message.contains("compile without -fno-integrated-as"), "{message}");
    assert!(!message.contains("unknown pseudo-op"), "{message}");
}

#[test]
fn a_function_with_too_many_calls_says_so_in_both_builds() {
    let dir = scratch();
    let source = dir.path().join("large.c");
    let calls = "    step();\n".repeat(0x10000);
    let text = format!(
        "int n;\n__attribute__((noinline)) void step(void) {{ n++; }}\nvoid large(void) {{\n{calls}}}\n\
         int main(void) {{ for (int i = 0; i < 2000; i++) large(); return n != 2000 * 65536; }}\n"
    );
    std::fs::write(&source, text).expect("written");
    let program = dir.path().join("large");
    let build = |flags: Vec<String>| {
        let mut clang = clang();
        clang.args(["-O1", "-Rpass-missed=pleach"]).args(flags).arg(&source);
        let out = output(clang.arg("-o").arg(&program));
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(out.status.success(), "{said}");
        let why = "it has 65537 blocks and calls, more than the 65535 that can be numbered: not profiled";
        assert_eq!(said.matches(why).count(), 1, "{said}");
    };
    build(flags(&["annotate"]));
    let profile = dir.path().join("large.pleach");
    let mut record = Command::new(pleach());
    record.args(["record", "--overhead", "10%", "-o"]).arg(&profile);
    stdout(record.arg("--").arg(&program));
    build(flags(&["use", profile.to_str().expect("UTF-8")]));
    run(&program);
}

/// LLVM makes one of them, and what is left does not show which of the two was executed.
#[test]
fn calls_that_may_throw_stay_apart() {
    let dir = scratch();
    let [plain, annotated] = ["plain", "annotated"].map(|name| dir.path().join(name));
    for (program, flags) in [(&plain, vec![]), (&annotated, flags(&["annotate"]))] {
        let mut build = clangxx();
        build.arg("-O2").args(flags);
        stdout(build.arg(self::program("invokes.cpp")).arg("-o").arg(program));
    }
    assert_eq!(run(&plain), run(&annotated));
    let mut disassemble = Command::new("llvm-objdump-22");
    let code = stdout(
        disassemble
            .args(["-d", "--disassemble-symbols=_Z4scanPlS_li"])
            .arg(&annotated),
    );
    let calls = code
        .lines()
        .filter(|line| line.contains("call") && line.contains("remove"));
    assert_eq!(calls.count(), 2, "{code}");
}

#[test]
fn every_level_keeps_the_output() {
    let dir = scratch();
    let flags = flags(&["annotate"]);
    for (compiler, source) in [("clang-22", "loops.c"), ("clang++-22", "exceptions.cpp")] {
        for level in ["-O0", "-O1", "-O2", "-O3", "-Os"] {
            let (plain, annotated) = (dir.path().join("plain"), dir.path().join("annotated"));
            let mut command = Command::new(compiler);
            stdout(command.arg(level).arg(program(source)).arg("-o").arg(&plain));
            let mut command = Command::new(compiler);
            stdout(
                command
                    .args([level, "-Wall", "-Werror"])
                    .args(&flags)
                    .arg(program(source))
                    .arg("-o")
                    .arg(&annotated),
            );
            assert_eq!(run(&plain), run(&annotated), "{source} at {level}");
            assert_annotated(&annotated);
        }
    }
}

#[test]
fn every_linker_keeps_one_copy_of_each_graph() {
    let dir = scratch();
    let flags = flags(&["annotate"]);
    let sources = [program("twins_a.c"), program("twins_b.c")];
    let mut sizes = BTreeSet::new();
    for linker in ["bfd", "gold", "lld", "mold"] {
        if !has_linker(linker) {
            continue;
        }
        let out = dir.path().join(linker);
        let extra = [
            format!("-fuse-ld={linker}"),
            "-ffunction-sections".into(),
            "-Wl,--gc-sections".into(),
        ];
        compile(&out, &[&flags[..], &extra[..]].concat(), &sources);
        assert_annotated(&out);
        let map = AddressMap::read(&out).expect("mapped");
        // These two keep the probes of functions that they throw away.
        let without_symbol = if ["gold", "mold"].contains(&linker) {
            map.losses.without_symbol
        } else {
            0
        };
        assert_eq!(
            map.losses,
            Losses {
                without_symbol,
                ..Losses::default()
            },
            "{linker}"
        );
        sizes.insert(map.binary.manifest.len());
    }
    assert_eq!(sizes.len(), 1, "linkers disagree about the manifest: {sizes:?}");
}

#[test]
fn build_habits_are_kept() {
    let dir = scratch();
    let flags = flags(&["annotate"]);
    let in_dir = |args: &[&str], sources: &[&str]| {
        let mut command = clang();
        command
            .current_dir(dir.path())
            .args(["-O2", "-Werror"])
            .args(&flags)
            .args(args);
        stdout(command.args(sources.iter().map(|s| program(s))))
    };
    in_dir(&["-c", "-o", "plain.o"], &["plain.S"]);
    in_dir(&["-save-temps", "-c", "-o", "temps.o"], &["loops.c"]);
    assert_annotated(&dir.path().join("temps.o"));
    in_dir(&["-S", "-o", "loops.s"], &["loops.c"]);
    stdout(
        clang()
            .current_dir(dir.path())
            .args(["-c", "loops.s", "-o", "loops.o"])
            .args(&flags),
    );
    assert_annotated(&dir.path().join("loops.o"));
    in_dir(&["-fPIC", "-shared", "-o", "libloops.so"], &["loops.c"]);
    in_dir(&["-no-pie", "-o", "no-pie"], &["loops.c"]);
    in_dir(&["-g", "-o", "debug"], &["loops.c"]);
    // A configuration file instead of flags.
    let config = dir.path().join("pleach.cfg");
    let text = stdout(Command::new(pleach()).args(["flags", "annotate", "--config"]));
    std::fs::write(&config, text).expect("written");
    let by_config = dir.path().join("by-config");
    let option = format!("--config={}", config.display());
    stdout(
        clang()
            .args([&option, "-O2", "-Werror"])
            .arg(program("loops.c"))
            .arg("-o")
            .arg(&by_config),
    );
    assert_annotated(&by_config);
    // A static library, and a link step with the same flags.
    in_dir(&["-c", "-o", "b.o"], &["twins_b.c"]);
    stdout(
        Command::new("ar")
            .current_dir(dir.path())
            .args(["rcs", "libb.a", "b.o"]),
    );
    in_dir(&["-c", "-o", "a.o"], &["twins_a.c"]);
    stdout(
        clang()
            .current_dir(dir.path())
            .arg("-Werror")
            .args(&flags)
            .args(["a.o", "libb.a", "-o", "linked"]),
    );
    assert_eq!(
        AddressMap::read(&dir.path().join("linked"))
            .expect("mapped")
            .functions
            .len(),
        5
    );
    for mode in ["thin", "full"] {
        in_dir(
            &[&format!("-flto={mode}"), "-fuse-ld=lld", "-o", mode],
            &["twins_a.c", "twins_b.c"],
        );
        assert_annotated(&dir.path().join(mode));
    }
}

#[test]
fn debug_info_stays_what_it_was() {
    let dir = scratch();
    let flags = flags(&["annotate"]);
    // At -O1 this file compiles to the same code with and without probes, so that addresses can be compared too.
    let build = |name: &str, extra: &[String]| {
        let out = dir.path().join(name);
        stdout(
            clang()
                .args(["-O1", "-g", "-c"])
                .args(extra)
                .arg(program("twins_b.c"))
                .arg("-o")
                .arg(&out),
        );
        let dump = |what: &str| {
            let text = stdout(Command::new("llvm-dwarfdump-22").arg(what).arg(&out));
            text.lines()
                .filter(|l| !l.contains("file format"))
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        (dump("--debug-info"), dump("--debug-abbrev"))
    };
    assert_eq!(build("plain.o", &[]), build("annotated.o", &flags));
    // And without -g there is none.
    let none = dir.path().join("none.o");
    stdout(
        clang()
            .args(["-O2", "-c"])
            .args(&flags)
            .arg(program("loops.c"))
            .arg("-o")
            .arg(&none),
    );
    assert!(
        sections(&none).iter().all(|s| !s.starts_with(".debug")),
        "{:?}",
        sections(&none)
    );
}

/// Our reading of a binary's probes, in the words of `llvm-profgen --show-pseudo-probe`.
fn our_probes(map: &AddressMap) -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    for probe in &map.probes {
        let cfg = &map.function_of(probe.instance).cfg;
        let (index, kind) = match probe.target {
            ProbeTarget::Block(block) => (cfg.block_probe(block), "Block"),
            ProbeTarget::Call(call) => {
                let kind = match cfg.calls[call.index()].callee {
                    pleach_annotate::cfg::Callee::Direct(_) | pleach_annotate::cfg::Callee::Memory => "DirectCall",
                    _ => "IndirectCall",
                };
                (cfg.blocks.len() as u32 + call.0 + 1, kind)
            }
        };
        let mut stack = Vec::new();
        let mut node = map.inline_instances[probe.instance.index()];
        while let Some((parent, call)) = node.parent {
            let outer = &map.function_of(parent).cfg;
            let probe = call.map_or(0, |call| outer.blocks.len() as u32 + call.0 + 1);
            stack.push(format!("{}:{probe}", outer.name));
            node = map.inline_instances[parent.index()];
        }
        stack.reverse();
        let inlined = if stack.is_empty() {
            String::new()
        } else {
            format!(" Inlined: @ {}", stack.join(" @ "))
        };
        out.insert(format!(
            "{:x} FUNC: {} Index: {index} Type: {kind}{inlined}",
            probe.address.0, cfg.name
        ));
    }
    out
}

/// LLVM's reading of the same.
fn llvms_probes(binary: &Path) -> BTreeSet<String> {
    let text = stdout(
        Command::new("llvm-profgen-22")
            .args(["--show-disassembly-only", "--show-pseudo-probe", "--output=/dev/null"])
            .arg(format!("--binary={}", binary.display())),
    );
    let (mut out, mut pending) = (BTreeSet::new(), Vec::new());
    for line in text.lines() {
        if let Some(probe) = line.trim().strip_prefix("[Probe]:") {
            pending.push(probe.split_whitespace().collect::<Vec<_>>().join(" "));
        } else if let Some((address, _)) = line.trim().split_once(":\t") {
            out.extend(pending.drain(..).map(|probe| format!("{address} {probe}")));
        }
    }
    out
}

#[test]
fn probes_are_what_llvm_profgen_reads() {
    let dir = scratch();
    let flags = flags(&["annotate"]);
    for source in ["loops.c", "indirect.c"] {
        let out = dir.path().join("binary");
        compile(&out, &flags, &[program(source)]);
        let (ours, llvms) = (our_probes(&AddressMap::read(&out).expect("mapped")), llvms_probes(&out));
        assert!(llvms.len() > 10, "{source}: {llvms:?}");
        assert_eq!(ours, llvms, "{source}");
    }
}

#[test]
fn probes_of_a_real_program_are_what_llvm_profgen_reads() {
    let bench = Bench::open(None).expect("workloads");
    let pleach = Pleach {
        command: pleach(),
        options: Vec::new(),
    };
    for name in ["lua", "bzip2"] {
        let workload = bench.select(&[name.to_owned()]).expect("a workload")[0];
        let binary = Variant::Annotated(pleach.clone())
            .produce(&bench, workload)
            .expect("built");
        let map = AddressMap::read(&binary.path).expect("mapped");
        assert_eq!(map.losses, Losses::default(), "{name}");
        let (ours, llvms) = (our_probes(&map), llvms_probes(&binary.path));
        // LLVM tells two local functions of one name apart as little as two copies of one: compare the others.
        let names: Vec<&str> = map.functions.iter().map(|f| f.cfg.name.as_str()).collect();
        let twice: BTreeSet<&str> = names
            .iter()
            .copied()
            .filter(|n| names.iter().filter(|m| m == &n).count() > 1)
            .collect();
        let told_apart = |probe: &&String| {
            twice
                .iter()
                .all(|n| !probe.contains(&format!(" {n} ")) && !probe.contains(&format!("{n}:")))
        };
        let (ours, llvms): (BTreeSet<_>, BTreeSet<_>) = (
            ours.iter().filter(told_apart).collect(),
            llvms.iter().filter(told_apart).collect(),
        );
        assert!(llvms.len() > 500, "{name}: {}", llvms.len());
        let only: Vec<_> = ours.symmetric_difference(&llvms).take(10).collect();
        assert!(only.is_empty(), "{name}: not in both: {only:#?}");
    }
}

#[test]
fn statics_of_one_name_stay_two_and_inlined_functions_keep_their_graph() {
    let dir = scratch();
    let out: PathBuf = dir.path().join("twins");
    compile(
        &out,
        &flags(&["annotate"]),
        &[program("twins_a.c"), program("twins_b.c")],
    );
    let map = AddressMap::read(&out).expect("mapped");
    let twins: Vec<_> = map.functions.iter().filter(|f| f.cfg.name == "step").collect();
    assert_eq!(twins.len(), 2);
    assert_eq!(twins[0].cfg.id.guid, twins[1].cfg.id.guid);
    assert_ne!(twins[0].cfg.id, twins[1].cfg.id);
    for twin in twins {
        let instance = map
            .inline_instances
            .iter()
            .find(|n| map.functions[n.function.0 as usize].cfg.id == twin.cfg.id);
        let symbol = &map.binary.symbols[instance.expect("emitted").symbol as usize];
        let file = &map.binary.files[symbol.file.expect("a local symbol has a file") as usize];
        assert_eq!(Some(file.as_str()), twin.cfg.source_file.rsplit('/').next());
    }
    let inlined = dir.path().join("loops");
    compile(&inlined, &flags(&["annotate"]), &[program("loops.c")]);
    let map = AddressMap::read(&inlined).expect("mapped");
    assert!(map.functions.iter().any(|f| f.cfg.name == "square"));
    assert!(
        map.binary.symbols.iter().all(|s| s.name != "square"),
        "the test needs square to be inlined away"
    );
}

/// A source file that is compiled twice has two local functions of one name, file and shape. Without debug information,
/// there are no names of files either.
#[test]
fn statics_of_a_template_are_told_apart() {
    let dir = scratch();
    let template = dir.path().join("template.c");
    let text = "__attribute__((noinline)) static unsigned sum(const ELEMENT *from, unsigned n) {\n\
                    unsigned all = 0;\n\
                    for (unsigned i = 0; i < n; i++)\n\
                        if (from[i] & 1) all += from[i];\n\
                    return all;\n\
                }\n\
                unsigned RUN(const void *from, unsigned n) { return sum(from, n) + 1; }\n";
    std::fs::write(&template, text).expect("written");
    let main = dir.path().join("main.c");
    let text = "unsigned bytes(const void *, unsigned), words(const void *, unsigned);\n\
                int main(int n, char **text) { return bytes(text[0], n) + words(text[0], n) == 1; }\n";
    std::fs::write(&main, text).expect("written");
    let object = |name: &str, source: &Path, defines: &[&str]| {
        let out = dir.path().join(name);
        let mut command = clang();
        command
            .arg("-O2")
            .args(flags(&["annotate"]))
            .args(defines)
            .arg("-c")
            .arg(source);
        stdout(command.arg("-o").arg(&out));
        out
    };
    let bytes = object("bytes.o", &template, &["-DELEMENT=unsigned char", "-DRUN=bytes"]);
    let words = object("words.o", &template, &["-DELEMENT=unsigned short", "-DRUN=words"]);
    let main = object("main.o", &main, &[]);
    for linker in ["bfd", "lld"].into_iter().filter(|linker| has_linker(linker)) {
        for objects in [[&bytes, &words, &main], [&main, &words, &bytes]] {
            let out = dir.path().join("linked");
            stdout(
                clang()
                    .arg(format!("-fuse-ld={linker}"))
                    .args(objects)
                    .arg("-o")
                    .arg(&out),
            );
            let complete = AddressMap::read(&out).expect("mapped");
            stdout(Command::new("llvm-strip-22").arg("--strip-debug").arg(&out));
            let map = AddressMap::read(&out).expect("mapped");
            assert!(!complete.binary.files.is_empty() && map.binary.files.is_empty());
            assert_eq!((&map.probes, &map.functions), (&complete.probes, &complete.functions));
            assert_eq!(map.losses, Losses::default(), "{linker}");
            let bodies = map.inline_instances.iter().filter_map(|instance| map.body(instance));
            let mut bodies: Vec<_> = bodies.map(|(symbol, function)| (symbol.address, function)).collect();
            bodies.sort_by_key(|&(address, _)| address);
            // Each file's two functions lie next to each other.
            let modules: Vec<_> = bodies.iter().filter(|(_, f)| f.cfg.name != "main").collect();
            assert_eq!(modules.len(), 4);
            for pair in modules.chunks(2) {
                assert_eq!(pair[0].1.cfg.module, pair[1].1.cfg.module, "{linker}");
            }
        }
    }
}

/// Intrinsics of coroutines become calls, which are inlined: without locations, LLVM would refuse the module at a link.
#[test]
fn coroutines_can_be_linked_late() {
    let dir = scratch();
    let [plain, annotated] = ["plain", "annotated"].map(|name| dir.path().join(name));
    let build = |out: &Path, level: &str, flags: &[String]| {
        let mut clang = clangxx();
        clang.args(["-std=c++20", "-flto", "-fuse-ld=lld", level]).args(flags);
        let built = output(clang.arg(program("coroutines.cpp")).arg("-o").arg(out));
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        assert_eq!(String::from_utf8_lossy(&built.stderr), "", "{level}");
    };
    for level in ["-O0", "-O1", "-O2", "-O3"] {
        build(&plain, level, &[]);
        build(&annotated, level, &flags(&["annotate"]));
        let run = |binary: &Path| stdout(Command::new(binary).arg("1000"));
        assert_eq!(run(&annotated), run(&plain), "{level}");
    }
    assert_annotated(&annotated);
}

/// LLVM orders the probes of functions that share a section by addresses in the memory of the compiler, which differ
/// from run to run.
#[test]
fn objects_have_the_same_bytes_each_time() {
    const FUNCTIONS: u32 = 80;
    let dir = scratch();
    let (source, object) = (dir.path().join("many.c"), dir.path().join("many.o"));
    let functions = (1..FUNCTIONS).map(|at| {
        let called = at * 7 % at.min(12);
        format!("int f{at}(int x) {{ return x > {at} ? f{called}(x - 1) : x * {at}; }}\n")
    });
    let text: String = std::iter::once("int f0(int x) { return x; }\n".to_owned())
        .chain(functions)
        .collect();
    std::fs::write(&source, text).expect("written");
    for options in [
        &["-O0"][..],
        &["-O2"],
        &["-O2", "-ffunction-sections"],
        &["-O2", "--target=aarch64-linux-gnu"],
    ] {
        let compiled = || {
            let mut command = clang();
            command.args(options).args(flags(&["annotate"])).arg("-c");
            stdout(command.arg(&source).arg("-o").arg(&object));
            std::fs::read(&object).expect("an object file")
        };
        let first = compiled();
        assert_annotated(&object);
        assert!((0..5).all(|_| compiled() == first), "{options:?}");
    }
}
