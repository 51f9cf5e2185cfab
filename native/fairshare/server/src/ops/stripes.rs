//! Striped files: what their home server does for a client, and what the servers of the stripes do.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::sync::{Arc, RwLockWriteGuard};

use wire::{rights, Layout, GRANT_BYTES, MOST_SERVERS};

use crate::call::Call;
use crate::errno::{check, Errno, Result};
use crate::handles::{Handle, Opened};
use crate::mapping::FileId;
use crate::ops::attributes::attributes_of;
use crate::outcome::Outcome;
use crate::tree::stat_of;
use crate::tree::{Route, Spot};

/// The servers that a file which this request makes is striped over; None for an ordinary one.
pub fn wanted(call: &Call<'_>) -> Result<Option<Vec<u64>>> {
    let (stripes, request) = (&call.server.stripes, call.request);
    let size = request.size as usize;
    let creates = request.flags as i32 & libc::O_CREAT != 0;
    if stripes.size == 0 || call.session.inside || !creates || size < 16 {
        return Ok(None);
    }
    if size % 8 != 0 || size > 8 * MOST_SERVERS {
        return Err(Errno(libc::EINVAL));
    }
    let bytes = call.area.copy(request.paths_len(), size)?;
    let servers = bytes
        .chunks_exact(8)
        .map(|word| u64::from_le_bytes(word.try_into().expect("eight")));
    Ok(Some(servers.collect()))
}

/// Open `path`, and where that makes it note its layout before anybody else opens it.
pub fn make_or_open(call: &Call<'_>, path: &Route, flags: i32, servers: &[u64]) -> Result<OwnedFd> {
    let (tree, stripes) = (&call.server.tree, &call.server.stripes);
    let _birth = stripes.births.write().expect("no panics under this lock");
    // A link without a file is there and is not: then the kernel decides, and the file is an ordinary one.
    for _ in 0..3 {
        match tree.resolve(path, flags | libc::O_EXCL, call.request.mode) {
            Ok(file) => {
                let ino = stat_of(file.as_raw_fd())?.st_ino;
                let founded = stripes.found(file.as_raw_fd(), ino, call.server.id, servers.to_vec());
                if let Err(problem) = founded {
                    if let Ok(spot) = tree.spot(path) {
                        // SAFETY: a C string and an open descriptor.
                        unsafe { libc::unlinkat(spot.parent.as_raw_fd(), spot.name.as_ptr(), 0) };
                    }
                    return Err(problem);
                }
                return Ok(file);
            }
            Err(Errno(libc::EEXIST)) if flags & libc::O_EXCL == 0 => {}
            Err(other) => return Err(other),
        }
        match tree.resolve(path, flags & !libc::O_CREAT, 0) {
            Err(Errno(libc::ENOENT)) => {}
            other => return other,
        }
    }
    tree.resolve(path, flags, call.request.mode)
}

/// Attributes and, where the file is striped, what its objects are opened with.
pub fn describe(call: &Call<'_>, stat: &libc::stat, fd: i32, flags: i32, layout: Option<&Layout>) -> Vec<u8> {
    let mut data = attributes_of(stat, fd).to_bytes().to_vec();
    if let Some(layout) = layout.filter(|_| flags & libc::O_PATH == 0) {
        let access = match flags & libc::O_ACCMODE {
            libc::O_RDONLY => rights::READ,
            libc::O_WRONLY => rights::WRITE,
            _ => rights::READ | rights::WRITE,
        };
        let new = if stat.st_size == 0 { rights::CREATE } else { 0 };
        let owner = (stat.st_uid, stat.st_gid);
        let stripes = &call.server.stripes;
        data.extend_from_slice(&stripes.grant(layout, &call.session.creds, access | new, owner));
    }
    data
}

fn shown(call: &Call<'_>) -> Result<wire::Grant> {
    let bytes = call.area.copy(call.request.paths_len(), GRANT_BYTES)?;
    call.server.stripes.check(&bytes, &call.session.creds)
}

