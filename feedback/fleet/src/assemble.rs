//! Rows become profiles again.

use crate::columns::{Rows, Values};
use crate::path_text::{read_blocks, read_path, read_window};
use crate::rows::{COMMAND, ENGINE, MODULE_KIND};
use crate::schema::*;
use pleach_annotate::id::{BlockIndex, CfgHash, FunctionGuid, FunctionId, ModuleHash};
use pleach_annotate::manifest::{Anchor, decode_graph};
use pleach_profile::sums::{FunctionSums, PathSum, PredictionSum, RunSums};
use pleach_profile::{
    BranchPrediction, CallCrossingPath, CallTargets, Caller, Covered, EstimatedPath, Executions, FunctionProfile,
    PathWindow, Profile, Provenance, RecordedModule, ValueCounts, ValueSite,
};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The largest number of blocks or edges of a function: that of the profile's file.
const MAX_COUNTS: i64 = 1 << 24;

/// What is wrong with a table.
#[derive(Debug)]
pub(crate) struct Problem {
    pub table: &'static str,
    pub what: String,
}

/// Profiles that are put together.
#[derive(Default)]
pub(crate) struct Assembly {
    runs: BTreeMap<String, Run>,
}

#[derive(Default)]
struct Run {
    whole: Option<Whole>,
    origins: Vec<Origin>,
    functions: FxHashMap<(FunctionId, CfgHash), Function>,
    vectors: Option<Vec<u8>>,
}

/// A row of [`RUNS`].
struct Whole {
    anchor: Anchor,
    is_sum: bool,
    scale: f64,
    sums: RunSums,
    program_cpu_seconds: f64,
    own_cpu_seconds: f64,
    bursts: u64,
    taken_branches: u64,
    hot_instance_count: u64,
}

/// A row of [`ORIGINS`].
struct Origin {
    kind: String,
    position: i64,
    value: String,
    build: String,
    times: u64,
}

#[derive(Default)]
struct Function {
    /// Whether its row of [`FUNCTIONS`] was read: rows of other tables refer to it.
    is_known: bool,
    profile: FunctionProfile,
    has_coverage: bool,
    has_counted: bool,
    sums: FunctionSums,
}

/// The values of a row, one after the other.
struct Row<'r> {
    rows: &'r Rows,
    at: usize,
    next: usize,
}

impl<'r> Row<'r> {
    fn column(&mut self) -> &'r Values {
        self.next += 1;
        &self.rows.columns[self.next - 1]
    }

    // The reader checked types, and that only optional columns have nulls.

    fn bytes(&mut self) -> Option<&'r [u8]> {
        let at = self.at;
        match self.column() {
            Values::Bytes(all) => all[at].as_deref(),
            _ => None,
        }
    }

    fn text(&mut self) -> Result<&'r str, String> {
        std::str::from_utf8(self.bytes().unwrap_or_default()).map_err(|_| "text that is not UTF-8".into())
    }

    fn optional_integer(&mut self) -> Option<i64> {
        let at = self.at;
        match self.column() {
            Values::Integer(all) => all[at],
            _ => None,
        }
    }

    fn integer(&mut self) -> i64 {
        self.optional_integer().unwrap_or_default()
    }

    /// The bits of a hash.
    fn hash(&mut self) -> u64 {
        self.integer().cast_unsigned()
    }

    fn index(&mut self) -> Result<u32, String> {
        let value = self.integer();
        u32::try_from(value).map_err(|_| format!("{value} is not a position"))
    }

    fn optional_decimal(&mut self) -> Option<u128> {
        let at = self.at;
        match self.column() {
            Values::Decimal(all) => all[at],
            _ => None,
        }
    }

    fn wide(&mut self) -> u128 {
        self.optional_decimal().unwrap_or_default()
    }

    fn unsigned(&mut self) -> u64 {
        // The reader checked the range.
        self.wide() as u64
    }

    fn real(&mut self) -> f64 {
        let at = self.at;
        match self.column() {
            Values::Real(all) => all[at].unwrap_or_default(),
            _ => 0.0,
        }
    }

    fn flag(&mut self) -> bool {
        let at = self.at;
        match self.column() {
            Values::Flag(all) => all[at].unwrap_or_default(),
            _ => false,
        }
    }

    fn key(&mut self) -> Result<(FunctionId, CfgHash), String> {
        let id = FunctionId {
            guid: FunctionGuid(self.hash()),
            module: ModuleHash(self.index()?),
        };
        Ok((id, CfgHash(self.hash())))
    }
}

