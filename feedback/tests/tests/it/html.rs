//! The data of the page of `pleach report --html`, for a small profile, and the page itself.

use pleach_annotate::cfg::{Call, Callee, Cfg};
use pleach_annotate::id::{BlockIndex, FunctionGuid, FunctionId};
use pleach_ball_larus::{End, Path, Start};
use pleach_feedback_tests::counts_support::{cfg, path};
use pleach_profile::{
    BranchPrediction, CallCrossingPath, Caller, Covered, EstimatedPath, FunctionProfile, PathWindow, Profile,
    Provenance,
};
use pleach_report::diff::Diff;
use pleach_report::flows::Flows;
use pleach_report::html::call_tree::{CallNode, TreeSource};
use pleach_report::html::{HtmlReport, PageInputs};
use pleach_report::lines::SourceFiles;
use std::path::PathBuf;

fn estimated(path: Path, count: f64) -> EstimatedPath {
    EstimatedPath {
        path,
        count,
        low: count * 0.9,
        high: count * 1.2,
        effective: 100.0,
    }
}

fn function(
    graph: Cfg,
    blocks: &[u64],
    edges: &[u64],
    coverage: &[Covered],
    paths: Vec<EstimatedPath>,
) -> FunctionProfile {
    FunctionProfile {
        id: graph.id,
        cfg_hash: graph.hash(),
        name: graph.name.clone(),
        samples: blocks.iter().sum::<u64>() / 1000,
        blocks: blocks.to_vec(),
        edges: edges.to_vec(),
        coverage: coverage.to_vec(),
        graph: Some(Box::new(graph)),
        paths,
        ..FunctionProfile::default()
    }
}

fn with_lines(mut graph: Cfg, lines: &[u32]) -> Cfg {
    graph
        .blocks
        .iter_mut()
        .zip(lines)
        .for_each(|(block, &line)| block.line = line);
    graph
}

fn calls(mut graph: Cfg, from: &[(u32, &str)]) -> Cfg {
    graph.calls = from
        .iter()
        .map(|&(block, name)| Call {
            block: BlockIndex(block),
            callee: Callee::Direct(FunctionGuid::of_name(name)),
            may_not_return: true,
        })
        .collect();
    graph
}

/// `main` calls `_Z4workv`, a loop around a diamond, which calls `leaf`; `leaf` calls `main` again. `never` was not
/// executed.
fn profile() -> Profile {
    use Covered::{ByDominance, NotExecuted, Predicted, Proved};
    let main = calls(with_lines(cfg("main", &[&[1], &[]]), &[30, 32]), &[(0, "_Z4workv")]);
    let main_hash = main.hash();
    let main_id = main.id;
    let work = with_lines(
        cfg("_Z4workv", &[&[1], &[2, 3], &[4], &[4], &[1, 5], &[]]),
        &[10, 11, 12, 14, 16, 18],
    );
    let work = calls(work, &[(3, "leaf")]);
    let [left, right] = [[1, 2, 4], [1, 3, 4]].map(|blocks| path(Start::Inside, &blocks, End::Back(BlockIndex(1))));
    let first = path(Start::Entry, &[0, 1, 2, 4], End::Back(BlockIndex(1)));
    let last = path(Start::Inside, &[1, 3, 4, 5], End::Exit);
    let mut work = function(
        work,
        &[1000, 100_000, 60_000, 40_000, 100_000, 1000],
        &[1000, 60_000, 40_000, 60_000, 40_000, 99_000, 1000],
        &[Proved, Proved, Proved, Predicted, ByDominance, Proved],
        vec![
            estimated(left.clone(), 59_000.0),
            estimated(right.clone(), 39_000.0),
            estimated(first.clone(), 1000.0),
            estimated(last, 1000.0),
        ],
    );
    work.windows = vec![
        PathWindow {
            paths: vec![left.clone(), right.clone()],
            count: 30_000.0,
        },
        PathWindow {
            paths: vec![left.clone(), left.clone()],
            count: 28_000.0,
        },
        PathWindow {
            paths: vec![left.clone(), right.clone(), left],
            count: 29_000.0,
        },
    ];
    work.called = vec![CallCrossingPath {
        caller: Caller {
            id: main_id,
            cfg_hash: main_hash,
            before: vec![BlockIndex(0)],
        },
        path: first,
        count: 1000.0,
    }];
    work.predictions = vec![BranchPrediction {
        block: BlockIndex(1),
        watched: 100_000.0,
        mispredicted: 25_000.0,
        low: 20_000.0,
    }];
    let leaf = calls(with_lines(cfg("leaf", &[&[]]), &[40]), &[(0, "main")]);
    let leaf = function(
        leaf,
        &[40_000],
        &[],
        &[Proved],
        vec![estimated(path(Start::Entry, &[0], End::Exit), 40_000.0)],
    );
    let main = function(
        main,
        &[1, 1],
        &[1],
        &[Proved, Proved],
        vec![estimated(path(Start::Entry, &[0, 1], End::Exit), 1.0)],
    );
    let mut never = function(
        cfg("never", &[&[1], &[]]),
        &[0, 0],
        &[0],
        &[NotExecuted, NotExecuted],
        vec![],
    );
    never.graph = None;
    let mut functions = vec![work, leaf, main, never];
    functions.sort_by_key(|f| f.id);
    Profile {
        provenance: Provenance {
            sums: None,
            commands: vec!["./app a".into(), "./app b".into(), "./app a".into()],
            engines: vec!["run-ahead".into()],
            program_cpu_seconds: 10.0,
            own_cpu_seconds: 0.1,
            bursts: 400,
            taken_branches: 100_000,
            hot_instance_count: 0,
            modules: Vec::new(),
        },
        scale: 1000.0,
        functions,
        ..Profile::default()
    }
}

