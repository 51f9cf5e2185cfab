//! The kernel's questions, as requests. Answers are given by the workers that carry them out.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime};

use fuser::consts::{FUSE_HANDLE_KILLPRIV, FUSE_PARALLEL_DIROPS, FUSE_WRITE_CACHE};
use fuser::{
    Filesystem, KernelConfig, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry,
    ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request as Asked, TimeOrNow,
};
use wire::{flags, mask, Attributes, Op};

use crate::creds;
use crate::fuse::attributes::{device_of, for_kernel, kind_of, numbered, stamp};
use crate::fuse::nodes::{Nodes, Place};
use crate::fuse::openers::Openers;
use crate::fuse::question::{rooted, xattr, Question};
use crate::inside::{Insiders, Process};
use crate::outcome::Outcome;
use crate::server::Server;
use crate::session::Session;

fn is_folder(attributes: &Attributes) -> bool {
    attributes.mode & libc::S_IFMT == libc::S_IFDIR
}

/// How long a lookup waits where files come faster than the kernel forgets others.
const BRAKE: Duration = Duration::from_millis(1);

/// Of Linux 5.11's interface; the crate knows that of 5.0.
const FUSE_HANDLE_KILLPRIV_V2: u32 = 1 << 28;

pub struct Mount {
    server: Arc<Server>,
    nodes: Arc<Nodes>,
    insiders: Insiders,
    openers: Arc<Openers>,
}

fn process(asked: &Asked<'_>) -> Process {
    (asked.uid(), asked.gid(), asked.pid())
}

/// Answer an error, or go on. For replies of all types, which have no trait in common.
macro_rules! or_error {
    ($outcome:expr, $reply:expr) => {
        if $outcome.result < 0 {
            return $reply.error(-$outcome.result as i32);
        }
    };
}

/// The handle of a node, or ESTALE.
macro_rules! node {
    ($self:expr, $ino:expr, $reply:expr) => {
        match $self.nodes.handle($ino) {
            Some(handle) => handle,
            None => return $reply.error(libc::ESTALE),
        }
    };
}

impl Mount {
    pub fn new(server: Arc<Server>, nodes: Arc<Nodes>) -> Self {
        Self {
            server,
            nodes,
            insiders: Insiders::default(),
            openers: Arc::default(),
        }
    }

    fn session(&self, asked: &Asked<'_>) -> Arc<Session> {
        self.insiders.session(&self.server, process(asked))
    }

    fn ask(
        &self,
        asked: &Asked<'_>,
        question: Question,
        then: impl FnOnce(&Outcome, &[u8]) + Send + 'static,
    ) {
        put(&self.server, self.session(asked), question, then);
    }

    /// Answer with what lies at a place, in the folder of handle `parent`.
    fn enter(&self, asked: &Asked<'_>, parent: u64, place: Place, reply: ReplyEntry) {
        let look = looking(parent, &place);
        let then = entered(&self.server, &self.nodes, place, reply);
        self.ask(asked, look, then);
    }

    /// Ask, and where that went well answer with what lies at the place now.
    fn make(&self, asked: &Asked<'_>, question: Question, parent: u64, place: Place, reply: ReplyEntry) {
        let (server, nodes, session) = (
            Arc::clone(&self.server),
            Arc::clone(&self.nodes),
            self.session(asked),
        );
        self.ask(asked, question, move |outcome, _| {
            or_error!(outcome, reply);
            let look = looking(parent, &place);
            let then = entered(&server, &nodes, place, reply);
            put(&server, session, look, then);
        });
    }

    fn plain(&self, asked: &Asked<'_>, question: Question, reply: ReplyEmpty) {
        self.ask(asked, question, move |outcome, _| {
            or_error!(outcome, reply);
            reply.ok();
        });
    }

    fn open_node(&self, asked: &Asked<'_>, ino: u64, flags: i32, reply: ReplyOpen) {
        let mut question = Question::new(Op::Open, node!(self, ino, reply));
        question.request.flags = (flags & !(libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW)) as u32;
        let (nodes, openers, by) = (Arc::clone(&self.nodes), Arc::clone(&self.openers), process(asked));
        self.ask(asked, question, move |outcome, _| {
            heed(&nodes, outcome);
            or_error!(outcome, reply);
            nodes.opened(ino);
            openers.opened(outcome.value, by);
            reply.opened(outcome.value, 0);
        });
    }

    fn close_node(&self, ino: u64, fh: u64) {
        self.nodes.closed(ino);
        self.openers.closed(fh);
        self.server.handles.remove(fh);
    }
}

