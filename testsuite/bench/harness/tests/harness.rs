//! The workloads themselves: recipes, sources, a build and its results. Meant to stay below a minute.

use anyhow::Result;
use pleach_harness::bench::{tuning_dir, workloads_dir};
use pleach_harness::counts::{Stripped, counts};
use pleach_harness::size::text_size;
use pleach_harness::workload::{Workload, load_all};
use pleach_harness::{Bench, InputKind, Simulation, Variant};
use std::sync::LazyLock;

/// Shared by the tests: opening asks cargo where the sources are, and downloads them where they are not there yet.
static BENCH: LazyLock<Bench> = LazyLock::new(|| Bench::open(None).expect("the sources can be fetched"));

static TUNING: LazyLock<Bench> =
    LazyLock::new(|| Bench::open_dir(&tuning_dir(), None).expect("the sources can be fetched"));

#[test]
fn recipes_parse_and_name_the_public_nine() -> Result<()> {
    let names: Vec<String> = load_all(&workloads_dir())?
        .into_iter()
        .map(|workload| workload.name)
        .collect();
    assert_eq!(
        names,
        [
            "bzip2",
            "glslang",
            "lua",
            "metis",
            "onig",
            "openjpeg",
            "sqlite",
            "treesitter",
            "zlib"
        ]
    );
    Ok(())
}

#[test]
fn tuning_programs_are_not_workloads() -> Result<()> {
    let workloads = load_all(&workloads_dir())?;
    let tuning = load_all(&tuning_dir())?;
    assert_eq!(tuning.len(), 18);
    for program in &tuning {
        let packages = |of: &Workload| of.sources.iter().map(|s| s.package.clone()).collect::<Vec<_>>();
        let shared =
            |w: &&Workload| w.name == program.name || packages(w).iter().any(|p| packages(program).contains(p));
        let same = workloads.iter().find(shared);
        assert!(same.is_none(), "{} is {}", program.name, same.expect("it is one").name);
    }
    Ok(())
}

#[test]
fn checksums_are_committed_for_all_inputs() -> Result<()> {
    for workload in [load_all(&workloads_dir())?, load_all(&tuning_dir())?].concat() {
        for kind in InputKind::ALL {
            let checksum = &workload.input(kind)?.checksum;
            let is_checksum = checksum.len() == 16 && checksum.bytes().all(|b| b.is_ascii_hexdigit());
            assert!(is_checksum, "{} {kind}: '{checksum}'", workload.name);
        }
    }
    Ok(())
}

#[test]
fn sources_and_inputs_resolve() -> Result<()> {
    for bench in [&*BENCH, &*TUNING] {
        for workload in bench.select(&[])? {
            assert!(!bench.sources(workload)?.is_empty(), "{}", workload.name);
            for kind in InputKind::ALL {
                bench.invocation(workload, kind)?;
            }
        }
    }
    Ok(())
}

/// Builds at -O2 and runs the short input; the checksum must be the committed one.
fn builds_and_runs(bench: &Bench, name: &str) -> Result<()> {
    let workload = bench.workload(name)?;
    let binary = Variant::O2.produce(bench, workload)?;
    let result = bench.run(&binary, InputKind::Short)?;
    assert!(result.checksum_ok, "{name} printed {}", result.checksum);
    assert!(result.usage.cpu > 0.0 && result.usage.wall > 0.0);
    assert_eq!(binary.report.compilations.len(), bench.sources(workload)?.len());
    assert!(binary.report.compile_cpu() > 0.0);

    let size = text_size(&binary.path)?;
    assert!(
        0 < size.text && size.text <= size.executable && size.executable < size.loaded,
        "{size:?}"
    );
    Ok(())
}

/// A folder with one workload, of a single file.
fn workloads_of_ones_own() -> Result<tempfile::TempDir> {
    let folder = tempfile::tempdir()?;
    let own = folder.path().join("own");
    std::fs::create_dir(&own)?;
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text);
    write(
        "Cargo.toml",
        "[package]\nname = \"own\"\nversion = \"0.0.0\"\nedition = \"2024\"\n[lib]\npath = \"sources.rs\"\n[workspace]\n",
    )?;
    write(
        "Cargo.lock",
        "version = 4\n\n[[package]]\nname = \"own\"\nversion = \"0.0.0\"\n",
    )?;
    write("sources.rs", "")?;
    write("inputs.toml", "")?;
    write(
        "own/driver.c",
        "#include \"bench.h\"\nint main(int argc, char **argv) { printf(\"checksum %016x\\n\", argc + atoi(argv[1])); }\n",
    )?;
    let mut recipe = String::from(
        "name = \"own\"\ndescription = \"d\"\nlike = \"l\"\nlicence = \"x\"\ndriver = [\"driver.c\"]\nno_suite = \"none\"\n[inputs]\n",
    );
    for (n, kind) in InputKind::ALL.iter().enumerate() {
        recipe += &format!("{kind} = {{ args = [\"{n}\"], checksum = \"{:016x}\" }}\n", n + 2);
    }
    write("own/workload.toml", &recipe)?;
    Ok(folder)
}

