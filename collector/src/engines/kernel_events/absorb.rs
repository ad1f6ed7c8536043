//! Adds samples, whose modules and events are numbered on their own, to the vectors of a recording.

use crate::vector::{CodeAddress, EventId, EventSample, Module, ModuleId, VectorSet};
use pleach_wire::coverage::{IMAGE_EXTENSION, key};
use pleach_wire::start::{SAMPLER, STUB};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;

/// Adds the samples of a set, apart from those in the sampler's own code; returns how many events these were.
pub(super) fn absorb(into: &mut VectorSet, from: VectorSet) -> u64 {
    let events: Vec<EventId> = from.events.iter().map(|name| event(into, name)).collect();
    let modules: Vec<Option<ModuleId>> = from.modules.into_iter().map(|found| module(into, found)).collect();
    let mut own = 0;
    for sample in from.samples {
        let module = match sample.at.module {
            ModuleId::EXTERNAL => Some(ModuleId::EXTERNAL),
            ModuleId(at) => modules.get(at as usize).copied().flatten(),
        };
        let (Some(module), Some(&event)) = (module, events.get(sample.event.0 as usize)) else {
            own += sample.period;
            continue;
        };
        into.samples.push(EventSample {
            event,
            at: CodeAddress { module, ..sample.at },
            ..sample
        });
    }
    own
}

fn event(set: &mut VectorSet, name: &str) -> EventId {
    let at = set.events.iter().position(|known| known == name).unwrap_or_else(|| {
        set.events.push(name.to_owned());
        set.events.len() - 1
    });
    EventId(at as u32)
}

/// The module in the set, to which it is added if it is new; `None` for the sampler's own.
fn module(set: &mut VectorSet, found: Module) -> Option<ModuleId> {
    let name = found.path.file_name().map(|name| name.as_encoded_bytes());
    if name == Some(SAMPLER.to_bytes()) || name == Some(STUB.as_bytes()) {
        return None;
    }
    if let Some(key) = image_key(&found) {
        // The sampler replaced the file by an image with the same code at the same offsets.
        let original = set.modules.iter().position(|known| key_of(known) == Some(key));
        return Some(original.map_or(ModuleId::EXTERNAL, |at| ModuleId(at as u32)));
    }
    // The kernel may know a build-id that the file does not have any more, or the other way round.
    let same = |known: &Module| {
        known.path == found.path
            && (known.build_id == found.build_id || known.build_id.is_none() || found.build_id.is_none())
    };
    let at = set.modules.iter().position(same).unwrap_or_else(|| {
        set.modules.push(Module {
            // Its processes are numbered on their own.
            mappings: Vec::new(),
            ..found
        });
        set.modules.len() - 1
    });
    Some(ModuleId(at as u32))
}

/// The key of the file that a module is an image of, if it is one.
fn image_key(module: &Module) -> Option<u64> {
    let name = module.path.file_name()?.to_str()?;
    let stem = name.strip_suffix(IMAGE_EXTENSION.to_str().ok()?)?;
    u64::from_str_radix(stem, 16).ok()
}

fn key_of(module: &Module) -> Option<u64> {
    let inode = module.path.metadata().ok()?.ino();
    Some(key(module.path.as_os_str().as_bytes(), inode))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vector::BuildId;

    #[test]
    fn modules_and_events_are_found_by_name() {
        let module = |path: &str, build: Option<u8>| Module {
            path: path.into(),
            build_id: build.map(|build| BuildId(vec![build])),
            mappings: Vec::new(),
        };
        let sample = |event, module, period| EventSample {
            event: EventId(event),
            thread: 7,
            time_ns: 1,
            at: CodeAddress {
                module: ModuleId(module),
                offset: 0x10,
            },
            period,
        };
        let mut set = VectorSet {
            modules: vec![module("/a", Some(1)), module("/b", None)],
            events: vec!["cycles".to_owned()],
            ..VectorSet::default()
        };
        let sampler = format!("/x/{}", SAMPLER.to_str().unwrap());
        let from = VectorSet {
            modules: vec![
                module("/b", Some(2)),
                module(&sampler, Some(3)),
                module("/a", Some(9)),
                module("/a", Some(1)),
            ],
            events: vec!["page-faults".to_owned()],
            samples: vec![
                sample(0, 0, 1),
                sample(0, 1, 5),
                sample(0, 2, 1),
                sample(0, 3, 1),
                sample(0, u32::MAX, 1),
            ],
            ..VectorSet::default()
        };
        assert_eq!(absorb(&mut set, from), 5);
        let seen: Vec<_> = set.samples.iter().map(|s| (s.event.0, s.at.module.0)).collect();
        assert_eq!(seen, [(1, 1), (1, 2), (1, 0), (1, u32::MAX)]);
        assert_eq!(set.modules.len(), 3);
    }

    #[test]
    fn images_are_the_files_that_they_replace() {
        let own = std::env::current_exe().unwrap();
        let module = |path: std::path::PathBuf| Module {
            path,
            build_id: None,
            mappings: Vec::new(),
        };
        let mut set = VectorSet {
            modules: vec![module("/none".into()), module(own.clone())],
            ..VectorSet::default()
        };
        let key = key_of(&module(own)).unwrap();
        let image = |key: u64| module(format!("/tmp/x/{key:016x}.code").into());
        assert_eq!(super::module(&mut set, image(key)), Some(ModuleId(1)));
        assert_eq!(super::module(&mut set, image(key ^ 1)), Some(ModuleId::EXTERNAL));
    }
}
