//! Which code the events are of: entries of functions, and the places of the kernel's samples.

use super::ChooseFunctions;
use crate::program::Program;
use pleach_annotate::binary::Binary;
use pleach_annotate::cfg::ProbeTarget;
use pleach_annotate::find::Finder;
use pleach_annotate::function_symbols::{FunctionSymbol, function_at, read_function_symbols};
use pleach_annotate::id::BlockIndex;
use pleach_annotate::map::{AddressMap, FunctionIndex, InlineInstanceIndex};
use pleach_annotate::probe::Address;
use pleach_collector::events::system_calls;
use pleach_collector::events::{ALLOCATORS, BurstEvent};
use pleach_collector::vector::{CodeAddress, EndReason, EventSample, Module, ModuleId, VectorSet};
use pleach_profile::events::{EventSource, Place, Step};
use rustc_hash::{FxHashMap, FxHashSet};

/// Where an occurrence is.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum PlaceKey {
    /// In the last block of its history.
    LastBlock,
    /// In a block, which is the last of its history.
    Block(Step),
    /// In code that is not annotated: the file's name, and the function's.
    Code(String, String),
    /// In no file.
    Elsewhere,
}

/// Samples of the kernel at a place.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sampled {
    pub events: u64,
    pub samples: u64,
}

/// An event.
#[derive(Debug)]
pub(super) struct EventTarget {
    pub name: String,
    pub source: EventSource,
    /// Linkage names of the functions whose calls are the event, and what is said of each.
    pub callees: Vec<(String, String)>,
    /// Places, and what is called there.
    places: Vec<(PlaceKey, String)>,
    known: FxHashMap<(PlaceKey, String), u32>,
    /// By place.
    sampled: Vec<Sampled>,
    /// Events by slice of time, the clusters of the kernel's samples.
    slices: FxHashMap<u64, u64>,
}

impl EventTarget {
    fn new(name: String, source: EventSource) -> Self {
        Self {
            name,
            source,
            callees: Vec::new(),
            places: Vec::new(),
            known: FxHashMap::default(),
            sampled: Vec::new(),
            slices: FxHashMap::default(),
        }
    }

    /// The position of a place.
    fn add(&mut self, place: PlaceKey, what: &str) -> u32 {
        let key = (place, what.to_owned());
        *self.known.entry(key.clone()).or_insert_with(|| {
            self.places.push(key);
            self.sampled.push(Sampled::default());
            self.places.len() as u32 - 1
        })
    }

    /// A place by its position.
    pub fn place(&self, position: u32) -> (&PlaceKey, &str) {
        let (place, what) = &self.places[position as usize];
        (place, what)
    }

    /// The sum of the squares of what the kernel sampled in each slice of time.
    pub fn squares(&self) -> f64 {
        self.slices.values().map(|events| (*events as f64).powi(2)).sum()
    }

    /// The kernel's samples by place.
    pub fn sampled(&self) -> impl Iterator<Item = ((Place, String), Sampled)> {
        self.places.iter().zip(&self.sampled).map(|((place, what), sampled)| {
            let place = match place {
                PlaceKey::Block(step) => Place::Block(*step),
                PlaceKey::Code(file, symbol) => Place::Code(file.clone(), symbol.clone()),
                PlaceKey::LastBlock | PlaceKey::Elsewhere => Place::Elsewhere,
            };
            ((place, what.clone()), *sampled)
        })
    }
}

/// Length of a slice: events are turned on and off by slices of this length.
const SLICE_NS: u64 = 10_000_000;

/// An event and one of its places, by position.
pub(super) type Hit = (usize, u32);

/// All events of a recording.
#[derive(Debug, Default)]
pub(super) struct Targets {
    pub events: Vec<EventTarget>,
    /// Entries of functions, with their sizes. Branches from within are loops.
    entries: FxHashMap<CodeAddress, (u64, Vec<Hit>)>,
    /// Entry blocks of functions, inlined ones included.
    functions: FxHashMap<(ModuleId, FunctionIndex), Vec<Hit>>,
    /// Events that are any system call, or one of a number.
    system_calls: Vec<(usize, Option<u32>)>,
    /// Places of system calls by number.
    call_places: FxHashMap<(usize, u32), u32>,
    /// Instructions behind those of system calls.
    after_system_calls: FxHashSet<CodeAddress>,
    blocks: FxHashMap<(ModuleId, InlineInstanceIndex, BlockIndex), Vec<Hit>>,
    /// Instructions that are not annotated, by module, in order.
    addresses: FxHashMap<ModuleId, Vec<(u64, Hit)>>,
    /// Events of the processor, by position of their names.
    hardware: FxHashMap<u32, Hit>,
    pub notes: Vec<String>,
}

