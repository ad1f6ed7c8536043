//! The plan: the event for each processor, found by asking the kernel for one event on each kind of core.

use super::attr::{Sampling, Scope};
use super::diagnose::{Refusal, diagnose};
use super::event::Event;
use super::facts::{Facts, Processor};

/// An event on a processor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Target {
    /// The processor.
    pub cpu: u32,
    /// Type of the event there.
    pub kind: u32,
    /// Its configuration there.
    pub config: u64,
}

/// The events that the kernel grants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// The event.
    pub event: Event,
    /// Its name.
    pub name: String,
    /// Its processors.
    pub targets: Vec<Target>,
    /// All processors: mappings made on one processor are needed for samples of the others.
    pub cpus: Vec<u32>,
    /// Whether branch records are read; otherwise samples have no branches and the recording is empty.
    pub branches: bool,
    /// Hardware indices are granted.
    pub hardware_index: bool,
    /// Kinds of cores that record no branches; code that runs there is not sampled.
    pub without: Vec<String>,
    /// Depth of the branch records, if the kernel reports it.
    pub depth: Option<u32>,
}

impl Plan {
    /// Finds the first event that the kernel grants with branch records.
    ///
    /// `open` tries an event on one processor (−1: any), and returns the error number if that fails.
    pub fn find(
        facts: &Facts,
        asked: Option<&str>,
        mut open: impl FnMut(&Sampling, i32) -> Result<(), i32>,
    ) -> Result<Self, Refusal> {
        let parsed =
            asked.map(|name| Event::parse(name).ok_or_else(|| Refusal::UnknownEvent { name: name.to_owned() }));
        let mut refusal = None;
        for event in Event::candidates(parsed.transpose()?, facts.processor) {
            match Self::try_event(facts, &event, &mut open) {
                Ok(plan) => return Ok(plan),
                // The refusal of the best event is reported.
                Err(errno) => {
                    let name = event.name(facts.processor);
                    refusal.get_or_insert_with(|| diagnose(facts, errno, &name, asked.is_some()));
                }
            }
        }
        Err(refusal.unwrap_or(Refusal::NoPerfEvents))
    }

    fn try_event(
        facts: &Facts,
        event: &Event,
        open: &mut impl FnMut(&Sampling, i32) -> Result<(), i32>,
    ) -> Result<Self, i32> {
        let mut plan = Self {
            event: event.clone(),
            name: event.name(facts.processor),
            targets: Vec::new(),
            cpus: facts.cpus.clone(),
            branches: true,
            hardware_index: true,
            without: Vec::new(),
            depth: None,
        };
        let mut first_error = None;
        // Each kind of core separately; a single kind has no name.
        let kinds = facts.pmus.as_deref().filter(|_| facts.is_hybrid());
        let kinds: Vec<_> = kinds.map_or(vec![None], |pmus| pmus.iter().map(Some).collect());
        for pmu in kinds {
            let (kind, config) = event.encode(facts.processor, pmu);
            let cpus: Vec<u32> = match pmu {
                Some(pmu) => facts
                    .cpus
                    .iter()
                    .copied()
                    .filter(|cpu| pmu.cpus.contains(cpu))
                    .collect(),
                None => facts.cpus.clone(),
            };
            let (Some(first), Some(name)) = (cpus.first(), pmu.map(|pmu| &pmu.name).or(Some(&plan.name))) else {
                continue;
            };
            let name = name.clone();
            let any = if pmu.is_some() { *first as i32 } else { -1 };
            let mut sampling = Sampling {
                kind,
                config,
                period: event.first_period(1_000.0),
                scope: Scope::This,
                branches: true,
                hardware_index: plan.hardware_index,
            };
            let mut tried = open(&sampling, any);
            if tried == Err(libc::EINVAL) && sampling.hardware_index {
                sampling.hardware_index = false;
                tried = open(&sampling, any);
                // All events must have the same sample layout.
                plan.hardware_index &= tried.is_err();
            }
            match tried {
                Ok(()) => plan.targets.extend(cpus.iter().map(|cpu| Target {
                    cpu: *cpu,
                    kind,
                    config,
                })),
                Err(errno) => {
                    first_error.get_or_insert(errno);
                    plan.without.push(name);
                }
            }
        }
        if plan.targets.is_empty() {
            return Err(first_error.unwrap_or(libc::ENODEV));
        }
        plan.targets.sort_by_key(|target| target.cpu);
        let depths = facts.pmus.iter().flatten().filter_map(|pmu| pmu.branches);
        plan.depth = depths.filter(|depth| *depth > 0).max();
        Ok(plan)
    }

