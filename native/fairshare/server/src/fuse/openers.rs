//! Who opened which file. What was written through a mapping the kernel brings when it likes and in nobody's name, which
//! looks like root's; it counts to whoever opened the file, and is done with that user's rights.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

use crate::inside::Process;

#[derive(Default)]
pub struct Openers(Mutex<HashMap<u64, Process>>);

impl Openers {
    pub fn opened(&self, handle: u64, by: Process) {
        self.table().insert(handle, by);
    }

    pub fn closed(&self, handle: u64) {
        self.table().remove(&handle);
    }

    pub fn of(&self, handle: u64) -> Option<Process> {
        self.table().get(&handle).copied()
    }

    fn table(&self) -> MutexGuard<'_, HashMap<u64, Process>> {
        self.0.lock().expect("no panics under this lock")
    }
}