impl Assembly {
    /// Adds rows of a table.
    ///
    /// # Errors
    /// A value is none that a profile has.
    pub fn add(&mut self, rows: &Rows) -> Result<(), Problem> {
        let problem = |what: String| Problem {
            table: rows.table.name,
            what,
        };
        let mut latest: Option<(String, Run)> = None;
        for at in 0..rows.len {
            let mut row = Row { rows, at, next: 0 };
            let name = row.text().map_err(problem)?;
            // Rows of a run mostly follow each other.
            if latest.as_ref().is_none_or(|(run, _)| run != name) {
                if let Some((name, run)) = latest.take() {
                    self.runs.insert(name, run);
                }
                latest = Some((name.to_owned(), self.runs.remove(name).unwrap_or_default()));
            }
            let Some((_, run)) = &mut latest else { continue };
            run.add(rows.table, row).map_err(problem)?;
        }
        if let Some((name, run)) = latest {
            self.runs.insert(name, run);
        }
        Ok(())
    }

    /// The names of the runs so far.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.runs.keys().map(String::as_str)
    }

    /// The profiles, each with whether it has exact sums of several recordings.
    ///
    /// # Errors
    /// Tables refer to rows that are not there.
    pub fn finish(self) -> Result<Vec<(Profile, bool)>, Problem> {
        self.runs.into_iter().map(|(name, run)| run.finish(&name)).collect()
    }
}

impl Run {
    fn add(&mut self, table: Table, mut row: Row<'_>) -> Result<(), String> {
        if table == RUNS {
            return self.add_whole(row);
        }
        if table == ORIGINS {
            self.origins.push(Origin {
                kind: row.text()?.to_owned(),
                position: row.integer(),
                value: row.text()?.to_owned(),
                build: row.text()?.to_owned(),
                times: row.unsigned(),
            });
            return Ok(());
        }
        if table == VECTORS {
            self.vectors = row.bytes().map(<[u8]>::to_vec);
            return Ok(());
        }
        let key = row.key()?;
        self.functions.entry(key).or_default().add(key, table, row)
    }

    fn add_whole(&mut self, mut row: Row<'_>) -> Result<(), String> {
        let version = row.integer();
        if version != SCHEMA_VERSION {
            return Err(format!(
                "version {version}, but this pleach reads version {SCHEMA_VERSION}"
            ));
        }
        let anchor = row.text()?;
        let anchor = [Anchor::Early, Anchor::Late]
            .into_iter()
            .find(|known| known.name() == anchor);
        let anchor = anchor.ok_or("no single anchor: profiles of both cannot be merged")?;
        let (is_sum, scale) = (row.flag(), row.real());
        let (samples, executions) = (row.unsigned(), row.wide());
        let (program_cpu_seconds, own_cpu_seconds) = (row.real(), row.real());
        let whole = Whole {
            anchor,
            is_sum,
            scale,
            program_cpu_seconds,
            own_cpu_seconds,
            sums: RunSums {
                samples,
                executions,
                program_nanoseconds: row.unsigned(),
                own_nanoseconds: row.unsigned(),
            },
            bursts: row.unsigned(),
            taken_branches: row.unsigned(),
            hot_instance_count: row.unsigned(),
        };
        match self.whole.replace(whole) {
            Some(_) => Err("a run has two rows".into()),
            None => Ok(()),
        }
    }

    fn finish(self, name: &str) -> Result<(Profile, bool), Problem> {
        let problem = |table: Table, what: &str| Problem {
            table: table.name,
            what: format!("run {name}: {what}"),
        };
        let whole = self.whole.ok_or_else(|| problem(RUNS, "it has no row"))?;
        let is_sum = whole.is_sum;
        let provenance = provenance(&whole, self.origins).map_err(|what| problem(ORIGINS, &what))?;
        let mut functions = Vec::with_capacity(self.functions.len());
        for function in self.functions.into_values() {
            functions.push(function.finish().map_err(|what| problem(FUNCTIONS, what))?);
        }
        functions.sort_unstable_by_key(|f| (f.id, f.cfg_hash));
        let profile = Profile {
            scale: if is_sum {
                whole.sums.scale().unwrap_or(whole.scale)
            } else {
                whole.scale
            },
            anchor: whole.anchor,
            provenance,
            functions,
            // Tables have none.
            events: Vec::new(),
            vectors: self.vectors,
        };
        Ok((profile, is_sum))
    }
}

