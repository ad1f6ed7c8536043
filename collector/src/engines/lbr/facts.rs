//! Facts about the machine from `/proc` and `/sys`.

use std::path::Path;

/// The vendor of the processor.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Processor {
    /// Last branch records, LBR.
    Intel,
    /// Branch sampling, BRS, or last branch records of its own, LbrExtV2.
    Amd,
    /// Branch record buffer extension, BRBE.
    Arm,
    /// Another vendor.
    #[default]
    Other,
}

/// A unit that counts events of some processors.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pmu {
    /// Name in `/sys/bus/event_source/devices`.
    pub name: String,
    /// The kernel's type for its events.
    pub kind: u32,
    /// The processors that it belongs to; empty if all.
    pub cpus: Vec<u32>,
    /// Depth of branch records; `None` where the kernel does not say.
    pub branches: Option<u32>,
}

/// Everything that explains why branch records are granted or refused.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Facts {
    /// The vendor of the processor.
    pub processor: Processor,
    /// Its family, on x86.
    pub family: u32,
    /// The processor's flags for branch records, as the kernel names them.
    pub flags: Vec<String>,
    /// This is a virtual machine.
    pub virtual_machine: bool,
    /// `kernel.perf_event_paranoid`; `None`: the kernel has no perf events.
    pub paranoid: Option<i32>,
    /// Units that count events of processors; `None`: `/sys` does not say.
    pub pmus: Option<Vec<Pmu>>,
    /// Major and minor version of the kernel.
    pub release: (u32, u32),
    /// A seccomp filter is in force.
    pub filtered: bool,
    /// The process has `CAP_PERFMON` or `CAP_SYS_ADMIN`.
    pub privileged: bool,
    /// Processors that are online.
    pub cpus: Vec<u32>,
}

const FLAGS: [&str; 3] = ["arch_lbr", "amd_lbr_v2", "brs"];
/// Bits of capability sets.
const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;
/// Product names of virtual machines, for processors without a flag for hypervisors.
const VIRTUAL: [&str; 5] = ["KVM", "QEMU", "VMware", "VirtualBox", "Virtual Machine"];

impl Facts {
    /// Reads the facts of this machine and process.
    pub fn read() -> Self {
        Self::read_under(Path::new("/"))
    }

    /// Reads the facts from a copy of these file systems.
    pub fn read_under(root: &Path) -> Self {
        let text = |path: &str| std::fs::read_to_string(root.join(path)).unwrap_or_default();
        let mut facts = Self::default();
        facts.add_processor(&text("proc/cpuinfo"));
        facts.add_status(&text("proc/self/status"));
        let paranoid = text("proc/sys/kernel/perf_event_paranoid");
        facts.paranoid = paranoid.trim().parse().ok();
        let release = text("proc/sys/kernel/osrelease");
        let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
        if let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) {
            facts.release = (major, minor);
        }
        let made_by = text("sys/class/dmi/id/sys_vendor") + &text("sys/class/dmi/id/product_name");
        facts.virtual_machine |= VIRTUAL.iter().any(|name| made_by.contains(name));
        facts.pmus = pmus(&root.join("sys/bus/event_source/devices"));
        facts.cpus = numbers_of(&text("sys/devices/system/cpu/online"));
        if facts.cpus.is_empty() {
            let count = std::thread::available_parallelism().map_or(1, usize::from);
            facts.cpus = (0..count as u32).collect();
        }
        facts
    }

    fn add_processor(&mut self, cpuinfo: &str) {
        let field = |name: &str| {
            cpuinfo.lines().find_map(|line| {
                let (key, value) = line.split_once(':')?;
                (key.trim() == name).then(|| value.trim())
            })
        };
        self.processor = match field("vendor_id") {
            Some("GenuineIntel") => Processor::Intel,
            Some("AuthenticAMD" | "HygonGenuine") => Processor::Amd,
            None if field("CPU implementer").is_some() => Processor::Arm,
            _ => Processor::Other,
        };
        self.family = field("cpu family").and_then(|family| family.parse().ok()).unwrap_or(0);
        let flags: Vec<&str> = field("flags").unwrap_or_default().split(' ').collect();
        self.virtual_machine |= flags.contains(&"hypervisor");
        let known = FLAGS.iter().filter(|flag| flags.contains(flag));
        self.flags = known.map(|flag| (*flag).to_owned()).collect();
    }

    fn add_status(&mut self, status: &str) {
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        self.filtered = field("Seccomp:") == Some("2");
        let capabilities = field("CapEff:").and_then(|set| u64::from_str_radix(set, 16).ok());
        let capabilities = capabilities.unwrap_or(0);
        self.privileged = [CAP_SYS_ADMIN, CAP_PERFMON]
            .iter()
            .any(|bit| capabilities >> bit & 1 == 1);
    }

    /// Whether there are several kinds of cores.
    pub fn is_hybrid(&self) -> bool {
        self.pmus.as_ref().is_some_and(|pmus| pmus.len() > 1)
    }

    /// The unit of a processor, if there are several kinds of cores.
    pub fn pmu_of(&self, cpu: u32) -> Option<&Pmu> {
        let pmus = self.pmus.as_ref().filter(|pmus| pmus.len() > 1)?;
        pmus.iter().find(|pmu| pmu.cpus.contains(&cpu))
    }
}

