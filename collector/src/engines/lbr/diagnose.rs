//! Explains why the kernel grants no branch records: derives a reason, and advice for the user, from the kernel's error
//! number and the facts about the machine.

use super::facts::{Facts, Processor};

/// A level of `kernel.perf_event_paranoid` up to which users may sample their own programs.
const MAX_PARANOID_LEVEL: i32 = 2;

/// The reason for which there are no branch records.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The kernel was built without perf events.
    #[error("this kernel has no perf events (it was built without CONFIG_PERF_EVENTS)")]
    NoPerfEvents,
    /// There is no performance-monitoring unit.
    #[error("{}", no_pmu(*.virtual_machine))]
    NoPmu {
        /// It is a virtual machine.
        virtual_machine: bool,
    },
    /// Events are counted, but branches are not recorded.
    #[error("{}", no_records(.pmus, *.virtual_machine))]
    NoRecords {
        /// What counts events.
        pmus: Vec<String>,
        /// It is a virtual machine.
        virtual_machine: bool,
    },
    /// A hybrid processor, none of whose kinds of cores records branches.
    #[error(
        "this hybrid processor has several kinds of cores ({}), and none of them offers branch records to this kernel",
        .pmus.join(", ")
    )]
    Hybrid {
        /// What counts events.
        pmus: Vec<String>,
    },
    /// `kernel.perf_event_paranoid` forbids perf events to users.
    #[error(
        "kernel.perf_event_paranoid is {level}, which keeps perf events from users: run `sudo sysctl \
         kernel.perf_event_paranoid=2`, or give the command CAP_PERFMON"
    )]
    Paranoid {
        /// The setting.
        level: i32,
    },
    /// A container or a security module refuses the system call.
    #[error("{}", filtered(.error, *.seccomp))]
    Filtered {
        /// The error number's name.
        error: &'static str,
        /// A seccomp filter is in force.
        seccomp: bool,
    },
    /// The kernel is too old for the branch records of this processor.
    #[error("kernel {}.{} is too old: {what} need Linux {}.{}", .has.0, .has.1, .needs.0, .needs.1)]
    TooOld {
        /// Version of the running kernel.
        has: (u32, u32),
        /// Minimum version.
        needs: (u32, u32),
        /// The kind of branch records.
        what: &'static str,
    },
    /// Branches are recorded, but not at this event.
    #[error(
        "this machine does not read branch records at the event {event}: leave out --event, or try --event near_taken"
    )]
    Event {
        /// Its name.
        event: String,
    },
    /// There is no such event.
    #[error("unknown event {name}: expected {}", super::event::Event::names())]
    UnknownEvent {
        /// The requested name.
        name: String,
    },
    /// Another program uses the counters.
    #[error(
        "the processor's counters are in use by another program: stop other profilers, or `sysctl kernel.nmi_watchdog=0`"
    )]
    Busy,
    /// The limit on open files is too low: every thread needs two descriptors on each processor.
    #[error("too many open files: {} are needed, two for each processor and thread; raise `ulimit -n`", 2 * cpus * threads)]
    Files {
        /// Processors.
        cpus: usize,
        /// Threads that run when the recording begins.
        threads: usize,
    },
    /// The kernel refuses memory for buffers.
    #[error("the kernel gives no memory for buffers: raise `ulimit -l` or kernel.perf_event_mlock_kb")]
    Memory,
    /// Another error number.
    #[error("perf_event_open failed: {}", std::io::Error::from_raw_os_error(*.0))]
    Other(i32),
}

fn no_pmu(virtual_machine: bool) -> &'static str {
    if virtual_machine {
        "this is a virtual machine without a performance-monitoring unit, so that there are no branch records"
    } else {
        "this machine has no performance-monitoring unit that the kernel knows, so that there are no branch records"
    }
}

fn no_records(pmus: &[String], virtual_machine: bool) -> String {
    let pmus = if pmus.is_empty() {
        String::new()
    } else {
        format!(" ({})", pmus.join(", "))
    };
    if virtual_machine {
        format!("this is a virtual machine: it offers performance counters{pmus}, but no branch records")
    } else {
        format!("this processor's performance-monitoring unit{pmus} has no branch records that the kernel knows")
    }
}

fn filtered(error: &str, seccomp: bool) -> String {
    let who = if seccomp {
        "a seccomp filter, as containers have it,"
    } else {
        "a container or a security module"
    };
    format!(
        "{who} refuses perf_event_open ({error}) although kernel settings allow it: permit the call, for instance with \
         `docker run --cap-add PERFMON --security-opt seccomp=unconfined`"
    )
}

fn name_of(errno: i32) -> &'static str {
    match errno {
        libc::EPERM => "EPERM",
        libc::EACCES => "EACCES",
        _ => "ENOSYS",
    }
}

