//! Compiler caches and build systems see that a profile changed, under the same name.

use crate::support::*;
use std::path::Path;
use std::process::Command;

/// Two profiles of `loops.c` with different contents.
fn two_profiles(dir: &Path) -> [Vec<u8>; 2] {
    let first = recorded("loops.c", dir);
    let one = std::fs::read(&first).expect("a profile");
    let twice = dir.join("twice.pleach");
    stdout(
        Command::new(pleach())
            .args(["merge", "-o"])
            .arg(&twice)
            .args([&first, &first]),
    );
    [one, std::fs::read(&twice).expect("a merged profile")]
}

#[test]
fn ccache_misses_when_the_profile_changes() {
    let dir = scratch();
    let profiles = two_profiles(dir.path());
    let profile = dir.path().join("app.pleach");
    let misses = |content: &[u8]| {
        std::fs::write(&profile, content).expect("written");
        let ccache = |args: &[&str]| {
            let mut command = Command::new("ccache");
            command.env("CCACHE_DIR", dir.path().join("cache")).args(args);
            command
        };
        stdout(&mut ccache(&["--zero-stats"]));
        let mut compile = ccache(&["clang-22", "-O2", "-c", "-o"]);
        compile
            .arg(dir.path().join("loops.o"))
            .args(with(&profile, &[]))
            .arg(program("loops.c"));
        stdout(&mut compile);
        let stats = stdout(&mut ccache(&["--print-stats"]));
        let of = |name: &str| -> u32 {
            let line = stats
                .lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix('\t'));
            line.unwrap_or_else(|| panic!("{name} in {stats}"))
                .parse()
                .expect("a number")
        };
        assert_eq!(of("unsupported_compiler_option"), 0, "{stats}");
        of("cache_miss")
    };
    let [one, two] = &profiles;
    assert_eq!([misses(one), misses(one), misses(two), misses(one)], [1, 0, 1, 0]);
}

#[test]
fn make_compiles_again_when_the_profile_changes() {
    let dir = scratch();
    let makefile = format!(
        "loops.o: {source}\n\tclang-22 -O2 -MMD -c -o $@ $$({pleach} flags use app.pleach) $<\n-include loops.d\n",
        source = program("loops.c").display(),
        pleach = pleach().display()
    );
    std::fs::write(dir.path().join("Makefile"), makefile).expect("written");
    compiles_again(dir.path(), || {
        let mut make = Command::new("make");
        make.arg("-C").arg(dir.path());
        make
    });
}

#[test]
fn cmake_compiles_again_when_the_profile_changes() {
    for generator in ["Ninja", "Unix Makefiles"] {
        let dir = scratch();
        let lists = format!(
            "cmake_minimum_required(VERSION 3.20)\nproject(app C)\nadd_executable(app {})\n",
            program("loops.c").display()
        );
        std::fs::write(dir.path().join("CMakeLists.txt"), lists).expect("written");
        let mut is_configured = false;
        compiles_again(dir.path(), || {
            if !std::mem::replace(&mut is_configured, true) {
                let mut configure = Command::new("cmake");
                let words = with(&dir.path().join("app.pleach"), &[]).join(" ");
                configure
                    .current_dir(dir.path())
                    .args(["-S", ".", "-B", "build", "-DCMAKE_C_COMPILER=clang-22", "-G", generator])
                    .arg(format!("-DCMAKE_C_FLAGS=-O2 {words}"));
                stdout(&mut configure);
            }
            let mut build = Command::new("cmake");
            build.current_dir(dir.path()).args(["--build", "build", "--verbose"]);
            build
        });
    }
}

#[test]
fn meson_compiles_again_when_the_profile_changes() {
    let dir = scratch();
    std::fs::copy(program("loops.c"), dir.path().join("loops.c")).expect("copied");
    let build = "project('app', 'c')\nexecutable('app', 'loops.c')\n";
    std::fs::write(dir.path().join("meson.build"), build).expect("written");
    let mut is_configured = false;
    compiles_again(dir.path(), || {
        if !std::mem::replace(&mut is_configured, true) {
            let mut configure = Command::new("meson");
            let words = with(&dir.path().join("app.pleach"), &[]).join(" ");
            configure
                .current_dir(dir.path())
                .args(["setup", "--buildtype=plain", "build"]);
            stdout(configure.env("CC", "clang-22").env("CFLAGS", format!("-O2 {words}")));
        }
        let mut build = Command::new("meson");
        build
            .current_dir(dir.path())
            .args(["compile", "-C", "build", "--verbose"]);
        build
    });
}

/// Checks that a build compiles once for each content of `app.pleach`.
fn compiles_again(dir: &Path, mut build: impl FnMut() -> Command) {
    let profiles = two_profiles(dir);
    let mut compilations = |content: Option<&[u8]>| {
        if let Some(content) = content {
            // File systems and build systems tell times apart that differ by more than some milliseconds.
            std::thread::sleep(std::time::Duration::from_millis(1100));
            std::fs::write(dir.join("app.pleach"), content).expect("written");
        }
        let text = stdout(&mut build());
        text.lines()
            .filter(|line| line.contains("-O2 ") && line.contains(" -c "))
            .count()
    };
    let [one, two] = &profiles;
    assert_eq!(compilations(Some(one)), 1);
    assert_eq!(compilations(None), 0);
    assert_eq!(compilations(Some(two)), 1);
    assert_eq!(compilations(None), 0);
}
