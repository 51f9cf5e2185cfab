//! Who could put something else in the place of what the server trusts: its folder, its key, its tree.
//!
//! A server that works for all users believes what lies in its data folder. Whoever can write there, or
//! rename it away, is root on this storage. So the folder, and all above it, must be the server's own or
//! root's, and nobody else's to write to; a folder for everybody's files counts when it is sticky.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use crate::errno::check;

/// Bits by which group and others write.
const OTHERS_WRITE: u32 = 0o022;
const OTHERS_AT_ALL: u32 = 0o077;
const STICKY: u32 = 0o1000;

/// Whether a user is one that the server believes: root, or its own.
pub fn own(uid: u32) -> bool {
    // SAFETY: no preconditions.
    uid == 0 || uid == unsafe { libc::geteuid() }
}

/// A folder of the server's own, of which `strict` looks at all above it, too. The error is a sentence.
pub fn folder(path: &Path, strict: bool) -> Result<(), String> {
    let found = fs::symlink_metadata(path).map_err(|e| format!("{}: {e}", path.display()))?;
    if !found.is_dir() {
        return Err(format!("{}: is not a folder (a link is none)", path.display()));
    }
    if !own(found.uid()) {
        return Err(format!(
            "{}: belongs to user {}, who could replace what lies there",
            path.display(),
            found.uid()
        ));
    }
    if found.permissions().mode() & OTHERS_WRITE != 0 {
        return Err(format!(
            "{}: others may write there, and could replace what lies there: chmod go-w",
            path.display()
        ));
    }
    if strict {
        let real = fs::canonicalize(path).map_err(|e| format!("{}: {e}", path.display()))?;
        held(real.parent(), &path.display().to_string())?;
    }
    Ok(())
}

/// A folder that nobody else may pass through, for what lies in it is reached by the server alone.
pub fn closed(path: &Path) -> Result<(), String> {
    let found = fs::symlink_metadata(path).map_err(|e| format!("{}: {e}", path.display()))?;
    if found.permissions().mode() & OTHERS_AT_ALL != 0 {
        return Err(format!(
            "{}: others may pass through it to the files, past the scheduler: chmod go-rwx",
            path.display()
        ));
    }
    Ok(())
}

/// A folder in which nobody else can put another in the place of `what`.
pub fn place(path: &Path, what: &str) -> Result<(), String> {
    let real = fs::canonicalize(path).map_err(|e| format!("{}: {e}", path.display()))?;
    held(Some(&real), what)
}

/// Neither a folder nor one above it lets others put another file in the place of `what`.
fn held(folder: Option<&Path>, what: &str) -> Result<(), String> {
    for above in folder.iter().flat_map(|folder| folder.ancestors()) {
        let found = fs::metadata(above).map_err(|e| format!("{}: {e}", above.display()))?;
        let mode = found.permissions().mode();
        if !own(found.uid()) || (mode & OTHERS_WRITE != 0 && mode & STICKY == 0) {
            return Err(format!(
                "{}: others may write there, and could put another in the place of {what}",
                above.display(),
            ));
        }
    }
    Ok(())
}

/// The contents of a file that nobody else may read or write. What is read is what was looked at.
pub fn secret(path: &Path) -> Result<Vec<u8>, String> {
    let what = |error: std::io::Error| match error.raw_os_error() {
        Some(libc::ELOOP) => format!("{}: is not a file (a link is none)", path.display()),
        _ => format!("{}: {error}", path.display()),
    };
    let mut options = OpenOptions::new();
    let options = options
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let mut file = options.open(path).map_err(what)?;
    let found = file.metadata().map_err(what)?;
    if !found.is_file() {
        return Err(format!("{}: is not a file", path.display()));
    }
    if !own(found.uid()) || found.permissions().mode() & OTHERS_AT_ALL != 0 {
        return Err(format!(
            "{}: others may read or write the key, and could sign tickets of any user: make a new one, chmod 600",
            path.display()
        ));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(what)?;
    Ok(bytes)
}

/// The text of a file that a user names. A pipe is none: who opens one that nobody writes to waits for ever.
pub fn text(path: &Path) -> std::io::Result<String> {
    let mut file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)?;
    let kind = file.metadata()?.file_type();
    if !kind.is_file() && !kind.is_dir() {
        return Err(std::io::Error::other("is not a file")); // of a folder reading it tells
    }
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok(text)
}

