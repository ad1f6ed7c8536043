//! What `pleach coverage` and `pleach source` say.

use pleach_feedback_tests::counts_support;

use counts_support::cfg;
use pleach_annotate::cfg::Cfg;
use pleach_annotate::id::{CfgHash, FunctionId};
use pleach_profile::{Covered, Executions, FunctionProfile, Profile};
use pleach_report::coverage::CoverageReport;
use pleach_report::lcov::LcovOptions;
use pleach_report::lines::SourceFiles;
use pleach_report::listing::{Extent, Style};
use pleach_report::names::Names;
use std::path::PathBuf;

use Covered::{ByDominance, NotExecuted, Predicted, PredictedByDominance, Proved, Unknown};

fn graphs() -> Vec<Cfg> {
    let mut graphs = vec![
        cfg("scan", &[&[1, 2], &[3], &[3], &[1, 4], &[]]),
        cfg("report", &[&[1, 2], &[2], &[]]),
        cfg("never", &[&[]]),
        cfg("elsewhere", &[&[]]),
        cfg("rare", &[&[1, 2], &[3], &[3], &[]]),
    ];
    let lines: [&[u32]; 5] = [&[2, 3, 5, 6, 8], &[11, 12, 11], &[15], &[0], &[17, 18, 18, 19]];
    for (cfg, lines) in graphs.iter_mut().zip(lines) {
        for (block, line) in cfg.blocks.iter_mut().zip(lines) {
            block.line = *line;
        }
    }
    graphs
}

/// Coverage, estimates, and executions that breakpoints counted.
type States<'s> = (&'s [Covered], &'s [u64], &'s [u64]);

