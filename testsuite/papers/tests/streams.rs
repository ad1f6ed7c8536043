//! Stream compressors: weights are conserved, estimates unbiased, and the paper's Monte-Carlo figures come out.

use pleach_collector::stream::*;
use pleach_papers::streams::convergence::{Kind, mean_error};
use pleach_papers::streams::error::{Selection, invariance_error};
use pleach_papers::streams::samplers::*;
use pleach_papers::streams::tagged::Tagged;
use std::collections::HashMap;
use std::num::NonZeroU64;

fn rate(rate: u64) -> NonZeroU64 {
    NonZeroU64::new(rate).unwrap()
}

/// Total weight of the messages for this many events of few kinds.
fn reported(mut sampler: impl Sampler<u64>, events: u64, generator: &mut Generator) -> u64 {
    let messages = (0..events).filter_map(|_| sampler.push(generator.below(400)));
    let sum: u64 = messages.map(|message| message.weight).sum();
    sum + std::iter::from_fn(|| sampler.drain())
        .map(|message| message.weight)
        .sum::<u64>()
}

fn mean_share(make: impl Fn(&mut Generator) -> Box<dyn Sampler<u64>>) -> f64 {
    let mut generator = Generator::new(7);
    let trials = 400;
    let sum: u64 = (0..trials)
        .map(|_| reported(make(&mut generator), 2000, &mut generator))
        .sum();
    sum as f64 / (trials * 2000) as f64
}

#[test]
fn stationary_samplers_are_unbiased() {
    let (r, start) = (rate(16), Start::Stationary);
    let shares = [
        mean_share(|g| Box::new(Random::new(r, g))),
        mean_share(|g| Box::new(Periodic::new(r, start, g))),
        mean_share(|g| Box::new(CountedRandom::new(r, start, g))),
        mean_share(|g| Box::new(Countdown::new(r, start, g))),
        mean_share(|g| Box::new(Split::new(9, g, |g| Periodic::new(r, start, g)))),
        mean_share(|g| Box::new(Split::new(9, g, |g| CountedRandom::new(r, start, g)))),
    ];
    assert!(shares.iter().all(|share| (share - 1.0).abs() < 0.02), "{shares:?}");
    let zero = mean_share(|g| Box::new(Split::new(9, g, |g| Periodic::new(r, Start::Zero, g))));
    println!("shares {shares:?}, with zero phases {zero}");
    assert!(zero < 0.7, "{zero}");
}

#[test]
fn a_pure_stratum_errs_by_less_than_the_rate() {
    let mut generator = Generator::new(3);
    for events in 0..500 {
        let sampler = Split::new(4, &mut generator, |g| Periodic::new(rate(16), Start::Stationary, g));
        let mut sampler = Accumulated::new(sampler, Accumulator::new(16, u64::MAX));
        let sent = (0..events).filter_map(|_| sampler.push(5u64)).count();
        let sum: u64 = std::iter::from_fn(|| sampler.drain())
            .map(|message| message.weight)
            .sum();
        assert!(sent == 0 && sum.abs_diff(events) < 16, "{sum} for {events}");
    }
}

#[test]
fn the_tagged_table_loses_no_event() {
    let mut generator = Generator::new(9);
    let mut table = Tagged::new(rate(64), 5, 2, Start::Zero, &mut generator);
    let mut sent = 0;
    for events in 1..50_000 {
        let event = generator.below(300) * generator.below(2);
        sent += table.push(event).map_or(0, |message| message.weight);
        assert_eq!(sent + table.held(), events);
    }
    assert!(sent > 40_000);
}

#[test]
fn the_second_level_loses_nothing() {
    let mut table = Accumulator::new(4, 100);
    let mut generator = Generator::new(2);
    let mut sums: HashMap<u64, i64> = HashMap::new();
    for _ in 0..10_000 {
        let event = generator.below(9);
        *sums.entry(event).or_default() += 7;
        if let Some(leaving) = table.merge(Message { event, weight: 7 }) {
            *sums.entry(leaving.event).or_default() -= leaving.weight as i64;
        }
    }
    while let Some(leaving) = table.take() {
        *sums.entry(leaving.event).or_default() -= leaving.weight as i64;
    }
    assert!(sums.values().all(|sum| *sum == 0));
}

#[test]
fn the_error_is_the_papers() {
    let truth = HashMap::from([(1u64, 2000), (2, 500)]);
    let none = HashMap::new();
    assert_eq!(invariance_error(&truth, &truth, &Selection::default()), Some(0.0));
    assert_eq!(invariance_error(&truth, &none, &Selection::default()), Some(1.0));
    assert_eq!(invariance_error(&none, &truth, &Selection::default()), None);
}

#[test]
fn stratified_sampling_converges_as_fast_as_in_the_paper() {
    let mut generator = Generator::new(4);
    let mut at = |kind, length| mean_error(kind, rate(10), length, 300, &mut generator);
    let (random, split) = (at(Kind::Random, 12_000), at(Kind::SplitPeriodic, 4600));
    println!("R at 12000: {random}, H[P] at 4600: {split}");
    assert!(
        (random - 4.0).abs() < 0.5 && (split - 4.0).abs() < 0.5,
        "{random} {split}"
    );
}
