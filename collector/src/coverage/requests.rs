//! Requests of processes for plans, through a pipe.

#![allow(unsafe_code, reason = "system calls")]

use super::plan::ModulePlan;
use crate::detached::TemporaryFolder;
use pleach_wire::coverage::{REQUESTS, key};
use std::collections::HashMap;
use std::ffi::{CString, OsStr};
use std::fs::{File, OpenOptions};
use std::io::{Error, Read, Result, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// The plans so far, and the thread that makes further ones.
#[derive(Debug)]
pub(super) struct Requests {
    plans: Arc<Plans>,
    pipe: File,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Plans {
    folder: Arc<TemporaryFolder>,
    made: Mutex<HashMap<u64, ModulePlan>>,
}

impl Plans {
    fn make(&self, path: &Path, inode: u64) {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let key = key(path.as_os_str().as_bytes(), inode);
        if made.contains_key(&key) {
            return;
        }
        match ModulePlan::make(path, inode, self.folder.path()) {
            Ok(plan) => drop(made.insert(key, plan)),
            // The disk is full, for instance. A process waits for the file.
            Err(error) => {
                made.insert(
                    key,
                    ModulePlan::refused(path, format!("cannot write its plan: {error}")),
                );
                let _ = File::create(self.folder.path().join(format!("{key:016x}")));
            }
        }
    }
}

impl Requests {
    /// Makes the pipe in the folder, and starts to answer.
    ///
    /// # Errors
    /// The pipe cannot be made.
    pub fn begin(folder: Arc<TemporaryFolder>) -> Result<Self> {
        let path = folder.path().join(OsStr::from_bytes(REQUESTS.to_bytes()));
        let name = CString::new(path.as_os_str().as_bytes())?;
        // SAFETY: the name is terminated.
        if unsafe { libc::mkfifo(name.as_ptr(), 0o600) } != 0 {
            return Err(Error::last_os_error());
        }
        // Open for both, so that it neither waits for a writer nor ends with the last one.
        let pipe = OpenOptions::new().read(true).write(true).open(&path)?;
        let plans = Arc::new(Plans {
            folder,
            made: Mutex::default(),
        });
        let (reader, for_thread) = (pipe.try_clone()?, Arc::clone(&plans));
        let thread = std::thread::Builder::new().spawn(move || answer(reader, &for_thread))?;
        Ok(Self {
            plans,
            pipe,
            thread: Some(thread),
        })
    }

    /// Makes a plan before it is asked for.
    pub fn make(&self, path: &Path, inode: u64) {
        self.plans.make(path, inode);
    }

    /// Ends the thread, and returns all plans with their keys, by path.
    pub fn finish(mut self) -> Vec<(u64, ModulePlan)> {
        self.end();
        let mut made = self.plans.made.lock().unwrap_or_else(PoisonError::into_inner);
        let mut plans: Vec<(u64, ModulePlan)> = made.drain().collect();
        plans.sort_by(|(_, a), (_, b)| a.path.cmp(&b.path));
        plans
    }

    fn end(&mut self) {
        if let Some(thread) = self.thread.take()
            && self.pipe.write_all(&END).is_ok()
        {
            let _ = thread.join();
        }
    }
}

/// The thread keeps the folder, which would remain if a recording ended before it began.
impl Drop for Requests {
    fn drop(&mut self) {
        self.end();
    }
}

/// A request without a path: the recording has ended.
const END: [u8; 9] = [0; 9];

fn answer(mut pipe: File, plans: &Plans) {
    let mut waiting: Vec<u8> = Vec::new();
    let mut buffer = [0; 8192];
    loop {
        match pipe.read(&mut buffer) {
            Ok(0) => return,
            Ok(length) => waiting.extend_from_slice(&buffer[..length]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(_) => return,
        }
        while let Some((inode, path)) = next(&mut waiting) {
            if path.as_os_str().is_empty() {
                return;
            }
            plans.make(&path, inode);
        }
    }
}

/// Takes the first complete request.
fn next(waiting: &mut Vec<u8>) -> Option<(u64, PathBuf)> {
    let (inode, rest) = waiting.split_first_chunk::<8>()?;
    let length = rest.iter().position(|byte| *byte == 0)?;
    let request = (
        u64::from_le_bytes(*inode),
        PathBuf::from(OsStr::from_bytes(&rest[..length])),
    );
    waiting.drain(..8 + length + 1);
    Some(request)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_as_they_come() {
        let mut waiting = [&7u64.to_le_bytes()[..], b"/bin/a\0", &9u64.to_le_bytes()].concat();
        assert_eq!(next(&mut waiting), Some((7, PathBuf::from("/bin/a"))));
        assert_eq!(next(&mut waiting), None);
        waiting.extend(b"/b\0");
        assert_eq!(next(&mut waiting), Some((9, PathBuf::from("/b"))));
        assert!(waiting.is_empty());
        waiting.extend(END);
        assert_eq!(next(&mut waiting), Some((0, PathBuf::new())));
    }

    #[test]
    fn what_is_no_annotated_file_has_an_empty_plan() {
        let folder = Arc::new(TemporaryFolder::new().unwrap());
        let requests = Requests::begin(Arc::clone(&folder)).unwrap();
        let path = folder.path().join("text");
        std::fs::write(&path, "no program").unwrap();
        requests.make(&path, 1);
        let request = [&2u64.to_le_bytes()[..], path.as_os_str().as_bytes(), b"\0"].concat();
        let mut pipe = OpenOptions::new()
            .write(true)
            .open(folder.path().join("requests"))
            .unwrap();
        pipe.write_all(&request).unwrap();
        let plans = requests.finish();
        assert_eq!(plans.len(), 2);
        for inode in [1, 2] {
            let name = format!("{:016x}", key(path.as_os_str().as_bytes(), inode));
            assert_eq!(std::fs::metadata(folder.path().join(name)).unwrap().len(), 0);
        }
    }
}