/// Default sampling events of the `lbr` engine. They are not reported as events, since they only sample execution.
const NO_EVENTS: [&str; 4] = ["near_taken", "ex_ret_brn_tkn", "br_retired", "cycles"];

impl Targets {
    pub fn new(
        program: &Program,
        vectors: &VectorSet,
        wanted: &[BurstEvent],
        finder: &Finder,
        choose: ChooseFunctions<'_>,
    ) -> Self {
        let mut targets = Self {
            after_system_calls: after_system_calls(vectors),
            ..Self::default()
        };
        let mut files = Files::new(program, vectors, finder);
        targets.add_samples(vectors, &mut files);
        targets.add_hardware(vectors);
        for event in wanted {
            let at = targets.events.len();
            let mut target = EventTarget::new(event.to_string(), EventSource::Bursts);
            match event {
                BurstEvent::SystemCall(number) => {
                    let numbers: FxHashSet<u32> = vectors.bursts.iter().filter_map(|burst| burst.system_call).collect();
                    for seen in numbers
                        .into_iter()
                        .filter(|seen| number.is_none_or(|number| number == *seen))
                    {
                        let what = match (number, system_calls::name_of(seen)) {
                            (Some(_), _) => String::new(),
                            (None, Some(name)) => name.to_owned(),
                            (None, None) => format!("system call {seen}"),
                        };
                        let place = target.add(PlaceKey::LastBlock, &what);
                        targets.call_places.insert((at, seen), place);
                    }
                    targets.system_calls.push((at, *number));
                }
                BurstEvent::Call(name) => targets.add_calls(at, &mut target, name, &mut files, choose),
                BurstEvent::Allocations => {
                    for name in ALLOCATORS {
                        targets.add_functions(at, &mut target, &[name.to_owned()], name, &mut files);
                    }
                }
            }
            targets.events.push(target);
        }
        targets
    }

    fn add_calls(
        &mut self,
        at: usize,
        target: &mut EventTarget,
        name: &str,
        files: &mut Files<'_>,
        choose: ChooseFunctions<'_>,
    ) {
        files.read_all();
        let mut names: Vec<&str> = files.names().collect();
        names.sort_unstable();
        names.dedup();
        match choose(&names, name) {
            Ok(chosen) => {
                let what = if chosen.len() > 1 { None } else { Some("") };
                for name in chosen {
                    self.add_functions(at, target, std::slice::from_ref(&name), what.unwrap_or(&name), files);
                }
            }
            Err(similar) => {
                let hint = match &similar[..] {
                    [] => String::new(),
                    names => format!("; did you mean {}?", names.join(", ")),
                };
                self.notes
                    .push(format!("call:{name}: no loaded file has this function{hint}"));
            }
        }
    }

    /// Adds the entries of functions by linkage name.
    fn add_functions(
        &mut self,
        at: usize,
        target: &mut EventTarget,
        names: &[String],
        what: &str,
        files: &mut Files<'_>,
    ) {
        files.read_all();
        let place = target.add(PlaceKey::LastBlock, what);
        target
            .callees
            .extend(names.iter().map(|name| (name.clone(), what.to_owned())));
        let is_wanted = |name: &str| names.iter().any(|wanted| wanted == name);
        let mut is_resolved = false;
        for (module, file) in &files.files {
            let map = files.program.map(*module);
            let mut by_block = FxHashSet::default();
            if let Some(map) = map {
                for (index, function) in map.functions.iter().enumerate() {
                    let index = FunctionIndex(index as u32);
                    if is_wanted(&function.cfg.name) && has_entry(map, index) {
                        self.functions.entry((*module, index)).or_default().push((at, place));
                        by_block.insert(function.cfg.name.as_str());
                    }
                }
            }
            for symbol in file.symbols.iter().filter(|symbol| is_wanted(&symbol.name)) {
                if symbol.is_resolver {
                    is_resolved = true;
                } else if !by_block.contains(symbol.name.as_str())
                    && let Some(offset) = file.binary(map).and_then(|b| b.offset_of_address(symbol.address))
                {
                    let address = CodeAddress {
                        module: *module,
                        offset,
                    };
                    let entry = self.entries.entry(address).or_insert((symbol.size, Vec::new()));
                    if !entry.1.contains(&(at, place)) {
                        entry.1.push((at, place));
                    }
                }
            }
        }
        if is_resolved {
            self.notes.push(format!(
                "call:{}: an indirect function (IFUNC), whose implementation the C library chooses when it is loaded: its calls \
                 are not seen",
                names.join(", ")
            ));
        }
    }

