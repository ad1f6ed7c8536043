//! The text of `perf script`.

use super::plan::{Sink, Stack};
use crate::vector::{Module, ModuleMapping, Prediction, Process};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;

/// Lines so far.
#[derive(Debug, Default)]
pub(super) struct Text(Vec<u8>);

impl Text {
    pub(super) fn finish(self) -> Vec<u8> {
        self.0
    }

    fn write(&mut self, arguments: std::fmt::Arguments) {
        // Writing to memory does not fail.
        let _ = self.0.write_fmt(arguments);
    }
}

impl Sink for Text {
    /// Only `--show-task-events` prints it.
    fn process(&mut self, _: u32, _: Option<u32>, _: &Process, _: u64) {}

    fn mapping(&mut self, pid: u32, module: &Module, mapping: &ModuleMapping, _: u64) {
        let (start, length) = (mapping.start, mapping.end - mapping.start);
        let offset = mapping.file_offset;
        self.write(format_args!(
            "PERF_RECORD_MMAP2 {pid}/{pid}: [{start:#x}({length:#x}) @ {offset:#x} "
        ));
        match module.build_id.as_ref().filter(|id| !id.0.is_empty()) {
            Some(id) => self.write(format_args!("<{id}>")),
            // As for a file that its inode does not identify.
            None => self.write(format_args!("00:00 - 0")),
        }
        self.write(format_args!("]: r-xp "));
        self.0.extend(module.path.as_os_str().as_bytes());
        self.0.push(b'\n');
    }

    fn stack(&mut self, stack: &Stack) {
        self.write(format_args!("{:17x}", stack.ip));
        for (from, to, facts) in stack.branches {
            let flag = match facts.prediction {
                Prediction::Unknown => '-',
                Prediction::Predicted => 'P',
                Prediction::Mispredicted => 'M',
            };
            self.write(format_args!(" {from:#x}/{to:#x}/{flag}/-/-/{} ", facts.cycles));
        }
        self.0.push(b'\n');
    }
}