/// Open this server's object of a file. The handle lives as long as the session.
pub fn open_object(call: &Call<'_>) -> Result<Outcome> {
    let grant = shown(call)?;
    if !grant.layout.servers.contains(&call.server.id) || call.session.inside {
        return Err(Errno(libc::EACCES));
    }
    let held = call.take_descriptors(1)?;
    let file = call.server.stripes.object(&grant)?;
    let stat = stat_of(file.as_raw_fd())?;
    let id_of_file = (stat.st_dev, stat.st_ino);
    let opened = Opened {
        file,
        flags: match grant.rights & (rights::READ | rights::WRITE) {
            rights::READ => libc::O_RDONLY,
            rights::WRITE => libc::O_WRONLY,
            _ => libc::O_RDWR,
        },
        uid: call.session.creds.uid,
        directory: false,
        id_of_file,
        inode: call.server.inodes.get(id_of_file),
        entry: Arc::clone(&call.session.entry),
        object: true,
        held,
    };
    call.session.objects.store(true, Ordering::SeqCst);
    let handle = call.server.handles.add_remote(opened, call.session.id)?;
    Ok(Outcome {
        value: handle.id,
        ..Outcome::default()
    })
}

pub fn remove_object(call: &Call<'_>) -> Result<Outcome> {
    let grant = shown(call)?;
    if grant.rights & rights::REMOVE == 0 {
        return Err(Errno(libc::EACCES));
    }
    call.server.stripes.remove(&grant.layout)?;
    Ok(Outcome::default())
}

/// All objects of a file without names are gone. Tells of another one, whose remover did not get so far.
pub fn gone(call: &Call<'_>) -> Result<Outcome> {
    let grant = shown(call)?;
    let (stripes, creds) = (&call.server.stripes, &call.session.creds);
    if grant.rights & rights::REMOVE == 0 || grant.layout.home != call.server.id {
        return Err(Errno(libc::EACCES));
    }
    stripes.forget(&grant.layout)?;
    let Some(other) = stripes.left_over()? else {
        return Ok(Outcome::default());
    };
    call.give(&stripes.grant(&other, creds, rights::REMOVE, (0, 0)))
}

/// The only name of a striped file.
pub struct LastName<'a> {
    pub layout: Layout,
    pub file: FileId,
    /// Held until the name is gone, so that no other name comes meanwhile.
    _guard: RwLockWriteGuard<'a, ()>,
}

/// What a name that is about to go is the last name of, if of a striped file.
pub fn last_name<'a>(call: &Call<'a>, spot: &Spot) -> Result<Option<LastName<'a>>> {
    let stripes = &call.server.stripes;
    if !stripes.active {
        return Ok(None);
    }
    let guard = stripes.births.write().expect("no panics under this lock");
    let flags = libc::O_PATH | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    // SAFETY: a C string and open descriptors.
    let file = unsafe {
        use std::os::fd::FromRawFd;
        let fd = libc::openat(spot.parent.as_raw_fd(), spot.name.as_ptr(), flags);
        if fd < 0 {
            return Ok(None); // whoever removes it will hear why
        }
        OwnedFd::from_raw_fd(fd)
    };
    let stat = stat_of(file.as_raw_fd())?;
    if stat.st_mode & libc::S_IFMT != libc::S_IFREG || stat.st_nlink != 1 {
        return Ok(None);
    }
    let layout = stripes.layout(file.as_raw_fd(), stat.st_ino)?;
    let Some(layout) = layout else { return Ok(None) };
    if call.session.inside {
        return Err(Errno(libc::EOPNOTSUPP)); // the mount does not reach other servers
    }
    Ok(Some(LastName {
        layout,
        file: (stat.st_dev, stat.st_ino),
        _guard: guard,
    }))
}

