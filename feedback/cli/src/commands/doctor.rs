//! `pleach doctor`: what this machine offers, and why not more.

use super::output::{print, print_json};
use crate::install;
use anyhow::Result;
use pleach_collector::engines::lbr::{self, Facts, Plan, Refusal};
use pleach_collector::engines::preload::try_tick;
use pleach_collector::engines::ptrace;
use std::path::Path;
use std::process::{Command, ExitCode, Output, Stdio};

/// Check what this machine offers for recording and building, and why features are missing.
///
/// The exit status is 1 if something is missing that every use needs.
///
///   pleach doctor                     what works here, and what to do about the rest
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

struct Check {
    name: &'static str,
    /// `None` if it is optional.
    ok: Option<bool>,
    found: String,
}

/// Examines the machine.
pub fn run(args: &Args) -> Result<ExitCode> {
    let facts = Facts::read();
    let clang = clang();
    let checks = [
        clang.as_ref().map_or_else(
            || Check {
                name: "clang",
                ok: Some(false),
                found: "no clang 22 found: apt-get install clang-22".to_owned(),
            },
            |(name, version)| Check {
                name: "clang",
                ok: Some(true),
                found: format!("{name}: {version}"),
            },
        ),
        library("compiler plugin", install::PLUGIN, |path| match &clang {
            Some((clang, _)) => loads_into(clang, path),
            None => Ok(()),
        }),
        library("sampler", install::SAMPLER, loads_into_programs),
        processor(),
        ticks(try_tick(), &facts),
        branch_records(lbr::probe(&facts, None)),
        tracing(ptrace::try_child(), ptrace_scope().as_deref()),
    ];
    if args.json {
        let list: Vec<_> = checks
            .iter()
            .map(|c| serde_json::json!({ "check": c.name, "ok": c.ok, "found": c.found }))
            .collect();
        let json = serde_json::json!({ "version": 1, "checks": list });
        print_json("doctor", "checks", &serde_json::to_string_pretty(&json)?)?;
    } else {
        for check in &checks {
            let mark = match check.ok {
                Some(true) => "ok",
                Some(false) => "MISSING",
                None => "info",
            };
            print(&format!("{mark:>7}  {}: {}\n", check.name, check.found))?;
        }
    }
    let complete = checks.iter().all(|c| c.ok != Some(false));
    Ok(if complete { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The first clang 22, and its version.
fn clang() -> Option<(&'static str, String)> {
    ["clang-22", "clang"].into_iter().find_map(|name| {
        let out = Command::new(name).arg("--version").output().ok()?;
        let text = String::from_utf8_lossy(&out.stdout);
        let line = text.lines().next().unwrap_or_default();
        line.contains("version 22.").then(|| (name, line.to_owned()))
    })
}

/// Checks that a library is there, and that it works.
fn library(name: &'static str, file: &str, works: impl FnOnce(&Path) -> Result<(), String>) -> Check {
    let found = install::library(file).map_err(|error| error.to_string());
    let tried = found.and_then(|path| works(&path).map(|()| path.display().to_string()));
    Check {
        name,
        ok: Some(tried.is_ok()),
        found: tried.unwrap_or_else(|error| error),
    }
}

/// Compiles an empty file with the plugin.
fn loads_into(clang: &str, plugin: &Path) -> Result<(), String> {
    let mut command = Command::new(clang);
    command.arg(format!("-fpass-plugin={}", plugin.display()));
    command.args(["-O1", "-x", "c", "-c", "-o", "/dev/null", "/dev/null"]);
    let tried = tried(&mut command)?;
    match tried.status.success() {
        true => Ok(()),
        false => Err(format!(
            "{clang} does not load {}: {}",
            plugin.display(),
            first_line(&tried.stderr)
        )),
    }
}

/// Starts a program with the sampler, and with the stub that loads it. Loaders go on without a library that they cannot
/// load, with a message.
fn loads_into_programs(sampler: &Path) -> Result<(), String> {
    for library in [sampler, &sampler.with_file_name(install::STUB)] {
        let tried = tried(Command::new("/bin/true").env("LD_PRELOAD", library))?;
        if !tried.status.success() || !tried.stderr.is_empty() {
            return Err(format!(
                "programs do not load {}: {}",
                library.display(),
                first_line(&tried.stderr)
            ));
        }
    }
    Ok(())
}

fn tried(command: &mut Command) -> Result<Output, String> {
    let output = command.stdin(Stdio::null()).output();
    output.map_err(|error| format!("cannot run {}: {error}", command.get_program().display()))
}

fn first_line(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    text.lines().next().unwrap_or("no message").to_owned()
}

fn processor() -> Check {
    let supported = cfg!(all(target_arch = "x86_64", target_os = "linux"));
    let found = if supported {
        "x86-64 Linux: the engines run-ahead and step work".to_owned()
    } else {
        format!(
            "{} {}: recording needs x86-64 Linux",
            std::env::consts::ARCH,
            std::env::consts::OS
        )
    };
    Check {
        name: "processor",
        ok: Some(supported),
        found,
    }
}

/// Where the sampler's ticks come from. `granted`: whether the kernel opened the event, or its error number.
fn ticks(granted: Result<(), i32>, facts: &Facts) -> Check {
    let found = match granted {
        Ok(()) => "perf clock events work, with any period".to_owned(),
        Err(errno) => {
            let error = std::io::Error::from_raw_os_error(errno);
            let remedy = match facts.paranoid {
                Some(level) if level > 2 => format!(
                    "kernel.perf_event_paranoid is {level}: `sudo sysctl kernel.perf_event_paranoid=2` allows it"
                ),
                Some(_) if facts.filtered => {
                    "a seccomp filter, as containers have it, may refuse the system call: `docker run \
                     --security-opt seccomp=unconfined` allows it"
                        .to_owned()
                }
                Some(_) => "a security module or a container may refuse it".to_owned(),
                None => "this kernel has no perf events".to_owned(),
            };
            format!("perf clock events are refused ({error}): bursts can start only at kernel timer ticks; {remedy}")
        }
    };
    Check {
        name: "ticks",
        ok: None,
        found,
    }
}

/// Which processes Yama lets be traced, where the kernel has it.
fn ptrace_scope() -> Option<String> {
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").ok()?;
    Some(scope.trim().to_owned())
}

/// Whether programs can be sampled from outside. `tried`: the outcome of stopping a child; `scope`: Yama's.
fn tracing(tried: std::io::Result<()>, scope: Option<&str>) -> Check {
    let found = match (tried, scope) {
        (Err(error), _) => format!(
            "ptrace is refused ({error}; a seccomp filter?): static programs and running processes cannot be recorded"
        ),
        (Ok(()), None | Some("0")) => {
            "allowed: the engine ptrace samples static programs, and `record --pid` processes that run already"
                .to_owned()
        }
        (Ok(()), Some(scope)) => format!(
            "allowed for static programs; for `record --pid`, kernel.yama.ptrace_scope is {scope}: root may, or `sudo \
             sysctl kernel.yama.ptrace_scope=0` allows it"
        ),
    };
    Check {
        name: "sampling from outside",
        ok: None,
        found,
    }
}

/// Branch records that the kernel grants, or why it refuses them.
fn branch_records(granted: Result<Plan, Refusal>) -> Check {
    let found = match granted {
        Ok(plan) => {
            let depth = plan.depth.map_or(String::new(), |depth| format!(", {depth} deep"));
            let without = match plan.without.join(", ") {
                cores if cores.is_empty() => String::new(),
                cores => format!("; not on the cores {cores}"),
            };
            format!(
                "read at {} on {} processors{depth}{without}: the engine lbr works, and is the default",
                plan.name,
                plan.targets.len()
            )
        }
        Err(refusal) => format!("none: {refusal}. The engine run-ahead does not need them"),
    };
    Check {
        name: "branch records",
        ok: None,
        found,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_collector::engines::lbr::facts::{Pmu, Processor};

    fn machine(branches: Option<u32>, virtual_machine: bool) -> Facts {
        let pmu = Pmu {
            name: "cpu".to_owned(),
            kind: 4,
            cpus: Vec::new(),
            branches,
        };
        Facts {
            processor: Processor::Intel,
            virtual_machine,
            paranoid: Some(2),
            pmus: Some(branches.map(|_| pmu).into_iter().collect()),
            release: (6, 12),
            cpus: vec![0, 1, 2, 3],
            ..Facts::default()
        }
    }

    #[test]
    fn refused_ticks_are_explained() {
        let told = |paranoid: Option<i32>, seccomp: bool, granted: Result<(), i32>| {
            let facts = Facts {
                paranoid,
                filtered: seccomp,
                ..machine(None, true)
            };
            ticks(granted, &facts).found
        };
        let all = [
            told(Some(2), false, Ok(())),
            told(Some(3), false, Err(13)),
            told(Some(2), true, Err(1)),
            told(Some(2), false, Err(1)),
            told(None, false, Err(38)),
        ];
        insta::assert_snapshot!(all.join("\n"), @r"
        perf clock events work, with any period
        perf clock events are refused (Permission denied (os error 13)): bursts can start only at kernel timer ticks; kernel.perf_event_paranoid is 3: `sudo sysctl kernel.perf_event_paranoid=2` allows it
        perf clock events are refused (Operation not permitted (os error 1)): bursts can start only at kernel timer ticks; a seccomp filter, as containers have it, may refuse the system call: `docker run --security-opt seccomp=unconfined` allows it
        perf clock events are refused (Operation not permitted (os error 1)): bursts can start only at kernel timer ticks; a security module or a container may refuse it
        perf clock events are refused (Function not implemented (os error 38)): bursts can start only at kernel timer ticks; this kernel has no perf events
        ");
    }

    #[test]
    fn libraries_that_do_not_load_are_noticed() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = loads_into_programs(file.path()).unwrap_err();
        assert!(
            error.contains("do not load") && error.contains("cannot be preloaded"),
            "{error}"
        );
        let error = library("sampler", "libpleach_absent.so", |_| Ok(()));
        assert_eq!(error.ok, Some(false));
    }

    #[test]
    fn branch_records_are_explained() {
        let told = |facts: &Facts, errno: Option<i32>| {
            let found = Plan::find(facts, None, |_, _| errno.map_or(Ok(()), Err));
            let check = branch_records(found);
            assert_eq!(check.ok, None, "nobody needs them");
            check.found
        };
        let paranoid = Facts {
            paranoid: Some(4),
            ..machine(Some(32), false)
        };
        let all = [
            told(&machine(Some(32), false), None),
            told(&machine(None, true), Some(2)),
            told(&paranoid, Some(13)),
        ];
        insta::assert_snapshot!(all.join("\n"), @r"
        read at near_taken:u on 4 processors, 32 deep: the engine lbr works, and is the default
        none: this is a virtual machine without a performance-monitoring unit, so that there are no branch records. The engine run-ahead does not need them
        none: kernel.perf_event_paranoid is 4, which keeps perf events from users: run `sudo sysctl kernel.perf_event_paranoid=2`, or give the command CAP_PERFMON. The engine run-ahead does not need them
        ");
    }
}
