//! The lines that the plugin prints with `-pleach-summary` to a compiler's standard error.

use std::ops::AddAssign;

/// Sums over the files that were compiled.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SummaryLines {
    /// Functions that got counts.
    pub functions: u64,
    /// Functions whose counts were salvaged from another version.
    pub salvaged: u64,
    /// Superblocks that were formed.
    pub superblocks: u64,
    /// Functions with superblocks.
    pub changed: u64,
    /// Branches that selects replaced.
    pub branches: u64,
    /// Selects that branches replaced.
    pub selects: u64,
    /// Switches that compare with some cases first.
    pub switches: u64,
}

impl SummaryLines {
    /// Reads the lines that begin with `pleach: `.
    pub fn from_stderr(stderr: &str) -> Self {
        let mut sums = Self::default();
        for line in stderr.lines().filter(|line| line.starts_with("pleach: ")) {
            sums.functions += number(line, "profile used for ", " functions");
            sums.salvaged += number(line, ", ", " salvaged");
            sums.superblocks += number(line, ": ", " superblocks in ");
            sums.changed += number(line, " superblocks in ", " functions");
            sums.branches += number(line, ": ", " unpredictable branches ");
            sums.selects += number(line, ": ", " selects on loop-carried chains ");
            sums.switches += number(line, ": ", " switches compare ");
        }
        sums
    }
}

impl AddAssign for SummaryLines {
    fn add_assign(&mut self, other: Self) {
        self.functions += other.functions;
        self.salvaged += other.salvaged;
        self.superblocks += other.superblocks;
        self.changed += other.changed;
        self.branches += other.branches;
        self.selects += other.selects;
        self.switches += other.switches;
    }
}

/// The number between two texts; 0 where there is none.
fn number(line: &str, before: &str, after: &str) -> u64 {
    let starts = line.match_indices(before).map(|(at, found)| at + found.len());
    let mut between = starts.filter_map(|start| line[start..].split_once(after)?.0.parse().ok());
    between.next().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_the_summary_lines() {
        let text = "a.c:1:2: warning: 9 superblocks in 9 functions\n\
                    pleach: a.c: profile used for 5 functions (0 indirect calls), 1 cold, 2 unlikely\n\
                    pleach: a.c: 3 superblocks in 2 functions, 10 instructions copied (+1.0 %)\n\
                    pleach: b.c: profile used for 2 functions (0 indirect calls), 0 cold, 0 unlikely, 1 salvaged, 3 not matched\n\
                    pleach: b.c: 40 superblocks in 1 functions, 10 instructions copied (+1.0 %)\n\
                    pleach: b.c: 8 unpredictable branches if-converted in 3 functions\n\
                    pleach: b.c: 6 selects on loop-carried chains turned into branches in 2 functions\n\
                    pleach: b.c: 5 switches compare with frequent cases in 4 functions\n";
        let expected = SummaryLines {
            functions: 7,
            salvaged: 1,
            superblocks: 43,
            changed: 3,
            branches: 8,
            selects: 6,
            switches: 5,
        };
        assert_eq!(SummaryLines::from_stderr(text), expected);
        assert_eq!(
            SummaryLines::from_stderr("no line of the plugin's"),
            SummaryLines::default()
        );
    }
}
