//! `pleach doctor`: what this machine offers, and why not more.

use super::output::{print, print_json};
use crate::install;
use anyhow::Result;
use pleach_collector::engines::lbr::{self, Facts, Plan, Refusal};
use std::process::{Command, ExitCode};

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
    let checks = [
        tool("clang", &["clang-22", "clang"], "apt-get install clang-22"),
        library("compiler plugin", install::PLUGIN),
        library("sampler", install::SAMPLER),
        processor(),
        ticks(),
        branch_records(lbr::probe(&Facts::read(), None)),
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
                None => "-",
            };
            print(&format!("{mark:>7}  {}: {}\n", check.name, check.found))?;
        }
    }
    let complete = checks.iter().all(|c| c.ok != Some(false));
    Ok(if complete { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn tool(name: &'static str, candidates: &[&str], hint: &str) -> Check {
    for candidate in candidates {
        let Ok(out) = Command::new(candidate).arg("--version").output() else {
            continue;
        };
        let text = String::from_utf8_lossy(&out.stdout);
        let line = text.lines().next().unwrap_or_default().to_owned();
        if line.contains("version 22.") {
            return Check {
                name,
                ok: Some(true),
                found: format!("{candidate}: {line}"),
            };
        }
    }
    Check {
        name,
        ok: Some(false),
        found: format!("no clang 22 found: {hint}"),
    }
}

fn library(name: &'static str, file: &str) -> Check {
    match install::library(file) {
        Ok(path) => Check {
            name,
            ok: Some(true),
            found: path.display().to_string(),
        },
        Err(error) => Check {
            name,
            ok: Some(false),
            found: error.to_string(),
        },
    }
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

fn ticks() -> Check {
    let found = match std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid") {
        Ok(level) => match level.trim().parse::<i32>() {
            Ok(level) if level <= 2 => {
                format!("perf events allowed (perf_event_paranoid = {level}): ticks at any period")
            }
            Ok(level) => format!(
                "perf_event_paranoid = {level}: perf events may be refused, then ticks come at the kernel's HZ; \
                 `sysctl kernel.perf_event_paranoid=2` allows them"
            ),
            Err(_) => "perf_event_paranoid is unreadable".to_owned(),
        },
        Err(_) => "no perf events in this kernel: ticks come at the kernel's HZ".to_owned(),
    };
    Check {
        name: "ticks",
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
