//! The served tree: a folder of the backing file system, with files, folders and links as they are.
//!
//! Names, attributes and data are the backing file system's own, so what fsync acknowledged is as
//! durable as there, and a killed server leaves nothing to repair. Every path is resolved by the
//! kernel inside the tree (openat2 with RESOLVE_IN_ROOT): no link and no `..` leads out of it.

use std::ffi::{CString, OsStr};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use crate::errno::{check, Errno, Result};

pub struct Tree {
    root: OwnedFd,
    /// Where the kernel says the root is: what /proc/self/fd shows in front of every path.
    place: Vec<u8>,
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

    /// Open `path` (from the root, whether or not it begins with a slash) with openat2.
    pub fn resolve(&self, path: &[u8], flags: i32, mode: u32) -> Result<OwnedFd> {
        let path = c_string(if path.is_empty() { b"." } else { path })?;
        // SAFETY: open_how is plain data; zero is valid for all its fields.
        let mut how: libc::open_how = unsafe { std::mem::zeroed() };
        how.flags = (flags | libc::O_CLOEXEC) as u32 as u64;
        how.mode = if flags & libc::O_CREAT != 0 {
            u64::from(mode & 0o7777)
        } else {
            0
        };
        how.resolve = libc::RESOLVE_IN_ROOT | libc::RESOLVE_NO_MAGICLINKS;
        loop {
            // SAFETY: all pointers are valid for the call, the size is the structure's.
            let fd = unsafe {
                libc::syscall(
                    libc::SYS_openat2,
                    self.root.as_raw_fd(),
                    path.as_ptr(),
                    &raw const how,
                    std::mem::size_of::<libc::open_how>(),
                )
            };
            if fd >= 0 {
                // SAFETY: just opened.
                return Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) });
            }
            match Errno::last() {
                // EAGAIN: a rename raced with `..`; the kernel asks to try again.
                Errno(libc::EINTR | libc::EAGAIN) => {}
                other => return Err(other),
            }
        }
    }

    /// A descriptor that names the file without opening it.
    pub fn locate(&self, path: &[u8], follow: bool) -> Result<OwnedFd> {
        let nofollow = if follow { 0 } else { libc::O_NOFOLLOW };
        self.resolve(path, libc::O_PATH | nofollow, 0)
    }

    /// The folder of `path`'s last component, and that component (with its trailing slash, if any:
    /// the kernel knows what that means for each call). EBUSY for the root itself.
    pub fn spot(&self, path: &[u8]) -> Result<Spot> {
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
        let parent = self.resolve(&path[..start], libc::O_PATH | libc::O_DIRECTORY, 0)?;
        Ok(Spot {
            parent,
            name: c_string(&name)?,
        })
    }

    /// What a spot's name says now, without following a link.
    pub fn locate_in(&self, spot: &Spot) -> Result<OwnedFd> {
        let flags = libc::O_PATH | libc::O_NOFOLLOW | libc::O_CLOEXEC;
        // SAFETY: a C string and an open descriptor; the new one is ours.
        unsafe {
            let fd = check(libc::openat(spot.parent.as_raw_fd(), spot.name.as_ptr(), flags))?;
            Ok(OwnedFd::from_raw_fd(fd))
        }
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
