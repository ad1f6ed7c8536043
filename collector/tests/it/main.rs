//! Tests of the collector, in one binary. Those that need a process of their own or one engine throughout are beside
//! it: `run_ahead`, `step` and `lbr_signals`.

#[path = "../common/mod.rs"]
mod common;
mod lbr_kernel;
mod perf_sets;

mod burst_timing;
mod file;
mod hostile;
mod hostile_input;
mod lbr_control;
mod lbr_live;
mod lbr_replay;
mod lbr_ring;
mod max_size;
mod perf;
mod proof;
mod stream_windows;
mod stub;
mod ticks;
mod verify;
