//! Coverage by one-shot breakpoints: the plan of a module, in a file that all processes of a recording share.
//!
//! The recorder makes the file, named by [`key`], in the folder [`FOLDER`] of the directory of the shards, and each
//! process that maps the module maps the file, too. It says where breakpoints go, and what the module's pages contain;
//! processes note in it which breakpoints were hit. Any process may write anything there: readers check all numbers.
//!
//! Beside the plan lies the module's *image* ([`IMAGE_EXTENSION`]): its code with breakpoints in it. A process maps the
//! image over the module's code. Who meets a breakpoint writes the original byte into the image, and no process meets it
//! again. Arming a process costs one system call, however many breakpoints there are.
//!
//! A process that finds no plan asks for one by writing the module's inode and path to the pipe [`REQUESTS`], and waits.
//! An empty file means that the module has nothing to observe.
//!
//! Nothing here allocates or panics: it runs in signal handlers.

#![allow(unsafe_code, reason = "a plan is mapped by the processes of a recording")]

use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU32, AtomicU64};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// Name of the folder with the plans, beside the shards.
pub const FOLDER: &core::ffi::CStr = c"coverage";
/// Name of the pipe for requests, in that folder: inode (8 bytes, little-endian), path and a zero byte for each.
pub const REQUESTS: &core::ffi::CStr = c"requests";
/// Extension of a module's image.
pub const IMAGE_EXTENSION: &core::ffi::CStr = c".code";
/// Extension of the file, in that folder, with the modules of a signature ([`Account::count_unobserved`]): the keys of
/// those that have a plan, 8 bytes each, little-endian. Its name is the signature, in 16 hexadecimal digits.
///
/// [`Account::count_unobserved`]: crate::account::Account::count_unobserved
pub const MODULES_EXTENSION: &core::ffi::CStr = c".modules";
/// Size of the pages that a plan describes.
pub const PAGE: usize = 4096;
/// First word of a plan: its layout.
const LAYOUT: u64 = 0x3456_4f43_4148_4c50;
/// Longest path that can be requested: longer writes to a pipe are not atomic.
pub const MAX_PATH: usize = 4000;
/// The instruction `int3`.
pub const BREAKPOINT: u8 = 0xcc;

/// The name of a module's plan: a hash of its path and its inode.
pub fn key(path: &[u8], inode: u64) -> u64 {
    xxh3_64_with_seed(path, inode)
}

/// The XXH3 of a page.
pub fn page_hash(page: &[u8]) -> u64 {
    xxh3_64(page)
}

/// A file's time of change (`st_ctime`) as one number, for [`Head::changed_ns`].
pub fn changed_ns(seconds: i64, nanoseconds: i64) -> u64 {
    (seconds as u64)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(nanoseconds as u64)
}

/// Why breakpoints were not armed in a process from the module's start to its end. What was not hit is unknown then.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Failure {
    /// Code of the module may have run before the sampler was ready.
    Late = 0,
    /// Another program traces the process, and would get the traps.
    Traced = 1,
    /// The kernel refuses to write to code.
    Write = 2,
    /// The code in memory is not that of the file.
    Differs = 3,
    /// The program confined itself by seccomp.
    Confined = 4,
    /// The program waits for SIGTRAP, or its handler of SIGTRAP runs, or it changes signals by raw system calls.
    Signals = 5,
    /// The plan came too late.
    Waited = 6,
    /// There were too many modules.
    Modules = 7,
    /// The process was not chosen, to keep the budget.
    Budget = 8,
    /// The process still ran when the recording ended.
    Running = 9,
    /// An alternate signal stack of the program's has no room for the signal of a breakpoint.
    Stack = 10,
}

impl Failure {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Late,
        Self::Traced,
        Self::Write,
        Self::Differs,
        Self::Confined,
        Self::Signals,
        Self::Waited,
        Self::Modules,
        Self::Budget,
        Self::Running,
        Self::Stack,
    ];

    /// The reason, for people.
    pub fn text(self) -> &'static str {
        match self {
            Self::Late => "code of it may have run before the sampler was ready",
            Self::Traced => "a debugger or tracer was attached",
            Self::Write => "the kernel refuses to write breakpoints into code",
            Self::Differs => "the code in memory is not that of the file",
            Self::Confined => "the program confined itself by seccomp",
            Self::Signals => "the program uses SIGTRAP itself",
            Self::Waited => "the module's plan was not ready in time",
            Self::Modules => "too many modules were loaded",
            Self::Budget => "the budget did not suffice for each process",
            Self::Running => "it still ran when the recording ended",
            Self::Stack => "the program's alternate signal stack has no room for a breakpoint's signal",
        }
    }
}

