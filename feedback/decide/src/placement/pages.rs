//! Functions on pages: how many pages an order makes hot, and clusters put where they need few.
//!
//! Pages are counted from where the code begins, and sizes are estimates: which function is on which page is only about so in the
//! linked program, how many pages are hot is near.

use super::order::{Cluster, LARGEST_THINNING, Node};

/// Bytes of a page of code: what one entry of an x86 processor's first-level instruction TLB covers.
pub const PAGE: u64 = 4096;
/// So many clusters after the next are tried where that would straddle two pages.
const LOOK_AHEAD: usize = 64;

/// The least number of pages that hold this share of what functions execute, where they are put one after another in the order given.
///
/// What a function executes is spread evenly over its bytes.
pub fn hot_pages(order: impl IntoIterator<Item = Node>, share: f64) -> u64 {
    let (mut pages, mut total) = (Pages::default(), 0.0);
    for node in order {
        pages.put(node);
        total += node.weight as f64;
    }
    let mut runs = pages.runs;
    runs.push((pages.executions, 1));
    runs.sort_by(|a, b| b.0.total_cmp(&a.0));
    let (mut missing, mut hot) = (share * total, 0);
    for (executions, count) in runs {
        // Less than this is what rounding leaves.
        if missing <= total * 1e-12 || executions <= 0.0 {
            break;
        }
        let taken = ((missing / executions).ceil() as u64).min(count);
        missing -= executions * taken as f64;
        hot += taken;
    }
    hot
}

/// What has been put on pages so far.
#[derive(Default)]
struct Pages {
    /// Full pages: executions on each, and how many there are that have so many.
    runs: Vec<(f64, u64)>,
    /// Bytes used of the last page, and executions on it.
    used: u64,
    executions: f64,
}

impl Pages {
    fn put(&mut self, node: Node) {
        let size = node.size.max(1);
        let density = node.weight as f64 / size as f64;
        let here = size.min(PAGE - self.used);
        self.used += here;
        self.executions += density * here as f64;
        if self.used < PAGE {
            return;
        }
        self.runs.push((self.executions, 1));
        let rest = size - here;
        if rest >= PAGE {
            self.runs.push((density * PAGE as f64, rest / PAGE));
        }
        self.used = rest % PAGE;
        self.executions = density * self.used as f64;
    }
}

/// Reorders clusters, densest first, so that few of those that fit on a page straddle two: where the next one would, the first behind it
/// that fits is put there, unless it runs less than an eighth as densely.
pub(super) fn pack(clusters: Vec<Cluster>) -> Vec<Cluster> {
    let mut waiting: Vec<Option<Cluster>> = clusters.into_iter().map(Some).collect();
    let (mut packed, mut end) = (Vec::with_capacity(waiting.len()), 0_u64);
    let mut first = 0;
    while first < waiting.len() {
        let at = next(&waiting[first..], PAGE - end % PAGE).map_or(first, |ahead| first + ahead);
        if let Some(cluster) = waiting[at].take() {
            end = end.wrapping_add(cluster.size);
            packed.push(cluster);
        }
        while waiting.get(first).is_some_and(Option::is_none) {
            first += 1;
        }
    }
    packed
}

/// Which of the waiting clusters is put next where `room` bytes of a page are left.
fn next(waiting: &[Option<Cluster>], room: u64) -> Option<usize> {
    let densest = waiting.first()?.as_ref()?;
    if densest.size <= room || densest.size > PAGE {
        return Some(0);
    }
    let fits = |cluster: &Cluster| cluster.size <= room && cluster.density() * LARGEST_THINNING >= densest.density();
    let near = waiting.iter().take(LOOK_AHEAD);
    near.enumerate()
        .find(|(_, c)| c.as_ref().is_some_and(fits))
        .map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(size: u64, weight: u64) -> Node {
        Node { size, weight }
    }

    #[test]
    fn pages_are_counted_by_what_they_execute() {
        assert_eq!(hot_pages([], 0.99), 0);
        assert_eq!(hot_pages([node(10, 5)], 0.99), 1);
        // Two hot functions with three cold pages between.
        let order = [node(96, 1000), node(3 * PAGE, 1), node(96, 1000)];
        assert_eq!(hot_pages(order, 0.99), 2);
        assert_eq!(hot_pages(order, 0.4), 1);
        assert_eq!(hot_pages(order, 1.0), 4);
        assert_eq!(hot_pages([order[0], order[2], order[1]], 0.99), 1);
        // A function that is evenly hot on ten pages.
        assert_eq!(hot_pages([node(10 * PAGE, 1000)], 0.45), 5);
    }

    fn cluster(at: usize, size: u64, weight: u64) -> Cluster {
        Cluster {
            members: vec![at],
            size,
            weight,
        }
    }

    fn packed(clusters: Vec<Cluster>) -> Vec<usize> {
        pack(clusters).into_iter().flat_map(|c| c.members).collect()
    }

    #[test]
    fn what_fits_goes_before_what_would_straddle() {
        let clusters = || vec![cluster(0, 3000, 9000), cluster(1, 2000, 4000), cluster(2, 1000, 1000)];
        assert_eq!(packed(clusters()), [0, 2, 1]);
        // Not where it hardly runs, and not for what needs two pages anyway.
        let mut thin = clusters();
        thin[2].weight = 200;
        assert_eq!(packed(thin), [0, 1, 2]);
        let mut large = clusters();
        (large[1].size, large[1].weight) = (5000, 10_000);
        assert_eq!(packed(large), [0, 1, 2]);
    }
}
