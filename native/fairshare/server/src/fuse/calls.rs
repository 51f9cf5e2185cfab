//! The kernel's questions, as requests. Answers are given by the workers that carry them out.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, SystemTime};

use fuser::consts::{
    FOPEN_DIRECT_IO, FUSE_FLOCK_LOCKS, FUSE_HANDLE_KILLPRIV, FUSE_PARALLEL_DIROPS, FUSE_POSIX_LOCKS,
    FUSE_WRITE_CACHE,
};
use fuser::{
    Filesystem, KernelConfig, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry,
    ReplyIoctl, ReplyLock, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request as Asked,
    TimeOrNow,
};
use wire::{flags, mask, Attributes, Op};

use crate::creds;
use crate::fuse::attributes::{device_of, for_kernel, kind_of, numbered, stamp};
use crate::fuse::nodes::{Nodes, Place};
use crate::fuse::openers::Openers;
use crate::fuse::question::{rooted, xattr, Question};
use crate::fuse::waiting::Waiting;
use crate::inside::{Files, Process};
use crate::outcome::Outcome;

/// Nothing is remembered by the kernel: preload clients change the same files.
const TTL: Duration = Duration::ZERO;
/// But of folders who may pass, for as long as a path takes to be walked (the kernel makes it one or two of its ticks):
/// it checks that for each name of a path, and would ask for each again what the lookup just said.
const FOLDER_TTL: Duration = Duration::from_millis(1);

fn is_folder(attributes: &Attributes) -> bool {
    attributes.mode & libc::S_IFMT == libc::S_IFDIR
}

/// How long a lookup waits where files come faster than the kernel forgets others.
const BRAKE: Duration = Duration::from_millis(1);

fn attributes_ttl(attributes: &Attributes) -> &'static Duration {
    if is_folder(attributes) {
        &FOLDER_TTL
    } else {
        &TTL
    }
}

/// The last byte that a lock can be on.
const TO_THE_END: u64 = i64::MAX as u64;

/// Of Linux 5.11's interface; the crate knows that of 5.0.
const FUSE_HANDLE_KILLPRIV_V2: u32 = 1 << 28;

pub struct Mount {
    files: Arc<dyn Files>,
    nodes: Arc<Nodes>,
    openers: Arc<Openers>,
    /// Bytes that the kernel may ask for at once.
    turn: u32,
    locks: Arc<Mutex<HashSet<Owner>>>,
    waiting: Waiting,
}

/// Who took locks on a file: the file's number, and the kernel's number of the owner.
type Owner = (u64, u64);

fn process(asked: &Asked<'_>) -> Process {
    (asked.uid(), asked.gid(), asked.pid())
}

/// How the kernel is to treat an open file. What appends goes past its pages: it would put data into the page where it
/// takes the end to be, and the server decides where that is.
fn kept_by_kernel(flags: i32) -> u32 {
    if flags & libc::O_APPEND != 0 && flags & libc::O_ACCMODE == libc::O_WRONLY {
        FOPEN_DIRECT_IO
    } else {
        0
    }
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
    pub fn new(files: Arc<dyn Files>, nodes: Arc<Nodes>, turn: u32) -> Self {
        Self {
            waiting: Waiting::new(Arc::clone(&files)),
            files,
            nodes,
            openers: Arc::default(),
            turn,
            locks: Arc::default(),
        }
    }

    fn ask(
        &self,
        asked: &Asked<'_>,
        question: Question,
        then: impl FnOnce(&Outcome, &[u8]) + Send + 'static,
    ) {
        put(&self.files, process(asked), question, then);
    }

    /// Answer with what lies at a place, in the folder of handle `parent`.
    fn enter(&self, asked: &Asked<'_>, parent: u64, place: Place, reply: ReplyEntry) {
        let look = looking(parent, &place);
        self.ask(asked, look, entered(&self.files, &self.nodes, place, reply));
    }

    /// Ask, and where that went well answer with what lies at the place now.
    fn make(&self, asked: &Asked<'_>, question: Question, parent: u64, place: Place, reply: ReplyEntry) {
        let (files, nodes, by) = (Arc::clone(&self.files), Arc::clone(&self.nodes), process(asked));
        self.ask(asked, question, move |outcome, _| {
            or_error!(outcome, reply);
            let look = looking(parent, &place);
            let then = entered(&files, &nodes, place, reply);
            put(&files, by, look, then);
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
            reply.opened(outcome.value, kept_by_kernel(flags));
        });
    }

    fn close_node(&self, ino: u64, fh: u64) {
        self.nodes.closed(ino);
        self.openers.closed(fh);
        self.files.close(fh);
    }
}

