//! Paths that lead to events: page faults, system calls, calls of a function.
//!
//! In a file, they are a section of their own, in JSON. A file without events has none.

use pleach_annotate::id::{BlockIndex, CfgHash, FunctionId};
use serde::{Deserialize, Serialize};

/// How the events of a kind were observed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventSource {
    /// The bursts of the sampler contain them: the branches before them in the same burst led to them.
    #[default]
    Bursts,
    /// The kernel sampled them. What led there is what bursts show that passed the same place.
    Kernel,
    /// The processor's branch records end at them.
    BranchRecords,
    /// Breakpoints counted the blocks that make these calls, which no burst passed.
    Breakpoints,
}

/// The events of one kind.
///
/// Weights are in thousandths of events ([`EventProfile::SCALE`]), so that merging is exact.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct EventProfile {
    /// Its name, as `pleach record --event` takes it.
    pub name: String,
    /// How they were observed.
    pub source: EventSource,
    /// Weight of all events: of the kernel's, their number in the whole recording; of others, those that were seen.
    pub weight: u64,
    /// Samples of the kernel, or bursts that contain the event.
    pub observations: u64,
    /// Sum of the squares of the observations' weights.
    pub squares: u64,
    /// Weight of events in bursts that are left out, because they are too near to the burst's beginning, or beyond the
    /// distance up to which events are seen equally well.
    pub left_out: u64,
    /// Taken branches from a burst's beginning to its events: those within these bounds count.
    pub distances: (u32, u32),
    /// The places with the most weight, in their order.
    pub places: Vec<EventPlace>,
}

impl EventProfile {
    /// Weight of one event.
    pub const SCALE: f64 = 1000.0;
    /// Places that a recording keeps.
    pub const MAX_PLACES: usize = 100;
    /// Nodes with a smaller share of their place's weight are left out of a recording.
    pub const MIN_SHARE: f64 = 0.01;
    /// Longest path, in steps.
    pub const MAX_STEPS: usize = 24;
}

/// Where an event occurred.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// A block of an annotated function; of calls, the block that calls.
    Block(Step),
    /// Code that is not annotated: the file's name, and the function's linkage name, if it is known.
    Code(String, String),
    /// In no file.
    Elsewhere,
}

/// A block on the way to an event. A function's first block was called by the block before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Step {
    /// The function.
    pub id: FunctionId,
    /// Its graph.
    pub cfg_hash: CfgHash,
    /// The block.
    pub block: BlockIndex,
    /// The source line on which it begins; 0 if unknown.
    pub line: u32,
}

/// Events at a place, and the paths there.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct EventPlace {
    /// The place.
    pub place: Place,
    /// What is called there, where the event does not tell: a system call, a function that allocates.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub what: String,
    /// Weight of the events.
    pub weight: u64,
    /// Samples of the kernel, or bursts.
    pub observations: u64,
    /// Weight of the occurrences, in bursts, of what the paths lead to: of the event itself, or of the place of a kernel
    /// event.
    pub passes: u64,
    /// Bursts with such an occurrence.
    pub bursts: u64,
    /// Sum of the squares of the bursts' weights.
    pub squares: u64,
    /// The steps before the place.
    pub before: Vec<PathNode>,
}

/// A step before others: a tree of paths, nearest to the event first.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PathNode {
    /// The block.
    pub step: Step,
    /// Weight of the occurrences that it led to, by the steps above it.
    pub weight: u64,
    /// Bursts that show that.
    pub bursts: u64,
    /// The steps before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<PathNode>,
}

/// Adds the events of a profile, `times` over, to those of others. Any order and grouping of profiles gives the same.
pub fn merge_events(into: &mut Vec<EventProfile>, from: Vec<EventProfile>, times: u64) {
    for mut event in from {
        event.scale(times);
        match into
            .iter_mut()
            .find(|known| (&known.name, known.source) == (&event.name, event.source))
        {
            Some(known) => known.add(event),
            None => into.push(event),
        }
    }
    into.sort_by(|a, b| (&a.name, a.source).cmp(&(&b.name, b.source)));
}

