//! The operations, one file for each group. Each gets a request that was checked for form alone, and
//! works with the rights of the client that sent it.

mod attributes;
mod data;
mod directory;
mod locks;
mod names;
mod open;
mod stripes;
mod xattr;

use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use wire::{Op, Reply, Request, ROOT};

use crate::area::Area;
use crate::budget::Held;
use crate::connection::Passed;
use crate::control;
use crate::creds;
use crate::errno::{check, Errno, Result};
use crate::handles::Handle;
use crate::server::Server;
use crate::session::Session;
use crate::status;
use crate::tree::{proc_path, Route};

pub use attributes::stat_of;

/// What an operation came to. `data` bytes of the area are the reply's data.
#[derive(Default)]
pub struct Outcome {
    pub result: i64,
    pub value: u64,
    pub data: usize,
    /// For the client: its end of a new handle.
    pub descriptor: Option<Passed>,
    /// For the server: the end to watch, and the handle that goes with it.
    pub watch: Option<(RawFd, u64)>,
}

impl Outcome {
    pub fn of(result: i64) -> Self {
        Self {
            result,
            ..Self::default()
        }
    }

    pub fn with_data(data: usize) -> Self {
        Self {
            result: data as i64,
            data,
            ..Self::default()
        }
    }

    pub fn reply(&self) -> Reply {
        Reply {
            result: self.result,
            value: self.value,
            data_len: self.data as u32,
        }
    }
}

/// One request at work.
pub struct Call<'a> {
    pub server: &'a Server,
    pub session: &'a Session,
    pub request: &'a Request,
    pub area: &'a Area,
}

/// Carry out a request. An error becomes the negative result of the reply.
pub fn carry_out(call: &Call<'_>) -> Outcome {
    let outcome = creds::assume(&call.session.creds).and_then(|()| match call.request.op {
        Op::Ping => Ok(Outcome::default()),
        Op::Status => status::status(call),
        Op::Ticket => status::ticket(call),
        Op::Reload => control::reload(call),
        Op::SendAway => control::send_away(call),
        Op::Open => open::open(call),
        Op::Close => open::close(call),
        Op::Describe => open::describe(call),
        Op::SetFlags => open::set_flags(call),
        Op::Read => data::read(call),
        Op::Write => data::write(call),
        Op::Seek => data::seek(call),
        Op::Truncate => data::truncate(call),
        Op::Allocate => data::allocate(call),
        Op::Fsync => data::fsync(call),
        Op::GetAttributes => attributes::get(call),
        Op::SetAttributes => attributes::set(call),
        Op::Access => attributes::access(call),
        Op::Statfs => attributes::statfs(call),
        Op::ReadDirectory => directory::read(call),
        Op::MakeDirectory => names::make_directory(call),
        Op::Unlink => names::unlink(call),
        Op::Rename => names::rename(call),
        Op::Link => names::link(call),
        Op::Symlink => names::symlink(call),
        Op::Readlink => names::readlink(call),
        Op::Resolve => names::resolve(call),
        Op::MakeNode => names::make_node(call),
        Op::GetXattr => xattr::get(call),
        Op::SetXattr => xattr::set(call),
        Op::ListXattr => xattr::list(call),
        Op::RemoveXattr => xattr::remove(call),
        Op::Lock => locks::record(call),
        Op::Flock => locks::whole_file(call),
        Op::StripeOpen => stripes::open_object(call),
        Op::StripeRemove => stripes::remove_object(call),
        Op::StripeBegin => stripes::begin(call),
        Op::StripeEnd => stripes::end(call),
        Op::StripeGone => stripes::gone(call),
    });
    outcome.unwrap_or_else(|Errno(errno)| Outcome::of(-i64::from(errno)))
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
        use Op::{Allocate, Close, Describe, Fsync, Read, Truncate, Write};
        let handle = self.server.handles.get(self.request.handle, self.session)?;
        let op = self.request.op;
        if handle.object && !matches!(op, Read | Write | Truncate | Fsync | Close | Describe) {
            return Err(Errno(libc::EPERM));
        }
        // The data of a striped file are in its objects; who asks here does not know of them.
        if handle.inode.layout.get().is_some() && matches!(op, Read | Write | Allocate) {
            return Err(Errno(libc::EOPNOTSUPP));
        }
        Ok(handle)
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

    /// The second one as it came: a name or a link's text.
    pub fn second(&self) -> Result<Vec<u8>> {
        Ok(self.area.paths(self.request)?.1)
    }

    fn from(&self, directory: u64, path: Vec<u8>) -> Result<Route> {
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