/// Queue a question. The root has no handle: it is named by its path.
fn put(
    files: &Arc<dyn Files>,
    by: Process,
    question: Question,
    then: impl FnOnce(&Outcome, &[u8]) + Send + 'static,
) {
    let Question { request, payload } = rooted(question);
    files.ask(by, request, payload, Box::new(then));
}

/// What is done with a file's attributes, which the kernel knows under number `ino`.
fn shown(ino: u64, reply: ReplyAttr) -> impl FnOnce(&Outcome, &[u8]) + Send + 'static {
    move |outcome, data| {
        or_error!(outcome, reply);
        let attributes = Attributes::parse(data);
        reply.attr(attributes_ttl(&attributes), &numbered(&attributes, ino));
    }
}

/// The request for a node's own handle.
fn looking(parent: u64, place: &Place) -> Question {
    let mut look = Question::new(Op::Open, parent).path(&place.name);
    look.request.flags = (libc::O_PATH | libc::O_NOFOLLOW) as u32;
    look
}

/// What is done with its answer.
fn entered(
    files: &Arc<dyn Files>,
    nodes: &Arc<Nodes>,
    place: Place,
    reply: ReplyEntry,
) -> impl FnOnce(&Outcome, &[u8]) + Send + 'static {
    let (files, nodes) = (Arc::clone(files), Arc::clone(nodes));
    move |outcome, data| {
        heed(&nodes, outcome);
        or_error!(outcome, reply);
        let attributes = Attributes::parse(data);
        if let Some(extra) = nodes.found(attributes.ino, outcome.value, place, is_folder(&attributes)) {
            files.close(extra);
        }
        reply.entry(attributes_ttl(&attributes), &for_kernel(&attributes), 0);
    }
}

/// Where there is no descriptor, the kernel remembers too many files.
fn heed(nodes: &Nodes, outcome: &Outcome) {
    if outcome.result == -i64::from(libc::EMFILE) {
        nodes.none_left();
    }
}

