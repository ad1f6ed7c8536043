//! Compiler caches and build systems see that a profile changed, under the same name.

use crate::support::*;
use pleach_facilities::has_program;
use std::net::TcpListener;
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
fn sccache_misses_when_the_profile_changes() {
    if !has_program("sccache") {
        return;
    }
    let dir = scratch();
    let profiles = two_profiles(dir.path());
    let profile = dir.path().join("app.pleach");
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let port = free.expect("a free port").port().to_string();
    let sccache = |args: &[&str]| {
        let mut command = Command::new("sccache");
        command
            .env("SCCACHE_DIR", dir.path().join("cache"))
            .env("SCCACHE_SERVER_PORT", &port)
            .env("SCCACHE_IDLE_TIMEOUT", "60")
            .args(args);
        command
    };
    let misses = |content: &[u8]| {
        std::fs::write(&profile, content).expect("written");
        stdout(&mut sccache(&["--zero-stats"]));
        let mut compile = sccache(&["clang-22", "-O2", "-MD", "-c", "-o"]);
        compile
            .arg(dir.path().join("loops.o"))
            .args(with(&profile, &[]))
            .arg(program("loops.c"));
        stdout(&mut compile);
        let depfile = std::fs::read_to_string(dir.path().join("loops.d")).expect("a dependency file");
        assert!(depfile.contains("app.pleach"), "{depfile}");
        let stats = stdout(&mut sccache(&["--show-stats"]));
        let of = |name: &str| -> u32 {
            let line = stats.lines().find_map(|line| line.strip_prefix(name));
            let number = line.unwrap_or_else(|| panic!("{name} in {stats}")).trim();
            number.parse().expect("a number")
        };
        assert_eq!(of("Cache hits  ") + of("Cache misses  "), 1, "{stats}");
        of("Cache misses  ")
    };
    let [one, two] = &profiles;
    let found = [misses(one), misses(one), misses(two), misses(one)];
    stdout(&mut sccache(&["--stop-server"]));
    assert_eq!(found, [1, 0, 1, 0]);
}

/// Rules that Bazel would download, as far as a C program needs them.
const BAZEL_RULES: [(&str, &[&str]); 2] = [
    (
        "cc",
        &[
            "cc_library",
            "cc_binary",
            "cc_import",
            "cc_toolchain",
            "cc_toolchain_suite",
        ],
    ),
    (
        "java",
        &[
            "java_library",
            "java_binary",
            "java_import",
            "java_test",
            "java_plugin",
            "java_toolchain",
            "java_runtime",
            "java_package_configuration",
        ],
    ),
];

#[test]
#[ignore = "starts Bazel: cargo test --release -p pleach-e2e -- --ignored"]
fn bazel_compiles_again_when_the_profile_changes() {
    if !has_program("bazel") {
        return;
    }
    let dir = scratch();
    let write = |file: &str, content: &str| {
        let path = dir.path().join(file);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, content).expect("written");
    };
    let mut workspace = String::new();
    for (language, rules) in BAZEL_RULES {
        let name = format!("rules_{language}");
        let native: Vec<String> = rules.iter().map(|rule| format!("{rule} = native.{rule}\n")).collect();
        write(&format!("{name}/WORKSPACE"), "");
        write(&format!("{name}/{language}/BUILD"), "");
        write(&format!("{name}/{language}/defs.bzl"), &native.concat());
        workspace += &format!("local_repository(name = \"{name}\", path = \"{name}\")\n");
    }
    write("WORKSPACE", &workspace);
    write("BUILD", "cc_binary(name = \"app\", srcs = [\"loops.c\"])\n");
    std::fs::copy(program("loops.c"), dir.path().join("loops.c")).expect("copied");
    // Bazel prints to the error stream.
    let bazel = |command: &str| {
        let mut shell = Command::new("sh");
        let root = format!("--output_user_root={}", dir.path().join("bazel").display());
        shell.current_dir(dir.path()).env("CC", "clang-22").args([
            "-c",
            "exec bazel \"$@\" 2>&1",
            "sh",
            &root,
            command,
        ]);
        shell
    };
    let output = || {
        let mut flags = Command::new(pleach());
        flags.args(["flags", "use", "--no-depfile"]);
        let flags = stdout(flags.arg(dir.path().join("app.pleach")));
        let mut build = bazel("build");
        build
            .args(["--subcommands", "--copt=-O2"])
            .args(flags.split_whitespace().map(|flag| format!("--copt={flag}")))
            .arg("//:app");
        build
    };
    compiles_again(dir.path(), output);
    stdout(&mut bazel("shutdown"));
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
