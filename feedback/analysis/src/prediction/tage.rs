//! A branch predictor as processors have them: TAGE for directions, ITTAGE for targets (Seznec and Michaud, “A case for
//! (partially) tagged geometric history length branch predictors”, 2006). A table by branch, and seven tables by branch
//! and history, each of a longer history than the one before; the longest history that is known predicts. An entry is a
//! counter for a direction ([`Direction`]), or the latest target and how often it was right ([`Target`]).
//!
//! The history is that of taken branches, as in current processors: which branch went where. That is what bursts
//! consist of.

use pleach_collector::stream::mix;

/// The tables by history, and how many taken branches they look back: a geometric series, as in the paper.
const LENGTHS: [usize; 7] = [2, 4, 8, 16, 32, 65, 130];
/// log₂ of the entries of each of those tables.
const INDEX_BITS: u32 = 12;
/// log₂ of the entries of the table without history.
const BASE_BITS: u32 = 14;
/// Number of updates after which usefulness decays.
const AGING: u32 = 1 << 18;

/// Prefix hashes of the taken branches, from which the hash of any interval follows.
#[derive(Clone, Debug, Default)]
pub(super) struct BranchHistory {
    /// By number of branches: the hash of that prefix.
    prefixes: Vec<u64>,
}

/// The base of the polynomial hashes: an odd number with well-distributed bits.
const BASE: u64 = 0x9e37_79b9_7f4a_7c15;

/// By table: the power of the base for the oldest branch of its history.
const POWERS: [u64; LENGTHS.len()] = {
    let mut powers = [0; LENGTHS.len()];
    let mut table = 0;
    while table < powers.len() {
        powers[table] = BASE.wrapping_pow(LENGTHS[table] as u32);
        table += 1;
    }
    powers
};

impl BranchHistory {
    /// Reads the history of consecutive branches, each given by a hash.
    pub fn read(&mut self, branches: impl Iterator<Item = u64>) {
        self.prefixes.clear();
        self.prefixes.push(0);
        let mut hash = 0u64;
        for branch in branches {
            hash = hash.wrapping_mul(BASE).wrapping_add(mix(branch));
            self.prefixes.push(hash);
        }
    }

    /// The hash of the last `length` branches before position `end`; `None` if fewer are known. `power` is `BASE` to
    /// the power of `length`.
    fn last(&self, end: usize, length: usize, power: u64) -> Option<u64> {
        let begin = end.checked_sub(length)?;
        let before = self.prefixes[begin].wrapping_mul(power);
        Some(self.prefixes[end].wrapping_sub(before))
    }
}

/// What an entry predicts.
pub(super) trait Guess: Copy + Default {
    /// Directions, or targets.
    type Outcome: Copy + PartialEq;

    /// The prediction of a new entry, after an outcome that it was allocated for.
    fn new(outcome: Self::Outcome) -> Self;

    fn outcome(self) -> Self::Outcome;

    /// Whether it has not been right again.
    fn is_weak(self) -> bool;

    /// Learns an outcome, with a counter of `bits` bits.
    fn learn(&mut self, outcome: Self::Outcome, bits: u32);
}

/// A counter: taken from 0 on.
#[derive(Clone, Copy, Default)]
pub(super) struct Direction(i8);

impl Guess for Direction {
    type Outcome = bool;

    fn new(taken: bool) -> Self {
        Self(if taken { 0 } else { -1 })
    }

    fn outcome(self) -> bool {
        self.0 >= 0
    }

    fn is_weak(self) -> bool {
        matches!(self.0, -1 | 0)
    }

    fn learn(&mut self, taken: bool, bits: u32) {
        step(&mut self.0, taken, bits);
    }
}

/// A target, and confidence in it: at 0, another target replaces it.
#[derive(Clone, Copy, Default)]
pub(super) struct Target {
    target: u32,
    confidence: u8,
}

impl Guess for Target {
    type Outcome = u32;

    fn new(target: u32) -> Self {
        Self { target, confidence: 0 }
    }

    fn outcome(self) -> u32 {
        self.target
    }

    fn is_weak(self) -> bool {
        self.confidence == 0
    }