fn pmus(devices: &Path) -> Option<Vec<Pmu>> {
    let mut pmus = Vec::new();
    for entry in std::fs::read_dir(devices).ok()?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let x86 = name == "cpu" || ["cpu_core", "cpu_atom", "cpu_lowpower"].contains(&name.as_str());
        let arm = name.starts_with("armv8_") || name.starts_with("armv9_");
        if !x86 && !arm {
            continue;
        }
        let text = |file: &str| std::fs::read_to_string(entry.path().join(file)).ok();
        let number = |file: &str| text(file)?.trim().parse().ok();
        let Some(kind) = number("type") else { continue };
        pmus.push(Pmu {
            name,
            kind,
            cpus: text("cpus").map(|list| numbers_of(&list)).unwrap_or_default(),
            branches: number("caps/branches"),
        });
    }
    pmus.sort_by_key(|pmu| pmu.kind);
    Some(pmus)
}

/// Reads a list such as `0-3,8`.
fn numbers_of(list: &str) -> Vec<u32> {
    let ranges = list.trim().split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse::<u32>().ok()?..=last.parse::<u32>().ok()?)
    });
    // No machine has more.
    ranges.flatten().take(1 << 16).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> Facts {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        Facts::read_under(root.path())
    }

    #[test]
    fn a_hybrid_machine_is_read() {
        let facts = tree(&[
            (
                "proc/cpuinfo",
                "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nflags\t\t: fpu arch_lbr sse\n",
            ),
            ("proc/sys/kernel/perf_event_paranoid", "3\n"),
            ("proc/sys/kernel/osrelease", "6.8.0-31-generic\n"),
            ("proc/self/status", "Name:\tx\nCapEff:\t0000004000000000\nSeccomp:\t2\n"),
            ("sys/devices/system/cpu/online", "0-3,6\n"),
            ("sys/bus/event_source/devices/cpu_core/type", "4\n"),
            ("sys/bus/event_source/devices/cpu_core/cpus", "0-1\n"),
            ("sys/bus/event_source/devices/cpu_core/caps/branches", "32\n"),
            ("sys/bus/event_source/devices/cpu_atom/type", "10\n"),
            ("sys/bus/event_source/devices/cpu_atom/cpus", "2-3,6\n"),
            ("sys/bus/event_source/devices/software/type", "1\n"),
        ]);
        insta::assert_debug_snapshot!(facts, @r#"
        Facts {
            processor: Intel,
            family: 6,
            flags: [
                "arch_lbr",
            ],
            virtual_machine: false,
            paranoid: Some(
                3,
            ),
            pmus: Some(
                [
                    Pmu {
                        name: "cpu_core",
                        kind: 4,
                        cpus: [
                            0,
                            1,
                        ],
                        branches: Some(
                            32,
                        ),
                    },
                    Pmu {
                        name: "cpu_atom",
                        kind: 10,
                        cpus: [
                            2,
                            3,
                            6,
                        ],
                        branches: None,
                    },
                ],
            ),
            release: (
                6,
                8,
            ),
            filtered: true,
            privileged: true,
            cpus: [
                0,
                1,
                2,
                3,
                6,
            ],
        }
        "#);
        assert_eq!(facts.pmu_of(6).map(|pmu| pmu.kind), Some(10));
    }

    #[test]
    fn arm_and_bare_trees_are_read() {
        let arm = tree(&[
            ("proc/cpuinfo", "processor\t: 0\nCPU implementer\t: 0x41\n"),
            ("sys/class/dmi/id/sys_vendor", "QEMU\n"),
            ("sys/bus/event_source/devices/armv8_pmuv3_0/type", "8\n"),
        ]);
        assert_eq!((arm.processor, arm.virtual_machine), (Processor::Arm, true));
        assert_eq!(arm.pmus.unwrap()[0].name, "armv8_pmuv3_0");
        let bare = tree(&[]);
        assert_eq!((bare.pmus, bare.paranoid, bare.release), (None, None, (0, 0)));
        assert!(!bare.cpus.is_empty());
    }
}