    fn add_samples(&mut self, vectors: &VectorSet, files: &mut Files<'_>) {
        let mut positions: FxHashMap<u32, usize> = FxHashMap::default();
        for sample in &vectors.samples {
            let at = *positions.entry(sample.event.0).or_insert_with(|| {
                let name = vectors.events.get(sample.event.0 as usize).cloned().unwrap_or_default();
                self.events.push(EventTarget::new(name, EventSource::Kernel));
                self.events.len() - 1
            });
            self.add_sample(at, sample, files);
        }
        for addresses in self.addresses.values_mut() {
            addresses.sort_unstable();
            addresses.dedup();
        }
    }

    fn add_sample(&mut self, at: usize, sample: &EventSample, files: &mut Files<'_>) {
        let found = files.place_of(sample.at);
        let place = self.events[at].add(found.key, if found.is_system_call { "system call" } else { "" });
        let sampled = &mut self.events[at].sampled[place as usize];
        let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
        add(&mut sampled.events, sample.period);
        add(&mut sampled.samples, 1);
        let slice = sample.time_ns / SLICE_NS;
        add(self.events[at].slices.entry(slice).or_default(), sample.period);
        match found.passed {
            Some(Passing::Block(instance, block)) => {
                let hits = self.blocks.entry((sample.at.module, instance, block)).or_default();
                if !hits.contains(&(at, place)) {
                    hits.push((at, place));
                }
            }
            Some(Passing::Address(offset)) => {
                self.addresses
                    .entry(sample.at.module)
                    .or_default()
                    .push((offset, (at, place)));
            }
            None => {}
        }
    }

    fn add_hardware(&mut self, vectors: &VectorSet) {
        for sample in vectors.bursts.iter().filter_map(|burst| burst.hardware.as_deref()) {
            if self.hardware.contains_key(&sample.event.0) {
                continue;
            }
            let name = vectors.events.get(sample.event.0 as usize).cloned().unwrap_or_default();
            let bare = name.split(':').next().unwrap_or_default();
            if NO_EVENTS.contains(&bare) {
                continue;
            }
            let mut target = EventTarget::new(bare.to_owned(), EventSource::BranchRecords);
            let place = target.add(PlaceKey::LastBlock, "");
            self.hardware.insert(sample.event.0, (self.events.len(), place));
            self.events.push(target);
        }
    }

    /// The events that are entries of a function at a branch's target.
    pub fn at_entry(&self, from: CodeAddress, to: CodeAddress) -> &[Hit] {
        match self.entries.get(&to) {
            Some((size, hits)) => {
                let is_loop = from.module == to.module && (to.offset..to.offset + size).contains(&from.offset);
                if is_loop { &[] } else { hits }
            }
            None => &[],
        }
    }

    /// The events that are entries of an annotated function.
    pub fn at_function(&self, module: ModuleId, function: FunctionIndex) -> &[Hit] {
        self.functions.get(&(module, function)).map_or(&[], Vec::as_slice)
    }

    /// The events whose place is a block.
    pub fn at_block(&self, block: (ModuleId, InlineInstanceIndex, BlockIndex)) -> &[Hit] {
        self.blocks.get(&block).map_or(&[], Vec::as_slice)
    }

