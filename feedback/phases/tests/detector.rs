//! The detector on streams of bursts whose phases are known.

use pleach_collector::stream::Generator;
use pleach_phases::detector::{DEFAULT_INTERVAL, MAX_PHASES};
use pleach_phases::signature::TraceShare;
use pleach_phases::{Detector, Event, Interval, PhaseId, Signature};
use proptest::prelude::*;

/// A phase: traces of `from..from + number`, a burst shows `shown` of them; the rest is code that all phases share.
#[derive(Clone, Copy, Debug)]
struct Kind {
    from: u32,
    number: u32,
    shown: u32,
    /// Share of bursts in shared code.
    shared: f64,
    /// Time per branch.
    time: Option<f32>,
}

const SHARED: Kind = Kind {
    from: 1 << 20,
    number: 50,
    shown: 10,
    shared: 0.0,
    time: None,
};

fn kind(from: u32, shared: f64) -> Kind {
    Kind {
        from,
        number: 40,
        shown: 8,
        shared,
        time: None,
    }
}

fn uniform(generator: &mut Generator) -> f64 {
    (generator.word() >> 11) as f64 / (1_u64 << 53) as f64
}

fn burst(kind: Kind, time_ns: u64, generator: &mut Generator) -> Signature {
    let code = if uniform(generator) < kind.shared { SHARED } else { kind };
    // Cubed: some traces are hot, most are rare.
    let traces = (0..code.shown).map(|_| code.from + (uniform(generator).powi(3) * f64::from(code.number)) as u32);
    let mut traces: Vec<u32> = traces.collect();
    traces.sort_unstable();
    let same = traces.chunk_by(|a, b| a == b);
    Signature {
        time_ns,
        traces: same
            .map(|same| TraceShare {
                trace: same[0],
                start: same[0] / 2,
                share: same.len() as f32 / traces.len() as f32,
            })
            .collect(),
        time_per_branch: kind.time.map(|time| time * (0.5 + uniform(generator) as f32)),
        mispredicted: None,
    }
}

/// The events of phases with these numbers of bursts, and the number of bursts at which each was known.
fn detect(phases: &[(Kind, usize)], interval: Interval, seed: u64) -> Vec<(u64, Event)> {
    let (mut detector, mut generator, mut number) = (Detector::new(interval), Generator::new(seed), 0);
    let mut events = Vec::new();
    for &(kind, bursts) in phases {
        for _ in 0..bursts {
            let found = detector.push(burst(kind, number * 1000, &mut generator));
            number += 1;
            events.extend(found.into_iter().map(|event| (number, event)));
        }
    }
    events.extend(detector.finish().into_iter().map(|event| (number, event)));
    events
}

/// Phases in order, with their first bursts.
fn begun(events: &[(u64, Event)]) -> Vec<(u32, u64)> {
    let begun = events.iter().filter_map(|(_, event)| match event {
        Event::Began { phase, burst, .. } => Some((phase.0, *burst)),
        _ => None,
    });
    begun.collect()
}

/// Ends of phases: at which burst, and when that was known.
fn ended(events: &[(u64, Event)]) -> Vec<(u64, u64)> {
    let ended = events.iter().filter_map(|(known, event)| match event {
        Event::Ended { burst, .. } => Some((*burst, *known)),
        _ => None,
    });
    ended.collect()
}

#[test]
fn three_phases_and_a_return() {
    let (a, b, c) = (kind(0, 0.1), kind(1000, 0.1), kind(2000, 0.1));
    let events = detect(&[(a, 730), (b, 1250), (a, 905), (c, 610)], Interval::Fixed(100), 1);
    let found: Vec<u32> = begun(&events).iter().map(|(phase, _)| *phase).collect();
    assert_eq!(found, [1, 2, 1, 3], "{events:#?}");
    for ((at, known), truth) in ended(&events).iter().zip([730, 1980, 2885]) {
        assert!(at.abs_diff(truth) <= 10 && known - truth <= 200, "{at} {known} {truth}");
    }
    let stable = events.iter().filter(|(_, event)| matches!(event, Event::Stable { .. }));
    assert_eq!(stable.count(), 4);
}

