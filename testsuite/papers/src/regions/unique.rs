//! How many different vectors of four branches some runs show (the paper's figure 5, the thesis's figure 4.2).

use pleach_collector::vector::{Branch, VectorSet};
use std::collections::HashSet;

/// Branches of a vector.
pub const BRANCHES: usize = 4;

/// For each run, in order: the number of different vectors that it and the runs before it show. A run is a process
/// without a recorded parent, with its children.
pub fn unique_by_runs(vectors: &VectorSet) -> Vec<u64> {
    let run_of = runs(vectors);
    let runs = run_of.iter().max().map_or(0, |last| last + 1);
    let mut seen: HashSet<&[Branch]> = HashSet::new();
    let of_run = |run| {
        let bursts = vectors
            .bursts
            .iter()
            .filter(|burst| run_of[burst.process as usize] == run);
        seen.extend(bursts.flat_map(|burst| burst.branches.chunks_exact(BRANCHES)));
        seen.len() as u64
    };
    (0..runs).map(of_run).collect()
}

/// The run of each process. Parents come before their children.
fn runs(vectors: &VectorSet) -> Vec<usize> {
    let (mut run_of, mut next) = (Vec::<usize>::new(), 0);
    for process in &vectors.processes {
        let inherited = process.parent.and_then(|parent| run_of.get(parent as usize));
        run_of.push(inherited.copied().unwrap_or_else(|| {
            next += 1;
            next - 1
        }));
    }
    run_of
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_collector::vector::{Burst, CodeAddress, EndReason, Engine, ModuleId, Process};

    fn process(parent: Option<u32>) -> Process {
        Process {
            pid: 1,
            parent,
            command: String::new(),
            program_cpu_seconds: 1.0,
            own_cpu_seconds: 0.0,
            lost: 0,
            declined: 0,
            undisturbed: true,
        }
    }

    fn burst(process: u32, branches: &[u64]) -> Burst {
        let address = |offset| CodeAddress {
            module: ModuleId(0),
            offset,
        };
        let branch = |&offset: &u64| Branch {
            from: address(offset),
            to: address(offset + 1),
        };
        Burst {
            process,
            thread: 1,
            time_ns: 0,
            engine: Engine::RunAhead,
            start: None,
            branches: branches.iter().map(branch).collect(),
            values: Vec::new(),
            end: None,
            end_reason: EndReason::Budget,
            instructions: 1,
            count: 1,
            proved: false,
            system_call: None,
            hardware: None,
            timing: None,
        }
    }

    #[test]
    fn runs_add_up() {
        let vectors = VectorSet {
            processes: vec![process(None), process(Some(0)), process(None)],
            bursts: vec![
                burst(0, &[1, 2, 3, 4, 1, 2, 3, 4, 9]),
                burst(2, &[1, 2, 3, 4, 2, 3, 4, 5]),
                burst(1, &[4, 3, 2, 1]),
            ],
            ..VectorSet::default()
        };
        assert_eq!(unique_by_runs(&vectors), [2, 3]);
    }
}
