//! Data of files in memory: large requests to parts of a file that lie densely on the backing store
//! are one copy between the client's segment and the file's own pages, without a system call.
//!
//! On tmpfs a pwrite of 1 MiB costs twice what the copy alone does. Only whole blocks that are known to
//! be allocated are touched here, so that a full store shows as ENOSPC of the ordinary call and never
//! as a fault. Truncation and holes take the mapping away first, under the lock.

use std::collections::HashMap;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, RwLock, Weak};

use crate::budget::{Budget, Held};
use crate::copy::{copy, copy_away};
use crate::creds;
use crate::errno::{check, Errno, Result};
use crate::fault;
use crate::tree::proc_path;
use crate::tree::stat_of;

/// Unit of what is known about a file, in bytes.
const BLOCK: u64 = 128 << 10;

/// Smaller requests go by pread and pwrite.
const WORTH: u64 = 16 << 10;

/// Larger files are not mapped (their page tables alone would be a burden).
const LARGEST: u64 = 1 << 40;

const UNKNOWN: u8 = 0;
/// Allocated on the store.
const DENSE: u8 = 1;
/// Allocated, and in this process's page tables,
/// for reading:
const READABLE: u8 = 2;
/// and for writing, which made its pages dirty.
const READY: u8 = 3;

pub type FileId = (u64, u64);

pub struct Inode {
    /// Set where mapping is impossible: no permission, an odd file system, a fault.
    hopeless: AtomicBool,
    /// Something that takes long is done to it, apart from the workers.
    worked_on: AtomicBool,
    mapping: RwLock<Option<Mapping>>,
    appending: Mutex<()>,
    /// The tick at which a write by mapping set the modification time last.
    stamped: AtomicU64,
    budget: Budget,
}

struct Mapping {
    base: *mut u8,
    length: u64,
    blocks: Vec<AtomicU8>,
    /// A page could not be reached, and an empty one lies in its place: nothing read here counts any more.
    broken: AtomicBool,
    /// Held, not read: the kernel has only so many mappings for a process.
    _held: Held,
}

// SAFETY: the pages are shared with the kernel and reached through raw copies alone.
unsafe impl Send for Mapping {}
// SAFETY: as above; concurrent writers of the same bytes race as they would with pwrite.
unsafe impl Sync for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: ours, and the lock says that nobody copies.
        unsafe {
            libc::munmap(self.base.cast(), self.length as usize);
        }
    }
}

/// How to write.
#[derive(Clone, Copy)]
pub struct How {
    /// Set the modification time.
    pub stamp: bool,
    /// What is written lies in another processor's reach as well as in ours: past the caches.
    pub away: bool,
}

/// All inodes that some client has open.
pub struct Inodes {
    table: Mutex<HashMap<FileId, Weak<Inode>>>,
    budget: Budget,
}

impl Inodes {
    /// `budget`: of mappings.
    pub fn new(budget: Budget) -> Self {
        Self {
            table: Mutex::default(),
            budget,
        }
    }

    pub fn get(&self, id: FileId) -> Arc<Inode> {
        let mut table = self.table.lock().expect("no panics under this lock");
        if let Some(inode) = table.get(&id).and_then(Weak::upgrade) {
            return inode;
        }
        if table.len() >= 1024 && table.len().is_power_of_two() {
            table.retain(|_, inode| inode.strong_count() > 0);
        }
        let inode = Arc::new(Inode {
            hopeless: AtomicBool::new(false),
            worked_on: AtomicBool::new(false),
            mapping: RwLock::default(),
            appending: Mutex::default(),
            stamped: AtomicU64::new(0),
            budget: self.budget.clone(),
        });
        table.insert(id, Arc::downgrade(&inode));
        inode
    }

    /// Somebody sets a file's times: the next write sets them again.
    pub fn times_change(&self, id: FileId) {
        let table = self.table.lock().expect("no panics under this lock");
        if let Some(inode) = table.get(&id).and_then(Weak::upgrade) {
            inode.stamped.store(0, Ordering::SeqCst);
        }
    }
}

impl Inode {
    /// Copy from the file. None: read it the ordinary way.
    /// `away`: for another processor.
    pub fn read(&self, offset: u64, to: *mut u8, length: u64, away: bool) -> Option<u64> {
        self.copy(offset, to, length, false, away)
    }

    /// Copy to the file. None: write it the ordinary way, and
    /// tell with [`Inode::wrote`].
    pub fn write(&self, fd: RawFd, offset: u64, from: *mut u8, length: u64, how: How) -> Option<u64> {
        let copied = self.copy(offset, from, length, true, how.away)?;
        // As a kernel does: not again within a tick. On a file system with a journal each time is a change to wait for.
        let now = tick();
        if how.stamp && self.stamped.swap(now, Ordering::SeqCst) != now {
            touch(fd);
        }
        Some(copied)
    }

