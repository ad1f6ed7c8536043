//! Paths in the words of the source: lines and calls in place of block numbers.
//!
//! A block is shown by the line on which it begins, and by the calls in it. Blocks that begin on the line of the block
//! before them, or on none, add nothing. So two paths may look the same; [`distinct`] adds block numbers to those.

use super::flows::FunctionKey;
use super::names::Names;
use super::paths_text;
use pleach_annotate::cfg::{Callee, Cfg};
use pleach_annotate::id::{BlockIndex, CfgHash, FunctionGuid, FunctionId};
use pleach_ball_larus::counts::exact::ExactProfile;
use pleach_ball_larus::{End, Path, Start};
use pleach_profile::{CallTargets, FunctionProfile, Profile};
use rustc_hash::FxHashMap;
use std::fmt::Write;

/// The middle of a longer path is left out.
const SHOWN_STEPS: usize = 24;

const LEGEND: &str = "numbers are source lines; ▸ from the function's entry, ■ to its end, ↺n by a back edge to line n, \
                      ✂n cut before line n, ☎ ends in a call that did not return; *f(): the most frequent target of an \
                      indirect call";

/// What binaries tell about the functions of a profile: their source files, and the names of those they call.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SourceNames {
    /// Name of the defining source file.
    pub files: FxHashMap<(FunctionId, CfgHash), String>,
    /// Linkage names.
    pub functions: FxHashMap<FunctionGuid, String>,
}

/// The graphs of the functions of two or more profiles, by which their paths are shown as source lines.
#[derive(Clone, Debug, Default)]
pub struct Graphs<'a>(FxHashMap<FunctionKey, PathContext<'a>>);

impl<'a> Graphs<'a> {
    /// Adds a sampled profile's.
    pub fn add_profile(&mut self, profile: &'a Profile) {
        let contexts = profile.functions.iter().filter_map(PathContext::from_profile);
        self.0
            .extend(contexts.map(|context| ((context.cfg.id, context.hash), context)));
    }

    /// Adds those of exact counts.
    pub fn add_exact(&mut self, exact: &'a ExactProfile) {
        let contexts = exact.functions.iter().map(|function| PathContext {
            cfg: &function.cfg,
            hash: function.cfg.hash(),
            targets: &[],
        });
        self.0
            .extend(contexts.map(|context| ((context.cfg.id, context.hash), context)));
    }

    pub(super) fn get(&self, key: &FunctionKey) -> Option<PathContext<'a>> {
        self.0.get(key).copied()
    }
}

/// A function's graph, and what else describes its paths.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathContext<'a> {
    /// The graph of the paths.
    pub cfg: &'a Cfg,
    /// Its hash.
    pub hash: CfgHash,
    /// Observed targets of indirect calls.
    pub targets: &'a [CallTargets],
}

impl<'a> PathContext<'a> {
    /// Of a function whose graph the profile has.
    pub fn from_profile(function: &'a FunctionProfile) -> Option<Self> {
        Some(Self {
            cfg: function.graph.as_deref()?,
            hash: function.cfg_hash,
            targets: &function.call_targets,
        })
    }
}

impl SourceNames {
    /// Adds what other binaries tell.
    pub fn extend(&mut self, other: Self) {
        self.files.extend(other.files);
        self.functions.extend(other.functions);
    }

    /// `parser.c:120 → 131 → next_token() → 140 ↺120`; `None` without source lines.
    pub(super) fn path(&self, context: &PathContext<'_>, path: &Path, names: &Names) -> Option<String> {
        let start = match path.start {
            Start::Entry => "▸",
            Start::Inside => "",
        };
        let mut out = start.to_owned() + &self.blocks(context, &path.blocks, names)?;
        let target = |block: usize| match context.cfg.blocks.get(block).map_or(0, |block| block.line) {
            0 => String::new(),
            line => line.to_string(),
        };
        let _ = match path.end {
            End::Exit => write!(out, " ■"),
            End::Back(to) => write!(out, " ↺{}", target(to.index())),
            End::Cut(to) => write!(out, " ✂{}", target(to.index())),
            End::Call => write!(out, " ☎"),
        };
        Some(out)
    }

