//! A FUSE mount of the served tree: for static programs, raw system calls and shared writable mappings,
//! which no preload library reaches. The kernel says who asks.

mod attributes;
mod calls;
mod nodes;
mod question;

use std::path::Path;
use std::sync::Arc;

use fuser::{BackgroundSession, MountOption};

use crate::creds::can_impersonate;
use crate::server::Server;

/// Mount; unmounted when the result is dropped. The error is a sentence for the user.
pub fn mount(server: &Arc<Server>, path: &Path) -> Result<BackgroundSession, String> {
    if !Path::new("/dev/fuse").exists() {
        return Err(format!(
            "cannot mount on {}: this machine has no /dev/fuse",
            path.display()
        ));
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
    let mount = calls::Mount::new(Arc::clone(server));
    fuser::spawn_mount2(mount, path, &options).map_err(|error| {
        let hint = if can_impersonate() {
            ""
        } else {
            " (without root, fusermount3 is needed)"
        };
        format!("cannot mount on {}: {error}{hint}", path.display())
    })
}
