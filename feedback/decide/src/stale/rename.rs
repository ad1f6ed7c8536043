//! Which recorded function a new name stands for.

use super::align::{BlockMatch, Graph};
use super::features::Features;
use pleach_annotate::cfg::Cfg;

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
    let (before, after) = (Graph::new(old), Graph::new(new));
    let Some(matched) = BlockMatch::find(&before, &after) else {
        return 0.0;
    };
    let similar: f64 = matched
        .pairs()
        .map(|(old, new)| before.features[old].similarity(&after.features[new]))
        .sum();
    2.0 * similar / (Features::ALIKE * (old.blocks.len() + new.blocks.len()) as f64)
}

/// For each function with a new name, the recorded one that it was, if exactly one is much like it, and the other way
/// round. `old`: recorded functions whose names are gone.
pub fn renamed(old: &[&Cfg], new: &[&Cfg]) -> Vec<Option<usize>> {
    if old.len() * new.len() > MAX_PAIRS {
        return vec![None; new.len()];
    }
    let table: Vec<Vec<f64>> = new
        .iter()
        .map(|new| {
            let of = |old: &&Cfg| match has_parts(new) && has_parts(old) && is_near(old, new) {
                true => function_similarity(old, new),
                false => 0.0,
            };
            old.iter().map(of).collect()
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
fn is_near(old: &Cfg, new: &Cfg) -> bool {
    let (a, b) = (old.blocks.len() as f64, new.blocks.len() as f64);
    2.0 * a.min(b) / (a + b) >= MIN_FUNCTION_SIMILARITY
}
