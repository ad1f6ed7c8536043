//! `cargo xtask`: installs pleach, or packs it for Debian.

mod deb;
mod files;

use anyhow::{Result, ensure};
use clap::{Parser, Subcommand};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Install pleach, or pack it.
///
///   cargo xtask install --prefix ~/.local          for one user
///   sudo -E cargo xtask install                    for all, under /usr/local
///   cargo xtask install --destdir root --prefix /usr    for packagers
///   cargo xtask deb                                a package for Debian, in target/debian
#[derive(Parser)]
#[command(name = "cargo xtask", verbatim_doc_comment)]
struct Cli {
    #[command(subcommand)]
    task: Task,
    /// Use what is built already.
    #[arg(long, global = true)]
    no_build: bool,
}

#[derive(Subcommand)]
enum Task {
    /// Build pleach and install the command, its libraries, manual pages, completions and documents.
    Install {
        /// Where it will be.
        #[arg(long, default_value = "/usr/local")]
        prefix: PathBuf,
        /// A folder that stands for the root.
        #[arg(long)]
        destdir: Option<PathBuf>,
    },
    /// Build pleach and pack it for Debian. Needs dpkg-dev.
    Deb,
}

fn main() -> Result<()> {
    let cli = Cli::parse();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
    if !cli.no_build {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut build = Command::new(cargo);
        build.current_dir(&root).args(["build", "--release"]);
        for package in ["pleach", "pleach-pass", "pleach-preload", "pleach-stub"] {
            build.args(["--package", package]);
        }
        ensure!(build.status()?.success(), "pleach cannot be built");
    }
    // What cargo built is where this program is.
    let built = std::env::current_exe()?;
    let built = built.parent().unwrap_or(&root);
    match cli.task {
        Task::Install { prefix, destdir } => {
            ensure!(
                prefix.is_absolute(),
                "--prefix {}: expected an absolute path",
                prefix.display()
            );
            let below = prefix.strip_prefix("/")?;
            let to = destdir.map_or_else(|| prefix.clone(), |destdir| destdir.join(below));
            files::install(&root, built, &to)?;
            println!("installed in {}", to.display());
        }
        Task::Deb => println!("{}", deb::pack(&root, built)?.display()),
    }
    Ok(())
}