    /// The events whose places are among instructions, both ends included. A place may come several times.
    pub fn at_addresses(&self, first: CodeAddress, last: CodeAddress) -> impl Iterator<Item = Hit> {
        let all = match self.addresses.get(&first.module) {
            Some(addresses) if first.module == last.module => addresses.as_slice(),
            _ => &[],
        };
        let from = all.partition_point(|(offset, _)| *offset < first.offset);
        let all = &all[from..];
        all.iter()
            .take_while(move |(offset, _)| *offset <= last.offset)
            .map(|(_, hit)| *hit)
    }

    /// Whether a burst began as a system call returned. Ticks that expire while the kernel lets none through are taken
    /// there, so more bursts begin there than run time would have it.
    pub fn is_after_system_call(&self, start: CodeAddress) -> bool {
        self.after_system_calls.contains(&start)
    }

    /// The events that are a system call.
    pub fn at_system_call(&self, number: u32) -> impl Iterator<Item = Hit> {
        let wanted = self.system_calls.iter();
        let wanted = wanted.filter(move |(_, wanted)| wanted.is_none_or(|wanted| wanted == number));
        wanted.filter_map(move |(at, _)| Some((*at, *self.call_places.get(&(*at, number))?)))
    }

    /// The event of a branch record.
    pub fn at_hardware(&self, event: u32) -> Option<Hit> {
        self.hardware.get(&event).copied()
    }

    /// Whether occurrences of the event may nest: an allocator may call another allocator.
    pub fn nests(&self, event: usize) -> bool {
        self.events[event].name == BurstEvent::Allocations.to_string()
    }
}

fn after_system_calls(vectors: &VectorSet) -> FxHashSet<CodeAddress> {
    let calls = vectors
        .bursts
        .iter()
        .filter(|burst| burst.end_reason == EndReason::SystemCall);
    calls
        .filter_map(|burst| {
            let end = burst.end?;
            Some(CodeAddress {
                offset: end.offset + SYSTEM_CALL.len() as u64,
                ..end
            })
        })
        .collect()
}

/// Whether a function's entry block has code that tells of it.
fn has_entry(map: &AddressMap, function: FunctionIndex) -> bool {
    map.probes.iter().any(|probe| {
        probe.target == ProbeTarget::Block(BlockIndex::ENTRY)
            && map.inline_instances[probe.instance.index()].function == function
    })
}

/// A file that was recorded.
struct RecordedFile {
    symbols: Vec<FunctionSymbol>,
    /// The file; `None`: the program's map has it.
    binary: Option<Binary>,
}

impl RecordedFile {
    fn binary<'b>(&'b self, map: Option<&'b AddressMap>) -> Option<&'b Binary> {
        map.map(|map| &map.binary).or(self.binary.as_ref())
    }
}

/// The files of a recording, read when they are needed.
struct Files<'r> {
    program: &'r Program,
    modules: &'r [Module],
    finder: &'r Finder,
    files: Vec<(ModuleId, RecordedFile)>,
    positions: FxHashMap<ModuleId, Option<usize>>,
    places: FxHashMap<CodeAddress, SamplePlace>,
}

/// What a burst must pass to pass a sample's place.
#[derive(Clone, Copy, Debug)]
enum Passing {
    Block(InlineInstanceIndex, BlockIndex),
    Address(u64),
}

#[derive(Clone, Debug)]
struct SamplePlace {
    key: PlaceKey,
    is_system_call: bool,
    passed: Option<Passing>,
}

impl<'r> Files<'r> {
    fn new(program: &'r Program, vectors: &'r VectorSet, finder: &'r Finder) -> Self {
        Self {
            program,
            modules: &vectors.modules,
            finder,
            files: Vec::new(),
            positions: FxHashMap::default(),
            places: FxHashMap::default(),
        }
    }

    fn read_all(&mut self) {
        for position in 0..self.modules.len() {
            self.read(ModuleId(position as u32));
        }
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        let of_symbols = self.files.iter().flat_map(|(_, file)| &file.symbols);
        let inlined = self.program.annotated().flat_map(|(_, map)| &map.functions);
        let inlined = inlined.map(|function| function.cfg.name.as_str());
        of_symbols.map(|symbol| symbol.name.as_str()).chain(inlined)
    }