fn provenance(whole: &Whole, mut origins: Vec<Origin>) -> Result<Provenance, String> {
    let mut provenance = Provenance {
        program_cpu_seconds: whole.program_cpu_seconds,
        own_cpu_seconds: whole.own_cpu_seconds,
        bursts: whole.bursts,
        taken_branches: whole.taken_branches,
        hot_instance_count: whole.hot_instance_count,
        ..Provenance::default()
    };
    origins.sort_by_key(|origin| origin.position);
    for Origin {
        kind,
        value,
        build,
        times,
        ..
    } in origins
    {
        match kind.as_str() {
            COMMAND => {
                let times = usize::try_from(times).ok().filter(|&times| times <= 1 << 32);
                let times = times.ok_or("a command has too many runs")?;
                provenance.commands.extend(std::iter::repeat_n(value, times));
            }
            ENGINE => provenance.engines.push(value),
            MODULE_KIND => provenance.modules.push(RecordedModule {
                path: value,
                build_id: build,
            }),
            other => return Err(format!("unknown kind {other}")),
        }
    }
    if whole.is_sum {
        // What an engine grouped has any order.
        provenance.commands.sort_unstable();
        provenance.engines.sort_unstable();
        provenance.modules.sort_unstable();
        provenance.program_cpu_seconds = whole.sums.program_nanoseconds as f64 / 1e9;
        provenance.own_cpu_seconds = whole.sums.own_nanoseconds as f64 / 1e9;
        provenance.sums = Some(whole.sums);
    }
    Ok(provenance)
}

impl Function {
    fn add(&mut self, (id, cfg_hash): (FunctionId, CfgHash), table: Table, mut row: Row<'_>) -> Result<(), String> {
        let f = &mut self.profile;
        (f.id, f.cfg_hash) = (id, cfg_hash);
        match table.name {
            "functions" => {
                if std::mem::replace(&mut self.is_known, true) {
                    return Err(format!("function {id} with graph {cfg_hash} has two rows"));
                }
                f.name = row.text()?.to_owned();
                f.samples = row.unsigned();
                for counts in [&mut f.blocks, &mut f.edges] {
                    let length = row.integer();
                    if !(0..=MAX_COUNTS).contains(&length) {
                        return Err(format!("function {id} has {length} blocks or edges"));
                    }
                    resize(counts, length as usize);
                }
                if let Some(graph) = row.bytes() {
                    let graph = decode_graph(graph).filter(|graph| graph.hash() == cfg_hash);
                    f.graph = Some(Box::new(
                        graph.ok_or_else(|| format!("function {id}: its graph is malformed"))?,
                    ));
                }
                (self.has_coverage, self.has_counted) = (row.flag(), row.flag());
            }
            "blocks" => set(&mut f.blocks, row.index()?, row.unsigned())?,
            "edges" => set(&mut f.edges, row.index()?, row.unsigned())?,
            "coverage" => {
                let (block, state) = (row.index()?, row.integer());
                let state = u8::try_from(state).ok().and_then(Covered::from_u8);
                set(&mut f.coverage, block, state.ok_or("an unknown state of a block")?)?;
                let at_least = row.unsigned();
                let at_most = row.optional_decimal().map(|most| most as u64);
                set(&mut f.counted, block, Executions { at_least, at_most })?;
            }
            "calls" => {
                let call = row.index()?;
                let target = row.optional_integer().map(|guid| FunctionGuid(guid.cast_unsigned()));
                let targets = target.map(|target| (target, row.unsigned()));
                f.call_targets.push(CallTargets {
                    call,
                    targets: targets.into_iter().collect(),
                });
            }
            "value_sites" => f.values.push(ValueCounts {
                site: ValueSite::from_number(row.index()?),
                bursts: row.unsigned(),
                values: Vec::new(),
                others: row.unsigned(),
            }),
            "site_values" => f.values.push(ValueCounts {
                site: ValueSite::from_number(row.index()?),
                bursts: 0,
                values: vec![(row.unsigned(), row.unsigned())],
                others: 0,
            }),
            _ => self.add_estimate(table, row)?,
        }
        Ok(())
    }

