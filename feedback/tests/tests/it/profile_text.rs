//! A profile as text: what is read back is what was printed, byte for byte in the file.

use pleach_feedback_tests::support;

use pleach_annotate::id::{BlockIndex, FunctionGuid};
use pleach_ball_larus::{End, Path, Start};
use pleach_profile::merge::merge;
use pleach_profile::write::encode;
use pleach_profile::{
    BranchPrediction, CallCrossingPath, CallTargets, Caller, Covered, EstimatedPath, Executions, PathWindow, Profile,
    ValueCounts, ValueSite,
};
use pleach_report::profile_text::{ProfileTextError, from_text, is_profile_text, to_text};
use proptest::prelude::*;
use support::{Random, synthetic_profile};

fn bytes(profile: &Profile) -> Vec<u8> {
    encode(profile).expect("storable").parts().concat()
}

/// A profile with something in every field.
fn full(seed: u64, odd: f64) -> Profile {
    let mut profile = synthetic_profile(&mut Random(seed), 12, 10);
    profile.vectors = seed.is_multiple_of(2).then(|| seed.to_le_bytes().to_vec());
    profile.provenance.commands = vec!["./app \"ü\" ".into()];
    for (at, function) in profile.functions.iter_mut().enumerate() {
        let blocks = function.blocks.len();
        let path = Path {
            start: Start::Inside,
            blocks: vec![BlockIndex(0)],
            end: End::Back(BlockIndex(0)),
        };
        function.name = format!("function {at}\n\"quoted\"");
        if blocks == 0 {
            continue;
        }
        function.call_targets = vec![CallTargets {
            call: 1,
            targets: vec![(FunctionGuid(u64::MAX), 9), (FunctionGuid(seed), 2)],
        }];
        function.values = vec![ValueCounts {
            site: ValueSite::Length(2),
            bursts: 3,
            values: vec![(8, u64::MAX), (4096, 1)],
            others: 7,
        }];
        function.values.push(ValueCounts {
            site: ValueSite::Divisor(BlockIndex(0)),
            bursts: 1,
            values: vec![(u64::MAX, 6)],
            others: 0,
        });
        function.paths = vec![EstimatedPath {
            path: path.clone(),
            count: odd,
            low: odd / 3.0,
            high: odd * 3.0,
            effective: if at % 2 == 0 { f64::INFINITY } else { odd },
        }];
        function.windows = vec![PathWindow {
            paths: vec![path.clone(), path.clone()],
            count: odd / 7.0,
        }];
        function.called = vec![CallCrossingPath {
            caller: Caller {
                id: function.id,
                cfg_hash: function.cfg_hash,
                before: vec![BlockIndex(0)],
            },
            path,
            count: odd / 11.0,
        }];
        function.predictions = vec![BranchPrediction {
            block: BlockIndex(0),
            watched: odd * 2.0,
            mispredicted: odd,
            low: odd / 2.0,
        }];
        function.coverage = vec![Covered::Hit; blocks];
        function.counted = vec![
            Executions {
                at_least: seed,
                at_most: None,
            };
            blocks
        ];
    }
    profile
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_was_printed_is_read(seed in any::<u64>(), odd in 1e-3..1e12) {
        let profile = full(seed, odd);
        let text = to_text(&profile).unwrap();
        prop_assert!(is_profile_text(text.as_bytes()));
        let again = from_text(&text).unwrap();
        prop_assert_eq!(&again, &profile);
        prop_assert_eq!(bytes(&again), bytes(&profile));
        let merged = merge(vec![(full(seed, odd), 1.0), (full(seed, odd * 3.0), 1.0)]).unwrap().profile;
        prop_assert!(merged.functions.iter().any(|f| f.sums.is_some()));
        prop_assert_eq!(from_text(&to_text(&merged).unwrap()).unwrap(), merged);
    }

    #[test]
    fn damaged_text_is_an_error_or_another_profile(seed in any::<u64>(), at in any::<prop::sample::Index>(), byte in 32_u8..127) {
        let mut text = to_text(&full(seed, 2.5)).unwrap().into_bytes();
        let at = at.index(text.len());
        text[at] = byte;
        if let Ok(text) = String::from_utf8(text) {
            let _ = from_text(&text);
        }
    }
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    let text = to_text(&full(2, 4.0)).unwrap();
    assert!(matches!(from_text(""), Err(ProfileTextError::NotAProfile)));
    assert!(matches!(from_text("{}"), Err(ProfileTextError::NotAProfile)));
    let other = text.replacen("text\":1", "text\":9", 1);
    assert!(matches!(from_text(&other), Err(ProfileTextError::Version { found: 9 })));
    let cut = &text[..text.len() - 4];
    let last = text.lines().count();
    assert!(matches!(from_text(cut), Err(ProfileTextError::Line { line, .. }) if line == last));
    let after = text.clone() + text.lines().nth(1).unwrap();
    assert!(matches!(from_text(&after), Err(ProfileTextError::Vectors { .. })));
    let odd = text.replacen("\"vectors\":\"0", "\"vectors\":\"", 1);
    assert!(matches!(from_text(&odd), Err(ProfileTextError::Vectors { .. })));
}
