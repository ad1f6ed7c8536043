//! Progress of long operations: on a terminal only, and only after a second.

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};
use pleach_collector::record::Repeat;
use pleach_collector::watch::AfterRun;
use std::cell::OnceCell;
use std::io::{IsTerminal, stderr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Shorter operations show no progress.
const PATIENCE: Duration = Duration::from_secs(1);

/// Interval at which the spinner of a step turns.
const TICK: Duration = Duration::from_millis(120);

/// A progress bar that appears once an operation takes long, and disappears when this is dropped.
pub struct Progress {
    what: &'static str,
    /// What is counted; `None` for bytes.
    things: Option<&'static str>,
    shown: bool,
    begin: Instant,
    bar: OnceCell<ProgressBar>,
}

impl Progress {
    /// Starts an operation. With `quiet`, no bar is shown.
    pub fn new(what: &'static str, quiet: bool) -> Self {
        Self {
            what,
            things: None,
            shown: !quiet && stderr().is_terminal(),
            begin: Instant::now(),
            bar: OnceCell::new(),
        }
    }

    /// Starts an operation on a number of things. With `quiet`, no bar is shown.
    pub fn counted(what: &'static str, things: &'static str, quiet: bool) -> Self {
        let mut progress = Self::new(what, quiet);
        progress.things = Some(things);
        progress
    }

    /// Reports that `done` of `of` bytes, or things, are processed.
    pub fn at(&self, done: u64, of: u64) {
        if self.shown && self.begin.elapsed() > PATIENCE {
            let bar = self.bar.get_or_init(|| bar(self.what, self.things, of));
            bar.set_position(done);
        }
    }
}

/// Time between two lines on the runs of a command.
const BETWEEN_LINES: Duration = Duration::from_secs(5);

/// Says on a terminal, now and then, how many times a command was run. Lines and not a bar: the command may write to the
/// same terminal.
pub fn runs(repeat: &Repeat, quiet: bool) -> Option<AfterRun> {
    let of = match repeat {
        Repeat::Times(1) => return None,
        Repeat::Times(times) => Some(*times),
        Repeat::Until(_) => None,
    };
    let begin = Instant::now();
    let last = Mutex::new(begin);
    (!quiet && stderr().is_terminal()).then(|| {
        AfterRun::new(move |done| {
            let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
            if last.elapsed() > BETWEEN_LINES {
                *last = Instant::now();
                eprintln!("pleach: {}", runs_in_words(done, of, begin.elapsed()));
            }
        })
    })
}

fn runs_in_words(done: u32, of: Option<u32>, elapsed: Duration) -> String {
    match of {
        None => format!("{done} runs so far"),
        Some(of) => {
            let rest = elapsed.as_secs_f64() / f64::from(done.max(1)) * f64::from(of.saturating_sub(done));
            format!(
                "{done} of {of} runs, the rest takes {}",
                HumanDuration(Duration::from_secs_f64(rest))
            )
        }
    }
}

/// The steps of an operation whose length is unknown: the present one is shown once the operation takes long, and
/// disappears when this is dropped.
pub struct Steps {
    begin: Instant,
    bar: ProgressBar,
}

impl Steps {
    /// Starts an operation.
    pub fn new() -> Self {
        Self {
            begin: Instant::now(),
            bar: ProgressBar::hidden(),
        }
    }

    /// Reports that a step begins.
    pub fn begin(&mut self, step: &'static str) {
        if stderr().is_terminal() && self.begin.elapsed() > PATIENCE && self.bar.is_hidden() {
            self.bar = ProgressBar::new_spinner();
            self.bar.enable_steady_tick(TICK);
        }
        self.bar.set_message(step);
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = self.bar.get() {
            bar.finish_and_clear();
        }
    }
}

fn bar(what: &'static str, things: Option<&'static str>, of: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(of), ProgressDrawTarget::stderr());
    // The template is a constant; a bad one falls back to the default look.
    let amount = things.map_or_else(
        || "{bytes}/{total_bytes}".to_owned(),
        |things| format!("{{pos}}/{{len}} {things}"),
    );
    let template = format!("{{prefix:>10}} {{bar:24}} {amount} {{elapsed}} (ends in {{eta}})");
    let style = ProgressStyle::with_template(&template);
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.set_prefix(what);
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_say_when_they_end() {
        let at = |done, of, seconds| runs_in_words(done, of, Duration::from_secs(seconds));
        assert_eq!(at(5, Some(20), 10), "5 of 20 runs, the rest takes 30 seconds");
        assert_eq!(at(1, Some(1000), 6), "1 of 1000 runs, the rest takes 2 hours");
        assert_eq!(at(7, None, 10), "7 runs so far");
    }
}
