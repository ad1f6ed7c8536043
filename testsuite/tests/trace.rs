//! What programs really execute, against what their instrumentation counts.
//!
//! An annotated program runs one instruction at a time ([`trace`]). Every branch it takes is decoded through the address
//! map, like a recording that never pauses, into the blocks of each activation of each function, which are split into
//! paths. The instrumented program, of the same source, must have counted the same.
//!
//! At the `late` anchor of -O0 and -O1 builds each path must have the same count. Elsewhere the optimiser removed blocks from
//! the code after they were numbered. Paths that differ in nothing that is left there are told apart by no branch of the
//! program: they make a *class*, and each class must have the same count.

mod support;

use pleach_annotate::cfg::{Cfg, ProbeTarget};
use pleach_annotate::code::{Transfer, instruction_at};
use pleach_annotate::id::{BlockIndex, CfgHash, FunctionId};
use pleach_annotate::map::{AddressMap, NodeIndex};
use pleach_annotate::probe::Address;
use pleach_collector::vector::*;
use pleach_feedback::ball_larus::graph::{EdgeKind, PathGraph};
use pleach_feedback::ball_larus::{End, Start};
use pleach_feedback::counts::exact::{Exact, ExactFunction};
use pleach_feedback::counts::file::CountFile;
use pleach_feedback::decode::{Decoder, Event, FrameId};
use pleach_feedback::program::Program;
use pleach_testsuite::trace::{Trace, single_step};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use support::*;

type BlPath = pleach_feedback::ball_larus::Path;
type Key = (FunctionId, CfgHash);

const PROGRAMS: [&str; 4] = ["trace_branches.c", "trace_loops.c", "trace_calls.c", "trace_exit.c"];
const ARGUMENT: &str = "3";
const LIMIT: usize = 1_000_000;

#[test]
fn late_paths_are_what_was_executed() {
    for level in ["-O0", "-O1"] {
        for source in PROGRAMS {
            let Some(both) = Both::new(source, "late", level) else {
                return;
            };
            println!("{}", both.says());
        }
    }
}

#[test]
fn elsewhere_classes_of_paths_are_what_was_executed() {
    for (anchor, level) in [("early", "-O0"), ("early", "-O1"), ("early", "-O2"), ("late", "-O2")] {
        for source in PROGRAMS {
            let Some(both) = Both::new(source, anchor, level) else {
                return;
            };
            println!("{}", both.says());
        }
    }
}

/// One program's paths: as counted, and as executed.
struct Both {
    what: String,
    functions: Vec<Function>,
}

/// One function's paths.
struct Function {
    counted: ExactFunction,
    executed: BTreeMap<BlPath, u64>,
    /// Blocks with code in every executed copy, and those of them that have theirs together with another: the last of
    /// them.
    visible: BTreeMap<BlockIndex, BlockIndex>,
    copies: usize,
    /// Ways from one block to the next that code does not tell.
    guesses: BTreeSet<String>,
    /// Blocks that have code, but were executed without it as well.
    lost: BTreeSet<BlockIndex>,
}

impl Both {
    /// `None` where no process may be traced.
    fn new(source: &str, anchor: &'static str, level: &'static str) -> Option<Self> {
        let dir = scratch();
        let build = |what: &str| {
            let out = dir.path().join(what);
            let words = flags(&[what, "--anchor", anchor]);
            stdout(
                clang()
                    .args(["-Wno-everything", level])
                    .args(words)
                    .arg(program(source))
                    .arg("-o")
                    .arg(&out),
            );
            out
        };
        let what = format!("{source} {anchor} {level}");
        let began = std::time::Instant::now();
        let counts = dir.path().join("counts.plcnt");
        let instrumented = output(
            Command::new(build("instrument"))
                .arg(ARGUMENT)
                .env("PLEACH_COUNTS", &counts),
        );
        let annotated = build("annotate");
        let modules = VectorSetOf::new(&annotated);
        let map = modules.program.map(MODULE).expect("an address map");
        let main = map.binary.symbols.iter().find(|s| s.name == "main").expect("main");
        let main = map.binary.offset_of_address(main.address).expect("an offset");
        let traced = single_step(Command::new(&annotated).arg(ARGUMENT), main, LIMIT);
        eprintln!(
            "{what}: {:?} {:?}",
            began.elapsed(),
            traced.as_ref().map(|t| t.as_ref().map(|t| t.instructions.len()))
        );
        let Some(trace) = traced.unwrap_or_else(|e| panic!("{what}: {e:#}")) else {
            eprintln!("skipped: this system does not let a process be traced (ptrace)");
            return None;
        };
        assert_eq!(trace.status, instrumented.status, "{what}");
        assert_eq!(trace.stdout, String::from_utf8_lossy(&instrumented.stdout), "{what}");
        let exact = Exact::of(&CountFile::open(&counts).expect("counts"));
        assert!(exact.problems.is_empty(), "{what}: {:?}", exact.problems);
        let functions = modules.functions(&burst(map, main, &trace), exact);
        Some(Self { what, functions })
    }

