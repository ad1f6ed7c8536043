//! Bit tracing, the baseline of Ball and Larus (§1): what it would store and execute for the paths that were counted.
//!
//! Each branch appends its outcome to a buffer; where a path ends, the buffer is an index into an array or the key of a
//! hash table, and is emptied. A branch with n successors appends ⌈log₂ n⌉ bits. Path numbering executes the operations of
//! its [`Plan`], with the weights that `pleach flags instrument` takes.

use pleach_annotate::cfg::Cfg;
use pleach_annotate::id::BlockIndex;
use pleach_ball_larus::counts::exact::ExactFunction;
use pleach_ball_larus::graph::{EdgeKind, PathGraph};
use pleach_ball_larus::weights::static_weights;
use pleach_ball_larus::{End, Op, Path, Plan, Start, plan};
use std::collections::{BTreeMap, BTreeSet};

/// Both methods, on the same executions.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct BitTracing {
    /// Executions of paths.
    pub executions: u64,
    /// Bits that were appended.
    pub bits: u64,
    /// Operations of bit tracing: to empty the buffer, to append, and to count.
    pub traced: u64,
    /// Operations of path numbering: to set the path register, to add to it, and to count.
    pub numbered: u64,
    /// What arrays and hash tables hold.
    pub tables: Tables,
}

/// Counters of the functions that were executed.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Tables {
    /// Functions.
    pub functions: u64,
    /// Of these, those with more numbers than an array may have.
    pub numbered_hashed: u64,
    /// The same for bit strings.
    pub traced_hashed: u64,
    /// Counters in arrays, by number.
    pub numbered_array: u64,
    /// The same by bit string, if the longest one of a function has as many bits as a path needs at most.
    pub traced_array: u64,
    /// Different paths that were executed, of functions with a hash table: by number.
    pub numbered_entries: u64,
    /// The same by bit string.
    pub traced_entries: u64,
    /// Bits of the longest string.
    pub longest: u32,
}

impl BitTracing {
    /// Adds a function, with all its paths. A function that has more numbers than `array_limit` needs a hash table.
    pub fn add(&mut self, function: &ExactFunction, array_limit: u64) {
        let graph = PathGraph::new(&function.cfg, &function.options);
        let plan = plan(&function.cfg, &function.options, |graph| {
            static_weights(&function.cfg, graph)
        });
        let costs = PathCosts::new(&function.cfg, &plan);
        let paths = function.acyclic();
        for (path, count) in paths.iter().filter_map(|p| Some((p.path.first()?, p.count))) {
            let (bits, appends) = costs.traced(path);
            self.executions += count;
            self.bits += count * bits;
            self.traced += count * (appends + 2);
            self.numbered += count * costs.numbered(path);
        }
        let (longest, entries) = (longest_trace(&graph, &function.cfg), paths.len() as u64);
        let tables = &mut self.tables;
        tables.functions += 1;
        tables.longest = tables.longest.max(longest);
        match graph.numbers() <= array_limit {
            true => tables.numbered_array += graph.numbers(),
            false => {
                tables.numbered_hashed += 1;
                tables.numbered_entries += entries;
            }
        }
        match 1_u64.checked_shl(longest).filter(|size| *size <= array_limit) {
            Some(size) => tables.traced_array += size,
            None => {
                tables.traced_hashed += 1;
                tables.traced_entries += entries;
            }
        }
    }
}

/// Bits that a block's branch appends.
fn bits(cfg: &Cfg, block: BlockIndex) -> u32 {
    let successors = cfg.blocks.get(block.index()).map(|block| &block.successors);
    let different: BTreeSet<_> = successors.into_iter().flatten().collect();
    different.len().max(1).next_power_of_two().trailing_zeros()
}

/// Bits of the longest string of a path.
fn longest_trace(graph: &PathGraph, cfg: &Cfg) -> u32 {
    let mut longest = vec![0; graph.blocks()];
    for &from in graph.topological().iter().rev() {
        let of_edges = graph.out(from.index()).map(|edge| match graph.edges()[edge] {
            EdgeKind::Flow(_, to) => bits(cfg, from) + longest[to.index()],
            EdgeKind::End(_, End::Back(_) | End::Cut(_)) => bits(cfg, from),
            _ => 0,
        });
        longest[from.index()] = of_edges.max().unwrap_or(0);
    }
    longest.into_iter().max().unwrap_or(0)
}

/// What a path executes.
struct PathCosts<'a> {
    cfg: &'a Cfg,
    entry: u64,
    edges: BTreeMap<(BlockIndex, BlockIndex), u64>,
    exits: BTreeMap<BlockIndex, u64>,
}

impl<'a> PathCosts<'a> {
    fn new(cfg: &'a Cfg, plan: &Plan) -> Self {
        let number = |ops: &[Op]| ops.len() as u64;
        let edges = plan.edges.iter();
        Self {
            cfg,
            entry: number(&plan.entry),
            edges: edges.map(|(from, to, ops)| ((*from, *to), number(ops))).collect(),
            exits: plan.exits.iter().map(|(block, ops)| (*block, number(ops))).collect(),
        }
    }

