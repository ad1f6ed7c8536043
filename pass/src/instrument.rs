//! Instruments a program to count its paths exactly. `pleach_ball_larus` plans; this module applies the plan.

use crate::annotate::{self, final_graphs};
use crate::error::PassError;
use crate::ffi;
use crate::ir::{FunctionIr, attributes};
use crate::use_profile::source::Source;
use inkwell::llvm_sys::prelude::LLVMValueRef;
use inkwell::module::Module;
use inkwell::values::AsValueRef;
use pleach_annotate::call_kinds::{CallKind, kind_of_call};
use pleach_annotate::cfg::Cfg;
use pleach_annotate::id::BlockIndex;
use pleach_annotate::manifest::Anchor;
use pleach_ball_larus as ball_larus;
use pleach_ball_larus::counts::unit;
use pleach_ball_larus::counts::unit::{HASH_WORDS, Unit, UnitFunction};
use pleach_ball_larus::graph::PathGraph;
use pleach_ball_larus::{Index, NumberingOptions, Op, Plan, Storage, weights};
use pleach_profile::file::Lookup;
use std::ffi::CStr;
use std::path::Path;

/// The runtime of instrumented programs (`runtime/counts.c`) as LLVM bitcode for x86-64.
const RUNTIME_X86_64: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/runtime-x86_64.bc"));
/// The same for AArch64.
const RUNTIME_AARCH64: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/runtime-aarch64.bc"));

/// The top byte of a record's tag (`PLEACH_TAG_BYTE` in `runtime/layout.h`).
const TAG_BYTE: u32 = 0x9e00_0000;
/// Maximum of counters in an array: larger numbers do not fit in a record.
const MAX_WORDS: u64 = 1 << 31;

/// One function's plan, and the place of its counters.
struct Planned<'a, 'ctx> {
    function: &'a FunctionIr<'ctx>,
    /// Its graph, with calls that always return marked.
    cfg: Cfg,
    plan: Plan,
    word: u64,
    /// 1 + position among the hash-counted functions, 0 for an array.
    hashed: u32,
}

