//! Merging is commutative and associative to the last bit of the file.

use pleach_annotate::id::{BlockIndex, CfgHash, FunctionGuid, FunctionId, ModuleHash};
use pleach_ball_larus::{End, Path, Start};
use pleach_profile::file::ProfileFile;
use pleach_profile::merge::files::merge_files;
use pleach_profile::merge::merge;
use pleach_profile::write::encode;
use pleach_profile::{
    BranchPrediction, CallCrossingPath, CallTargets, Caller, Covered, EstimatedPath, Executions, FunctionProfile,
    PathWindow, Profile, Provenance, RecordedModule, ValueCounts, ValueSite,
};
use proptest::prelude::*;
use std::path::PathBuf;

const BLOCKS: usize = 4;

fn id(guid: u64) -> FunctionId {
    FunctionId {
        guid: FunctionGuid(guid << 62),
        module: ModuleHash(0),
    }
}

fn path(number: u32) -> Path {
    Path {
        start: if number < 2 { Start::Entry } else { Start::Inside },
        blocks: vec![BlockIndex(0), BlockIndex(1 + number % 2)],
        end: if number == 3 {
            End::Back(BlockIndex(0))
        } else {
            End::Exit
        },
    }
}

/// Counts of all sizes, with fractions.
fn count() -> impl Strategy<Value = f64> {
    prop_oneof![
        Just(0.0),
        0.0..1e3f64,
        0.0..1e15f64,
        (0u32..60).prop_map(|bits| 2f64.powi(bits as i32) + 0.3)
    ]
}

fn estimate() -> impl Strategy<Value = [f64; 4]> {
    let effective = prop_oneof![Just(f64::INFINITY), Just(0.0), 0.01..1e4f64];
    (count(), 0.0..=1.0f64, 1.0..9.0f64, effective)
        .prop_map(|(count, low, high, effective)| [count, count * low, count * high, effective])
}

fn integer() -> impl Strategy<Value = u64> {
    prop_oneof![3 => Just(0), 3 => 0u64..1000, 1 => any::<u64>()]
}

fn function(guid: u64, hash: u64) -> impl Strategy<Value = FunctionProfile> {
    let counts = (
        integer(),
        prop::collection::vec(integer(), BLOCKS),
        prop::collection::vec(integer(), 3),
    );
    let paths = prop::collection::vec(prop::option::of(estimate()), 4);
    let windows = prop::collection::vec(prop::option::of(count()), 2);
    let predictions = prop::collection::vec(prop::option::of((count(), 0.0..=1.0f64, 0.0..=1.0f64)), BLOCKS);
    let states = prop::collection::vec((0u8..8).prop_map(|state| Covered::from_u8(state).unwrap()), BLOCKS);
    let counted = prop::collection::vec((0u64..3, prop::option::of(0u64..9)), BLOCKS);
    let coverage = (prop::option::of(states), prop::option::of(counted));
    let targets = prop::collection::btree_map(0u64..3, integer(), 0..3);
    let lengths = (
        0u64..4,
        prop::collection::btree_map(0u64..40, 1u64..100, 0..16),
        integer(),
    );
    (counts, paths, windows, predictions, coverage, targets, lengths, "[ab]?").prop_map(
        move |(counts, paths, windows, predictions, coverage, targets, (bursts, lengths, others), name)| {
            let listed = paths.iter().enumerate();
            let mut paths: Vec<EstimatedPath> = listed
                .filter_map(|(number, estimate)| {
                    let [count, low, high, effective] = (*estimate)?;
                    Some(EstimatedPath {
                        path: path(number as u32),
                        count,
                        low,
                        high,
                        effective,
                    })
                })
                .collect();
            let has_all = paths.len() == 4;
            paths.sort_unstable_by(EstimatedPath::hottest_first);
            let window = |(number, count): (usize, &Option<f64>)| {
                let count = (*count).filter(|_| has_all)?;
                Some(PathWindow {
                    paths: vec![path(number as u32), path(3)],
                    count,
                })
            };
            let called = |(number, count): (usize, &Option<f64>)| {
                let count = (*count).filter(|_| has_all)?;
                let caller = Caller {
                    id: id(1),
                    cfg_hash: CfgHash(9),
                    before: vec![BlockIndex(number as u32)],
                };
                Some(CallCrossingPath {
                    caller,
                    path: path(0),
                    count,
                })
            };
            let predictions = predictions.iter().enumerate().filter_map(|(block, known)| {
                let (watched, rate, low) = (*known)?;
                let mispredicted = watched * rate;
                Some(BranchPrediction {
                    block: BlockIndex(block as u32),
                    watched,
                    mispredicted,
                    low: mispredicted * low,
                })
            });
            let executions = |(at_least, more): (u64, Option<u64>)| Executions {
                at_least,
                at_most: more.map(|more| at_least + more),
            };
            FunctionProfile {
                id: id(guid),
                cfg_hash: CfgHash(hash),
                name,
                samples: counts.0,
                blocks: counts.1,
                edges: counts.2,
                call_targets: match targets.is_empty() {
                    true => vec![],
                    false => vec![CallTargets {
                        call: 1,
                        targets: targets
                            .into_iter()
                            .map(|(guid, count)| (FunctionGuid(guid), count))
                            .collect(),
                    }],
                },
                values: match bursts {
                    0 => vec![],
                    bursts => vec![ValueCounts {
                        site: match bursts % 2 {
                            0 => ValueSite::Length(2),
                            _ => ValueSite::Divisor(BlockIndex(1)),
                        },
                        bursts,
                        values: lengths.into_iter().collect(),
                        others,
                    }],
                },
                windows: windows.iter().enumerate().filter_map(window).collect(),
                called: windows.iter().enumerate().filter_map(called).collect(),
                paths,
                predictions: predictions.collect(),
                coverage: coverage.0.unwrap_or_default(),
                counted: coverage.1.unwrap_or_default().into_iter().map(executions).collect(),
                ..FunctionProfile::default()
            }
        },
    )
}

