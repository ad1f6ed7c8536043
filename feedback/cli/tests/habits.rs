//! What all commands have in common: default files, the envelope of JSON, colours, what is left out.

mod support;

use pleach_profile::file::ProfileFile;
use pleach_profile::{FunctionProfile, Profile, Provenance};
use pleach_store::{write_counts, write_profile};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use support::{cfg, counts, error, folder, pleach, stderr, stdout};

/// Functions of two blocks in a row.
fn profile(of: &[(&str, u64)]) -> Profile {
    let function = |&(name, count): &(&str, u64)| FunctionProfile {
        id: cfg(name).id,
        cfg_hash: cfg(name).hash(),
        name: name.into(),
        samples: count,
        blocks: vec![count; 2],
        edges: vec![count],
        ..FunctionProfile::default()
    };
    Profile {
        provenance: Provenance {
            engines: vec!["run-ahead".into()],
            bursts: 7,
            ..Provenance::default()
        },
        scale: 1.0,
        functions: of.iter().map(function).collect(),
        ..Profile::default()
    }
}

#[test]
fn without_a_name_it_is_the_default_profile() {
    let dir = folder("default");
    for command in ["show", "report", "paths", "coverage", "source"] {
        let missing = error(&[command], &dir);
        assert!(
            missing.contains("there is no default.pleach in this directory"),
            "{missing}"
        );
    }
    write_profile(&dir.join("default.pleach"), &profile(&[("f", 6), ("g", 2)])).unwrap();
    for command in ["show", "report", "paths", "coverage"] {
        let [default, named] = [&[command][..], &[command, "default.pleach"]].map(|args| stdout(&pleach(args, &dir)));
        assert!(default == named && !default.is_empty(), "{command}: {default}");
    }
    // A word that is no file is a function of it.
    let source = error(&["source", "nobody"], &dir);
    assert!(
        source.contains("nobody") || source.contains("no annotated file"),
        "{source}"
    );
}

#[test]
fn exact_counts_need_no_import() {
    let dir = folder("exact");
    write_counts(&dir.join("a.plcnt"), &counts(&[("f", 5), ("g", 3)])).unwrap();
    assert!(
        pleach(&["import", "-q", "a.plcnt", "-o", "a.pleach"], &dir)
            .status
            .success()
    );
    for command in ["show", "report", "coverage"] {
        let [counted, imported] = ["a.plcnt", "a.pleach"].map(|file| stdout(&pleach(&[command, file], &dir)));
        assert!(counted == imported && !counted.is_empty(), "{command}: {counted}");
    }
}

#[test]
fn all_json_has_the_same_envelope() {
    let dir = folder("envelope");
    write_profile(&dir.join("a.pleach"), &profile(&[("f", 6), ("g", 2)])).unwrap();
    write_counts(&dir.join("a.plcnt"), &counts(&[("f", 5), ("g", 3)])).unwrap();
    for (args, command, key) in [
        ("show a.pleach", "show", "functions"),
        ("report a.pleach", "report", "functions"),
        ("overlap a.pleach a.plcnt", "overlap", "functions"),
        ("drift a.pleach a.pleach", "drift", "functions"),
        ("coverage a.pleach", "coverage", "functions"),
        ("coverage diff a.pleach a.pleach", "coverage diff", "blocks"),
        ("doctor", "doctor", "checks"),
    ] {
        let words: Vec<&str> = args.split(' ').chain(["--json"]).collect();
        let output = pleach(&words, &dir);
        let printed: Value = serde_json::from_str(&stdout(&output)).unwrap_or_else(|e| panic!("{args}: {e}"));
        let head = &printed["pleach"];
        assert_eq!(
            (&head["command"], &head["schema"]),
            (&command.into(), &1.into()),
            "{args}"
        );
        assert_eq!(head["version"], env!("CARGO_PKG_VERSION"));
        assert!(!printed[key].is_null(), "{args}: {printed}");
    }
}

