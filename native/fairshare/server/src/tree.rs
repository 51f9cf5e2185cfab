//! The served tree: a folder of the backing file system, with files, folders and links as they are.
//!
//! Names, attributes and data are the backing file system's own, so what fsync acknowledged is as
//! durable as there, and a killed server leaves nothing to repair. Every path is resolved by the
//! kernel inside the tree (openat2 with RESOLVE_IN_ROOT): no link and no `..` leads out of it. A path from an
//! open folder goes from that very folder, wherever it was moved and whatever has its name now.

use std::ffi::{CString, OsStr};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::errno::{check, Errno, Result};

/// For how long a path with `..` in it is tried again that others' renames raced with, and how often at least. Who
/// renames without end would otherwise keep a worker for ever, by a long path of his own.
const TRIES: Duration = Duration::from_micros(200);
const LEAST_TRIES: u32 = 4;

pub struct Tree {
    root: OwnedFd,
    /// Where the kernel says the root is: what /proc/self/fd shows in front of every path.
    place: Vec<u8>,
}

/// A path, and the open folder from which it goes; None: the root.
pub struct Route {
    pub from: Option<Arc<dyn AsFd + Send + Sync>>,
    pub path: Vec<u8>,
}

impl Route {
    /// The same folder, another path.
    fn with(&self, path: &[u8]) -> Self {
        Self {
            from: self.from.clone(),
            path: path.to_vec(),
        }
    }
}

/// The folder that holds a name, and the name.
pub struct Spot {
    pub parent: OwnedFd,
    pub name: CString,
}

impl Tree {
    pub fn open(path: &Path) -> Result<Self> {
        let path = c_string(path.as_os_str().as_bytes())?;
        // SAFETY: `path` is a C string.
        let fd =
            check(unsafe { libc::open(path.as_ptr(), libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC) })?;
        // SAFETY: just opened, owned by nobody else.
        let root = unsafe { OwnedFd::from_raw_fd(fd) };
        let place = place_of(root.as_raw_fd())?;
        Ok(Self { root, place })
    }

    pub fn root(&self) -> RawFd {
        self.root.as_raw_fd()
    }

    /// Open what a route leads to (from the root, whether or not its path begins with a slash).
    pub fn resolve(&self, route: &Route, flags: i32, mode: u32) -> Result<OwnedFd> {
        let path = route.path.as_slice();
        let Some(folder) = &route.from else {
            return open_at(self.root.as_raw_fd(), path, flags, mode, libc::RESOLVE_IN_ROOT);
        };
        let fd = folder.as_fd().as_raw_fd();
        match open_at(fd, path, flags, mode, libc::RESOLVE_BENEATH) {
            // Up and out of the folder, or by a link to an absolute path: from the root, by the folder's path now.
            Err(Errno(libc::EXDEV)) => {
                let mut whole = self.path_of(fd)?;
                whole.push(b'/');
                whole.extend_from_slice(path);
                open_at(self.root.as_raw_fd(), &whole, flags, mode, libc::RESOLVE_IN_ROOT)
            }
            other => other,
        }
    }

    /// A descriptor that names the file without opening it.
    pub fn locate(&self, route: &Route, follow: bool) -> Result<OwnedFd> {
        let nofollow = if follow { 0 } else { libc::O_NOFOLLOW };
        self.resolve(route, libc::O_PATH | nofollow, 0)
    }

    /// The folder of the path's last component, and that component (with its trailing slash, if any:
    /// the kernel knows what that means for each call). EBUSY for the root itself.
    pub fn spot(&self, route: &Route) -> Result<Spot> {
        let path = route.path.as_slice();
        let end = path.iter().rposition(|&b| b != b'/').map_or(0, |at| at + 1);
        let start = path[..end]
            .iter()
            .rposition(|&b| b == b'/')
            .map_or(0, |at| at + 1);
        if start == end {
            return Err(Errno(libc::EBUSY));
        }
        let mut name = path[start..end].to_vec();
        if name.len() > 255 {
            return Err(Errno(libc::ENAMETOOLONG));
        }
        if end < path.len() {
            name.push(b'/');
        }
        let parent = self.resolve(&route.with(&path[..start]), libc::O_PATH | libc::O_DIRECTORY, 0)?;
        Ok(Spot {
            parent,
            name: c_string(&name)?,
        })
    }