/// Queue a question. The root has no handle: it is named by its path.
fn put(
    server: &Server,
    session: Arc<Session>,
    question: Question,
    then: impl FnOnce(&Outcome, &[u8]) + Send + 'static,
) {
    let Question { request, payload } = rooted(question);
    server.submit(session, request, payload, Box::new(then));
}

/// What is done with a file's attributes, which the kernel knows under number `ino`.
fn shown(nodes: &Nodes, ino: u64, reply: ReplyAttr) -> impl FnOnce(&Outcome, &[u8]) + Send + 'static {
    let keep = nodes.keep();
    move |outcome, data| {
        or_error!(outcome, reply);
        reply.attr(&keep, &numbered(&Attributes::parse(data), ino));
    }
}

/// The request for a node's own handle.
fn looking(parent: u64, place: &Place) -> Question {
    let mut look = Question::new(Op::Open, parent).path(&place.name);
    look.request.flags = (libc::O_PATH | libc::O_NOFOLLOW) as u32;
    look
}

/// What is done with its answer. To be called before the request is queued.
fn entered(
    server: &Arc<Server>,
    nodes: &Arc<Nodes>,
    place: Place,
    reply: ReplyEntry,
) -> impl FnOnce(&Outcome, &[u8]) + Send + 'static {
    let (server, nodes, before) = (Arc::clone(server), Arc::clone(nodes), nodes.before_lookup());
    move |outcome, data| {
        heed(&nodes, outcome);
        or_error!(outcome, reply);
        let attributes = Attributes::parse(data);
        if let Some(extra) = nodes.found(attributes.ino, outcome.value, place, is_folder(&attributes)) {
            server.handles.remove(extra);
        }
        reply.entry(
            &nodes.kept_since(before, attributes.ino),
            &for_kernel(&attributes),
            0,
        );
    }
}

/// Where there is no descriptor, the kernel remembers too many files.
fn heed(nodes: &Nodes, outcome: &Outcome) {
    if outcome.result == -i64::from(libc::EMFILE) {
        nodes.none_left();
    }
}

/// Bytes that the kernel may ask for at once: a request is served whole, so where a rate holds no more than what that
/// gives in some 4 ms. Whoever writes a little at a time would wait for as much of the others' before each of his.
fn one_turn(rate: u64) -> u32 {
    const LEAST: u64 = 128 << 10; // the library's pieces
    const MOST: u64 = 1 << 20;
    const PAGE: u64 = 4096;
    let bytes = if rate == 0 { MOST } else { rate / 256 };
    (bytes.clamp(LEAST, MOST) / PAGE * PAGE) as u32
}

impl Filesystem for Mount {
    fn init(&mut self, _: &Asked<'_>, config: &mut KernelConfig) -> Result<(), libc::c_int> {
        creds::lay_down(); // this thread carries out short requests itself
        let _ = config.set_max_write(one_turn(self.server.config.live.rate));
        // What is read ahead or written back, of all users, waits in one line of the kernel's own where there is more than
        // so much of it; and who looks for a name in a folder, for whoever looks for another one. Both are to wait in the
        // one queue instead, where the policy decides.
        let _ = config.set_max_background(u16::MAX);
        let _ = config.add_capabilities(FUSE_PARALLEL_DIROPS);
        // Whose write takes set-user-id bits away is decided where the file is written. Else the kernel would ask
        // for a change of mode in the name of the writer, who may not; and, without the second, before each write
        // whether there is anything to take away.
        let _ = config.add_capabilities(FUSE_HANDLE_KILLPRIV);
        let _ = config.add_capabilities(FUSE_HANDLE_KILLPRIV_V2);
        Ok(())
    }

    fn lookup(&mut self, asked: &Asked<'_>, parent: u64, name: &OsStr, reply: ReplyEntry) {
        if self.nodes.come_too_fast() {
            thread::sleep(BRAKE);
        }
        let place = Place::new(parent, name);
        self.enter(asked, node!(self, parent, reply), place, reply);
    }

    fn forget(&mut self, _: &Asked<'_>, ino: u64, count: u64) {
        if let Some(handle) = self.nodes.forget(ino, count) {
            self.server.handles.remove(handle);
        }
    }

    fn getattr(&mut self, asked: &Asked<'_>, ino: u64, fh: Option<u64>, reply: ReplyAttr) {
        let handle = match fh {
            Some(fh) => fh,
            None => node!(self, ino, reply),
        };
        self.ask(
            asked,
            Question::new(Op::GetAttributes, handle),
            shown(&self.nodes, ino, reply),
        );
    }

