//! The data folder: the served tree, and beside it what the server keeps for itself.
//!
//! ```text
//! DIR/tree/    the files that clients see, as they see them
//! DIR/server   the server's number and key, with a checksum
//! DIR/lock     held while a server runs here
//! ```

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::creds::can_impersonate;
use crate::identity::Key;
use crate::safe;

const KEY_BYTES: usize = 32;
const RECORD: usize = 8 + KEY_BYTES + 32;

pub struct DataFolder {
    pub tree: PathBuf,
    pub id: u64,
    pub key: Key,
    /// Held, not read: the lock goes with the server.
    pub lock: File,
}

impl DataFolder {
    /// Open a data folder, or make one. The error is a sentence for the user.
    pub fn open(folder: &Path, key_file: Option<&Path>) -> std::result::Result<Self, String> {
        let what = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
        let tree = folder.join("tree");
        // Modes are said here, since the server's umask is 0. Nobody else passes through: the files are reached
        // by the socket alone, where the policy decides.
        let whole = can_impersonate();
        if !folder.is_dir() {
            if let Some(above) = folder.parent().filter(|above| !above.as_os_str().is_empty()) {
                let mut parents = DirBuilder::new();
                let made = parents.recursive(true).mode(0o755).create(above);
                made.map_err(|e| what(above, e))?;
            }
            let made = DirBuilder::new().mode(0o700).create(folder);
            made.map_err(|e| what(folder, e))?;
        }
        safe::folder(folder, whole)?;
        if whole {
            safe::closed(folder)?;
        }
        let lock = safe::lock(&folder.join("lock"))?
            .ok_or_else(|| format!("{}: another server runs on this data folder", folder.display()))?;
        if !tree.is_dir() {
            DirBuilder::new()
                .mode(0o755)
                .create(&tree)
                .map_err(|e| what(&tree, e))?;
            // All users may make their own folders in a tree that a root server makes, as in /tmp.
            let mode = if whole { 0o1777 } else { 0o755 };
            fs::set_permissions(&tree, fs::Permissions::from_mode(mode)).map_err(|e| what(&tree, e))?;
        }
        // Everybody may write in the tree; it must be the server's all the same, and no link elsewhere.
        let found = fs::symlink_metadata(&tree).map_err(|e| what(&tree, e))?;
        // SAFETY: no preconditions.
        if !found.is_dir() || found.uid() != unsafe { libc::geteuid() } {
            return Err(format!("{}: is not a folder of the server's own", tree.display()));
        }
        let record = folder.join("server");
        let (id, mut key) = load_or_make(&record)?;
        if let Some(path) = key_file {
            if whole {
                let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
                safe::place(folder.unwrap_or(Path::new(".")), "the key")?;
            }
            let bytes = safe::secret(path)?;
            if bytes.len() < KEY_BYTES {
                return Err(format!(
                    "{}: a key has at least {KEY_BYTES} bytes",
                    path.display()
                ));
            }
            key = Key::new(bytes);
        }
        Ok(Self { tree, id, key, lock })
    }
}

fn load_or_make(path: &Path) -> std::result::Result<(u64, Key), String> {
    let what = |error: std::io::Error| format!("{}: {error}", path.display());
    if path.symlink_metadata().is_ok() {
        return load(&safe::secret(path)?).ok_or_else(|| {
            format!(
                "{}: torn or changed (its checksum does not fit); move it away to get a new key \
                 (the files stay; tickets have to be made again)",
                path.display()
            )
        });
    }
    let mut bytes = vec![0; 8 + KEY_BYTES];
    let mut random = File::open("/dev/urandom").map_err(what)?;
    random.read_exact(&mut bytes).map_err(what)?;
    let sum = Sha256::digest(&bytes);
    bytes.extend_from_slice(&sum);
    // Written aside and renamed, so that a crash leaves the old state or the new one.
    let aside = path.with_extension("new");
    let _ = fs::remove_file(&aside);
    let mut options = OpenOptions::new();
    let mut file = options
        .create_new(true)
        .write(true)
        .mode(0o600)
        .open(&aside)
        .map_err(what)?;
    file.write_all(&bytes)
        .and_then(|()| file.sync_all())
        .map_err(what)?;
    fs::rename(&aside, path).map_err(what)?;
    let folder = path.parent().unwrap_or(Path::new("."));
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(what)?;
    Ok(load(&bytes).expect("just made"))
}

fn load(bytes: &[u8]) -> Option<(u64, Key)> {
    if bytes.len() != RECORD || Sha256::digest(&bytes[..8 + KEY_BYTES])[..] != bytes[8 + KEY_BYTES..] {
        return None;
    }
    let id = u64::from_le_bytes(bytes[..8].try_into().ok()?);
    Some((id, Key::new(bytes[8..8 + KEY_BYTES].to_vec())))
}