/// Explains an error of `perf_event_open` for an event with branch records. `asked`: the user named this event.
pub fn diagnose(facts: &Facts, errno: i32, event: &str, asked: bool) -> Refusal {
    let virtual_machine = facts.virtual_machine;
    let units = facts.pmus.as_deref();
    match errno {
        libc::ENOSYS if facts.paranoid.is_none() => return Refusal::NoPerfEvents,
        libc::EMFILE | libc::ENFILE => {
            return Refusal::Files {
                cpus: facts.cpus.len(),
                threads: 1,
            };
        }
        libc::EBUSY => return Refusal::Busy,
        _ => {}
    }
    // Permissions do not matter if there are no branch records.
    if units.is_some_and(<[_]>::is_empty) {
        return Refusal::NoPmu { virtual_machine };
    }
    match errno {
        libc::EPERM | libc::EACCES => match facts.paranoid {
            Some(level) if level > MAX_PARANOID_LEVEL && !facts.privileged => Refusal::Paranoid { level },
            _ => refused(facts, errno),
        },
        libc::ENOSYS => refused(facts, errno),
        libc::E2BIG => Refusal::TooOld {
            has: facts.release,
            needs: (4, 1),
            what: "perf events with a clock of their own",
        },
        libc::ENOENT | libc::EOPNOTSUPP | libc::EINVAL | libc::ENODEV | libc::ENXIO => {
            let units = units.unwrap_or_default();
            if asked && units.iter().any(|unit| unit.branches.is_some_and(|depth| depth > 0)) {
                return Refusal::Event {
                    event: event.to_owned(),
                };
            }
            if !virtual_machine && let Some((needs, what)) = needed(facts).filter(|(needs, _)| facts.release < *needs) {
                let has = facts.release;
                return Refusal::TooOld { has, needs, what };
            }
            let pmus = units.iter().map(|unit| unit.name.clone()).collect();
            if facts.is_hybrid() {
                return Refusal::Hybrid { pmus };
            }
            Refusal::NoRecords { pmus, virtual_machine }
        }
        other => Refusal::Other(other),
    }
}

fn refused(facts: &Facts, errno: i32) -> Refusal {
    Refusal::Filtered {
        error: name_of(errno),
        seccomp: facts.filtered,
    }
}

