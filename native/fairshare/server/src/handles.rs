//! Open files. A handle is what an open file description is in a kernel: flags, a position, and the
//! backing file; processes that inherited or duplicated its descriptor share it.
//!
//! A local client's descriptor is one end of a socket pair whose other end lies here. When the last
//! process that holds it has closed it or died, the kernel says so, and the handle goes: fork, exec,
//! dup and descriptors passed to other processes need no bookkeeping.

use std::collections::HashMap;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, RwLock};
use std::time::{Duration, Instant};

use crate::accounts::user_of;
use crate::budget::Held;
use crate::errno::{check, check_size, Errno, Result};
use crate::jobs::Entry;

use crate::mapping::{FileId, Inode};
use crate::session::Session;
use crate::tree::{allocated, stat_of, LONG};

/// How long handles of a lost remote client wait for a forked child to claim them.
const LINGER: Duration = Duration::from_secs(5);

/// The user of handles that the kernel's mount holds: how many there are is the kernel's affair.
pub const KERNEL: u32 = u32::MAX;

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
    flags: AtomicI32,
    pub position: Mutex<i64>,
    keeper: Keeper,
    /// Whose job opened it.
    pub entry: Arc<Entry>,
    /// Held, not read: its descriptors count to who opened it as long as it is there.
    _held: Held,
}

