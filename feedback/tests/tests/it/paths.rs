//! What `pleach paths` prints.

use pleach_feedback_tests::counts_support;

use counts_support::{cfg, example, of_units, options, parse, parse_paths, spin, unit};
use pleach_annotate::manifest::{self, Anchor};
use pleach_ball_larus::counts::Counts;
use pleach_ball_larus::counts::exact::ExactProfile;
use pleach_ball_larus::graph::PathGraph;
use pleach_ball_larus::{End, Mode, Start};
use pleach_report::foreign::take_foreign;
use pleach_report::names::Names;
use pleach_report::paths::{Edges, Paths, PathsOptions};

fn exact() -> ExactProfile {
    let exact = ExactProfile::from_counts(&example());
    assert_eq!(exact.problems, []);
    exact
}

fn all() -> PathsOptions {
    PathsOptions::default()
}

fn of(name: &str) -> PathsOptions {
    PathsOptions {
        function: Some(name.into()),
        ..all()
    }
}

/// Pairs of consecutive paths.
fn windows() -> ExactProfile {
    let options = options(Mode::Paths, 2);
    let graph = PathGraph::new(&parse(), &options);
    let number = |at: usize| graph.number_of(&parse_paths()[at].0).unwrap() + 1;
    let base = graph.numbers() + 1;
    let counts = vec![
        (number(0), 10),
        (number(0) * base + number(3), 8),
        (number(3) * base + number(5), 10),
    ];
    ExactProfile::from_counts(&of_units([(unit(options, &[parse()]), vec![counts])]))
}

fn edges_only() -> ExactProfile {
    let mut counts = Counts::default();
    let unit = unit(options(Mode::Edges, 1), &[spin()]);
    let zeros = vec![(0, 0); unit.functions[0].chords.len()];
    counts.units.extend(of_units([(unit, vec![zeros])]).units);
    ExactProfile::from_counts(&counts)
}

#[test]
fn table() {
    let exact = exact();
    insta::assert_snapshot!(Paths::new(&exact, &all()).unwrap().to_text(&Names::default()));
}

#[test]
fn the_table_can_be_cut() {
    let exact = exact();
    let options = PathsOptions {
        top: Some(2),
        ..of("parse")
    };
    insta::assert_snapshot!(Paths::new(&exact, &options).unwrap().to_text(&Names::default()));
}

#[test]
fn table_of_windows() {
    let exact = windows();
    assert_eq!(exact.problems, []);
    insta::assert_snapshot!(Paths::new(&exact, &all()).unwrap().to_text(&Names::default()));
}

#[test]
fn long_paths_are_elided() {
    let successors: Vec<[u32; 1]> = (1..60).map(|to| [to]).collect();
    let mut successors: Vec<&[u32]> = successors.iter().map(<[u32; 1]>::as_slice).collect();
    successors.push(&[]);
    let cfg = cfg("long", &successors);
    let options = options(Mode::Paths, 1);
    let exact = ExactProfile::from_counts(&of_units([(unit(options, &[cfg]), vec![vec![(0, 1)]])]));
    let text = Paths::new(&exact, &all()).unwrap().to_text(&Names::default());
    assert!(
        text.contains("▸0→1→2→3→4→5→6→7→8→9→10→11→… 36 blocks …→48→49→"),
        "{text}"
    );
    assert!(
        text.contains("1 path executed, 1 path execution, the longest of 60 blocks"),
        "{text}"
    );
}

#[test]
fn json() {
    let exact = exact();
    let text = Paths::new(&exact, &all()).unwrap().to_json().unwrap();
    let parsed: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
    assert_eq!((parsed.len(), &parsed[0]["count"]), (9, &180.into()));
    insta::assert_snapshot!(text);
}

#[test]
fn json_of_windows() {
    let exact = windows();
    insta::assert_snapshot!(Paths::new(&exact, &all()).unwrap().to_json().unwrap());
}

