//! The report of `pleach summary`, from remarks.

use pleach_report::names::Names;
use pleach_report::summary::{BuildSummary, Remark, SummaryOptions, Treatment, read_record};

/// A remark of pleach as clang writes it.
fn remark(kind: &str, name: &str, function: &str, line: u32, arguments: &[(&str, &str)]) -> String {
    let arguments: String = arguments
        .iter()
        .map(|(key, value)| format!("  - {key}: '{value}'\n"))
        .collect();
    format!(
        "--- !{kind}\nPass:            pleach\nName:            {name}\n\
         DebugLoc:        {{ File: src/parse.cc, Line: {line}, Column: 1 }}\nFunction:        {function}\nArgs:\n  \
         - Function: {function}\n  - String: ': '\n{arguments}...\n"
    )
}

fn inlined(function: &str) -> String {
    format!("--- !Passed\nPass:            inline\nName:            Inlined\nFunction:        {function}\n...\n")
}

fn records() -> Vec<Vec<Remark>> {
    let first = [
        remark(
            "Passed",
            "ProfileUsed",
            "_ZN6Parser4nextEv",
            10,
            &[("String", "profile used: 5 calls")],
        ),
        remark(
            "Passed",
            "Superblocks",
            "_ZN6Parser4nextEv",
            10,
            &[
                ("Superblocks", "2"),
                ("String", " superblocks formed: "),
                ("Copied", "31"),
                ("Trace", "3 4"),
                ("Trace", "7"),
            ],
        ),
        remark(
            "Missed",
            "SuperblocksDeclined",
            "_ZN6Parser4nextEv",
            10,
            &[("NotProfitable", "4"), ("TooLarge", "1")],
        ),
        remark("Passed", "IfConversion", "scan", 40, &[("IfConverted", "3")]),
        remark(
            "Passed",
            "ProfileUsed",
            "scan",
            40,
            &[("String", "profile used"), ("Origin", "; of an older version")],
        ),
        remark("Passed", "Placed", "scan", 40, &[("SplitBlocks", "6")]),
        remark(
            "Passed",
            "Cold",
            "usage",
            80,
            &[("String", "not executed: optimised for size")],
        ),
        remark(
            "Missed",
            "OtherFunction",
            "step",
            90,
            &[("String", "functions of this name from other source files only")],
        ),
        inlined("scan"),
        inlined("scan"),
        // Of no interest: pleach says nothing about it.
        inlined("other"),
    ];
    let second = [
        remark("Missed", "NoProfile", "step", 90, &[("String", "not in the profile")]),
        remark("Missed", "StaleProfile", "grown", 95, &[("String", "changed too much")]),
        remark("Passed", "SelectToBranch", "fresh", 99, &[("SelectsToBranches", "1")]),
    ];
    [first.concat(), second.concat()]
        .map(|text| read_record(text.as_bytes(), &mut |_| ()).unwrap())
        .into()
}

#[test]
fn a_build_for_people_and_for_scripts() {
    let summary = BuildSummary::new(&records());
    insta::assert_snapshot!("build_text", summary.to_text(&Names::default()));
    insta::assert_snapshot!("build_json", summary.to_json().unwrap());
}

#[test]
fn totals_are_the_sums_of_functions() {
    let summary = BuildSummary::new(&records());
    let sum = |of: fn(&pleach_report::summary::OptimisationCounts) -> u64| {
        summary.functions.iter().map(|f| of(&f.done)).sum::<u64>()
    };
    let totals = &summary.totals.done;
    assert_eq!(
        (totals.superblocks, totals.copied, totals.split),
        (sum(|d| d.superblocks), sum(|d| d.copied), sum(|d| d.split))
    );
    assert_eq!(
        summary.totals.treatments.values().sum::<u64>(),
        summary.totals.functions
    );
    // Two files have a function `step`; they stay two.
    let steps: Vec<_> = summary
        .functions
        .iter()
        .filter(|f| f.function == "step")
        .map(|f| f.treatment)
        .collect();
    assert_eq!(steps, [Some(Treatment::OtherOfName), Some(Treatment::Absent)]);
}

#[test]
fn one_function_is_found_by_a_part_of_its_name() {
    let options = |name: &str| SummaryOptions {
        top: None,
        function: Some(name.into()),
    };
    let one = BuildSummary::new(&records()).chosen(&options("Parser::next")).unwrap();
    insta::assert_snapshot!("build_function", one.to_text(&Names::default()));
    let none = BuildSummary::new(&records()).chosen(&options("sca")).unwrap_err();
    assert_eq!(
        none.to_string(),
        "the build has no remarks on function sca; did you mean scan?"
    );
    let few = BuildSummary::new(&records())
        .chosen(&SummaryOptions {
            top: Some(1),
            function: None,
        })
        .unwrap();
    assert_eq!((few.functions.len(), few.hidden), (1, 6));
}
