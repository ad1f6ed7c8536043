//! Functions on pages: the number of hot pages of an order, and the packing of clusters onto few pages.
//!
//! Addresses are relative to the start of the code, and sizes are estimates. The page of a function in the linked
//! program is therefore approximate; the number of hot pages is close.

use super::call_graph::{Cluster, MAX_DENSITY_DEGRADATION, Node};

/// Bytes of a page of code, which one entry of an x86 processor's instruction TLB covers.
pub const PAGE: u64 = 4096;
/// Clusters that are tried instead of one that would straddle two pages.
const LOOK_AHEAD: usize = 64;

/// The minimal number of pages that contain a share of all executions if functions are placed in the given order.
///
/// A function's executions are spread evenly over its bytes.
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
        // The tolerance is for rounding errors.
        if missing <= total * 1e-12 || executions <= 0.0 {
            break;
        }
        let taken = ((missing / executions).ceil() as u64).min(count);
        missing -= executions * taken as f64;
        hot += taken;
    }
    hot
}

/// Pages that have been filled so far.
#[derive(Default)]
struct Pages {
    /// Runs of full pages: executions on each page, and the number of pages.
    runs: Vec<(f64, u64)>,
    /// Bytes used on the last page.
    used: u64,
    /// Executions on the last page.
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

/// Reorders clusters, which are sorted by density, so that few that fit on a page straddle two. Instead of a cluster
/// that would straddle, the next one that fits is placed first, unless its density is less than an eighth of it.
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

/// The index of the cluster that is placed next if a page has `free` bytes left.
fn next(waiting: &[Option<Cluster>], free: u64) -> Option<usize> {
    let densest = waiting.first()?.as_ref()?;
    if densest.size <= free || densest.size > PAGE {
        return Some(0);
    }
    let fits =
        |cluster: &Cluster| cluster.size <= free && cluster.density() * MAX_DENSITY_DEGRADATION >= densest.density();
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
    fn hot_pages_are_counted_by_executions() {
        assert_eq!(hot_pages([], 0.99), 0);
        assert_eq!(hot_pages([node(10, 5)], 0.99), 1);
        // Two hot functions with three cold pages between.
        let order = [node(96, 1000), node(3 * PAGE, 1), node(96, 1000)];
        assert_eq!(hot_pages(order, 0.99), 2);
        assert_eq!(hot_pages(order, 0.4), 1);
        assert_eq!(hot_pages(order, 1.0), 4);
        assert_eq!(hot_pages([order[0], order[2], order[1]], 0.99), 1);
        // A hot function of ten pages.
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
    fn a_cluster_that_fits_is_placed_before_one_that_would_straddle() {
        let clusters = || vec![cluster(0, 3000, 9000), cluster(1, 2000, 4000), cluster(2, 1000, 1000)];
        assert_eq!(packed(clusters()), [0, 2, 1]);
        // Not if its density is too low, and not before a cluster that is larger than a page.
        let mut thin = clusters();
        thin[2].weight = 200;
        assert_eq!(packed(thin), [0, 1, 2]);
        let mut large = clusters();
        (large[1].size, large[1].weight) = (5000, 10_000);
        assert_eq!(packed(large), [0, 1, 2]);
    }
}
