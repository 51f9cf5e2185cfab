//! What takes long, apart from the workers: the long requests of a user are carried out one after the other, by a thread
//! of that user's own, and all others' requests go on meanwhile. They came in their turn by the policy, and their time is
//! charged to their jobs.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::thread;

use crate::accounts::user_of;
use crate::creds;
use crate::server::{Long, Server};

/// By user, for as long as there is a thread for it.
#[derive(Default)]
pub struct Lanes(Mutex<HashMap<u32, VecDeque<Long>>>);

/// From now on the server has what takes long done here.
pub fn start(server: &Arc<Server>) {
    let lanes = Arc::new(Lanes::default());
    let (weak, requests) = (Arc::downgrade(server), Arc::clone(&lanes));
    let _ = server
        .apart
        .set(Box::new(move |uid, long| requests.add(&weak, uid, long)));
    let weak = Arc::downgrade(server);
    // An open file without a name, whose data go with it.
    server.handles.close_large_ones_by(Box::new(move |handle| {
        let user = handle.user();
        let close = move |_: &Server| {
            let entry = Arc::clone(&handle.entry);
            drop(handle);
            Some(entry)
        };
        lanes.add(&weak, user, Box::new(close));
    }));
}

impl Lanes {
    pub fn add(self: &Arc<Self>, server: &Weak<Server>, uid: u32, long: Long) {
        let user = user_of(uid);
        let mut waiting = self.waiting();
        if let Some(lane) = waiting.get_mut(&user) {
            return lane.push_back(long);
        }
        waiting.insert(user, VecDeque::from([long]));
        drop(waiting);
        let Some(server) = server.upgrade() else { return };
        let run = {
            let (lanes, server) = (Arc::clone(self), Arc::clone(&server));
            move || {
                creds::lay_down();
                lanes.run(&server, user);
            }
        };
        if thread::Builder::new().name("long".into()).spawn(run).is_err() {
            self.run(&server, user); // no more threads: then this one has to
        }
    }

