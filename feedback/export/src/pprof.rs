//! pprof's profile (`profile.proto`, compressed with gzip): call stacks with their executed IR instructions.

mod proto;

use crate::functions::{Functions, NamedFunction};
use flate2::Compression;
use flate2::write::GzEncoder;
use pleach_analysis::program::Program;
use pleach_analysis::stacks::{Key, visit_stacks};
use pleach_collector::vector::{ModuleId, VectorSet};
use prost::Message;
use proto::{Function, Line, Location, Mapping, Profile, Sample, ValueType};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::io::Write;

/// The bytes of a file that `go tool pprof` reads.
pub fn profile(program: &Program, vectors: &VectorSet, functions: &Functions) -> Vec<u8> {
    let mut work: BTreeMap<(Vec<Key>, u32), f64> = BTreeMap::new();
    visit_stacks(program, vectors, &mut |_, stack| {
        *work.entry((stack.functions.to_vec(), stack.line)).or_default() += stack.work;
    });
    let mut builder = Builder::new(vectors, functions);
    for ((stack, line), work) in &work {
        builder.sample(stack, *line, *work);
    }
    compressed(&builder.profile.encode_to_vec())
}

fn compressed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    let written = encoder.write_all(bytes).and_then(|()| encoder.finish());
    written.expect("writing to a vector cannot fail")
}

struct Builder<'f> {
    functions: &'f Functions,
    profile: Profile,
    strings: FxHashMap<String, i64>,
    /// Identifiers of functions, which begin at 1.
    function_ids: FxHashMap<Key, u64>,
    /// Identifiers of locations: lines of functions.
    location_ids: FxHashMap<(Key, u32), u64>,
}

impl<'f> Builder<'f> {
    fn new(vectors: &VectorSet, functions: &'f Functions) -> Self {
        let mut builder = Self {
            functions,
            profile: Profile::default(),
            strings: FxHashMap::default(),
            function_ids: FxHashMap::default(),
            location_ids: FxHashMap::default(),
        };
        // The first string is the empty one.
        builder.string("");
        let value = ValueType {
            r#type: builder.string("instructions"),
            unit: builder.string("count"),
        };
        builder.profile.sample_type = vec![value];
        builder.profile.period_type = Some(value);
        builder.profile.period = 1;
        for (position, module) in vectors.modules.iter().enumerate() {
            let mapping = module.mappings.first();
            let filename = builder.string(&module.path.to_string_lossy());
            let build_id = module.build_id.as_ref().map_or_else(String::new, ToString::to_string);
            let build_id = builder.string(&build_id);
            builder.profile.mapping.push(Mapping {
                id: position as u64 + 1,
                memory_start: mapping.map_or(0, |mapping| mapping.start),
                memory_limit: mapping.map_or(0, |mapping| mapping.end),
                file_offset: mapping.map_or(0, |mapping| mapping.file_offset),
                filename,
                build_id,
                has_functions: true,
                has_filenames: true,
                has_line_numbers: true,
                has_inline_frames: true,
            });
        }
        let times = vectors.bursts.iter().map(|burst| burst.time_ns);
        let (first, last) = (times.clone().min().unwrap_or(0), times.max().unwrap_or(0));
        builder.profile.duration_nanos = (last - first) as i64;
        builder
    }

    fn sample(&mut self, stack: &[Key], line: u32, work: f64) {
        let last = stack.len().saturating_sub(1);
        // The called function comes first. Where its callers called it is unknown.
        let locations = stack.iter().enumerate().rev().filter_map(|(depth, key)| {
            let line = if depth == last { line } else { 0 };
            self.location(*key, line)
        });
        let location_id: Vec<u64> = locations.collect();
        if !location_id.is_empty() {
            self.profile.sample.push(Sample {
                location_id,
                value: vec![work.round() as i64],
            });
        }
    }

    fn location(&mut self, key: Key, line: u32) -> Option<u64> {
        if let Some(&known) = self.location_ids.get(&(key, line)) {
            return Some(known);
        }
        let function = self.functions.get(&key)?;
        let function_id = self.function(key, function);
        let id = self.location_ids.len() as u64 + 1;
        self.profile.location.push(Location {
            id,
            mapping_id: mapping_of(function.module),
            line: vec![Line {
                function_id,
                line: i64::from(if line > 0 { line } else { function.line }),
            }],
        });
        self.location_ids.insert((key, line), id);
        Some(id)
    }

    fn function(&mut self, key: Key, function: &NamedFunction) -> u64 {
        if let Some(&known) = self.function_ids.get(&key) {
            return known;
        }
        let id = self.function_ids.len() as u64 + 1;
        let file = function.file.as_ref().map(|file| file.to_string_lossy().into_owned());
        let described = Function {
            id,
            name: self.string(&function.name),
            system_name: self.string(&function.linkage_name),
            filename: self.string(&file.unwrap_or_default()),
            start_line: i64::from(function.line),
        };
        self.profile.function.push(described);
        self.function_ids.insert(key, id);
        id
    }

    /// The number of a string in the profile's table.
    fn string(&mut self, text: &str) -> i64 {
        if let Some(&known) = self.strings.get(text) {
            return known;
        }
        let number = self.profile.string_table.len() as i64;
        self.profile.string_table.push(text.to_owned());
        self.strings.insert(text.to_owned(), number);
        number
    }
}

/// Identifiers begin at 1.
fn mapping_of(module: ModuleId) -> u64 {
    u64::from(module.0) + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::GzDecoder;
    use pleach_annotate::id::{CfgHash, FunctionGuid, FunctionId};
    use std::io::Read;

    fn key(name: &str) -> Key {
        let id = FunctionId {
            guid: FunctionGuid::of_name(name),
            ..FunctionId::default()
        };
        (id, CfgHash(1))
    }

    fn function(name: &str, line: u32) -> (Key, NamedFunction) {
        let function = NamedFunction {
            module: ModuleId(0),
            name: format!("{name}()"),
            linkage_name: name.to_owned(),
            file: Some("a.cpp".into()),
            line,
        };
        (key(name), function)
    }

    #[test]
    fn stacks_begin_with_the_called_function() {
        let functions: Functions = [function("main", 3), function("work", 20)].into();
        let mut builder = Builder::new(&VectorSet::default(), &functions);
        builder.sample(&[key("main"), key("work")], 22, 41.6);
        builder.sample(&[key("main"), key("unknown"), key("work")], 0, 7.0);
        let mut bytes = Vec::new();
        let packed = compressed(&builder.profile.encode_to_vec());
        GzDecoder::new(&*packed).read_to_end(&mut bytes).expect("gzip");
        let profile = Profile::decode(&*bytes).expect("a message");
        assert_eq!(profile.string_table[0], "");
        let text = |number: i64| &*profile.string_table[number as usize];
        let place = |id: &u64| {
            let location = profile
                .location
                .iter()
                .find(|location| location.id == *id)
                .expect("a location");
            let function = &profile.function[location.line[0].function_id as usize - 1];
            let name = (text(function.name), text(function.system_name), text(function.filename));
            format!("{} {} {} {}", name.0, name.1, name.2, location.line[0].line)
        };
        let samples = profile.sample.iter().map(|sample| {
            let places: Vec<String> = sample.location_id.iter().map(place).collect();
            format!("{} {}", sample.value[0], places.join(" < "))
        });
        let samples: Vec<String> = samples.collect();
        insta::assert_snapshot!(samples.join("\n"), @"
        42 work() work a.cpp 22 < main() main a.cpp 3
        7 work() work a.cpp 20 < main() main a.cpp 3
        ");
    }
}
