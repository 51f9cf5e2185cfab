//! Who writes to a striped file now, and who makes it shorter: never both at a time, or what is written
//! behind the new end would be there when the file grows again. Nobody waits here; clients ask again.

use std::collections::HashMap;
use std::sync::Mutex;

use crate::errno::{Errno, Result};
use crate::mapping::FileId;

#[derive(Default)]
struct Held {
    /// Writes under way, of each session.
    writing: HashMap<u64, u32>,
    /// The session that cuts.
    cutting: Option<u64>,
}

#[derive(Default)]
pub struct Leases(Mutex<HashMap<FileId, Held>>);

impl Leases {
    /// A write begins. EAGAIN while the file is cut.
    pub fn write(&self, file: FileId, session: u64) -> Result<()> {
        let mut table = self.table();
        let held = table.entry(file).or_default();
        if held.cutting.is_some() {
            return Err(Errno(libc::EAGAIN));
        }
        *held.writing.entry(session).or_default() += 1;
        Ok(())
    }

    pub fn written(&self, file: FileId, session: u64) {
        let mut table = self.table();
        if let Some(held) = table.get_mut(&file) {
            if let Some(count) = held.writing.get_mut(&session) {
                *count -= 1;
                if *count == 0 {
                    held.writing.remove(&session);
                }
            }
        }
        tidy(&mut table, file);
    }

    /// Cutting begins. EAGAIN while somebody writes or cuts.
    pub fn cut(&self, file: FileId, session: u64) -> Result<()> {
        let mut table = self.table();
        let held = table.entry(file).or_default();
        if held.cutting.is_some() || !held.writing.is_empty() {
            return Err(Errno(libc::EAGAIN));
        }
        held.cutting = Some(session);
        Ok(())
    }

    /// Cutting ends. ESTALE where the session does not cut (any more).
    pub fn has_cut(&self, file: FileId, session: u64) -> Result<()> {
        let mut table = self.table();
        let held = table.get_mut(&file).filter(|held| held.cutting == Some(session));
        held.ok_or(Errno(libc::ESTALE))?.cutting = None;
        tidy(&mut table, file);
        Ok(())
    }

    /// A process has ended.
    pub fn drop_owner(&self, session: u64) {
        let mut table = self.table();
        table.retain(|_, held| {
            held.writing.remove(&session);
            held.cutting = held.cutting.filter(|owner| *owner != session);
            held.cutting.is_some() || !held.writing.is_empty()
        });
    }

    fn table(&self) -> std::sync::MutexGuard<'_, HashMap<FileId, Held>> {
        self.0.lock().expect("no panics under this lock")
    }
}

fn tidy(table: &mut HashMap<FileId, Held>, file: FileId) {
    if table
        .get(&file)
        .is_some_and(|held| held.cutting.is_none() && held.writing.is_empty())
    {
        table.remove(&file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: FileId = (1, 2);

    #[test]
    fn writers_share_and_a_cutter_is_alone() {
        let leases = Leases::default();
        leases.write(FILE, 1).unwrap();
        leases.write(FILE, 1).unwrap();
        leases.write(FILE, 2).unwrap();
        assert!(leases.cut(FILE, 3).is_err());
        leases.written(FILE, 1);
        leases.written(FILE, 2);
        assert!(leases.cut(FILE, 3).is_err(), "session 1 began two writes");
        leases.written(FILE, 1);
        leases.cut(FILE, 3).unwrap();
        assert!(leases.write(FILE, 1).is_err());
        assert!(leases.cut(FILE, 3).is_err(), "another thread of the same process");
        assert!(leases.has_cut(FILE, 4).is_err());
        leases.has_cut(FILE, 3).unwrap();
        assert!(leases.table().is_empty());
    }

    #[test]
    fn a_dead_process_is_in_nobodys_way() {
        let leases = Leases::default();
        leases.write(FILE, 1).unwrap();
        leases.drop_owner(1);
        leases.cut(FILE, 2).unwrap();
        leases.drop_owner(2);
        leases.write(FILE, 3).unwrap();
        leases.written(FILE, 9); // of a session that the server never had: it restarted
    }
}