    /// The edges of the function that a path takes.
    fn edges(path: &Path) -> impl Iterator<Item = (BlockIndex, BlockIndex)> {
        let inside = path.blocks.windows(2).map(|pair| (pair[0], pair[1]));
        let last = match (path.blocks.last(), path.end) {
            (Some(&from), End::Back(to) | End::Cut(to)) => Some((from, to)),
            _ => None,
        };
        inside.chain(last)
    }

    /// Bits that are appended, and how often.
    fn traced(&self, path: &Path) -> (u64, u64) {
        let of_edges = Self::edges(path).map(|(from, _)| u64::from(bits(self.cfg, from)));
        of_edges
            .filter(|bits| *bits > 0)
            .fold((0, 0), |(sum, appends), bits| (sum + bits, appends + 1))
    }

    /// Operations of the plan. A path that ends in a call is counted by its record.
    fn numbered(&self, path: &Path) -> u64 {
        let begin = if path.start == Start::Entry { self.entry } else { 0 };
        let of_edges: u64 = Self::edges(path)
            .map(|edge| self.edges.get(&edge).copied().unwrap_or(0))
            .sum();
        let exit = path.blocks.last().and_then(|block| self.exits.get(block));
        let end = match path.end {
            End::Exit => exit.copied().unwrap_or(0),
            End::Call => 1,
            End::Back(_) | End::Cut(_) => 0,
        };
        begin + of_edges + end
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_annotate::manifest::Anchor;
    use pleach_annotate::testing;
    use pleach_ball_larus::NumberingOptions;
    use pleach_ball_larus::counts::exact::ExactPath;
    use pleach_ball_larus::edges::ExactFlow;

    fn function(successors: &[&[u32]], paths: &[(Start, &[u32], End, u64)]) -> ExactFunction {
        let cfg = testing::cfg(successors);
        let path = |&(start, blocks, end, count): &(Start, &[u32], End, u64)| ExactPath {
            path: vec![Path {
                start,
                blocks: blocks.iter().map(|&b| BlockIndex(b)).collect(),
                end,
            }],
            count,
        };
        ExactFunction {
            flow: ExactFlow {
                entries: 1,
                blocks: vec![1; cfg.blocks.len()],
                edges: BTreeMap::new(),
                exits: vec![0; cfg.blocks.len()],
            },
            cfg,
            anchor: Anchor::Early,
            options: NumberingOptions::default(),
            window: 1,
            paths: paths.iter().map(path).collect(),
        }
    }

    fn of(function: &ExactFunction, limit: u64) -> BitTracing {
        let mut tracing = BitTracing::default();
        tracing.add(function, limit);
        tracing
    }

    /// Two decisions in a row, of two and of three ways: six paths.
    #[test]
    fn each_branch_appends_what_its_successors_need() {
        // 0 → 1 | 2 → 3 → 4 | 5 | 6 → 7.
        let cfg: &[&[u32]] = &[&[1, 2], &[3], &[3], &[4, 5, 6], &[7], &[7], &[7], &[]];
        let paths = [
            (Start::Entry, &[0, 1, 3, 4, 7][..], End::Exit, 10),
            (Start::Entry, &[0, 2, 3, 6, 7][..], End::Exit, 5),
        ];
        let traced = of(&function(cfg, &paths), 64);
        // One bit and two, each appended once; the buffer is emptied and counted.
        assert_eq!((traced.executions, traced.bits, traced.traced), (15, 45, 60));
        // Six paths have numbers to five; three bits have eight values.
        let tables = traced.tables;
        assert_eq!((tables.longest, tables.numbered_array, tables.traced_array), (3, 6, 8));
        assert!(traced.numbered < traced.traced, "{traced:?}");
        // Every path is counted, and has at most one operation for each branch besides.
        assert!((15..=45).contains(&traced.numbered), "{traced:?}");
        let hashed = of(&function(cfg, &paths), 7).tables;
        assert_eq!((hashed.numbered_hashed, hashed.traced_hashed), (0, 1));
        assert_eq!((hashed.traced_array, hashed.traced_entries), (0, 2));
    }

    /// A chain of returns: bits grow with its length, as numbers do not.
    #[test]
    fn numbers_are_denser_than_bits_on_chains() {
        let chain: Vec<Vec<u32>> = (0..10).map(|block| vec![block + 1, 11]).collect();
        let mut successors: Vec<&[u32]> = chain.iter().map(Vec::as_slice).collect();
        successors.extend([&[11][..], &[]]);
        let tables = of(&function(&successors, &[]), 1 << 16).tables;
        assert_eq!((tables.numbered_array, tables.traced_array), (11, 1024));
    }

    #[test]
    fn loops_empty_the_buffer_at_their_back_edges() {
        // 0 → 1 → 2 | 3 → 4 → 1 | 5.
        let cfg: &[&[u32]] = &[&[1], &[2, 3], &[4], &[4], &[1, 5], &[]];
        let back = End::Back(BlockIndex(1));
        let looping = [(Start::Inside, &[1, 2, 4][..], back, 100)];
        let traced = of(&function(cfg, &looping), 64);
        assert_eq!((traced.bits, traced.traced, traced.tables.longest), (200, 400, 2));
        // A count and a new start on the back edge, and what distinguishes the branches.
        assert!((100..=300).contains(&traced.numbered), "{traced:?}");
    }
}
