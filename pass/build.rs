//! Compiles the C++ shim against the headers of the LLVM that will host the plugin.
//!
//! Nothing of LLVM is linked: the host process (clang, opt, lld) supplies every LLVM symbol.

use anyhow::{Context, Result, ensure};
use std::{env, path::PathBuf, process::Command};

const LLVM_MAJOR: &str = "22";

fn llvm_config() -> PathBuf {
    match env::var_os("LLVM_SYS_221_PREFIX") {
        Some(prefix) => PathBuf::from(prefix).join("bin/llvm-config"),
        None => PathBuf::from(format!("llvm-config-{LLVM_MAJOR}")),
    }
}

fn query(flag: &str) -> Result<String> {
    let tool = llvm_config();
    let out = Command::new(&tool).arg(flag).output().with_context(|| {
        format!(
            "cannot run {}: install llvm-{LLVM_MAJOR}-dev, or set LLVM_SYS_221_PREFIX to LLVM's prefix",
            tool.display()
        )
    })?;
    ensure!(out.status.success(), "{} {flag} failed", tool.display());
    Ok(String::from_utf8(out.stdout)?.trim().to_owned())
}

fn main() -> Result<()> {
    println!("cargo::rerun-if-changed=cpp");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=LLVM_SYS_221_PREFIX");

    let version = query("--version")?;
    ensure!(
        version.split('.').next() == Some(LLVM_MAJOR),
        "need LLVM {LLVM_MAJOR}, llvm-config reports {version}"
    );

    let mut shim = cc::Build::new();
    shim.cpp(true)
        .std("c++17")
        .flag("-isystem")
        .flag(query("--includedir")?)
        .flag("-fno-rtti")
        .flag("-fno-exceptions")
        .flag("-fvisibility=hidden")
        .flag_if_supported("-Wno-unused-parameter")
        .define("NDEBUG", None);
    for file in [
        "host/code_generation.cpp",
        "host/diagnostics.cpp",
        "host/dispatch_alignment.cpp",
        "host/early_inlining.cpp",
        "host/options.cpp",
        "host/plugin.cpp",
        "host/probe_order.cpp",
        "analysis/chains.cpp",
        "analysis/duplication.cpp",
        "analysis/duplication_simulation.cpp",
        "analysis/facts.cpp",
        "analysis/frequencies.cpp",
        "analysis/profile_summary.cpp",
        "transform/divisors.cpp",
        "transform/duplicate_blocks.cpp",
        "transform/if_conversion.cpp",
        "transform/landing_pads.cpp",
        "transform/markers.cpp",
        "transform/memory_lengths.cpp",
        "transform/probes.cpp",
        "transform/rematerialise_addresses.cpp",
        "transform/recorded_rates.cpp",
        "transform/returns.cpp",
        "transform/select_to_branch.cpp",
        "transform/logical_selects.cpp",
        "transform/searches.cpp",
        "transform/short_loops.cpp",
        "transform/switches.cpp",
        "transform/narrow_loads.cpp",
        "transform/unsigned_divisions.cpp",
        "transform/vectorisable_loops.cpp",
        "count/counter_lowering.cpp",
        "count/instrument.cpp",
        "count/unit.cpp",
    ] {
        shim.file(format!("cpp/{file}"));
    }
    shim.include("cpp");
    for def in [
        "_GNU_SOURCE",
        "__STDC_CONSTANT_MACROS",
        "__STDC_FORMAT_MACROS",
        "__STDC_LIMIT_MACROS",
    ] {
        shim.define(def, None);
    }
    shim.try_compile("pleach_shim")?;
    compile_runtime()
}

/// Compiles what instrumented programs run to bitcode, which the plugin carries.
fn compile_runtime() -> Result<()> {
    println!("cargo::rerun-if-changed=runtime");
    let clang = PathBuf::from(query("--bindir")?).join("clang");
    // No calls of libgcc's atomic operations.
    for (architecture, flag) in [("x86_64", None), ("aarch64", Some("-mno-outline-atomics"))] {
        let bitcode = PathBuf::from(env::var("OUT_DIR")?).join(format!("runtime-{architecture}.bc"));
        // No builtins, as the program may replace what they call.
        let status = Command::new(&clang)
            .arg(format!("--target={architecture}-linux-gnu"))
            .args(["-O2", "-fPIC", "-ffreestanding", "-fno-builtin", "-fno-stack-protector"])
            .args(flag)
            .args(["-Wall", "-Wextra", "-Werror", "-emit-llvm", "-c"])
            .arg("runtime/counts.c")
            .arg("-o")
            .arg(&bitcode)
            .status()
            .with_context(|| format!("cannot run {}: install clang-{LLVM_MAJOR}", clang.display()))?;
        ensure!(status.success(), "compiling runtime/counts.c for {architecture} failed");
    }
    Ok(())
}