enum Keeper {
    Socket(#[allow(dead_code, reason = "held open: closing it would end the client's descriptor")] OwnedFd),
    /// The remote sessions that have it: the one that opened it, and children that inherited it.
    Sessions(Mutex<Vec<u64>>),
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

    /// open's flags as they are now: access mode, O_APPEND, O_SYNC...
    pub fn flags(&self) -> i32 {
        self.flags.load(Ordering::Relaxed)
    }

    /// fcntl(F_SETFL): of the flags only O_APPEND can change here.
    pub fn set_flags(&self, flags: i32) {
        let kept = self.flags() & !libc::O_APPEND;
        self.flags.store(kept | flags & libc::O_APPEND, Ordering::Relaxed);
    }

    fn held_by(&self, session: u64) -> bool {
        match &self.keeper {
            Keeper::Socket(_) => false,
            Keeper::Sessions(held) => held.lock().expect("no panics under this lock").contains(&session),
        }
    }

    fn unheld(&self) -> bool {
        match &self.keeper {
            Keeper::Socket(_) => false,
            Keeper::Sessions(held) => held.lock().expect("no panics under this lock").is_empty(),
        }
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
        matches!(self.flags() & libc::O_ACCMODE, libc::O_RDONLY | libc::O_RDWR)
    }

    pub fn writable(&self) -> bool {
        matches!(self.flags() & libc::O_ACCMODE, libc::O_WRONLY | libc::O_RDWR)
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

/// Descriptors of the server that a local client's handle takes: the file, and the server's end of the client's.
/// Another's takes the file alone.
pub const FOR_A_HANDLE: u64 = 2;

#[derive(Default)]
struct Table {
    handles: HashMap<u64, Arc<Handle>>,
    per_user: HashMap<u32, usize>,
    /// Handles whose remote session has ended.
    orphans: Vec<(Instant, u64)>,
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

    /// File a handle that lives as long as a descriptor, which is returned together with the end of
    /// the pair to watch. EMFILE beyond the user's limit.
    pub fn add_local(&self, opened: Opened, server: u64) -> Result<(Arc<Handle>, OwnedFd, RawFd)> {
        let id = random()? >> 3;
        let (ours, theirs) = life_line(server, id)?;
        let watched = ours.as_raw_fd();
        let handle = self.add(id, opened, Keeper::Socket(ours))?;
        Ok((handle, theirs, watched))
    }

    /// File a handle that lives as long as a session, and a little longer.
    pub fn add_remote(&self, opened: Opened, session: u64) -> Result<Arc<Handle>> {
        self.add(
            random()? >> 3,
            opened,
            Keeper::Sessions(Mutex::new(vec![session])),
        )
    }

    fn add(&self, id: u64, opened: Opened, keeper: Keeper) -> Result<Arc<Handle>> {
        let mut table = self.table.write().expect("no panics under this lock");
        let account = user_of(opened.uid);
        let count = table.per_user.entry(account).or_default();
        if *count >= self.most_per_user && opened.uid != KERNEL {
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
            flags: AtomicI32::new(opened.flags),
            position: Mutex::new(0),
            keeper,
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

    /// A session uses an inherited handle.
    pub fn claim(&self, handle: &Handle, session: u64) {
        if let Keeper::Sessions(holders) = &handle.keeper {
            let mut holders = holders.lock().expect("no panics under this lock");
            if !holders.contains(&session) {
                holders.push(session);
            }
        }
    }

    /// A session has closed a handle. Others may have it: those that know of it already, or a child that
    /// has not spoken yet (`shared`).
    pub fn release(&self, handle: &Handle, session: u64, shared: bool) {
        let Keeper::Sessions(holders) = &handle.keeper else {
            if !shared {
                self.remove(handle.id);
            }
            return;
        };
        let mut holders = holders.lock().expect("no panics under this lock");
        holders.retain(|holder| *holder != session);
        if !holders.is_empty() {
            return;
        }
        drop(holders);
        if shared {
            let mut table = self.table.write().expect("no panics under this lock");
            table.orphans.push((Instant::now() + LINGER, handle.id));
        } else {
            self.remove(handle.id);
        }
    }

    /// A remote session has ended: its handles go, unless a child claims them soon.
    pub fn session_ended(&self, session: u64) {
        let handles: Vec<_> = {
            let table = self.table.read().expect("no panics under this lock");
            table
                .handles
                .values()
                .filter(|handle| handle.held_by(session))
                .cloned()
                .collect()
        };
        for handle in handles {
            self.release(&handle, session, true);
        }
    }

    /// Drop the handles that nobody has claimed in time.
    pub fn tidy(&self) {
        let due: Vec<u64> = {
            let mut table = self.table.write().expect("no panics under this lock");
            let now = Instant::now();
            let (due, later) = table.orphans.drain(..).partition(|(when, _)| *when <= now);
            table.orphans = later;
            let due: Vec<(Instant, u64)> = due;
            due.into_iter().map(|(_, id)| id).collect()
        };
        for id in due {
            let unclaimed = {
                let table = self.table.read().expect("no panics under this lock");
                table.handles.get(&id).is_some_and(|handle| handle.unheld())
            };
            if unclaimed {
                self.remove(id);
            }
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

/// A socket pair whose client's end can do nothing but be held: reading says EAGAIN, writing EPIPE.
/// The peer's name tells a process that inherited the descriptor which server and handle it belongs to.
fn life_line(server: u64, id: u64) -> Result<(OwnedFd, OwnedFd)> {
    let mut pair = [0; 2];
    let name = format!("\0fairshare/{server:016x}/{id:016x}");
    // SAFETY: plain calls; the address is built as unix(7) describes an abstract name.
    unsafe {
        let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        check(libc::socketpair(libc::AF_UNIX, kind, 0, pair.as_mut_ptr()))?;
        let (ours, theirs) = (OwnedFd::from_raw_fd(pair[0]), OwnedFd::from_raw_fd(pair[1]));
        let mut address: libc::sockaddr_un = std::mem::zeroed();
        address.sun_family = libc::AF_UNIX as u16;
        for (to, from) in address.sun_path.iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        let length = std::mem::size_of::<libc::sa_family_t>() + name.len();
        check(libc::bind(
            ours.as_raw_fd(),
            (&raw const address).cast(),
            length as u32,
        ))?;
        check(libc::shutdown(ours.as_raw_fd(), libc::SHUT_RD))?;
        Ok((ours, theirs))
    }
}
