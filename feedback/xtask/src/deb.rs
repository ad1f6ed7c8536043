//! A package for Debian.

use crate::files::{install, output};
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Packs what is built; returns the package's path.
pub fn pack(root: &Path, built: &Path) -> Result<PathBuf> {
    let folder = built.parent().unwrap_or(built).join("debian");
    let tree = folder.join("pleach");
    if tree.exists() {
        fs::remove_dir_all(&tree).with_context(|| format!("cannot delete {}", tree.display()))?;
    }
    install(root, built, &tree.join("usr"))?;
    let control = tree.join("DEBIAN");
    fs::create_dir_all(&control)?;
    fs::write(control.join("control"), description(&depends(&folder)?))?;
    let package = folder.join(format!("pleach_{VERSION}_amd64.deb"));
    output(
        Command::new("dpkg-deb")
            .args(["--root-owner-group", "--build"])
            .arg(&tree)
            .arg(&package),
    )?;
    Ok(package)
}

/// The packages that have the libraries of the command and of the sampler. The plugin's come with its compiler.
fn depends(folder: &Path) -> Result<String> {
    // dpkg-shlibdeps wants a source package.
    let source = folder.join("debian");
    fs::create_dir_all(&source)?;
    fs::write(
        source.join("control"),
        "Source: pleach\n\nPackage: pleach\nArchitecture: any\n",
    )?;
    let text = output(Command::new("dpkg-shlibdeps").current_dir(folder).args([
        "-O",
        "pleach/usr/bin/pleach",
        "pleach/usr/lib/pleach/libpleach_preload.so",
        "pleach/usr/lib/pleach/libpleach_stub.so",
    ]))
    .context("dpkg-shlibdeps finds packages of libraries; it is in dpkg-dev")?;
    let text = String::from_utf8(text)?;
    Ok(text.trim().trim_start_matches("shlibs:Depends=").to_owned())
}

fn description(depends: &str) -> String {
    format!(
        "Package: pleach\n\
         Version: {VERSION}\n\
         Architecture: amd64\n\
         Section: devel\n\
         Priority: optional\n\
         Maintainer: the pleach developers <pleach@localhost>\n\
         Depends: {depends}\n\
         Recommends: clang-22, lld-22\n\
         Description: path-profile-guided optimisation for clang\n \
         Samples runs of consecutive branches of a running program, at one per cent of\n \
         its time and without instrumentation or hardware support, and compiles the\n \
         program again by what it did.\n"
    )
}