impl Filesystem for Mount {
    fn init(&mut self, _: &Asked<'_>, config: &mut KernelConfig) -> Result<(), libc::c_int> {
        creds::lay_down(); // this thread carries out short requests itself
        let _ = config.set_max_write(self.turn);
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
        // Locks are the server's, so that all its mounts exclude each other.
        let _ = config.add_capabilities(FUSE_POSIX_LOCKS);
        let _ = config.add_capabilities(FUSE_FLOCK_LOCKS);
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
            self.files.close(handle);
        }
    }

    fn getattr(&mut self, asked: &Asked<'_>, ino: u64, fh: Option<u64>, reply: ReplyAttr) {
        let handle = match fh {
            Some(fh) => fh,
            None => node!(self, ino, reply),
        };
        self.ask(asked, Question::new(Op::GetAttributes, handle), shown(ino, reply));
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
        let (files, by) = (Arc::clone(&self.files), process(asked));
        let finish = {
            let files = Arc::clone(&files);
            let look = Question::new(Op::GetAttributes, handle);
            move |reply: ReplyAttr| put(&files, by, look, shown(ino, reply))
        };
        let attributes = {
            let files = Arc::clone(&files);
            move |reply: ReplyAttr| {
                if !changes {
                    return finish(reply);
                }
                put(&files, by, change, move |outcome, _| {
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
        put(&files, by, cut, move |outcome, _| {
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
        let (files, nodes) = (Arc::clone(&self.files), Arc::clone(&self.nodes));
        let (openers, by) = (Arc::clone(&self.openers), process(asked));
        self.ask(asked, question, move |outcome, data| {
            heed(&nodes, outcome);
            or_error!(outcome, reply);
            let (opened, attributes) = (outcome.value, Attributes::parse(data));
            // The node needs a handle of its own: it may outlive the open file.
            let mut look = Question::new(Op::Open, opened);
            look.request.flags = libc::O_PATH as u32;
            let again = Arc::clone(&files);
            let then = move |outcome: &Outcome, _: &[u8]| {
                heed(&nodes, outcome);
                if outcome.result < 0 {
                    again.close(opened);
                }
                or_error!(outcome, reply);
                if let Some(extra) = nodes.found(attributes.ino, outcome.value, place, false) {
                    again.close(extra);
                }
                nodes.opened(attributes.ino);
                openers.opened(opened, by);
                reply.created(&TTL, &for_kernel(&attributes), 0, opened, kept_by_kernel(flags));
            };
            put(&files, by, look, then);
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
        flags: i32,
        _: Option<u64>,
        reply: ReplyWrite,
    ) {
        let mut question = Question::new(Op::Write, fh).data(data);
        question.request.offset = offset;
        let of_mapping = write_flags & FUSE_WRITE_CACHE != 0;
        // Of the open file as it is now: fcntl may have changed it. A mapping has a place of its own.
        if flags & libc::O_APPEND != 0 && !of_mapping {
            question.request.flags = flags::APPEND;
        }
        let by = of_mapping.then(|| self.openers.of(fh)).flatten();
        put(
            &self.files,
            by.unwrap_or(process(asked)),
            question,
            move |outcome, _| {
                or_error!(outcome, reply);
                reply.written(outcome.result as u32);
            },
        );
    }

    /// A process closes a descriptor: its record locks on the file are gone.
    fn flush(&mut self, asked: &Asked<'_>, ino: u64, fh: u64, owner: u64, reply: ReplyEmpty) {
        if !self.locks().remove(&(ino, owner)) {
            return reply.ok();
        }
        self.ask(
            asked,
            locking(fh, owner, (0, TO_THE_END), libc::F_UNLCK),
            |_, _| reply.ok(),
        );
    }

    /// The last descriptor of an open file is closed: what flock took by it is gone.
    fn release(
        &mut self,
        asked: &Asked<'_>,
        ino: u64,
        fh: u64,
        _: i32,
        owner: Option<u64>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        match owner.filter(|owner| self.locks().remove(&(ino, *owner))) {
            Some(owner) => {
                let (nodes, files) = (Arc::clone(&self.nodes), Arc::clone(&self.files));
                let openers = Arc::clone(&self.openers);
                let unlock = locking(fh, owner, (0, TO_THE_END), libc::F_UNLCK);
                // The kernel asks in nobody's name.
                let by = openers.of(fh).unwrap_or(process(asked));
                put(&self.files, by, unlock, move |_, _| {
                    nodes.closed(ino);
                    openers.closed(fh);
                    files.close(fh);
                });
            }
            None => self.close_node(ino, fh),
        }
        reply.ok();
    }

    fn getlk(
        &mut self,
        asked: &Asked<'_>,
        _: u64,
        fh: u64,
        owner: u64,
        start: u64,
        end: u64,
        kind: i32,
        pid: u32,
        reply: ReplyLock,
    ) {
        let mut question = locking(fh, owner, (start, end), kind);
        (question.request.flags, question.request.mask) = (0, pid);
        self.ask(asked, question, move |outcome, data| {
            or_error!(outcome, reply);
            let held = wire::HeldLock::parse(data);
            reply.locked(held.start, held.end, outcome.result as i32, held.pid);
        });
    }

    fn setlk(
        &mut self,
        asked: &Asked<'_>,
        ino: u64,
        fh: u64,
        owner: u64,
        start: u64,
        end: u64,
        kind: i32,
        pid: u32,
        sleep: bool,
        reply: ReplyEmpty,
    ) {
        let mut question = locking(fh, owner, (start, end), kind);
        question.request.mask = pid;
        if kind != libc::F_UNLCK {
            self.locks().insert((ino, owner));
        }
        if sleep && kind != libc::F_UNLCK {
            return self.waiting.ask(process(asked), question, reply);
        }
        self.plain(asked, question, reply);
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

    /// The preload library asks by what the server knows an open file, and how to reach that server itself.
    fn ioctl(
        &mut self,
        asked: &Asked<'_>,
        _: u64,
        fh: u64,
        _: u32,
        command: u32,
        _: &[u8],
        room: u32,
        reply: ReplyIoctl,
    ) {
        if command != wire::IOCTL || room as usize != wire::VOUCHED_BYTES {
            return reply.error(libc::ENOTTY);
        }
        let socket = self.files.socket();
        if socket.is_empty() || socket.len() > wire::SOCKET_BYTES {
            return reply.error(libc::ENOTTY);
        }
        let question = Question::new(Op::Vouch, fh);
        self.ask(asked, question, move |outcome, data| {
            or_error!(outcome, reply);
            reply.ioctl(0, &wire::Vouched::new(data, outcome.value, &socket).to_bytes());
        });
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

/// Set a lock, or give it up.
fn locking(fh: u64, owner: u64, (start, end): (u64, u64), kind: i32) -> Question {
    let mut question = Question::new(Op::Lock, fh);
    let request = &mut question.request;
    (request.flags, request.handle2, request.mode) = (flags::SET, owner, kind as u32);
    request.offset = start as i64;
    let length = end.saturating_sub(start).saturating_add(1);
    request.size = if end >= TO_THE_END { 0 } else { length };
    question
}

impl Mount {
    fn locks(&self) -> MutexGuard<'_, HashSet<Owner>> {
        self.locks.lock().expect("no panics under this lock")
    }

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
