//! Open files: the backing file and how it was opened. Positions are the clients' own: a mount's kernel has them.

use std::collections::HashMap;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex, OnceLock, RwLock};

use crate::accounts::user_of;
use crate::budget::Held;
use crate::errno::{check_size, Errno, Result};
use crate::jobs::Entry;

use crate::mapping::{FileId, Inode};
use crate::session::Session;
use crate::tree::{allocated, stat_of, LONG};

/// To whom handles count that the kernel of the server's own mount holds: how many there are is the kernel's affair.
const KERNEL: u32 = u32::MAX;

pub struct Handle {
    /// 61 random bits, so that nobody guesses another's.
    pub id: u64,
    pub file: OwnedFd,
    pub uid: u32,
    /// To whose number of open files it counts.
    account: u32,
    pub directory: bool,
    pub id_of_file: FileId,
    pub inode: Arc<Inode>,
    /// open's flags: access mode, O_SYNC...
    pub flags: i32,
    /// Held while a folder is read, by the position of the backing file.
    pub reading: Mutex<()>,
    /// The session that opened it, with which it goes; None for the server's own mount.
    session: Option<u64>,
    /// Whose job opened it.
    pub entry: Arc<Entry>,
    /// Held, not read: its descriptors count to who opened it as long as it is there.
    _held: Held,
}

impl AsFd for Handle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Handle {
    pub fn fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// To whom the job that opened it is accounted.
    pub fn user(&self) -> u32 {
        self.entry.job.lock().expect("no panics under this lock").user
    }

    /// Whether its file has no name any more, and so much data that closing it may take long.
    fn ends_large_file(&self) -> bool {
        stat_of(self.fd()).is_ok_and(|stat| stat.st_nlink == 0 && allocated(&stat) > LONG)
    }

    pub fn readable(&self) -> bool {
        matches!(self.flags & libc::O_ACCMODE, libc::O_RDONLY | libc::O_RDWR)
    }

    pub fn writable(&self) -> bool {
        matches!(self.flags & libc::O_ACCMODE, libc::O_WRONLY | libc::O_RDWR)
    }
}

/// What a new handle is made of.
pub struct Opened {
    pub file: OwnedFd,
    pub flags: i32,
    pub uid: u32,
    pub directory: bool,
    pub id_of_file: FileId,
    pub inode: Arc<Inode>,
    pub held: Held,
    pub entry: Arc<Entry>,
}

#[derive(Default)]
struct Table {
    handles: HashMap<u64, Arc<Handle>>,
    per_user: HashMap<u32, usize>,
}

pub type Closer = Box<dyn Fn(Arc<Handle>) + Send + Sync>;

pub struct Handles {
    table: RwLock<Table>,
    most_per_user: usize,
    /// Who closes files whose data go with them, where that may take long.
    closer: OnceLock<Closer>,
}

impl Handles {
    pub fn new(most_per_user: usize) -> Self {
        Self {
            table: RwLock::default(),
            most_per_user,
            closer: OnceLock::new(),
        }
    }

    pub fn close_large_ones_by(&self, closer: Closer) {
        let _ = self.closer.set(closer);
    }

    /// File a handle of a session. EMFILE beyond the user's limit.
    pub fn add(&self, opened: Opened, session: &Session) -> Result<Arc<Handle>> {
        let id = random()? >> 3;
        let mut table = self.table.write().expect("no panics under this lock");
        let account = if session.inside {
            KERNEL
        } else {
            user_of(opened.uid)
        };
        let count = table.per_user.entry(account).or_default();
        if *count >= self.most_per_user && account != KERNEL {
            return Err(Errno(libc::EMFILE));
        }
        *count += 1;
        let handle = Arc::new(Handle {
            id,
            file: opened.file,
            uid: opened.uid,
            account,
            directory: opened.directory,
            id_of_file: opened.id_of_file,
            inode: opened.inode,
            flags: opened.flags,
            reading: Mutex::default(),
            session: (!session.inside).then_some(session.id),
            entry: opened.entry,
            _held: opened.held,
        });
        table.handles.insert(id, Arc::clone(&handle));
        Ok(handle)
    }

    /// The handle `id`, for its user's sessions; EBADF for another's as for none.
    pub fn get(&self, id: u64, session: &Session) -> Result<Arc<Handle>> {
        let table = self.table.read().expect("no panics under this lock");
        let handle = table.handles.get(&id).ok_or(Errno(libc::EBADF))?;
        let uid = session.creds.uid;
        if session.inside || handle.uid == uid || uid == 0 {
            Ok(Arc::clone(handle))
        } else {
            Err(Errno(libc::EBADF))
        }
    }

    pub fn remove(&self, id: u64) {
        let mut table = self.table.write().expect("no panics under this lock");
        let Some(handle) = table.handles.remove(&id) else {
            return;
        };
        if let Some(count) = table.per_user.get_mut(&handle.account) {
            *count -= 1;
            if *count == 0 {
                table.per_user.remove(&handle.account);
            }
        }
        drop(table);
        if let Some(closer) = self.closer.get().filter(|_| handle.ends_large_file()) {
            closer(handle);
        }
    }

    /// A session has ended: its handles go.
    pub fn session_ended(&self, session: u64) {
        let ids: Vec<u64> = {
            let table = self.table.read().expect("no panics under this lock");
            let handles = table.handles.values();
            handles
                .filter(|handle| handle.session == Some(session))
                .map(|handle| handle.id)
                .collect()
        };
        for id in ids {
            self.remove(id);
        }
    }

    pub fn count(&self) -> usize {
        self.table
            .read()
            .expect("no panics under this lock")
            .handles
            .len()
    }
}

/// Random bits of the kernel.
pub fn random() -> Result<u64> {
    let mut bytes = [0; 8];
    fill_at_random(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

/// Fill a few bytes with random ones of the kernel.
pub fn fill_at_random(bytes: &mut [u8]) -> Result<()> {
    // SAFETY: buffer and length agree; so few bytes come all at once.
    let count = check_size(unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) })?;
    if count == bytes.len() {
        Ok(())
    } else {
        Err(Errno(libc::EIO))
    }
}
