//! What equal crediting makes of region paths, beside exact counts: accuracy, overlap, matching ratios and false hot paths,
//! for vectors of several lengths, with and without cold-edge elimination and obvious paths.
//!
//! `region_figures PROFILE.pleach COUNTS.plcnt`; the profile was recorded with `--keep-vectors`, the counts come from the same
//! source, compiled at the same anchor, with the same input.

use pleach_analysis::decode::{Decoder, Event};
use pleach_analysis::partial_paths::{FunctionEvidence, Options, gather};
use pleach_analysis::program::Program;
use pleach_analysis::regions::cold::Cold;
use pleach_analysis::regions::credit::{EqualOptions, Portions, equal};
use pleach_analysis::regions::lengths::{Lengths, Visit};
use pleach_analysis::regions::overmatching::{OverMatching, RegionReport, compare};
use pleach_analysis::regions::profile::RegionProfile;
use pleach_analysis::regions::{DEFAULT_THRESHOLD, Regions};
use pleach_analysis::time_bias::Weights;
use pleach_annotate::id::{CfgHash, FunctionId};
use pleach_ball_larus::counts::exact::ExactProfile;
use pleach_ball_larus::counts::file::CountFile;
use pleach_ball_larus::counts::merge::merge;
use pleach_collector::vector::{Burst, VectorSet};
use pleach_profile::file::ProfileFile;
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;

/// From this flow on, paths are hot.
const HOT: f64 = 0.00125;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let [profile, counts] = &arguments[..] else {
        return Err("usage: region_figures PROFILE.pleach COUNTS.plcnt".into());
    };
    let profile = ProfileFile::open(profile)?;
    let vectors = VectorSet::from_bytes(
        profile
            .vectors()?
            .ok_or("the profile has no vectors: record --keep-vectors")?,
    )?;
    let exact = ExactProfile::from_counts(&merge(vec![CountFile::open(counts)?]));
    let exact = RegionProfile::exact(&exact.functions, DEFAULT_THRESHOLD);
    let program = Program::read(&vectors.modules, None);
    println!(
        "{} executed region paths, {} hot",
        exact.paths.len(),
        exact.hot(HOT).len()
    );
    lengths(&program, &vectors);
    println!("vector  extend cold obvious   wall overlap   |M| unique  false flow  false hot");
    for window in [Some(4), Some(16), None] {
        for extend in [false, true] {
            let partial = Partial::of(&program, &vectors, window, extend);
            for (cold, obvious) in [(false, false), (true, false), (false, true), (true, true)] {
                let options = EqualOptions {
                    cold: cold.then(Cold::default),
                    obvious,
                };
                let (wall, overlap, found, unique) = partial.figures(&options, &exact);
                let seen: Vec<f64> = found.regions.iter().filter_map(|r| Some(r.flow * r.ratio?)).collect();
                let flow: f64 = found.regions.iter().filter(|r| r.ratio.is_some()).map(|r| r.flow).sum();
                println!(
                    "{:<7} {extend:<6} {cold:<5} {obvious:<5} {wall:8.3} {overlap:7.3} {:5.2} {unique:6.3} {:11.3} {:6} of {}",
                    window.map_or("whole".to_owned(), |w| w.to_string()),
                    seen.iter().sum::<f64>() / flow,
                    found.false_flow,
                    found.false_hot,
                    found.hot
                );
                if window == Some(4) && !extend && !cold && !obvious {
                    by_ratio(&found);
                }
            }
        }
    }
    Ok(())
}

/// The papers' tables 2 and 3, for vectors of four branches.
fn lengths(program: &Program, vectors: &VectorSet) {
    let mut regions: BTreeMap<(FunctionId, CfgHash), Regions> = BTreeMap::new();
    for function in program.annotated().flat_map(|(_, map)| &map.functions) {
        let key = (function.cfg.id, function.hash);
        regions.insert(key, Regions::new(&function.cfg, DEFAULT_THRESHOLD));
    }
    let maps: BTreeMap<u32, _> = program.annotated().map(|(module, map)| (module.0, map)).collect();
    let mut decoder = Decoder::new(program);
    let mut lengths = Lengths::default();
    for burst in &vectors.bursts {
        for branches in burst.branches.chunks_exact(4) {
            let vector = Burst {
                branches: branches.to_vec(),
                end: None,
                ..burst.clone()
            };
            let mut visits = Vec::new();
            decoder.burst(&vector, &mut |_, event| {
                if let Event::Block {
                    module,
                    frame,
                    instance,
                    block,
                    ..
                } = event
                {
                    let function = maps[&module.0].function_of(instance);
                    visits.push(Visit {
                        function: &regions[&(function.cfg.id, function.hash)],
                        activation: frame.0 << 32 | u64::from(instance.0),
                        block,
                    });
                }
            });
            lengths.add(&visits, burst.count as f64);
        }
    }
    println!(
        "IR instructions: initial {:.1}, extended {:.1}, split at functions {:.1}, at loops {:.1}, at regions {:.1}",
        lengths.initial.get(),
        lengths.extended.get(),
        lengths.functions.get(),
        lengths.loops.get(),
        lengths.regions.get()
    );
    println!("vectors that span 0, 1, … function boundaries: {:?}", lengths.spans);
}