/// The name is gone: a grant for the client, to remove the objects.
pub fn bury(call: &Call<'_>, layout: &Layout) -> Result<Outcome> {
    let (stripes, creds) = (&call.server.stripes, &call.session.creds);
    stripes.bury(layout)?;
    Ok(Outcome {
        value: 1,
        ..call.tell(&stripes.grant(layout, creds, rights::REMOVE, (0, 0)))?
    })
}

fn striped(handle: &Handle) -> Result<()> {
    handle.inode.layout.get().map(|_| ()).ok_or(Errno(libc::EINVAL))
}

/// A write (or a read at the shared position) is about to begin: where, and the file is long enough for it.
pub fn begin(call: &Call<'_>) -> Result<Outcome> {
    let handle = call.handle()?;
    striped(&handle)?;
    let (request, fd) = (call.request, handle.fd());
    let size = i64::try_from(request.size).map_err(|_| Errno(libc::EINVAL))?;
    if request.flags & wire::flags::READING != 0 {
        if !handle.readable() {
            return Err(Errno(libc::EBADF));
        }
        let mut position = handle.position.lock().expect("no panics under this lock");
        let start = *position;
        let count = size.min((stat_of(fd)?.st_size - start).max(0));
        *position += count;
        return Ok(Outcome {
            value: start as u64,
            ..Outcome::of(count)
        });
    }
    if !handle.writable() {
        return Err(Errno(libc::EBADF));
    }
    let mut position = handle.position.lock().expect("no panics under this lock");
    let _end = handle.inode.appending();
    let stat = stat_of(fd)?;
    let append = handle.flags() & libc::O_APPEND != 0;
    let start = match request.offset {
        _ if append => stat.st_size,
        -1 => *position,
        offset if offset >= 0 => offset,
        _ => return Err(Errno(libc::EINVAL)),
    };
    let end = start.checked_add(size).ok_or(Errno(libc::EFBIG))?;
    call.server.leases.write(handle.id_of_file, call.session.id)?;
    let privileged = stat.st_mode & (libc::S_ISUID | libc::S_ISGID) != 0;
    if end > stat.st_size || privileged {
        // SAFETY: a plain call.
        let grown = check(unsafe { libc::ftruncate(fd, end.max(stat.st_size)) });
        if let Err(problem) = grown {
            call.server.leases.written(handle.id_of_file, call.session.id);
            return Err(problem);
        }
    } else {
        crate::mapping::touch(fd);
    }
    if append || request.offset == -1 {
        *position = end;
    }
    Ok(Outcome {
        value: start as u64,
        ..Outcome::of(size)
    })
}

pub fn end(call: &Call<'_>) -> Result<Outcome> {
    let handle = call.handle()?;
    let (file, session) = (handle.id_of_file, call.session.id);
    if call.request.flags & wire::flags::SET != 0 {
        call.server.leases.has_cut(file, session)?;
    } else {
        call.server.leases.written(file, session);
    }
    Ok(Outcome::default())
}

/// A new length. Growing is done at once; to become shorter, the client first cuts the objects.
pub fn truncate(call: &Call<'_>, handle: &Handle, size: i64) -> Result<Outcome> {
    let (file, session) = (handle.id_of_file, call.session.id);
    let _end = handle.inode.appending();
    let have = stat_of(handle.fd())?.st_size;
    let cut = call.request.flags & wire::flags::SET != 0;
    if cut {
        call.server.leases.has_cut(file, session)?;
    } else if size < have {
        call.server.leases.cut(file, session)?;
        return Ok(Outcome::of(1));
    }
    // SAFETY: a plain call.
    check(unsafe { libc::ftruncate(handle.fd(), size) })?;
    Ok(Outcome::default())
}

/// lseek's SEEK_DATA and SEEK_HOLE: the file counts as one piece of data, as a file system without holes
/// has it; what the home server keeps is all hole.
pub fn seek_data(size: i64, offset: i64, whence: i32) -> Result<i64> {
    if offset < 0 || offset >= size {
        return Err(Errno(libc::ENXIO));
    }
    Ok(if whence == libc::SEEK_DATA { offset } else { size })
}
