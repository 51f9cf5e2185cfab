//! One request at work: what the operations stand on.

use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use wire::{Op, Request, ROOT};

use crate::area::Area;
use crate::budget::Held;
use crate::errno::{check, Errno, Result, APART};
use crate::handles::Handle;

use crate::outcome::Outcome;
use crate::server::Server;
use crate::session::Session;
use crate::tree::{proc_path, Route, LONG};

/// One request at work.
pub struct Call<'a> {
    pub server: &'a Server,
    pub session: &'a Session,
    pub request: &'a Request,
    pub area: &'a Area,
    /// Whether it is carried out apart from the workers, and may take long.
    pub alone: bool,
}

impl Call<'_> {
    /// Count descriptors to the client's user. EMFILE where too few would be left for others.
    pub fn take_descriptors(&self, count: u64) -> Result<Held> {
        let budget = &self.server.budgets.descriptors;
        budget
            .take(self.session.creds.uid, count)
            .ok_or(Errno(libc::EMFILE))
    }

    /// The open file that the request names.
    pub fn handle(&self) -> Result<Arc<Handle>> {
        use Op::{Allocate, Fsync, Read, Truncate, Write};
        let handle = self.server.handles.get(self.request.handle, self.session)?;
        let op = self.request.op;
        // Behind what takes long there: it would wait for the file, and keep a worker.
        if matches!(op, Read | Write | Truncate | Allocate | Fsync)
            && !self.alone
            && handle.inode.is_worked_on()
        {
            return Err(Errno(APART));
        }
        Ok(handle)
    }

    /// To be said before so many bytes are allocated or freed: where that takes long it is done apart.
    pub fn will_move(&self, bytes: u64) -> Result<()> {
        if bytes > LONG && !self.alone {
            return Err(Errno(APART));
        }
        Ok(())
    }

    /// The request's path, and from where it goes.
    pub fn path(&self) -> Result<Route> {
        let (path, _) = self.area.paths(self.request)?;
        self.from(self.request.handle, path)
    }

    /// Both of them.
    pub fn both_paths(&self) -> Result<(Route, Route)> {
        let (first, second) = self.area.paths(self.request)?;
        Ok((
            self.from(self.request.handle, first)?,
            self.from(self.request.handle2, second)?,
        ))
    }

    /// An answer with data.
    pub fn tell(&self, bytes: &[u8]) -> Result<Outcome> {
        let data = self.area.fill(bytes)?;
        Ok(Outcome {
            data,
            ..Outcome::default()
        })
    }

    /// The same, whose result is how many bytes these are.
    pub fn give(&self, bytes: &[u8]) -> Result<Outcome> {
        self.area.fill(bytes).map(Outcome::with_data)
    }

    /// The second one as it came: a name or a link's text.
    pub fn second(&self) -> Result<Vec<u8>> {
        Ok(self.area.paths(self.request)?.1)
    }

    pub fn from(&self, directory: u64, path: Vec<u8>) -> Result<Route> {
        if path.is_empty() {
            return Err(Errno(libc::ENOENT));
        }
        if directory == ROOT || path[0] == b'/' {
            return Ok(Route { from: None, path });
        }
        let handle = self.server.handles.get(directory, self.session)?;
        if !handle.directory {
            return Err(Errno(libc::ENOTDIR));
        }
        Ok(Route {
            from: Some(handle),
            path,
        })
    }

    /// A handle's file, opened again by the rights of the client: how a file that was found without being
    /// opened (O_PATH) is.
    pub fn reopen(&self, flags: i32) -> Result<OwnedFd> {
        let handle = self.handle()?;
        let path = proc_path(handle.fd());
        // SAFETY: a C string; the descriptor is new.
        unsafe {
            let fd = check(libc::open(
                path.as_ptr(),
                flags | libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC,
            ))?;
            Ok(OwnedFd::from_raw_fd(fd))
        }
    }

    /// The file that a request names by an open handle (no path) or by a path, to look at or change
    /// its attributes.
    pub fn target(&self) -> Result<Target> {
        if self.request.path_len == 0 {
            return Ok(Target::Open(self.handle()?));
        }
        let follow = self.request.flags & wire::flags::NO_FOLLOW == 0;
        Ok(Target::Named(self.server.tree.locate(&self.path()?, follow)?))
    }
}

pub enum Target {
    Open(Arc<Handle>),
    Named(OwnedFd),
}

impl Target {
    pub fn fd(&self) -> RawFd {
        use std::os::fd::AsRawFd;
        match self {
            Target::Open(handle) => handle.fd(),
            Target::Named(fd) => fd.as_raw_fd(),
        }
    }
}
