//! End-to-end tests: the built `pleach`, plugin and sampler on small programs (`../programs`), with real compilers,
//! linkers and runs. It is one binary, linked once, whose tests share what they build; each module is one subject.

mod support;

mod analyse;
mod annotate;
mod breakpoints;
mod build_summary;
mod build_systems;
mod called;
mod cargo;
mod compressed;
mod continuous_integration;
mod detached;
mod dispatch;
mod documents;
mod evaluate;
mod exact_profile;
mod export;
mod few_bursts;
mod fleet;
mod found;
mod html;
mod install;
mod instrument;
mod instrument_builds;
mod instrument_ends;
mod instrument_tasks;
mod interrupted;
mod killed;
mod opt_cases;
mod path_metadata;
mod peers;
mod phases;
mod placement;
mod predictions;
mod profile;
mod random;
mod recurrences;
mod selects;
mod source_lines;
mod suites;
mod superblocks;
mod taken;
mod trace;
mod tutorial;
mod windows;