    fn copy(&self, offset: u64, memory: *mut u8, length: u64, write: bool, away: bool) -> Option<u64> {
        let end = offset.checked_add(length)?;
        if length < WORTH || self.has_no_mapping() || end > LARGEST {
            return None;
        }
        let mapped = self.mapping.read().expect("not poisoned");
        let mapping = mapped.as_ref().filter(|mapping| end <= mapping.length)?;
        for block in offset / BLOCK..end.div_ceil(BLOCK) {
            match mapping.blocks[block as usize].load(Ordering::Acquire) {
                READY => {}
                READABLE if !write => {}
                UNKNOWN => return None,
                _ => mapping.populate(block, write)?,
            }
        }
        // SAFETY: inside the mapping, which the lock keeps; `memory` holds `length` bytes.
        let copied = unsafe {
            let page = mapping.base.add(offset as usize);
            let (from, to) = if write { (memory, page) } else { (page, memory) };
            let copy = if away { copy_away } else { copy };
            fault::guarded(&mapping.broken, || copy(from, to, length as usize))
        };
        if !copied {
            self.hopeless.store(true, Ordering::Relaxed);
            drop(mapped);
            self.forget();
            return None; // the ordinary call says what is the matter with the file
        }
        Some(length)
    }

    /// Note that an ordinary write put data there: whole blocks of it are allocated from now on.
    pub fn wrote(&self, fd: RawFd, uid: u32, offset: u64, length: u64) {
        self.learn(fd, uid, offset, length, true);
    }

    /// Learn at an ordinary read whether the file is dense, so that later reads can be copies.
    pub fn was_read(&self, fd: RawFd, uid: u32, offset: u64, length: u64) {
        self.learn(fd, uid, offset, length, false);
    }

    /// `uid`: the user to whom a mapping that is made now counts.
    fn learn(&self, fd: RawFd, uid: u32, offset: u64, length: u64, written: bool) {
        if length < WORTH || self.has_no_mapping() {
            return;
        }
        let (mut start, mut end) = (offset, offset + length);
        let whole = start % BLOCK == 0 && end % BLOCK == 0;
        if !(written && whole) {
            // Of a block that was touched in part, the rest is there if the whole file is.
            if !has_no_holes(fd) {
                return;
            }
            (start, end) = (start / BLOCK * BLOCK, end.div_ceil(BLOCK) * BLOCK);
        }
        {
            let mapped = self.mapping.read().expect("not poisoned");
            if let Some(mapping) = mapped.as_ref().filter(|mapping| end <= mapping.length) {
                return mapping.dense(start, end);
            }
        }
        let mut mapped = self.mapping.write().expect("not poisoned");
        let grown = match mapped.take() {
            Some(mapping) => mapping.grown(fd),
            None => match self.budget.take(uid, 1) {
                Some(held) => Mapping::made(fd, held),
                None => return,
            },
        };
        match grown {
            Ok(mapping) => {
                if let Some(mapping) = &mapping {
                    mapping.dense(start, end);
                }
                *mapped = mapping;
            }
            Err(_) => self.hopeless.store(true, Ordering::Relaxed),
        }
    }

    /// Run `change` (truncation, punching) with no mapping in place.
    pub fn reshape<T>(&self, change: impl FnOnce() -> T) -> T {
        let mut mapped = self.mapping.write().expect("not poisoned");
        *mapped = None;
        change()
    }

    /// The same for what takes long; who comes meanwhile can see that.
    pub fn work_on<T>(&self, change: impl FnOnce() -> T) -> T {
        self.worked_on.store(true, Ordering::SeqCst);
        let result = self.reshape(change);
        self.worked_on.store(false, Ordering::SeqCst);
        result
    }

    fn has_no_mapping(&self) -> bool {
        self.hopeless.load(Ordering::Relaxed) || self.is_worked_on()
    }

    pub fn is_worked_on(&self) -> bool {
        self.worked_on.load(Ordering::SeqCst)
    }

    pub fn forget(&self) {
        self.reshape(|| ());
    }

    /// Serialise what must find the end of the file and write there.
    pub fn appending(&self) -> std::sync::MutexGuard<'_, ()> {
        self.appending.lock().expect("no panics under this lock")
    }
}