    fn differences(&self) -> Vec<String> {
        self.functions.iter().flat_map(Function::differences).collect()
    }

    fn says(&self) -> String {
        let mut text = format!("== {}\n", self.what);
        for function in &self.functions {
            let name = &function.counted.cfg.name;
            let total: u64 = function.counted.paths.iter().map(|p| p.count).sum();
            let _ = writeln!(
                text,
                "{name}: {} paths {total} times, {} executed, {} copies",
                function.counted.paths.len(),
                function.executed.len(),
                function.copies
            );
            for line in function.differences() {
                let _ = writeln!(text, "  DIFFERS {line}");
            }
            for line in function.class_differences() {
                let _ = writeln!(text, "  CLASS DIFFERS {line}");
            }
            for line in function.classes() {
                let _ = writeln!(text, "  class {line}");
            }
            for line in &function.guesses {
                let _ = writeln!(text, "  guess {line}");
            }
            if !function.lost.is_empty() {
                let lost: Vec<BlockIndex> = function.lost.iter().copied().collect();
                let _ = writeln!(text, "  lost {}", blocks(&lost));
            }
        }
        text
    }
}

/// What of a path is left in the code.
type Class = Vec<BlockIndex>;

impl Function {
    fn new(counted: ExactFunction) -> Self {
        let all = (0..counted.cfg.blocks.len() as u32).map(BlockIndex);
        Self {
            executed: BTreeMap::new(),
            visible: all.map(|b| (b, b)).collect(),
            copies: 0,
            guesses: BTreeSet::new(),
            lost: BTreeSet::new(),
            counted,
        }
    }

    /// What a copy's activations executed.
    fn add(&mut self, copy: &mut Copy, activations: &[Vec<BlockIndex>]) {
        let graph = PathGraph::new(&self.counted.cfg, &self.counted.options);
        let walk = loop {
            let mut walk = Walk::new(&self.counted.cfg, &graph, copy);
            for passed in activations {
                walk.activation(passed);
            }
            // Each time there are fewer blocks to rely on.
            let lost = std::mem::take(&mut walk.lost);
            if lost.is_empty() {
                break walk;
            }
            copy.lose(&lost);
            self.lost.extend(lost);
        };
        for (path, count) in walk.executed {
            *self.executed.entry(path).or_default() += count;
        }
        self.guesses.extend(walk.guesses);
        self.copies += 1;
        let visible = std::mem::take(&mut self.visible).into_iter();
        let visible = visible.filter_map(|(b, shown)| Some((b, if shown == b { *copy.shown.get(&b)? } else { shown })));
        self.visible = visible.collect();
    }

    fn counted(&self) -> BTreeMap<BlPath, u64> {
        let paths = self.counted.paths.iter();
        paths.map(|p| (p.path[0].clone(), p.count)).collect()
    }

    fn differences(&self) -> Vec<String> {
        different(&self.counted(), &self.executed, show)
    }

    fn class_of(&self, path: &BlPath) -> Class {
        let seen = path.blocks.iter().filter_map(|b| self.visible.get(b).copied());
        let mut class: Class = seen.collect();
        class.dedup();
        class
    }

    fn summed(&self, paths: &BTreeMap<BlPath, u64>) -> BTreeMap<Class, u64> {
        let mut sums = BTreeMap::new();
        for (path, count) in paths {
            *sums.entry(self.class_of(path)).or_default() += count;
        }
        sums
    }

    fn class_differences(&self) -> Vec<String> {
        let (counted, executed) = (self.summed(&self.counted()), self.summed(&self.executed));
        different(&counted, &executed, |class| blocks(class))
    }

    /// Classes with several executed paths.
    fn classes(&self) -> Vec<String> {
        let mut members: BTreeMap<Class, Vec<String>> = BTreeMap::new();
        for (path, count) in self.counted() {
            members
                .entry(self.class_of(&path))
                .or_default()
                .push(format!("{} × {count}", show(&path)));
        }
        members.retain(|_, paths| paths.len() > 1);
        members
            .iter()
            .map(|(class, paths)| format!("{}: {}", blocks(class), paths.join(", ")))
            .collect()
    }
}

