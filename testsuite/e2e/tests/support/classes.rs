//! Classes of paths that no branch distinguishes.

use pleach_ball_larus::Path;
use std::collections::{BTreeMap, BTreeSet};

/// Sets of paths. A path that is in none of them is a class of its own.
#[derive(Clone, Default)]
pub struct Classes {
    /// Another member of the class, or the path itself.
    parents: BTreeMap<Path, Path>,
    /// Classes of which it is not known how many of their paths were executed.
    unnumbered: BTreeSet<Path>,
}

impl Classes {
    /// One of these lists of paths was executed; which one is unknown.
    pub fn add(&mut self, alternatives: &[Vec<Path>]) {
        let first = &alternatives[0];
        for other in &alternatives[1..] {
            if other.len() == first.len() {
                for (a, b) in first.iter().zip(other) {
                    self.join(a, b);
                }
                continue;
            }
            let mut all = first.iter().chain(other);
            if let Some(one) = all.next() {
                all.for_each(|path| self.join(one, path));
                let one = self.class_of(one);
                self.unnumbered.insert(one);
            }
        }
    }

    /// All that others know.
    pub fn extend(&mut self, others: &Self) {
        for (path, parent) in &others.parents {
            self.join(path, parent);
        }
        for path in &others.unnumbered {
            let class = self.class_of(path);
            self.unnumbered.insert(class);
        }
    }

    /// A path that stands for its class.
    pub fn class_of(&self, path: &Path) -> Path {
        match self.parents.get(path) {
            Some(parent) if parent != path => self.class_of(parent),
            _ => path.clone(),
        }
    }

    /// Whether it is known how many of the class's paths were executed.
    pub fn is_numbered(&self, class: &Path) -> bool {
        !self.unnumbered.iter().any(|path| self.class_of(path) == *class)
    }

    fn join(&mut self, a: &Path, b: &Path) {
        let (a, b) = (self.class_of(a), self.class_of(b));
        if a != b {
            self.parents.insert(a.clone(), a.clone());
            self.parents.insert(b, a);
        }
    }
}
