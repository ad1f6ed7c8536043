//! Occurrences → trees of paths.

use super::history::Passed;
use super::occurrences::{Occurrence, PathTable};
use super::targets::{EventTarget, PlaceKey};
use super::window::Window;
use crate::program::Program;
use pleach_profile::events::{EventPlace, EventProfile, EventSource, PathNode, Place, Step};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A block of the history as it is stored; `None` if the program does not have it.
fn step(program: &Program, passed: Passed) -> Option<Step> {
    let map = program.map(passed.module)?;
    let function = map.function_of(passed.instance);
    Some(Step {
        id: function.cfg.id,
        cfg_hash: function.hash,
        block: passed.block,
        line: function
            .cfg
            .blocks
            .get(passed.block.index())
            .map_or(0, |block| block.line),
    })
}

/// In the unit of the profile.
fn stored(weight: f64) -> u64 {
    (weight * EventProfile::SCALE).round() as u64
}

/// A sum over bursts, which come one after the other.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    weight: f64,
    squares: f64,
    bursts: u64,
    /// The present burst, and its weight.
    burst: Option<u32>,
    of_burst: f64,
}

impl Sum {
    fn add(&mut self, burst: u32, weight: f64) {
        if self.burst != Some(burst) {
            self.end();
            (self.burst, self.of_burst) = (Some(burst), 0.0);
            self.bursts += 1;
        }
        self.weight += weight;
        self.of_burst += weight;
    }

    fn end(&mut self) {
        self.squares += self.of_burst * self.of_burst;
        self.of_burst = 0.0;
    }

    fn squares(mut self) -> f64 {
        self.end();
        self.squares
    }
}

#[derive(Debug, Default)]
struct Node {
    sum: Sum,
    before: BTreeMap<Step, Node>,
}

#[derive(Debug, Default)]
struct PlaceSum {
    sum: Sum,
    root: Node,
}

/// The profile of an event from its occurrences, in the order of their bursts.
pub(super) fn profile(
    target: &EventTarget,
    occurrences: &[Occurrence],
    window: &Window,
    paths: &PathTable,
    program: &Program,
) -> EventProfile {
    let (mut all, mut left_out) = (Sum::default(), 0.0);
    let mut places: FxHashMap<(Place, String), PlaceSum> = FxHashMap::default();
    for one in occurrences {
        if !window.contains(one) {
            left_out += one.weight;
            continue;
        }
        let (place, what) = target.place(one.place);
        let mut blocks = paths
            .steps(one.path)
            .iter()
            .rev()
            .filter_map(|passed| step(program, *passed));
        let place = match place {
            PlaceKey::LastBlock => blocks.next().map_or(Place::Elsewhere, Place::Block),
            PlaceKey::Block(step) => {
                // The last block of the history is the place itself.
                blocks.next();
                Place::Block(*step)
            }
            PlaceKey::Code(file, symbol) => Place::Code(file.clone(), symbol.clone()),
            PlaceKey::Elsewhere => Place::Elsewhere,
        };
        let place = places.entry((place, what.to_owned())).or_default();
        all.add(one.burst, one.weight);
        place.sum.add(one.burst, one.weight);
        let mut node = &mut place.root;
        for step in blocks.take(EventProfile::MAX_STEPS) {
            node = node.before.entry(step).or_default();
            node.sum.add(one.burst, one.weight);
        }
    }
    let mut event = EventProfile {
        name: target.name.clone(),
        source: target.source,
        weight: stored(all.weight),
        observations: all.bursts,
        squares: stored(all.squares()),
        left_out: stored(left_out),
        distances: (window.from, window.to - 1),
        places: Vec::new(),
    };
    if target.source == EventSource::Kernel {
        add_samples(&mut event, target, &mut places);
    } else {
        event
            .places
            .extend(places.into_iter().map(|((place, what), found)| EventPlace {
                place,
                what,
                weight: stored(found.sum.weight),
                observations: found.sum.bursts,
                passes: stored(found.sum.weight),
                bursts: found.sum.bursts,
                squares: stored(found.sum.squares()),
                before: nodes(found.root, found.sum.weight),
            }));
    }
    event
        .places
        .sort_by(|a, b| (Reverse(a.weight), a.key()).cmp(&(Reverse(b.weight), b.key())));
    event.places.truncate(EventProfile::MAX_PLACES);
    event.places.sort_by(|a, b| a.key().cmp(&b.key()));
    event
}

/// The kernel's samples are the weight of their places; what bursts show are the paths there.
fn add_samples(event: &mut EventProfile, target: &EventTarget, places: &mut FxHashMap<(Place, String), PlaceSum>) {
    let mut weights: BTreeMap<(Place, String), (u64, u64)> = BTreeMap::new();
    let (mut events, mut samples) = (0u64, 0u64);
    for (key, sampled) in target.sampled() {
        let (weight, number) = weights.entry(key).or_default();
        let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
        add(weight, sampled.events);
        add(number, sampled.samples);
        add(&mut events, sampled.events);
        add(&mut samples, sampled.samples);
    }
    let scaled = |number: u64| number.saturating_mul(EventProfile::SCALE as u64);
    event.weight = scaled(events);
    event.observations = samples;
    event.squares = stored(target.squares());
    for ((place, what), (weight, number)) in weights {
        let found = places.remove(&(place.clone(), what.clone())).unwrap_or_default();
        event.places.push(EventPlace {
            place,
            what,
            weight: scaled(weight),
            observations: number,
            passes: stored(found.sum.weight),
            bursts: found.sum.bursts,
            squares: stored(found.sum.squares()),
            before: nodes(found.root, found.sum.weight),
        });
    }
}

/// Nodes of enough weight, in order.
fn nodes(node: Node, whole: f64) -> Vec<PathNode> {
    let enough = node
        .before
        .into_iter()
        .filter(|(_, node)| node.sum.weight >= whole * EventProfile::MIN_SHARE);
    enough
        .map(|(step, node)| PathNode {
            step,
            weight: stored(node.sum.weight),
            bursts: node.sum.bursts,
            before: nodes(node, whole),
        })
        .collect()
}
