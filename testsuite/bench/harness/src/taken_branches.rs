//! Taken branches, counted exactly: conditional jumps that jump, all other jumps, calls and returns.
//!
//! callgrind counts executions of each instruction, and taken jumps of each conditional one. The
//! instructions, read from the files of the program and its libraries, give the rest: an unconditional branch is taken
//! each time. callgrind's call graph is not used: it reports tail calls as calls, and some returns as jumps.

use crate::build::Binary;
use crate::counts::Stripped;
use crate::run::{Invocation, run_with};
use crate::tools::Tool;
use anyhow::{Context, Result, ensure};
use pleach_annotate::binary::Binary as Code;
use pleach_annotate::code::{Transfer, instruction_at};
use pleach_annotate::probe::Address;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

/// A place in code that was executed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Site {
    /// The file that the code is in.
    pub file: PathBuf,
    /// The instruction's address, as the file has it.
    pub address: Address,
    /// Its effect on control flow.
    pub transfer: Transfer,
    /// Executions.
    pub executed: u64,
    /// Executions in which it is taken; 0 for instructions that are not branches.
    pub taken: u64,
}

/// Counts a whole run's taken branches; its checksum must be right. Code in no file, as a JIT compiler makes, is left
/// out: it does not depend on the build.
///
/// # Errors
/// There is no valgrind, or the run fails.
pub fn taken_branches(binary: &Stripped, invocation: &Invocation) -> Result<u64> {
    Ok(sites(&binary.binary, invocation)?.iter().map(|site| site.taken).sum())
}

/// All instructions in files that a run executes. Children of the program are left out.
///
/// # Errors
/// As [`taken_branches`].
pub fn sites(binary: &Binary, invocation: &Invocation) -> Result<Vec<Site>> {
    let scratch = tempfile::tempdir()?;
    let file = scratch.path().join("callgrind.out");
    let words = [
        // Prints where files were in memory.
        "-d",
        "--tool=callgrind",
        "--quiet",
        "--dump-instr=yes",
        "--dump-line=no",
        "--collect-jumps=yes",
        // Otherwise executed instructions there are not reported.
        "--skip-plt=no",
        "--compress-pos=no",
        "--compress-strings=no",
    ];
    let mut wrapper = vec![Tool::Valgrind.find()?.display().to_string()];
    wrapper.extend(words.map(str::to_owned));
    wrapper.push(format!("--callgrind-out-file={}", file.display()));
    let run = run_with(binary, invocation, &wrapper, &[])?;
    let log = run.errors.clone();
    run.expect_checksum(binary, invocation)?;
    let text = fs::read_to_string(&file).context("callgrind left no output file")?;
    let dump = Dump::parse(&text)?;
    let mut places = Places::new(segments(&log));
    let mut sites: BTreeMap<(PathBuf, Address), Site> = BTreeMap::new();
    for ((object, address), seen) in &dump.instructions {
        let Some((file, code, at)) = places.find(object, *address)? else {
            continue;
        };
        let instruction =
            instruction_at(code, at).with_context(|| format!("{}: no instruction at {:#x}", file.display(), at.0))?;
        let taken = match instruction.transfer {
            Transfer::Next | Transfer::Other => 0,
            // callgrind reports a jump to another function as a call, and also falling through into one.
            Transfer::Conditional => seen.taken(address + u64::from(instruction.len)),
            _ => seen.executed,
        };
        let site = sites.entry((file.to_owned(), at)).or_insert_with(|| Site {
            file: file.to_owned(),
            address: at,
            transfer: instruction.transfer,
            executed: 0,
            taken: 0,
        });
        site.executed += seen.executed;
        site.taken += taken;
    }
    Ok(sites.into_values().collect())
}

/// callgrind's counts of one instruction.
#[derive(Default)]
struct Seen {
    executed: u64,
    /// Jumps inside a function.
    jumped: u64,
    /// To where it left its function, with the object if that is another.
    left: Vec<(Option<String>, u64, u64)>,
}

