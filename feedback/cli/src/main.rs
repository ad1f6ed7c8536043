//! The `pleach` command. It parses options and prints results; the libraries do the work.

mod commands;
mod install;

use clap::{CommandFactory, Parser, Subcommand};
use std::process::ExitCode;

/// Path-profile-guided optimisation for clang, from sampled branch vectors.
///
/// Three steps make a program faster:
///
///   clang -O2 $(pleach flags annotate) …          build with identifiers, at normal speed
///   pleach record -o app.pleach -- ./app …        run it as usual
///   clang -O2 $(pleach flags use app.pleach) …    build again, with the profile
#[derive(Parser)]
#[command(name = "pleach", version, verbatim_doc_comment)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    terminal: commands::TerminalArgs,
}

#[derive(Subcommand)]
enum Command {
    Flags(commands::flags::Args),
    Cargo(commands::cargo::Args),
    Record(commands::record::Args),
    Collect(commands::collect::Args),
    Recover(commands::recover::Args),
    Analyse(commands::analyse::Args),
    Import(commands::import::Args),
    Export(commands::export::Args),
    Show(commands::show::Args),
    Paths(commands::paths::Args),
    Phases(commands::phases::Args),
    Report(commands::report::Args),
    Summary(commands::summary::Args),
    Coverage(commands::coverage::Args),
    Source(commands::source::Args),
    Order(commands::order::Args),
    Overlap(commands::overlap::Args),
    Diff(commands::diff::Args),
    Drift(commands::drift::Args),
    Merge(commands::merge::Args),
    Evaluate(commands::evaluate::Args),
    Doctor(commands::doctor::Args),
    Completions(commands::shell::Completions),
    #[command(hide = true)]
    Manual(commands::shell::Manual),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    cli.terminal.apply();
    pleach_collector::survive_file_size_limit();
    let done = match cli.command {
        Command::Flags(args) => commands::flags::run(&args),
        Command::Cargo(args) => commands::cargo::run(&args),
        Command::Record(args) => commands::record::run(&args),
        Command::Collect(args) => commands::collect::run(&args),
        Command::Recover(args) => commands::recover::run(&args),
        Command::Analyse(args) => commands::analyse::run(&args),
        Command::Import(args) => commands::import::run(&args),
        Command::Export(args) => commands::export::run(&args),
        Command::Show(args) => commands::show::run(&args),
        Command::Paths(args) => commands::paths::run(&args),
        Command::Phases(args) => commands::phases::run(&args),
        Command::Report(args) => commands::report::run(&args),
        Command::Summary(args) => commands::summary::run(&args),
        Command::Coverage(args) => commands::coverage::run(&args),
        Command::Source(args) => commands::source::run(&args),
        Command::Order(args) => commands::order::run(&args),
        Command::Overlap(args) => commands::overlap::run(&args),
        Command::Diff(args) => commands::diff::run(&args),
        Command::Drift(args) => commands::drift::run(&args),
        Command::Merge(args) => commands::merge::run(&args),
        Command::Evaluate(args) => commands::evaluate::run(&args),
        Command::Doctor(args) => commands::doctor::run(&args),
        Command::Completions(args) => commands::shell::completions(&args, Cli::command()),
        Command::Manual(args) => commands::shell::manual(&args, Cli::command()),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            eprintln!("pleach: error: {}", explain(&error));
            ExitCode::FAILURE
        }
    }
}

/// An error and its causes in one line. A cause that the error's own message contains is not repeated.
fn explain(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}