/// Fixed part of a plan.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Head {
    layout: AtomicU64,
    pages: AtomicU32,
    sites: AtomicU32,
    /// Time of the file's last change (`st_ctime`), in nanoseconds, before its pages were read; 0: unknown.
    pub changed_ns: AtomicU64,
    /// Processes that compared their code with the pages, byte for byte, while the file was as it was then.
    pub verified: AtomicU64,
    /// 1: code may run before the sampler is ready, unless the module is loaded later.
    pub runs_early: AtomicU64,
    /// Process images, and children made by `fork`, that had the module.
    pub begun: AtomicU64,
    /// Those of them that ended by themselves, without other threads or signal handlers: none of their code was left
    /// midway.
    pub completed: AtomicU64,
    /// Breakpoints that were hit, in all processes.
    pub traps: AtomicU64,
    /// Processes that have breakpoints of their own: sites that others arm again are not armed there.
    pub with_own_breakpoints: AtomicU64,
    /// Those of them in which breakpoints were not armed all the time, by [`Failure`].
    pub failures: [AtomicU64; Failure::ALL.len()],
}

/// A page of code, with its sites.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Page {
    /// Offset in the file.
    pub file_offset: u64,
    /// XXH3 of its bytes.
    pub hash: u64,
    /// Position of its first site.
    pub first: u32,
    /// Number of its sites.
    pub sites: u32,
}

/// A site of a breakpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct Site(u32);

impl Site {
    /// The site at an offset of its page, with the byte that is there.
    pub fn new(offset: u16, byte: u8) -> Self {
        Self(u32::from(offset) & 0xfff | u32::from(byte) << 12)
    }

    /// Offset in its page.
    pub fn offset(self) -> u16 {
        (self.0 & 0xfff) as u16
    }

    /// The byte that the breakpoint replaces.
    pub fn byte(self) -> u8 {
        (self.0 >> 12) as u8
    }
}

/// Mean CPU time between two executions of a rare site, at least.
const RARE_NS: u64 = 25_000_000;

/// The upper bound of the two-sided 90 % interval of the mean of a Poisson count.
pub fn poisson_upper(count: u32) -> f64 {
    wilson_hilferty(f64::from(count) + 1.0, 1.645)
}

/// The lower bound.
fn poisson_lower(count: u32) -> f64 {
    if count == 0 {
        0.0
    } else {
        wilson_hilferty(f64::from(count), -1.645)
    }
}

/// A quantile of the χ² distribution with 2 `n` degrees of freedom, halved, from the normal distribution's `quantile`
/// (Wilson and Hilferty 1931).
fn wilson_hilferty(n: f64, quantile: f64) -> f64 {
    // The square root, by Newton's method: `core` has none.
    let mut root = n.max(1.0);
    while root * root - n > 1e-6 * n {
        root = (root + n / root) / 2.0;
    }
    let base = 1.0 - 1.0 / (9.0 * n) + quantile / (3.0 * root);
    n * base * base * base
}

const HEAD: usize = 256;
const _: () = assert!(size_of::<Head>() <= HEAD);

/// Offsets of a plan's parts.
#[derive(Clone, Copy, Debug)]
struct Layout {
    table: usize,
    sites: usize,
    functions: usize,
    hits: usize,
    removed_unhit: usize,
    exposures: usize,
    armed: usize,
    first_hits: usize,
    size: usize,
}

