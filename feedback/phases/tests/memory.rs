//! The detector's memory is bounded, whatever it is shown. In a test of its own: it measures the whole process.

use pleach_collector::stream::Generator;
use pleach_phases::detector::MAX_PHASES;
use pleach_phases::signature::{MAX_TRACES, TraceShare};
use pleach_phases::{Detector, Interval, Signature};

/// Bursts of a phase: what makes it stable.
const BURSTS: u64 = 400;

/// Bytes of this process in memory.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").expect("readable");
    let pages: u64 = text
        .split(' ')
        .nth(1)
        .and_then(|word| word.parse().ok())
        .expect("pages");
    pages * 4096
}

/// As many traces as a burst can have, no two alike, of the code of one phase.
fn burst(phase: u64, time_ns: u64, generator: &mut Generator) -> Signature {
    let pool = 1_u64 << 16;
    let from = (phase * pool) as u32;
    let mut traces: Vec<u32> = (0..MAX_TRACES as u64 * 2)
        .map(|_| from.wrapping_add(generator.below(pool) as u32))
        .collect();
    traces.sort_unstable();
    traces.dedup();
    traces.truncate(MAX_TRACES);
    let share = 1.0 / traces.len() as f32;
    Signature {
        time_ns,
        traces: traces
            .into_iter()
            .map(|trace| TraceShare {
                trace,
                start: trace / 2,
                share,
            })
            .collect(),
        time_per_branch: None,
        mispredicted: None,
    }
}

#[test]
fn memory_does_not_grow_with_the_recording() {
    let mut generator = Generator::new(5);
    let before = resident();
    let mut detector = Detector::new(Interval::Fixed(100));
    let mut time_ns = 0;
    let mut grown = Vec::new();
    let phases = MAX_PHASES as u64 + 12;
    for phase in 0..phases {
        for _ in 0..BURSTS {
            time_ns += 1_000_000;
            detector.push(burst(phase, time_ns, &mut generator));
        }
        grown.push(resident().saturating_sub(before));
    }
    let (at_limit, at_end) = (grown[MAX_PHASES + 2], grown[grown.len() - 1]);
    // The bound of the detector's documentation, and what an allocator keeps.
    assert!(at_end < 250 << 20, "{} MB", at_end >> 20);
    assert!(
        at_end < at_limit + at_limit / 5,
        "{} MB, then {} MB",
        at_limit >> 20,
        at_end >> 20
    );
}
