//! A module's plan: its sites, and the hashes of the pages that they lie in.

#![allow(unsafe_code, reason = "a plan is mapped")]

use memmap2::{MmapMut, MmapOptions};
use pleach_annotate::binary::Binary;
use pleach_annotate::breakpoint_sites::{BreakpointSites, Refused};
use pleach_annotate::map::{AddressMap, MapError};
use pleach_wire::coverage::{
    BREAKPOINT, IMAGE_EXTENSION, NewPage, PAGE, Plan, Site, changed_ns, key, new_plan, page_hash,
};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{Result, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Extension of the file, beside a plan, with the module's path, for [`ModulePlan::left_in`].
const PATH_EXTENSION: &str = "path";

/// The plan of a module.
#[derive(Debug)]
pub(super) struct ModulePlan {
    /// The module's path.
    pub path: PathBuf,
    /// Its build-id.
    pub build_id: Option<Vec<u8>>,
    /// The outcome.
    pub outcome: Outcome,
}

/// The outcome of a request.
#[derive(Debug)]
pub(super) enum Outcome {
    /// The module is not annotated.
    Nothing,
    /// It cannot be observed.
    Refused(String),
    /// Its plan.
    Ready {
        /// Its segments, with the position of each one's site in the plan.
        segments: Vec<PlannedSegment>,
        /// Whether it is a program, not a library.
        is_program: bool,
        /// The file that processes share.
        file: MmapMut,
    },
}

/// A segment of code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PlannedSegment {
    /// Offset in the file of its first byte.
    pub start: u64,
    /// Offset one past its last byte.
    pub end: u64,
    /// Position of its site in the plan.
    pub site: Option<u32>,
    /// Sites of other segments show that it ran.
    pub is_shown: bool,
    /// Position of the segment that ran if this one did.
    pub dominator: Option<u32>,
}

impl ModulePlan {
    /// The shared file, if there is one.
    pub fn plan(&self) -> Option<Plan> {
        match &self.outcome {
            // SAFETY: the mapping is aligned to pages and lives as long as `self`; only atomics change.
            Outcome::Ready { file, .. } => unsafe { Plan::from_mapping(file.as_ptr().cast_mut(), file.len()) },
            _ => None,
        }
    }

    /// The plan of a module that cannot be observed.
    pub fn refused(path: &Path, reason: String) -> Self {
        Self {
            path: path.to_owned(),
            build_id: None,
            outcome: Outcome::Refused(reason),
        }
    }

    /// Makes the plan of the file at a path, if it still has the inode, and stores it in the folder under its key.
    ///
    /// # Errors
    /// The plan cannot be stored.
    pub fn make(path: &Path, inode: u64, folder: &Path) -> Result<Self> {
        let (mut plan, bytes, image) = examine(path, inode);
        let name = format!("{:016x}", key(path.as_os_str().as_encoded_bytes(), inode));
        if let Some(image) = image {
            // Before the plan, which processes look for.
            let file = std::fs::File::create_new(folder.join(format!("{name}{}", IMAGE_EXTENSION.to_string_lossy())))?;
            file.set_len(image.length)?;
            for (offset, bytes) in &image.parts {
                file.write_all_at(bytes, *offset)?;
            }
        }
        let mut temporary = tempfile::Builder::new().prefix(".plan-").tempfile_in(folder)?;
        temporary.write_all(&bytes)?;
        let target = folder.join(name);
        if let Outcome::Ready { file, .. } = &mut plan.outcome {
            // SAFETY: the file is ours and does not shrink; processes change only its atomics.
            *file = unsafe { MmapMut::map_mut(temporary.as_file())? };
            std::fs::write(target.with_extension(PATH_EXTENSION), path.as_os_str().as_bytes())?;
        }
        // Last: a plan that processes have mapped must not be refused, which empties its file.
        temporary.persist(&target).map_err(|error| error.error)?;
        Ok(plan)
    }

    /// The plans in a folder that another recorder has left, with what processes noted. A module that has changed since
    /// is refused.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn left_in(folder: &Path) -> Result<Vec<Self>> {
        let mut plans = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            let file = entry?.path();
            let shared = file.with_extension("");
            // Without a plan, the recorder was killed before a process had it.
            if file.extension().is_some_and(|extension| extension == PATH_EXTENSION) && shared.exists() {
                let path = PathBuf::from(OsStr::from_bytes(&std::fs::read(&file)?));
                plans.push(Self::left(&path, &shared).unwrap_or_else(|| {
                    let reason = "the file has changed since: what its breakpoints showed is lost".to_owned();
                    Self::refused(&path, reason)
                }));
            }
        }
        plans.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(plans)
    }

    /// The plan of a module, from the file that processes shared; `None` if the module is no longer the same.
    fn left(path: &Path, shared: &Path) -> Option<Self> {
        let (mut plan, bytes, _) = examine(path, path.metadata().ok()?.ino());
        let Outcome::Ready { file, .. } = &mut plan.outcome else {
            return None;
        };
        let shared = std::fs::File::open(shared).ok()?;
        if shared.metadata().ok()?.len() != bytes.len() as u64 {
            return None;
        }
        let mut new = MmapMut::map_anon(bytes.len()).ok()?;
        new.copy_from_slice(&bytes);
        // SAFETY: aligned to pages, and alive until the end of this function.
        let new = unsafe { Plan::from_mapping(new.as_mut_ptr(), new.len()) }?;
        // A private mapping: processes that still run do not see what is changed here.
        // SAFETY: no recorder is left that could shorten the file; processes change only its atomics.
        *file = unsafe { MmapOptions::new().map_copy(&shared) }.ok()?;
        plan.plan()?.is_of_same_module(&new).then_some(plan)
    }
}

