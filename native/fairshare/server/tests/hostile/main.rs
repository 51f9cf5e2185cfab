//! A server in this process against clients, and users of its mount, that say whatever they like: nothing panics,
//! nobody gets what is not his, and whoever speaks properly afterwards is answered.
//!
//! `FAIRSHARE_FUZZ=10000000` makes more requests. As root the attacker is another user than the server.

mod kernel;
#[path = "../../../wire/tests/random/mod.rs"]
mod random;
mod ring;

use std::fs;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use server::config::Config;
use server::data::DataFolder;
use server::door::Door;
use server::log::Log;
use server::Server;
use wire::Op;

use random::Random;

/// What an answer that takes longer than this is not.
const PATIENCE: Duration = Duration::from_secs(120);
/// The attacker, where we may be somebody else: it has no name on any machine.
const ATTACKER: u32 = 54322;
/// Longest file that can be made here: the attacker asks for any length.
const LONGEST: u64 = 4 << 20;
/// What only the server's user may read.
const SECRET: &[u8] = b"what-only-the-owner-may-read";

const PATHS: [&[u8]; 11] = [
    b"/own/a",
    b"/own/b",
    b"/own/folder",
    b"/own/folder/c",
    b"/own",
    b"/secret",
    b"/own/../secret",
    b"/../../outside",
    b"b",
    b"/",
    b"",
];

static PANICS: AtomicUsize = AtomicUsize::new(0);
static ALONE: Mutex<()> = Mutex::new(());

/// A server that is at work, and what it must not have said.
struct Attacked {
    server: Arc<Server>,
    folder: PathBuf,
    workers: Option<JoinHandle<()>>,
    /// Panics are counted for the whole process.
    _alone: MutexGuard<'static, ()>,
}

impl Attacked {
    fn new(name: &str) -> Self {
        let alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        // SAFETY: plain calls on values of our own.
        unsafe {
            let mut limit: libc::rlimit = std::mem::zeroed();
            libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit);
            limit.rlim_cur = LONGEST.min(limit.rlim_max);
            libc::setrlimit(libc::RLIMIT_FSIZE, &limit);
            libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
            libc::umask(0);
        }
        server::catch_unreadable_pages();
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |about| {
            PANICS.fetch_add(1, Ordering::SeqCst);
            usual(about);
        }));
        PANICS.store(0, Ordering::SeqCst);

        let folder = std::env::temp_dir().join(format!("fairshare-{name}-{}", std::process::id()));
        fs::DirBuilder::new().mode(0o755).create(&folder).unwrap();
        let of = |name: &str| folder.join(name).display().to_string();
        let arguments = ["--data", &of("data"), "--socket", &of("socket"), "--slurm", ""];
        let config = Config::parse(arguments.map(str::to_owned)).unwrap();
        let data = DataFolder::open(&config.data, None).unwrap();
        let door = Door::open(config.socket.as_deref(), &config.data).unwrap();
        let log = Log::open(None).unwrap();
        let tree = data.tree.clone();
        let own = fs::DirBuilder::new().mode(0o777).create(tree.join("own"));
        own.unwrap();
        // Root's, and another user's: where the server is the attacker's own, only what lies outside is safe.
        for path in [folder.join("outside"), tree.join("secret")] {
            if root() || path.ends_with("outside") {
                keep(&path);
            }
        }
        let server = server::start(config, data, door, log).unwrap();
        let workers = {
            let server = Arc::clone(&server);
            std::thread::spawn(move || server::worker::run(&server))
        };
        Self {
            server,
            folder,
            workers: Some(workers),
            _alone: alone,
        }
    }

    fn socket(&self) -> PathBuf {
        self.folder.join("socket")
    }

    /// What is not the attacker's is as it was.
    fn is_unharmed(&self) {
        assert_eq!(fs::read(self.folder.join("outside")).unwrap(), SECRET);
        if root() {
            assert_eq!(fs::read(self.folder.join("data/tree/secret")).unwrap(), SECRET);
        }
    }
}

/// No operation has panicked so far.
fn nothing_panicked(seed: u64) {
    assert_eq!(
        PANICS.load(Ordering::SeqCst),
        0,
        "an operation panicked, seed {seed}"
    );
}

impl Drop for Attacked {
    fn drop(&mut self) {
        self.server.shut_down();
        if let Some(workers) = self.workers.take() {
            let _ = workers.join();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn keep(path: &Path) {
    use std::io::Write;
    let mut options = fs::OpenOptions::new();
    let file = options.write(true).create_new(true).mode(0o600).open(path);
    file.unwrap().write_all(SECRET).unwrap();
}

fn root() -> bool {
    // SAFETY: no preconditions.
    unsafe { libc::getuid() == 0 }
}

/// From now on this thread is the attacker's, where it can be.
fn become_the_attacker() {
    if !root() {
        return;
    }
    // SAFETY: raw calls, which change this thread alone.
    unsafe {
        assert_eq!(libc::syscall(libc::SYS_setgroups, 0, 0), 0);
        assert_eq!(
            libc::syscall(libc::SYS_setresgid, ATTACKER, ATTACKER, ATTACKER),
            0
        );
        assert_eq!(
            libc::syscall(libc::SYS_setresuid, ATTACKER, ATTACKER, ATTACKER),
            0
        );
    }
}

fn holds_secret(bytes: &[u8]) -> bool {
    // SAFETY: both are as long as said.
    let found = unsafe {
        libc::memmem(
            bytes.as_ptr().cast(),
            bytes.len(),
            SECRET.as_ptr().cast(),
            SECRET.len(),
        )
    };
    !found.is_null()
}

/// By these an administrator, who the attacker may be where we are not root, ends his own sessions.
const FORBIDDEN: [u8; 2] = [Op::Reload as u8, Op::SendAway as u8];

/// Any other operation.
fn operation(random: &mut Random) -> Op {
    loop {
        let code = random.below(66) as u8;
        if let Some(op) = Op::from_code(code.into()).filter(|_| !FORBIDDEN.contains(&code)) {
            return op;
        }
    }
}