impl EventProfile {
    fn scale(&mut self, times: u64) {
        if times == 1 {
            return;
        }
        let square = times.saturating_mul(times);
        for weight in [&mut self.weight, &mut self.left_out] {
            *weight = weight.saturating_mul(times);
        }
        self.squares = self.squares.saturating_mul(square);
        for place in &mut self.places {
            place.weight = place.weight.saturating_mul(times);
            place.passes = place.passes.saturating_mul(times);
            place.squares = place.squares.saturating_mul(square);
            scale_nodes(&mut place.before, times);
        }
    }

    fn add(&mut self, other: Self) {
        let pairs = [
            (&mut self.weight, other.weight),
            (&mut self.observations, other.observations),
            (&mut self.squares, other.squares),
            (&mut self.left_out, other.left_out),
        ];
        add_all(pairs);
        let ((from, to), (other_from, other_to)) = (self.distances, other.distances);
        self.distances = (from.min(other_from), to.max(other_to));
        for place in other.places {
            match self
                .places
                .iter_mut()
                .find(|known| (&known.place, &known.what) == (&place.place, &place.what))
            {
                Some(known) => known.add(place),
                None => self.places.push(place),
            }
        }
        self.places.sort_by(|a, b| a.key().cmp(&b.key()));
    }
}

impl EventPlace {
    /// What identifies it among the places of an event, and orders them.
    pub fn key(&self) -> (&Place, &str) {
        (&self.place, &self.what)
    }

    fn add(&mut self, other: Self) {
        add_all([
            (&mut self.weight, other.weight),
            (&mut self.observations, other.observations),
            (&mut self.passes, other.passes),
            (&mut self.bursts, other.bursts),
            (&mut self.squares, other.squares),
        ]);
        add_nodes(&mut self.before, other.before);
    }
}

fn add_all<const N: usize>(pairs: [(&mut u64, u64); N]) {
    for (sum, more) in pairs {
        *sum = sum.saturating_add(more);
    }
}

fn scale_nodes(nodes: &mut [PathNode], times: u64) {
    for node in nodes {
        node.weight = node.weight.saturating_mul(times);
        scale_nodes(&mut node.before, times);
    }
}

fn add_nodes(nodes: &mut Vec<PathNode>, others: Vec<PathNode>) {
    for other in others {
        match nodes.iter_mut().find(|known| known.step == other.step) {
            Some(known) => {
                add_all([(&mut known.weight, other.weight), (&mut known.bursts, other.bursts)]);
                add_nodes(&mut known.before, other.before);
            }
            None => nodes.push(other),
        }
    }
    nodes.sort_by_key(|node| node.step);
}

/// The content of the section; empty without events.
pub(crate) fn encode(events: &[EventProfile]) -> Result<Vec<u8>, String> {
    if events.is_empty() {
        return Ok(Vec::new());
    }
    if events.iter().any(is_deep) {
        return Err("a path to an event is too long".to_owned());
    }
    serde_json::to_vec(events).map_err(|error| error.to_string())
}

/// Reads the section.
pub(crate) fn decode(bytes: &[u8]) -> Result<Vec<EventProfile>, String> {
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
    let events: Vec<EventProfile> = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    match events.iter().any(is_deep) {
        true => Err("a path is too long".to_owned()),
        false => Ok(events),
    }
}

fn is_deep(event: &EventProfile) -> bool {
    let mut places = event.places.iter();
    places.any(|place| depth(&place.before) > EventProfile::MAX_STEPS)
}

