//! A profile becomes rows of all tables.

use crate::columns::{Rows, Value};
use crate::path_text;
use crate::schema::*;
use pleach_annotate::manifest::encode_graph;
use pleach_profile::sums::{PathSum, PredictionSum, RunSums, count_units};
use pleach_profile::{FunctionProfile, Profile, RecordedModule};

/// Kinds of [`ORIGINS`].
pub(crate) const COMMAND: &str = "command";
pub(crate) const ENGINE: &str = "engine";
pub(crate) const MODULE_KIND: &str = "module";

/// The bits of a hash as a signed number, which all engines have.
fn bits(hash: u64) -> Value<'static> {
    Value::Integer(hash.cast_signed())
}

/// The rows of a profile in all tables, in the order of [`TABLES`].
pub(crate) fn of_profile(profile: &Profile, run: &str) -> Vec<Rows> {
    let mut rows = TableRows {
        run,
        tables: TABLES.map(Rows::new),
    };
    rows.whole(profile);
    for function in &profile.functions {
        rows.function(function);
    }
    rows.tables.into()
}

struct TableRows<'r> {
    run: &'r str,
    tables: [Rows; TABLES.len()],
}

/// A function's key in a row.
macro_rules! keyed {
    ($run:expr, $function:expr $(, $value:expr)* $(,)?) => {
        [
            $run.into(),
            bits($function.id.guid.0),
            $function.id.module.0.into(),
            bits($function.cfg_hash.0),
            $($value.into()),*
        ]
    };
}

impl<'r> TableRows<'r> {
    fn table(&mut self, table: Table) -> &mut Rows {
        let at = TABLES.iter().position(|t| t.name == table.name).unwrap_or_default();
        &mut self.tables[at]
    }

    fn whole(&mut self, profile: &Profile) {
        let (run, p) = (self.run, &profile.provenance);
        let samples = profile
            .functions
            .iter()
            .fold(0u64, |sum, f| sum.saturating_add(f.samples));
        let of_recording = || RunSums::from_recording(samples, profile.scale, p.program_cpu_seconds, p.own_cpu_seconds);
        let sums = p.sums.unwrap_or_else(of_recording);
        self.table(RUNS).push([
            run.into(),
            SCHEMA_VERSION.into(),
            profile.anchor.name().into(),
            p.sums.is_some().into(),
            profile.scale.into(),
            sums.samples.into(),
            sums.executions.into(),
            p.program_cpu_seconds.into(),
            p.own_cpu_seconds.into(),
            sums.program_nanoseconds.into(),
            sums.own_nanoseconds.into(),
            p.bursts.into(),
            p.taken_branches.into(),
            p.hot_instance_count.into(),
        ]);
        let module = |m: &'_ RecordedModule| (m.path.clone(), m.build_id.clone());
        let origins = (p.commands.iter().enumerate())
            .map(|(at, command)| (COMMAND, at, (command.clone(), String::new())))
            .chain(
                p.engines
                    .iter()
                    .enumerate()
                    .map(|(at, engine)| (ENGINE, at, (engine.clone(), String::new()))),
            )
            .chain(p.modules.iter().enumerate().map(|(at, m)| (MODULE_KIND, at, module(m))));
        let rows = self.table(ORIGINS);
        for (kind, at, (value, build)) in origins {
            rows.push([
                run.into(),
                kind.into(),
                at.into(),
                value.as_str().into(),
                build.as_str().into(),
                1u64.into(),
            ]);
        }
        if let Some(vectors) = &profile.vectors {
            self.table(VECTORS).push([run.into(), Value::Bytes(vectors)]);
        }
    }

    fn function(&mut self, f: &FunctionProfile) {
        let run = self.run;
        let graph = f.graph.as_deref().map(encode_graph);
        let graph = graph.as_deref().map_or(Value::Null, Value::Bytes);
        let (has_coverage, has_counted) = (!f.coverage.is_empty(), !f.counted.is_empty());
        let (blocks, edges) = (f.blocks.len(), f.edges.len());
        let row = keyed!(
            run,
            f,
            f.name.as_str(),
            f.samples,
            blocks,
            edges,
            graph,
            has_coverage,
            has_counted
        );
        self.table(FUNCTIONS).push(row);
        for (table, counts) in [(BLOCKS, &f.blocks), (EDGES, &f.edges)] {
            let rows = self.table(table);
            for (at, &count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
                rows.push(keyed!(run, f, at, count));
            }
        }
        if has_coverage || has_counted {
            let rows = self.table(COVERAGE);
            for block in 0..blocks {
                let state = f.coverage.get(block).copied().unwrap_or_default();
                let counted = f.executions(block);
                let at_most = counted.at_most.map_or(Value::Null, Value::from);
                rows.push(keyed!(run, f, block, state as u32, counted.at_least, at_most));
            }
        }
        self.calls(f);
        self.estimates(f);
    }

    fn calls(&mut self, f: &FunctionProfile) {
        let run = self.run;
        for site in &f.call_targets {
            let rows = self.table(CALLS);
            if site.targets.is_empty() {
                rows.push(keyed!(run, f, site.call, Value::Null, 0u64));
            }
            for (target, count) in &site.targets {
                rows.push(keyed!(run, f, site.call, bits(target.0), *count));
            }
        }
        for operand in &f.values {
            let site = operand.site.number();
            self.table(VALUE_SITES)
                .push(keyed!(run, f, site, operand.bursts, operand.others));
            for &(value, count) in &operand.values {
                self.table(SITE_VALUES).push(keyed!(run, f, site, value, count));
            }
        }
    }

    fn estimates(&mut self, f: &FunctionProfile) {
        let run = self.run;
        let sums = f.sums.as_deref();
        for p in &f.paths {
            let known = sums.and_then(|sums| sums.paths.get(&p.path));
            let sum = known.copied().unwrap_or_else(|| PathSum::from_path(p));
            self.table(PATHS).push(keyed!(
                run,
                f,
                path_text::path(&p.path).as_str(),
                known.is_some(),
                p.count,
                p.low,
                p.high,
                p.effective,
                sum.count,
                sum.low,
                sum.high,
                sum.effective,
                sum.certain,
                sum.kish,
            ));
        }
        for w in &f.windows {
            let known = sums.and_then(|sums| sums.windows.get(&w.paths));
            let sum = known.copied().unwrap_or_else(|| count_units(w.count));
            let text = path_text::window(&w.paths);
            self.table(WINDOWS)
                .push(keyed!(run, f, text.as_str(), known.is_some(), w.count, sum));
        }
        for c in &f.called {
            let known = sums.and_then(|sums| sums.called.get(&(c.caller.clone(), c.path.clone())));
            let sum = known.copied().unwrap_or_else(|| count_units(c.count));
            let (before, path) = (path_text::blocks(&c.caller.before), path_text::path(&c.path));
            self.table(CALLED).push(keyed!(
                run,
                f,
                bits(c.caller.id.guid.0),
                c.caller.id.module.0,
                bits(c.caller.cfg_hash.0),
                before.as_str(),
                path.as_str(),
                known.is_some(),
                c.count,
                sum,
            ));
        }
        for p in &f.predictions {
            let known = sums.and_then(|sums| sums.predictions.get(&p.block));
            let sum = known.copied().unwrap_or_else(|| PredictionSum::from_prediction(p));
            self.table(PREDICTIONS).push(keyed!(
                run,
                f,
                p.block.0,
                known.is_some(),
                p.watched,
                p.mispredicted,
                p.low,
                sum.watched,
                sum.mispredicted,
                sum.low,
            ));
        }
    }
}