/// The file by which servers keep each other away, made where it is not there; None where another server holds it.
/// Whatever else lies there is refused: a FIFO would keep the server waiting, and devices do things when opened.
pub fn lock(path: &Path) -> Result<Option<File>, String> {
    let what = |error: io::Error| format!("{}: {error}", path.display());
    let no_file = || {
        format!(
            "{}: is not a file, as a server's lock is: remove it",
            path.display()
        )
    };
    if fs::symlink_metadata(path).is_ok_and(|found| !found.is_file()) {
        return Err(no_file());
    }
    let mut options = OpenOptions::new();
    let options = options.create(true).truncate(false).write(true).mode(0o600);
    let file = options
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK) // something else may have come there since
        .open(path)
        .map_err(what)?;
    let found = file.metadata().map_err(what)?;
    if !found.is_file() {
        return Err(no_file());
    }
    if !own(found.uid()) {
        return Err(format!("{}: belongs to user {}", path.display(), found.uid()));
    }
    // SAFETY: a plain call.
    match check(unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) }) {
        Ok(_) => Ok(Some(file)),
        Err(errno) if errno.0 == libc::EWOULDBLOCK => Ok(None),
        Err(errno) => Err(what(io::Error::from_raw_os_error(errno.0))),
    }
}

/// What lies where a socket is to be: one that is nobody's any more goes, anything else stays, and is refused.
pub fn make_way(socket: &Path) -> Result<(), String> {
    let what = |error: io::Error| format!("{}: {error}", socket.display());
    match fs::symlink_metadata(socket) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(what(error)),
        Ok(found) if found.file_type().is_socket() => fs::remove_file(socket).map_err(what),
        Ok(_) => Err(format!(
            "{}: is there, and no socket: --socket names another place",
            socket.display()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn made(name: &str) -> std::path::PathBuf {
        let path = std::env::temp_dir().join(format!("fairshare-safe-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o711)).unwrap();
        path
    }

    #[test]
    fn a_folder_that_others_write_to_is_refused() {
        let path = made("folder");
        assert_eq!(folder(&path, true), Ok(()));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(folder(&path, false).unwrap_err().contains("others may write"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o711)).unwrap();
        let link = path.join("link");
        symlink(&path, &link).unwrap();
        assert!(folder(&link, false).unwrap_err().contains("is not a folder"));
        fs::remove_dir_all(&path).unwrap();
    }

    #[test]
    fn a_folder_in_one_that_others_write_to_is_refused_where_it_matters() {
        let above = made("above");
        let path = above.join("data");
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        fs::set_permissions(&above, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(folder(&path, true).unwrap_err().contains("in the place of"));
        assert_eq!(folder(&path, false), Ok(()));
        fs::set_permissions(&above, fs::Permissions::from_mode(0o1777)).unwrap();
        assert_eq!(folder(&path, true), Ok(()));
        assert_eq!(place(&above, "the socket"), Ok(()));
        fs::set_permissions(&above, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(place(&above, "the socket")
            .unwrap_err()
            .contains("the place of the socket"));
        fs::remove_dir_all(&above).unwrap();
    }

    #[test]
    fn a_key_that_others_read_is_refused() {
        let path = made("key");
        let file = path.join("key");
        fs::write(&file, "k").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(secret(&file).unwrap_err().contains("chmod 600"));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(secret(&file), Ok(b"k".to_vec()));
        let link = path.join("link");
        symlink(&file, &link).unwrap();
        assert!(secret(&link).unwrap_err().contains("is not a file"));
        fs::remove_dir_all(&path).unwrap();
    }
}
