//! The observed modules of this process.

use crate::mappings;
use crate::sys::syscall;
use core::cell::UnsafeCell;
use core::ptr::null_mut;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64};
use pleach_wire::coverage::{Failure, Plan};

const MAX_MODULES: usize = 64;
/// No failure was noted.
const NONE: u8 = u8::MAX;

/// An executable mapping of a module, or of a module that was unloaded, which is used again when that is loaded again.
#[derive(Debug)]
pub struct Module {
    start: AtomicU64,
    /// One past the last address; 0: it was unloaded.
    end: AtomicU64,
    /// Length in bytes, of an unloaded one as well.
    length: AtomicU64,
    /// Address of the file's first byte, if all of it were mapped there.
    base: AtomicU64,
    inode: AtomicU64,
    /// The name of its plan.
    key: AtomicU64,
    /// One bit for each site with an armed breakpoint.
    armed: AtomicPtr<AtomicU64>,
    failure: AtomicU8,
    /// Whether its plan counts this process.
    is_counted: AtomicBool,
    /// Where the image that is mapped over the module's code can be written; null: there is none, breakpoints are this
    /// process's own.
    image: AtomicPtr<u8>,
    /// The same, of an image that is not mapped over the code now; null: there was none.
    kept_image: AtomicPtr<u8>,
    plan: UnsafeCell<Option<Plan>>,
}

// SAFETY: the plan is written before the module is counted, and read afterwards only.
unsafe impl Sync for Module {}

static MODULES: [Module; MAX_MODULES] = [const {
    Module {
        start: AtomicU64::new(0),
        end: AtomicU64::new(0),
        length: AtomicU64::new(0),
        base: AtomicU64::new(0),
        inode: AtomicU64::new(0),
        key: AtomicU64::new(0),
        armed: AtomicPtr::new(null_mut()),
        failure: AtomicU8::new(NONE),
        is_counted: AtomicBool::new(false),
        image: AtomicPtr::new(null_mut()),
        kept_image: AtomicPtr::new(null_mut()),
        plan: UnsafeCell::new(None),
    }
}; MAX_MODULES];
static COUNT: AtomicU32 = AtomicU32::new(0);

impl Module {
    /// Its plan.
    pub fn plan(&self) -> Option<Plan> {
        // SAFETY: written once, before the module was counted.
        unsafe { *self.plan.get() }
    }

    /// Address of the file's first byte, if all of it were mapped there.
    pub fn base(&self) -> u64 {
        self.base.load(Relaxed)
    }

    /// Whether an address is in it.
    pub fn contains(&self, address: u64) -> bool {
        self.start.load(Relaxed) <= address && address < self.end.load(Acquire)
    }

    /// Whether it is still loaded.
    pub fn is_loaded(&self) -> bool {
        self.end.load(Acquire) != 0
    }

    /// First address, and one past the last.
    pub fn range(&self) -> core::ops::Range<u64> {
        self.start.load(Relaxed)..self.end.load(Acquire)
    }

    /// Sets the inode of the file that is mapped.
    pub fn set_inode(&self, inode: u64) {
        self.inode.store(inode, Relaxed);
    }

    /// Says that the module's code is now that of an image. `writable`: a mapping of the image's code that can be
    /// written, for good.
    ///
    /// # Safety
    /// It is as long as the module's code.
    pub unsafe fn set_image(&self, writable: *mut u8) {
        self.kept_image.store(writable, Relaxed);
        self.image.store(writable, Release);
    }

    /// Where the image of its code can be written that it had before, if it had one.
    pub fn kept_image(&self) -> Option<*mut u8> {
        Some(self.kept_image.load(Relaxed)).filter(|image| !image.is_null())
    }

    /// Whether the module's code is that of an image.
    pub fn has_image(&self) -> bool {
        !self.image.load(Relaxed).is_null()
    }

    /// Says that the module's code is its own again. The writable mapping stays: a thread may be about to use it, and the
    /// module may be loaded again.
    pub fn drop_image(&self) {
        self.image.store(null_mut(), Relaxed);
    }

    /// Where the byte at an address of the module's code can be written for all processes.
    pub fn image_byte(&self, address: u64) -> Option<*mut u8> {
        let image = self.image.load(Acquire);
        let offset = address.wrapping_sub(self.start.load(Relaxed));
        // SAFETY: by the contract of `set_image`, it is in the mapping.
        (!image.is_null() && self.contains(address)).then(|| unsafe { image.add(offset as usize) })
    }

    fn word(&self, site: usize) -> Option<&AtomicU64> {
        let armed = self.armed.load(Acquire);
        let known = self.plan().is_some_and(|plan| site < plan.sites().len());
        // SAFETY: mapped for all sites of the plan, for good.
        (known && !armed.is_null()).then(|| unsafe { &*armed.add(site / 64) })
    }

    /// Whether a breakpoint is armed.
    pub fn is_armed(&self, site: usize) -> bool {
        self.word(site)
            .is_some_and(|word| word.load(Relaxed) >> (site % 64) & 1 != 0)
    }

    /// Says that a breakpoint is armed. False if that is impossible.
    pub fn set_armed(&self, site: usize) -> bool {
        match self.word(site) {
            Some(word) => {
                word.fetch_or(1 << (site % 64), Relaxed);
                true
            }
            None => false,
        }
    }

    /// Says that a breakpoint is not armed; returns whether it was.
    pub fn clear_armed(&self, site: usize) -> bool {
        self.word(site)
            .is_some_and(|word| word.fetch_and(!(1 << (site % 64)), Relaxed) >> (site % 64) & 1 != 0)
    }

