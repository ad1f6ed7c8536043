//! Programs' executed paths, from single-stepping, against what their instrumentation counts.
//!
//! An annotated program runs one instruction at a time ([`trace`](pleach_check::trace)). Every branch it takes is
//! decoded through the address map, like a recording that never pauses, into the blocks of each activation of each
//! function, which are split into paths. The instrumented program, of the same source, must have counted the same.
//!
//! At the `late` anchor of -O0 and -O1 builds each path must have the same count. Elsewhere the optimiser removed
//! blocks from the code after they were numbered. No branch of the program distinguishes paths that differ only in
//! removed blocks: they form a *class*, and each class must have the same count. The snapshots list the classes.
//!
//! At the `early` anchor the optimiser also merges, copies and removes numbered blocks, so that the code shows other
//! blocks than were executed: a loop's first test is folded, a recursion becomes a loop, a mark moves before a call
//! that never returns. The snapshot lists these functions.

use crate::support::classes::Classes;
use crate::support::executed::{InstanceBlocks, executed};
use crate::support::*;
use pleach_analysis::decode::{Decoder, Event, FrameId};
use pleach_analysis::program::Program;
use pleach_annotate::code::{Transfer, instruction_at};
use pleach_annotate::find::Finder;
use pleach_annotate::id::{BlockIndex, CfgHash, FunctionId};
use pleach_annotate::map::{AddressMap, InlineInstanceIndex};
use pleach_ball_larus::counts::exact::{ExactFunction, ExactProfile};
use pleach_ball_larus::counts::file::CountFile;
use pleach_ball_larus::graph::PathGraph;
use pleach_ball_larus::{End, Path as BlPath, Start};
use pleach_check::trace::{Trace, single_step};
use pleach_collector::vector::*;
use pleach_facilities::skip;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

const PROGRAMS: [&str; 4] = ["trace_branches.c", "trace_loops.c", "trace_calls.c", "trace_exit.c"];
const ARGUMENT: &str = "3";
const LIMIT: usize = 1_000_000;

type Key = (FunctionId, CfgHash);

/// The blocks that each activation passed.
type Activations = Vec<Vec<BlockIndex>>;

