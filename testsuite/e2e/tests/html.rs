//! The page of `pleach report --html` in a browser: what a user does with it. Counts are exact, so that they do not
//! depend on chance.

use crate::support::chromium::Chromium;
use crate::support::*;
use std::path::PathBuf;
use std::process::Command;

/// A page on a program with a loop whose iterations take three paths, and what it was made of.
struct Made {
    _dir: tempfile::TempDir,
    page: PathBuf,
    /// What `pleach paths` prints of the function `run`.
    paths: String,
}

fn made() -> Made {
    let dir = scratch();
    let [exact, annotated, counts, profile, page, build] =
        ["exact", "annotated", "app.plcnt", "app.pleach", "app.html", "build"].map(|name| dir.path().join(name));
    let source = [program("windows.c")];
    compile(
        &exact,
        &[flags(&["instrument"]), vec!["-g".into(), "-O2".into()]].concat(),
        &source,
    );
    compile(
        &annotated,
        &[flags(&["annotate"]), vec!["-g".into(), "-O2".into()]].concat(),
        &source,
    );
    stdout(Command::new(&exact).arg("1000").env("PLEACH_COUNTS", &counts));
    stdout(
        Command::new(pleach())
            .arg("import")
            .arg(&counts)
            .arg("-o")
            .arg(&profile),
    );
    std::fs::create_dir(&build).expect("a folder");
    let words = flags(&["use", profile.to_str().expect("UTF-8")]);
    let object = build.join("windows.o");
    let mut clang = clang();
    clang
        .args(["-O2", "-g", "-c", "-fsave-optimization-record"])
        .args(words);
    stdout(clang.arg(&source[0]).arg("-o").arg(&object));
    // A page that is there is replaced.
    std::fs::write(&page, "old").expect("written");
    let mut report = Command::new(pleach());
    report.arg("report").arg(&profile).arg("--html").arg(&page);
    report
        .arg("--binary")
        .arg(&annotated)
        .arg("--summary")
        .arg(&build)
        .arg("--against")
        .arg(&profile);
    stdout(&mut report);
    let mut paths = Command::new(pleach());
    paths.args(["paths", "--function", "run", "--binary"]).arg(&annotated);
    let paths = stdout(paths.arg(&profile));
    Made { _dir: dir, page, paths }
}

#[test]
fn a_page_is_searched_sorted_and_walked_through() {
    let made = made();
    let page = Chromium::open(&made.page);
    // A stranger finds the hottest path and why it is hot.
    let hottest = page.text("document.querySelector('.hottest').textContent");
    assert!(
        hottest.contains("run") && hottest.contains("one iteration of the loop at line"),
        "{hottest}"
    );
    assert!(
        page.text("document.querySelector('.verdict').textContent")
            .contains("exact counts")
    );

    functions(&page);
    function(&page, &made.paths);
    copies_and_marks(&page);
    keyboard(&page);
    dark(&page);
    other_views(&page);
    // Nothing was asked of a network, and nothing failed.
    let requests = page.number("performance.getEntriesByType('resource').length");
    assert!(requests == 0.0, "{requests} requests");
}

/// The list: searched as one types, sorted by any column.
fn functions(page: &Chromium) {
    page.click("#views a[data-view=functions]");
    page.waits_for("location.hash === '#v=functions'");
    let names = || page.all("td a.function");
    assert_eq!(names().first().map(String::as_str), Some("run"), "the hottest is first");
    assert_eq!(names().len(), 6, "atoi is an inline function");
    page.press("/");
    page.waits_for("document.activeElement.id === 'search'");
    page.tab.type_str("RIGHT").expect("typed");
    page.waits_for("document.querySelectorAll('td a.function').length === 1");
    assert_eq!(names(), ["right"]);
    assert!(
        page.text("location.hash").contains("q=RIGHT"),
        "a search is in the link"
    );
    page.text(
        "(() => { const s = document.getElementById('search'); s.value = ''; s.dispatchEvent(new Event('input')); })()",
    );
    // By name, and the other way round.
    let by_name = "[...document.querySelectorAll('th button')].find((b) => b.textContent.startsWith('function'))";
    page.text(&format!("{by_name}.click()"));
    assert_eq!(names(), ["atoi", "both", "left", "main", "right", "run"]);
    assert_eq!(
        page.text(&format!("{by_name}.parentElement.getAttribute('aria-sort')")),
        "ascending"
    );
    page.text(&format!("{by_name}.click()"));
    assert_eq!(names(), ["run", "right", "main", "left", "both", "atoi"]);
}