    /// Counts this process for the plan, once.
    fn count(&self) {
        let Some(plan) = self.plan() else { return };
        if self.is_counted.swap(true, Relaxed) {
            return;
        }
        plan.head().begun.fetch_add(1, Relaxed);
        if let Some(failure) = Failure::ALL.get(self.failure.load(Relaxed) as usize) {
            plan.note_failure(*failure);
        }
    }

    fn place(&self, mapped: &Mapped) {
        self.start.store(mapped.start, Relaxed);
        self.base.store(mapped.start.wrapping_sub(mapped.offset), Relaxed);
        self.inode.store(mapped.inode, Relaxed);
        self.length.store(mapped.end - mapped.start, Relaxed);
        self.end.store(mapped.end, Release);
    }

    /// Notes that the module is not observed all the time; the first reason counts.
    pub fn fail(&self, failure: Failure) {
        if self
            .failure
            .compare_exchange(NONE, failure as u8, Relaxed, Relaxed)
            .is_ok()
            && let Some(plan) = self.plan()
        {
            plan.note_failure(failure);
        }
    }
}

/// All modules so far.
pub fn all() -> &'static [Module] {
    MODULES
        .get(..(COUNT.load(Acquire) as usize).min(MAX_MODULES))
        .unwrap_or_default()
}

/// The names of all plans so far; 0 where there are fewer.
pub fn keys() -> [u64; MAX_MODULES] {
    let mut keys = [0; MAX_MODULES];
    for (key, module) in keys.iter_mut().zip(all()) {
        *key = module.key.load(Relaxed);
    }
    keys
}

/// The loaded module that an address is in, and its position.
pub fn find(address: u64) -> Option<(usize, &'static Module)> {
    all().iter().enumerate().find(|(_, module)| module.contains(address))
}

/// A mapping of a module, as it is registered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mapped {
    /// First address.
    pub start: u64,
    /// One past the last.
    pub end: u64,
    /// Offset in the file.
    pub offset: u64,
    /// Inode of the file.
    pub inode: u64,
}

/// The position of a module that is registered with this mapping.
pub fn position(mapped: &Mapped) -> Option<usize> {
    all().iter().position(|module| {
        module.start.load(Relaxed) == mapped.start
            && module.end.load(Relaxed) == mapped.end
            && module.inode.load(Relaxed) == mapped.inode
    })
}

/// Registers a module, and counts this process for its plan. `None`: there are too many. The caller is the only one that
/// registers modules at the time.
pub fn register(mapped: &Mapped, plan: Plan, key: u64) -> Option<(usize, &'static Module)> {
    let count = COUNT.load(Relaxed) as usize;
    let Some(module) = MODULES.get(count) else {
        plan.head().begun.fetch_add(1, Relaxed);
        plan.note_failure(Failure::Modules);
        return None;
    };
    mappings::note_own(plan.address());
    module.key.store(key, Relaxed);
    module.armed.store(map_bits(plan.sites().len()), Relaxed);
    // SAFETY: nobody reads it before the module is in the table.
    unsafe { *module.plan.get() = Some(plan) };
    module.count();
    module.place(mapped);
    COUNT.store(count as u32 + 1, Release);
    Some((count, module))
}

/// Registers a module that was unloaded, with the plan that it had. `None`: it was not. The caller is the only one that
/// registers modules at the time.
pub fn register_again(mapped: &Mapped, key: u64) -> Option<(usize, &'static Module)> {
    let is_it = |module: &Module| {
        !module.is_loaded()
            && module.key.load(Relaxed) == key
            && module.length.load(Relaxed) == mapped.end - mapped.start
            && module.start.load(Relaxed).wrapping_sub(module.base()) == mapped.offset
    };
    let (position, module) = all().iter().enumerate().find(|(_, module)| is_it(module))?;
    for site in (0..module.plan()?.sites().len()).step_by(64) {
        if let Some(word) = module.word(site) {
            word.store(0, Relaxed);
        }
    }
    mappings::move_replaced(module.start.load(Relaxed), mapped.start, mapped.inode);
    module.count();
    module.place(mapped);
    Some((position, module))
}

/// Forgets the modules that are no longer mapped. `seen`: one bit for each that is.
pub fn retain(seen: u64) {
    for (position, module) in all().iter().enumerate() {
        if seen >> position & 1 == 0 {
            module.end.store(0, Release);
            module.drop_image();
        }
    }
}

/// Zeroed bits; null if there is no memory.
fn map_bits(bits: usize) -> *mut AtomicU64 {
    let (protection, flags) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
    );
    let bytes = bits.div_ceil(64).max(1) * size_of::<u64>();
    // SAFETY: Kernel: the mapping is new.
    let address = unsafe { syscall!(libc::SYS_mmap, 0, bytes, protection, flags, -1isize, 0) };
    if address < 0 {
        null_mut()
    } else {
        address as *mut AtomicU64
    }
}

/// Counts the modules of a child made by `fork`.
#[inline(always)]
pub fn begin_child() {
    for module in all() {
        module.is_counted.store(false, Relaxed);
        if module.is_loaded() {
            module.count();
        }
    }
}

/// Notes for all modules that none of their code was left midway. `by`: 1, or its negative to undo that.
pub fn note_completed(by: u64) {
    let counted = all().iter().filter(|module| module.is_counted.load(Relaxed));
    for plan in counted.filter_map(Module::plan) {
        plan.head().completed.fetch_add(by, Relaxed);
    }
}