#[test]
fn functions_can_be_left_out() {
    let dir = folder("left_out");
    write_profile(
        &dir.join("a.pleach"),
        &profile(&[("spin", 60), ("work", 30), ("idle", 10)]),
    )
    .unwrap();
    let args = [
        "report",
        "a.pleach",
        "--exclude-function",
        "spin",
        "--exclude-function",
        "idle",
    ];
    let output = pleach(&args, &dir);
    let text = stdout(&output);
    assert!(
        text.contains("100.00 %") && text.contains("work") && !text.contains("spin"),
        "{text}"
    );
    let expected = "pleach: left out: 70.00 % of all block executions, of spin (60.00 %), idle (10.00 %); shares refer to the rest\n";
    assert!(stderr(&output).starts_with(expected), "{}", stderr(&output));
    for command in ["show", "paths", "coverage"] {
        let output = pleach(&[command, "a.pleach", "--exclude-function", "spin"], &dir);
        assert!(
            output.status.success() && stderr(&output).contains("of spin (60.00 %)"),
            "{output:?}"
        );
    }
    let unknown = error(&["report", "a.pleach", "--exclude-function", "spi"], &dir);
    assert!(unknown.contains("did you mean spin?"), "{unknown}");
}

#[test]
fn colours_and_bars_are_only_where_they_are_wanted() {
    let dir = folder("colours");
    write_profile(&dir.join("a.pleach"), &profile(&[("f", 60), ("g", 40)])).unwrap();
    let plain = stdout(&pleach(&["report", "a.pleach"], &dir));
    assert!(!plain.contains('\u{1b}') && !plain.contains('█'), "{plain}");
    assert_eq!(
        plain,
        stdout(&pleach(&["report", "a.pleach", "--color", "never"], &dir))
    );
    let coloured = stdout(&pleach(&["report", "a.pleach", "--color", "always"], &dir));
    assert!(
        coloured.contains("\u{1b}[31m") && coloured.contains("██████"),
        "{coloured}"
    );
    let json = stdout(&pleach(&["report", "a.pleach", "--json", "--color", "always"], &dir));
    assert!(!json.contains('\u{1b}'), "{json}");
}

#[test]
fn a_profile_is_printed_as_text_and_read_back() {
    let dir = folder("text");
    write_profile(&dir.join("a.pleach"), &profile(&[("f", 60), ("g", 40)])).unwrap();
    let text = stdout(&pleach(&["show", "a.pleach", "--text"], &dir));
    assert_eq!(text.lines().count(), 3);
    fs::write(dir.join("a.txt"), &text).unwrap();
    let output = pleach(&["import", "a.txt", "-o", "b.pleach"], &dir);
    assert_eq!(stderr(&output), "pleach: 2 functions; wrote b.pleach\n");
    let [a, b] = ["a.pleach", "b.pleach"].map(|name| fs::read(dir.join(name)).unwrap());
    assert!(a == b);
    // Edited by hand.
    fs::write(dir.join("a.txt"), text.replace("[60,60]", "[61,61]")).unwrap();
    assert!(
        pleach(&["import", "-q", "a.txt", "-o", "b.pleach"], &dir)
            .status
            .success()
    );
    let edited = ProfileFile::open(dir.join("b.pleach").as_path())
        .unwrap()
        .read_all()
        .unwrap();
    assert!(edited.functions.iter().any(|f| f.blocks == [61, 61]));
    // The error says what is wrong with it; nothing is written.
    fs::remove_file(dir.join("b.pleach")).unwrap();
    for (bad, expected) in [
        (
            text.replace("\"samples\"", "\"sample\""),
            "a.txt: line 2: unknown field `sample`",
        ),
        (
            text.replace("profile_text\":1", "profile_text\":2"),
            "text form 2 of a profile",
        ),
        (text.replace("\"edges\":[", "\"edges\":[-"), "a.txt: line 2"),
    ] {
        fs::write(dir.join("a.txt"), bad).unwrap();
        let error = error(&["import", "a.txt", "-o", "b.pleach"], &dir);
        assert!(error.contains(expected), "{error}");
    }
    assert!(!dir.join("b.pleach").exists());
}