#[test]
fn cut_paths_name_their_block() {
    let options = pleach_ball_larus::NumberingOptions {
        max_paths: 1,
        ..options(Mode::Paths, 1)
    };
    // Of two diamonds in a row.
    let cfg = cfg("cut", &[&[1, 2], &[3], &[3], &[4, 5], &[6], &[6], &[]]);
    let graph = PathGraph::new(&cfg, &options);
    let mut paths = (0..graph.numbers()).map(|number| (number, graph.path(number).unwrap()));
    let is_cut = |end: End| matches!(end, End::Cut(_));
    let (number, cut) = paths.find(|(_, p)| p.start == Start::Entry && is_cut(p.end)).unwrap();
    let End::Cut(to) = cut.end else { unreachable!() };
    let exact = ExactProfile::from_counts(&of_units([(unit(options, &[cfg]), vec![vec![(number, 4)]])]));
    let paths = Paths::new(&exact, &all()).unwrap();
    let text = paths.to_text(&Names::default());
    assert!(text.contains("▸0") && text.contains(&format!(" ✂{}\n", to.0)), "{text}");
    let json = paths.to_json().unwrap();
    assert!(json.contains(&format!(r#""end":"cut","to":{}"#, to.0)), "{json}");
}

#[test]
fn edges() {
    let exact = exact();
    let edges = Edges::new(&exact, &all()).unwrap();
    insta::assert_snapshot!(edges.to_text(&Names::default()));
    let options = PathsOptions {
        top: Some(3),
        ..of("spin")
    };
    let text = Edges::new(&exact, &options).unwrap().to_text(&Names::default());
    assert!(text.contains("and 2 more"), "{text}");
}

#[test]
fn edges_as_json() {
    let exact = exact();
    let text = Edges::new(&exact, &all()).unwrap().to_json().unwrap();
    serde_json::from_str::<Vec<serde_json::Value>>(&text).unwrap();
    insta::assert_snapshot!(text);
}

#[test]
fn errors() {
    let (exact, edges) = (exact(), edges_only());
    let error = |exact: &ExactProfile, options: &PathsOptions| Paths::new(exact, options).unwrap_err().to_string();
    insta::assert_snapshot!(
        [
            error(&exact, &of("par")),
            error(&exact, &of("xyz")),
            error(&edges, &all()),
            Edges::new(&exact, &of("pars")).unwrap_err().to_string(),
        ]
        .join("\n")
    );
    // By identifier too.
    let id = parse().id.to_string();
    assert_eq!(Paths::new(&exact, &of(&id)).unwrap().rows.len(), 7);
}

#[test]
fn nothing_executed_can_be_shown() {
    for exact in [ExactProfile::default(), edges_only()] {
        assert_eq!(Edges::new(&exact, &all()).unwrap().to_json().unwrap(), "[\n]\n");
        assert!(
            Edges::new(&exact, &all())
                .unwrap()
                .to_text(&Names::default())
                .starts_with("0 of ")
        );
    }
    let exact = ExactProfile::default();
    assert_eq!(
        Paths::new(&exact, &all()).unwrap().to_text(&Names::default()),
        "0 of 0 functions executed, 0 paths executed, 0 path executions, the longest of 0 blocks\n"
    );
}

#[test]
fn counts_of_another_build_are_taken_out() {
    let mut changed = spin();
    changed.blocks[2].successors.push(pleach_annotate::id::BlockIndex(2));
    let section: Vec<u8> = [manifest::encode(&changed, Anchor::Early)].concat();
    let (entries, _) = manifest::decode(&section);
    let mut exact = exact();
    let foreign: Vec<_> = take_foreign(&mut exact, &entries)
        .iter()
        .map(ToString::to_string)
        .collect();
    insta::assert_snapshot!(foreign.join("\n"));
    assert!(exact.functions.is_empty());
    // The anchor is part of what has to agree.
    let mut exact = self::exact();
    let late = manifest::encode(&parse(), Anchor::Late);
    let early = manifest::encode(&spin(), Anchor::Early);
    assert_eq!(
        take_foreign(&mut exact, &manifest::decode(&[late, early].concat()).0).len(),
        1
    );
    assert_eq!(
        exact.functions.iter().map(|f| f.cfg.name.as_str()).collect::<Vec<_>>(),
        ["spin"]
    );
}