    fn learn(&mut self, target: u32, bits: u32) {
        if self.target == target {
            self.confidence = (self.confidence + 1).min((1 << (bits - 1)) - 1);
        } else if self.confidence == 0 {
            self.target = target;
        } else {
            self.confidence -= 1;
        }
    }
}

/// An entry of a table by history.
#[derive(Clone, Copy, Default)]
struct Entry<G> {
    tag: u16,
    guess: G,
    /// 0…3: how often it was better than the prediction of a shorter history.
    useful: u8,
}

/// The entries of a branch with its history, by table; those of known histories come first.
struct Places {
    base: usize,
    by_history: [(usize, u16); LENGTHS.len()],
    known: usize,
}

/// The predictor.
pub(super) struct Tage<G> {
    base: Vec<G>,
    tables: Vec<Vec<Entry<G>>>,
    /// From 0 on, the shorter history is preferred to a new entry.
    distrust_new: i8,
    updates: u32,
}

impl<G: Guess> Tage<G> {
    pub fn new() -> Self {
        Self {
            base: vec![G::default(); 1 << BASE_BITS],
            tables: vec![vec![Entry::default(); 1 << INDEX_BITS]; LENGTHS.len()],
            distrust_new: 0,
            updates: 0,
        }
    }

    /// Predicts a branch from the history before it, returns whether the prediction was right, and updates the tables.
    pub fn predicts(&mut self, branch: u64, history: &BranchHistory, end: usize, outcome: G::Outcome) -> bool {
        let places = places(branch, history, end);
        let mut hits = (0..places.known).rev().filter(|&table| {
            let (at, tag) = places.by_history[table];
            self.tables[table][at].tag == tag
        });
        let (provider, next) = (hits.next(), hits.next());
        let other = match next {
            Some(table) => self.tables[table][places.by_history[table].0].guess.outcome(),
            None => self.base[places.base].outcome(),
        };
        let Some(table) = provider else {
            self.base[places.base].learn(outcome, 2);
            if other != outcome {
                self.allocate(&places, 0, outcome);
            }
            self.age();
            return other == outcome;
        };
        let entry = &mut self.tables[table][places.by_history[table].0];
        let said = entry.guess.outcome();
        let is_new = entry.guess.is_weak() && entry.useful == 0;
        let predicted = if is_new && self.distrust_new >= 0 { other } else { said };
        if is_new && said != other {
            step(&mut self.distrust_new, other == outcome, 4);
        }
        if said != other {
            entry.useful = if said == outcome {
                (entry.useful + 1).min(3)
            } else {
                entry.useful.saturating_sub(1)
            };
        }
        entry.guess.learn(outcome, 3);
        if predicted != outcome {
            self.allocate(&places, table + 1, outcome);
        }
        self.age();
        predicted == outcome
    }

    /// Allocates an entry for the branch in a table of a longer history, if one there is not useful.
    fn allocate(&mut self, places: &Places, from: usize, outcome: G::Outcome) {
        let longer = from..places.known;
        for table in longer.clone() {
            let (at, tag) = places.by_history[table];
            let entry = &mut self.tables[table][at];
            if entry.useful == 0 {
                *entry = Entry {
                    tag,
                    guess: G::new(outcome),
                    useful: 0,
                };
                return;
            }
        }
        for table in longer {
            self.tables[table][places.by_history[table].0].useful -= 1;
        }
    }

    fn age(&mut self) {
        self.updates += 1;
        if self.updates.is_multiple_of(AGING) {
            self.tables.iter_mut().flatten().for_each(|entry| entry.useful /= 2);
        }
    }
}

/// Increments or decrements a saturating counter of `bits` bits.
fn step(counter: &mut i8, up: bool, bits: u32) {
    let limit = 1 << (bits - 1);
    *counter = if up {
        (*counter + 1).min(limit - 1)
    } else {
        (*counter - 1).max(-limit)
    };
}