fn different<K: Ord>(
    counted: &BTreeMap<K, u64>,
    executed: &BTreeMap<K, u64>,
    show: impl Fn(&K) -> String,
) -> Vec<String> {
    let keys: BTreeSet<&K> = counted.keys().chain(executed.keys()).collect();
    let count = |of: &BTreeMap<K, u64>, key| of.get(key).copied().unwrap_or(0);
    keys.into_iter()
        .filter(|key| count(counted, key) != count(executed, key))
        .map(|key| {
            format!(
                "{}: counted {} times, executed {}",
                show(key),
                count(counted, key),
                count(executed, key)
            )
        })
        .collect()
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
    }
}

/// The program as a recording's only module.
struct VectorSetOf {
    program: Program,
}

impl VectorSetOf {
    fn new(path: &Path) -> Self {
        let map = AddressMap::read(path).expect("an address map");
        let module = Module {
            path: path.to_owned(),
            build_id: map.binary.build_id.map(BuildId),
            mappings: Vec::new(),
        };
        let program = Program::read(&[module], None);
        assert!(program.problems.is_empty(), "{:?}", program.problems);
        Self { program }
    }

    fn functions(&self, burst: &Burst, exact: Exact) -> Vec<Function> {
        let map = self.program.map(MODULE).expect("an address map");
        // What each activation passed. An inlined function has several, one after the other, in one of its caller's.
        let mut passed: BTreeMap<(NodeIndex, u64), Vec<BlockIndex>> = BTreeMap::new();
        let mut decoder = Decoder::new(&self.program);
        decoder.burst(burst, &mut |event| {
            if let Event::Block {
                frame: FrameId(frame),
                node,
                block,
                ..
            } = event
            {
                passed.entry((node, frame)).or_default().push(block);
            }
        });
        // The C runtime's own assembly does not say where its functions end, so that they seem to be one byte long.
        let in_runtime = |pair: &&[Branch]| {
            let at = |place: CodeAddress| map.binary.symbol_at(self.program.locate(place)?.1);
            let sizeless = at(pair[0].to).is_some_and(|symbol| map.binary.symbols[symbol].size == 0);
            sizeless && pair[0].to != pair[1].from
        };
        let in_runtime = burst.branches.windows(2).filter(in_runtime).count();
        assert_eq!(decoder.report.inconsistent, in_runtime as u64, "{:?}", decoder.report);
        let mut functions: BTreeMap<Key, Function> = BTreeMap::new();
        for counted in exact.functions {
            let key = (counted.cfg.id, counted.cfg.hash());
            functions.insert(key, Function::new(counted));
        }
        let mut copies: BTreeMap<Key, BTreeMap<NodeIndex, (Copy, Vec<Vec<BlockIndex>>)>> = BTreeMap::new();
        for ((node, _), blocks) in passed {
            let known = map.function_of(node);
            let key = (known.cfg.id, known.hash);
            assert!(functions.contains_key(&key), "{} was not instrumented", known.cfg.name);
            let copies = copies.entry(key).or_default();
            let (_, activations) = copies
                .entry(node)
                .or_insert_with(|| (Copy::new(map, node), Vec::new()));
            activations.push(blocks);
        }
        for (key, copies) in &mut copies {
            let function = functions.get_mut(key).expect("known");
            for (copy, activations) in copies.values_mut() {
                function.add(copy, activations);
            }
        }
        functions.into_values().collect()
    }
}

/// Which blocks one copy of a function has in the code.
struct Copy {
    /// Blocks whose code is at one address, in order: a branch to one of them passes all.
    groups: Vec<Vec<BlockIndex>>,
    /// Blocks with code, and the last one of those at the same address.
    shown: BTreeMap<BlockIndex, BlockIndex>,
}

impl Copy {
    fn new(map: &AddressMap, node: NodeIndex) -> Self {
        let mut at: BTreeMap<Address, Vec<BlockIndex>> = BTreeMap::new();
        for probe in map.probes.iter().filter(|p| p.node == node) {
            if let ProbeTarget::Block(block) = probe.target {
                at.entry(probe.address).or_default().push(block);
            }
        }
        let mut shown: BTreeMap<BlockIndex, BlockIndex> = BTreeMap::new();
        for group in at.values() {
            let last = group[group.len() - 1];
            for &block in group {
                let of = shown.entry(block).or_insert(last);
                if *of != last {
                    *of = block;
                }
            }
        }
        let mut groups: Vec<_> = at.into_values().collect();
        groups.sort_by_key(|g| std::cmp::Reverse(g.len()));
        groups.dedup();
        Self { groups, shown }
    }