fn provenance() -> impl Strategy<Value = Provenance> {
    let texts = |pattern: &'static str| prop::collection::vec(pattern, 0..3);
    (
        texts("[abc]"),
        texts("x|y"),
        texts("[mn]"),
        0.0..1e5f64,
        0.0..1.0f64,
        integer(),
        integer(),
    )
        .prop_map(
            |(commands, engines, modules, program_cpu_seconds, own_cpu_seconds, bursts, hot_instance_count)| {
                Provenance {
                    commands,
                    engines,
                    program_cpu_seconds,
                    own_cpu_seconds,
                    bursts,
                    taken_branches: bursts / 2,
                    hot_instance_count,
                    modules: modules
                        .into_iter()
                        .map(|path| RecordedModule {
                            build_id: path.clone(),
                            path,
                        })
                        .collect(),
                    sums: None,
                }
            },
        )
}

pub fn profile() -> impl Strategy<Value = Profile> {
    let functions = (
        prop::option::of(function(0, 1)),
        prop::option::of(function(0, 2)),
        prop::option::of(function(1, 9)),
        prop::option::of(function(3, 9)),
    );
    let scale = prop_oneof![Just(1024.0), 0.0..1e6f64];
    (functions, provenance(), scale).prop_map(|((a, b, c, d), provenance, scale)| Profile {
        provenance,
        scale,
        functions: [a, b, c, d].into_iter().flatten().collect(),
        ..Profile::default()
    })
}

pub fn bytes(profile: &Profile) -> Vec<u8> {
    encode(profile).expect("storable").parts().concat()
}

/// Profiles as files, in a folder.
pub struct Files {
    dir: tempfile::TempDir,
}

impl Files {
    pub fn new() -> Self {
        Self {
            dir: tempfile::tempdir().expect("a folder"),
        }
    }

    fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.dir.path().join(name);
        std::fs::write(&path, bytes).expect("written");
        path
    }

    pub fn read(&self, bytes: &[u8]) -> Profile {
        let path = self.write("read", bytes);
        ProfileFile::open(path)
            .and_then(|file| file.read_all())
            .expect("a profile")
    }

    /// The bytes of a merge of files with these bytes.
    fn merged(&self, parts: &[&Vec<u8>], threads: usize) -> Vec<u8> {
        let files = parts
            .iter()
            .enumerate()
            .map(|(at, part)| (self.write(&at.to_string(), part), 1.0));
        let files: Vec<_> = files.collect();
        bytes(&merge_files(&files, threads, &|_| {}).expect("merged").profile)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_order_and_any_bracketing_give_the_same_bytes(profiles in prop::collection::vec(profile(), 4)) {
        let files = Files::new();
        let parts: Vec<Vec<u8>> = profiles.iter().map(bytes).collect();
        let [a, b, c, d] = [0, 1, 2, 3].map(|at| &parts[at]);
        let all = files.merged(&[a, b, c, d], 1);
        prop_assert_eq!(&files.merged(&[d, b, a, c], 3), &all);
        prop_assert_eq!(&files.merged(&[c, d, b, a], 2), &all);
        let (ab, cd, bc) = (files.merged(&[a, b], 1), files.merged(&[d, c], 2), files.merged(&[b, c], 1));
        prop_assert_eq!(&files.merged(&[&ab, &cd], 1), &all);
        prop_assert_eq!(&files.merged(&[a, &bc, d], 1), &all);
        let abc = files.merged(&[c, &ab], 1);
        prop_assert_eq!(&files.merged(&[d, &abc], 1), &all);
        // In memory, too.
        let read = |part: &Vec<u8>| (files.read(part), 1.0);
        let merged = merge(vec![read(b), read(&abc), read(d)]).expect("merged").profile;
        let twice = files.merged(&[b, &abc, d], 1);
        prop_assert_eq!(&bytes(&merged), &twice);
        // A merged profile is read as it was written.
        prop_assert_eq!(&files.read(&twice), &merged);
        prop_assert_eq!(&bytes(&files.read(&all)), &all);
    }

    #[test]
    fn weights_multiply_sums_as_parts(profiles in prop::collection::vec(profile(), 2), weight in 2u64..6) {
        let files = Files::new();
        let [a, b] = [0, 1].map(|at| bytes(&profiles[at]));
        let read = |part: &[u8], weight| (files.read(part), weight);
        // Relative to a third profile, or weights would be reduced.
        let weighted = |parts| merge(parts).expect("merged").profile;
        let weight = weight as f64;
        let both = bytes(&weighted(vec![read(&a, 1.0), read(&b, 1.0)]));
        let of_sum = weighted(vec![read(&both, weight), read(&a, 1.0)]);
        let of_parts = weighted(vec![read(&a, weight), read(&b, weight), read(&a, 1.0)]);
        prop_assert_eq!(bytes(&of_sum), bytes(&of_parts));
    }

    #[test]
    fn one_recording_stays_what_it_is(profile in profile()) {
        let files = Files::new();
        let one = bytes(&profile);
        let merged = files.read(&files.merged(&[&one], 2));
        let read = files.read(&one);
        for (merged, one) in merged.functions.iter().zip(&read.functions) {
            prop_assert_eq!(&merged.paths, &one.paths);
            prop_assert_eq!(&merged.blocks, &one.blocks);
            prop_assert_eq!(&merged.predictions, &one.predictions);
            prop_assert!(merged.sums.is_none());
        }
        prop_assert_eq!(merged.provenance, read.provenance);
    }
}