/// Paths are lines and calls, as `pleach paths` prints them, but for the name of the file.
fn paths_are_lines(page: &Chromium, printed: &str) {
    let printed = printed.replace("windows.c:", "");
    let shown = page.all("button.path[data-path] .way-text");
    assert!(
        shown.len() > 2 && shown.iter().all(|path| path.contains(" → ")),
        "{shown:?}"
    );
    let (hottest, called): (Vec<_>, Vec<_>) = shown[..2]
        .iter()
        .map(|path| (path.replace("▸ ", "▸"), path.contains("()")))
        .unzip();
    for path in hottest {
        assert!(
            printed.lines().any(|line| line.trim_end().ends_with(&path)),
            "{path} is not in\n{printed}"
        );
    }
    assert!(called.contains(&true), "{shown:?}");
}

/// One function: its paths over its graph, its source, its code.
fn function(page: &Chromium, printed_paths: &str) {
    page.text("[...document.querySelectorAll('td a.function')].find((a) => a.textContent === 'run').click()");
    page.waits_for("location.hash === '#f=run'");
    page.waits_for("document.querySelectorAll('svg.cfg .node').length > 5");
    let ways = "new Set([...document.querySelectorAll('svg.cfg .ways .letter')].map((e) => e.textContent)).size";
    assert_eq!(page.number(ways), 1.0, "the hottest path is drawn");
    // Of eleven paths a round, four are of 'l' and four of 'r'; one leaves the inner loop.
    let paths = page.all("button.path[data-path] .value + .value");
    assert_eq!(paths[..2], ["36.36 %", "36.36 %"]);
    paths_are_lines(page, printed_paths);
    page.click("button.path[data-path='1']");
    assert_eq!(page.number(ways), 2.0, "several paths, each with its letter");
    assert!(page.text("location.hash").contains("p=0%2C1"));
    // The same blocks and edges as in the path.
    let drawn = page.number("document.querySelectorAll('path.way.way-1').length");
    let blocks =
        page.number("DATA.details[DATA.functions.find((f) => f.name === 'run').detail].paths[1].blocks.length");
    assert_eq!(drawn, blocks, "one edge from each block: the last goes back");
    page.click("button.path[data-path='0']");
    assert_eq!(page.number(ways), 1.0);
    // A block marks its lines, a line its blocks.
    let calls_left = "DATA.details[DATA.functions.find((f) => f.name === 'run').detail].blocks.findIndex((b) => b.calls?.some((c) => DATA.functions[c.to].name === 'left'))";
    page.text(&format!(
        "document.querySelector(`svg.cfg .node[data-block='${{{calls_left}}}']`).dispatchEvent(new MouseEvent('click', {{ bubbles: true }}))"
    ));
    let marked = page.all(".source tr.selected td.text");
    assert!(marked.iter().any(|line| line.contains("left(i)")), "{marked:?}");
    assert!(!marked.iter().any(|line| line.contains("right(i)")), "{marked:?}");
    page.text(
        "[...document.querySelectorAll('.source tr.begins')].find((r) => r.textContent.includes('left(i)')).click()",
    );
    assert!(page.number("document.querySelectorAll('svg.cfg .node.selected').length") >= 1.0);
    assert!(
        page.text("document.querySelector('.info').textContent")
            .contains("left"),
        "the block calls it"
    );
    // Source and code are shown on demand.
    page.click("#toggle-source");
    assert_eq!(
        page.text("getComputedStyle(document.querySelector('.source')).display"),
        "none"
    );
    page.click("#toggle-source");
    assert_ne!(
        page.text("getComputedStyle(document.querySelector('.source')).display"),
        "none"
    );
    assert_eq!(
        page.number("document.querySelectorAll('.assembly pre').length"),
        0.0,
        "code is not made before it is asked for"
    );
    page.click(".assembly summary");
    page.waits_for("document.querySelectorAll('.assembly pre').length > 2");
    assert!(
        page.text("document.querySelector('.assembly').textContent")
            .contains("call")
    );
    assert!(
        page.text("document.querySelector('main').textContent")
            .contains("profile used"),
        "what the build did"
    );
    // Back leads to the list as it was.
    page.text("history.back()");
    page.waits_for("location.hash.startsWith('#v=functions')");
    page.waits_for("document.querySelector('td a.function')?.textContent === 'run'");
}

