//! The Unix socket that clients come through: where it lies, and that nobody puts another in its place.
//!
//! It lies outside the data folder, which is then closed to all others: who could pass through it would
//! reach the files themselves, past the scheduler.

use std::fs::{self, DirBuilder, File};
use std::os::fd::AsFd;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use crate::creds::can_impersonate;
use crate::rights;
use crate::safe;

/// Longest path of a Unix socket, without its NUL.
const LONGEST: usize = 107;

pub struct Door {
    pub path: PathBuf,
    pub listener: UnixListener,
    /// Held, not read: another server that wants the same socket is told so.
    _lock: File,
}

impl Door {
    /// Listen on the socket `asked` for, or on the one of data folder `data`. To be called before any thread
    /// runs. The error is a sentence for the user.
    pub fn open(asked: Option<&Path>, data: &Path) -> Result<Self, String> {
        let path = match asked {
            Some(path) => {
                let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
                if can_impersonate() {
                    safe::place(folder.unwrap_or(Path::new(".")), "the socket")?;
                }
                path.to_owned()
            }
            None => usual(data)?,
        };
        let what = |error: std::io::Error| format!("cannot listen on {}: {error}", path.display());
        if path.as_os_str().len() > LONGEST {
            return Err(format!(
                "{}: too long for a socket: --socket names another",
                path.display()
            ));
        }
        let lock = lock(&path)?;
        safe::make_way(&path)?; // by the lock what lies there is nobody's

        // Made with the mode that it is to have: changing it later could change another file's.
        let mask = if can_impersonate() { 0o111 } else { 0o177 };
        // SAFETY: a plain call; no other thread makes files yet.
        let before = unsafe { libc::umask(mask) };
        let listener = UnixListener::bind(&path);
        // SAFETY: as above.
        unsafe { libc::umask(before) };
        let listener = listener.map_err(what)?;
        rights::refuse(listener.as_fd());
        Ok(Self {
            listener,
            path,
            _lock: lock,
        })
    }
}

/// The socket of a data folder where none is asked for: named after the folder, in the runtime folder.
fn usual(data: &Path) -> Result<PathBuf, String> {
    let what = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    let folder = runtime_folder();
    if !folder.is_dir() {
        let mode = if can_impersonate() { 0o755 } else { 0o700 };
        let mut made = DirBuilder::new();
        made.mode(mode)
            .create(&folder)
            .map_err(|e| format!("{}; --socket names another place", what(&folder, e)))?;
    }
    safe::folder(&folder, true)?;
    let data = fs::canonicalize(data).map_err(|e| what(data, e))?;
    let mut name = data
        .file_name()
        .ok_or("--data /: a folder of its own is wanted")?
        .to_owned();
    name.push(".socket");
    Ok(folder.join(name))
}

/// Where services keep their sockets: what systemd made for this one, else the machine's or the user's.
fn runtime_folder() -> PathBuf {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(folder) = set("RUNTIME_DIRECTORY") {
        return folder.into();
    }
    if can_impersonate() {
        return "/run/fairshare".into();
    }
    match set("XDG_RUNTIME_DIR") {
        Some(folder) => Path::new(&folder).join("fairshare"),
        // SAFETY: no preconditions.
        None => format!("/tmp/fairshare-{}", unsafe { libc::geteuid() }).into(),
    }
}

fn lock(socket: &Path) -> Result<File, String> {
    let mut name = socket.as_os_str().to_owned();
    name.push(".lock");
    let held = safe::lock(Path::new(&name))?;
    held.ok_or_else(|| {
        format!(
            "{}: another server listens there: --socket names another",
            socket.display()
        )
    })
}