#[test]
fn causes() {
    let cause = |a: Kind, b: Kind| {
        let events = detect(&[(a, 1000), (b, 1000)], Interval::Fixed(100), 3);
        events.iter().find_map(|(_, event)| match event {
            Event::Began {
                change: Some(change), ..
            } => Some(change.cause.name()),
            _ => None,
        })
    };
    let new = cause(kind(0, 0.0), kind(1000, 0.0));
    assert_eq!(new, Some("other code"));
    // Traces 2n and 2n + 1 have one start.
    let (even, odd) = (kind(0, 0.0), kind(40, 0.0));
    let renamed = |kind: Kind, by: u32, time: u64, generator: &mut Generator| {
        let mut signature = burst(Kind { from: 0, ..kind }, time, generator);
        let traces = signature.traces.iter().map(|trace| TraceShare {
            trace: trace.trace * 2 + by,
            start: trace.trace,
            ..*trace
        });
        signature.traces = traces.collect();
        signature
    };
    let mut detector = Detector::new(Interval::Fixed(100));
    let mut generator = Generator::new(5);
    let mut found = Vec::new();
    for number in 0..2000_u64 {
        let by = u32::from(number >= 1000);
        let kind = if by == 0 { even } else { odd };
        found.extend(detector.push(renamed(kind, by, number, &mut generator)));
    }
    let changes: Vec<_> = found
        .iter()
        .filter_map(|event| match event {
            Event::Began {
                change: Some(change), ..
            } => Some(change.cause.name()),
            _ => None,
        })
        .collect();
    assert_eq!(changes, ["direction"]);
    // The same code, in other shares.
    assert_eq!(cause(kind(0, 0.9), kind(0, 0.05)), Some("dominance"));
    // The same shares, in another time.
    let timed = |time| Kind {
        time: Some(time),
        ..kind(0, 0.1)
    };
    assert_eq!(cause(timed(2.0), timed(5.0)), Some("behaviour"));
    assert_eq!(cause(timed(2.0), timed(2.0)), None);
}

#[test]
fn after_a_phase_shorter_than_an_interval_comes_the_known_one() {
    let (long, short) = (kind(0, 0.2), kind(100, 0.0));
    for bursts in [2, 5, 10, 20, 35, 50, 70, 95] {
        for seed in 0..8 {
            let events = detect(
                &[(long, 850), (short, bursts), (long, 1500)],
                Interval::Fixed(100),
                seed,
            );
            let stable: Vec<u32> = events
                .iter()
                .filter_map(|(_, event)| match event {
                    Event::Stable { phase } => Some(phase.0),
                    _ => None,
                })
                .collect();
            let begun = begun(&events);
            assert!(stable.iter().all(|phase| *phase == 1), "{bursts}: {begun:?} {stable:?}");
            assert_eq!(begun.last().map(|last| last.0), Some(1), "{bursts}: {begun:?}");
            if bursts >= 35 {
                // It is found as what it is, with its ends.
                let [_, (2, from), (1, to)] = begun[..] else {
                    panic!("{bursts}: {begun:?}")
                };
                let far = from.abs_diff(850) + to.abs_diff(850 + bursts as u64);
                assert!(far <= 12, "{bursts}: {begun:?}");
            }
        }
    }
}

#[test]
fn small_changes_need_more_intervals() {
    // A third of the time: one interval of 100 bursts cannot prove it, eight can.
    let events = detect(&[(kind(0, 0.3), 4000), (kind(0, 0.65), 4000)], Interval::Fixed(100), 7);
    let ended = ended(&events);
    assert_eq!(ended.len(), 1, "{events:#?}");
    let found: Vec<u32> = begun(&events).iter().map(|(phase, _)| *phase).collect();
    assert_eq!(found, [1, 2]);
    assert!(ended[0].0.abs_diff(4000) < 150 && ended[0].1 <= 4800, "{ended:?}");
}

#[test]
fn short_phases_lengthen_adaptive_intervals() {
    // A program that alternates faster than four intervals, again and again: at a coarser grain it is one phase.
    let (a, b) = (kind(0, 0.0), kind(1000, 0.0));
    let alternating: Vec<_> = (0..400).map(|turn| (if turn % 2 == 0 { a } else { b }, 40)).collect();
    let events = detect(&alternating, Interval::Adaptive, 2);
    let last = ended(&events).last().map_or(0, |ended| ended.0);
    assert!(last < 8000, "it still changed at burst {last} of 16000");
}

#[test]
fn memory_is_bounded() {
    let mut detector = Detector::new(Interval::Fixed(60));
    let mut generator = Generator::new(1);
    let mut phases = 0;
    for number in 0..120 * 60 {
        let kind = kind(number / 60 * 1000, 0.0);
        let events = detector.push(burst(kind, u64::from(number), &mut generator));
        phases += events
            .iter()
            .filter(|event| matches!(event, Event::Began { .. }))
            .count();
        assert!(detector.known_phases() <= MAX_PHASES);
    }
    assert!(phases > MAX_PHASES);
}