impl Seen {
    fn taken(&self, next: u64) -> u64 {
        let left = self.left.iter().filter(|(other, to, _)| other.is_some() || *to != next);
        self.jumped + left.map(|(_, _, count)| count).sum::<u64>()
    }
}

/// The object that callgrind assigns code to, and the address: the file's where the object is known.
type Place = (String, u64);

/// The output of callgrind.
struct Dump {
    instructions: HashMap<Place, Seen>,
}

impl Dump {
    fn parse(text: &str) -> Result<Self> {
        let mut instructions: HashMap<Place, Seen> = HashMap::new();
        let (mut object, mut called) = (String::new(), None);
        let (mut total, mut sum) = (None, 0);
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            let bad = || format!("callgrind wrote '{line}'");
            if let Some(name) = line.strip_prefix("ob=") {
                name.clone_into(&mut object);
            } else if let Some(name) = line.strip_prefix("cob=") {
                called = Some(name.to_owned());
            } else if let Some(rest) = line.strip_prefix("calls=") {
                let (count, to) = parse_count(rest).with_context(bad)?;
                let from = lines.next().and_then(address).with_context(bad)?;
                let seen = instructions.entry((object.clone(), from)).or_default();
                seen.left.push((called.take().filter(|o| *o != object), to, count));
            } else if let Some(rest) = line.strip_prefix("jcnd=") {
                let (count, _) = parse_count(rest).with_context(bad)?;
                let from = lines.next().and_then(address).with_context(bad)?;
                instructions.entry((object.clone(), from)).or_default().jumped += count;
            } else if line.starts_with("jump=") {
                lines.next();
            } else if line.starts_with("0x") {
                let at = address(line).with_context(bad)?;
                let cost = line.split_whitespace().nth(1);
                let cost: u64 = cost.and_then(|cost| cost.parse().ok()).with_context(bad)?;
                instructions.entry((object.clone(), at)).or_default().executed += cost;
                sum += cost;
            } else if let Some(rest) = line.strip_prefix("summary:") {
                total = Some(rest.trim().parse::<u64>().with_context(bad)?);
            }
        }
        let total = total.context("callgrind wrote no 'summary:' line")?;
        ensure!(
            sum == total,
            "callgrind counted {total} instructions, but its lines have {sum}"
        );
        Ok(Self { instructions })
    }
}

/// Parses `COUNT/… ADDRESS` into the count and the address.
fn parse_count(text: &str) -> Option<(u64, u64)> {
    let (count, to) = text.trim_end().split_once(' ')?;
    Some((count.split('/').next()?.parse().ok()?, address(to)?))
}

/// The hexadecimal number at the beginning of a line.
fn address(line: &str) -> Option<u64> {
    let digits = line.split_whitespace().next()?.strip_prefix("0x")?;
    u64::from_str_radix(digits, 16).ok()
}

/// A part of a file in memory.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Segment {
    start: u64,
    /// The last address.
    end: u64,
    offset: u64,
    file: PathBuf,
}

/// The executable segments at the end of the run.
fn segments(log: &str) -> Vec<Segment> {
    let last = log
        .rfind("Memory layout at client shutdown")
        .map_or("", |at| &log[at..]);
    let lines = last.lines().filter_map(|line| Some(line.split_once(" aspacem ")?.1));
    let mut files = HashMap::new();
    let mut segments = Vec::new();
    for line in lines {
        // `(1,52,7) /path`: the name's number, where it is, how many segments have it.
        if let Some((numbers, path)) = line.strip_prefix('(').and_then(|rest| rest.split_once(") ")) {
            files.extend(numbers.split(',').next().map(|number| (number, path)));
        } else if let Some(segment) = segment(line, &files) {
            segments.push(segment);
        }
    }
    segments
}