    fn setattr(
        &mut self,
        asked: &Asked<'_>,
        ino: u64,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _: Option<SystemTime>,
        fh: Option<u64>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<u32>,
        reply: ReplyAttr,
    ) {
        let handle = node!(self, ino, reply);
        let mut change = Question::new(Op::SetAttributes, handle);
        let request = &mut change.request;
        let mut set = |bit, value: Option<u32>| {
            request.mask |= if value.is_some() { bit } else { 0 };
            value.unwrap_or(0)
        };
        let (mode, uid, gid) = (set(mask::MODE, mode), set(mask::UID, uid), set(mask::GID, gid));
        (request.mode, request.uid, request.gid) = (mode, uid, gid);
        for (place, bit, time) in [(0, mask::ATIME, atime), (2, mask::MTIME, mtime)] {
            if let Some(time) = time {
                request.mask |= bit;
                (request.times[place], request.times[place + 1]) = stamp(time);
            }
        }
        let changes = request.mask != 0;
        // One after the other: the length, the rest, and what came of both.
        let (server, session) = (Arc::clone(&self.server), self.session(asked));
        let finish = {
            let (server, session) = (Arc::clone(&server), Arc::clone(&session));
            let (look, nodes) = (Question::new(Op::GetAttributes, handle), Arc::clone(&self.nodes));
            move |reply: ReplyAttr| put(&server, session, look, shown(&nodes, ino, reply))
        };
        let attributes = {
            let (server, session) = (Arc::clone(&server), Arc::clone(&session));
            move |reply: ReplyAttr| {
                if !changes {
                    return finish(reply);
                }
                put(&server, session, change, move |outcome, _| {
                    or_error!(outcome, reply);
                    finish(reply);
                });
            }
        };
        let Some(size) = size else {
            return attributes(reply);
        };
        let mut cut = Question::new(Op::Truncate, fh.unwrap_or(handle));
        cut.request.size = size;
        put(&server, session, cut, move |outcome, _| {
            or_error!(outcome, reply);
            attributes(reply);
        });
    }

    fn readlink(&mut self, asked: &Asked<'_>, ino: u64, reply: ReplyData) {
        let handle = node!(self, ino, reply);
        self.ask(
            asked,
            Question::new(Op::Readlink, handle),
            move |outcome, data| {
                or_error!(outcome, reply);
                reply.data(data);
            },
        );
    }

    fn mknod(
        &mut self,
        asked: &Asked<'_>,
        parent: u64,
        name: &OsStr,
        mode: u32,
        umask: u32,
        device: u32,
        reply: ReplyEntry,
    ) {
        let place = Place::new(parent, name);
        let parent = node!(self, parent, reply);
        let mut question = Question::new(Op::MakeNode, parent).path(name);
        question.request.mode = mode & !(umask & 0o7777);
        question.request.offset = device_of(device) as i64;
        self.make(asked, question, parent, place, reply);
    }

    fn mkdir(
        &mut self,
        asked: &Asked<'_>,
        parent: u64,
        name: &OsStr,
        mode: u32,
        umask: u32,
        reply: ReplyEntry,
    ) {
        let place = Place::new(parent, name);
        let parent = node!(self, parent, reply);
        let mut question = Question::new(Op::MakeDirectory, parent).path(name);
        question.request.mode = mode & !umask & 0o7777;
        self.make(asked, question, parent, place, reply);
    }

    fn unlink(&mut self, asked: &Asked<'_>, parent: u64, name: &OsStr, reply: ReplyEmpty) {
        let parent = node!(self, parent, reply);
        self.plain(asked, Question::new(Op::Unlink, parent).path(name), reply);
    }

    fn rmdir(&mut self, asked: &Asked<'_>, parent: u64, name: &OsStr, reply: ReplyEmpty) {
        let parent = node!(self, parent, reply);
        let mut question = Question::new(Op::Unlink, parent).path(name);
        question.request.flags = libc::AT_REMOVEDIR as u32;
        self.plain(asked, question, reply);
    }

    fn symlink(&mut self, asked: &Asked<'_>, parent: u64, name: &OsStr, text: &Path, reply: ReplyEntry) {
        let place = Place::new(parent, name);
        let parent = node!(self, parent, reply);
        let question = Question::new(Op::Symlink, parent)
            .path(name)
            .second(0, text.as_os_str().as_bytes());
        self.make(asked, question, parent, place, reply);
    }

