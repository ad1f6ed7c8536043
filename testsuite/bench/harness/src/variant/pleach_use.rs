//! Builds that a recording guides.

use super::recording::Recording;
use crate::bench::Bench;
use crate::pleach_command::{Pleach, plugin_flags};
use crate::process::run_measured;
use crate::variant::Variant;
use crate::workload::Workload;
use anyhow::Result;
use std::process::Command;

/// A build that a recording of the training input guides.
#[derive(Clone, PartialEq, Debug)]
pub struct PleachUse {
    /// Short name.
    pub label: String,
    /// The command.
    pub pleach: Pleach,
    /// How the profile is recorded.
    pub recording: Recording,
    /// More options of the plugin, such as `-pleach-icall-promotion=0`.
    pub plugin_options: Vec<String>,
    /// Which random order the linker puts functions in, instead of the profile's.
    pub function_order: Option<u32>,
}

impl PleachUse {
    /// The defaults of `pleach flags use`.
    pub fn new(pleach: Pleach, recording: Recording) -> Self {
        Self {
            label: "pleach-use".to_owned(),
            pleach,
            recording,
            plugin_options: Vec::new(),
            function_order: None,
        }
    }

    /// The same profile, used with more options of the plugin.
    pub fn with(&self, name: &str, plugin_options: &[String]) -> Self {
        let mut new = self.clone();
        new.label = format!("pleach:{name}");
        new.plugin_options.extend_from_slice(plugin_options);
        new
    }

    /// The flags beside `-O2`, after recording.
    pub fn flags(&self, bench: &Bench, workload: &Workload) -> Result<Vec<String>> {
        let (bench, workload) = bench.training(workload)?;
        let annotated = Variant::Annotated(self.pleach.clone()).produce(bench, workload)?;
        let profile = self.recording.record(bench, workload, &self.pleach, &annotated)?;
        let mut flags = self.pleach.flags(&["use", &profile.display().to_string()])?;
        flags.extend(plugin_flags(&self.plugin_options));
        Ok(flags)
    }

    /// The flags of the link alone.
    pub fn link_flags(&self) -> Vec<String> {
        self.function_order.map(random_order).unwrap_or_default()
    }

    /// Fails where the plugin does not know its options, before hours of recording.
    pub fn check_options(&self) -> Result<()> {
        let mut command = Command::new(crate::tools::Tool::Clang.find()?);
        command
            .args(self.pleach.flags(&["annotate"])?)
            .args(plugin_flags(&self.plugin_options));
        command.args(["-x", "c", "-c", "/dev/null", "-o", "/dev/null"]);
        run_measured(&mut command)?.expect_success(&format!("trying {}", self.plugin_options.join(" ")))?;
        Ok(())
    }
}

/// The linker's flags that put functions in the random order of a seed.
pub fn random_order(seed: u32) -> Vec<String> {
    vec![
        "-Wl,--call-graph-profile-sort=none".to_owned(),
        format!("-Wl,--shuffle-sections=.text*={seed}"),
    ]
}
