//! A FUSE mount of the served tree: for static programs, raw system calls and shared writable mappings,
//! which no preload library reaches. The kernel says who asks.

mod attributes;
mod calls;
mod nodes;
mod openers;
mod question;

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use fuser::{BackgroundSession, MountOption, Notifier, Session, SessionACL};

use crate::creds::can_impersonate;
use crate::fuse::nodes::{Forget, Nodes};
use crate::lanes::Lanes;
use crate::safe;
use crate::server::Server;
use crate::tree::{c_string, ino_of};

/// Between two times that the kernel is asked to forget files.
const PAUSE: Duration = Duration::from_millis(1);

/// For how long the kernel keeps names and attributes. It forgets them before anybody who changes them by way of the server
/// has his answer; this bounds how long it takes to see what an administrator does in the data folder.
const KEEP: Duration = Duration::from_secs(1);

/// Mount; unmounted when the result is dropped. The error is a sentence for the user.
pub fn mount(server: &Arc<Server>, path: &Path) -> Result<BackgroundSession, String> {
    if !Path::new("/dev/fuse").exists() {
        return Err(format!(
            "cannot mount on {}: this machine has no /dev/fuse",
            path.display()
        ));
    }
    take_away_dead(path);
    if can_impersonate() {
        safe::folder(path, true)?; // users find the files by this path
    }
    let mut options = vec![
        MountOption::FSName("fairshare".into()),
        MountOption::Subtype("fairshare".into()),
        // The server checks rights by itself, but is not asked about what the kernel opens alone: FIFOs and sockets.
        MountOption::DefaultPermissions,
        MountOption::NoSuid,
        MountOption::NoDev,
    ];
    if can_impersonate() {
        options.push(MountOption::AllowOther);
    }
    let nodes = nodes_of(server);
    let mount = calls::Mount::new(Arc::clone(server), Arc::clone(&nodes));
    let session = fuser::spawn_mount2(mount, path, &options).map_err(|error| {
        let hint = if can_impersonate() {
            ""
        } else {
            " (without root, fusermount3 is needed)"
        };
        format!("cannot mount on {}: {error}{hint}", path.display())
    })?;
    let notifier = session.notifier();
    let kept = Arc::clone(&nodes);
    // A thread of its own: the kernel lets go of a folder, which this waits for, when a worker has answered.
    thread::spawn(move || loop {
        for place in nodes.too_old() {
            let _ = notifier.inval_entry(place.folder, &place.name); // it may be gone, or be of use
        }
        thread::sleep(PAUSE);
    });
    forget_what_others_change(server, kept, session.notifier());
    Ok(session)
}

/// A server that was killed leaves a mount that answers nobody, and keeps its successor from the folder.
fn take_away_dead(path: &Path) {
    let dead = || {
        path.symlink_metadata()
            .is_err_and(|e| e.raw_os_error() == Some(libc::ENOTCONN))
    };
    let Ok(name) = c_string(path.as_os_str().as_bytes()) else {
        return;
    };
    while dead() {
        let gone = if can_impersonate() {
            // SAFETY: a C string.
            unsafe { libc::umount2(name.as_ptr(), libc::MNT_DETACH) == 0 }
        } else {
            let asked = Command::new("fusermount3").args(["-u", "-z"]).arg(path).status();
            asked.is_ok_and(|status| status.success())
        };
        if !gone {
            return; // mounting will say why
        }
    }
}

/// Clients that do not come through the mount change files of which the kernel has pages, attributes or names: it drops
/// them before such a client has its answer. That takes as long as data that were written through a mapping wait in the
/// queue, pages that are being read and lookups that are under way come by workers: so a thread of the client's user
/// waits for it, and no worker.
fn forget_what_others_change(server: &Arc<Server>, nodes: Arc<Nodes>, notifier: Notifier) {
    let (weak, lanes) = (Arc::downgrade(server), Arc::new(Lanes::default()));
    let _ = server.forgets.set(Box::new(move |pending, mut outcome| {
        let metadata = std::mem::take(&mut outcome.metadata);
        let all = nodes.to_forget(outcome.changed, &metadata);
        if all.is_empty() {
            return Some((pending, outcome));
        }
        let (uid, notifier) = (pending.session.creds.uid, notifier.clone());
        let forget = move |server: &Server| {
            all.iter().for_each(|one| forget(&notifier, one));
            server.answer(pending, outcome);
            None
        };
        lanes.add(&weak, uid, Box::new(forget));
        None
    }));
}

/// Have the kernel forget something. It may have forgotten it already.
fn forget(notifier: &Notifier, what: &Forget) {
    match what {
        Forget::Name(place) => drop(notifier.inval_entry(place.folder, &place.name)),
        Forget::File { number, data, place } => {
            // From an offset below 0 on: attributes only.
            let file = || notifier.inval_inode(*number, if *data { 0 } else { -1 }, 0);
            let _ = file();
            // A lookup that found it may be under way, and bring back a file that the kernel has just dropped. The kernel
            // forgets no name in a folder before the lookups there have ended.
            if let Some(place) = place {
                let _ = notifier.inval_entry(place.folder, &place.name);
                let _ = file();
            }
        }
    }
}

/// Each holds a descriptor, of which a user has as many as are left for others.
fn nodes_of(server: &Server) -> Arc<Nodes> {
    let root = ino_of(server.tree.root());
    Arc::new(Nodes::new(
        server.budgets.descriptors.total() as usize / 8,
        root,
        KEEP,
    ))
}

/// Answer what a kernel asks through a descriptor, until it is closed: how the tests are a kernel.
pub fn answer_kernel(server: &Arc<Server>, questions: OwnedFd) -> io::Result<()> {
    let mount = calls::Mount::new(Arc::clone(server), nodes_of(server));
    Session::from_fd(mount, questions, SessionACL::All).run()
}