/// The first kernel that reads the branch records that this processor has, or may have.
fn needed(facts: &Facts) -> Option<((u32, u32), &'static str)> {
    let has = |flag: &str| facts.flags.iter().any(|known| known == flag);
    match facts.processor {
        Processor::Intel => has("arch_lbr").then_some(((5, 9), "Intel's architectural branch records")),
        // Zen 3 and later. Older kernels do not list their flags for branch records.
        Processor::Amd if facts.family >= 25 && facts.release < (5, 19) => {
            Some(((5, 19), "AMD's branch records (6.1 on Zen 4 and later)"))
        }
        Processor::Amd => (facts.family >= 25).then_some(((6, 1), "AMD's branch records of Zen 4 and later")),
        Processor::Arm => Some(((6, 17), "Arm's branch records (BRBE)")),
        Processor::Other => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::lbr::facts::Pmu;

    fn machine(processor: Processor, pmus: &[(&str, Option<u32>)]) -> Facts {
        let unit = |(kind, (name, branches)): (usize, &(&str, Option<u32>))| Pmu {
            name: (*name).to_owned(),
            kind: kind as u32 + 4,
            cpus: Vec::new(),
            branches: *branches,
        };
        Facts {
            processor,
            family: 6,
            paranoid: Some(2),
            pmus: Some(pmus.iter().enumerate().map(unit).collect()),
            release: (6, 12),
            cpus: (0..8).collect(),
            ..Facts::default()
        }
    }

    #[test]
    fn each_refusal_says_why_and_what_to_do() {
        let intel = machine(Processor::Intel, &[("cpu", Some(32))]);
        let plain = machine(Processor::Intel, &[("cpu", None)]);
        let amd = |family, release| Facts {
            family,
            release,
            ..machine(Processor::Amd, &[("cpu", None)])
        };
        let vm = |pmus: &[_]| Facts {
            virtual_machine: true,
            ..machine(Processor::Amd, pmus)
        };
        let paranoid = |level, privileged, filtered| Facts {
            paranoid: Some(level),
            privileged,
            filtered,
            ..intel.clone()
        };
        let cases = [
            (
                "no CONFIG_PERF_EVENTS",
                libc::ENOSYS,
                false,
                Facts {
                    paranoid: None,
                    ..intel.clone()
                },
            ),
            ("virtual machine without PMU", libc::ENOENT, false, vm(&[])),
            (
                "the same for a user who may not",
                libc::EACCES,
                false,
                Facts {
                    paranoid: Some(4),
                    ..vm(&[])
                },
            ),
            (
                "bare metal without PMU",
                libc::ENOENT,
                false,
                machine(Processor::Other, &[]),
            ),
            (
                "virtual machine with a PMU",
                libc::EOPNOTSUPP,
                false,
                vm(&[("cpu", None)]),
            ),
            ("old processor", libc::EOPNOTSUPP, false, plain.clone()),
            (
                "sysfs hidden",
                libc::EOPNOTSUPP,
                false,
                Facts {
                    pmus: None,
                    ..plain.clone()
                },
            ),
            ("Debian's default", libc::EACCES, false, paranoid(3, false, false)),
            ("the same in a container", libc::EPERM, false, paranoid(4, false, true)),
            ("root in a container", libc::EPERM, false, paranoid(2, true, true)),
            (
                "a filter that says ENOSYS",
                libc::ENOSYS,
                false,
                paranoid(1, false, true),
            ),
            ("a security module", libc::EACCES, false, paranoid(1, true, false)),
            ("Zen 3 or 4, 5.10", libc::EOPNOTSUPP, false, amd(25, (5, 10))),
            ("Zen 4, 6.0", libc::EOPNOTSUPP, false, amd(25, (6, 0))),
            ("Zen 2", libc::EOPNOTSUPP, false, amd(23, (5, 10))),
            (
                "Arm, 6.12",
                libc::EOPNOTSUPP,
                false,
                machine(Processor::Arm, &[("armv8_pmuv3_0", None)]),
            ),
            (
                "Alder Lake without",
                libc::EOPNOTSUPP,
                false,
                machine(Processor::Intel, &[("cpu_core", None), ("cpu_atom", None)]),
            ),
            ("event without records", libc::EINVAL, true, intel.clone()),
            (
                "very old kernel",
                libc::E2BIG,
                false,
                Facts {
                    release: (3, 10),
                    ..intel.clone()
                },
            ),
            ("in use", libc::EBUSY, false, intel.clone()),
            ("few descriptors", libc::EMFILE, false, intel.clone()),
            ("unforeseen", libc::EINTR, false, intel.clone()),
        ];
        let lines =
            cases.map(|(case, errno, asked, facts)| format!("{case}: {}", diagnose(&facts, errno, "r1c2:u", asked)));
        insta::assert_snapshot!(lines.join("\n"), @r"
        no CONFIG_PERF_EVENTS: this kernel has no perf events (it was built without CONFIG_PERF_EVENTS)
        virtual machine without PMU: this is a virtual machine without a performance-monitoring unit, so that there are no branch records
        the same for a user who may not: this is a virtual machine without a performance-monitoring unit, so that there are no branch records
        bare metal without PMU: this machine has no performance-monitoring unit that the kernel knows, so that there are no branch records
        virtual machine with a PMU: this is a virtual machine: it offers performance counters (cpu), but no branch records
        old processor: this processor's performance-monitoring unit (cpu) has no branch records that the kernel knows
        sysfs hidden: this processor's performance-monitoring unit has no branch records that the kernel knows
        Debian's default: kernel.perf_event_paranoid is 3, which keeps perf events from users: run `sudo sysctl kernel.perf_event_paranoid=2`, or give the command CAP_PERFMON
        the same in a container: kernel.perf_event_paranoid is 4, which keeps perf events from users: run `sudo sysctl kernel.perf_event_paranoid=2`, or give the command CAP_PERFMON
        root in a container: a seccomp filter, as containers have it, refuses perf_event_open (EPERM) although kernel settings allow it: permit the call, for instance with `docker run --cap-add PERFMON --security-opt seccomp=unconfined`
        a filter that says ENOSYS: a seccomp filter, as containers have it, refuses perf_event_open (ENOSYS) although kernel settings allow it: permit the call, for instance with `docker run --cap-add PERFMON --security-opt seccomp=unconfined`
        a security module: a container or a security module refuses perf_event_open (EACCES) although kernel settings allow it: permit the call, for instance with `docker run --cap-add PERFMON --security-opt seccomp=unconfined`
        Zen 3 or 4, 5.10: kernel 5.10 is too old: AMD's branch records (6.1 on Zen 4 and later) need Linux 5.19
        Zen 4, 6.0: kernel 6.0 is too old: AMD's branch records of Zen 4 and later need Linux 6.1
        Zen 2: this processor's performance-monitoring unit (cpu) has no branch records that the kernel knows
        Arm, 6.12: kernel 6.12 is too old: Arm's branch records (BRBE) need Linux 6.17
        Alder Lake without: this hybrid processor has several kinds of cores (cpu_core, cpu_atom), and none of them offers branch records to this kernel
        event without records: this machine does not read branch records at the event r1c2:u: leave out --event, or try --event near_taken
        very old kernel: kernel 3.10 is too old: perf events with a clock of their own need Linux 4.1
        in use: the processor's counters are in use by another program: stop other profilers, or `sysctl kernel.nmi_watchdog=0`
        few descriptors: too many open files: 16 are needed, two for each processor and thread; raise `ulimit -n`
        unforeseen: perf_event_open failed: Interrupted system call (os error 4)
        ");
    }
}