fn places(branch: u64, history: &BranchHistory, end: usize) -> Places {
    let mut places = Places {
        base: (mix(branch) >> (64 - BASE_BITS)) as usize,
        by_history: [(0, 0); LENGTHS.len()],
        known: 0,
    };
    let tables = LENGTHS.iter().zip(&POWERS);
    for (place, (&length, &power)) in places.by_history.iter_mut().zip(tables) {
        let Some(hash) = history.last(end, length, power) else {
            break;
        };
        let hash = mix(hash ^ mix(branch.wrapping_add(length as u64)));
        // Tag 0 marks unallocated entries.
        *place = ((hash >> (64 - INDEX_BITS)) as usize, (hash as u16).max(1));
        places.known += 1;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The share of the last half of these branches, each with its outcome, that is mispredicted.
    fn mispredicted(outcomes: impl Iterator<Item = (u64, bool)>) -> f64 {
        let outcomes: Vec<_> = outcomes.collect();
        let mut tage = Tage::<Direction>::new();
        // Outcomes show in history: taken branches lead somewhere else than those that are not, which a jump follows.
        let mut history = BranchHistory::default();
        history.read(outcomes.iter().map(|&(branch, taken)| branch * 2 + u64::from(taken)));
        let wrong = |(at, &(branch, taken)): (usize, &(u64, bool))| !tage.predicts(branch, &history, at, taken);
        let wrong: Vec<bool> = outcomes.iter().enumerate().map(wrong).collect();
        let late = &wrong[wrong.len() / 2..];
        late.iter().filter(|&&wrong| wrong).count() as f64 / late.len() as f64
    }

    fn random() -> impl Iterator<Item = u64> {
        (0..).map(mix)
    }

    #[test]
    fn what_repeats_is_predicted() {
        assert_eq!(mispredicted((0..2000).map(|i| (7, i % 5 == 0))), 0.0);
        // Only a long history tells the end of forty turns.
        assert!(mispredicted((0..8000).map(|i| (7, i % 40 != 0))) < 0.005);
    }

    #[test]
    fn what_another_branch_decided_is_predicted() {
        let pairs = random().flat_map(|random| [(1, random % 2 == 0), (2, random % 2 == 0)]);
        let rate = mispredicted(pairs.take(20_000));
        assert!((0.24..0.28).contains(&rate), "{rate}");
    }

    #[test]
    fn chance_is_not_predicted() {
        let rate = mispredicted(random().map(|random| (1, random % 10 < 3)).take(20_000));
        assert!((0.29..0.42).contains(&rate), "{rate}");
    }

    #[test]
    fn history_is_that_of_the_branches_before() {
        let mut history = BranchHistory::default();
        history.read([1, 2, 3, 2, 3].into_iter());
        let last = |end, length| history.last(end, length, BASE.wrapping_pow(length as u32));
        assert_eq!(last(5, 2), last(3, 2));
        assert_ne!(last(5, 3), last(3, 3));
        assert_eq!(last(1, 2), None);
    }

    /// The share of the last half of a switch's executions that is mispredicted.
    fn mispredicted_targets(targets: impl Iterator<Item = u32>) -> f64 {
        let targets: Vec<_> = targets.collect();
        let mut tage = Tage::<Target>::new();
        let mut history = BranchHistory::default();
        history.read(targets.iter().map(|&target| u64::from(target)));
        let wrong = |(at, &target): (usize, &u32)| !tage.predicts(7, &history, at, target);
        let wrong: Vec<bool> = targets.iter().enumerate().map(wrong).collect();
        let late = &wrong[wrong.len() / 2..];
        late.iter().filter(|&&wrong| wrong).count() as f64 / late.len() as f64
    }

    #[test]
    fn targets_in_turn_are_predicted() {
        assert_eq!(mispredicted_targets((0..2000).map(|i| i % 5)), 0.0);
        // Two histories may take each other's entry again and again.
        let rate = mispredicted_targets((0..20_000).map(|i| i % 60 / 7));
        assert!(rate < 0.05, "{rate}");
    }

    #[test]
    fn targets_by_chance_are_mispredicted_as_often_as_the_rarer_ones_occur() {
        let chance = |random: u64| if random % 100 < 76 { 3 } else { (random % 3) as u32 };
        let rate = mispredicted_targets(random().map(chance).take(40_000));
        assert!((0.23..0.30).contains(&rate), "{rate}");
        let rate = mispredicted_targets(random().map(|random| (random % 4) as u32).take(40_000));
        assert!((0.70..0.80).contains(&rate), "{rate}");
    }
}