#[test]
fn other_folders_of_workloads_will_do() -> Result<()> {
    let (folder, work) = (workloads_of_ones_own()?, tempfile::tempdir()?);
    let bench = Bench::open_dir(folder.path(), Some(work.path()))?;
    let names: Vec<&str> = bench
        .select(&[])?
        .iter()
        .map(|workload| workload.name.as_str())
        .collect();
    assert_eq!(names, ["own"]);
    let binary = Variant::O2.produce(&bench, bench.workload("own")?)?;
    for kind in InputKind::ALL {
        let result = bench.run(&binary, kind)?;
        assert!(result.checksum_ok, "{kind} printed {}", result.checksum);
    }
    Ok(())
}

#[test]
fn bzip2_builds_and_runs() -> Result<()> {
    builds_and_runs(&BENCH, "bzip2")
}

#[test]
fn lua_builds_and_runs() -> Result<()> {
    builds_and_runs(&BENCH, "lua")
}

#[test]
fn expat_builds_and_runs() -> Result<()> {
    builds_and_runs(&TUNING, "expat")
}

#[test]
fn builds_are_kept_until_flags_change() -> Result<()> {
    let workload = BENCH.workload("bzip2")?;
    let folder = tempfile::tempdir()?;
    let bench = Bench::open(Some(folder.path()))?;
    let variant = |flag: &str| Variant::Flags {
        label: "test".into(),
        cflags: vec![flag.into()],
        ldflags: vec![],
    };
    let first = variant("-O1").produce(&bench, workload)?;
    let modified = first.path.metadata()?.modified()?;
    let again = variant("-O1").produce(&bench, workload)?;
    assert_eq!(again.path, first.path);
    assert_eq!(again.path.metadata()?.modified()?, modified, "built a second time");
    let other = variant("-O0").produce(&bench, workload)?;
    assert_ne!(other.path, first.path);
    Ok(())
}

#[test]
fn a_file_that_a_flag_names_is_part_of_the_key() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let bench = Bench::open(Some(folder.path()))?;
    let workload = bench.workload("bzip2")?;
    let header = folder.path().join("extra.h");
    let produce = || {
        let cflags = vec!["-O0".into(), "-include".into(), header.display().to_string()];
        Variant::Flags {
            label: "test".into(),
            cflags,
            ldflags: vec![],
        }
        .produce(&bench, workload)
    };
    std::fs::write(&header, "#define PLEACH_TEST 1\n")?;
    let first = produce()?;
    std::fs::write(&header, "#define PLEACH_TEST 2\n")?;
    assert_ne!(produce()?.path, first.path);
    Ok(())
}

#[test]
fn a_failing_compilation_names_the_file_and_the_error() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let bench = Bench::open(Some(folder.path()))?;
    let cflags = vec!["-Dmain=}".into()];
    let variant = Variant::Flags {
        label: "broken".into(),
        cflags,
        ldflags: vec![],
    };
    let error = variant.produce(&bench, bench.workload("lua")?).unwrap_err();
    let text = format!("{error:#}");
    assert!(text.contains("driver.c") && text.contains("error:"), "{text}");
    // Nothing that looks like a finished build is left.
    assert_eq!(std::fs::read_dir(folder.path().join("builds/lua"))?.count(), 0);
    Ok(())
}

#[test]
fn wrong_results_are_noticed() -> Result<()> {
    let workload = BENCH.workload("bzip2")?;
    let binary = Variant::O2.produce(&BENCH, workload)?;
    let mut invocation = BENCH.invocation(workload, InputKind::Short)?;
    invocation.checksum = "0000000000000000".into();
    let result = pleach_harness::run::run(&binary, &invocation)?;
    assert!(!result.checksum_ok);
    assert!(result.expect_checksum(&binary, &invocation).is_err());
    assert!(pleach_harness::paired::paired(&binary, &binary, &invocation, 1).is_err());
    Ok(())
}

#[test]
fn instruction_counts_repeat_exactly() -> Result<()> {
    let workload = BENCH.workload("lua")?;
    let binary = Variant::O2.produce(&BENCH, workload)?;
    let invocation = BENCH.invocation(workload, InputKind::Short)?;
    let stripped = Stripped::from_binary(&binary)?;
    let count = || counts(&stripped, &invocation, Simulation::InstructionsOnly);
    let (first, second) = (count()?, count()?);
    assert!(first.instructions > 10_000_000, "{first:?}");
    assert_eq!(first.i1_misses, None);
    let drift = first.instructions.abs_diff(second.instructions) as f64 / first.instructions as f64;
    assert!(drift < 1e-4, "{first:?} {second:?}");
    Ok(())
}

#[test]
fn a_binary_paired_with_itself_is_as_fast_as_itself() -> Result<()> {
    let workload = BENCH.workload("lua")?;
    let binary = Variant::O2.produce(&BENCH, workload)?;
    let times = BENCH.paired(&binary, &binary, InputKind::Short, 5)?;
    // Wide: other tests run at the same time.
    assert!((0.5..2.0).contains(&times.cpu.ratio.value), "{times:?}");
    assert!(times.wall.a.min <= times.wall.a.median && times.wall.a.median <= times.wall.a.max);
    assert_eq!(times.wall.a.n, 5);
    Ok(())
}
