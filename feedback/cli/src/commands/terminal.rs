//! What only terminals get: colours, bars and a pager.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// Options of all commands that print reports.
#[derive(clap::Args, Clone, Copy)]
pub struct TerminalArgs {
    /// Colours and bars in reports; auto: on a terminal, unless NO_COLOR is set.
    #[arg(long, global = true, value_enum, default_value_t = Colour::Auto, value_name = "WHEN", hide_possible_values = false)]
    color: Colour,
    /// Print reports without a pager. Otherwise a terminal gets them through PLEACH_PAGER, PAGER or less.
    #[arg(long, global = true)]
    no_pager: bool,
}

#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Colour {
    Auto,
    Always,
    Never,
}

/// The options of this process. Before they are read, nothing is printed.
static ARGS: OnceLock<TerminalArgs> = OnceLock::new();

impl TerminalArgs {
    /// Makes them those of the process.
    pub fn apply(self) {
        let _ = ARGS.set(self);
    }
}

/// Whether reports on standard output have colours.
pub fn has_colours() -> bool {
    let colour = ARGS.get().map_or(Colour::Auto, |args| args.color);
    is_coloured(colour, io::stdout().is_terminal(), |name| std::env::var_os(name))
}

fn is_coloured(colour: Colour, is_terminal: bool, variable: impl Fn(&str) -> Option<OsString>) -> bool {
    let is_set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
    match colour {
        Colour::Always => true,
        Colour::Never => false,
        Colour::Auto if is_set("NO_COLOR") => false,
        Colour::Auto => is_terminal && variable("TERM").is_none_or(|term| term != "dumb"),
    }
}

/// Prints through the pager, if standard output is a terminal and there is one. Returns whether it did.
pub fn page(text: &str) -> bool {
    if !io::stdout().is_terminal() || ARGS.get().is_some_and(|args| args.no_pager) {
        return false;
    }
    let Some(pager) = pager(|name| std::env::var_os(name)) else {
        return false;
    };
    let mut command = Command::new("sh");
    command.arg("-c").arg(pager).stdin(Stdio::piped());
    if std::env::var_os("LESS").is_none() {
        // Quits if the text fits the screen, shows colours, and leaves the text there.
        command.env("LESS", "FRX");
    }
    let Ok(mut child) = command.spawn() else { return false };
    if let Some(mut input) = child.stdin.take() {
        // A pager that is left early closes its input.
        let _ = input.write_all(text.as_bytes());
    }
    // 127: the shell found no such pager, and nothing was printed.
    child.wait().is_ok_and(|status| status.code() != Some(127))
}

/// The command of the pager; `None` if the user wants none.
fn pager(variable: impl Fn(&str) -> Option<OsString>) -> Option<OsString> {
    let named = variable("PLEACH_PAGER").or_else(|| variable("PAGER"));
    let pager = named.unwrap_or_else(|| "less".into());
    (!pager.is_empty() && pager != "cat").then_some(pager)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(list: &'static [(&str, &str)]) -> impl Fn(&str) -> Option<OsString> {
        move |name| {
            list.iter()
                .find(|(known, _)| *known == name)
                .map(|(_, value)| value.into())
        }
    }

    #[test]
    fn colours_are_for_terminals() {
        let auto = |is_terminal, list| is_coloured(Colour::Auto, is_terminal, variables(list));
        assert!(auto(true, &[("TERM", "xterm")]) && auto(true, &[("NO_COLOR", "")]));
        assert!(!auto(false, &[]) && !auto(true, &[("NO_COLOR", "1")]) && !auto(true, &[("TERM", "dumb")]));
        assert!(is_coloured(Colour::Always, false, variables(&[("NO_COLOR", "1")])));
        assert!(!is_coloured(Colour::Never, true, variables(&[])));
    }

    #[test]
    fn the_pager_is_named_by_variables() {
        let named = |list| pager(variables(list)).and_then(|pager| pager.into_string().ok());
        assert_eq!(named(&[]).as_deref(), Some("less"));
        assert_eq!(named(&[("PAGER", "more")]).as_deref(), Some("more"));
        assert_eq!(
            named(&[("PAGER", "more"), ("PLEACH_PAGER", "less -S")]).as_deref(),
            Some("less -S")
        );
        assert_eq!(named(&[("PAGER", "more"), ("PLEACH_PAGER", "")]), None);
        assert_eq!(named(&[("PAGER", "cat")]), None);
    }
}