/// How false hot paths lie in regions of low and of high matching ratios.
fn by_ratio(found: &OverMatching) {
    for (from, to) in [(0.0, 1.5), (1.5, 4.0), (4.0, 16.0), (16.0, f64::INFINITY)] {
        let inside = |r: &&RegionReport| r.ratio.is_some_and(|ratio| (from..to).contains(&ratio));
        let regions: Vec<_> = found.regions.iter().filter(inside).collect();
        println!(
            "    ratio {from}..{to}: {} regions, flow {:.3}, hot {}, false hot {}, false flow {:.3}",
            regions.len(),
            regions.iter().map(|r| r.flow).sum::<f64>(),
            regions.iter().map(|r| r.hot).sum::<usize>(),
            regions.iter().map(|r| r.false_hot).sum::<usize>(),
            regions.iter().map(|r| r.false_flow).sum::<f64>(),
        );
    }
}

/// What was seen of each function.
struct Partial(Vec<(Regions, Portions)>);

impl Partial {
    fn of(program: &Program, vectors: &VectorSet, window: Option<usize>, extend: bool) -> Self {
        let graphs: BTreeMap<_, _> = program
            .annotated()
            .flat_map(|(_, map)| &map.functions)
            .map(|function| ((function.cfg.id, function.hash), &function.cfg))
            .collect();
        let evidence = gather(
            program,
            vectors,
            &Weights::equal(),
            &Options {
                vector_length: window,
                ..Options::default()
            },
        );
        let of_function = |(key, function): (_, &FunctionEvidence)| {
            let regions = Regions::new(graphs.get(key)?, DEFAULT_THRESHOLD);
            let mut portions = Portions::new();
            for observation in &function.observations {
                let weight = f64::from(observation.times[0]) / observation.alternatives.len() as f64;
                for piece in observation.alternatives.iter().flatten() {
                    for portion in regions.split_piece(piece, extend) {
                        *portions.entry(portion).or_default() += weight;
                    }
                }
            }
            Some((regions, portions))
        };
        Self(evidence.functions.iter().filter_map(of_function).collect())
    }

    /// Wall accuracy, overlap, what over-matching did, and the share of what matches one path.
    fn figures(&self, options: &EqualOptions, exact: &RegionProfile) -> (f64, f64, OverMatching, f64) {
        let mut estimate = RegionProfile::default();
        let mut matching = BTreeMap::new();
        for (regions, portions) in &self.0 {
            for found in equal(regions, portions, options, &mut estimate) {
                let entry = regions.all()[found.region.index()].entry();
                matching.insert((regions.id, regions.cfg_hash, entry), found);
            }
        }
        let hot = exact.hot(HOT);
        let flow: f64 = hot.iter().map(|(_, flow)| flow).sum();
        let hottest: BTreeSet<_> = estimate.by_flow().into_iter().map(|p| p.0).take(hot.len()).collect();
        let found: f64 = hot.iter().filter(|(path, _)| hottest.contains(path)).map(|p| p.1).sum();
        let shares: BTreeMap<_, f64> = exact.shares().collect();
        let common = |(path, flow): (_, f64)| shares.get(path).map_or(0.0, |exact| flow.min(*exact));
        let overlap = estimate.shares().map(common).sum();
        let all: f64 = matching.values().map(|m| m.weight).sum();
        let unique: f64 = matching.values().map(|m| m.unique).sum();
        (
            found / flow,
            overlap,
            compare(&estimate, exact, &matching, HOT),
            unique / all,
        )
    }
}
