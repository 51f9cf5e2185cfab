//! What lets a process that has a file open in a mount begin a session of its own, as part of the job that the mount's
//! session belongs to. The process shows a voucher's number to the server, which has to know the secret that the mount said:
//! so neither believes a stranger.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

use crate::errno::Result;
use crate::handles::random;
use crate::jobs::{Described, Proof};
use crate::session::Session;

/// Vouchers of a user that nobody has used yet; one more takes the place of the oldest.
const MOST: usize = 64;

pub struct Voucher {
    uid: u32,
    pub secret: u64,
    pub job: Described,
    order: u64,
}

#[derive(Default)]
struct Table {
    made: u64,
    unused: HashMap<u64, Voucher>,
}

#[derive(Default)]
pub struct Vouchers(Mutex<Table>);

impl Vouchers {
    /// A voucher for another session of this one's user and job: its number and secret.
    pub fn make(&self, session: &Session) -> Result<(u64, u64)> {
        let (number, secret) = (random()? | 1, random()?);
        let job = *session.entry.job.lock().expect("no panics under this lock");
        let name = session.entry.name.clone();
        let job = Described {
            name,
            job,
            proof: Proof::Own, // what the mount's session could prove counts
        };
        let uid = session.creds.uid;
        let mut table = self.table();
        let mine = |table: &Table| -> Vec<(u64, u64)> {
            let mine = table.unused.iter().filter(|(_, one)| one.uid == uid);
            mine.map(|(number, one)| (one.order, *number)).collect()
        };
        let unused = mine(&table);
        if unused.len() >= MOST {
            if let Some((_, oldest)) = unused.into_iter().min() {
                table.unused.remove(&oldest);
            }
        }
        table.made += 1;
        let order = table.made;
        table.unused.insert(
            number,
            Voucher {
                uid,
                secret,
                job,
                order,
            },
        );
        Ok((number, secret))
    }

    /// Use a voucher, once; None where it is not this user's.
    pub fn take(&self, number: u64, uid: u32) -> Option<Voucher> {
        let mut table = self.table();
        table.unused.get(&number).filter(|one| one.uid == uid)?;
        table.unused.remove(&number)
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().expect("no panics under this lock")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hot::tests::session;

    #[test]
    fn a_voucher_is_one_users_and_good_once() {
        let (vouchers, session) = (Vouchers::default(), session());
        let (number, secret) = vouchers.make(&session).unwrap();
        let uid = session.creds.uid;
        assert!(vouchers.take(number, uid + 1).is_none());
        assert_eq!(vouchers.take(number, uid).map(|one| one.secret), Some(secret));
        assert!(vouchers.take(number, uid).is_none());
    }

    #[test]
    fn the_oldest_makes_room() {
        let (vouchers, session) = (Vouchers::default(), session());
        let all: Vec<u64> = (0..MOST + 1)
            .map(|_| vouchers.make(&session).unwrap().0)
            .collect();
        let uid = session.creds.uid;
        assert!(vouchers.take(all[0], uid).is_none());
        assert!(vouchers.take(all[1], uid).is_some());
    }
}