fn depth(nodes: &[PathNode]) -> usize {
    nodes.iter().map(|node| 1 + depth(&node.before)).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn step() -> impl Strategy<Value = Step> {
        (0u32..4, 0u32..2).prop_map(|(block, line)| Step {
            id: FunctionId::default(),
            cfg_hash: CfgHash(1),
            block: BlockIndex(block),
            line,
        })
    }

    fn nodes(depth: u32) -> BoxedStrategy<Vec<PathNode>> {
        let before = match depth {
            0 => Just(Vec::new()).boxed(),
            _ => nodes(depth - 1),
        };
        let node = (step(), 0u64..100, 0u64..9, before);
        let list = proptest::collection::vec(node, 0..3);
        list.prop_map(|list| {
            let mut nodes = Vec::new();
            let list = list.into_iter().map(|(step, weight, bursts, before)| PathNode {
                step,
                weight,
                bursts,
                before,
            });
            add_nodes(&mut nodes, list.collect());
            nodes
        })
        .boxed()
    }

    fn events() -> impl Strategy<Value = Vec<EventProfile>> {
        let place = prop_oneof![
            step().prop_map(Place::Block),
            Just(Place::Code("libc.so.6".to_owned(), "read".to_owned())),
            Just(Place::Elsewhere),
        ];
        let place = (place, "[a-b]?", any::<[u16; 5]>(), nodes(2)).prop_map(|(place, what, n, before)| EventPlace {
            place,
            what,
            weight: n[0].into(),
            observations: n[1].into(),
            passes: n[2].into(),
            bursts: n[3].into(),
            squares: n[4].into(),
            before,
        });
        let event = ("[a-c]", any::<[u16; 4]>(), proptest::collection::vec(place, 0..3));
        let event = event.prop_map(|(name, n, places)| {
            let mut event = EventProfile {
                name,
                weight: n[0].into(),
                observations: n[1].into(),
                squares: n[2].into(),
                left_out: n[3].into(),
                distances: (n[0].into(), n[1].into()),
                ..EventProfile::default()
            };
            for place in places {
                let one = EventProfile {
                    places: vec![place],
                    distances: event.distances,
                    ..EventProfile::default()
                };
                event.add(one);
            }
            event
        });
        proptest::collection::vec(event, 0..3).prop_map(|events| {
            let mut merged = Vec::new();
            merge_events(&mut merged, events, 1);
            merged
        })
    }

    proptest! {
        #[test]
        fn any_order_and_grouping_gives_the_same(a in events(), b in events(), c in events()) {
            let sum = |lists: &[&Vec<EventProfile>]| {
                let mut sum = Vec::new();
                for list in lists {
                    merge_events(&mut sum, (*list).clone(), 1);
                }
                sum
            };
            prop_assert_eq!(sum(&[&a, &b, &c]), sum(&[&c, &a, &b]));
            prop_assert_eq!(sum(&[&sum(&[&a, &b]), &c]), sum(&[&a, &sum(&[&b, &c])]));
            let mut twice = Vec::new();
            merge_events(&mut twice, a.clone(), 2);
            for (two, one) in twice.iter().zip(&a) {
                prop_assert_eq!(two.weight, one.weight * 2);
                prop_assert_eq!(two.squares, one.squares * 4);
            }
        }

        #[test]
        fn what_is_written_is_read(events in events()) {
            let bytes = encode(&events).unwrap();
            prop_assert_eq!(decode(&bytes), Ok(events));
        }
    }

    #[test]
    fn paths_that_are_too_long_are_refused() {
        let node = |before| PathNode {
            step: Step {
                id: FunctionId::default(),
                cfg_hash: CfgHash(1),
                block: BlockIndex(0),
                line: 0,
            },
            weight: 1,
            bursts: 1,
            before,
        };
        let mut before = Vec::new();
        for _ in 0..=EventProfile::MAX_STEPS {
            before = vec![node(before)];
        }
        let event = |before| EventProfile {
            places: vec![EventPlace {
                place: Place::Elsewhere,
                what: String::new(),
                weight: 1,
                observations: 1,
                passes: 1,
                bursts: 1,
                squares: 1,
                before,
            }],
            ..EventProfile::default()
        };
        let too_long = event(before.clone());
        assert!(encode(std::slice::from_ref(&too_long)).is_err());
        assert!(decode(&serde_json::to_vec(&[too_long]).unwrap()).is_err());
        let bytes = encode(&[event(before[0].before.clone())]).unwrap();
        assert!(decode(&bytes).is_ok());
        assert!(decode(b"[1]").is_err());
    }
}
