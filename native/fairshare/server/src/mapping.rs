//! Data of files in memory: large requests to parts of a file that lie densely on the backing store
//! are one copy between the client's segment and the file's own pages, without a system call.
//!
//! On tmpfs a pwrite of 1 MiB costs twice what the copy alone does. Only whole blocks that are known to
//! be allocated are touched here, so that a full store shows as ENOSPC of the ordinary call and never
//! as a fault. Truncation and holes take the mapping away first, under the lock.

use std::collections::HashMap;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, OnceLock, RwLock, Weak};

use crate::copy::copy;
use crate::errno::{check, Errno, Result};
use crate::fault;
use crate::tree::proc_path;

/// Unit of what is known about a file, in bytes.
const BLOCK: u64 = 128 << 10;

/// Smaller requests go by pread and pwrite.
const WORTH: u64 = 16 << 10;

/// Larger files are not mapped (their page tables alone would be a burden).
const LARGEST: u64 = 1 << 40;

const UNKNOWN: u8 = 0;
/// Allocated on the store.
const DENSE: u8 = 1;
/// Allocated, and in this process's page tables.
const READY: u8 = 2;

pub type FileId = (u64, u64);

#[derive(Default)]
pub struct Inode {
    /// Of a striped file, whose data are elsewhere.
    pub layout: OnceLock<wire::Layout>,
    /// Set where mapping is impossible: no permission, an odd file system, a fault.
    hopeless: AtomicBool,
    mapping: RwLock<Option<Mapping>>,
    appending: Mutex<()>,
}

struct Mapping {
    file: OwnedFd,
    base: *mut u8,
    length: u64,
    blocks: Vec<AtomicU8>,
}

// SAFETY: the pages are shared with the kernel and reached through raw copies alone.
unsafe impl Send for Mapping {}
// SAFETY: as above; concurrent writers of the same bytes race as they would with pwrite.
unsafe impl Sync for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self.length > 0 {
            // SAFETY: ours, and the lock says that nobody copies.
            unsafe {
                libc::munmap(self.base.cast(), self.length as usize);
            }
        }
    }
}

/// All inodes that some client has open.
#[derive(Default)]
pub struct Inodes(Mutex<HashMap<FileId, Weak<Inode>>>);

impl Inodes {
    pub fn get(&self, id: FileId) -> Arc<Inode> {
        let mut table = self.0.lock().expect("no panics under this lock");
        if let Some(inode) = table.get(&id).and_then(Weak::upgrade) {
            return inode;
        }
        if table.len() >= 1024 && table.len().is_power_of_two() {
            table.retain(|_, inode| inode.strong_count() > 0);
        }
        let inode = Arc::new(Inode::default());
        table.insert(id, Arc::downgrade(&inode));
        inode
    }
}

impl Inode {
    /// Copy from the file. None: read it the ordinary way.
    pub fn read(&self, offset: u64, to: *mut u8, length: u64) -> Option<Result<u64>> {
        self.copy(offset, to, length, false)
    }

    /// Copy to the file, and with `stamp` set its modification time. None: write it the ordinary way, and
    /// tell with [`Inode::wrote`].
    pub fn write(
        &self,
        fd: RawFd,
        offset: u64,
        from: *mut u8,
        length: u64,
        stamp: bool,
    ) -> Option<Result<u64>> {
        let copied = self.copy(offset, from, length, true);
        if stamp && matches!(copied, Some(Ok(_))) {
            touch(fd);
        }
        copied
    }

    fn copy(&self, offset: u64, memory: *mut u8, length: u64, write: bool) -> Option<Result<u64>> {
        let end = offset.checked_add(length)?;
        if length < WORTH || self.hopeless.load(Ordering::Relaxed) || end > LARGEST {
            return None;
        }
        let mapped = self.mapping.read().expect("not poisoned");
        let mapping = mapped.as_ref().filter(|mapping| end <= mapping.length)?;
        for block in offset / BLOCK..end.div_ceil(BLOCK) {
            match mapping.blocks[block as usize].load(Ordering::Acquire) {
                READY => {}
                DENSE => mapping.populate(block)?,
                _ => return None,
            }
        }
        // SAFETY: inside the mapping, which the lock keeps; `memory` holds `length` bytes.
        let copied = unsafe {
            let page = mapping.base.add(offset as usize);
            let (from, to) = if write { (memory, page) } else { (page, memory) };
            fault::guarded(|| copy(from, to, length as usize))
        };
        if !copied {
            self.hopeless.store(true, Ordering::Relaxed);
            drop(mapped);
            self.forget();
            return Some(Err(Errno(libc::EIO)));
        }
        Some(Ok(length))
    }

