//! What `pleach coverage` and `pleach source` say.

use pleach_feedback_tests::counts_support;

use counts_support::cfg;
use pleach_annotate::cfg::Cfg;
use pleach_annotate::id::{CfgHash, FunctionId};
use pleach_profile::{Covered, FunctionProfile, Profile};
use pleach_report::coverage::CoverageReport;
use pleach_report::lines::{LEGEND, SourceFiles};
use std::path::PathBuf;

use Covered::{ByDominance, Predicted, PredictedByDominance, Proved, Unknown};

fn graphs() -> Vec<Cfg> {
    let mut graphs = vec![
        cfg("scan", &[&[1, 2], &[3], &[3], &[1, 4], &[]]),
        cfg("report", &[&[1, 2], &[2], &[]]),
        cfg("never", &[&[]]),
        cfg("elsewhere", &[&[]]),
    ];
    let lines: [&[u32]; 4] = [&[2, 3, 5, 6, 8], &[11, 12, 11], &[15], &[0]];
    for (cfg, lines) in graphs.iter_mut().zip(lines) {
        for (block, line) in cfg.blocks.iter_mut().zip(lines) {
            block.line = *line;
        }
    }
    graphs
}

fn profile(graphs: &[Cfg]) -> Profile {
    let coverage: [(&[Covered], &[u64]); 4] = [
        (
            &[ByDominance, Proved, Unknown, Proved, ByDominance],
            &[0, 120_000, 0, 121_000, 900],
        ),
        (&[PredictedByDominance, Predicted, PredictedByDominance], &[40, 40, 40]),
        (&[], &[0]),
        (&[Proved], &[70]),
    ];
    let function = |(cfg, (coverage, blocks)): (&Cfg, (&[Covered], &[u64]))| FunctionProfile {
        id: cfg.id,
        cfg_hash: cfg.hash(),
        name: cfg.name.clone(),
        samples: 1,
        blocks: blocks.to_vec(),
        edges: vec![0; cfg.edge_count()],
        call_targets: vec![],
        paths: vec![],
        windows: Vec::new(),
        called: Vec::new(),
        predictions: Vec::new(),
        coverage: coverage.to_vec(),
        counted: Vec::new(),
    };
    Profile {
        scale: 1.0,
        functions: graphs.iter().zip(coverage).map(function).collect(),
        ..Profile::default()
    }
}

fn find<'g>(graphs: &'g [Cfg]) -> impl Fn(FunctionId, CfgHash) -> Option<&'g Cfg> {
    move |id, hash| graphs.iter().find(|cfg| (cfg.id, cfg.hash()) == (id, hash))
}

fn lines(graphs: &[Cfg]) -> SourceFiles {
    let path = |cfg: &Cfg| Some(PathBuf::from("/src").join(&cfg.source_file));
    SourceFiles::from_profile(&profile(graphs), &find(graphs), |_| true, path)
}

const SOURCE: &str = "\
void scan(char *c) {
    if (*c)
        start(c);
    else
        empty();
    while (next(c))
        ;
    done();
}

void report(void) { if (verbose)
        say();
}

void never(void) {}
";

#[test]
fn table() {
    let graphs = graphs();
    let report = CoverageReport::new(&profile(&graphs), &find(&graphs));
    insta::assert_snapshot!("coverage_table", report.to_text(None));
    insta::assert_snapshot!("coverage_table_top", report.to_text(Some(1)));
    insta::assert_snapshot!("coverage_json", report.to_json().unwrap());
    // Without graphs there are no instructions.
    let report = CoverageReport::new(&profile(&graphs), &|_, _| None);
    assert_eq!(report.instructions, None);
    assert_eq!((report.blocks.all, report.blocks.proved()), (10, 5));
}

#[test]
fn lcov() {
    let graphs = graphs();
    let lines = lines(&graphs);
    assert_eq!(lines.without_lines, 1);
    insta::assert_snapshot!("coverage_lcov", lines.to_lcov(false));
    let hit = |predicted| {
        lines
            .to_lcov(predicted)
            .lines()
            .filter(|line| *line == "DA:12,40")
            .count()
    };
    assert_eq!((hit(false), hit(true)), (0, 1));
}

#[test]
fn view() {
    let graphs = graphs();
    let lines = lines(&graphs);
    let file = lines.files.values().next().unwrap();
    insta::assert_snapshot!("source_view", format!("{LEGEND}{}", file.view(Some(SOURCE), None)));
    assert_eq!(file.view(None, None).lines().count(), file.lines.len());
}
