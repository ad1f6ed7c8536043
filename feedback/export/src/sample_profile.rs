//! LLVM's sample profile as text, for clang's `-fprofile-sample-use` (AutoFDO).
//!
//! clang looks counts up by place: a function, a line offset in it and a discriminator. [`mod@collect`] finds the places
//! of each block, through its probes and the debug information of the annotated binary, and gives them the block's
//! count. The counts are inferred ones, at the place in LLVM's pipeline at which clang's own sample loader runs. Or, with
//! probes of stock clang in place of pleach's, the place is the number of a probe ([`mod@probes`]).
//!
//! ```text
//! function:total:head                   head: calls of the function
//!  line[.discriminator]: count [callee:count …]
//!  line[.discriminator]: function:total  a function inlined there; its lines are indented by one more
//!  !CFGChecksum: hash                    the function's lines are probes of a graph with this hash
//! ```

mod collect;
pub mod import;
mod probes;
mod read;

pub use collect::{Counts, FlatCounts, InlinedCounts, collect};
pub use probes::{Descriptors, count_probes};
pub use read::{ReadError, is_sample_profile};

use pleach_annotate::sources::SourcePlace;
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::rc::Rc;

/// A whole sample profile: functions by linkage name.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SampleProfile {
    /// Emitted functions.
    pub functions: BTreeMap<Rc<str>, FunctionSamples>,
}

/// The counts of a function, emitted or inlined.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FunctionSamples {
    /// Calls of the function.
    pub head: u64,
    /// Its own places.
    pub body: BTreeMap<SourcePlace, BodySample>,
    /// Functions inlined into it, by place of the call and name.
    pub inlined: BTreeMap<SourcePlace, BTreeMap<Rc<str>, FunctionSamples>>,
    /// Hash of the graph whose probes the places are; `None` if they are lines.
    pub checksum: Option<u64>,
}

/// The counts of one place.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BodySample {
    /// Executions.
    pub count: u64,
    /// Functions that were called there, with the number of calls.
    pub callees: BTreeMap<Rc<str>, u64>,
}

impl BodySample {
    fn add(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        for (callee, count) in &other.callees {
            let sum = self.callees.entry(callee.clone()).or_default();
            *sum = sum.saturating_add(*count);
        }
    }
}

impl FunctionSamples {
    /// Sum of all counts, those of inlined functions included.
    pub fn total(&self) -> u64 {
        let own = self.body.values().map(|sample| sample.count);
        let inlined = self.inlined.values().flat_map(BTreeMap::values).map(Self::total);
        own.chain(inlined).fold(0, u64::saturating_add)
    }

    fn write(&self, out: &mut String, depth: usize) -> fmt::Result {
        for (place, sample) in &self.body {
            write!(out, "{:depth$}{}: {}", "", Written(place), sample.count)?;
            for (callee, count) in sample.callees.iter().filter(|(_, count)| **count > 0) {
                write!(out, " {callee}:{count}")?;
            }
            out.push('\n');
        }
        for (place, functions) in &self.inlined {
            for (name, function) in functions {
                writeln!(out, "{:depth$}{}: {name}:{}", "", Written(place), function.total())?;
                function.write(out, depth + 1)?;
            }
        }
        if let Some(checksum) = self.checksum {
            writeln!(out, "{:depth$}!CFGChecksum: {checksum}", "")?;
        }
        Ok(())
    }
}

/// A place as text has it.
struct Written<'p>(&'p SourcePlace);

impl fmt::Display for Written<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.line_offset)?;
        match self.0.discriminator {
            0 => Ok(()),
            discriminator => write!(f, ".{discriminator}"),
        }
    }
}

impl SampleProfile {
    /// The text that clang and `llvm-profdata` read. Functions without samples are left out; the hottest come first.
    pub fn to_text(&self) -> String {
        let totals = self
            .functions
            .iter()
            .map(|(name, function)| (function.total(), name, function));
        let mut functions: Vec<_> = totals.filter(|(total, ..)| *total > 0).collect();
        functions.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(b.1)));
        let mut out = String::new();
        for (total, name, function) in functions {
            let written = writeln!(out, "{name}:{total}:{}", function.head).and_then(|()| function.write(&mut out, 1));
            written.expect("writing to a string cannot fail");
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(line_offset: u32, discriminator: u32) -> SourcePlace {
        SourcePlace {
            line_offset,
            discriminator,
        }
    }

    #[test]
    fn text_has_llvms_form() {
        let sample = |count| BodySample {
            count,
            ..BodySample::default()
        };
        let inlined = FunctionSamples {
            head: 7,
            body: [(place(1, 0), sample(7))].into(),
            ..FunctionSamples::default()
        };
        let call = BodySample {
            count: 5,
            callees: [("puts".into(), 4), ("never".into(), 0), ("exit".into(), 1)].into(),
        };
        let main = FunctionSamples {
            head: 1,
            body: [(place(2, 0), sample(0)), (place(2, 3), call)].into(),
            inlined: [(place(4, 1), [("helper".into(), inlined)].into())].into(),
            checksum: None,
        };
        let mut profile = SampleProfile::default();
        profile.functions.insert("main".into(), main);
        profile.functions.insert("unused".into(), FunctionSamples::default());
        insta::assert_snapshot!(profile.to_text(), @"
        main:12:1
         2: 0
         2.3: 5 exit:1 puts:4
         4.1: helper:7
          1: 7
        ");
    }
}