    /// A clock event of the kernel on every processor, without branch records, for tests without the hardware.
    pub fn software_clock(facts: &Facts) -> Self {
        let event = Event::Software(0);
        let (kind, config) = event.encode(Processor::Other, None);
        let target = |cpu: &u32| Target {
            cpu: *cpu,
            kind,
            config,
        };
        Self {
            name: event.name(Processor::Other),
            targets: facts.cpus.iter().map(target).collect(),
            cpus: facts.cpus.clone(),
            event,
            branches: false,
            hardware_index: false,
            without: Vec::new(),
            depth: None,
        }
    }

    /// The sampling event for a target.
    pub fn sampling(&self, target: &Target, period: u64, scope: Scope) -> Sampling {
        Sampling {
            kind: target.kind,
            config: target.config,
            period,
            scope,
            branches: self.branches,
            hardware_index: self.hardware_index,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::facts::Pmu;
    use super::*;

    fn hybrid() -> Facts {
        let unit = |name: &str, kind, cpus: &[u32], branches| Pmu {
            name: name.to_owned(),
            kind,
            cpus: cpus.to_vec(),
            branches,
        };
        Facts {
            processor: Processor::Intel,
            paranoid: Some(1),
            pmus: Some(vec![
                unit("cpu_core", 4, &[0, 1], Some(32)),
                unit("cpu_atom", 10, &[2, 3], Some(16)),
            ]),
            cpus: vec![0, 1, 3],
            ..Facts::default()
        }
    }

    #[test]
    fn each_kind_of_cores_has_its_own_event() {
        let plan = Plan::find(&hybrid(), None, |_, _| Ok(())).unwrap();
        let seen: Vec<_> = plan.targets.iter().map(|t| (t.cpu, t.kind, t.config)).collect();
        assert_eq!(seen, [(0, 4, 0x20c4), (1, 4, 0x20c4), (3, 10, 0xc0c4)]);
        assert_eq!(
            (plan.depth, plan.without.len(), plan.hardware_index),
            (Some(32), 0, true)
        );

        let only_core = |sampling: &Sampling, cpu| {
            assert!(cpu >= 0, "an event of one kind of cores needs such a core");
            if sampling.kind == 4 {
                Ok(())
            } else {
                Err(libc::EOPNOTSUPP)
            }
        };
        let plan = Plan::find(&hybrid(), None, only_core).unwrap();
        assert_eq!((plan.targets.len(), plan.cpus.len()), (2, 3));
        assert_eq!(plan.without, ["cpu_atom"]);

        let refusal = Plan::find(&hybrid(), None, |_, _| Err(libc::EOPNOTSUPP)).unwrap_err();
        assert!(matches!(refusal, Refusal::Hybrid { .. }), "{refusal}");
    }

    /// Zen 3 takes taken branches only, all kinds of them, and tells no index.
    #[test]
    fn branch_sampling_of_amd_is_asked_for_as_it_wants() {
        let facts = Facts {
            processor: Processor::Amd,
            family: 25,
            paranoid: Some(2),
            cpus: vec![0, 1],
            ..Facts::default()
        };
        let zen3 = |sampling: &Sampling, _| match (sampling.config, sampling.hardware_index) {
            (0xc4, false) if sampling.kind == 4 && sampling.period > 16 => Ok(()),
            _ => Err(libc::EINVAL),
        };
        let plan = Plan::find(&facts, None, zen3).unwrap();
        assert_eq!((plan.name.as_str(), plan.hardware_index), ("ex_ret_brn_tkn:u", false));
        assert_eq!(plan.targets.len(), 2);
    }

    #[test]
    fn cycles_stand_in_for_taken_branches() {
        let cycles_only = |sampling: &Sampling, _| if sampling.kind == 0 { Ok(()) } else { Err(libc::ENOENT) };
        let facts = Facts {
            processor: Processor::Arm,
            cpus: vec![0],
            ..Facts::default()
        };
        assert_eq!(Plan::find(&facts, None, cycles_only).unwrap().name, "cycles:u");
        let refusal = Plan::find(&facts, Some("near_taken"), cycles_only).unwrap_err();
        assert!(matches!(refusal, Refusal::TooOld { .. }), "{refusal}");
        let refusal = Plan::find(&facts, Some("nearly"), cycles_only).unwrap_err();
        assert!(
            refusal
                .to_string()
                .starts_with("unknown event nearly: expected near_taken, cycles")
        );
    }
}
