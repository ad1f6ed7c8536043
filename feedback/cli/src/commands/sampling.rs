//! Shared by the commands that sample: choice of the engine, and parsers of percentages and times.

use crate::install;
use anyhow::{Result, bail};
use clap::ValueEnum;
use pleach_collector::engines::lbr::{self, Facts};
use pleach_collector::vector::Engine;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EngineArg {
    /// The best engine of this machine: lbr if available, else ptrace for a program that is linked statically, and
    /// run-ahead for others.
    Auto,
    /// Branch records of the processor (Intel LBR, AMD BRS and LbrExtV2, Arm BRBE), read by the kernel.
    Lbr,
    /// Shadow execution of the program's next instructions on a copy of its state. About 30 ns per instruction.
    RunAhead,
    /// Shadow execution from outside, by ptrace: for programs that are linked statically or run already (--pid). Without
    /// breakpoints; misses children that live for less than a tenth of a second. Profiles name it run-ahead.
    Ptrace,
    /// Single-stepping of the program in bursts. Exact; costs microseconds per instruction.
    Step,
}

/// Requested features that not every engine has.
#[derive(Clone, Copy, Default)]
pub struct Wants<'a> {
    /// An event at which to sample.
    pub event: Option<&'a str>,
    /// A feature that only shadow execution has.
    pub run_ahead: bool,
}

impl EngineArg {
    /// The engine to use on this machine.
    pub fn engine(self, wants: Wants<'_>) -> Result<Engine> {
        self.engine_where(wants, || lbr::probe(&Facts::read(), None).is_ok())
    }

    /// The engine to use. `granted` checks for branch records; it is called only if the answer matters.
    fn engine_where(self, wants: Wants<'_>, granted: impl FnOnce() -> bool) -> Result<Engine> {
        match self {
            Self::Lbr => Ok(Engine::Lbr),
            // With an event, opening it reports why branch records are unavailable.
            Self::Auto if wants.event.is_some() => Ok(Engine::Lbr),
            Self::Auto if !wants.run_ahead && granted() => Ok(Engine::Lbr),
            Self::Step | Self::RunAhead | Self::Ptrace if wants.event.is_some() => {
                bail!("this --event is for branch records: use it with --engine lbr")
            }
            Self::Auto | Self::RunAhead | Self::Ptrace => Ok(Engine::RunAhead),
            Self::Step => Ok(Engine::Step),
        }
    }
}

/// The library that an engine preloads into the command; an empty path if it preloads none.
pub fn sampler(engine: Engine) -> Result<PathBuf> {
    match engine {
        Engine::Lbr => Ok(PathBuf::new()),
        _ => install::library(install::SAMPLER).and_then(|_| install::library(install::STUB)),
    }
}

/// A percentage as a fraction.
pub fn percentage(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text);
    match number.parse::<f64>() {
        Ok(value) if value > 0.0 && value.is_finite() => Ok(value / 100.0),
        _ => Err("expected a percentage above 0, like 1% or 250%".into()),
    }
}

/// A time with its unit.
pub fn duration(text: &str) -> Result<Duration, String> {
    let time = time(text).filter(|time| !time.is_zero());
    time.ok_or_else(|| "expected a time with its unit, like 500us, 4ms or 1s".into())
}

/// Times between bursts.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Period {
    /// Their mean.
    pub mean: Duration,
    /// Whether they are all equal.
    pub is_fixed: bool,
}

/// A time with its unit, and whether it is fixed.
pub fn period(text: &str) -> Result<Period, String> {
    let (time, is_fixed) = text.strip_suffix(",fixed").map_or((text, false), |time| (time, true));
    Ok(Period {
        mean: duration(time)?,
        is_fixed,
    })
}

/// A time with its unit, or 0.
pub fn duration_or_zero(text: &str) -> Result<Duration, String> {
    let time = time(text).or((text == "0").then_some(Duration::ZERO));
    time.ok_or_else(|| "expected a time with its unit, like 500us, 4ms or 1s, or 0".into())
}

fn time(text: &str) -> Option<Duration> {
    let units = [("us", 1e-6), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0)];
    units.iter().find_map(|(unit, factor)| {
        let value: f64 = text.strip_suffix(unit)?.parse().ok()?;
        Duration::try_from_secs_f64(value * factor).ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn engine(arg: EngineArg, event: Option<&str>, run_ahead: bool, granted: bool) -> Result<Engine, String> {
        arg.engine_where(Wants { event, run_ahead }, || granted)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn auto_takes_branch_records_where_they_are_granted() {
        use EngineArg::{Auto, Lbr, RunAhead, Step};
        assert_eq!(engine(Auto, None, false, true), Ok(Engine::Lbr));
        assert_eq!(engine(Auto, None, false, false), Ok(Engine::RunAhead));
        assert_eq!(engine(Auto, None, true, true), Ok(Engine::RunAhead));
        assert_eq!(engine(Auto, Some("cycles"), false, false), Ok(Engine::Lbr));
        assert_eq!(engine(Lbr, None, false, false), Ok(Engine::Lbr));
        assert_eq!(engine(Step, None, false, true), Ok(Engine::Step));
        assert!(
            engine(RunAhead, Some("cycles"), false, false)
                .unwrap_err()
                .contains("--engine lbr")
        );
    }

    #[test]
    fn budgets_and_periods_are_read() {
        assert_eq!(percentage("1%"), Ok(0.01));
        assert_eq!(percentage("300"), Ok(3.0));
        assert!(percentage("0%").is_err());
        assert!(percentage("x").is_err());
        assert_eq!(duration("500us"), Ok(Duration::from_micros(500)));
        assert_eq!(duration("4ms"), Ok(Duration::from_millis(4)));
        assert!(duration("4").is_err());
        let periods = ["4ms", "4ms,fixed"].map(|text| period(text).expect("a period"));
        assert_eq!(periods.map(|period| period.is_fixed), [false, true]);
        assert!(periods.iter().all(|period| period.mean == Duration::from_millis(4)));
        assert!(period("fixed").is_err() && period("4ms,random").is_err());
    }
}
