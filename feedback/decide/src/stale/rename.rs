//! Which recorded function a new name stands for.

use super::align::{BlockMatch, Graph};
use super::features::Features;
use pleach_annotate::cfg::Cfg;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Blocks and calls that a function must have, so that another one is not alike by chance.
const MIN_PARTS: usize = 6;
/// Minimum similarity of two functions that are one.
const MIN_FUNCTION_SIMILARITY: f64 = 0.75;
/// By how much the best similarity must exceed the second.
const MIN_LEAD: f64 = 0.05;

/// Maximum number of pairs of functions that are compared, which bounds the time.
const MAX_PAIRS: usize = 20_000;

/// How alike two functions are: the similarity of their matched blocks, from 0 to 1 for equal graphs.
pub fn function_similarity(old: &Cfg, new: &Cfg) -> f64 {
    similarity(&Graph::new(old), &Graph::new(new))
}

fn similarity(old: &Graph<'_>, new: &Graph<'_>) -> f64 {
    let Some(matched) = BlockMatch::find(old, new) else {
        return 0.0;
    };
    let similar: f64 = matched
        .pairs()
        .map(|(a, b)| old.features[a].similarity(&new.features[b]))
        .sum();
    2.0 * similar / (Features::ALIKE * (old.features.len() + new.features.len()) as f64)
}

/// For each function with a new name, the recorded one that it was. `old`: recorded functions whose names are gone.
///
/// Functions of one shape are one, if no other has that shape: so a namespace may get another name, which renames what
/// its functions call as well. Of the others, two are one if each is much like the other and like no third.
pub fn renamed(old: &[&Cfg], new: &[&Cfg]) -> Vec<Option<usize>> {
    let mut found = of_one_shape(old, new);
    let old_left: Vec<usize> = (0..old.len()).filter(|&at| !found.contains(&Some(at))).collect();
    let new_left: Vec<usize> = (0..new.len()).filter(|&at| found[at].is_none()).collect();
    if old_left.len() * new_left.len() <= MAX_PAIRS {
        let old_graphs: Vec<&Cfg> = old_left.iter().map(|&at| old[at]).collect();
        let new_graphs: Vec<&Cfg> = new_left.iter().map(|&at| new[at]).collect();
        let alike = alike(&old_graphs, &new_graphs);
        for (&new, alike) in new_left.iter().zip(alike) {
            found[new] = alike.map(|old| old_left[old]);
        }
    }
    found
}

/// Hash of all that a rename leaves as it is: the blocks, and the places and kinds of calls.
fn shape(cfg: &Cfg) -> u64 {
    let mut hasher = DefaultHasher::new();
    cfg.hash().0.hash(&mut hasher);
    cfg.blocks.iter().for_each(|block| block.instructions.hash(&mut hasher));
    hasher.finish()
}

/// Pairs of functions of one shape that no other function has.
fn of_one_shape(old: &[&Cfg], new: &[&Cfg]) -> Vec<Option<usize>> {
    let mut by_shape: HashMap<u64, (Vec<usize>, Vec<usize>)> = HashMap::new();
    for (at, cfg) in old.iter().enumerate() {
        by_shape.entry(shape(cfg)).or_default().0.push(at);
    }
    for (at, cfg) in new.iter().enumerate().filter(|(_, cfg)| has_parts(cfg)) {
        by_shape.entry(shape(cfg)).or_default().1.push(at);
    }
    let mut found = vec![None; new.len()];
    for pair in by_shape.values() {
        if let (&[old], &[new]) = (pair.0.as_slice(), pair.1.as_slice()) {
            found[new] = Some(old);
        }
    }
    found
}

/// Pairs of functions that are much alike, and that no third is as much like.
fn alike(old: &[&Cfg], new: &[&Cfg]) -> Vec<Option<usize>> {
    fn graphs<'c>(all: &[&'c Cfg]) -> Vec<Option<Graph<'c>>> {
        all.iter().map(|cfg| has_parts(cfg).then(|| Graph::new(cfg))).collect()
    }
    let (before, after) = (graphs(old), graphs(new));
    let table: Vec<Vec<f64>> = after
        .iter()
        .map(|new| {
            let of = |old: &Option<Graph<'_>>| match (old, new) {
                (Some(old), Some(new)) if is_near(old.features.len(), new.features.len()) => similarity(old, new),
                _ => 0.0,
            };
            before.iter().map(of).collect()
        })
        .collect();
    (0..new.len())
        .map(|of| {
            let found = (0..old.len()).max_by(|&a, &b| table[of][a].total_cmp(&table[of][b]))?;
            let similarity = table[of][found];
            let in_row = (0..old.len())
                .filter(|&other| other != found)
                .map(|other| table[of][other]);
            let in_column = (0..new.len())
                .filter(|&other| other != of)
                .map(|other| table[other][found]);
            let leads = in_row.chain(in_column).all(|other| similarity >= other + MIN_LEAD);
            (similarity >= MIN_FUNCTION_SIMILARITY && leads).then_some(found)
        })
        .collect()
}

/// Whether two functions with equal hashes are one with two names: they make the same calls, and are not tiny.
pub fn is_renamed(old: &Cfg, new: &Cfg) -> bool {
    let own = |cfg: &Cfg| -> Vec<u64> { Features::of(cfg).iter().map(|block| block.own).collect() };
    has_parts(new) && own(old) == own(new)
}

/// Whether two functions of one name in different files are one that was moved: they are much alike, and not tiny.
pub fn is_moved(old: &Cfg, new: &Cfg) -> bool {
    has_parts(old) && has_parts(new) && function_similarity(old, new) >= MIN_FUNCTION_SIMILARITY
}

fn has_parts(cfg: &Cfg) -> bool {
    cfg.blocks.len() + cfg.calls.len() >= MIN_PARTS
}

/// Whether sizes allow for enough similarity.
fn is_near(old: usize, new: usize) -> bool {
    let (a, b) = (old as f64, new as f64);
    2.0 * a.min(b) / (a + b) >= MIN_FUNCTION_SIMILARITY
}
