//! Arms and disarms breakpoints.
//!
//! The image of a module, with all breakpoints, is mapped over its code. It is shared by all processes, so that what one
//! of them hits is armed in none. Where that is impossible, breakpoints are written into each process: whole pages at the
//! module's start, when nobody runs its code. Later, one byte is written at a time, which threads see at once or not at
//! all.

use super::modules::{self, Module};
use super::{code, plans, verification};
use crate::account;
use crate::isolation;
use crate::mappings;
use crate::sys::{self, syscall};
use core::ffi::CStr;
use core::ops::Range;
use core::sync::atomic::Ordering::Relaxed;
use pleach_wire::coverage::{BREAKPOINT, Failure, PAGE, Page, Plan};

/// Arms all sites of a module that were hit in no process so far: maps its image over its code, or writes breakpoints
/// into it where that is impossible. `path` and `inode`: its file.
pub fn arm(module: &Module, path: &[u8], inode: u64) {
    let Some(plan) = module.plan() else { return };
    if let Err(failure) = verification::verify(module, &plan, path, inode) {
        module.fail(failure);
        return;
    }
    if map_image(module, path, inode) {
        return;
    }
    plan.head().with_own_breakpoints.fetch_add(1, Relaxed);
    let is_single = isolation::is_single();
    for page in plan.pages() {
        if let Err(failure) = arm_page(module, &plan, page, is_single) {
            module.fail(failure);
        }
    }
}

/// Maps the image over the code. False if that is impossible, for instance because its folder is mounted `noexec`.
fn map_image(module: &Module, path: &[u8], inode: u64) -> bool {
    let range = module.range();
    if path.len() > mappings::MAX_PATH || !mappings::note_replaced(range.start, inode, path) {
        return false;
    }
    let Some((fd, image_inode)) = plans::open_image(path, inode) else {
        return false;
    };
    let (length, offset) = (range.end - range.start, range.start.wrapping_sub(module.base()));
    let map = |at: u64, protection, flags| {
        // SAFETY: Kernel: a new mapping, or one with the same bytes, apart from breakpoints, that replaces the code at
        // once.
        unsafe { syscall!(libc::SYS_mmap, at, length, protection, flags, fd, offset) }
    };
    let replace = || {
        map(
            range.start,
            libc::PROT_READ | libc::PROT_EXEC,
            libc::MAP_PRIVATE | libc::MAP_FIXED,
        )
    };
    // The image may be shorter: memory beyond it would fault.
    let fits = || sys::file_size(fd).is_some_and(|size| offset + length <= size as u64);
    let map_new = || {
        let new = if fits() {
            map(0, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED)
        } else {
            -1
        };
        (new >= 0).then(|| {
            mappings::note_own(new as u64);
            new as *mut u8
        })
    };
    let mut is_mapped = false;
    if let Some(writable) = module.kept_image().or_else(map_new) {
        // Before the code is replaced: another thread may meet a breakpoint at once.
        // SAFETY: it is as long as the code.
        unsafe { module.set_image(writable) };
        module.set_inode(image_inode);
        is_mapped = replace() >= 0;
        if !is_mapped {
            module.drop_image();
            module.set_inode(inode);
        }
    }
    sys::close(fd);
    is_mapped
}

/// Maps the module's own file over its image again. False if that is impossible.
fn unmap_image(module: &Module) -> bool {
    let range = module.range();
    let Some((inode, path)) = mappings::replaced(range.start) else {
        return false;
    };
    let name = mappings::terminated(path);
    let name = name.as_ref().and_then(|name| CStr::from_bytes_until_nul(name).ok());
    let Some(name) = name else {
        return false;
    };
    let fd = sys::open_to_read(name) as i32;
    if fd < 0 {
        return false;
    }
    let (protection, flags) = (libc::PROT_READ | libc::PROT_EXEC, libc::MAP_PRIVATE | libc::MAP_FIXED);
    let offset = range.start.wrapping_sub(module.base());
    let is_it = sys::identity(fd).is_some_and(|(_, found)| found == inode);
    let length = range.end - range.start;
    let map = || {
        // SAFETY: Kernel: the mapping has the same bytes, without breakpoints, and replaces the other at once.
        unsafe { syscall!(libc::SYS_mmap, range.start, length, protection, flags, fd, offset) >= 0 }
    };
    let mapped = is_it && map();
    sys::close(fd);
    if mapped {
        module.drop_image();
        module.set_inode(inode);
    }
    mapped
}

fn arm_page(module: &Module, plan: &Plan, page: &Page, is_single: bool) -> Result<(), Failure> {
    let wanted = || plan.sites_of(page).filter(|&site| !plan.was_hit(site));
    if wanted().next().is_none() {
        return Ok(());
    }
    let address = module.base().wrapping_add(page.file_offset);
    if !module.contains(address) {
        return Ok(());
    }
    // SAFETY: a page of the module's code, which is readable.
    let mut bytes = unsafe { *(address as *const [u8; PAGE]) };
    let sites = plan.sites();
    for site in wanted() {
        let Some(at) = sites.get(site).map(|site| usize::from(site.offset())) else {
            continue;
        };
        if !module.set_armed(site) {
            return Err(Failure::Write);
        }
        if let Some(byte) = bytes.get_mut(at) {
            *byte = BREAKPOINT;
        }
        if !is_single && !code::write(address + at as u64, &[BREAKPOINT]) {
            module.clear_armed(site);
            return Err(Failure::Write);
        }
    }
    if is_single && !code::write(address, &bytes) {
        for site in wanted() {
            module.clear_armed(site);
        }
        return Err(Failure::Write);
    }
    Ok(())
}