    /// Stops relying on the code of blocks.
    fn lose(&mut self, lost: &BTreeSet<BlockIndex>) {
        self.shown.retain(|block, _| !lost.contains(block));
        // A group is shown by the last block of it that can be relied on.
        for group in &self.groups {
            let Some(last) = group.iter().rev().copied().find(|b| self.shown.contains_key(b)) else {
                continue;
            };
            for block in group {
                if let Some(shown) = self.shown.get_mut(block).filter(|shown| lost.contains(shown)) {
                    *shown = last;
                }
            }
        }
    }

    /// How many of the blocks that were passed next have their code at one address.
    fn together(&self, passed: &[BlockIndex]) -> usize {
        let group = self.groups.iter().find(|g| passed.starts_with(g));
        group.map_or(1, Vec::len)
    }
}

/// Splits what activations of a function passed into paths.
struct Walk<'a> {
    cfg: &'a Cfg,
    graph: &'a PathGraph,
    copy: &'a Copy,
    path: Option<(Start, Vec<BlockIndex>)>,
    executed: BTreeMap<BlPath, u64>,
    guesses: BTreeSet<String>,
    /// Blocks without which there is no way from what was passed to what was passed next.
    lost: BTreeSet<BlockIndex>,
}

impl<'a> Walk<'a> {
    fn new(cfg: &'a Cfg, graph: &'a PathGraph, copy: &'a Copy) -> Self {
        Self {
            cfg,
            graph,
            copy,
            path: None,
            executed: BTreeMap::new(),
            guesses: BTreeSet::new(),
            lost: BTreeSet::new(),
        }
    }

    fn activation(&mut self, mut passed: &[BlockIndex]) {
        while !passed.is_empty() {
            let (group, rest) = passed.split_at(self.copy.together(passed));
            self.pass(group);
            passed = rest;
        }
        self.leave();
    }

    /// Control got to the code of these blocks.
    fn pass(&mut self, group: &[BlockIndex]) {
        let last = self.path.as_ref().and_then(|(_, blocks)| blocks.last().copied());
        let ways = last.map_or_else(Vec::new, |last| self.ways(Some(last), group));
        let ways = if !ways.is_empty() {
            ways
        } else if let Some(last) = last
            && !group.contains(&BlockIndex::ENTRY)
            && let Some(way) = self.shortest(self.successors(last), |b| group.contains(&b))
        {
            self.lose(&way[..way.len() - 1]);
            vec![way]
        } else {
            self.leave();
            let ways = self.ways(None, group);
            if ways.is_empty()
                && let Some(way) = self.shortest(vec![BlockIndex::ENTRY], |b| group.contains(&b))
            {
                self.lose(&way[..way.len() - 1]);
            }
            ways
        };
        if ways.len() != 1 {
            let from = last.map_or_else(|| "entry".into(), |b| b.0.to_string());
            let all: Vec<String> = ways.iter().map(|w| blocks(w)).collect();
            self.guesses
                .insert(format!("{from} to {}: {}", blocks(group), all.join(" or ")));
        }
        for &block in ways.first().map_or(group, |way| way) {
            self.enter(block);
        }
    }

    /// The ways from a block, or into the function, to the last of these: through blocks without code, then through some of
    /// these. Each of them without what it begins at.
    fn ways(&self, from: Option<BlockIndex>, group: &[BlockIndex]) -> Vec<Vec<BlockIndex>> {
        let mut ways = Vec::new();
        match from {
            Some(from) => self.search(from, group, &mut Vec::new(), &mut ways),
            None => self.visit(BlockIndex::ENTRY, group, &mut Vec::new(), &mut ways),
        }
        ways
    }

    fn search(
        &self,
        from: BlockIndex,
        group: &[BlockIndex],
        way: &mut Vec<BlockIndex>,
        ways: &mut Vec<Vec<BlockIndex>>,
    ) {
        let successors = &self.cfg.blocks[from.index()].successors;
        for (slot, &next) in successors.iter().enumerate() {
            if !successors[..slot].contains(&next) {
                self.visit(next, group, way, ways);
            }
        }
    }

    fn visit(
        &self,
        next: BlockIndex,
        group: &[BlockIndex],
        way: &mut Vec<BlockIndex>,
        ways: &mut Vec<Vec<BlockIndex>>,
    ) {
        let position = group.iter().position(|&b| b == next);
        if way.contains(&next) || ways.len() > 8 || (position.is_none() && self.copy.shown.contains_key(&next)) {
            return;
        }
        way.push(next);
        match position {
            Some(position) if position + 1 == group.len() => ways.push(way.clone()),
            Some(position) => self.search(next, &group[position + 1..], way, ways),
            None => self.search(next, group, way, ways),
        }
        way.pop();
    }