/// The code of a module with breakpoints.
struct Image {
    /// Length of the file.
    length: u64,
    /// Its executable segments, whole pages, by offset in the file.
    parts: Vec<(u64, Vec<u8>)>,
}

/// The plan of a file, and what is shared: the plan's bytes, and the image.
fn examine(path: &Path, inode: u64) -> (ModulePlan, Vec<u8>, Option<Image>) {
    let mut plan = ModulePlan {
        path: path.to_owned(),
        build_id: None,
        outcome: Outcome::Nothing,
    };
    let refused = |mut plan: ModulePlan, reason: String| {
        plan.outcome = Outcome::Refused(reason);
        (plan, Vec::new(), None)
    };
    // Files of the kernel, deleted files and others that cannot be read have no plan.
    let Ok(metadata) = path.metadata() else {
        return (plan, Vec::new(), None);
    };
    let Ok(binary) = Binary::open(path) else {
        return (plan, Vec::new(), None);
    };
    if !binary.is_annotated() {
        return (plan, Vec::new(), None);
    }
    if metadata.ino() != inode {
        return refused(plan, "the file was replaced while it ran".to_owned());
    }
    // Before the contents are read.
    let changed_ns = changed_ns(metadata.ctime(), metadata.ctime_nsec());
    plan.build_id.clone_from(&binary.build_id);
    let map = match AddressMap::from_binary(binary) {
        Ok(map) => map,
        Err(MapError::NotAnnotated { .. }) => return (plan, Vec::new(), None),
        Err(error) => return refused(plan, error.to_string()),
    };
    let sites = BreakpointSites::of_map(&map);
    let reason = sites
        .refused
        .iter()
        .find(|reason| matches!(reason, Refused::SystemCalls { .. }));
    if let Some(reason) = reason {
        return refused(plan, reason.to_string());
    }
    let Ok(contents) = std::fs::read(path) else {
        return (plan, Vec::new(), None);
    };
    let (segments, pages) = pages(&map, &sites, &contents);
    let bytes = new_plan(&pages, sites.runs_early, changed_ns);
    let image = image(&pages, &contents);
    let Ok(empty) = MmapMut::map_anon(1) else {
        return (plan, Vec::new(), None);
    };
    plan.outcome = Outcome::Ready {
        segments,
        is_program: map.binary.is_program,
        file: empty,
    };
    (plan, bytes, Some(image))
}

/// The image: all pages, with breakpoints at all sites.
fn image(pages: &[NewPage], contents: &[u8]) -> Image {
    let mut parts: Vec<(u64, Vec<u8>)> = Vec::new();
    for page in pages {
        let mut bytes = page_at(contents, page.file_offset);
        for (site, _) in &page.sites {
            bytes[usize::from(site.offset())] = BREAKPOINT;
        }
        match parts.last_mut() {
            Some((offset, part)) if *offset + part.len() as u64 == page.file_offset => part.extend(bytes),
            _ => parts.push((page.file_offset, bytes.to_vec())),
        }
    }
    Image {
        length: (contents.len() as u64).next_multiple_of(PAGE as u64),
        parts,
    }
}

/// A page of a file, as the kernel maps it: zeroes follow the end.
fn page_at(contents: &[u8], offset: u64) -> [u8; PAGE] {
    let mut bytes = [0; PAGE];
    let from = contents.get(offset as usize..).unwrap_or_default();
    let length = from.len().min(PAGE);
    bytes[..length].copy_from_slice(&from[..length]);
    bytes
}

/// The segments with sites, and the pages of code with their sites in the order of the file.
fn pages(map: &AddressMap, sites: &BreakpointSites, contents: &[u8]) -> (Vec<PlannedSegment>, Vec<NewPage>) {
    let offset = |address| map.binary.offset_of_address(address);
    let mut by_offset: BTreeMap<u64, usize> = BTreeMap::new();
    for (position, segment) in sites.segments.iter().enumerate() {
        let Some(at) = segment.site.and_then(offset) else {
            continue;
        };
        // A trap of the program itself.
        let byte = usize::try_from(at).ok().and_then(|at| contents.get(at));
        if byte.is_some_and(|byte| *byte != BREAKPOINT) {
            by_offset.insert(at, position);
        }
    }
    let mut numbers = vec![None; sites.segments.len()];
    let mut pages: BTreeMap<u64, NewPage> = BTreeMap::new();
    for segment in &map.binary.code {
        let first = segment.file_offset & !(PAGE as u64 - 1);
        for start in (first..segment.file_offset + segment.bytes.len() as u64).step_by(PAGE) {
            pages.insert(
                start,
                NewPage {
                    file_offset: start,
                    hash: page_hash(&page_at(contents, start)),
                    sites: Vec::new(),
                },
            );
        }
    }
    for (number, (at, position)) in by_offset.into_iter().enumerate() {
        numbers[position] = Some(number as u32);
        let start = at & !(PAGE as u64 - 1);
        if let Some(page) = pages.get_mut(&start) {
            let site = Site::new((at - start) as u16, contents[at as usize]);
            page.sites.push((site, sites.segments[position].function));
        }
    }
    let segments = sites
        .segments
        .iter()
        .zip(numbers)
        .map(|(segment, site)| {
            let start = offset(segment.addresses.start).unwrap_or(0);
            PlannedSegment {
                start,
                end: start + (segment.addresses.end.0 - segment.addresses.start.0),
                site,
                is_shown: segment.is_shown,
                dominator: segment.dominator,
            }
        })
        .collect();
    (segments, pages.into_values().collect())
}