    fn add_estimate(&mut self, table: Table, mut row: Row<'_>) -> Result<(), String> {
        let (f, sums) = (&mut self.profile, &mut self.sums);
        let no_path = |text: &str| format!("`{text}` is not a path");
        match table.name {
            "paths" => {
                let text = row.text()?;
                let path = read_path(text).ok_or_else(|| no_path(text))?;
                let is_sum = row.flag();
                let (count, low, high, effective) = (row.real(), row.real(), row.real(), row.real());
                if is_sum {
                    let sum = PathSum {
                        count: row.wide(),
                        low: row.wide(),
                        high: row.wide(),
                        effective: row.wide(),
                        certain: row.unsigned(),
                        kish: row.wide(),
                    };
                    sums.paths.insert(path.clone(), sum);
                }
                f.paths.push(EstimatedPath {
                    path,
                    count,
                    low,
                    high,
                    effective,
                });
            }
            "windows" => {
                let text = row.text()?;
                let paths = read_window(text).ok_or_else(|| no_path(text))?;
                let (is_sum, count, sum) = (row.flag(), row.real(), row.wide());
                if is_sum {
                    sums.windows.insert(paths.clone(), sum);
                }
                f.windows.push(PathWindow { paths, count });
            }
            "called" => {
                let (id, cfg_hash) = row.key()?;
                let before = row.text()?;
                let before = read_blocks(before).ok_or_else(|| format!("`{before}` are no blocks"))?;
                let text = row.text()?;
                let path = read_path(text).ok_or_else(|| no_path(text))?;
                let caller = Caller { id, cfg_hash, before };
                let (is_sum, count, sum) = (row.flag(), row.real(), row.wide());
                if is_sum {
                    sums.called.insert((caller.clone(), path.clone()), sum);
                }
                f.called.push(CallCrossingPath { caller, path, count });
            }
            _ => {
                let block = BlockIndex(row.index()?);
                let is_sum = row.flag();
                let (watched, mispredicted, low) = (row.real(), row.real(), row.real());
                if is_sum {
                    let sum = PredictionSum {
                        watched: row.wide(),
                        mispredicted: row.wide(),
                        low: row.wide(),
                    };
                    sums.predictions.insert(block, sum);
                }
                f.predictions.push(BranchPrediction {
                    block,
                    watched,
                    mispredicted,
                    low,
                });
            }
        }
        Ok(())
    }

    /// The function, with its lists in the order of a file's reader.
    fn finish(self) -> Result<FunctionProfile, &'static str> {
        let mut f = self.profile;
        if !self.is_known {
            return Err("a table names a function that it does not have");
        }
        let blocks = f.blocks.len();
        if f.coverage.len() > blocks || f.counted.len() > blocks {
            return Err("a function has coverage of more blocks than it has");
        }
        match self.has_coverage {
            true => f.coverage.resize(blocks, Covered::Unknown),
            false => f.coverage.clear(),
        }
        match self.has_counted {
            true => f.counted.resize(blocks, Executions::UNKNOWN),
            false => f.counted.clear(),
        }
        f.call_targets = by_site(
            f.call_targets,
            |site| site.call,
            |site, other| site.targets.extend(other.targets),
        );
        for site in &mut f.call_targets {
            site.targets
                .sort_unstable_by_key(|&(guid, count)| (Reverse(count), guid));
        }
        f.values = by_site(
            f.values,
            |operand| operand.site.number(),
            |operand, other| {
                operand.bursts = operand.bursts.saturating_add(other.bursts);
                operand.others = operand.others.saturating_add(other.others);
                operand.values.extend(other.values);
            },
        );
        for operand in &mut f.values {
            operand
                .values
                .sort_unstable_by_key(|&(value, count)| (Reverse(count), value));
        }
        f.paths.sort_unstable_by(EstimatedPath::hottest_first);
        f.windows.sort_unstable_by(|a, b| a.paths.cmp(&b.paths));
        f.called
            .sort_unstable_by(|a, b| (&a.caller, &a.path).cmp(&(&b.caller, &b.path)));
        f.predictions.sort_unstable_by_key(|p| p.block);
        f.sums = (!self.sums.is_empty()).then(|| Box::new(self.sums));
        Ok(f)
    }
}

/// Makes room for as many counts as a function has, more of which may be there already.
fn resize(counts: &mut Vec<u64>, length: usize) {
    counts.resize(length.max(counts.len()), 0);
}

/// Sets an element of a list that grows as needed.
fn set<T: Clone + Default>(list: &mut Vec<T>, at: u32, value: T) -> Result<(), String> {
    let at = at as usize;
    if at >= MAX_COUNTS as usize {
        return Err(format!("position {at} is too large"));
    }
    if list.len() <= at {
        list.resize(at + 1, T::default());
    }
    list[at] = value;
    Ok(())
}

/// Joins elements of one site.
fn by_site<T>(list: Vec<T>, site: impl Fn(&T) -> u32, mut join: impl FnMut(&mut T, T)) -> Vec<T> {
    let mut all: BTreeMap<u32, T> = BTreeMap::new();
    for element in list {
        match all.entry(site(&element)) {
            std::collections::btree_map::Entry::Vacant(place) => drop(place.insert(element)),
            std::collections::btree_map::Entry::Occupied(mut known) => join(known.get_mut(), element),
        }
    }
    all.into_values().collect()
}