/// The code of a function that was only inlined, and what was done to blocks.
fn copies_and_marks(page: &Chromium) {
    let list = page.text("location.hash");
    page.text("location.hash = 'f=atoi'");
    page.waits_for("document.querySelector('.assembly summary')?.textContent.includes('inlined copy, in main')");
    page.click(".assembly summary");
    page.waits_for("document.querySelector('.assembly pre')?.textContent.includes('call')");
    page.text("location.hash = 'f=main'");
    // The program was always called with an argument.
    page.waits_for("document.querySelector('svg.cfg .node .mark')?.textContent === '✂'");
    assert!(
        page.text("document.querySelector('main').textContent")
            .contains("✂: split off")
    );
    page.text(&format!("location.hash = '{list}'"));
    page.waits_for("document.querySelector('td a.function')?.textContent === 'run'");
}

fn keyboard(page: &Chromium) {
    page.text("document.activeElement.blur()");
    page.press("j");
    page.press("j");
    assert_eq!(page.text("document.activeElement.textContent"), "right");
    page.press("k");
    assert_eq!(page.text("document.activeElement.textContent"), "run");
    page.press("Enter");
    page.waits_for("location.hash === '#f=run'");
    page.press("Escape");
    page.waits_for("location.hash.startsWith('#v=functions')");
    page.press("?");
    page.waits_for("document.getElementById('help').open");
    page.press("Escape");
    page.waits_for("!document.getElementById('help').open");
    page.press("1");
    page.waits_for("location.hash === '#v=overview'");
}

fn dark(page: &Chromium) {
    let colour = || page.text("getComputedStyle(document.body).backgroundColor");
    let before = colour();
    page.click("#theme");
    assert_ne!(colour(), before);
    page.click("#theme");
    assert_eq!(colour(), before);
}

/// Calls, coverage, build and changes.
fn other_views(page: &Chromium) {
    page.click("#views a[data-view=calls]");
    page.waits_for("document.querySelectorAll('.flame rect').length > 3");
    assert!(
        page.text("document.querySelector('main').textContent")
            .contains("as gprof does")
    );
    page.click("#views a[data-view=coverage]");
    page.waits_for("document.querySelectorAll('td.file a').length === 2");
    page.text("[...document.querySelectorAll('td.file a')].find((a) => a.textContent === 'windows.c').click()");
    page.waits_for("document.querySelectorAll('.source.whole tr').length > 30");
    let main = page.text("[...document.querySelectorAll('.source.whole tr')].find((r) => r.textContent.includes('++done')).querySelector('.count').textContent");
    assert_eq!(main, "10.0k", "ten steps of a thousand rounds");
    page.click("#views a[data-view=build]");
    page.waits_for("document.querySelector('h2')?.textContent === 'What the build did'");
    assert!(page.all("td").iter().any(|cell| cell == "profile used"));
    page.click("#views a[data-view=against]");
    page.waits_for("document.querySelector('h2')?.textContent === 'Changes'");
    assert!(
        page.text("document.querySelector('main').textContent")
            .contains("0 of 6 functions")
    );
}

#[test]
fn a_page_fits_a_narrow_window_and_paper() {
    let made = made();
    let page = Chromium::open(&made.page);
    for hash in [
        "",
        "#v=functions",
        "#f=run",
        "#v=calls",
        "#v=coverage",
        "#v=build",
        "#v=against",
    ] {
        page.text(&format!("(() => {{ location.hash = {hash:?}; }})()"));
        page.waits_for(&format!("current === {hash:?}"));
        for width in [800, 1280] {
            page.resize(width);
            let [inner, content] = [
                "document.documentElement.clientWidth",
                "document.documentElement.scrollWidth",
            ]
            .map(|expression| page.number(expression));
            assert!(content <= inner, "{hash} at {width}: {content} of {inner}");
        }
    }
    assert!(page.picture().len() > 1000);
}

