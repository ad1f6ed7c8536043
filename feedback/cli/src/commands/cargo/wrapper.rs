//! Scripts that cargo runs in place of rustc and of programs.

use crate::commands::flags::shell_safe;
use anyhow::{Context, Result, bail};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// One of the two ways to build.
pub struct Stage {
    /// The folder of its builds.
    pub folder: &'static str,
    /// Of the plugin, and of the profile.
    pub digest: u64,
    /// The plugin's path.
    pub plugin: String,
    /// Variables for the plugin. rustc loads it after it has read the options for LLVM.
    pub environment: Vec<(&'static str, String)>,
    /// Whether programs keep their symbols, whatever cargo's profile says. Recordings need them.
    pub keeps_symbols: bool,
}

/// The file that says what a folder was built with.
const DIGEST: &str = "pleach-id";

impl Stage {
    /// Prepares the folder of builds; returns the wrapper of rustc in it.
    ///
    /// Cargo knows nothing of profile and plugin. What was built with others gets another name, in place of what had it
    /// before.
    pub fn prepare(&self, folder: &Path) -> Result<PathBuf> {
        let (digest, written) = (folder.join(DIGEST), format!("{:016x}\n", self.digest));
        let is_same = fs::read_to_string(&digest).is_ok_and(|text| text == written);
        if !is_same && folder.exists() {
            if !digest.is_file() {
                bail!(
                    "{} is not a directory of pleach's: delete it, or choose another target directory by CARGO_TARGET_DIR",
                    folder.display()
                );
            }
            let old = folder.with_extension("old");
            if old.exists() {
                fs::remove_dir_all(&old).with_context(|| format!("cannot delete {}", old.display()))?;
            }
            fs::rename(folder, &old).with_context(|| format!("cannot rename {}", folder.display()))?;
            eprintln!("pleach: builds before this profile or plugin are in {}", old.display());
        }
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let write =
            |path: &Path, text: &str| fs::write(path, text).with_context(|| format!("cannot write {}", path.display()));
        write(&digest, &written)?;
        let wrapper = folder.join("rustc");
        write(&wrapper, &self.script())?;
        executable(&wrapper)?;
        Ok(wrapper)
    }

    /// A crate of the program is what cargo compiles for a target. Build scripts run rustc, too, but not for a crate of
    /// cargo's. A second wrapper, such as a compiler cache, sees the digest among the arguments.
    fn script(&self) -> String {
        let Self { digest, plugin, .. } = self;
        let symbols = if self.keeps_symbols { " -Cstrip=none" } else { "" };
        let variables: Vec<String> = self
            .environment
            .iter()
            .map(|(name, value)| format!("{name}='{value}'"))
            .collect();
        let second = std::env::var("RUSTC_WRAPPER")
            .ok()
            .filter(|wrapper| !wrapper.is_empty());
        let second = second.map_or_else(String::new, |wrapper| format!("'{wrapper}' "));
        format!(
            "#!/bin/sh\n\
             # Written by `pleach cargo`: runs rustc with pleach's plugin for what is compiled for a target.\n\
             case \" $* \" in *' --target '*) is_target=1 ;; *) is_target= ;; esac\n\
             if [ -n \"$is_target\" ] && [ -n \"$CARGO_CRATE_NAME\" ]; then\n\
             \x20   export RUSTC_BOOTSTRAP=1 {}\n\
             \x20   set -- \"$@\" '-Zllvm-plugins={plugin}' '--cfg=pleach_id=\"{digest:016x}\"'{symbols}\n\
             fi\n\
             exec {second}\"$@\"\n",
            variables.join(" "),
        )
    }
}

/// Writes a script that records the program that it is given. `profile` is in the shell's syntax.
pub fn write_runner(folder: &Path, options: &str, profile: &str) -> Result<PathBuf> {
    let pleach = shell_safe(&std::env::current_exe()?)?;
    let script = format!("#!/bin/sh\nexec {pleach} record {options} -o {profile} -- \"$@\"\n");
    let path = folder.join("run");
    fs::write(&path, script).with_context(|| format!("cannot write {}", path.display()))?;
    executable(&path)?;
    Ok(path)
}

fn executable(path: &Path) -> Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
        .with_context(|| format!("cannot make {} executable", path.display()))
}