fn profile(graphs: &[Cfg]) -> Profile {
    // The estimate of a block that was not executed comes from the conservation of flow.
    let coverage: [States<'_>; 5] = [
        (
            &[ByDominance, Proved, Unknown, Proved, ByDominance],
            &[0, 120_000, 0, 121_000, 900],
            &[4, 100, 0, 0, 0],
        ),
        (
            &[PredictedByDominance, Predicted, PredictedByDominance],
            &[40, 40, 40],
            &[],
        ),
        (&[NotExecuted], &[0], &[]),
        (&[Proved], &[70], &[]),
        (
            &[Proved, NotExecuted, Unknown, NotExecuted],
            &[0, 5, 0, 0],
            &[3, 0, 0, 0],
        ),
    ];
    let function = |(cfg, (coverage, blocks, counted)): (&Cfg, States<'_>)| FunctionProfile {
        id: cfg.id,
        cfg_hash: cfg.hash(),
        name: cfg.name.clone(),
        samples: 1,
        blocks: blocks.to_vec(),
        edges: vec![0; cfg.edge_count()],
        coverage: coverage.to_vec(),
        counted: counted
            .iter()
            .map(|&at_least| Executions {
                at_least,
                at_most: (at_least > 0).then_some(40),
            })
            .collect(),
        ..FunctionProfile::default()
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
    SourceFiles::from_profile(&profile(graphs), &find(graphs), |_| true, path, |_| &[])
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

void rare(void) {
    if (full) grow(); else if (odd) skip();
    done();
}
";

#[test]
fn table() {
    let graphs = graphs();
    let report = CoverageReport::new(&profile(&graphs), &find(&graphs));
    insta::assert_snapshot!("coverage_table", report.to_text(None, &Names::default()));
    insta::assert_snapshot!("coverage_table_top", report.to_text(Some(1), &Names::default()));
    insta::assert_snapshot!("coverage_json", report.to_json().unwrap());
    // Without graphs there are no instructions.
    let report = CoverageReport::new(&profile(&graphs), &|_, _| None);
    assert_eq!(report.instructions, None);
    assert_eq!((report.blocks.all, report.blocks.proved()), (14, 6));
    // A profile without coverage knows nothing.
    let mut blank = profile(&graphs);
    blank.functions.iter_mut().for_each(|f| f.coverage.clear());
    let report = CoverageReport::new(&blank, &|_, _| None);
    assert_eq!((report.blocks.all, report.blocks.unknown), (14, 14));
    assert_eq!((report.functions_not_executed, report.not_executed.len()), (0, 0));
    assert_eq!((report.functions_all, report.unknown.len()), (5, 5));
    let text = report.to_text(None, &Names::default());
    assert!(text.contains("0 proved not executed, 5 unknown\n"), "{text}");
    assert!(text.contains("scan\n"), "{text}");
}

#[test]
fn functions_of_one_name_are_told_apart_by_their_files() {
    let mut graphs = graphs();
    for (cfg, file) in graphs.iter_mut().zip(["scan.c", "report.c"]) {
        (cfg.name, cfg.source_file) = ("run".into(), file.into());
    }
    let profile = profile(&graphs);
    let text = CoverageReport::new(&profile, &find(&graphs)).to_text(None, &Names::default());
    let names: Vec<&str> = text.lines().filter_map(|line| line.rsplit("   ").next()).collect();
    for name in ["run (scan.c)", "run (report.c)", "never"] {
        assert!(names.contains(&name), "no {name}: {text}");
    }
    let unknown = CoverageReport::new(&profile, &|_, _| None).to_text(None, &Names::default());
    assert!(!unknown.contains("scan.c"), "{unknown}");
}

#[test]
fn lcov() {
    let graphs = graphs();
    let mut lines = lines(&graphs);
    assert_eq!(lines.without_lines, 1);
    let [mut options, default] = [LcovOptions::default(); 2];
    insta::assert_snapshot!("coverage_lcov", lines.to_lcov(default));
    let counts = |lines: &SourceFiles, options| {
        let text = lines.to_lcov(options);
        let counts = text.lines().filter_map(|line| line.strip_prefix("DA:"));
        counts.collect::<Vec<_>>().join(" ")
    };
    // Predicted lines are unknown, or executed.
    insta::assert_snapshot!(counts(&lines, default), @"2,4 3,100 5,0 6,1 8,1 11,0 12,0 15,0 17,3 18,0 19,0");
    options.predicted = true;
    insta::assert_snapshot!(counts(&lines, options), @"2,4 3,100 5,0 6,1 8,1 11,1 12,1 15,0 17,3 18,0 19,0");
    // Every 0 is proved: line 18 has a block that is unknown.
    options.known = true;
    insta::assert_snapshot!(counts(&lines, options), @"2,4 3,100 6,1 8,1 11,1 12,1 15,0 17,3 19,0");
    options.predicted = false;
    insta::assert_snapshot!(counts(&lines, options), @"2,4 3,100 6,1 8,1 15,0 17,3 19,0");
    assert_eq!(lines.to_lcov(options).matches("FN").count(), 3 * 2 + 2);
    // Lines with code of another block that may have run.
    let file = PathBuf::from("/src/parse.c");
    let not_executed: Vec<u32> = (0..20).filter(|line| lines.is_not_executed(&file, *line)).collect();
    assert_eq!(not_executed, [15, 19]);
    (0..=15).for_each(|line| lines.mark_unknown_if_not_executed(&file, line));
    insta::assert_snapshot!(counts(&lines, options), @"2,4 3,100 6,1 8,1 17,3 19,0");
}

#[test]
fn a_function_with_several_graphs_is_one_function() {
    let mut graphs = vec![cfg("scan", &[&[]]), cfg("scan", &[&[1], &[]])];
    graphs[1].blocks[0].line = 0;
    let mut profile = profile(&graphs);
    profile.functions[0].coverage = vec![NotExecuted];
    profile.functions[1].coverage = vec![Unknown, NotExecuted];
    profile.functions[1].blocks = vec![0; 2];
    let lines = SourceFiles::from_profile(&profile, &find(&graphs), |_| true, |_| Some("a.c".into()), |_| &[]);
    let known = LcovOptions {
        known: true,
        ..LcovOptions::default()
    };
    // Line 7 was executed in neither, but the entry of the second is unknown.
    insta::assert_snapshot!(lines.to_lcov(known), @r"
    TN:pleach
    SF:a.c
    FNF:0
    FNH:0
    DA:7,0
    LF:1
    LH:0
    end_of_record
    ");
    insta::assert_snapshot!(lines.to_lcov(LcovOptions::default()).lines().nth(2).unwrap(), @"FN:7,scan");
    // Nothing is known of a file.
    profile.functions.iter_mut().for_each(|f| f.coverage.clear());
    let lines = SourceFiles::from_profile(&profile, &find(&graphs), |_| true, |_| Some("a.c".into()), |_| &[]);
    assert_eq!(lines.to_lcov(known), "");
}

#[test]
fn listings() {
    let graphs = graphs();
    let lines = lines(&graphs);
    let file = lines.files.values().next().unwrap();
    for (name, style) in [("source_view", Style::Marks), ("coverage_text", Style::Counts)] {
        let text = format!("{}{}", style.legend(), file.listing(style, Some(SOURCE), Extent::All));
        insta::assert_snapshot!(name, text);
        assert_eq!(file.listing(style, None, Extent::All).lines().count(), file.lines.len());
    }
    // `never` in line 15 is left out; what lies between executed functions, too.
    let text = file.listing(Style::Counts, Some(SOURCE), Extent::ExecutedFunctions(0));
    let shown = text
        .lines()
        .map(|line| line.split('|').next().unwrap_or_default().trim());
    assert_eq!(shown.collect::<Vec<_>>().join(" "), "2 3 4 5 6 7 8 … 11 12 … 17 18 19");
    let text = file.listing(Style::Counts, Some(SOURCE), Extent::ExecutedFunctions(2));
    assert_eq!((text.lines().count(), text.contains('…')), (20, false));
    let text = file.listing(Style::Counts, Some(SOURCE), Extent::Blocks(0));
    assert_eq!(text.lines().count(), 18);
}