/// A phase that was recognised by mistake, and differed in all of its bursts, had none.
#[test]
fn a_phase_has_a_burst_at_least() {
    let codes = [
        (0, 134, 0.858_925_095_187_596),
        (4, 212, 0.565_405_820_559_065_4),
        (0, 135, 0.341_774_931_786_024_2),
        (3, 233, 0.871_390_861_078_613_5),
    ];
    let made = codes.map(|(code, bursts, shared)| (kind(code * 20, shared), bursts));
    let mut begins = None;
    for (_, event) in detect(&made, Interval::Fixed(60), 2_910_269_892_858_053_805) {
        match event {
            Event::Began { burst, .. } => begins = Some(burst),
            Event::Ended { burst, .. } => assert!(Some(burst) > begins, "{burst}"),
            Event::Stable { .. } => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// Every change is found within two intervals of bursts, at the right place; nothing else is; and a phase that
    /// returns is recognised.
    #[test]
    fn constructed_phases_are_found(
        turns in prop::collection::vec((0..4_u32, 4..12_usize, 0..100_usize), 2..8),
        shared in 0.0..0.2_f64,
        seed in any::<u64>(),
    ) {
        let mut phases: Vec<(u32, usize)> = Vec::new();
        for (code, intervals, more) in turns {
            let bursts = intervals * 100 + more;
            match phases.last_mut() {
                Some(last) if last.0 == code => last.1 += bursts,
                _ => phases.push((code, bursts)),
            }
        }
        let made: Vec<_> = phases.iter().map(|&(code, bursts)| (kind(code * 1000, shared), bursts)).collect();
        let events = detect(&made, Interval::Fixed(DEFAULT_INTERVAL), seed);
        let found = begun(&events);
        prop_assert_eq!(found.len(), phases.len(), "{:?}", events);
        let (mut names, mut truth) = (std::collections::BTreeMap::new(), 0);
        for ((code, bursts), (phase, first)) in phases.iter().zip(&found) {
            let next = names.len() as u32 + 1;
            prop_assert_eq!(*names.entry(*code).or_insert(next), *phase);
            prop_assert!(first.abs_diff(truth) <= 20, "{} {}", first, truth);
            truth += *bursts as u64;
        }
        let mut truth = 0;
        for ((_, bursts), (_, known)) in phases.iter().zip(ended(&events)) {
            truth += *bursts as u64;
            prop_assert!(known <= truth + 200, "{} {}", known, truth);
        }
    }

    /// A program that does not change has one phase, whatever its code and the interval.
    #[test]
    fn stationary_programs_have_one_phase(
        number in 1..400_u32,
        shown in 1..60_u32,
        shared in 0.0..1.0_f64,
        interval in 60..300_usize,
        adaptive in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let kind = Kind { from: 0, number, shown, shared, time: Some(1.0) };
        let interval = if adaptive { Interval::Adaptive } else { Interval::Fixed(interval) };
        let events = detect(&[(kind, 12_000)], interval, seed);
        prop_assert_eq!(begun(&events), [(1, 0)]);
    }

    /// Events follow one another: a phase begins where the one before ended.
    #[test]
    fn phases_follow_one_another(codes in prop::collection::vec((0..6_u32, 1..400_usize, 0.0..1.0_f64), 1..12), seed in any::<u64>()) {
        let made: Vec<_> = codes.iter().map(|&(code, bursts, shared)| (kind(code * 20, shared), bursts)).collect();
        let events = detect(&made, Interval::Fixed(60), seed);
        let (mut open, mut end, mut met) = (None, 0, 0);
        for (_, event) in &events {
            match *event {
                Event::Began { phase, burst, time_ns, is_known, change } => {
                    prop_assert_eq!(open, None);
                    prop_assert_eq!((burst, time_ns), (end, end * 1000));
                    prop_assert_eq!(change.is_some(), burst > 0);
                    prop_assert_eq!(is_known, phase.0 <= met);
                    met = met.max(phase.0);
                    open = Some(phase);
                }
                Event::Stable { phase } => prop_assert_eq!(open, Some(phase)),
                Event::Ended { phase, burst, .. } => {
                    prop_assert_eq!(open.take(), Some(phase));
                    prop_assert!(burst > end);
                    end = burst;
                }
            }
        }
        prop_assert!(open.is_some_and(|phase: PhaseId| phase.0 >= 1));
    }
}
