//! Separates the activations that a burst shows.

use super::callers::{MAX_BEFORE, PendingCallers};
use super::module_instances::ModuleInstances;
use super::store::{ObservationSink, Store};
use super::walk::Activation;
use crate::decode::{FrameId, Position};
use crate::iterations::PassedPath;
use crate::program::Site;
use pleach_annotate::id::BlockIndex;
use pleach_annotate::map::{AddressMap, InlineInstanceIndex};
use pleach_annotate::probe::Address;
use pleach_collector::vector::ModuleId;
use pleach_profile::Caller;
use rustc_hash::FxHashMap;

/// The blocks of one inline instance at one address, reached at one position of the burst.
pub(super) type Group = (Position, FrameId, ModuleId, InlineInstanceIndex, Address);

/// Activations of one emitted function and of the functions inlined into it.
#[derive(Default)]
pub(super) struct Frame {
    /// Whether it was entered within the burst.
    pub is_fresh: bool,
    /// By inline instance, in the order of first observation.
    pub activations: Vec<ActivationWalk>,
}

/// Consecutive activations of one inline instance.
pub(super) struct ActivationWalk {
    module: ModuleId,
    instance: InlineInstanceIndex,
    activation: Activation,
    /// The paths that they passed, if windows of paths are counted.
    passed: Vec<PassedPath>,
    callers: PendingCallers,
}

impl Frame {
    /// Whether an inline instance that is observed for the first time was entered within the burst. It was if control
    /// was elsewhere in the frame before, and not in a function inlined into the inline instance.
    fn enters(&self, map: &AddressMap, instance: InlineInstanceIndex) -> bool {
        let Some(first) = self.activations.first() else {
            return self.is_fresh;
        };
        let mut around = Some(first.instance);
        while let Some(at) = around {
            if at == instance {
                return self.is_fresh;
            }
            around = map.inline_instances[at.index()].parent.map(|(parent, _)| parent);
        }
        true
    }
}

/// Activations that are followed.
#[derive(Default)]
pub(super) struct Walks {
    pub frames: FxHashMap<FrameId, Frame>,
    /// The address that control reached last, whose blocks are still being collected in `group`.
    pub pending: Option<Group>,
    pub group: Vec<BlockIndex>,
    /// The inline instance that control was in before.
    last: Option<(FrameId, ModuleId, InlineInstanceIndex)>,
}

impl Walks {
    /// The caller of an inline instance's activation, if it is entered now: the inline instance around it, or else the
    /// one that control came from.
    fn caller(
        &self,
        (frame, module, instance): (FrameId, ModuleId, InlineInstanceIndex),
        modules: &FxHashMap<ModuleId, ModuleInstances<'_>>,
    ) -> Option<Caller> {
        let of = |module: &ModuleId| modules.get(module).map(|instances| instances.map);
        let (frame, module, instance) = match of(&module)?.inline_instances[instance.index()].parent {
            Some((outer, _)) => (frame, module, outer),
            None => self.last.filter(|&(last, ..)| last != frame)?,
        };
        let mut activations = self.frames.get(&frame)?.activations.iter();
        let caller = activations.find(|a| (a.module, a.instance) == (module, instance))?;
        let map = of(&module)?;
        let function = &map.functions[map.inline_instances[instance.index()].function.0 as usize];
        Some(Caller {
            id: function.cfg.id,
            cfg_hash: function.hash,
            before: caller.activation.latest(MAX_BEFORE)?.to_vec(),
        })
    }

    /// A call from this block, if it is known: inlined code that control was in before has ended.
    pub fn call_from(&mut self, site: Option<Site>) {
        if let (Some((_, last_module, last)), Some((module, instance, _))) = (&mut self.last, site)
            && *last_module == module
        {
            *last = instance;
        }
    }

    pub fn flush_pending(&mut self, modules: &mut FxHashMap<ModuleId, ModuleInstances<'_>>, store: &mut Store) {
        let Some((_, frame, module, instance, _)) = self.pending.take() else {
            return;
        };
        let enters = self.group.contains(&BlockIndex::ENTRY);
        let caller = enters
            .then(|| self.caller((frame, module, instance), modules))
            .flatten();
        self.last = Some((frame, module, instance));
        let frame = self.frames.entry(frame).or_default();
        if let Some(instances) = modules.get_mut(&module) {
            let known = frame
                .activations
                .iter()
                .position(|a| (a.module, a.instance) == (module, instance));
            let position = known.unwrap_or_else(|| {
                frame.activations.push(ActivationWalk {
                    module,
                    instance,
                    activation: Activation::new(frame.enters(instances.map, instance)),
                    passed: Vec::new(),
                    callers: PendingCallers::default(),
                });
                frame.activations.len() - 1
            });
            let (place, graph, sequences) = instances.prepare(instance, store);
            let ActivationWalk {
                activation,
                passed,
                callers,
                ..
            } = &mut frame.activations[position];
            if enters {
                callers.enter(caller);
            }
            let mut sink = ObservationSink {
                place,
                store,
                graph,
                passed,
                callers,
            };
            activation.pass(&self.group, graph, sequences, &mut sink);
        }
        self.group.clear();
    }

    pub fn leave(
        &mut self,
        frame: FrameId,
        has_left: bool,
        modules: &mut FxHashMap<ModuleId, ModuleInstances<'_>>,
        store: &mut Store,
    ) {
        let frame = self.frames.remove(&frame).unwrap_or_default();
        for watched in frame.activations {
            let ActivationWalk {
                module,
                instance,
                mut activation,
                mut passed,
                mut callers,
            } = watched;
            if let Some(instances) = modules.get_mut(&module) {
                let (place, graph, sequences) = instances.prepare(instance, store);
                let mut sink = ObservationSink {
                    place,
                    store,
                    graph,
                    passed: &mut passed,
                    callers: &mut callers,
                };
                activation.leave(has_left, graph, sequences, &mut sink);
                store.count_windows(place, &passed);
            }
        }
    }

    pub fn end(&mut self, modules: &mut FxHashMap<ModuleId, ModuleInstances<'_>>, store: &mut Store) {
        self.flush_pending(modules, store);
        let mut frames: Vec<FrameId> = self.frames.keys().copied().collect();
        frames.sort_unstable();
        for frame in frames {
            self.leave(frame, false, modules, store);
        }
    }
}