impl Layout {
    fn new(pages: u32, sites: u32) -> Self {
        let (pages, sites) = (pages as usize, sites as usize);
        let aligned = |at: usize| at.next_multiple_of(8);
        let table = HEAD;
        let at_sites = aligned(table + pages * size_of::<Page>());
        let functions = aligned(at_sites + sites * size_of::<Site>());
        let hits = aligned(functions + sites * size_of::<u32>());
        let removed_unhit = aligned(hits + sites * size_of::<AtomicU32>());
        let exposures = removed_unhit + sites.div_ceil(64) * size_of::<AtomicU64>();
        let armed = exposures + sites * size_of::<AtomicU64>();
        let first_hits = armed + sites * size_of::<AtomicU64>();
        Self {
            table,
            sites: at_sites,
            functions,
            hits,
            removed_unhit,
            exposures,
            armed,
            first_hits,
            size: first_hits + sites * size_of::<AtomicU64>(),
        }
    }
}

/// Largest number of pages or sites.
const MAX: u32 = 1 << 26;

/// A page of a new plan.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewPage {
    /// Offset in the file.
    pub file_offset: u64,
    /// XXH3 of its bytes.
    pub hash: u64,
    /// Its sites in order, with their functions.
    pub sites: Vec<(Site, u32)>,
}

/// The bytes of a new plan. `pages`: in order. `runs_early`, `changed_ns`: see [`Head`].
pub fn new_plan(pages: &[NewPage], runs_early: bool, changed_ns: u64) -> Vec<u8> {
    let count = pages.iter().map(|page| page.sites.len() as u32).sum();
    let layout = Layout::new(pages.len() as u32, count);
    let mut bytes = vec![0; layout.size];
    let mut put = |at: usize, value: &[u8]| {
        if let Some(site) = bytes.get_mut(at..at + value.len()) {
            site.copy_from_slice(value);
        }
    };
    put(core::mem::offset_of!(Head, layout), &LAYOUT.to_ne_bytes());
    put(core::mem::offset_of!(Head, pages), &(pages.len() as u32).to_ne_bytes());
    put(core::mem::offset_of!(Head, sites), &count.to_ne_bytes());
    put(
        core::mem::offset_of!(Head, runs_early),
        &u64::from(runs_early).to_ne_bytes(),
    );
    put(core::mem::offset_of!(Head, changed_ns), &changed_ns.to_ne_bytes());
    let mut first = 0usize;
    for (position, page) in pages.iter().enumerate() {
        let at = layout.table + position * size_of::<Page>();
        put(at, &page.file_offset.to_ne_bytes());
        put(at + 8, &page.hash.to_ne_bytes());
        put(at + 16, &(first as u32).to_ne_bytes());
        put(at + 20, &(page.sites.len() as u32).to_ne_bytes());
        for (site, function) in &page.sites {
            put(layout.sites + first * 4, &site.0.to_ne_bytes());
            put(layout.functions + first * 4, &function.to_ne_bytes());
            first += 1;
        }
    }
    bytes
}

/// A mapped plan.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    base: *mut u8,
    pages: u32,
    sites: u32,
    layout: Layout,
}

// SAFETY: what changes is atomic; the rest is never written after the file was made.
unsafe impl Send for Plan {}
// SAFETY: the same.
unsafe impl Sync for Plan {}

impl Plan {
    /// The plan in a mapping; `None` if it is none.
    ///
    /// # Safety
    /// `base` is aligned to pages, and `size` bytes from there on stay readable and writable; nobody writes to them but
    /// through this type.
    pub unsafe fn from_mapping(base: *mut u8, size: usize) -> Option<Self> {
        if size < HEAD {
            return None;
        }
        // SAFETY: large enough, aligned; any value is valid.
        let head = unsafe { &*base.cast::<Head>() };
        let (pages, sites) = (head.pages.load(Relaxed), head.sites.load(Relaxed));
        if head.layout.load(Relaxed) != LAYOUT || pages > MAX || sites > MAX {
            return None;
        }
        let layout = Layout::new(pages, sites);
        (layout.size <= size).then_some(Self {
            base,
            pages,
            sites,
            layout,
        })
    }