/// Compares all programs, and shows which paths are in classes. `strict` builds have no difference.
fn check(builds: &[(&'static str, &str)], strict: bool) -> Option<String> {
    let mut text = String::new();
    let mut wrong = 0;
    for (anchor, level) in builds {
        for source in PROGRAMS {
            let _ = writeln!(text, "{source} {anchor} {level}");
            for function in functions(source, anchor, level)? {
                text.push_str(&function.summary());
                wrong += function.differences().len();
            }
        }
    }
    assert!(!strict || wrong == 0, "{wrong} differences:\n{text}");
    Some(text)
}

#[test]
fn late_paths_are_what_was_executed() {
    if let Some(text) = check(&[("late", "-O0"), ("late", "-O1")], true) {
        insta::assert_snapshot!(text);
    }
}

#[test]
fn classes_of_paths_are_what_was_executed() {
    if let Some(text) = check(&[("early", "-O0"), ("late", "-O2")], true) {
        insta::assert_snapshot!(text);
    }
}

#[test]
fn early_classes_of_paths_are_what_was_executed() {
    if let Some(text) = check(&[("early", "-O1"), ("early", "-O2")], false) {
        insta::assert_snapshot!(text);
    }
}

/// One function's paths.
struct Function {
    counted: ExactFunction,
    executed: BTreeMap<BlPath, u64>,
    classes: Classes,
    /// Number of inline instances that were executed.
    instances: usize,
    /// Blocks that have code, but were executed without it as well.
    lost: BTreeSet<BlockIndex>,
}

/// Builds and runs one program. `None` where no process may be traced.
fn functions(source: &str, anchor: &str, level: &str) -> Option<Vec<Function>> {
    let what = format!("{source} {anchor} {level}");
    let dir = scratch();
    let build = |what: &str| {
        let out = dir.path().join(what);
        let words = flags(&[what, "--anchor", anchor]);
        let source = program(source);
        stdout(
            clang()
                .args(["-Wno-everything", level])
                .args(words)
                .arg(source)
                .arg("-o")
                .arg(&out),
        );
        out
    };
    let counts = dir.path().join("counts.plcnt");
    let mut instrumented = Command::new(build("instrument"));
    let instrumented = output(instrumented.arg(ARGUMENT).env("PLEACH_COUNTS", &counts));
    let annotated = build("annotate");
    let traced = Traced::new(&annotated);
    let map = traced.program.map(MODULE).expect("an address map");
    let main = map.binary.symbols.iter().find(|s| s.name == "main").expect("main");
    let main = map.binary.offset_of_address(main.address).expect("an offset");
    let trace = single_step(Command::new(&annotated).arg(ARGUMENT), main, LIMIT);
    let Some(trace) = trace.unwrap_or_else(|e| panic!("{what}: {e:#}")) else {
        skip("this system does not let a process be traced (ptrace)");
        return None;
    };
    assert_eq!(trace.status, instrumented.status, "{what}");
    assert_eq!(trace.stdout, String::from_utf8_lossy(&instrumented.stdout), "{what}");
    let exact = ExactProfile::from_counts(&CountFile::open(&counts).expect("counts"));
    assert!(exact.problems.is_empty(), "{what}: {:?}", exact.problems);
    Some(traced.functions(&burst(map, main, &trace), exact))
}

impl Function {
    fn new(counted: ExactFunction) -> Self {
        Self {
            executed: BTreeMap::new(),
            classes: Classes::default(),
            instances: 0,
            lost: BTreeSet::new(),
            counted,
        }
    }

    /// Adds the paths that the activations of an inline instance executed.
    fn add(&mut self, mut instance: InstanceBlocks, activations: &[Vec<BlockIndex>]) {
        let cfg = &self.counted.cfg;
        let graph = PathGraph::new(cfg, &self.counted.options);
        let found = executed(cfg, &graph, &mut instance, activations);
        assert!(!found.is_cut_short, "{}: too many hypotheses", cfg.name);
        for (path, count) in found.paths {
            *self.executed.entry(path).or_default() += count;
        }
        self.classes.extend(&found.classes);
        self.lost.extend(found.lost);
        self.instances += 1;
    }

    fn counted(&self) -> BTreeMap<BlPath, u64> {
        let paths = self.counted.paths.iter();
        paths.map(|p| (p.path[0].clone(), p.count)).collect()
    }

    fn summed(&self, paths: &BTreeMap<BlPath, u64>) -> BTreeMap<BlPath, u64> {
        let mut sums = BTreeMap::new();
        for (path, count) in paths {
            *sums.entry(self.classes.class_of(path)).or_default() += count;
        }
        sums
    }

    fn differences(&self) -> Vec<String> {
        if self.instances == 0 {
            return Vec::new();
        }
        let (counted, executed) = (self.summed(&self.counted()), self.summed(&self.executed));
        let keys: BTreeSet<&BlPath> = counted.keys().chain(executed.keys()).collect();
        let count = |of: &BTreeMap<BlPath, u64>, key| of.get(key).copied().unwrap_or(0);
        keys.into_iter()
            .filter(|key| self.classes.is_numbered(key) && count(&counted, key) != count(&executed, key))
            .map(|key| {
                let (counted, executed) = (count(&counted, key), count(&executed, key));
                format!("{}: counted {counted} times, executed {executed}", show(key))
            })
            .collect()
    }

    fn summary(&self) -> String {
        let counted = self.counted();
        let mut text = format!("  {}: {} paths", self.counted.cfg.name, counted.len());
        match self.instances {
            0 => text.push_str(", no code"),
            1 => {}
            instances => {
                let _ = write!(text, ", {instances} inline instances");
            }
        }
        if !self.lost.is_empty() {
            let lost: Vec<_> = self.lost.iter().copied().collect();
            let _ = write!(text, ", also without code: {}", blocks(&lost));
        }
        text.push('\n');
        let mut classes: BTreeMap<BlPath, Vec<String>> = BTreeMap::new();
        for path in counted.keys() {
            classes.entry(self.classes.class_of(path)).or_default().push(show(path));
        }
        for (class, paths) in classes.into_iter().filter(|(_, paths)| paths.len() > 1) {
            let number = if self.classes.is_numbered(&class) {
                ""
            } else {
                " (any number)"
            };
            let _ = writeln!(text, "    class{number}: {}", paths.join(", "));
        }
        for difference in self.differences() {
            let _ = writeln!(text, "    the code says otherwise: {difference}");
        }
        text
    }
}

fn blocks(blocks: &[BlockIndex]) -> String {
    let words: Vec<String> = blocks.iter().map(|b| b.0.to_string()).collect();
    words.join(" ")
}

fn show(path: &BlPath) -> String {
    let start = match path.start {
        Start::Entry => "",
        Start::Inside => "… ",
    };
    let end = match path.end {
        End::Exit => String::new(),
        End::Back(to) => format!(" ↺{}", to.0),
        End::Cut(to) => format!(" →{}", to.0),
        End::Call => " call".into(),
    };
    format!("{start}{}{end}", blocks(&path.blocks))
}

const MODULE: ModuleId = ModuleId(0);

/// Every branch that the program took, as if recorded at once.
fn burst(map: &AddressMap, main: u64, trace: &Trace) -> Burst {
    let place = |at: Option<u64>| match at {
        Some(offset) => CodeAddress { module: MODULE, offset },
        None => CodeAddress {
            module: ModuleId::EXTERNAL,
            offset: 0,
        },
    };
    assert_eq!(trace.instructions.first(), Some(&Some(main)));
    let mut branches = vec![Branch {
        from: place(None),
        to: place(Some(main)),
    }];
    for pair in trace.instructions.windows(2) {
        let is_taken = match pair[0] {
            None => true,
            Some(offset) => {
                let address = map.binary.address_of_offset(offset).expect("code");
                let instruction = instruction_at(&map.binary, address).expect("an instruction");
                let falls = pair[1] == Some(offset + u64::from(instruction.len));
                match instruction.transfer {
                    Transfer::Next | Transfer::Other => {
                        assert!(falls || pair[1] == pair[0], "{address} went on elsewhere");
                        false
                    }
                    Transfer::Conditional => !falls,
                    _ => true,
                }
            }
        };
        if is_taken {
            branches.push(Branch {
                from: place(pair[0]),
                to: place(pair[1]),
            });
        }
    }
    Burst {
        process: 0,
        thread: 1,
        time_ns: 0,
        engine: Engine::Step,
        start: None,
        branches,
        end: None,
        end_reason: EndReason::Exit,
        instructions: 0,
        count: 1,
        proved: true,
        system_call: None,
        hardware: None,
        values: Vec::new(),
        timing: None,
    }
}

/// The program as a recording's only module.
struct Traced {
    program: Program,
}

impl Traced {
    fn new(path: &Path) -> Self {
        let map = AddressMap::read(path).expect("an address map");
        let module = Module {
            path: path.to_owned(),
            build_id: map.binary.build_id.map(BuildId),
            mappings: Vec::new(),
        };
        let program = Program::read(&[module], &Finder::default());
        assert!(program.problems.is_empty(), "{:?}", program.problems);
        Self { program }
    }

    fn functions(&self, burst: &Burst, exact: ExactProfile) -> Vec<Function> {
        let map = self.program.map(MODULE).expect("an address map");
        // The blocks that each activation passed. An inlined function has several activations within one of its
        // caller's.
        let mut passed: BTreeMap<(InlineInstanceIndex, u64), Vec<BlockIndex>> = BTreeMap::new();
        let mut decoder = Decoder::new(&self.program);
        decoder.burst(burst, &mut |_, event| {
            if let Event::Block {
                frame: FrameId(frame),
                instance,
                block,
                ..
            } = event
            {
                passed.entry((instance, frame)).or_default().push(block);
            }
        });
        assert_eq!(decoder.report.inconsistent, 0, "{:?}", decoder.report);
        let mut functions: BTreeMap<Key, Function> = BTreeMap::new();
        for counted in exact.functions {
            let key = (counted.cfg.id, counted.cfg.hash());
            functions.insert(key, Function::new(counted));
        }
        let mut instances: BTreeMap<Key, BTreeMap<InlineInstanceIndex, (InstanceBlocks, Activations)>> =
            BTreeMap::new();
        for ((instance, _), blocks) in passed {
            let known = map.function_of(instance);
            let key = (known.cfg.id, known.hash);
            assert!(functions.contains_key(&key), "{} was not instrumented", known.cfg.name);
            let of_function = instances.entry(key).or_default();
            let (_, activations) = of_function
                .entry(instance)
                .or_insert_with(|| (InstanceBlocks::new(map, instance), Vec::new()));
            activations.push(blocks);
        }
        for (key, of_function) in instances {
            let function = functions.get_mut(&key).expect("known");
            for (blocks, activations) in of_function.into_values() {
                function.add(blocks, &activations);
            }
        }
        functions.into_values().collect()
    }
}