    /// Note that an ordinary write put data there: whole blocks of it are allocated from now on.
    pub fn wrote(&self, fd: RawFd, offset: u64, length: u64) {
        self.learn(fd, offset, length, true);
    }

    /// Learn at an ordinary read whether the file is dense, so that later reads can be copies.
    pub fn was_read(&self, fd: RawFd, offset: u64, length: u64) {
        self.learn(fd, offset, length, false);
    }

    fn learn(&self, fd: RawFd, offset: u64, length: u64, written: bool) {
        if length < WORTH || self.hopeless.load(Ordering::Relaxed) {
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
        match Mapping::grown(mapped.take(), fd, end) {
            Ok(mapping) => {
                mapping.dense(start, end);
                *mapped = Some(mapping);
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

    pub fn forget(&self) {
        self.reshape(|| ());
    }

    /// Serialise what must find the end of the file and write there.
    pub fn appending(&self) -> std::sync::MutexGuard<'_, ()> {
        self.appending.lock().expect("no panics under this lock")
    }
}

impl Mapping {
    /// A mapping of the whole blocks of the file as large as it is now; what `old` knew stays known.
    fn grown(old: Option<Self>, fd: RawFd, wanted: u64) -> Result<Self> {
        let mut mapping = match old {
            Some(mapping) => mapping,
            None => {
                let path = proc_path(fd);
                // As the server, not as the client: its rights were checked when it opened the file.
                // SAFETY: a C string.
                let file = check(unsafe { libc::open(path.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) })?;
                // SAFETY: just opened.
                let file = unsafe { OwnedFd::from_raw_fd(file) };
                Self {
                    file,
                    base: std::ptr::null_mut(),
                    length: 0,
                    blocks: Vec::new(),
                }
            }
        };
        // SAFETY: stat is plain data.
        let mut stat: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: valid descriptor and buffer.
        check(unsafe { libc::fstat(mapping.file.as_raw_fd(), &mut stat) })?;
        if stat.st_mode & (libc::S_ISUID | libc::S_ISGID) != 0 {
            return Err(Errno(libc::EPERM)); // a write has to clear these bits: left to pwrite
        }
        let size = stat.st_size as u64;
        let length = size.min(LARGEST) / BLOCK * BLOCK;
        if length <= mapping.length || wanted > LARGEST {
            return Ok(mapping);
        }
        // SAFETY: either a fresh mapping or the growing of our own; checked below.
        let base = unsafe {
            if mapping.length == 0 {
                let protection = libc::PROT_READ | libc::PROT_WRITE;
                let fd = mapping.file.as_raw_fd();
                libc::mmap(
                    std::ptr::null_mut(),
                    length as usize,
                    protection,
                    libc::MAP_SHARED,
                    fd,
                    0,
                )
            } else {
                libc::mremap(
                    mapping.base.cast(),
                    mapping.length as usize,
                    length as usize,
                    libc::MREMAP_MAYMOVE,
                )
            }
        };
        if base == libc::MAP_FAILED {
            return Err(Errno::last());
        }
        mapping.base = base.cast();
        mapping.length = length;
        mapping
            .blocks
            .resize_with((length / BLOCK) as usize, || AtomicU8::new(UNKNOWN));
        Ok(mapping)
    }

    /// Mark the blocks that lie wholly in [start, end).
    fn dense(&self, start: u64, end: u64) {
        for block in start.div_ceil(BLOCK)..end / BLOCK {
            if let Some(state) = self.blocks.get(block as usize) {
                let _ = state.compare_exchange(UNKNOWN, DENSE, Ordering::AcqRel, Ordering::Relaxed);
            }
        }
    }

    /// Bring a block into the page tables; None where the kernel cannot.
    fn populate(&self, block: u64) -> Option<()> {
        // SAFETY: inside the mapping.
        let result = unsafe {
            libc::madvise(
                self.base.add((block * BLOCK) as usize).cast(),
                BLOCK as usize,
                libc::MADV_POPULATE_WRITE,
            )
        };
        let state = &self.blocks[block as usize];
        state.store(if result == 0 { READY } else { UNKNOWN }, Ordering::Release);
        (result == 0).then_some(())
    }
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
    unsafe {
        libc::futimens(fd, times.as_ptr());
    }
}
