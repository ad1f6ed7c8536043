//! Phases of any bursts.

use crate::input::Input;
use pleach_collector::vector::{
    Branch, BranchFacts, Burst, BurstTiming, CodeAddress, EndReason, Engine, EventId, HardwareSample, ModuleId,
    Prediction, Process, VectorSet,
};
use pleach_phases::detector::{MAX_ADAPTIVE_INTERVAL, MAX_PHASES, MIN_INTERVAL};
use pleach_phases::{Detector, Event, Interval, Signature, Timeline};

/// Most bursts of a stream.
const MAX_BURSTS: usize = 6000;

/// Any stream of bursts is divided into phases without a gap; what is kept of it stays within the stated bounds; and a
/// recording has the same phases as the stream of its bursts.
pub fn phases(data: &[u8]) {
    let mut input = Input(data);
    let interval = match input.u8() % 3 {
        0 => Interval::Adaptive,
        1 => Interval::Fixed(usize::from(input.u8())),
        _ => Interval::Fixed(input.number().min(1 << 20) as usize),
    };
    let mut bursts = bursts(&mut input);
    let events = detect(&bursts, interval);
    check(&events, bursts.len() as u64);
    let last = bursts.last().map_or(0, |burst| burst.time_ns);
    let are_timed = bursts.first().is_some_and(|burst| burst.time_ns < last);
    // Recordings are not in the order of time.
    let middle = bursts.len() / 2;
    bursts.rotate_left(middle);
    check_timeline(bursts, interval, &events, are_timed);
}

/// Runs of bursts that are alike, as programs with phases give them: a few bytes stand for many bursts.
fn bursts(input: &mut Input<'_>) -> Vec<Burst> {
    let mut bursts = Vec::new();
    let mut time = input.number() % (1 << 60);
    while !input.0.is_empty() && bursts.len() < MAX_BURSTS {
        let kinds: Vec<Burst> = (0..input.u8() % 4 + 1).map(|_| burst(input)).collect();
        let number = usize::from(input.u8()) * usize::from(input.u8() % 8 + 1);
        let step = u64::from(input.u8());
        for position in 0..number.min(MAX_BURSTS - bursts.len()) {
            bursts.push(Burst {
                time_ns: time,
                ..kinds[position % kinds.len()].clone()
            });
            time += step;
        }
    }
    bursts
}

fn burst(input: &mut Input<'_>) -> Burst {
    let flags = input.u8();
    let place = |byte: u8| CodeAddress {
        module: match byte {
            255 => ModuleId::EXTERNAL,
            _ => ModuleId(u32::from(byte >> 6)),
        },
        offset: u64::from(byte) << 4,
    };
    let different: Vec<Branch> = (0..flags % 9)
        .map(|_| Branch {
            from: place(input.u8()),
            to: place(input.u8()),
        })
        .collect();
    let length = different.len() * usize::from(input.u8() % 64 + 1);
    let branches: Vec<Branch> = different.iter().cycle().take(length).copied().collect();
    let facts = |input: &mut Input<'_>| BranchFacts {
        prediction: Prediction::from_u8(input.u8() % 3).unwrap_or_default(),
        cycles: input.number() as u16,
    };
    let hardware = (flags & 64 != 0).then(|| HardwareSample {
        event: EventId(u32::from(input.u8() % 2)),
        ip: place(input.u8()),
        facts: match input.u8() % 2 {
            0 => Box::default(),
            _ => vec![facts(input); branches.len()].into(),
        },
    });
    Burst {
        process: 0,
        thread: input.u8().into(),
        time_ns: 0,
        engine: if hardware.is_some() {
            Engine::Lbr
        } else {
            Engine::RunAhead
        },
        start: (flags & 16 != 0).then(|| place(input.u8())),
        branches,
        values: Vec::new(),
        end: None,
        end_reason: EndReason::Budget,
        system_call: None,
        instructions: 0,
        count: 1 + input.number() % 1000,
        proved: true,
        hardware: hardware.map(Box::new),
        // A file may hold any numbers.
        timing: (flags & 32 != 0).then(|| BurstTiming {
            branches: input.float() as f32,
            nanoseconds: input.float() as f32,
        }),
    }
}

/// Feeds a detector, with a look at what it keeps.
fn detect(bursts: &[Burst], interval: Interval) -> Vec<Event> {
    let mut detector = Detector::new(interval);
    let mut events = Vec::new();
    for burst in bursts {
        events.extend(detector.push(Signature::from_burst(burst)));
        assert!(detector.known_phases() <= MAX_PHASES);
        match interval {
            Interval::Fixed(wanted) => assert_eq!(detector.interval(), wanted.max(MIN_INTERVAL)),
            Interval::Adaptive => assert!((MIN_INTERVAL..=MAX_ADAPTIVE_INTERVAL).contains(&detector.interval())),
        }
    }
    events.extend(detector.finish());
    events
}

/// Phases follow each other without a gap, each has a burst, and new ones have the next number.
fn check(events: &[Event], bursts: u64) {
    let (mut current, mut next, mut phases) = (None, 0, 0);
    for event in events {
        match *event {
            Event::Began {
                phase,
                burst,
                is_known,
                change,
                ..
            } => {
                assert!(current.is_none() && burst == next && burst < bursts);
                assert_eq!(change.is_none(), burst == 0);
                assert_eq!(is_known, phase.0 <= phases);
                phases = phases.max(phase.0);
                current = Some((phase, burst));
            }
            Event::Stable { phase } => assert!(current.is_some_and(|(of, _)| of == phase)),
            Event::Ended { phase, burst, .. } => {
                let (of, first) = current.take().expect("a phase that has begun");
                assert!(of == phase && first < burst && burst <= bursts);
                next = burst;
            }
        }
    }
    assert_eq!(current.is_some(), bursts > 0, "the last phase lasts to the end");
}

/// The timeline of a recording has the phases of the stream.
fn check_timeline(bursts: Vec<Burst>, interval: Interval, events: &[Event], are_timed: bool) {
    let vectors = VectorSet {
        processes: vec![Process {
            pid: 1,
            parent: None,
            command: String::new(),
            program_cpu_seconds: 2.0,
            own_cpu_seconds: 0.0,
            lost: 0,
            declined: 0,
            undisturbed: false,
        }],
        bursts,
        ..VectorSet::default()
    };
    let timeline = match Timeline::new(&vectors, interval) {
        Ok(timeline) => timeline,
        Err(_) => return assert!(!are_timed || vectors.bursts.is_empty()),
    };
    let began = events.iter().filter(|event| matches!(event, Event::Began { .. }));
    // Where times are equal, their order is another one than the stream's.
    let is_strict = vectors
        .bursts
        .windows(2)
        .filter(|pair| pair[0].time_ns >= pair[1].time_ns)
        .count()
        <= 1;
    if is_strict {
        assert_eq!(timeline.spans.len(), began.count());
    }
    let counted: u64 = vectors.bursts.iter().map(|burst| burst.count).sum();
    assert_eq!(timeline.spans.iter().map(|span| span.bursts).sum::<u64>(), counted);
    assert!(timeline.spans.windows(2).all(|pair| pair[0].end_ns == pair[1].start_ns));
    assert_eq!(timeline.phase_of.len(), vectors.bursts.len());
    assert!(
        (timeline.cpu_seconds() - 2.0).abs() < 1e-6,
        "{}",
        timeline.cpu_seconds()
    );
    let factors = timeline.burst_factors(|phase| phase.cpu_seconds);
    assert!(factors.iter().all(|factor| factor.is_finite() && *factor >= 0.0));
}