fn report_of(profile: &Profile, against: Option<&Diff>, detailed: usize) -> HtmlReport {
    let file_of = |_: &Cfg| Some(PathBuf::from("/src/parse.c"));
    let graph = |id: FunctionId, hash| {
        let found = profile.functions.iter().find(|f| (f.id, f.cfg_hash) == (id, hash));
        found.and_then(|f| f.graph.as_deref())
    };
    let lines = SourceFiles::from_profile(profile, &graph, |_| true, file_of, |_| &[]);
    HtmlReport::new(
        profile,
        &PageInputs {
            title: "app <pleach>",
            profiles: vec![("app.pleach".into(), Some(1_700_000_000))],
            graph: &|_, _| None,
            file_of: &file_of,
            lines: Some(&lines),
            text_of: &|path| (path == std::path::Path::new("/src/parse.c")).then(|| "int main;\n".repeat(50)),
            assembly_of: &|_, _| None,
            stacks: None,
            summary: None,
            against,
            detailed,
        },
    )
}

#[test]
fn the_data_of_a_page() {
    let profile = profile();
    let other = Profile {
        provenance: Provenance {
            bursts: 500,
            ..profile.provenance.clone()
        },
        ..profile.clone()
    };
    let diff = Diff::new(&Flows::of_profile(&other), &Flows::of_profile(&profile), None).unwrap();
    let mut report = report_of(&profile, Some(&diff), 2);
    // The text is in the page; here it is only long.
    report
        .files
        .files
        .iter_mut()
        .for_each(|file| file.text = file.text.take().map(|text| format!("{} bytes", text.len())));
    insta::assert_snapshot!(report.to_json().unwrap());
}

#[test]
fn shares_add_up() {
    let report = report_of(&profile(), None, 10);
    let shares: f64 = report.functions.iter().map(|f| f.share).sum();
    assert!((shares - 1.0).abs() < 1e-9);
    let paths: f64 = report.functions.iter().filter_map(|f| f.path_share).map(|s| s[0]).sum();
    assert!((paths - 1.0).abs() < 1e-6, "{paths}");
    for detail in &report.details {
        let paths: f64 = detail.paths.iter().map(|p| p.share[0]).sum();
        assert!((paths - 1.0).abs() < 1e-9, "nothing is left out here");
        for p in &detail.paths {
            assert!(p.share[1] <= p.share[0] && p.share[0] <= p.share[2] && p.share[2] <= 1.0);
        }
    }
}

#[test]
fn work_is_conserved_in_the_flame_graph() {
    let report = report_of(&profile(), None, 10);
    assert_eq!(report.calls.source, TreeSource::Counts);
    assert_eq!(report.calls.cut, 1, "leaf calls main, which called it");
    let whole: f64 = report.calls.roots.iter().map(|root| root.value).sum();
    assert!((whole - 1.0).abs() < 1e-9, "{whole}");
    fn holds(node: &CallNode) {
        let children: f64 = node.children.iter().map(|child| child.value).sum();
        assert!(children <= node.value + 1e-12);
        node.children.iter().for_each(holds);
    }
    report.calls.roots.iter().for_each(holds);
}

#[test]
fn unknown_files_and_graphs_are_left_out() {
    let mut profile = profile();
    profile.functions.iter_mut().for_each(|f| f.graph = None);
    let report = report_of(&profile, None, 10);
    assert!(report.details.is_empty() && report.files.files.is_empty());
    assert_eq!(report.files.unknown, 4);
    assert!(
        report.functions[0].share > 0.5,
        "blocks are counted instead of instructions"
    );
    let empty = report_of(&Profile::default(), None, 10);
    assert!(empty.functions.is_empty() && empty.overview.hottest.is_empty() && empty.calls.roots.is_empty());
}

#[test]
fn a_page_is_one_file_with_everything_in_it() {
    let page = report_of(&profile(), None, 10).to_html().unwrap();
    assert!(page.contains("<title>app &lt;pleach&gt; – pleach</title>"));
    assert!(!page.contains("{{"), "all of the template is filled");
    for outside in [" src=", "<link", "@import", "sourceMappingURL"] {
        assert!(!page.contains(outside), "{outside}");
    }
    for licence in ["Chris Pettitt", "Mike Bostock", "Apache License", "Robert Penner"] {
        assert!(page.contains(licence), "{licence}");
    }
}
