//! Makes values of bytes, for what has to be well-formed before it is worth changing.

use pleach_annotate::cfg::{Block, Call, Callee, Cfg, Terminator};
use pleach_annotate::id::{BlockIndex, FunctionGuid, FunctionId, ModuleHash};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Input not yet used; where it ends, zeros follow.
pub struct Input<'a>(pub &'a [u8]);

impl<'a> Input<'a> {
    pub fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }

    pub fn u8(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or(0)
    }

    pub fn u32(&mut self) -> u32 {
        self.u64_of(4) as u32
    }

    fn u64_of(&mut self, bytes: usize) -> u64 {
        let mut raw = [0; 8];
        let taken = self.take(bytes);
        raw[..taken.len()].copy_from_slice(taken);
        u64::from_le_bytes(raw)
    }

    /// A number whose size varies: small ones are as likely as large ones.
    pub fn number(&mut self) -> u64 {
        let bytes = usize::from(self.u8() % 9);
        self.u64_of(bytes)
    }

    /// A number that may be negative, infinite, or none; mostly it is an integer.
    pub fn float(&mut self) -> f64 {
        match self.u8() {
            0 => f64::from_bits(self.u64_of(8)),
            1 => f64::INFINITY,
            2 => f64::NAN,
            _ => self.number() as f64,
        }
    }

    pub fn text(&mut self) -> String {
        let length = usize::from(self.u8() % 20);
        String::from_utf8_lossy(self.take(length)).into_owned()
    }

    /// A graph that a manifest may hold.
    pub fn cfg(&mut self) -> Cfg {
        let count = u32::from(self.u8() % 24) + 1;
        let blocks = (0..count).map(|_| self.block(count)).collect();
        let mut calls: Vec<Call> = (0..self.u8() % 8).map(|_| self.call(count)).collect();
        calls.sort_by_key(|call| call.block);
        Cfg {
            id: FunctionId {
                guid: FunctionGuid(self.number()),
                module: ModuleHash(self.u8().into()),
            },
            module: ModuleHash(self.u8().into()),
            name: self.text(),
            source_file: self.text(),
            blocks,
            calls,
        }
    }

    fn block(&mut self, count: u32) -> Block {
        let flags = self.u8();
        let successors = (0..flags >> 4 & 3).map(|_| BlockIndex(u32::from(self.u8()) % count));
        Block {
            successors: successors.collect(),
            terminator: Terminator::from_u8(flags & 7).unwrap_or(Terminator::Other),
            is_eh_pad: flags & 8 != 0,
            instructions: self.u8().into(),
            line: self.number() as u32,
        }
    }

    fn call(&mut self, count: u32) -> Call {
        let flags = self.u8();
        Call {
            block: BlockIndex(u32::from(self.u8()) % count),
            callee: match flags & 3 {
                0 | 3 => Callee::Direct(FunctionGuid(self.number())),
                1 => Callee::Indirect,
                _ => Callee::InlineAsm,
            },
            may_not_return: flags & 4 != 0,
        }
    }
}

/// Calls `each` with the name of a file that holds these bytes, in memory where there is a file system for that.
pub fn with_file<T>(bytes: &[u8], each: impl FnOnce(&Path) -> T) -> T {
    thread_local! {
        static FOLDER: TempDir = {
            let memory = PathBuf::from("/dev/shm");
            let place = if memory.is_dir() { memory } else { std::env::temp_dir() };
            tempfile::Builder::new().prefix("pleach-fuzz-").tempdir_in(place).expect("a folder")
        };
    }
    FOLDER.with(|folder| {
        let path = folder.path().join("input");
        std::fs::write(&path, bytes).expect("written");
        each(&path)
    })
}