#[test]
fn every_command_shows_an_example() {
    let dir = folder("help");
    let commands_of = |help: &str| -> Vec<String> {
        let commands = help.split("Commands:\n").nth(1).unwrap_or_default();
        let commands = commands.split("\n\n").next().unwrap_or_default();
        // Descriptions of several lines go on further to the right.
        let lines = commands
            .lines()
            .filter(|line| line.starts_with("  ") && !line.starts_with("   "));
        let names = lines.filter_map(|line| line.split_whitespace().next());
        names.filter(|name| *name != "help").map(str::to_owned).collect()
    };
    let mut commands: Vec<Vec<String>> = commands_of(&stdout(&pleach(&["--help"], &dir)))
        .into_iter()
        .map(|name| vec![name])
        .collect();
    assert!(commands.len() > 15, "{commands:?}");
    let mut seen = 0;
    while let Some(command) = commands.pop() {
        let mut words: Vec<&str> = command.iter().map(String::as_str).collect();
        words.push("--help");
        let help = stdout(&pleach(&words, &dir));
        let words = command.join(" ");
        let example = help
            .lines()
            .any(|line| line.starts_with("  ") && line.contains(&format!("pleach {words}")));
        assert!(example, "{words}: {help}");
        commands.extend(
            commands_of(&help)
                .into_iter()
                .map(|name| [command.clone(), vec![name]].concat()),
        );
        seen += usize::from(command.len() > 1);
    }
    assert!(seen >= 6, "{seen} commands of commands");
}

#[test]
fn a_build_does_not_go_on_without_its_profile() {
    let dir = folder("flags");
    let output = pleach(&["flags", "use", "missing.pleach"], &dir);
    assert!(!output.status.success() && stderr(&output).contains("missing.pleach"));
    // In `$(…)`, its status is lost.
    let words = String::from_utf8(output.stdout).unwrap();
    fs::write(dir.join("a.c"), "int main(void) { return 0; }").unwrap();
    let mut clang = Command::new("clang-22");
    let clang = clang.args(words.split_whitespace()).arg("a.c").current_dir(&dir);
    let output = clang.output().expect("clang-22 runs");
    assert!(!output.status.success() && stderr(&output).contains("-pleach-gave-no-flags"));
}

/// What a command prints on a terminal of so many columns, without colours.
fn on_a_terminal(columns: usize, args: &str, folder: &Path) -> String {
    // `script` (util-linux) gives the command a terminal.
    let command = format!(
        "stty rows 50 cols {columns}; exec {} {args}",
        env!("CARGO_BIN_EXE_pleach")
    );
    let status = Command::new("script")
        .args(["--quiet", "--return", "--command", &command, "typescript"])
        .current_dir(folder)
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .expect("`script` runs");
    assert!(status.success());
    let text = fs::read_to_string(folder.join("typescript")).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with("Script "));
    lines.flat_map(|line| [line.trim_end_matches('\r'), "\n"]).collect()
}

#[test]
fn tables_fit_the_terminal() {
    let dir = folder("terminal");
    let name = "_ZN7grammar6parserIcNS_5statsEE10expressionERKNS_5tokenEjb";
    write_profile(&dir.join("a.pleach"), &profile(&[(name, 60), ("g", 40)])).unwrap();
    for columns in [80, 200] {
        for command in ["report", "show", "coverage"] {
            let text = on_a_terminal(columns, &format!("{command} a.pleach --no-pager"), &dir);
            let tables = text
                .lines()
                .filter(|line| line.starts_with("  ") || line.starts_with('─'));
            let widest = tables.map(|line| line.chars().count()).max();
            assert!(widest <= Some(columns), "{command}, {columns}: {widest:?}\n{text}");
            // The name is cut in the middle where there is no room for it.
            let whole = "grammar::parser<char, grammar::stats>::expression(grammar::token const&, unsigned int, bool)";
            assert_eq!(text.contains(whole), columns == 200, "{command}, {columns}\n{text}");
            assert!(text.contains("t, bool)"), "{command}, {columns}\n{text}");
        }
    }
}