    fn rename(
        &mut self,
        asked: &Asked<'_>,
        parent: u64,
        name: &OsStr,
        to: u64,
        to_name: &OsStr,
        flags: u32,
        reply: ReplyEmpty,
    ) {
        let (parent, to) = (node!(self, parent, reply), node!(self, to, reply));
        let mut question = Question::new(Op::Rename, parent)
            .path(name)
            .second(to, to_name.as_bytes());
        question.request.flags = flags;
        self.plain(asked, question, reply);
    }

    fn link(&mut self, asked: &Asked<'_>, ino: u64, parent: u64, name: &OsStr, reply: ReplyEntry) {
        let place = Place::new(parent, name);
        let (handle, parent) = (node!(self, ino, reply), node!(self, parent, reply));
        let question = Question::new(Op::Link, handle).second(parent, name.as_bytes());
        self.make(asked, question, parent, place, reply);
    }

    fn open(&mut self, asked: &Asked<'_>, ino: u64, flags: i32, reply: ReplyOpen) {
        self.open_node(asked, ino, flags, reply);
    }

    fn create(
        &mut self,
        asked: &Asked<'_>,
        parent: u64,
        name: &OsStr,
        mode: u32,
        umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let place = Place::new(parent, name);
        let parent = node!(self, parent, reply);
        let mut question = Question::new(Op::Open, parent).path(name);
        question.request.flags = (flags | libc::O_CREAT) as u32;
        question.request.mode = mode & !umask & 0o7777;
        let (server, nodes, session) = (
            Arc::clone(&self.server),
            Arc::clone(&self.nodes),
            self.session(asked),
        );
        let (openers, by, before) = (
            Arc::clone(&self.openers),
            process(asked),
            self.nodes.before_lookup(),
        );
        self.ask(asked, question, move |outcome, data| {
            heed(&nodes, outcome);
            or_error!(outcome, reply);
            let (opened, attributes) = (outcome.value, Attributes::parse(data));
            // The node needs a handle of its own: it may outlive the open file.
            let mut look = Question::new(Op::Open, opened);
            look.request.flags = libc::O_PATH as u32;
            let again = Arc::clone(&server);
            let then = move |outcome: &Outcome, _: &[u8]| {
                heed(&nodes, outcome);
                if outcome.result < 0 {
                    again.handles.remove(opened);
                }
                or_error!(outcome, reply);
                if let Some(extra) = nodes.found(attributes.ino, outcome.value, place, false) {
                    again.handles.remove(extra);
                }
                nodes.opened(attributes.ino);
                openers.opened(opened, by);
                reply.created(
                    &nodes.kept_since(before, attributes.ino),
                    &for_kernel(&attributes),
                    0,
                    opened,
                    0,
                );
            };
            put(&server, session, look, then);
        });
    }

    fn read(
        &mut self,
        asked: &Asked<'_>,
        _: u64,
        fh: u64,
        offset: i64,
        size: u32,
        _: i32,
        _: Option<u64>,
        reply: ReplyData,
    ) {
        let mut question = Question::new(Op::Read, fh);
        (question.request.offset, question.request.size) = (offset, u64::from(size));
        self.ask(asked, question, move |outcome, data| {
            or_error!(outcome, reply);
            reply.data(data);
        });
    }

    fn write(
        &mut self,
        asked: &Asked<'_>,
        _: u64,
        fh: u64,
        offset: i64,
        data: &[u8],
        write_flags: u32,
        _: i32,
        _: Option<u64>,
        reply: ReplyWrite,
    ) {
        let mut question = Question::new(Op::Write, fh).data(data);
        question.request.offset = offset;
        let of_mapping = write_flags & FUSE_WRITE_CACHE != 0;
        let by = of_mapping.then(|| self.openers.of(fh)).flatten();
        let session = self.insiders.session(&self.server, by.unwrap_or(process(asked)));
        put(&self.server, session, question, move |outcome, _| {
            or_error!(outcome, reply);
            reply.written(outcome.result as u32);
        });
    }

    fn flush(&mut self, _: &Asked<'_>, _: u64, _: u64, _: u64, reply: ReplyEmpty) {
        reply.ok();
    }

    fn release(
        &mut self,
        _: &Asked<'_>,
        ino: u64,
        fh: u64,
        _: i32,
        _: Option<u64>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        self.close_node(ino, fh);
        reply.ok();
    }

    fn fsync(&mut self, asked: &Asked<'_>, _: u64, fh: u64, datasync: bool, reply: ReplyEmpty) {
        let mut question = Question::new(Op::Fsync, fh);
        question.request.flags = if datasync { flags::DATA_ONLY } else { 0 };
        self.plain(asked, question, reply);
    }