    fn run(&self, server: &Server, user: u32) {
        loop {
            let mut waiting = self.waiting();
            let Some(next) = waiting.get_mut(&user).and_then(VecDeque::pop_front) else {
                waiting.remove(&user);
                return;
            };
            drop(waiting);
            let began = server.queue.now();
            if let Some(entry) = next(server) {
                let job = *entry.job.lock().expect("no panics under this lock");
                server.queue.charge(&job, began);
            }
        }
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<u32, VecDeque<Long>>> {
        self.0.lock().expect("no panics under this lock")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use policy::Job;
    use wire::{Op, Request};

    use super::*;
    use crate::config::Config;
    use crate::data::DataFolder;
    use crate::door::Door;
    use crate::jobs::{Described, Proof};
    use crate::log::Log;
    use crate::session::Session;
    use crate::tree::LONG;

    const PATIENCE: Duration = Duration::from_secs(20);

    /// A server with one place for requests, and a session of its own user.
    fn served(folder: &std::path::Path) -> (Arc<Server>, Arc<Session>) {
        let _ = std::fs::remove_dir_all(folder);
        std::fs::create_dir(folder).unwrap();
        let of = |name: &str| folder.join(name).display().to_string();
        let arguments = [
            "--data",
            &of("data"),
            "--socket",
            &of("socket"),
            "--slurm",
            "",
            "--parallel",
            "1",
        ];
        let config = Config::parse(arguments.map(str::to_owned)).unwrap();
        let data = DataFolder::open(&config.data, None).unwrap();
        let door = Door::open(config.socket.as_deref(), &config.data).unwrap();
        let server = crate::start(config, data, door, Log::open(None).unwrap()).unwrap();
        let described = Described::new(1, "one", Job::new, Proof::Kernel);
        let entry = server.join_job(&described);
        let session = Session {
            inside: true,
            ..Session::new(1 << 60, creds::Creds::own(), described.job.id, entry)
        };
        (server, Arc::new(session))
    }

    /// Ask, and hear the result and value later.
    fn ask(
        server: &Server,
        session: &Arc<Session>,
        request: Request,
        path: &[u8],
    ) -> mpsc::Receiver<(i64, u64)> {
        let (tell, told) = mpsc::channel();
        let then = move |outcome: &crate::outcome::Outcome, _: &[u8]| {
            let _ = tell.send((outcome.result, outcome.value));
        };
        server.submit(Arc::clone(session), request, path.to_vec(), Box::new(then));
        told
    }

    fn on(op: Op, handle: u64, size: u64) -> Request {
        let mut request = Request::new(op);
        (request.handle, request.size) = (handle, size);
        request
    }

    /// One user's file is at work for long. What else is asked for is answered meanwhile, by the one place that there is;
    /// but what waits for that file waits apart, too.
    #[test]
    fn what_takes_long_keeps_nobody_waiting() {
        let folder = std::env::temp_dir().join(format!("fairshare-lanes-{}", std::process::id()));
        let (server, session) = served(&folder);
        let workers = {
            let server = Arc::clone(&server);
            thread::spawn(move || crate::worker::run(&server))
        };
        let mut open = Request::new(Op::Open);
        (open.flags, open.mode, open.path_len) = ((libc::O_CREAT | libc::O_RDWR) as u32, 0o600, 2);
        let opened = |path: &[u8]| {
            ask(&server, &session, open, path)
                .recv_timeout(PATIENCE)
                .unwrap()
                .1
        };
        let (at_work, closing) = (opened(b"/a"), opened(b"/b"));
        let said = |request| {
            ask(&server, &session, request, b"")
                .recv_timeout(PATIENCE)
                .map(|told| told.0)
        };

        // Somebody else has the file in his hands until he is told.
        let inode = Arc::clone(&server.handles.get(at_work, &session).unwrap().inode);
        let (let_go, held) = mpsc::channel::<()>();
        let (holds, is_held) = mpsc::channel();
        let file = Arc::clone(&inode);
        let holder = thread::spawn(move || {
            file.reshape(|| {
                holds.send(()).unwrap();
                held.recv().unwrap();
            });
        });
        is_held.recv_timeout(PATIENCE).unwrap();
        let allocated = ask(&server, &session, on(Op::Allocate, at_work, LONG + 1), b"");
        assert_eq!(said(Request::new(Op::Ping)), Ok(0), "it keeps the one worker");
        while !inode.is_worked_on() {
            thread::yield_now();
        }
        let cut = ask(&server, &session, on(Op::Truncate, at_work, 0), b"");
        assert_eq!(
            said(Request::new(Op::Ping)),
            Ok(0),
            "who waits for the same file keeps it"
        );

        // A file that loses its data when it is closed is closed behind all that, not by whoever hears of it.
        assert_eq!(said(on(Op::Allocate, closing, LONG)), Ok(0));
        let fd = server.handles.get(closing, &session).unwrap().fd();
        let path = folder.join("data/tree/b");
        assert_eq!(said(on(Op::Allocate, closing, LONG / 2)), Ok(0));
        std::fs::OpenOptions::new()
            .append(true)
            .open(&path)
            .unwrap()
            .set_len(LONG + (1 << 20))
            .unwrap();
        // SAFETY: an open descriptor.
        assert_eq!(unsafe { libc::fallocate(fd, 0, 0, LONG as i64 + (1 << 20)) }, 0);
        std::fs::remove_file(&path).unwrap();
        server.handles.remove(closing);
        assert!(
            std::fs::File::open(format!("/proc/self/fd/{fd}")).is_ok(),
            "it is closed already"
        );

        let_go.send(()).unwrap();
        holder.join().unwrap();
        assert_eq!(allocated.recv_timeout(PATIENCE).unwrap().0, 0);
        assert_eq!(cut.recv_timeout(PATIENCE).unwrap().0, 0);
        server.shut_down();
        workers.join().unwrap();
        let _ = std::fs::remove_dir_all(&folder);
    }
}