/// Instruments a module's functions.
///
/// # Errors
/// The target is not supported, or the profile for the placement of counters cannot be read.
pub fn run(
    module: &Module<'_>,
    functions: &[FunctionIr<'_>],
    anchor: Anchor,
    options: &NumberingOptions,
    weights: Option<&Path>,
) -> Result<(), PassError> {
    runtime(module)?;
    let profile = weights.map(Source::open_for_weights).transpose()?;
    let mut planned = Vec::new();
    for (function, cfg) in functions.iter().zip(final_graphs(functions)) {
        // SAFETY: the function belongs to the module.
        if unsafe { must_not_be_counted(function.value.as_value_ref()) } {
            continue;
        }
        let plan = ball_larus::plan(&cfg, options, |graph| edge_weights(&cfg, graph, profile.as_ref()));
        let one = Planned {
            function,
            cfg,
            plan,
            word: 0,
            hashed: 0,
        };
        match one.obstacle() {
            None => planned.push(one),
            Some(reason) => ffi::diagnose(
                module.as_mut_ptr(),
                &format!("pleach: '{}' is not counted: {reason}", function.cfg.name),
                false,
            ),
        }
    }
    if planned.is_empty() {
        return Ok(());
    }
    let (words, hashed) = place_counters(&mut planned);
    let unit = Unit {
        anchor,
        options: *options,
        words,
        functions: planned.iter().map(Planned::described).collect(),
    };
    let (description, id) = unit::encode(&unit);
    let tag = TAG_BYTE | (id.0 as u32 & !0xff00_0000);
    // SAFETY: the module is alive; the C++ half copies its arguments.
    let slot = unsafe {
        ffi::pleach_make_unit(
            module.as_mut_ptr(),
            description.as_ptr(),
            description.len(),
            id.0,
            words,
            tag,
            hashed.as_ptr(),
            hashed.len(),
        )
    };
    let mut assembly = String::new();
    for one in &planned {
        annotate::write_entry(&mut assembly, &one.function.cfg, anchor);
        one.apply(slot, tag)?;
    }
    if !annotate::is_annotated(module) {
        annotate::append_assembly(module, &assembly);
    }
    Ok(())
}

/// Lowers counters to memory operations, and links the runtime.
///
/// # Errors
/// The runtime cannot be linked with the module.
pub fn lower_counters(module: &Module<'_>) -> Result<(), PassError> {
    let runtime = runtime(module)?;
    // SAFETY: the module is alive; the runtime's bytes are constant.
    let failure = unsafe { ffi::pleach_lower_counters(module.as_mut_ptr(), runtime.as_ptr(), runtime.len()) };
    text(failure).map_or(Ok(()), |text| Err(PassError::Runtime(text)))
}

/// The runtime for a module's target.
fn runtime(module: &Module<'_>) -> Result<&'static [u8], PassError> {
    // SAFETY: the module is alive.
    let target = unsafe { ffi::target(module.as_mut_ptr()) };
    if target.is_x86_64 {
        Ok(RUNTIME_X86_64)
    } else if target.is_aarch64 {
        Ok(RUNTIME_AARCH64)
    } else {
        Err(PassError::NoRuntime)
    }
}

/// Copies a constant text of the C++ half; `None` for null.
fn text(text: *const std::ffi::c_char) -> Option<String> {
    // SAFETY: null, or a constant of the C++ half that ends in a zero.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

/// Weights of edges: from the profile if it contains the function, else static estimates.
fn edge_weights(cfg: &Cfg, graph: &PathGraph, profile: Option<&Source>) -> Vec<u64> {
    let found = profile.and_then(|p| p.lookup(cfg).ok());
    let Some(Lookup::Found(counts)) = found else {
        return weights::static_weights(cfg, graph);
    };
    let bases = cfg.edge_bases();
    let entry = counts.blocks.first().copied().unwrap_or(0);
    weights::measured_weights(graph, entry, |from: BlockIndex, to: BlockIndex| {
        let base = bases[from.index()] as usize;
        let slots = cfg.blocks[from.index()].successors.iter().zip(&counts.edges[base..]);
        slots.filter(|(target, _)| **target == to).map(|(_, count)| count).sum()
    })
}

/// Assigns words of the unit's array to every function; returns their number, and the hash-counted functions.
fn place_counters(planned: &mut [Planned<'_, '_>]) -> (u64, Vec<ffi::Hashed>) {
    let (mut words, mut hashed) = (0, Vec::new());
    for (position, one) in planned.iter_mut().enumerate() {
        if one.plan.storage == Storage::Array && words + one.plan.counters > MAX_WORDS {
            one.plan.storage = Storage::Hash;
        }
        one.word = words;
        words += match one.plan.storage {
            Storage::Array => one.plan.counters,
            Storage::Hash => {
                hashed.push(ffi::Hashed {
                    function: position as u64,
                    word: words,
                });
                one.hashed = hashed.len() as u32;
                HASH_WORDS
            }
        };
    }
    (words, hashed)
}

impl Planned<'_, '_> {
    fn described(&self) -> UnitFunction {
        UnitFunction {
            cfg: self.cfg.clone(),
            offset: self.word,
            counters: self.plan.counters,
            window: self.plan.window,
            storage: self.plan.storage,
            chords: self.plan.chords.clone(),
        }
    }

    /// Why the function cannot be instrumented.
    fn obstacle(&self) -> Option<String> {
        let function = self.function.value.as_value_ref();
        // SAFETY: the function belongs to the module, and is only read.
        self.with_raw(0, |raw| text(unsafe { ffi::pleach_cannot_instrument(function, raw) }))
    }

    fn apply(&self, slot: LLVMValueRef, tag: u32) -> Result<(), PassError> {
        // SAFETY: function, slot and the calls in the plan belong to the module.
        let failure = self.with_raw(tag, |raw| unsafe {
            text(ffi::pleach_instrument(self.function.value.as_value_ref(), slot, raw))
        });
        // `obstacle` has checked for every reason to fail.
        failure.map_or(Ok(()), |reason| {
            Err(PassError::Internal(format!("'{}': {reason}", self.cfg.name)))
        })
    }

    /// Calls `use_it` with the plan in the C++ half's representation, whose pointers are valid during the call.
    fn with_raw<R>(&self, tag: u32, use_it: impl FnOnce(&ffi::Plan) -> R) -> R {
        let plan = &self.plan;
        let lists = |lists: &mut dyn Iterator<Item = &Vec<Op>>| -> Vec<Vec<ffi::Op>> {
            lists.map(|ops| ops.iter().map(raw_op).collect()).collect()
        };
        let entry: Vec<_> = plan.entry.iter().map(raw_op).collect();
        let edges = lists(&mut plan.edges.iter().map(|(_, _, ops)| ops));
        let exits = lists(&mut plan.exits.iter().map(|(_, ops)| ops));
        let resumes = lists(&mut plan.resumes.iter().map(|(_, ops)| ops));
        let records: Vec<_> = plan
            .records
            .iter()
            .map(|(_, index)| [raw_op(&Op::Count(*index))])
            .collect();

        let edges: Vec<_> = plan
            .edges
            .iter()
            .zip(&edges)
            .map(|((from, to, _), ops)| ffi::EdgeOps {
                from: from.0,
                to: to.0,
                ops: raw_ops(ops),
            })
            .collect();
        let exits: Vec<_> = plan
            .exits
            .iter()
            .zip(&exits)
            .map(|((b, _), ops)| raw_block(*b, ops))
            .collect();
        let records: Vec<_> = plan
            .records
            .iter()
            .zip(&records)
            .map(|((b, _), ops)| raw_block(*b, ops))
            .collect();
        let resumes: Vec<_> = plan
            .resumes
            .iter()
            .zip(&resumes)
            .map(|((call, _), ops)| ffi::ResumeOps {
                call: self.function.calls[call.index()],
                ops: raw_ops(ops),
            })
            .collect();
        use_it(&ffi::Plan {
            entry: raw_ops(&entry),
            edges: edges.as_ptr(),
            edge_count: edges.len(),
            exits: exits.as_ptr(),
            exit_count: exits.len(),
            records: records.as_ptr(),
            record_count: records.len(),
            resumes: resumes.as_ptr(),
            resume_count: resumes.len(),
            word: self.word,
            base: plan.numbers + 1,
            window: u32::from(plan.window),
            hashed: self.hashed,
            tag,
            call_kind,
        })
    }
}

/// The kind of calls of a function by its name, as a `PleachCallKind` of `cpp/pleach.h`.
extern "C" fn call_kind(name: *const u8, size: usize) -> u32 {
    if size == 0 {
        return CallKind::Ordinary as u32;
    }
    // SAFETY: the C++ half passes a name that lives for the call.
    kind_of_call(unsafe { std::slice::from_raw_parts(name, size) }) as u32
}

/// Whether an attribute of a function forbids counting it.
///
/// # Safety
/// The function must be alive.
unsafe fn must_not_be_counted(function: LLVMValueRef) -> bool {
    // SAFETY: as the caller promises.
    unsafe { attributes::has(function, "noprofile") || attributes::has(function, "skipprofile") }
}

fn raw_ops(ops: &[ffi::Op]) -> ffi::Ops {
    ffi::Ops {
        data: ops.as_ptr(),
        count: ops.len(),
    }
}

fn raw_block(block: BlockIndex, ops: &[ffi::Op]) -> ffi::BlockOps {
    ffi::BlockOps {
        block: block.0,
        ops: raw_ops(ops),
    }
}

/// The kinds are those of `PleachOpKind` in `cpp/pleach.h`.
fn raw_op(op: &Op) -> ffi::Op {
    let (kind, value) = match *op {
        Op::Set(value) => (0, value),
        Op::Add(value) => (1, value),
        Op::Count(Index::Const(number)) => (2, number as i64),
        Op::Count(Index::Register(offset)) => (3, offset),
    };
    ffi::Op { kind, value }
}