    fn opendir(&mut self, asked: &Asked<'_>, ino: u64, _: i32, reply: ReplyOpen) {
        self.open_node(asked, ino, libc::O_RDONLY | libc::O_DIRECTORY, reply);
    }

    fn readdir(&mut self, asked: &Asked<'_>, _: u64, fh: u64, offset: i64, mut reply: ReplyDirectory) {
        let mut question = Question::new(Op::ReadDirectory, fh);
        (question.request.offset, question.request.size) = (offset, 4096);
        self.ask(asked, question, move |outcome, data| {
            or_error!(outcome, reply);
            for entry in wire::entries(data) {
                let name = OsStr::from_bytes(entry.name);
                if reply.add(
                    entry.ino,
                    entry.cursor as i64,
                    kind_of(u32::from(entry.kind) << 12),
                    name,
                ) {
                    break;
                }
            }
            reply.ok();
        });
    }

    fn releasedir(&mut self, _: &Asked<'_>, ino: u64, fh: u64, _: i32, reply: ReplyEmpty) {
        self.close_node(ino, fh);
        reply.ok();
    }

    fn fsyncdir(&mut self, asked: &Asked<'_>, ino: u64, fh: u64, datasync: bool, reply: ReplyEmpty) {
        self.fsync(asked, ino, fh, datasync, reply);
    }

    fn statfs(&mut self, asked: &Asked<'_>, _: u64, reply: ReplyStatfs) {
        self.ask(
            asked,
            Question::new(Op::Statfs, wire::ROOT),
            move |outcome, data| {
                or_error!(outcome, reply);
                let s = wire::Statfs::parse(data);
                let (size, names) = (s.bsize as u32, s.namelen as u32);
                reply.statfs(s.blocks, s.bfree, s.bavail, s.files, s.ffree, size, names, size);
            },
        );
    }

    fn setxattr(
        &mut self,
        asked: &Asked<'_>,
        ino: u64,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _: u32,
        reply: ReplyEmpty,
    ) {
        let handle = node!(self, ino, reply);
        let mut question = xattr(Op::SetXattr, handle, name).data(value);
        question.request.mode = flags as u32;
        self.plain(asked, question, reply);
    }

    fn getxattr(&mut self, asked: &Asked<'_>, ino: u64, name: &OsStr, size: u32, reply: ReplyXattr) {
        let handle = node!(self, ino, reply);
        self.attribute(asked, xattr(Op::GetXattr, handle, name), size, reply);
    }

    fn listxattr(&mut self, asked: &Asked<'_>, ino: u64, size: u32, reply: ReplyXattr) {
        let handle = node!(self, ino, reply);
        self.attribute(asked, Question::new(Op::ListXattr, handle), size, reply);
    }

    fn removexattr(&mut self, asked: &Asked<'_>, ino: u64, name: &OsStr, reply: ReplyEmpty) {
        let handle = node!(self, ino, reply);
        self.plain(asked, xattr(Op::RemoveXattr, handle, name), reply);
    }

    fn access(&mut self, asked: &Asked<'_>, ino: u64, mode: i32, reply: ReplyEmpty) {
        let mut question = Question::new(Op::Access, node!(self, ino, reply));
        question.request.mode = mode as u32;
        self.plain(asked, question, reply);
    }

    fn fallocate(
        &mut self,
        asked: &Asked<'_>,
        _: u64,
        fh: u64,
        offset: i64,
        length: i64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let mut question = Question::new(Op::Allocate, fh);
        (question.request.offset, question.request.size) = (offset, length as u64);
        question.request.mode = mode as u32;
        self.plain(asked, question, reply);
    }

    fn lseek(&mut self, asked: &Asked<'_>, _: u64, fh: u64, offset: i64, whence: i32, reply: ReplyLseek) {
        let mut question = Question::new(Op::Seek, fh);
        (question.request.offset, question.request.mode) = (offset, whence as u32);
        self.ask(asked, question, move |outcome, _| {
            or_error!(outcome, reply);
            reply.offset(outcome.result);
        });
    }
}

impl Mount {
    fn attribute(&self, asked: &Asked<'_>, mut question: Question, size: u32, reply: ReplyXattr) {
        question.request.size = u64::from(size);
        self.ask(asked, question, move |outcome, data| {
            or_error!(outcome, reply);
            if size == 0 {
                reply.size(outcome.result as u32);
            } else {
                reply.data(data);
            }
        });
    }
}
