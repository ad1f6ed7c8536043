//! What is installed, and where.

use anyhow::{Context, Result, ensure};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Libraries that the command loads, or that compilers and programs load.
const LIBRARIES: [&str; 3] = ["libpleach_pass.so", "libpleach_preload.so", "libpleach_stub.so"];
/// Documents, from the root of the sources.
const DOCUMENTS: [&str; 6] = [
    "README.md",
    "LICENSE-MIT",
    "LICENSE-APACHE",
    "feedback/cli/GUIDE.md",
    "feedback/cli/CHANGELOG.md",
    "testsuite/RESULTS.md",
];
/// Completions: the shell's name, the folder under `share`, and the file.
const COMPLETIONS: [(&str, &str, &str); 3] = [
    ("bash", "bash-completion/completions", "pleach"),
    ("fish", "fish/vendor_completions.d", "pleach.fish"),
    ("zsh", "zsh/site-functions", "_pleach"),
];

/// Copies everything from the folder of built files into a prefix.
pub fn install(root: &Path, built: &Path, prefix: &Path) -> Result<()> {
    let command = built.join("pleach");
    ensure!(
        command.is_file(),
        "{} is missing: leave out --no-build",
        command.display()
    );
    put(&command, &folder(prefix, "bin")?.join("pleach"), 0o755)?;
    let libraries = folder(prefix, "lib/pleach")?;
    for library in LIBRARIES {
        put(&built.join(library), &libraries.join(library), 0o644)?;
    }
    let documents = folder(prefix, "share/doc/pleach")?;
    for document in DOCUMENTS.map(Path::new) {
        let name = document.file_name().unwrap_or_default();
        put(&root.join(document), &documents.join(name), 0o644)?;
    }
    let manual = folder(prefix, "share/man/man1")?;
    output(Command::new(&command).arg("manual").arg(&manual))?;
    for (shell, place, name) in COMPLETIONS {
        let path = folder(prefix, &format!("share/{place}"))?.join(name);
        let text = output(Command::new(&command).args(["completions", shell]))?;
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

fn folder(prefix: &Path, name: &str) -> Result<PathBuf> {
    let path = prefix.join(name);
    fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
    Ok(path)
}

/// Replaces a file as a whole: programs that use the old one keep it.
fn put(from: &Path, to: &Path, mode: u32) -> Result<()> {
    let new = to.with_extension("new");
    fs::copy(from, &new).with_context(|| format!("cannot copy {} to {}", from.display(), new.display()))?;
    fs::set_permissions(&new, fs::Permissions::from_mode(mode))?;
    fs::rename(&new, to).with_context(|| format!("cannot write {}", to.display()))
}

/// What a command prints.
pub fn output(command: &mut Command) -> Result<Vec<u8>> {
    let output = command
        .output()
        .with_context(|| format!("cannot run {}", command.get_program().display()))?;
    ensure!(
        output.status.success(),
        "{} failed: {}",
        command.get_program().display(),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(output.stdout)
}
