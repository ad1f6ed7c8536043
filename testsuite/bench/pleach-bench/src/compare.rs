//! Comparing variants over workloads: instructions, code size, compile time and paired run times against a base.

use anyhow::Result;
use pleach_harness::bench::Bench;
use pleach_harness::build::Binary;
use pleach_harness::counts::{Counts, Simulation};
use pleach_harness::paired::Paired;
use pleach_harness::size::{TextSize, text_size};
use pleach_harness::stats::geometric_mean;
use pleach_harness::table::{Cell, Section, Table};
use pleach_harness::variant::Variant;
use pleach_harness::workload::{InputKind, Workload};
use pleach_harness::{parallel, progress};

/// Options of a comparison.
#[derive(Clone, Debug)]
pub struct ComparisonOptions {
    /// The input that is run under cachegrind; none to leave counting out.
    pub count_on: Option<InputKind>,
    /// What cachegrind simulates.
    pub simulation: Simulation,
    /// Whether taken branches are counted too, in a run of their own.
    pub taken_branches: bool,
    /// The input that is timed.
    pub time_on: InputKind,
    /// Pairs of timed runs; 0 to leave timing out.
    pub pairs: usize,
    /// Builds and cachegrind runs at a time. Timed runs are never parallel.
    pub jobs: usize,
}

impl Default for ComparisonOptions {
    fn default() -> Self {
        Self {
            count_on: Some(InputKind::Count),
            simulation: Simulation::InstructionsOnly,
            taken_branches: false,
            time_on: InputKind::Ref,
            pairs: 5,
            jobs: parallel::default_jobs(),
        }
    }
}

/// Figures of one binary.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The binary.
    pub binary: Binary,
    /// Its size.
    pub size: TextSize,
    /// Its counts, unless left out.
    pub counts: Option<Counts>,
}

/// One variant of one workload beside the base.
#[derive(Clone, Debug)]
pub struct Row {
    /// The workload's name.
    pub workload: String,
    /// The base's figures.
    pub base: Measured,
    /// The variant's figures.
    pub variant: Measured,
    /// Times of both, unless left out.
    pub times: Option<Paired>,
}

/// Builds all variants of all workloads and measures them against `base`.
pub fn compare(
    bench: &Bench,
    workloads: &[&Workload],
    base: &Variant,
    variants: &[Variant],
    options: &ComparisonOptions,
) -> Result<Vec<Row>> {
    let binaries = produce_all(bench, workloads, base, variants, options)?;
    let measured = measure_all(bench, binaries, options)?;

    let columns = variants.len() + 1;
    let mut rows = Vec::new();
    for (workload, row) in workloads.iter().zip(measured.chunks(columns)) {
        let Some((base, others)) = row.split_first() else {
            continue;
        };
        for variant in others {
            rows.push(Row {
                workload: workload.name.clone(),
                base: base.clone(),
                variant: variant.clone(),
                times: None,
            });
        }
    }
    time(bench, &mut rows, options)?;
    Ok(rows)
}