#[test]
fn blocks_are_marked_whose_branches_were_if_converted() {
    let dir = scratch();
    let [annotated, profile, object, page] =
        ["annotated", "app.pleach", "app.o", "app.html"].map(|name| dir.path().join(name));
    let source = program("if_conversion.c");
    let words = [flags(&["annotate"]), vec!["-g".into(), "-O2".into()]].concat();
    compile(&annotated, &words, std::slice::from_ref(&source));
    let mut record = Command::new(pleach());
    record.args(["record", "--quiet", "--overhead", "100%", "-o"]);
    stdout(record.arg(&profile).arg("--").arg(&annotated));
    let mut clang = clang();
    clang.args(["-O2", "-g", "-c", "-fsave-optimization-record"]);
    clang.args(flags(&["use", profile.to_str().expect("UTF-8")]));
    stdout(clang.arg(&source).arg("-o").arg(&object));
    let mut report = Command::new(pleach());
    report.arg("report").arg(&profile).arg("--html").arg(&page);
    report.arg("--binary").arg(&annotated);
    stdout(report.arg("--summary").arg(dir.path()));

    let page = Chromium::open(&page);
    page.text("location.hash = 'f=adds'");
    page.waits_for("document.querySelector('svg.cfg .node .mark')?.textContent === '⇉'");
    // The marked block is the one that the branch is in: two blocks follow it.
    let marked = page.number(
        "Number([...document.querySelectorAll('svg.cfg .node')].find((n) => n.querySelector('.mark')).dataset.block)",
    );
    let leaves = format!(
        "[...document.querySelectorAll('svg.cfg .edge title')].filter((t) => t.textContent.startsWith('{marked} → ')).length"
    );
    assert_eq!(page.number(&leaves), 2.0);
    let legend = page.text("document.querySelector('main').textContent");
    assert!(legend.contains("⇉: its branch was if-converted"), "{legend}");
}

/// Which activations a burst shows depends on chance; that each was called by the one above it does not.
#[test]
fn call_stacks_of_raw_vectors_are_chains_of_calls() {
    for source in ["called.c", "call_after_inlined.c"] {
        stacks_are_chains_of_calls(source);
    }
}

fn stacks_are_chains_of_calls(source: &str) {
    let dir = scratch();
    let [binary, profile, page] = ["annotated", "app.pleach", "app.html"].map(|name| dir.path().join(name));
    compile(&binary, &flags(&["annotate"]), &[program(source)]);
    let mut record = Command::new(pleach());
    record.args(["record", "--quiet", "--overhead", "100%", "--keep-vectors", "-o"]);
    stdout(record.arg(&profile).arg("--").arg(&binary));
    stdout(
        Command::new(pleach())
            .arg("report")
            .arg(&profile)
            .arg("--html")
            .arg(&page),
    );
    let page = Chromium::open(&page);
    assert_eq!(page.text("DATA.calls.source"), "stacks");
    let calls = "(a, b) => DATA.details[DATA.functions[a].detail].blocks.some((block) => block.calls?.some((call) => call.to === b))";
    let links = format!(
        "(() => {{ const calls = {calls}; const links = []; \
         const walk = (a) => (a.children ?? []).forEach((b) => {{ links.push(calls(a.function, b.function)); walk(b); }}); \
         DATA.calls.roots.forEach(walk); return links; }})()"
    );
    assert!(
        page.number(&format!("{links}.length")) >= 2.0,
        "some function was called"
    );
    assert_eq!(page.text(&format!("{links}.every((link) => link)")), "true", "{source}");
    let whole = page.number("DATA.calls.roots.reduce((sum, root) => sum + root.value, 0)");
    assert!((0.9..1.0 + 1e-9).contains(&whole), "{whole} of the work has a place");
}

#[test]
fn what_a_page_cannot_be_made_of_is_named() {
    let dir = scratch();
    let [profile, page] = ["app.pleach", "app.html"].map(|name| dir.path().join(name));
    let mut report = Command::new(pleach());
    let (_, text) = failure(report.arg("report").arg(&profile).arg("--html").arg(&page));
    assert!(text.contains("app.pleach") && !page.exists(), "{text}");
    let mut report = Command::new(pleach());
    let (code, text) = failure(report.args(["report", "--summary", "build"]).arg(&profile));
    assert!(code == 2 && text.contains("--html"), "{text}");
}