    fn part<T>(&self, at: usize, count: usize) -> &'static [T] {
        // SAFETY: within the mapping, by `from_mapping`, which stays; `T` is one of the types that were laid out here.
        unsafe { core::slice::from_raw_parts(self.base.add(at).cast(), count) }
    }

    /// The fixed part.
    pub fn head(&self) -> &'static Head {
        // SAFETY: as in `from_mapping`.
        unsafe { &*self.base.cast() }
    }

    /// Address of the mapping.
    pub fn address(&self) -> u64 {
        self.base as u64
    }

    /// Size of the mapping.
    pub fn size(&self) -> usize {
        self.layout.size
    }

    /// The pages, in order.
    pub fn pages(&self) -> &'static [Page] {
        self.part(self.layout.table, self.pages as usize)
    }

    /// All sites, in order.
    pub fn sites(&self) -> &'static [Site] {
        self.part(self.layout.sites, self.sites as usize)
    }

    /// By site: its function.
    pub fn functions(&self) -> &'static [u32] {
        self.part(self.layout.functions, self.sites as usize)
    }

    /// By site: number of hits.
    pub fn hits(&self) -> &'static [AtomicU32] {
        self.part(self.layout.hits, self.sites as usize)
    }

    /// By site, one bit each: whether the breakpoint was removed in a process without having been hit there.
    pub fn removed_unhit(&self) -> &'static [AtomicU64] {
        self.part(self.layout.removed_unhit, (self.sites as usize).div_ceil(64))
    }

    /// By site: for how long it was armed again, by the recording's clock, the program's CPU time in nanoseconds.
    fn exposures(&self) -> &'static [AtomicU64] {
        self.part(self.layout.exposures, self.sites as usize)
    }

    /// By site: since when it is armed again, plus one; 0: it is not.
    fn armed(&self) -> &'static [AtomicU64] {
        self.part(self.layout.armed, self.sites as usize)
    }

    /// By site: when it was hit first, in nanoseconds of `CLOCK_MONOTONIC`; 0: never.
    pub fn first_hits(&self) -> &'static [AtomicU64] {
        self.part(self.layout.first_hits, self.sites as usize)
    }

    /// The positions of a page's sites.
    pub fn sites_of(&self, page: &Page) -> core::ops::Range<usize> {
        let end = page.first.saturating_add(page.sites).min(self.sites);
        page.first.min(end) as usize..end as usize
    }

    /// The position of the site at an offset of the file.
    pub fn find(&self, file_offset: u64) -> Option<usize> {
        let start = file_offset & !(PAGE as u64 - 1);
        let page = self
            .pages()
            .binary_search_by_key(&start, |page| page.file_offset)
            .ok()?;
        let range = self.sites_of(self.pages().get(page)?);
        let sites = self.sites().get(range.clone())?;
        let wanted = (file_offset - start) as u16;
        Some(range.start + sites.binary_search_by_key(&wanted, |site| site.offset()).ok()?)
    }

    /// Notes a hit at a time `now` of the recording's clock. `monotonic_ns` reads `CLOCK_MONOTONIC`.
    pub fn note_hit(&self, site: usize, now: u64, monotonic_ns: impl FnOnce() -> u64) {
        let (Some(hits), Some(first)) = (self.hits().get(site), self.first_hits().get(site)) else {
            return;
        };
        if hits.fetch_add(1, Relaxed) == 0 {
            first.store(monotonic_ns(), Relaxed);
        }
        self.head().traps.fetch_add(1, Relaxed);
        self.end_exposure(site, now);
    }

    /// Says that a site is being armed again; false if it is already.
    pub fn begin_exposure(&self, site: usize, now: u64) -> bool {
        self.armed()
            .get(site)
            .is_some_and(|armed| armed.compare_exchange(0, now + 1, Relaxed, Relaxed).is_ok())
    }

    /// Says that a site is no longer armed.
    pub fn end_exposure(&self, site: usize, now: u64) {
        if let (Some(armed), Some(exposure)) = (self.armed().get(site), self.exposures().get(site))
            && let Some(since) = armed.swap(0, Relaxed).checked_sub(1)
        {
            exposure.fetch_add(now.saturating_sub(since), Relaxed);
        }
    }

    /// For how long a site was armed again, until a time `end`.
    pub fn watched(&self, site: usize, end: u64) -> u64 {
        let of = |list: &'static [AtomicU64]| list.get(site).map_or(0, |word| word.load(Relaxed));
        let since = of(self.armed()).checked_sub(1);
        of(self.exposures()).saturating_add(since.map_or(0, |since| end.saturating_sub(since)))
    }

    /// Hits of a site while it was armed again. `None`: it is armed for the first time.
    pub fn hits_while_rearmed(&self, site: usize) -> Option<u32> {
        let hits = self.hits().get(site)?.load(Relaxed);
        // The first hit removed it, unless it had been removed without a hit.
        if self.was_removed_unhit(site) {
            Some(hits)
        } else {
            hits.checked_sub(1)
        }
    }

    /// Whether a site should be armed again: its breakpoint was removed, with a hit or without, and it is neither rare nor
    /// frequent for certain.
    pub fn is_undecided(&self, site: usize) -> bool {
        let Some(again) = self.hits_while_rearmed(site) else {
            return false;
        };
        if self.armed().get(site).is_none_or(|armed| armed.load(Relaxed) != 0) {
            return false;
        }
        // Executions of a site that is just rare.
        let rare = self.watched(site, 0) as f64 / RARE_NS as f64;
        if rare == 0.0 {
            return again == 0;
        }
        poisson_lower(again) < rare && rare < poisson_upper(again)
    }

    /// Whether a plan is of the same contents of a file.
    pub fn is_of_same_module(&self, other: &Self) -> bool {
        let changed = |plan: &Self| plan.head().changed_ns.load(Relaxed);
        changed(self) == changed(other)
            && self.pages() == other.pages()
            && self.sites() == other.sites()
            && self.functions() == other.functions()
    }

    /// Whether a site was hit in any process.
    pub fn was_hit(&self, site: usize) -> bool {
        self.hits().get(site).is_some_and(|hits| hits.load(Relaxed) > 0)
    }

    /// Notes that a breakpoint was removed without a hit.
    pub fn note_removed_unhit(&self, site: usize) {
        if let Some(word) = self.removed_unhit().get(site / 64) {
            word.fetch_or(1 << (site % 64), Relaxed);
        }
    }

    /// Whether a breakpoint was removed without a hit in any process.
    pub fn was_removed_unhit(&self, site: usize) -> bool {
        self.removed_unhit()
            .get(site / 64)
            .is_some_and(|word| word.load(Relaxed) >> (site % 64) & 1 != 0)
    }

    /// Notes why a process could not observe the module, or not all the time.
    pub fn note_failure(&self, failure: Failure) {
        if let Some(count) = self.head().failures.get(failure as usize) {
            count.fetch_add(1, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(align(4096))]
    struct Aligned([u8; 8192]);

    #[test]
    fn a_plan_is_read_as_it_was_made() {
        let site = |offset, byte| (Site::new(offset, byte), 7);
        let page = |file_offset, hash, sites| NewPage {
            file_offset,
            hash,
            sites,
        };
        let pages = [
            page(0x1000, 11, vec![site(0, 0x55), site(0xfff, 0xc3)]),
            page(0x3000, 12, vec![site(0x123, 0x90)]),
        ];
        let bytes = new_plan(&pages, true, 9);
        let mut memory = Box::new(Aligned([0; 8192]));
        memory.0[..bytes.len()].copy_from_slice(&bytes);
        // SAFETY: aligned and large enough; nobody else uses it.
        let plan = unsafe { Plan::from_mapping(memory.0.as_mut_ptr(), bytes.len()) }.unwrap();
        assert_eq!(plan.size(), bytes.len());
        assert_eq!((plan.pages().len(), plan.sites().len()), (2, 3));
        assert_eq!(plan.head().runs_early.load(Relaxed), 1);
        assert_eq!(plan.head().changed_ns.load(Relaxed), 9);
        assert_eq!(
            [0x1000, 0x1fff, 0x3123].map(|at| plan.find(at)),
            [Some(0), Some(1), Some(2)]
        );
        assert_eq!([0x1001, 0x2000, 0x3122, u64::MAX].map(|at| plan.find(at)), [None; 4]);
        assert_eq!(plan.sites()[2].byte(), 0x90);
        assert_eq!(plan.functions(), [7; 3]);
        plan.note_hit(1, 5, || 3);
        plan.note_hit(1, 5, || 4);
        plan.note_removed_unhit(2);
        plan.note_hit(99, 5, || 3);
        plan.note_failure(Failure::Traced);
        assert_eq!([0, 1, 2].map(|at| plan.was_hit(at)), [false, true, false]);
        assert_eq!([0, 1, 2].map(|at| plan.first_hits()[at].load(Relaxed)), [0, 3, 0]);
        assert_eq!([0, 1, 2].map(|at| plan.was_removed_unhit(at)), [false, false, true]);
        assert_eq!(plan.head().failures[Failure::Traced as usize].load(Relaxed), 1);
        // Too short, or something else.
        // SAFETY: as above.
        assert!(unsafe { Plan::from_mapping(memory.0.as_mut_ptr(), bytes.len() - 1) }.is_none());
        let mut other = Box::new(Aligned([1; 8192]));
        // SAFETY: as above.
        assert!(unsafe { Plan::from_mapping(other.0.as_mut_ptr(), 8192) }.is_none());
    }

    #[test]
    fn sites_are_armed_again_until_they_are_rare_or_frequent() {
        let pages = [NewPage {
            file_offset: 0,
            hash: 0,
            sites: (0..3).map(|at| (Site::new(at, 0x90), 0)).collect(),
        }];
        let bytes = new_plan(&pages, false, 0);
        let mut memory = Box::new(Aligned([0; 8192]));
        memory.0[..bytes.len()].copy_from_slice(&bytes);
        // SAFETY: aligned and large enough; nobody else uses it.
        let plan = unsafe { Plan::from_mapping(memory.0.as_mut_ptr(), bytes.len()) }.unwrap();
        let second = 1_000_000_000;
        assert!(!plan.is_undecided(0), "it was not hit");
        plan.note_hit(0, second, || 3);
        assert!(plan.is_undecided(0));
        assert!(plan.begin_exposure(0, 2 * second));
        assert!(!plan.begin_exposure(0, 3 * second), "it is armed already");
        assert!(!plan.is_undecided(0));
        assert_eq!(plan.watched(0, 4 * second), 2 * second);
        plan.note_hit(0, 2 * second + second / 20, || 3);
        assert!(plan.is_undecided(0), "once in 50 ms");
        assert!(plan.begin_exposure(0, 3 * second));
        plan.note_hit(0, 4 * second, || 3);
        assert_eq!(plan.watched(0, 9 * second), second + second / 20);
        assert!(!plan.is_undecided(0), "twice in a second: rare");
        // Hit at once when it is armed again.
        plan.note_hit(1, second, || 3);
        assert!(plan.begin_exposure(1, 2 * second));
        plan.note_hit(1, 2 * second, || 3);
        assert!(!plan.is_undecided(1));
        // Removed without a hit.
        plan.note_removed_unhit(2);
        assert!(plan.is_undecided(2) && plan.begin_exposure(2, second));
        assert_eq!(plan.hits_while_rearmed(2), Some(0));
        plan.note_hit(2, 2 * second, || 3);
        assert_eq!(plan.hits_while_rearmed(2), Some(1));
        assert!(!plan.is_undecided(2), "once in a second");
    }

    #[test]
    fn poisson_ends_are_chi_squared_quantiles() {
        // The approximation is within a hundredth of the upper bound.
        for (count, lower, upper) in [
            (0, 0.0, 2.996),
            (1, 0.0513, 4.744),
            (2, 0.355, 6.296),
            (10, 5.425, 16.96),
            (1000, 948.3, 1053.7),
        ] {
            let found = (poisson_lower(count), poisson_upper(count));
            assert!((found.0 - lower).abs() < upper / 100.0, "{count}: {found:?}");
            assert!((found.1 - upper).abs() < upper / 100.0, "{count}: {found:?}");
        }
    }

    #[test]
    fn failures_have_the_numbers_of_their_order() {
        for (number, failure) in Failure::ALL.into_iter().enumerate() {
            assert_eq!(failure as usize, number);
        }
    }

    #[test]
    fn keys_depend_on_path_and_inode() {
        assert_ne!(key(b"/a", 1), key(b"/a", 2));
        assert_ne!(key(b"/a", 1), key(b"/b", 1));
    }
}
