//! The events whose paths a recording shows: what a user asks for by name.
//!
//! Kernel events are sampled by the kernel ([`crate::engines`]). Calls and system calls are found in the bursts.

pub mod system_calls;

use std::fmt;

/// An event of the kernel that needs no performance-monitoring unit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum KernelEventKind {
    /// Page faults of either kind.
    PageFaults,
    /// Page faults without input or output.
    MinorFaults,
    /// Page faults that read from a file or from swap space.
    MajorFaults,
    /// The thread ceased to run: it waited, or another one took its place.
    ContextSwitches,
    /// The thread continued on another processor.
    Migrations,
}

impl KernelEventKind {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::PageFaults,
        Self::MinorFaults,
        Self::MajorFaults,
        Self::ContextSwitches,
        Self::Migrations,
    ];

    /// perf's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::PageFaults => "page-faults",
            Self::MinorFaults => "minor-faults",
            Self::MajorFaults => "major-faults",
            Self::ContextSwitches => "context-switches",
            Self::Migrations => "cpu-migrations",
        }
    }

    /// `PERF_COUNT_SW_…`.
    pub fn config(self) -> u64 {
        match self {
            Self::PageFaults => 2,
            Self::ContextSwitches => 3,
            Self::Migrations => 4,
            Self::MinorFaults => 5,
            Self::MajorFaults => 6,
        }
    }

    /// Whether it occurs in user code, where an unprivileged recorder may see it.
    pub fn is_in_user_code(self) -> bool {
        matches!(self, Self::PageFaults | Self::MinorFaults | Self::MajorFaults)
    }
}

/// A kernel event, and how often it is sampled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KernelEvent {
    /// The event.
    pub kind: KernelEventKind,
    /// Sample one event in `period`; `None`: as many as the budget allows.
    pub period: Option<u64>,
}

/// An event that is found in bursts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BurstEvent {
    /// The entry of a function, by its name, linkage or demangled.
    Call(String),
    /// The entry of a function that allocates memory: [`ALLOCATORS`].
    Allocations,
    /// A system call, by its number; `None`: any.
    SystemCall(Option<u32>),
}

/// Linkage names of the functions of [`BurstEvent::Allocations`].
pub const ALLOCATORS: [&str; 18] = [
    "malloc",
    "calloc",
    "realloc",
    "reallocarray",
    "aligned_alloc",
    "memalign",
    "posix_memalign",
    "strdup",
    "strndup",
    // operator new and new[], also aligned, also without exceptions
    "_Znwm",
    "_Znam",
    "_ZnwmRKSt9nothrow_t",
    "_ZnamRKSt9nothrow_t",
    "_ZnwmSt11align_val_t",
    "_ZnamSt11align_val_t",
    "_ZnwmSt11align_val_tRKSt9nothrow_t",
    "_ZnamSt11align_val_tRKSt9nothrow_t",
    "__rust_alloc",
];

/// An event that needs no performance-monitoring unit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// Sampled by the kernel.
    Kernel(KernelEvent),
    /// Found in bursts.
    Burst(BurstEvent),
}

/// Why a name is no event.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EventError {
    /// No event has the name.
    #[error(
        "there is no event {name}{}: use {}, or an event of the processor",
        hint(similar),
        names()
    )]
    Unknown {
        /// What was asked for.
        name: String,
        /// Names most like it.
        similar: Vec<&'static str>,
    },
    /// No system call has the name.
    #[error("there is no system call {name}{}", hint(similar))]
    UnknownSystemCall {
        /// What was asked for.
        name: String,
        /// Names most like it.
        similar: Vec<&'static str>,
    },
    /// A period that is no number above 0.
    #[error("{0}: expected a number above 0 behind the colon, such as page-faults:100")]
    Period(String),
    /// A function without a name.
    #[error("call: needs the name of a function, such as call:malloc")]
    NoFunction,
}

/// What [`Event::parse`] takes, for messages.
pub fn names() -> String {
    let kernel = KernelEventKind::ALL.map(KernelEventKind::name).join(", ");
    format!("{kernel}, call:FUNCTION, allocations, syscalls, syscall:NAME")
}

