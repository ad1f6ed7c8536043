//! Recorded paths as metadata, for other passes and for inspection.
//!
//! ```text
//! define i32 @parse(ptr %0) !prof !8 !pleach.paths !9 { … }
//!
//! !pleach.profile = !{!0}
//! !0 = !{i32 1, !"early", i64 812000}
//! !9 = !{!10, !11}
//! !10 = !{i64 500000, i64 480000, i64 521000, !"inside", !"back 1", i32 1, i32 2, i32 4}
//! !11 = !{i64 12000, i64 10000, i64 15000, !"entry", !"exit", i32 0, i32 1, i32 3}
//! ```
//! A function's list has the hottest path first; [`paths_to_list`] says which paths are in it. A path is its estimated
//! executions, the ends of their 90 % interval, how it begins (`entry`, or `inside` after a back edge or cut edge), how
//! it ends (`exit`; `back N` by a back edge to block N; `cut N` by an edge to block N that ends paths because they
//! would be too many; `call` in a call that did not return) and its blocks. Blocks are numbered from 0 in the order
//! that the function has at the anchor: a pass that wants to find them runs there, after pleach (`opt
//! -passes=pleach,…`).
//!
//! `!pleach.profile` is the version of this form, the anchor, and the executions of all paths of the program, which a
//! path's share is of. Linking concatenates it: it then has a node for each module, all the same where one profile was
//! used. Lists stay with the function that they are of, through inlining, importing and linking; what is inlined into
//! another function leaves no trace in that function's list. Nothing of it gets into object code.

use crate::ir::metadata::Metadata;
use inkwell::llvm_sys::core::LLVMGetNamedMetadataNumOperands;
use inkwell::llvm_sys::prelude::{LLVMMetadataRef, LLVMValueRef};
use inkwell::module::Module;
use pleach_annotate::manifest::Anchor;
use pleach_ball_larus::{End, Start};
use pleach_profile::EstimatedPath;
use pleach_profile::path_profile::paths_to_list;
use std::ffi::CStr;

/// The version of the format. It changes when a field changes its position or its meaning.
const VERSION: u32 = 1;
const LIST: &str = "pleach.paths";
const PROFILE: &CStr = c"pleach.profile";

/// Describes the profile once per module, unless it has no paths.
pub fn describe_profile(module: &Module<'_>, anchor: Anchor, flow: f64) {
    let raw = module.as_mut_ptr();
    // SAFETY: the module is alive, the name ends in NUL.
    if flow <= 0.0 || unsafe { LLVMGetNamedMetadataNumOperands(raw, PROFILE.as_ptr()) } > 0 {
        return;
    }
    // SAFETY: the module is alive.
    let make = unsafe { Metadata::in_module(raw) };
    let node = make.node(&mut [make.int(VERSION), make.text(anchor.name()), make.long(executions(flow))]);
    make.add_to_module(raw, PROFILE, node);
}

/// Lists a function's paths, given the flow of the whole program; returns how many.
pub fn list_paths(module: &Module<'_>, function: LLVMValueRef, paths: &[EstimatedPath], flow: f64) -> usize {
    let listed = paths_to_list(paths, flow);
    if listed.is_empty() {
        return 0;
    }
    // SAFETY: the module is alive.
    let make = unsafe { Metadata::in_module(module.as_mut_ptr()) };
    let mut nodes: Vec<_> = listed.iter().map(|path| path_node(make, path)).collect();
    make.attach_to_function(function, LIST, make.node(&mut nodes));
    listed.len()
}

fn path_node(make: Metadata, estimated: &EstimatedPath) -> LLVMMetadataRef {
    let path = &estimated.path;
    let mut parts = vec![
        make.long(executions(estimated.count)),
        make.long(executions(estimated.low)),
        make.long(executions(estimated.high)),
        make.text(match path.start {
            Start::Entry => "entry",
            Start::Inside => "inside",
        }),
        make.text(&match path.end {
            End::Exit => "exit".into(),
            End::Back(to) => format!("back {}", to.0),
            End::Cut(to) => format!("cut {}", to.0),
            End::Call => "call".into(),
        }),
    ];
    parts.extend(path.blocks.iter().map(|block| make.int(block.0)));
    make.node(&mut parts)
}

/// Executions as an integer. Readers interpret it as signed.
fn executions(value: f64) -> u64 {
    (value.round() as u64).min(i64::MAX as u64)
}