impl Mapping {
    /// A mapping of the whole blocks of the file as large as it is now; None where it has none.
    fn made(fd: RawFd, held: Held) -> Result<Option<Self>> {
        let length = whole_blocks(fd)?;
        if length == 0 {
            return Ok(None);
        }
        let path = proc_path(fd);
        // As the server, not as the client, which may read alone: rights were checked when it opened the file.
        // SAFETY: a C string.
        let file =
            creds::as_server(|| check(unsafe { libc::open(path.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) }))?;
        // SAFETY: just opened.
        let file = unsafe { OwnedFd::from_raw_fd(file) };
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping, checked below.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length as usize,
                protection,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(Errno::last());
        }
        let blocks = (0..length / BLOCK).map(|_| AtomicU8::new(UNKNOWN)).collect();
        Ok(Some(Self {
            base: base.cast(),
            length,
            blocks,
            broken: AtomicBool::new(false),
            _held: held,
        }))
    }

    /// The same of the file as large as it is now; what was known stays known.
    fn grown(mut self, fd: RawFd) -> Result<Option<Self>> {
        let length = whole_blocks(fd)?;
        if length <= self.length {
            return Ok(Some(self));
        }
        // SAFETY: our own mapping.
        let base = unsafe {
            libc::mremap(
                self.base.cast(),
                self.length as usize,
                length as usize,
                libc::MREMAP_MAYMOVE,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(Errno::last());
        }
        self.base = base.cast();
        self.length = length;
        self.blocks
            .resize_with((length / BLOCK) as usize, || AtomicU8::new(UNKNOWN));
        Ok(Some(self))
    }

    /// Mark the blocks that lie wholly in [start, end).
    fn dense(&self, start: u64, end: u64) {
        for block in start.div_ceil(BLOCK)..end / BLOCK {
            if let Some(state) = self.blocks.get(block as usize) {
                let _ = state.compare_exchange(UNKNOWN, DENSE, Ordering::AcqRel, Ordering::Relaxed);
            }
        }
    }

    /// Bring a block into the page tables; None where the kernel cannot. For reading the pages stay clean, and
    /// the file's times as they are.
    fn populate(&self, block: u64, write: bool) -> Option<()> {
        let (how, then) = if write {
            (libc::MADV_POPULATE_WRITE, READY)
        } else {
            (libc::MADV_POPULATE_READ, READABLE)
        };
        // SAFETY: inside the mapping.
        let result = unsafe {
            libc::madvise(
                self.base.add((block * BLOCK) as usize).cast(),
                BLOCK as usize,
                how,
            )
        };
        let state = &self.blocks[block as usize];
        if result != 0 {
            state.store(UNKNOWN, Ordering::Release);
            return None;
        }
        state.fetch_max(then, Ordering::AcqRel);
        Some(())
    }
}

/// Bytes of a file's whole blocks, as far as they are mapped. EPERM for a file that gives rights to who runs it: a
/// write has to take them away, which is left to pwrite.
fn whole_blocks(fd: RawFd) -> Result<u64> {
    let stat = stat_of(fd)?;
    // SAFETY: C strings; no buffer, the length alone is asked for.
    let capable =
        || unsafe { libc::fgetxattr(fd, c"security.capability".as_ptr(), std::ptr::null_mut(), 0) > 0 };
    if stat.st_mode & (libc::S_ISUID | libc::S_ISGID) != 0 || capable() {
        return Err(Errno(libc::EPERM));
    }
    Ok((stat.st_size as u64).min(LARGEST) / BLOCK * BLOCK)
}

/// Whether as much is allocated as the file is long. (What is allocated beyond its end can hide a hole; then
/// populating it fails or allocates it, and nothing worse.)
fn has_no_holes(fd: RawFd) -> bool {
    // SAFETY: stat is plain data; descriptor and buffer are valid.
    unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        libc::fstat(fd, &mut stat) == 0 && stat.st_blocks * 512 >= stat.st_size
    }
}

/// The kernel's clock of files: it goes on some hundred times a second.
fn tick() -> u64 {
    // SAFETY: timespec is plain data.
    let now = unsafe {
        let mut now: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_REALTIME_COARSE, &mut now);
        now
    };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Set the modification time, as a write does.
pub fn touch(fd: RawFd) {
    let times = [
        libc::timespec {
            tv_sec: 0,
            tv_nsec: libc::UTIME_OMIT,
        },
        libc::timespec {
            tv_sec: 0,
            tv_nsec: libc::UTIME_NOW,
        },
    ];
    // SAFETY: two timespecs, as the call wants.
    let touch = || check(unsafe { libc::futimens(fd, times.as_ptr()) });
    // Who may write is not let set this time alone, unless the file is its own.
    if touch() == Err(Errno(libc::EPERM)) {
        let _ = creds::as_server(touch);
    }
}
