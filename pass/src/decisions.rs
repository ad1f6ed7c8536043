//! Single decisions: taking only some of them, and listing all.
//!
//! A *decision* is one use of a lever at one place: this branch is if-converted, these blocks are copied. `-pleach-only`
//! takes only the decisions that it names, so that the effect of one can be measured; `-pleach-decisions` lists all with
//! the gain that the lever's cost model predicts. Branch weights are set in any case.

use crate::error::PassError;
use crate::ir::ModuleFacts;
use crate::settings::Settings;
use inkwell::module::Module;
use pleach_decide::selects::SLOTS_PER_BLOCK;
use rustc_hash::FxHashMap;
use std::fmt;
use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::str::FromStr;

/// An optimisation that the profile causes, beside branch weights.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Lever {
    /// An unpredictable branch becomes selects.
    IfConversion,
    /// A select on a loop-carried chain becomes a branch.
    SelectToBranch,
    /// A trace is copied for one predecessor.
    Superblock,
    /// A hot function is inlined with the threshold of hot functions.
    HotCallee,
    /// An indirect call is promoted.
    CallPromotion,
    /// A function that was never executed is optimised for size.
    Size,
    /// A function without samples is placed apart.
    Unlikely,
    /// Blocks without samples are split off, in a whole module.
    Splitting,
}

const NAMES: [(Lever, &str); 8] = [
    (Lever::IfConversion, "if-conversion"),
    (Lever::SelectToBranch, "select-to-branch"),
    (Lever::Superblock, "superblock"),
    (Lever::HotCallee, "hot-callee"),
    (Lever::CallPromotion, "call-promotion"),
    (Lever::Size, "size"),
    (Lever::Unlikely, "unlikely"),
    (Lever::Splitting, "splitting"),
];

impl fmt::Display for Lever {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = NAMES
            .iter()
            .find(|(lever, _)| lever == self)
            .map_or("", |&(_, name)| name);
        f.write_str(name)
    }
}

/// The decisions to take: `LEVER[:FUNCTION[:NUMBER]]`, or `none`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Only {
    lever: Option<Lever>,
    function: Option<String>,
    number: Option<u32>,
}

impl FromStr for Only {
    type Err = PassError;

    fn from_str(text: &str) -> Result<Self, PassError> {
        let unknown = || PassError::UnknownDecision(text.to_owned());
        if text == "none" {
            return Ok(Self {
                lever: None,
                function: None,
                number: None,
            });
        }
        let mut parts = text.splitn(3, ':');
        let name = parts.next().unwrap_or_default();
        let lever = NAMES.iter().find(|&&(_, known)| known == name).map(|&(lever, _)| lever);
        Ok(Self {
            lever: Some(lever.ok_or_else(unknown)?),
            function: parts.next().map(str::to_owned),
            number: parts.next().map(|n| n.parse().map_err(|_| unknown())).transpose()?,
        })
    }
}

impl Only {
    /// Whether a decision of this lever may be taken.
    pub fn may_name(&self, lever: Lever) -> bool {
        self.lever == Some(lever)
    }

    fn names(&self, lever: Lever, function: &str, number: u32) -> bool {
        self.lever == Some(lever)
            && self.function.as_ref().is_none_or(|only| only == function)
            && self.number.is_none_or(|only| only == number)
    }
}

/// The decisions of one run on a module.
pub struct Decisions {
    only: Option<Only>,
    list: Option<(PathBuf, File)>,
    source_file: String,
    /// Issue slots of the whole program.
    program: f64,
    /// By lever and function, the number of the next decision.
    next: FxHashMap<(Lever, String), u32>,
}

impl Decisions {
    /// The decisions of a run. `executions`: of all blocks of the program.
    ///
    /// # Errors
    /// The list cannot be opened.
    pub fn open(module: &Module<'_>, settings: &Settings, executions: u64) -> Result<Self, PassError> {
        let open = |path: &PathBuf| {
            let file = File::options().create(true).append(true).open(path);
            let file = file.map_err(|error| PassError::Decisions(path.clone(), error))?;
            Ok::<_, PassError>((path.clone(), file))
        };
        Ok(Self {
            only: settings.only.clone(),
            list: settings.decisions.as_ref().map(open).transpose()?,
            source_file: ModuleFacts::from_module(module).source_file,
            program: executions as f64 * SLOTS_PER_BLOCK,
            next: FxHashMap::default(),
        })
    }

    /// Whether the next decision about a function is to be taken. `slots`: the issue slots that it saves as its cost
    /// model predicts; `None` where there is no model.
    ///
    /// # Errors
    /// The list cannot be written.
    pub fn take(&mut self, lever: Lever, function: &str, slots: Option<f64>) -> Result<bool, PassError> {
        let next = self.next.entry((lever, function.to_owned())).or_default();
        let number = *next;
        *next += 1;
        if let Some((path, file)) = &mut self.list {
            let gain = slots.map_or_else(
                || "-".to_owned(),
                |slots| format!("{:.6}", slots / self.program.max(1.0)),
            );
            // One write, so that lines of parallel compilations do not mix.
            let line = format!("{}\t{lever}\t{function}\t{number}\t{gain}\n", self.source_file);
            file.write_all(line.as_bytes())
                .map_err(|error| PassError::Decisions(path.clone(), error))?;
        }
        Ok(self
            .only
            .as_ref()
            .is_none_or(|only| only.names(lever, function, number)))
    }
}
