//! What `pleach show` prints.

use pleach_annotate::cfg::{Call, Callee, Cfg};
use pleach_annotate::id::{BlockIndex, CfgHash, FunctionGuid, FunctionId, ModuleHash};
use pleach_annotate::testing;
use pleach_profile::{BranchPrediction, CallTargets, FunctionProfile, Profile, Provenance};
use pleach_report::names::Names;
use pleach_report::show::{Show, ShowOptions};

fn id(name: &str, module: u32) -> FunctionId {
    FunctionId {
        guid: FunctionGuid::of_name(name),
        module: ModuleHash(module),
    }
}

fn function(name: &str, module: u32, samples: u64, blocks: &[u64], edges: &[u64]) -> FunctionProfile {
    FunctionProfile {
        id: id(name, module),
        cfg_hash: CfgHash(0xabc),
        name: name.into(),
        samples,
        blocks: blocks.to_vec(),
        edges: edges.to_vec(),
        ..FunctionProfile::default()
    }
}

fn profile() -> Profile {
    let mut hot = function(
        "parse_line",
        0,
        4200,
        &[1_000_000, 1_400_000, 0, 1_000_000],
        &[1_000_000, 400_000, 0, 1_000_000],
    );
    hot.call_targets = vec![CallTargets {
        call: 0,
        targets: vec![(FunctionGuid::of_name("emit"), 750_000), (FunctionGuid(0x77), 250_000)],
    }];
    hot.predictions = vec![
        BranchPrediction {
            block: BlockIndex(0),
            watched: 900_000.0,
            mispredicted: 0.0,
            low: 0.0,
        },
        BranchPrediction {
            block: BlockIndex(1),
            watched: 1_400_000.0,
            mispredicted: 350_000.0,
            low: 322_000.0,
        },
    ];
    let mut functions = vec![
        hot,
        function("emit", 0, 900, &[750_000], &[]),
        function("helper", 3, 2, &[2000], &[]),
        function("never", 0, 0, &[0; 5], &[0; 6]),
    ];
    functions.sort_by_key(|f| f.id);
    Profile {
        provenance: Provenance {
            commands: ["input", "other", "input"]
                .map(|name| format!("./app {name}.txt"))
                .into(),
            engines: vec!["step".into()],
            program_cpu_seconds: 12.25,
            own_cpu_seconds: 0.1225,
            bursts: 4096,
            taken_branches: 1_234_567,
            hot_instance_count: 0,
            ..Provenance::default()
        },
        scale: 1000.0,
        functions,
        ..Profile::default()
    }
}

fn graph() -> Cfg {
    let mut cfg = testing::cfg(&[&[1], &[1, 2, 3], &[], &[]]);
    cfg.id = id("parse_line", 0);
    cfg.module = ModuleHash(1);
    cfg.name = "parse_line".into();
    cfg.source_file = "parse.c".into();
    for (block, line) in cfg.blocks.iter_mut().zip([10, 12, 0, 15]) {
        (block.instructions, block.line) = (3, line);
    }
    cfg.calls = vec![Call {
        block: BlockIndex(1),
        callee: Callee::Indirect,
        may_not_return: true,
    }];
    cfg
}

fn show(options: &ShowOptions, graph: Option<&Cfg>) -> Show {
    Show::new(&profile(), options, &|id, _| graph.filter(|g| g.id == id)).unwrap()
}

#[test]
fn overview() {
    insta::assert_snapshot!(show(&ShowOptions::default(), None).to_text(&Names::default()));
}

#[test]
fn the_list_can_be_cut() {
    let text = show(
        &ShowOptions {
            top: 1,
            ..ShowOptions::default()
        },
        None,
    )
    .to_text(&Names::default());
    assert!(text.ends_with("and 2 more sampled functions\n"), "{text}");
}

#[test]
fn details_with_a_graph() {
    let options = ShowOptions {
        function: Some("parse_line".into()),
        ..ShowOptions::default()
    };
    insta::assert_snapshot!(show(&options, Some(&graph())).to_text(&Names::default()));
}

#[test]
fn details_without_a_graph() {
    let options = ShowOptions {
        function: Some(id("helper", 3).to_string()),
        ..ShowOptions::default()
    };
    assert!(show(&options, None).to_text(&Names::default()).starts_with("helper ("));
    let options = ShowOptions {
        function: Some("parse_line".into()),
        ..ShowOptions::default()
    };
    insta::assert_snapshot!(show(&options, None).to_text(&Names::default()));
}

#[test]
fn json() {
    let options = ShowOptions {
        top: 2,
        function: Some("parse_line".into()),
        ..ShowOptions::default()
    };
    let text = serde_json::to_string_pretty(&show(&options, Some(&graph())).to_json()).unwrap();
    insta::assert_snapshot!(text);
}

#[test]
fn a_graph_of_another_shape_is_not_used() {
    let mut other = graph();
    other.blocks.pop();
    let options = ShowOptions {
        function: Some("parse_line".into()),
        ..ShowOptions::default()
    };
    assert!(
        show(&options, Some(&other)).details[0]
            .edges
            .iter()
            .all(|e| e.from.is_none())
    );
}

#[test]
fn an_unknown_function_gets_a_hint() {
    let error = |name: &str| {
        let options = ShowOptions {
            function: Some(name.into()),
            ..ShowOptions::default()
        };
        Show::new(&profile(), &options, &|_, _| None).unwrap_err().to_string()
    };
    assert_eq!(
        error("parse"),
        "the profile has no function parse; did you mean parse_line?"
    );
    assert!(error("xyz").contains("without --function"));
}

#[test]
fn an_empty_profile_can_be_shown() {
    let shown = Show::new(&Profile::default(), &ShowOptions::default(), &|_, _| None).unwrap();
    assert!(shown.to_text(&Names::default()).contains("0 sampled of 0"));
    assert_eq!(shown.to_json()["version"], 1);
}

#[test]
fn every_listed_function_can_be_shown_in_detail() {
    let options = ShowOptions {
        details: true,
        ..ShowOptions::default()
    };
    let shown = show(&options, Some(&graph()));
    let listed: Vec<&str> = shown.functions.iter().map(|f| f.name.as_str()).collect();
    let detailed: Vec<&str> = shown.details.iter().map(|d| d.line.name.as_str()).collect();
    assert_eq!(detailed, listed);
}