/// `  2: file 000010a000-0000119fff   65536 r-xT- d=0xfe00 i=10616870 o=4096    (1,52)`.
fn segment(line: &str, files: &HashMap<&str, &str>) -> Option<Segment> {
    let mut words = line.split_once(": file ")?.1.split_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    // Sizes are sometimes glued to what is before them; access is the word after.
    let access = words.find(|word| word.len() == 5 && word.starts_with(['r', '-']))?;
    let offset = words.find_map(|word| word.strip_prefix("o="))?;
    let number = words.next()?.trim_start_matches('(').split(',').next()?;
    let hexadecimal = |text| u64::from_str_radix(text, 16).ok();
    access.contains('x').then_some(Segment {
        start: hexadecimal(start)?,
        end: hexadecimal(end)?,
        offset: offset.parse().ok()?,
        file: files.get(number)?.into(),
    })
}

/// Finds code by the places that callgrind names.
struct Places {
    segments: Vec<Segment>,
    files: HashMap<PathBuf, Code>,
}

impl Places {
    fn new(segments: Vec<Segment>) -> Self {
        Self {
            segments,
            files: HashMap::new(),
        }
    }

    /// The file, its code, and the address in the file; `None` for code in no file.
    fn find(&mut self, object: &str, address: u64) -> Result<Option<(&Path, &Code, Address)>> {
        let segment = match object {
            // Outside the section that valgrind considers the object's code, such as the procedure linkage table.
            "???" => {
                let holds = |segment: &&Segment| (segment.start..=segment.end).contains(&address);
                let Some(segment) = self.segments.iter().find(holds) else {
                    return Ok(None);
                };
                Some(segment.clone())
            }
            _ => None,
        };
        let file = segment.as_ref().map_or(Path::new(object), |segment| &segment.file);
        if !self.files.contains_key(file) {
            self.files.insert(file.to_owned(), Code::open(file)?);
        }
        let (file, code) = self.files.get_key_value(file).context("just put there")?;
        let at = match segment {
            None => Some(Address(address)),
            Some(segment) => code.address_of_offset(address - segment.start + segment.offset),
        };
        let at = at.with_context(|| format!("{}: no code at {address:#x}", file.display()))?;
        Ok(Some((file, code, at)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUMP: &str = "events: Ir\nsummary: 13\n\nob=/bin/x\nfn=f\n0x10 3\njcnd=1/3 0x20 \n0x10 \njump=2 0x40 \n0x12 \n\
                        cfn=g\ncalls=1 0x30 \n0x10 500\ncob=/lib/y\ncfn=g\ncalls=1 0x12 \n0x10 70\n0x12 10\n";

    #[test]
    fn inclusive_costs_are_not_instructions() {
        let dump = Dump::parse(DUMP).unwrap();
        let at = &dump.instructions[&("/bin/x".to_owned(), 0x10)];
        assert_eq!((at.executed, at.jumped, at.left.len()), (3, 1, 2));
        // To the next instruction of this file, or to the same address in another.
        assert_eq!((at.taken(0x30), at.taken(0x12), at.taken(0x18)), (2, 3, 3));
        assert!(Dump::parse(&DUMP.replace("summary: 13", "summary: 14")).is_err());
        assert!(Dump::parse(&DUMP.replace("calls=1", "calls=one")).is_err());
        assert!(Dump::parse("").is_err());
    }

    #[test]
    fn the_last_layout_counts() {
        let log = "--7:1: aspacem <<< SHOW_SEGMENTS: Memory layout at client startup (1 segments)\n\
                   --7:1: aspacem (1,52,7) /old\n\
                   --7:1: aspacem   2: file 000010a000-0000119fff   65536 r-xT- d=0xfe00 i=1 o=4096    (1,52)\n\
                   --7:1: aspacem <<< SHOW_SEGMENTS: Memory layout at client shutdown (2 segments)\n\
                   --7:1: aspacem (1,52,7) /with space\n\
                   --7:1: aspacem   1: file 0000108000-0000109fff    8192 r---- d=0xfe00 i=1 o=0       (1,52)\n\
                   --7:1: aspacem   2: file 000020a000-0000219fff   65536 r-xT- d=0xfe00 i=1 o=8192    (1,52)\n";
        let expected = Segment {
            start: 0x20_a000,
            end: 0x21_9fff,
            offset: 8192,
            file: "/with space".into(),
        };
        assert_eq!(segments(log), [expected]);
        assert!(segments("nothing").is_empty());
    }
}