impl Event {
    /// Reads a name.
    ///
    /// # Errors
    /// It names no event that this package knows.
    pub fn parse(text: &str) -> Result<Self, EventError> {
        if let Some(function) = text.strip_prefix("call:") {
            return match function {
                "" => Err(EventError::NoFunction),
                name => Ok(Self::Burst(BurstEvent::Call(name.to_owned()))),
            };
        }
        if let Some(name) = text.strip_prefix("syscall:") {
            return match system_calls::number_of(name) {
                Some(number) => Ok(Self::Burst(BurstEvent::SystemCall(Some(number)))),
                None => Err(EventError::UnknownSystemCall {
                    name: name.to_owned(),
                    similar: similar(name, system_calls::all().map(|(_, known)| known)),
                }),
            };
        }
        match text {
            "allocations" => return Ok(Self::Burst(BurstEvent::Allocations)),
            "syscalls" => return Ok(Self::Burst(BurstEvent::SystemCall(None))),
            _ => {}
        }
        let (name, period) = match text.split_once(':') {
            Some((name, period)) => (name, Some(period)),
            None => (text, None),
        };
        let Some(kind) = KernelEventKind::ALL.into_iter().find(|kind| kind.name() == name) else {
            let others = ["call:FUNCTION", "allocations", "syscalls", "syscall:NAME"];
            let known = KernelEventKind::ALL.iter().map(|kind| kind.name()).chain(others);
            return Err(EventError::Unknown {
                name: text.to_owned(),
                similar: similar(name, known),
            });
        };
        let period = match period {
            None => None,
            Some(number) => match number.parse().ok().filter(|period| *period > 0) {
                Some(period) => Some(period),
                None => return Err(EventError::Period(text.to_owned())),
            },
        };
        Ok(Self::Kernel(KernelEvent { kind, period }))
    }
}

impl fmt::Display for BurstEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call(name) => write!(f, "call:{name}"),
            Self::Allocations => f.write_str("allocations"),
            Self::SystemCall(None) => f.write_str("syscalls"),
            Self::SystemCall(Some(number)) => match system_calls::name_of(*number) {
                Some(name) => write!(f, "syscall:{name}"),
                None => write!(f, "syscall:{number}"),
            },
        }
    }
}

fn hint(similar: &[&str]) -> String {
    match similar {
        [] => String::new(),
        names => format!("; did you mean {}?", names.join(", ")),
    }
}

/// Names that a reader may take for each other.
const MAX_DISTANCE: usize = 2;

/// At most three names: those that the fewest changes of letters turn into the wanted one, or else those that contain it
/// or are contained in it.
pub fn similar<'n>(wanted: &str, known: impl Iterator<Item = &'n str>) -> Vec<&'n str> {
    let mut near: Vec<(usize, &str)> = known
        .filter_map(|name| {
            let distance = distance(wanted, name);
            let contains = wanted.len() > 2 && name.len() > 2 && (name.contains(wanted) || wanted.contains(name));
            (distance <= MAX_DISTANCE.min(wanted.len() / 2) || contains).then_some((distance, name))
        })
        .collect();
    near.sort_unstable();
    near.dedup();
    if let Some(&(least, _)) = near.first().filter(|(least, _)| *least <= MAX_DISTANCE) {
        near.retain(|(distance, _)| *distance == least);
    }
    near.into_iter().take(3).map(|(_, name)| name).collect()
}

/// Letters to insert, remove or replace (Levenshtein 1966).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (position, letter) in a.chars().enumerate() {
        let mut before = row[0];
        row[0] = position + 1;
        for (at, other) in b.iter().enumerate() {
            let replaced = before + usize::from(letter != *other);
            before = row[at + 1];
            row[at + 1] = replaced.min(before + 1).min(row[at] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read() {
        let kernel = |kind, period| Ok(Event::Kernel(KernelEvent { kind, period }));
        assert_eq!(Event::parse("page-faults"), kernel(KernelEventKind::PageFaults, None));
        assert_eq!(
            Event::parse("context-switches:7"),
            kernel(KernelEventKind::ContextSwitches, Some(7))
        );
        let burst = |event| Ok(Event::Burst(event));
        assert_eq!(
            Event::parse("call:ns::f(int)"),
            burst(BurstEvent::Call("ns::f(int)".to_owned()))
        );
        assert_eq!(Event::parse("syscall:write"), burst(BurstEvent::SystemCall(Some(1))));
        for text in ["syscalls", "syscall:futex", "allocations", "call:x"] {
            let Ok(Event::Burst(event)) = Event::parse(text) else {
                panic!("{text}")
            };
            assert_eq!(event.to_string(), text);
        }
        for kind in KernelEventKind::ALL {
            assert_eq!(Event::parse(kind.name()), kernel(kind, None));
        }
    }

    #[test]
    fn unknown_names_are_told_with_similar_ones() {
        let error = |text| Event::parse(text).unwrap_err().to_string();
        insta::assert_snapshot!(error("page-fault"), @"there is no event page-fault; did you mean page-faults?: use page-faults, minor-faults, major-faults, context-switches, cpu-migrations, call:FUNCTION, allocations, syscalls, syscall:NAME, or an event of the processor");
        insta::assert_snapshot!(error("syscall:wrte"), @"there is no system call wrte; did you mean write?");
        insta::assert_snapshot!(error("page-faults:0"), @"page-faults:0: expected a number above 0 behind the colon, such as page-faults:100");
        insta::assert_snapshot!(error("call:"), @"call: needs the name of a function, such as call:malloc");
        assert!(!error("zzz").contains("did you mean"));
    }

    #[test]
    fn distances_are_those_of_letters() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", "abc"), 0);
    }
}