    fn successors(&self, block: BlockIndex) -> Vec<BlockIndex> {
        self.cfg.blocks[block.index()].successors.clone()
    }

    fn lose(&mut self, way: &[BlockIndex]) {
        self.lost.extend(way.iter().filter(|b| self.copy.shown.contains_key(b)));
    }

    /// The shortest way through blocks with or without code, from one of these to a block that is wanted.
    fn shortest(&self, from: Vec<BlockIndex>, wanted: impl Fn(BlockIndex) -> bool) -> Option<Vec<BlockIndex>> {
        let mut seen: BTreeSet<BlockIndex> = from.iter().copied().collect();
        let mut ways: Vec<Vec<BlockIndex>> = from.into_iter().map(|b| vec![b]).collect();
        while !ways.is_empty() {
            if let Some(way) = ways.iter().find(|way| wanted(way[way.len() - 1])) {
                return Some(way.clone());
            }
            let longer = ways.iter().flat_map(|way| {
                let next = self.successors(way[way.len() - 1]).into_iter();
                next.map(|b| way.iter().copied().chain([b]).collect::<Vec<_>>())
            });
            let longer: Vec<_> = longer.collect();
            ways = longer.into_iter().filter(|way| seen.insert(way[way.len() - 1])).collect();
        }
        None
    }

    fn enter(&mut self, block: BlockIndex) {
        let Some((start, mut path)) = self.path.take() else {
            self.begin(Start::Entry, block);
            return;
        };
        let last = path[path.len() - 1];
        let has = |kind| self.graph.find(kind).is_some();
        if has(EdgeKind::Flow(last, block)) {
            path.push(block);
            self.path = Some((start, path));
            self.finish_at_exit();
        } else if has(EdgeKind::SelfLoop(block)) && last == block {
            self.count(Start::Inside, vec![block], End::Back(block));
            self.path = Some((start, path));
        } else if let Some(end) = [End::Back(block), End::Cut(block)]
            .into_iter()
            .find(|&end| has(EdgeKind::End(last, end)))
        {
            self.count(start, path, end);
            self.begin(Start::Inside, block);
        } else {
            self.path = Some((start, path));
            self.leave();
            self.begin(Start::Entry, block);
        }
    }

    fn begin(&mut self, start: Start, block: BlockIndex) {
        self.path = Some((start, vec![block]));
        self.finish_at_exit();
    }

    fn finish_at_exit(&mut self) {
        if let Some((start, path)) = &self.path
            && self.cfg.blocks[path[path.len() - 1].index()].successors.is_empty()
        {
            self.count(*start, path.clone(), End::Exit);
            self.path = None;
        }
    }

    /// The activation went no further that could be seen: it returned by blocks without code, or a call did not come back.
    fn leave(&mut self) {
        let Some((start, path)) = self.path.clone() else {
            return;
        };
        let last = path[path.len() - 1];
        let mut ways = Vec::new();
        self.silent_exits(last, &mut Vec::new(), &mut ways);
        let calls = self.graph.find(EdgeKind::End(last, End::Call)).is_some();
        if ways.is_empty()
            && !calls
            && let Some(way) = self.shortest(self.successors(last), |b| self.successors(b).is_empty())
        {
            self.lose(&way);
        }
        if ways.len() + usize::from(calls) != 1 {
            let all: Vec<String> = ways.iter().map(|w| blocks(w)).collect();
            self.guesses.insert(format!(
                "{} to the end: {}{}",
                last.0,
                if calls { "call or " } else { "" },
                all.join(" or ")
            ));
        }
        match ways.first() {
            Some(way) => {
                for &block in way {
                    self.enter(block);
                }
            }
            None => {
                self.count(start, path, End::Call);
            }
        }
        self.path = None;
    }

    fn silent_exits(&self, from: BlockIndex, way: &mut Vec<BlockIndex>, ways: &mut Vec<Vec<BlockIndex>>) {
        for &next in &self.cfg.blocks[from.index()].successors {
            if self.copy.shown.contains_key(&next) || way.contains(&next) || ways.len() > 8 {
                continue;
            }
            way.push(next);
            if self.cfg.blocks[next.index()].successors.is_empty() {
                ways.push(way.clone());
            } else {
                self.silent_exits(next, way, ways);
            }
            way.pop();
        }
    }

    fn count(&mut self, start: Start, blocks: Vec<BlockIndex>, end: End) {
        *self.executed.entry(BlPath { start, blocks, end }).or_default() += 1;
    }
}
