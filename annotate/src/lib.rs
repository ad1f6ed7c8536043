//! Identifiers of IR, control-flow graphs as data, and the map from machine addresses back to them.
//!
//! The compiler plugin writes identifiers and graphs into the objects that it compiles; this crate reads them. It knows
//! nothing of samples and nothing of LLVM. In phase order:
//!
//! 1. [`id`] and [`cfg`](mod@cfg): identifiers of functions, blocks and calls, and the graph that a profile refers to.
//! 2. [`manifest`]: encodes graphs into the section `.pleach_cfg` (in the plugin) and decodes them (everywhere else).
//! 3. [`binary`]: opens an ELF file and takes symbols, code and the two sections from it.
//! 4. [`probe`]: decodes `.pseudo_probe`, which says at which address a block or call lies; [`descriptors`]: decodes
//!    `.pseudo_probe_desc`, which names the functions.
//! 5. [`map`]: joins probes and graphs into the address map, with inline instances.
//! 6. [`code`] and [`sources`]: how instructions transfer control, and which source file defines a function;
//!    [`symbol_names`]: names of called functions.
//!
//! [`testing`] makes small graphs for the tests of other crates.

pub mod binary;
pub mod breakpoint_sites;
pub mod call_kinds;
pub mod cfg;
pub mod code;
pub mod descriptors;
pub mod find;
pub mod function_symbols;
pub mod id;
mod link_order;
pub mod machine;
pub mod manifest;
pub mod map;
pub mod probe;
pub mod sources;
pub mod symbol_names;
pub mod testing;