    /// The path of an open descriptor now, from the root of the tree, beginning with a slash.
    pub fn path_of(&self, fd: RawFd) -> Result<Vec<u8>> {
        let place = place_of(fd)?;
        let rest = place
            .strip_prefix(self.place.as_slice())
            .ok_or(Errno(libc::ENOENT))?;
        // A removed folder has no path any more.
        // SAFETY: stat is plain data, and the descriptor is open.
        let mut stat: libc::stat = unsafe { std::mem::zeroed() };
        check(unsafe { libc::fstat(fd, &mut stat) })?;
        if stat.st_nlink == 0 {
            return Err(Errno(libc::ENOENT));
        }
        match rest.first() {
            None => Ok(b"/".to_vec()),
            Some(b'/') => Ok(rest.to_vec()),
            Some(_) if self.place == b"/" => Ok(place),
            Some(_) => Err(Errno(libc::ENOENT)),
        }
    }
}

/// openat2, from a folder and no further than `how_far` lets it.
fn open_at(folder: RawFd, path: &[u8], flags: i32, mode: u32, how_far: u64) -> Result<OwnedFd> {
    let path = c_string(if path.is_empty() { b"." } else { path })?;
    // SAFETY: open_how is plain data; zero is valid for all its fields.
    let mut how: libc::open_how = unsafe { std::mem::zeroed() };
    how.flags = (flags | libc::O_CLOEXEC) as u32 as u64;
    how.mode = if flags & libc::O_CREAT != 0 {
        u64::from(mode & 0o7777)
    } else {
        0
    };
    how.resolve = how_far | libc::RESOLVE_NO_MAGICLINKS;
    let (began, mut tries) = (Instant::now(), 0);
    loop {
        // SAFETY: all pointers are valid for the call, the size is the structure's.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_openat2,
                folder,
                path.as_ptr(),
                &raw const how,
                std::mem::size_of::<libc::open_how>(),
            )
        };
        if fd >= 0 {
            // SAFETY: just opened.
            return Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) });
        }
        tries += 1;
        match Errno::last() {
            Errno(libc::EINTR) => {}
            // A rename, of whatever on this machine, raced with `..`: the kernel asks to try again.
            Errno(libc::EAGAIN) if tries < LEAST_TRIES || began.elapsed() < TRIES => {}
            other => return Err(other),
        }
    }
}

/// "/proc/self/fd/N": reaches exactly the file that a descriptor names, also one opened with O_PATH.
pub fn proc_path(fd: RawFd) -> CString {
    CString::new(format!("/proc/self/fd/{fd}")).expect("digits")
}

pub fn c_string(bytes: &[u8]) -> Result<CString> {
    CString::new(bytes).map_err(|_| Errno(libc::EINVAL))
}

fn place_of(fd: RawFd) -> Result<Vec<u8>> {
    let link = std::fs::read_link(OsStr::from_bytes(proc_path(fd).as_bytes()))?;
    Ok(link.into_os_string().into_vec())
}

pub fn stat_of(fd: RawFd) -> Result<libc::stat> {
    // SAFETY: stat is plain data; descriptor and buffer are valid.
    unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        check(libc::fstat(fd, &mut stat))?;
        Ok(stat)
    }
}

/// Bytes that a file has on the store.
pub fn allocated(stat: &libc::stat) -> u64 {
    stat.st_blocks as u64 * 512
}

/// Bytes to allocate or to free that take long: some milliseconds, and as many times more as there are more.
pub const LONG: u64 = 32 << 20;