/// Address of a site in this process, and its original byte.
pub fn locate(module: &Module, plan: &Plan, site: usize) -> Option<(u64, u8)> {
    let page = plan
        .pages()
        .partition_point(|page| page.first as usize <= site)
        .checked_sub(1)?;
    let (page, site) = (plan.pages().get(page)?, plan.sites().get(site)?);
    let address = module.base().wrapping_add(page.file_offset + u64::from(site.offset()));
    module.contains(address).then(|| (address, site.byte()))
}

/// Whether a breakpoint is armed, in this process or in the image, where an instruction is to be read.
pub fn is_armed(module: &Module, plan: &Plan, site: usize) -> bool {
    if !module.has_image() {
        return module.is_armed(site);
    }
    // SAFETY: code of a loaded module, which was just read.
    locate(module, plan, site)
        .is_some_and(|(address, _)| unsafe { (address as *const u8).read_volatile() } == BREAKPOINT)
}

/// Whether the module's image shows a breakpoint where code is, or was until the program unloaded it.
fn shows_breakpoint(module: &Module, plan: &Plan, site: usize) -> bool {
    module.has_image()
        && locate(module, plan, site).is_some_and(|(address, _)| code::byte_at(address) == Some(BREAKPOINT))
}

/// Writes a byte of the image, for all processes. `Some` if there is an image.
fn write_image(module: &Module, address: u64, byte: u8) -> Option<()> {
    // SAFETY: a byte of a mapping that stays.
    module
        .image_byte(address)
        .map(|target| unsafe { target.write_volatile(byte) })
}

/// Puts the original byte in the place of a breakpoint, in code that is loaded for certain. False if that is impossible.
pub fn restore(module: &Module, address: u64, byte: u8) -> bool {
    // SAFETY: loaded code. It differs from the image where the program, or we, wrote to this page before.
    let is_seen = || unsafe { (address as *const u8).read_volatile() } == byte;
    write_image(module, address, byte).is_some() && is_seen() || code::restore(address, byte)
}

/// Arms one site. False if that failed.
pub fn arm_one(module: &Module, site: usize) -> bool {
    let Some((address, byte)) = module.plan().and_then(|plan| locate(module, &plan, site)) else {
        return false;
    };
    if module.has_image() {
        return write_image(module, address, BREAKPOINT).is_some() && code::byte_at(address) == Some(BREAKPOINT);
    }
    // Another thread, or the code that the tick interrupted, may be unloading the module.
    if code::byte_at(address) != Some(byte) || !module.set_armed(site) {
        return false;
    }
    let is_written = code::write(address, &[BREAKPOINT]);
    if !is_written {
        module.clear_armed(site);
    }
    is_written
}

/// Removes all breakpoints from this process.
pub fn disarm_all(failure: Failure) {
    for module in modules::all().iter().filter(|module| module.is_loaded()) {
        let Some(plan) = module.plan() else { continue };
        module.fail(failure);
        if module.has_image() && unmap_image(module) {
            continue;
        }
        for site in 0..plan.sites().len() {
            if (module.clear_armed(site) || shows_breakpoint(module, &plan, site))
                && let Some((address, byte)) = locate(module, &plan, site)
                && code::byte_at(address) == Some(BREAKPOINT)
            {
                code::restore(address, byte);
            }
        }
    }
}

/// Sites of the function of a site.
fn sites_around(plan: &Plan, site: usize) -> Range<usize> {
    let functions = plan.functions();
    let Some(function) = functions.get(site) else {
        return 0..0;
    };
    let before = functions.get(..site).unwrap_or_default();
    let after = functions.get(site..).unwrap_or_default();
    let start = site - before.iter().rev().take_while(|other| *other == function).count();
    start..site + after.iter().take_while(|other| *other == function).count()
}

/// Removes the breakpoints of a function, because the budget is spent and the function is being executed: its next hits
/// would come soon. Those of functions that do not run stay.
///
/// With an image, a site that another process arms at the same time may stay armed. Its hits count, the time does not.
pub fn disarm_function(module: &Module, plan: &Plan, site: usize) {
    let range = sites_around(plan, site);
    let now = account::clock();
    for site in range {
        plan.end_exposure(site, now);
        if (module.clear_armed(site) || is_armed(module, plan, site))
            && let Some((address, byte)) = locate(module, plan, site)
        {
            if !plan.was_hit(site) {
                plan.note_removed_unhit(site);
            }
            restore(module, address, byte);
        }
    }
}