    /// A path without its ends.
    pub(super) fn blocks(&self, context: &PathContext<'_>, blocks: &[BlockIndex], names: &Names) -> Option<String> {
        let mut steps = self.steps(context, blocks, names)?;
        if steps.len() > SHOWN_STEPS {
            let (from, to) = (SHOWN_STEPS / 2, steps.len() - SHOWN_STEPS / 2);
            steps.splice(from..to, [format!("… {} more …", to - from)]);
        }
        let file = self.files.get(&(context.cfg.id, context.hash));
        let place = file.map_or_else(|| "line ".to_owned(), |file| format!("{file}:"));
        Some(place + &steps.join(" → "))
    }

    /// Lines and calls in order, beginning with a line.
    fn steps(&self, context: &PathContext<'_>, blocks: &[BlockIndex], names: &Names) -> Option<Vec<String>> {
        let mut steps = Vec::new();
        let mut last = 0;
        for block in blocks {
            let line = context.cfg.blocks.get(block.index())?.line;
            if line > 0 && line != last {
                steps.push(line.to_string());
                last = line;
            }
            if last > 0 {
                let calls = context.cfg.calls.iter().enumerate();
                let calls = calls.filter(|(_, call)| call.block == *block);
                steps.extend(calls.filter_map(|(at, call)| self.call(call.callee, at, context.targets, names)));
            }
        }
        (!steps.is_empty()).then_some(steps)
    }

    /// A call as a step; `None` for assembly and for memory operations, which are often no calls.
    fn call(&self, callee: Callee, call: usize, targets: &[CallTargets], names: &Names) -> Option<String> {
        match callee {
            Callee::Direct(guid) => Some(match self.functions.get(&guid) {
                Some(name) => names.called(name) + "()",
                None => "call()".to_owned(),
            }),
            Callee::Indirect => {
                let site = targets.iter().find(|site| site.call as usize == call);
                let target = site.and_then(|site| site.targets.first());
                let name = target.and_then(|(guid, _)| self.functions.get(guid));
                Some(match name {
                    Some(name) => format!("*{}()", names.called(name)),
                    None => "indirect call()".to_owned(),
                })
            }
            Callee::InlineAsm | Callee::Memory => None,
        }
    }
}

/// The paths of rows as text: of the source where that is known and wanted, else block numbers. Rows of one function
/// that would look the same get both. Also the legend.
pub(super) fn distinct<'a>(
    rows: impl Iterator<Item = (Option<PathContext<'a>>, Vec<&'a Path>)>,
    sources: Option<&SourceNames>,
    names: &Names,
) -> (Vec<String>, &'static str) {
    let blocks = |paths: &[&Path]| -> String {
        let paths: Vec<_> = paths.iter().map(|path| paths_text::path(path)).collect();
        paths.join("  ")
    };
    let lines = |context: Option<PathContext<'_>>, paths: &[&Path]| -> Option<String> {
        let (sources, context) = (sources?, context?);
        let paths: Option<Vec<_>> = paths.iter().map(|path| sources.path(&context, path, names)).collect();
        Some(paths?.join("  "))
    };
    let rows: Vec<_> = rows
        .map(|(context, paths)| {
            let function = context.map(|context| (context.cfg.id, context.hash));
            (function, lines(context, &paths), blocks(&paths))
        })
        .collect();
    let mut seen: FxHashMap<_, u32> = FxHashMap::default();
    for (function, lines, _) in &rows {
        *seen.entry((*function, lines.clone())).or_default() += 1;
    }
    let text = |(function, lines, blocks): &(_, Option<String>, String)| match lines {
        Some(text) if seen[&(*function, lines.clone())] > 1 => format!("{text}  (blocks {blocks})"),
        Some(text) => text.clone(),
        None => blocks.clone(),
    };
    let legend = match rows.iter().any(|(_, lines, _)| lines.is_some()) {
        true => LEGEND,
        false => paths_text::LEGEND,
    };
    (rows.iter().map(text).collect(), legend)
}