    /// The position of a module's file, if it can be read.
    fn read(&mut self, module: ModuleId) -> Option<usize> {
        if let Some(known) = self.positions.get(&module) {
            return *known;
        }
        let found = self.open(module).map(|file| {
            self.files.push((module, file));
            self.files.len() - 1
        });
        self.positions.insert(module, found);
        found
    }

    fn open(&self, module: ModuleId) -> Option<RecordedFile> {
        let symbols = |binary: &Binary| {
            let mut symbols = read_function_symbols(&binary.path).unwrap_or_default();
            if let Some(debug) = &binary.debug_file {
                symbols.extend(read_function_symbols(debug).unwrap_or_default());
                symbols.sort_by(|a, b| (a.address, &a.name).cmp(&(b.address, &b.name)));
            }
            symbols
        };
        if let Some(map) = self.program.map(module) {
            return Some(RecordedFile {
                symbols: symbols(&map.binary),
                binary: None,
            });
        }
        let module = self.modules.get(module.0 as usize)?;
        if !module.path.is_absolute() {
            return None;
        }
        let build_id = module.build_id.as_ref().map(|id| id.0.as_slice());
        let binary = self.finder.open(&module.path, build_id).ok()?;
        Some(RecordedFile {
            symbols: symbols(&binary),
            binary: Some(binary),
        })
    }

    fn place_of(&mut self, at: CodeAddress) -> SamplePlace {
        if let Some(known) = self.places.get(&at) {
            return known.clone();
        }
        let found = self.find_place(at);
        self.places.insert(at, found.clone());
        found
    }

    fn find_place(&mut self, at: CodeAddress) -> SamplePlace {
        let nowhere = |key| SamplePlace {
            key,
            is_system_call: false,
            passed: None,
        };
        let Some(module) = self.modules.get(at.module.0 as usize) else {
            return nowhere(PlaceKey::Elsewhere);
        };
        let name = module.path.file_name().map_or_else(
            || module.path.display().to_string(),
            |name| name.to_string_lossy().into_owned(),
        );
        let Some(position) = self.read(at.module) else {
            return nowhere(PlaceKey::Code(name, String::new()));
        };
        let (program, file) = (self.program, &self.files[position].1);
        let map = program.map(at.module);
        let address = file.binary(map).and_then(|binary| binary.address_of_offset(at.offset));
        let (Some(binary), Some(address)) = (file.binary(map), address) else {
            return nowhere(PlaceKey::Code(name, String::new()));
        };
        if let Some(map) = map
            && let Some((instance, block)) = block_at(map, address)
        {
            let function = map.function_of(instance);
            return SamplePlace {
                key: PlaceKey::Block(Step {
                    id: function.cfg.id,
                    cfg_hash: function.hash,
                    block,
                    line: function.cfg.blocks.get(block.index()).map_or(0, |block| block.line),
                }),
                is_system_call: false,
                passed: Some(Passing::Block(instance, block)),
            };
        }
        let symbol = function_at(&file.symbols, address).map_or(String::new(), |symbol| symbol.name.clone());
        let is_system_call = follows_system_call(binary, address);
        SamplePlace {
            key: PlaceKey::Code(name, symbol),
            is_system_call,
            passed: Some(Passing::Address(if is_system_call {
                at.offset - SYSTEM_CALL.len() as u64
            } else {
                at.offset
            })),
        }
    }
}

/// The instruction of a system call.
const SYSTEM_CALL: [u8; 2] = [0x0f, 0x05];

fn follows_system_call(binary: &Binary, address: Address) -> bool {
    let before = address.0.checked_sub(SYSTEM_CALL.len() as u64);
    before
        .and_then(|before| binary.code_at(Address(before)))
        .is_some_and(|code| code.starts_with(&SYSTEM_CALL))
}

/// The block whose code an address is in: that of the last probe before it in the same function.
fn block_at(map: &AddressMap, address: Address) -> Option<(InlineInstanceIndex, BlockIndex)> {
    let symbol = map.binary.symbols.get(map.binary.symbol_at(address)?)?;
    let probes = map.probes_in(symbol.address, address).iter().rev();
    let mut blocks = probes.filter_map(|probe| match probe.target {
        ProbeTarget::Block(block) => Some((probe.instance, block)),
        ProbeTarget::Call(_) => None,
    });
    blocks.next()
}
