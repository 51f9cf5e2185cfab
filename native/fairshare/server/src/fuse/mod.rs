//! A FUSE mount of the served tree: how programs see it. Paths, positions, descriptors and mappings are the kernel's; what
//! they come to is asked of a server, which is in this process or at the end of a connection (`link`).

mod attributes;
mod calls;
mod nodes;
mod openers;
mod question;
mod waiting;

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use fuser::{BackgroundSession, MountOption, Notifier, Session, SessionACL};

use crate::apart;
use crate::creds::can_impersonate;
use crate::fuse::nodes::Nodes;
use crate::inside::{Files, Inside};
use crate::lanes::Lanes;
use crate::safe;
use crate::server::{Forget, Server};
use crate::tree::c_string;

/// Between two times that the kernel is asked to forget files.
const PAUSE: Duration = Duration::from_millis(1);

/// Mount this server's files; unmounted when the result is dropped. The error is a sentence for the user. `apart`: in
/// namespaces of its own, of which the process that is returned lets others in.
pub fn mount(
    server: &Arc<Server>,
    path: &Path,
    apart: bool,
) -> Result<(BackgroundSession, Option<u32>), String> {
    let files = Arc::new(Inside::new(Arc::clone(server)));
    let (session, holder) = show(
        files,
        path,
        can_impersonate(),
        apart,
        most_nodes(server),
        server.turn(),
    )?;
    let session = session
        .spawn()
        .map_err(|error| format!("cannot mount on {}: {error}", path.display()))?;
    forget_what_others_change(server, session.notifier());
    Ok((session, holder))
}

/// Mount files, for all users where `for_all`. The kernel's questions wait until the session runs.
pub fn show(
    files: Arc<dyn Files>,
    path: &Path,
    for_all: bool,
    apart: bool,
    most_nodes: usize,
    turn: u32,
) -> Result<(Session<calls::Mount>, Option<u32>), String> {
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
    if for_all {
        options.push(MountOption::AllowOther);
    }
    let nodes = Arc::new(Nodes::new(most_nodes));
    let mount = calls::Mount::new(files, Arc::clone(&nodes), turn);
    let (session, holder) = if apart {
        let (questions, holder) = apart::mount(path)?;
        (Session::from_fd(mount, questions, SessionACL::All), Some(holder))
    } else {
        let session = Session::new(mount, path, &options).map_err(|error| {
            let hint = if can_impersonate() {
                ""
            } else {
                " (without root, fusermount3 is needed)"
            };
            format!("cannot mount on {}: {error}{hint}", path.display())
        })?;
        (session, None)
    };
    let notifier = session.notifier();
    // A thread of its own: the kernel lets go of a folder, which this waits for, when a worker has answered.
    thread::spawn(move || loop {
        for place in nodes.too_old() {
            let _ = notifier.inval_entry(place.folder, &place.name); // it may be gone, or be of use
        }
        thread::sleep(PAUSE);
    });
    Ok((session, holder))
}

/// What a program that is ready prints of the process to join.
pub fn to_join(holder: Option<u32>) -> String {
    holder.map_or(String::new(), |process| {
        format!(", to be joined by process {process}")
    })
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

/// Others change files that the kernel has something of: it drops that before they have their answer. That takes as long as
/// what was written through a mapping has to wait in the queue, and pages that are just being read come by workers: so a
/// thread of the user who changes the file waits for it, and nobody else.
fn forget_what_others_change(server: &Arc<Server>, notifier: Notifier) {
    let (weak, lanes) = (Arc::downgrade(server), Arc::new(Lanes::default()));
    let forget: Forget = Box::new(move |ino, uid, done| {
        let notifier = notifier.clone();
        let forget = move |server: &Server| {
            let _ = notifier.inval_inode(ino, 0, 0); // all of it; it may be gone
            done(server);
            None
        };
        lanes.add(&weak, uid, Box::new(forget));
    });
    let _ = server.own_mount.set(forget);
}

/// Each holds a descriptor, of which a user has as many as are left for others.
fn most_nodes(server: &Server) -> usize {
    server.budgets.descriptors.total() as usize / 8
}

/// Answer what a kernel asks through a descriptor, until it is closed: how the tests are a kernel.
pub fn answer_kernel(server: &Arc<Server>, questions: OwnedFd) -> io::Result<()> {
    let nodes = Arc::new(Nodes::new(most_nodes(server)));
    let files = Arc::new(Inside::new(Arc::clone(server)));
    let mount = calls::Mount::new(files, nodes, server.turn());
    Session::from_fd(mount, questions, SessionACL::All).run()
}