/// Times the two binaries of each row in interleaved pairs, unless there are to be none.
pub fn time(bench: &Bench, rows: &mut [Row], options: &ComparisonOptions) -> Result<()> {
    if options.pairs == 0 {
        return Ok(());
    }
    let bar = progress::bar(rows.len(), "timing");
    for row in rows {
        bar.set_message(format!("{} {}", row.workload, row.variant.binary.label));
        let (base, variant) = (&row.base.binary, &row.variant.binary);
        row.times = Some(bench.paired(base, variant, options.time_on, options.pairs)?);
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(())
}

/// The binaries of each workload, base first.
fn produce_all(
    bench: &Bench,
    workloads: &[&Workload],
    base: &Variant,
    variants: &[Variant],
    options: &ComparisonOptions,
) -> Result<Vec<Binary>> {
    let all: Vec<&Variant> = std::iter::once(base).chain(variants).collect();
    let bar = progress::bar(workloads.len() * all.len(), "building");
    let produce = |bench: &Bench, workload: &Workload, variant: &Variant| {
        bar.set_message(format!("{} {}", workload.name, variant.label()));
        let binary = variant.produce(bench, workload)?;
        bar.inc(1);
        anyhow::Ok(binary)
    };
    // Variants of one workload share training results: one after the other.
    let jobs = options.jobs.min(workloads.len()).max(1);
    let side_by_side = bench.with_jobs(options.jobs.div_ceil(jobs));
    let early = parallel::map(workloads, jobs, |workload| {
        let produce = |variant: &&Variant| {
            let early = !variant.samples();
            early.then(|| produce(&side_by_side, workload, variant)).transpose()
        };
        all.iter().map(produce).collect::<Result<Vec<_>>>()
    })?;
    // The sampler keeps its budget by the clock: other work would disturb it.
    let mut binaries = Vec::with_capacity(workloads.len() * all.len());
    for (workload, early) in workloads.iter().zip(early) {
        for (variant, binary) in all.iter().zip(early) {
            binaries.push(match binary {
                Some(binary) => binary,
                None => produce(bench, workload, variant)?,
            });
        }
    }
    bar.finish_and_clear();
    Ok(binaries)
}

fn measure_all(bench: &Bench, binaries: Vec<Binary>, options: &ComparisonOptions) -> Result<Vec<Measured>> {
    let bar = progress::bar(binaries.len(), "counting");
    let measured = parallel::map(&binaries, options.jobs, |binary| {
        bar.set_message(format!("{} {}", binary.workload, binary.label));
        let count = |kind| -> Result<Counts> {
            let mut counts = bench.counts(binary, kind, options.simulation)?;
            if options.taken_branches {
                counts.taken_branches = Some(bench.taken_branches(binary, kind)?);
            }
            Ok(counts)
        };
        let counts = options.count_on.map(count).transpose()?;
        bar.inc(1);
        Ok(Measured {
            binary: binary.clone(),
            size: text_size(&binary.path)?,
            counts,
        })
    });
    bar.finish_and_clear();
    measured
}

impl Row {
    /// Variant ÷ base, of anything that both have.
    fn ratio(&self, of: impl Fn(&Measured) -> Option<f64>) -> f64 {
        match (of(&self.base), of(&self.variant)) {
            (Some(base), Some(variant)) if base > 0.0 => variant / base,
            _ => f64::NAN,
        }
    }

    /// Executed instructions against the base.
    pub fn instructions(&self) -> f64 {
        self.ratio(|measured| Some(measured.counts?.instructions as f64))
    }

    /// Taken branches against the base.
    pub fn taken_branches(&self) -> f64 {
        self.ratio(|measured| Some(measured.counts?.taken_branches? as f64))
    }

    /// First-level instruction-cache misses in cachegrind's model, against the base.
    pub fn i1_misses(&self) -> f64 {
        self.ratio(|measured| Some(measured.counts?.i1_misses? as f64))
    }

    /// Mispredicted branches in cachegrind's model, against the base.
    pub fn mispredicts(&self) -> f64 {
        self.ratio(|measured| Some(measured.counts?.mispredicts()? as f64))
    }

    /// Executable bytes against the base.
    pub fn text(&self) -> f64 {
        self.ratio(|measured| Some(measured.size.executable as f64))
    }

    /// CPU time of the compilations against the base.
    pub fn compile_time(&self) -> f64 {
        self.ratio(|measured| Some(measured.binary.report.compile_cpu()))
    }
}

/// One line per workload and variant, then the geometric means of each variant.
pub fn table(rows: &[Row]) -> Table {
    let with_model = rows.iter().any(|row| row.i1_misses().is_finite());
    let mut columns = vec![
        ("workload", "workload"),
        ("variant", "variant"),
        ("base_instructions", "base instr."),
        ("instructions", "instr. ×"),
    ];
    let with_taken = rows.iter().any(|row| row.taken_branches().is_finite());
    if with_taken {
        columns.push(("taken_branches", "taken ×"));
    }
    if with_model {
        columns.extend([("i1_misses", "I1 misses ×"), ("mispredicts", "mispredicts ×")]);
    }
    columns.extend([
        ("base_text", "base text"),
        ("text", "text ×"),
        ("compile_time", "compile ×"),
        ("base_seconds", "base s"),
        ("wall", "wall × [95 %]"),
        ("cpu", "CPU × [95 %]"),
    ]);
    let mut table = Table::new(columns);

    for row in rows {
        let mut cells: Vec<Cell> = vec![
            row.workload.as_str().into(),
            row.variant.binary.label.as_str().into(),
            row.base.counts.map(|counts| counts.instructions).into(),
            Cell::Number(row.instructions(), 3),
        ];
        if with_taken {
            cells.push(Cell::Number(row.taken_branches(), 3));
        }
        if with_model {
            cells.extend([Cell::Number(row.i1_misses(), 3), Cell::Number(row.mispredicts(), 3)]);
        }
        cells.extend([
            row.base.size.executable.into(),
            Cell::Number(row.text(), 3),
            Cell::Number(row.compile_time(), 2),
        ]);
        if let Some(times) = &row.times {
            cells.extend([
                Cell::Number(times.cpu.a.median, 3),
                Cell::Ratio(times.wall.ratio),
                Cell::Ratio(times.cpu.ratio),
            ]);
        }
        table.push(cells);
    }

    let mut labels: Vec<&str> = rows.iter().map(|row| row.variant.binary.label.as_str()).collect();
    labels.sort_unstable();
    labels.dedup();
    for label in labels {
        let own: Vec<&Row> = rows.iter().filter(|row| row.variant.binary.label == label).collect();
        let mean = |of: &dyn Fn(&Row) -> f64| geometric_mean(own.iter().map(|&row| of(row)));
        let time = |of: &dyn Fn(&Paired) -> f64| mean(&|row| row.times.as_ref().map_or(f64::NAN, of));
        let mut cells = vec![
            "geometric mean".into(),
            label.into(),
            Cell::Missing,
            Cell::Number(mean(&Row::instructions), 3),
        ];
        if with_taken {
            cells.push(Cell::Number(mean(&Row::taken_branches), 3));
        }
        if with_model {
            cells.extend([
                Cell::Number(mean(&Row::i1_misses), 3),
                Cell::Number(mean(&Row::mispredicts), 3),
            ]);
        }
        cells.extend([
            Cell::Missing,
            Cell::Number(mean(&Row::text), 3),
            Cell::Number(mean(&Row::compile_time), 2),
            Cell::Missing,
            Cell::Number(time(&|times| times.wall.ratio.value), 3),
            Cell::Number(time(&|times| times.cpu.ratio.value), 3),
        ]);
        table.push(cells);
    }
    table
}

/// The table, and where instrumented variants are among the rows, what they cost against each other.
pub fn sections(rows: &[Row]) -> Vec<Section> {
    let mut sections: Vec<Section> = table(rows).into();
    let overheads = overheads(rows);
    if !overheads.is_empty() {
        sections.push(Section::new("overheads", "Against each other", overheads));
    }
    sections
}

/// Geometric means of variants' ratios to the base, against each other.
fn overheads(rows: &[Row]) -> Table {
    let cpu = |row: &Row| row.times.as_ref().map_or(f64::NAN, |times| times.cpu.ratio.value);
    let figures: [&dyn Fn(&Row) -> f64; 2] = [&cpu, &Row::instructions];
    let mean = |label: &str, of: &dyn Fn(&Row) -> f64| {
        geometric_mean(rows.iter().filter(|row| row.variant.binary.label == label).map(of))
    };
    let instrumented = Variant::IrPgoInstrumented.label();
    let no_preinline = Variant::instrumented_without_preinlining().label();
    let pairs = [
        ("paths", instrumented.as_str()),
        ("paths", &no_preinline),
        ("edges", &instrumented),
        ("edges", &no_preinline),
    ];
    let mut table = Table::new([("what", "what"), ("cpu", "CPU"), ("instructions", "instr.")]);
    let mut push = |what: String, [cpu, instructions]: [f64; 2]| {
        if cpu.is_finite() || instructions.is_finite() {
            table.push([what.into(), Cell::Number(cpu, 3), Cell::Number(instructions, 3)]);
        }
    };
    for (a, b) in pairs {
        push(format!("{a} ÷ {b}"), figures.map(|of| mean(a, of) / mean(b, of)));
    }
    // Ball & Larus report 1.9: 31 % for paths, 16 % for edges.
    let overheads = figures.map(|of| (mean("paths", of) - 1.0) / (mean("edges", of) - 1.0));
    push("overhead of paths ÷ of edges (paper: 1.9)".to_owned(), overheads);
    table
}
